"""Flat parts with a round hole through them, as triangle meshes that MuJoCo shows."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from bunraku.geometry import Array

Mesh = tuple[Array, NDArray[np.intp]]
"""Vertices `(n, 3)` [m] and triangles `(m, 3)`, counterclockwise seen from outside."""
_CORNERS = 64
"""Of a circle."""


def add_mesh(spec: mujoco.MjSpec, name: str, mesh: Mesh, pos: tuple[float, float, float]) -> None:
    """Add a mesh to the world.

    Args:
        spec: The scene.
        name: Name of the mesh, of its geom, and of the material that it takes.
        mesh: Its vertices and triangles.
        pos: Where its origin is [m].
    """
    vertices, faces = mesh
    added = spec.add_mesh(name=name)
    added.uservert, added.userface = vertices.ravel(), faces.ravel()
    # all edges are sharp
    added.smoothnormal = False
    spec.worldbody.add_geom(
        name=name, type=mujoco.mjtGeom.mjGEOM_MESH, meshname=name, pos=list(pos), material=name
    )


def holed_board(size: tuple[float, float, float], radius: float) -> Mesh:
    """Return a board around the origin with a vertical hole in its middle.

    Args:
        size: Length, width and thickness [m].
        radius: Radius of the hole [m].
    """
    half = np.array(size[:2]) / 2.0
    corner = np.arctan2(half[1], half[0])
    corners = np.array([corner, np.pi - corner, np.pi + corner, 2.0 * np.pi - corner])
    ray = _rays(corners)
    # where the rays from the middle leave the board, its four corners among them
    outer = ray / np.abs(ray / half).max(axis=-1, keepdims=True)
    return _between(radius * ray, outer, size[2])


def ring(inner: float, outer: float, thickness: float) -> Mesh:
    """Return a flat ring around the origin, of two radii and a thickness [m]."""
    ray = _rays(np.empty(0))
    return _between(inner * ray, outer * ray, thickness)


def _rays(more: Array) -> Array:
    """Return unit vectors `(n, 2)` all around, those at the angles `more` [rad] among them."""
    even = np.linspace(0.0, 2.0 * np.pi, _CORNERS, endpoint=False)
    angle = np.unique(np.concatenate([even, more]).round(12))
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def _between(inner: Array, outer: Array, thickness: float) -> Mesh:
    """Return what lies between two outlines `(n, 2)` [m] that go around counterclockwise in step."""
    n = len(inner)

    def at(outline: Array, z: float) -> Array:
        return np.column_stack([outline, np.full(n, z)])

    high, low = thickness / 2.0, -thickness / 2.0
    vertices = np.concatenate([at(inner, high), at(outer, high), at(inner, low), at(outer, low)])
    i = np.arange(n)
    j = (i + 1) % n
    high_in, high_out, low_in, low_out = (k * n for k in range(4))
    quads = [
        (high_in + i, high_out + i, high_out + j, high_in + j),
        (low_in + j, low_out + j, low_out + i, low_in + i),
        (low_out + i, low_out + j, high_out + j, high_out + i),
        (low_in + j, low_in + i, high_in + i, high_in + j),
    ]
    triangles = [np.stack(t, axis=-1) for a, b, c, d in quads for t in ((a, b, c), (a, c, d))]
    return vertices, np.concatenate(triangles)
