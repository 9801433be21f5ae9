"""The user's licensed SMPL body model: joint positions at rest for a shape. None comes with bunraku."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bunraku.errors import FileFormatError
from bunraku.motion import SMPL_JOINTS
from bunraku.retarget.reading.content import open_content

Array = NDArray[np.float64]


def rest_joints(path: Path, betas: Array) -> Array:
    """Return the joints of a shape at rest `(22, 3)` [m], Y up, facing z.

    They are the joint regressor times the vertices: the template plus the shape directions weighted by `betas`.

    Args:
        path: SMPL, SMPL-H or SMPL-X model, as `.npz` or `.pkl`.
        betas: Shape coefficients; those that the model does not have are left out.

    Raises:
        FileFormatError: If the file is no body model.
    """
    content = open_content(path)
    template, directions = content.array("v_template"), content.array("shapedirs")
    regressor = content.array("J_regressor")
    if template is None or directions is None or regressor is None:
        raise FileFormatError(f"{path} is no SMPL body model: it lacks v_template, shapedirs or J_regressor")
    count = len(SMPL_JOINTS)
    if (
        template.ndim != 2
        or directions.ndim != 3
        or regressor.shape[0] < count
        or regressor.shape[1] != len(template)
    ):
        raise FileFormatError(
            f"{path}: {template.shape=}, {directions.shape=}, {regressor.shape=} do not fit together"
        )
    # SMPL-X keeps expression directions behind the shape's, from 300 on
    used = min(len(betas), directions.shape[2], 300)
    vertices = template + directions[:, :, :used] @ betas[:used]
    return np.asarray(regressor[:count] @ vertices, dtype=np.float64)
