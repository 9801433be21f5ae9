"""Runs a policy that was exported to ONNX, with onnxruntime and NumPy alone.

    policy = OnnxPolicy("policy.onnx")
    env = gymnasium.make(policy.env_id, **policy.env_kwargs)
    observation, _ = env.reset(seed=0)
    action = policy(observation)

The file holds the observations' scale, their order, and the environment that the policy was trained in.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bunraku.errors import BunrakuError, FileFormatError, MissingDependencyError

INPUT, OUTPUT, METADATA = "observation", "action", "bunraku"
"""Names in the ONNX file."""

SHIPPED = Path(__file__).parent / "policies"
"""Folder of the policies that are part of the package; `<environment>.onnx`."""


def shipped() -> dict[str, Path]:
    """Return the policies that are part of the package, by the environment's short name."""
    return {path.stem: path for path in sorted(SHIPPED.glob("*.onnx"))}


class OnnxPolicy:
    """A policy: observation in, action out."""

    env_id: str
    """Id or short name of the environment that it was trained in."""
    env_kwargs: dict[str, Any]
    """The environment's options."""
    max_episode_steps: int | None
    """Steps of an episode in training; None for the environment's own limit."""

    def __init__(self, path: str | Path) -> None:
        """Load the file.

        Raises:
            MissingDependencyError: There is no onnxruntime.
            FileFormatError: It is no ONNX file, or not one of bunraku's.
        """
        try:
            import onnxruntime
        except ImportError as error:
            raise MissingDependencyError("onnxruntime", "running a policy", "policy") from error
        path = Path(path)
        if not path.is_file():
            raise BunrakuError(f"there is no policy {path}; export one with: bunraku policy export RUN")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self._session = onnxruntime.InferenceSession(
                str(path), options, providers=["CPUExecutionProvider"]
            )
            described = json.loads(self._session.get_modelmeta().custom_metadata_map[METADATA])
            self._keys, self._sizes = list(described["keys"]), list(described["sizes"])
            self.env_id, self.env_kwargs = str(described["env"]), dict(described["env_kwargs"])
            self.max_episode_steps = described["max_episode_steps"]
        except Exception as error:
            reason = (str(error) or type(error).__name__).splitlines()[0]
            raise FileFormatError(
                f"{path} is no policy that bunraku exported ({reason}); export it again"
            ) from error

    def act(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return actions `(N, A)` in [-1, 1] for joined observations `(N, n)`."""
        return np.asarray(self._session.run([OUTPUT], {INPUT: rows})[0])

    def __call__(self, observation: Any) -> NDArray[np.float32]:
        """Return the action `(A,)` for one observation, or `(N, A)` for a batch of them.

        Raises:
            BunrakuError: The observation has other parts than the policy was trained on.
        """
        parts = observation if isinstance(observation, Mapping) else {"": observation}
        if sorted(parts) != sorted(self._keys):
            raise BunrakuError(f"the policy takes {self._keys}, the environment gives {sorted(parts)}")
        arrays = [np.asarray(parts[key], dtype=np.float32) for key in self._keys]
        batched = arrays[0].size != self._sizes[0]
        count = arrays[0].size // self._sizes[0] if batched else 1
        rows = np.concatenate([array.reshape(count, -1) for array in arrays], axis=1)
        actions = self.act(rows)
        return actions if batched else actions[0]
