"""A polyhedron in coordinates in which it is full-dimensional around 0 and of size about one."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from oco.compiler.domains.norms import Floats
from oco.compiler.domains.polyhedron_vertices import first_basis
from oco.dsl.records import dataclass

LIKE_WIDTHS = 1e3
"""Entries whose widths differ by no more than this factor have one unit, the largest width."""


@dataclass(frozen=True, eq=False)
class Nearness:
    """{ x = origin + size Z u : G u <= h } with Z' Z = I and unit rows G: coordinates u that keep distances.

    `units` is by how much a row's slack grows with that of the same row over a set of size about one, an array where entries differ.
    """

    Z: Floats
    G: Floats
    h: Floats
    units: Floats | None


@dataclass(frozen=True, eq=False)
class Reduced:
    """{ x = origin + scale Z w : G w <= h } with Z' Z = I, unit rows G, h > 0: the set of the w is full-dimensional around 0.

    `scale` (n,) are the units of the entries, one number where their widths are alike. `vertices` are those of the w, or None where they
    are many. `hull` are the least and the greatest values of the entries of x (2, n), outwards where they are rounded. `normal` are
    orthonormal rows whose products with x are constant. `loose` says that `hull` are bounds which need not be attained, and that a larger
    ball than that about 0 may lie within.
    """

    origin: Floats
    scale: Floats
    Z: Floats
    G: Floats
    h: Floats
    vertices: Floats | None
    hull: Floats
    normal: Floats
    loose: bool = False

    @property
    def dimension(self) -> int:
        """Dimension of the set: the length of w."""
        return int(self.Z.shape[1])

    @cached_property
    def size(self) -> float:
        """The largest of the units."""
        return float(np.max(self.scale))

    @cached_property
    def same_costs(self) -> bool:
        """True if all entries have the same unit, so that the coordinates w keep distances."""
        return bool(np.all(self.scale == self.size))

    @cached_property
    def whole(self) -> bool:
        """True if the set has no equalities, so that its coordinates are those of x."""
        return self.Z.shape[0] == self.Z.shape[1] and bool(np.array_equal(self.Z, np.eye(len(self.Z))))

    @cached_property
    def basis(self) -> Floats:
        """d rows that are tight at one vertex."""
        return first_basis(self.G, self.h)

    @cached_property
    def nearness(self) -> Nearness:
        """In coordinates u = R w with R' R = Z' (scale / size)^2 Z."""
        if self.same_costs or not self.dimension:
            return Nearness(self.Z, self.G, self.h, None)
        shares = self.scale / self.size
        if self.whole:
            Z, G = self.Z, self.G / shares
        else:
            from scipy.linalg import qr, solve_triangular

            scaled = shares[:, None] * self.Z
            R, order = qr(scaled[np.argsort(-shares, kind="stable")], mode="r", pivoting=True)
            R = R[: self.dimension]
            Z, G = (solve_triangular(R, M[:, order].T, trans="T").T for M in (scaled, self.G))
        lengths = np.linalg.norm(G, axis=1)
        return Nearness(Z, G / lengths[:, None], self.h / lengths, 1 / lengths)

    def divided(self, unit: float) -> Reduced:
        """Reduction of the set divided by a number."""
        return replace(self, origin=self.origin / unit, scale=self.scale / unit, hull=self.hull / unit)

    @classmethod
    def point(cls, x: Floats) -> Reduced:
        """The set of x alone."""
        n = len(x)
        none, hull = np.zeros(0), np.stack([x, x])
        return cls(x, np.ones(n), np.zeros((n, 0)), np.zeros((0, 0)), none, np.zeros((1, 0)), hull, np.eye(n))
