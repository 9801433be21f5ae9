"""Lobatto nodes, their integration and interpolation: what collocation on a mesh of polynomials needs.

Formulas: Legendre polynomials and barycentric interpolation as in J.-P. Berrut and L. N. Trefethen, "Barycentric
Lagrange interpolation", SIAM Review 46 (2004).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.polynomial import legendre

from bunraku.geometry import Array


class Lobatto:
    """The n-point Lobatto rule on [0, 1]."""

    def __init__(self, points: int) -> None:
        """Make the rule.

        Args:
            points: n, at least 2; both ends of the interval are among them.

        Raises:
            ValueError: If there are fewer than 2.
        """
        if points < 2:
            raise ValueError(f"a Lobatto rule has 2 points or more, got {points}")
        inner = legendre.Legendre.basis(points - 1).deriv().roots()
        self.nodes: Array = 0.5 * (1.0 + np.concatenate([[-1.0], np.sort(inner.real), [1.0]]))
        """`(n,)` ascending."""

    @cached_property
    def integration(self) -> Array:
        """`(n, n)`: row i integrates the interpolating polynomial from 0 to node i; the last row is the rule."""
        # Gauss's rule is exact here, and free of the cancellation of monomials
        at, weights = legendre.leggauss(len(self.nodes))
        basis = np.eye(len(self.nodes))
        rows = [0.5 * end * (weights @ self.interpolate(basis, 0.5 * end * (1.0 + at))) for end in self.nodes]
        return np.array(rows)

    def interpolate(self, values: Array, at: Array) -> Array:
        """Return the interpolating polynomials of `values` `(n, k)` at points `(m,)` of [0, 1] as `(m, k)`."""
        differences = self.nodes[:, None] - self.nodes[None, :]
        np.fill_diagonal(differences, 1.0)
        weights = 1.0 / differences.prod(axis=1)
        offset = at[:, None] - self.nodes
        hit = offset == 0.0
        terms = weights / np.where(hit, 1.0, offset)
        exact = hit.any(axis=1)
        terms[exact] = hit[exact]
        return (terms @ values) / terms.sum(axis=1, keepdims=True)
