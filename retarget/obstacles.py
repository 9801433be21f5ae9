"""Obstacles: arms and legs bend around boxes with their bone lengths kept, and where they cannot, it is said.

A limb is three points: where it hangs, its middle and its end (shoulder, elbow, wrist; hip, knee, ankle). While a
limb is in a box, one side of the box is chosen by which the whole passage gets out with the least push, so that the
limb does not change sides on the way. The push is spread in time, so that the limb begins to give way before it gets
there, and the points are brought back to their bone lengths after every push. The limb's joints are then solved for
the new points; trunk, head and root stay.

This is local and geometric: what would need a step aside or a turn of the waist is reported as blocked.

    [{"pos": [0.15, 0.1, 0.3], "half": [0.02, 0.1, 0.01], "quat": [1, 0, 0, 0]}]     # boxes.json: m, w x y z
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from bunraku.errors import BunrakuError, FileFormatError
from bunraku.geometry import normalize, to_matrix
from bunraku.humanoid import LIMBS, HumanoidSpec
from bunraku.retarget.footing import runs_of
from bunraku.retarget.limb import Limb
from bunraku.retarget.solver.tree import Tree

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

BOX = 10
"""Numbers of a box: centre, half sizes [m], quaternion."""
SPREAD = 0.12
"""Time over which a limb gives way before and after a box [s]."""
ROUNDS, SETTLING = 30, 30
"""Rounds of pushing with and without spreading in time."""
SAMPLES = 9
"""Points checked along each bone."""
ALLOWED = 1e-3
"""A limb deeper in a box than this is blocked [m]."""


@dataclass(frozen=True)
class Avoided:
    """A motion led around obstacles."""

    dof: Array
    """Joint angles `(T, n)` [rad]."""
    blocked: dict[str, tuple[tuple[int, int], ...]]
    """Frames (first, last) in which a limb stays in a box; limbs without are left out."""
    touched: dict[str, int]
    """Frames in which a limb was in a box before; limbs without are left out."""
    clearance: float
    """Least distance of a limb from a box, afterwards [m]; negative inside, infinite without boxes."""


def read_boxes(path: Path) -> Array:
    """Return the boxes of a JSON file `(K, 10)`: centre, half sizes [m], quaternion (w, x, y, z).

    Args:
        path: A list of objects with `pos` and `half`, three numbers each, and maybe `quat`, four numbers.

    Raises:
        BunrakuError: If there is no such file.
        FileFormatError: If it is not such a list.
    """
    try:
        data = json.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise BunrakuError(
            f"no obstacle file {path}; write a JSON list of boxes with pos and half [m]"
        ) from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise FileFormatError(f"{path} is not JSON: {error}") from error
    if not isinstance(data, list):
        raise FileFormatError(f"{path} holds {type(data).__name__}; expected a list of boxes")
    return np.array([_box(path, i, item) for i, item in enumerate(data)], dtype=np.float64).reshape(-1, BOX)


def _box(path: Path, index: int, item: Any) -> list[float]:
    where = f"{path}: box {index}"
    if not isinstance(item, dict) or not {"pos", "half"} <= set(item) <= {"pos", "half", "quat"}:
        raise FileFormatError(f"{where} has pos, half and maybe quat; got {item!r}")
    numbers: list[float] = []
    for key, count in (("pos", 3), ("half", 3), ("quat", 4)):
        value = item.get(key, [1.0, 0.0, 0.0, 0.0])
        good = isinstance(value, list) and len(value) == count
        if not good or not all(isinstance(v, int | float) and np.isfinite(v) for v in value):
            raise FileFormatError(f"{where}: {key} is {count} numbers; got {value!r}")
        numbers += [float(v) for v in value]
    if min(numbers[3:6]) <= 0.0 or np.linalg.norm(numbers[6:]) < 1e-6:
        raise FileFormatError(f"{where}: half sizes are above 0, and quat is not 0; got {item!r}")
    return [*numbers[:6], *normalize(numbers[6:])]


def avoid_boxes(
    robot: HumanoidSpec, dof: Array, root_pos: Array, root_quat: Array, boxes: Array, fps: float
) -> Avoided:
    """Lead arms and legs around boxes.

    Args:
        robot: The robot.
        dof: Joint angles `(T, n)` [rad].
        root_pos: Position of the root body `(T, 3)` [m].
        root_quat: Its orientation `(T, 4)`.
        boxes: Boxes in the world `(K, 10)`, from `read_boxes`.
        fps: Frame rate [1/s].
    """
    model = robot.load(root="fixed").compile()
    tree = Tree.from_model(model, robot.root_body)
    rot = to_matrix(root_quat)
    blocked: dict[str, tuple[tuple[int, int], ...]] = {}
    touched: dict[str, int] = {}
    clearance = np.inf
    for name, (start, middle, end) in ((n, p) for n, p in LIMBS.items() if len(p) == 3):
        limb = Limb(tree, *(robot.frames[point] for point in (start, middle, end)))
        radius, beyond = _thickness(model, robot, middle, end, arm="arm" in name)
        local = limb.points(dof)
        world = root_pos[:, None] + np.einsum("tij,tpj->tpi", rot, local)
        inside = limb_clearance(world, boxes, radius, beyond) < 0.0
        if inside.any():
            touched[name] = int(inside.sum())
            bent = bend_limb(world, boxes, radius + ALLOWED, beyond, fps)
            dof = limb.solve(dof, np.einsum("tji,tpj->tpi", rot, bent - root_pos[:, None])[:, 1:])
            world = root_pos[:, None] + np.einsum("tij,tpj->tpi", rot, limb.points(dof))
        left = limb_clearance(world, boxes, radius, beyond)
        clearance = min(clearance, float(left.min(initial=np.inf)))
        runs = tuple((first, last - 1) for first, last in runs_of(left < -ALLOWED))
        if runs:
            blocked[name] = runs
    return Avoided(dof, blocked, touched, clearance)


def _thickness(
    model: mujoco.MjModel, robot: HumanoidSpec, middle: str, end: str, *, arm: bool
) -> tuple[float, float]:
    """Return the radius of a limb and how far it goes on past its end (the hand) [m], from its solid geoms."""
    radius, beyond = 0.0, 0.0
    round_types = {int(mujoco.mjtGeom.mjGEOM_CAPSULE), int(mujoco.mjtGeom.mjGEOM_SPHERE)}
    for point in (middle, end):
        name = robot.frames[point]
        index = mujoco.mj_name2id(model, int(mujoco.mjtObj.mjOBJ_BODY), name)
        for geom in range(model.ngeom) if index >= 0 else ():
            if model.geom_bodyid[geom] != index or not model.geom_contype[geom]:
                continue
            if int(model.geom_type[geom]) in round_types:
                radius = max(radius, float(model.geom_size[geom, 0]))
            if point == end and arm:
                far = np.linalg.norm(model.geom_pos[geom]) + model.geom_rbound[geom]
                beyond = max(beyond, float(far))
    return radius, max(0.0, beyond - radius)


def _samples(points: Array, beyond: float) -> tuple[Array, Array, Array]:
    """Return points along both bones `(T, S, 3)` and how much each moves with the middle and the end `(S,)`."""
    start, middle, end = points[:, 0], points[:, 1], points[:, 2]
    share = np.linspace(0.2, 1.0, SAMPLES)
    length = float(np.linalg.norm(end[0] - middle[0]))
    last = np.linspace(0.0, 1.0 + beyond / max(length, 1e-9), SAMPLES)
    first = start[:, None] + share[:, None] * (middle - start)[:, None]
    second = middle[:, None] + last[:, None] * (end - middle)[:, None]
    with_middle = np.concatenate([share, 1.0 - np.minimum(last, 1.0)])
    with_end = np.concatenate([np.zeros(SAMPLES), last])
    return np.concatenate([first, second], axis=1), with_middle, with_end


def _in_box(samples: Array, box: Array) -> Array:
    """Return samples `(T, S, 3)` in the axes of a box `(10,)`."""
    local: Array = (samples - box[:3]) @ to_matrix(box[6:])
    return local


def limb_clearance(points: Array, boxes: Array, radius: float, beyond: float) -> Array:
    """Return the least distance of a limb from all boxes in each frame `(T,)` [m], negative inside.

    Args:
        points: Start, middle and end `(T, 3, 3)` [m].
        boxes: Boxes `(K, 10)`.
        radius: Radius of the limb [m].
        beyond: How far it goes on past its end [m].
    """
    samples, _, _ = _samples(points, beyond)
    least = np.full(len(points), np.inf)
    for box in boxes:
        apart = np.abs(_in_box(samples, box)) - box[3:6]
        outside = np.linalg.norm(np.maximum(apart, 0.0), axis=-1)
        distance = outside + np.minimum(apart.max(axis=-1), 0.0) - radius
        least = np.minimum(least, distance.min(axis=1))
    return least


def bend_limb(points: Array, boxes: Array, radius: float, beyond: float, fps: float) -> Array:
    """Return the limb led around the boxes `(T, 3, 3)`, its start and bone lengths kept.

    Args:
        points: Start, middle and end `(T, 3, 3)` [m].
        boxes: Boxes `(K, 10)`.
        radius: Radius of the limb [m].
        beyond: How far it goes on past its end [m].
        fps: Frame rate [1/s].
    """
    original, bent = points, points.copy()
    lengths = np.linalg.norm(np.diff(points, axis=1), axis=-1)
    sides = [_sides(points, box, radius, beyond, fps) for box in boxes]
    half = max(1, round(SPREAD * fps))
    window = np.hanning(2 * half + 3)[1:-1]
    window /= window.sum()
    for turn in range(ROUNDS + SETTLING):
        samples, with_middle, with_end = _samples(bent, beyond)
        push_middle, push_end = np.zeros((len(bent), 3)), np.zeros((len(bent), 3))
        for box, side in zip(boxes, sides, strict=True):
            depth = _depth_to_side(samples, box, side, radius)
            normal = to_matrix(box[6:]) @ _side_normals(side)[..., None]
            # the middle alone can turn the first bone; the end is lifted by what its lever asks for
            first = (depth * with_middle / np.maximum(with_middle**2 + with_end**2, 0.1)).max(axis=1)
            second = (depth * with_end / np.maximum(with_middle**2 + with_end**2, 0.1)).max(axis=1)
            push_middle += first[:, None] * normal[..., 0]
            push_end += second[:, None] * normal[..., 0]
        bent[:, 1] += 0.5 * push_middle
        bent[:, 2] += 0.5 * push_end
        if turn < ROUNDS:
            moved = np.pad(bent - original, ((half, half), (0, 0), (0, 0)), mode="edge")
            spread = np.apply_along_axis(np.convolve, 0, moved, window, mode="valid")
            bent = original + np.where(np.abs(spread) > np.abs(bent - original), spread, bent - original)
        bent = _with_lengths(bent, lengths)
    return bent


def _with_lengths(points: Array, lengths: Array) -> Array:
    """Return a limb `(T, 3, 3)` in the same directions with the given bone lengths `(T, 2)`."""
    out = points.copy()
    for bone in range(2):
        along = points[:, bone + 1] - points[:, bone]
        out[:, bone + 1] = out[:, bone] + normalize(along) * lengths[:, bone, None]
    return out


def _side_normals(side: NDArray[np.int64]) -> Array:
    """Return the outward normals `(T, 3)` of sides 0 to 5: +x, +y, +z, -x, -y, -z; zero for -1."""
    normals = np.concatenate([np.eye(3), -np.eye(3), np.zeros((1, 3))])
    chosen: Array = normals[side]
    return chosen


def _depth_to_side(samples: Array, box: Array, side: NDArray[np.int64], radius: float) -> Array:
    """Return how far each sample must go to leave by the chosen side `(T, S)` [m]; 0 outside or without a side."""
    local, half = _in_box(samples, box), box[3:6] + radius
    inside = (np.abs(local) < half).all(axis=-1)
    normals = _side_normals(side)
    reach = (np.abs(normals) * half).sum(axis=-1, keepdims=True)
    depth = reach - np.einsum("tsk,tk->ts", local, normals)
    return np.where(inside & (side >= 0)[:, None], depth, 0.0)


def _sides(points: Array, box: Array, radius: float, beyond: float, fps: float) -> NDArray[np.int64]:
    """Return by which side the limb leaves a box in each frame `(T,)`: one for each passage, -1 where it is far."""
    samples, _, _ = _samples(points, beyond)
    local, half = _in_box(samples, box), box[3:6] + radius
    within = (np.abs(local) < half).all(axis=-1)
    inside: Mask = np.any(within, axis=1)
    side = np.full(len(points), -1, dtype=np.int64)
    margin = round(2 * SPREAD * fps)
    for first, last in runs_of(inside):
        span = slice(first, last)
        costs = []
        for candidate in range(6):
            chosen = np.full(last - first, candidate)
            depth = _depth_to_side(samples[span], box, chosen, radius)
            # the whole limb in front of that side counts, not only what is inside: the start must be clear of it
            costs.append(float(depth.max()))
        start = (points[span, 0] - box[:3]) @ to_matrix(box[6:])
        for candidate in range(6):
            beyond_side = np.einsum("tk,k->t", start, _side_normals(np.array([candidate]))[0])
            if np.any(beyond_side < -half[candidate % 3]):
                costs[candidate] += float(2.0 * half.max())  # behind the box as seen from the limb's start
        best = int(np.argmin(costs))
        around = slice(max(0, first - margin), last + margin)
        free = side[around] < 0
        side[around] = np.where(free, best, side[around])
    return side
