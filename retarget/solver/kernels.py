"""The compiled heart: kinematics, objective and one box-constrained step, written for numba.

Every function works on the arrays of `problem.Packed` and on scratch arrays that the caller brings, so nothing is
allocated in the loop. Without numba these functions are plain Python: correct, but too slow to be used; see
`mujoco_path`.

The Hessian is summed over the chains of the tasks, pairs of joints on the same branch only. With a fixed root its
pattern is that of the tree, so `L^T D L` in tree order has no fill-in (Featherstone, 2008, section 6.5).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bunraku.retarget.solver.jit import compiled
from bunraku.retarget.solver.problem import Packed

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


@compiled
def forward(p: Packed, q: Array, rot: Array, pos: Array, axes: Array) -> None:
    """Write link rotations `(n, 3, 3)`, origins `(n, 3)` and joint axes `(n, 3)` in the root frame for `q` `(n,)`."""
    for i in range(p.parent.shape[0]):
        s, c = math.sin(q[i]), math.cos(q[i])
        up = p.parent[i]
        for k in range(3):
            for m in range(3):
                rot[i, k, m] = p.rot_a[i, k, m] + s * p.rot_b[i, k, m] + c * p.rot_c[i, k, m]
        if up < 0:
            for k in range(3):
                pos[i, k] = p.offset[i, k]
                axes[i, k] = p.axis[i, k]
            continue
        for m in range(3):
            x, y, z = rot[i, 0, m], rot[i, 1, m], rot[i, 2, m]
            for k in range(3):
                rot[i, k, m] = rot[up, k, 0] * x + rot[up, k, 1] * y + rot[up, k, 2] * z
        for k in range(3):
            a, b, d = rot[up, k, 0], rot[up, k, 1], rot[up, k, 2]
            pos[i, k] = pos[up, k] + a * p.offset[i, 0] + b * p.offset[i, 1] + d * p.offset[i, 2]
            axes[i, k] = a * p.axis[i, 0] + b * p.axis[i, 1] + d * p.axis[i, 2]


@compiled
def place(rot: Array, pos: Array, link: int, point: Array, out: Array) -> None:
    """Write the position `(3,)` of a point of a link (-1: the root) to `out`."""
    for k in range(3):
        if link < 0:
            out[k] = point[k]
        else:
            out[k] = (
                pos[link, k]
                + rot[link, k, 0] * point[0]
                + rot[link, k, 1] * point[1]
                + rot[link, k, 2] * point[2]
            )


@compiled
def rotation_error(target: Array, link_rot: Array, turn: Array, out: Array, f: Array) -> None:
    """Write the rotation vector from the frame `link_rot @ turn` to `target`, in the root frame, to `out` `(3,)`.

    `f` `(3, 3)` is scratch: `target @ (link_rot @ turn)^T`.
    """
    for m in range(3):
        # row m of (link_rot @ turn) is column m of its transpose
        x = link_rot[m, 0] * turn[0, 0] + link_rot[m, 1] * turn[1, 0] + link_rot[m, 2] * turn[2, 0]
        y = link_rot[m, 0] * turn[0, 1] + link_rot[m, 1] * turn[1, 1] + link_rot[m, 2] * turn[2, 1]
        z = link_rot[m, 0] * turn[0, 2] + link_rot[m, 1] * turn[1, 2] + link_rot[m, 2] * turn[2, 2]
        for k in range(3):
            f[k, m] = target[k, 0] * x + target[k, 1] * y + target[k, 2] * z
    x, y, z = 0.5 * (f[2, 1] - f[1, 2]), 0.5 * (f[0, 2] - f[2, 0]), 0.5 * (f[1, 0] - f[0, 1])
    cosine = 0.5 * (f[0, 0] + f[1, 1] + f[2, 2] - 1.0)
    sine = math.sqrt(x * x + y * y + z * z)
    if sine > 1e-6:
        scale = math.atan2(sine, cosine) / sine
        out[0], out[1], out[2] = scale * x, scale * y, scale * z
    elif cosine > 0.0:
        out[0], out[1], out[2] = x, y, z
    else:  # half a turn: the axis is in the symmetric part
        k = 0
        if f[1, 1] > f[k, k]:
            k = 1
        if f[2, 2] > f[k, k]:
            k = 2
        norm = math.sqrt(max(0.5 * (f[k, k] + 1.0), 1e-12))
        for m in range(3):
            out[m] = math.pi * (norm if m == k else 0.25 * (f[k, m] + f[m, k]) / norm)


@compiled
def linearise(
    p: Packed,
    q: Array,
    offsets: Array,
    rotations: Array,
    target_step: float,
    hessian: Array,
    gradient: Array,
    rot: Array,
    pos: Array,
    axes: Array,
    columns: Array,
    work: Array,
) -> None:
    """Write the Gauss-Newton Hessian (lower triangle, branch pairs) and the gradient of the tasks at `q`.

    Args:
        p: The problem.
        q: Joint angles `(n,)`.
        offsets: Targets relative to the anchors `(K, 3)`.
        rotations: Target rotations `(K, 3, 3)`.
        target_step: Longest position error that counts [m].
        hessian: Out `(n, n)`.
        gradient: Out `(n,)`.
        rot: Scratch, link rotations.
        pos: Scratch, link origins.
        axes: Scratch, joint axes.
        columns: Scratch `(n, 3)`.
        work: Scratch `(7, 3)`.
    """
    n = q.shape[0]
    forward(p, q, rot, pos, axes)
    posture, damping = p.scalars[0], p.scalars[1]
    for i in range(n):
        j = p.parent[i]
        while j >= 0:
            hessian[i, j] = 0.0
            j = p.parent[j]
        hessian[i, i] = posture + damping
        gradient[i] = posture * (q[i] - p.rest[i])
    tip, base, error, turn = work[0], work[1], work[2], work[3]
    for k in range(p.link.shape[0]):
        wp, wr, length = p.weights[k, 0], p.weights[k, 1], p.chain_length[k, 0]
        if wp > 0.0:
            place(rot, pos, p.link[k], p.point[k], tip)
            place(rot, pos, p.anchor[k], p.anchor_point[k], base)
            size = 0.0
            for m in range(3):
                error[m] = base[m] + offsets[k, m] - tip[m]
                size += error[m] * error[m]
            size = math.sqrt(size)
            scale = wp if size <= target_step else wp * target_step / size
            for a in range(length):
                i = p.chain[k, a]
                if a < p.chain_length[k, 1]:
                    x, y, z = tip[0] - base[0], tip[1] - base[1], tip[2] - base[2]
                else:
                    x, y, z = tip[0] - pos[i, 0], tip[1] - pos[i, 1], tip[2] - pos[i, 2]
                cx = axes[i, 1] * z - axes[i, 2] * y
                cy = axes[i, 2] * x - axes[i, 0] * z
                cz = axes[i, 0] * y - axes[i, 1] * x
                columns[a, 0], columns[a, 1], columns[a, 2] = cx, cy, cz
                gradient[i] -= scale * (cx * error[0] + cy * error[1] + cz * error[2])
                cx, cy, cz = wp * cx, wp * cy, wp * cz
                for b in range(a + 1):
                    hessian[i, p.chain[k, b]] += cx * columns[b, 0] + cy * columns[b, 1] + cz * columns[b, 2]
        if wr > 0.0:
            rotation_error(rotations[k], rot[p.link[k]], p.turn[k], turn, work[4:7])
            for a in range(length):
                i = p.chain[k, a]
                x, y, z = wr * axes[i, 0], wr * axes[i, 1], wr * axes[i, 2]
                gradient[i] -= x * turn[0] + y * turn[1] + z * turn[2]
                for b in range(a + 1):
                    j = p.chain[k, b]
                    hessian[i, j] += x * axes[j, 0] + y * axes[j, 1] + z * axes[j, 2]


@compiled
def factor_solve(parent: Ints, factor: Array, x: Array) -> None:
    """Overwrite the lower triangle with `L^T D L` in tree order, and `x` `(n,)` with the solution of `H x = x`."""
    n = x.shape[0]
    for k in range(n - 1, -1, -1):
        inverse = 1.0 / factor[k, k]
        i = parent[k]
        while i >= 0:
            a = factor[k, i] * inverse
            if a != 0.0:
                j = i
                while j >= 0:
                    factor[i, j] -= a * factor[k, j]
                    j = parent[j]
            factor[k, i] = a
            x[i] -= a * x[k]
            i = parent[i]
        x[k] *= inverse
    for k in range(n):
        i = parent[k]
        while i >= 0:
            x[k] -= factor[k, i] * x[i]
            i = parent[i]


@compiled
def box_qp(
    parent: Ints,
    hessian: Array,
    gradient: Array,
    low: Array,
    high: Array,
    active: NDArray[np.int8],
    x: Array,
    factor: Array,
    work: Array,
) -> int:
    """Minimise `1/2 x'Hx + g'x` over `low <= x <= high`; `active` `(n,)` is the warm start and the result.

    Primal-dual active set: guess which bounds hold (-1 low, 1 high, 0 free), solve, correct all wrong guesses at once
    (Hintermueller et al., 2003). Should that cycle, single corrections at the least index follow, which end for every
    positive definite H (Murty, 1974).

    Returns:
        The number of factorisations.
    """
    n = x.shape[0]
    for count in range(1, 2001):
        fixed = False
        for i in range(n):
            x[i] = -gradient[i]
            j = i
            while j >= 0:
                factor[i, j] = hessian[i, j]
                j = parent[j]
            fixed = fixed or active[i] != 0
        if fixed:
            for i in range(n):
                if active[i] != 0:
                    work[i] = low[i] if active[i] < 0 else high[i]
            for i in range(n):
                j = parent[i]
                while j >= 0:
                    if active[i] != 0:
                        if active[j] == 0:
                            x[j] -= hessian[i, j] * work[i]
                        factor[i, j] = 0.0
                    elif active[j] != 0:
                        x[i] -= hessian[i, j] * work[j]
                        factor[i, j] = 0.0
                    j = parent[j]
            for i in range(n):
                if active[i] != 0:
                    factor[i, i] = 1.0
                    x[i] = work[i]
        factor_solve(parent, factor, x)
        if fixed:
            for i in range(n):  # multipliers
                work[i] = gradient[i] + hessian[i, i] * x[i]
            for i in range(n):
                j = parent[i]
                while j >= 0:
                    work[i] += hessian[i, j] * x[j]
                    work[j] += hessian[i, j] * x[i]
                    j = parent[j]
        wrong = 0
        for i in range(n):
            new = active[i]
            if new == 0:
                if x[i] < low[i] - 1e-13:
                    new = -1
                elif x[i] > high[i] + 1e-13:
                    new = 1
            elif (new < 0 and work[i] < -1e-12) or (new > 0 and work[i] > 1e-12):
                new = 0 if high[i] > low[i] else new
            if new != active[i]:
                wrong += 1
                active[i] = new
                if count > 12:
                    break
        if wrong == 0:
            return count
    return 0
