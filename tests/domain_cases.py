"""The domains that the law tests run over, each at any scale: `case.make(s)` is s times `case.make(1)`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from thorough import corners

from oco.compiler.domains import Domain, cut, domain, product, shifted_and_scaled
from oco.compiler.domains.flow_graph import FlowGraph
from oco.compiler.domains.sparse_flow import SparseFlow


@dataclass(frozen=True)
class Case:
    """A domain as a function of its scale. `exact`: closed forms, good to 1e-12; the others are iterative, good to 1e-9.

    `scales`: whether the set has arguments to scale it by; without them `make` ignores s.
    """

    name: str
    make: Callable[[float], Domain]
    exact: bool = True
    scales: bool = True

    def at(self, scale: float) -> Domain:
        """The domain, made once for all tests."""
        return made(self.name, scale)

    @property
    def tolerance(self) -> float:
        return 1e-12 if self.exact else 1e-9


LO = np.array([-1.0, 0.0, 2.0, -3.0])
HI = np.array([1.0, 0.5, 2.0, -1.0])
TILT = np.array([[1.0, 0.5, 0.0], [0.0, 0.3, -0.2], [0.4, 0.0, 2.0]])
SLABS = np.concatenate([np.eye(3), -np.eye(3), [[1.0, 2.0, -1.0], [-1.0, 1.0, 3.0]]])
SLABS_RIGHT = np.array([1.0, 2.0, 1.0, 0.5, 0.0, 1.0, 2.0, 1.5])
TRIANGLE = np.array([[1.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
FLAT = np.array([[1.0, 1, 1], [-1, -1, -1], [-1, 0, 0], [0, -1, 0], [0, 0, -1], [2, 0, 0]])
FLAT_RIGHT = np.array([1.0, -1, 0, 0, 0, 1])
POINT = np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1]])
MANY = np.concatenate([np.random.default_rng(0).standard_normal((12, 8)), np.eye(8), -np.eye(8)])
ACUTE = np.concatenate([SLABS, SLABS[6:] + 1e-8 * np.random.default_rng(0).standard_normal((2, 3))])
ACUTE_RIGHT = np.append(SLABS_RIGHT, SLABS_RIGHT[6:])
GRAPH = np.array([[0, 1], [0, 2], [1, 2], [1, 3], [2, 3], [2, 4], [3, 4], [4, 5]])
PAIRS = np.array([0, 0, 1, 1])
FIXED = {"exact": False, "scales": False}

CASES = [
    Case("box", lambda s: domain("box", (5,), -s, 2 * s)),
    Case("box-scalar", lambda s: domain("box", (), s, 3 * s)),
    Case("box-arrays", lambda s: domain("box", (4,), s * LO, s * HI)),
    Case("box-matrix", lambda s: domain("box", (2, 3), np.zeros(3), s * np.arange(1.0, 4.0))),
    Case("ball", lambda s: domain("ball", (4,), 2 * s)),
    Case("ball-matrix", lambda s: domain("ball", (2, 3), 0.5 * s)),
    Case("l1_ball", lambda s: domain("l1_ball", (5,), 2 * s)),
    Case("l1_ball-matrix", lambda s: domain("l1_ball", (2, 2), s)),
    Case("nonneg_ball", lambda s: domain("nonneg_ball", (4,), s)),
    Case("nonneg_ball-odd", lambda s: domain("nonneg_ball", (5,), 3 * s)),
    Case("group_ball", lambda s: domain("group_ball", (6,), 2 * s, np.array([0, 2, 0, 1, 1, 2]))),
    Case("budget", lambda s: domain("budget", (5,), 0, 2 * s, 5 * s)),
    Case(
        "budget-signed",
        lambda s: domain("budget", (4,), s * np.array([-1, 0, -2, 1]), s * np.array([3, 1, 5, 1.5]), 2 * s),
    ),
    Case(
        "budget-wide", lambda s: domain("budget", (12,), s * np.linspace(0, 1, 12), s * np.linspace(1, 4, 12), 15 * s)
    ),
    Case("budget-tight", lambda s: domain("budget", (3,), s * np.array([1, 1, 1]), s * np.array([1, 2, 3]), 6 * s)),
    Case("capped_simplex", lambda s: domain("capped_simplex", (9,), 0.4 * s, s)),
    Case("capped_simplex-arrays", lambda s: domain("capped_simplex", (2, 2), s * np.array([0.1, 0.9]), s)),
    Case("nuclear_ball", lambda s: domain("nuclear_ball", (3, 3), 2 * s)),
    Case("nuclear_ball-wide", lambda s: domain("nuclear_ball", (2, 4), s)),
    Case("nuclear_ball-tall", lambda s: domain("nuclear_ball", (4, 3), s)),
    Case("spectrahedron", lambda s: domain("spectrahedron", (3, 3), 2 * s)),
    Case("spectrahedron-two", lambda s: domain("spectrahedron", (2, 2), s)),
    Case("ellipsoid", lambda s: domain("ellipsoid", (4,), s * s * np.diag([1.0, 4.0, 0.25, 9.0]))),
    Case(
        "ellipsoid-tilted", lambda s: domain("ellipsoid", (3,), s * s * (TILT @ TILT.T), s * np.array([1.0, -2.0, 0.5]))
    ),
    Case("polytope", lambda s: domain("polytope", (3,), SLABS, s * SLABS_RIGHT), exact=False),
    Case(
        "polytope-shifted", lambda s: domain("polytope", (2,), TRIANGLE, s * np.array([9.0, -2.0, -3.0])), exact=False
    ),
    Case("polytope-flat", lambda s: domain("polytope", (3,), FLAT, s * FLAT_RIGHT), exact=False),
    Case(
        "polytope-point", lambda s: domain("polytope", (2,), POINT, s * np.array([1.0, -1.0, 2.0, -2.0])), exact=False
    ),
    Case("polytope-many", lambda s: domain("polytope", (8,), MANY, s * np.ones(28)), exact=False),
    Case("polytope-acute", lambda s: domain("polytope", (3,), ACUTE, s * ACUTE_RIGHT), exact=False),
    Case("birkhoff", lambda _: domain("birkhoff", (3, 3), 3), **FIXED),
    Case("birkhoff-one", lambda _: domain("birkhoff", (1, 1), 1), **FIXED),
    Case("birkhoff-seven", lambda _: domain("birkhoff", (7, 7), 7), **FIXED),
    Case("flow", lambda _: domain("flow", (8,), GRAPH, 0, 4), **FIXED),
    Case("flow-sparse", lambda _: SparseFlow((8,), FlowGraph.of(GRAPH, 0, 4)), **FIXED),
    Case("flow-one-path", lambda _: domain("flow", (2,), np.array([[0, 1], [1, 2]]), 0, 2), **FIXED),
    Case("simplex", lambda s: domain("simplex", (6,), s)),
    Case("simplex-matrix", lambda s: domain("simplex", (2, 3), 3 * s)),
    Case(
        "product", lambda s: product(domain("box", (2,), -s, s), domain("ball", (3,), 2 * s), domain("box", (), 0, s))
    ),
    Case("product-entropy", lambda s: product(domain("simplex", (3,), s), domain("simplex", (2,), 2 * s))),
    Case("shifted", lambda s: shifted_and_scaled(domain("l1_ball", (3,), 1), s * np.array([1.0, -2.0, 0.5]), 0.5 * s)),
    Case("scaled", lambda s: shifted_and_scaled(domain("simplex", (4,), 2), 0.0, 3 * s)),
    Case("cut-box", lambda s: cut(domain("box", (3,), 0, s), [[1, 1, 1]], 1.5 * s, [[1, -1, 0]], 0), exact=False),
    Case("box-sum-at-most", lambda s: cut(domain("box", (6,), 0, s), np.ones((1, 6)), 2.5 * s)),
    Case("box-row", lambda s: cut(domain("box", (5,), -s, 2 * s), [[1.0, -2.0, 0.5, 0.0, 3.0]], 1.5 * s)),
    Case("box-row-equal", lambda s: cut(domain("box", (5,), 0, s), E=[[1.0, 2.0, 0.5, 1.5, 3.0]], f=3 * s)),
    Case(
        "box-row-large",
        lambda s: cut(domain("box", (80,), -s, 2 * s), np.linspace(-1, 2, 80)[None], 3 * s),
    ),
    Case(
        "cut-simplex",
        lambda s: cut(domain("simplex", (4,), s), [[1, 1, 0, 0], [0, 0, 1, -1]], [0.4 * s, 0]),
        exact=False,
    ),
    Case(
        "cut-ball",
        lambda s: cut(domain("ball", (4,), 2 * s), [[1, 0, 0, 1]], s, [[1, 1, 1, 1]], 0.5 * s),
        exact=False,
    ),
    Case("cut-ball-cap", lambda s: cut(domain("ball", (3,), s), [[1, 2, 2]], -1.8 * s), exact=False),
    Case("cut-group", lambda s: cut(domain("group_ball", (4,), s, PAIRS), [[1, 0, 2, 0]], 0.3 * s), exact=False),
    Case("cut-spectrahedron", lambda s: cut(domain("spectrahedron", (2, 2), s), [[0, 1, 1, 0]], 0.2 * s), exact=False),
    Case(
        "cut-nuclear",
        lambda s: cut(domain("nuclear_ball", (2, 3), s), [[1, 0, 0, 0, 1, 0], [0, 0, 1, 0, 0, 0]], [0.3 * s, -0.1 * s]),
        exact=False,
    ),
    Case("simplex-one", lambda s: domain("simplex", (1,), s)),
]

SLOW = (
    *("cut-nuclear", "cut-group", "cut-ball-cap"),
    *(
        "cut-spectrahedron",
        "polytope-shifted",
        "polytope-flat",
        "box-row-equal",
        "capped_simplex-arrays",
        "birkhoff-one",
    ),
    *("nuclear_ball-wide", "ball-matrix", "l1_ball-matrix", "box-matrix", "spectrahedron-two", "ellipsoid-tilted"),
    *("polytope-many", "birkhoff-seven", "box-row-large", "budget-wide"),
)
"""Cuts of curved sets that are projected onto by the steps of `cut-ball`, in more time; larger sets of a kind, and other shapes of one."""
BRIEF = corners(CASES, [case for case in CASES if case.name not in SLOW])

BY_NAME = {case.name: case for case in CASES}


@cache
def made(name: str, scale: float) -> Domain:
    return BY_NAME[name].make(scale)


def points(d: Domain, rng: np.random.Generator, count: int = 6) -> np.ndarray:
    """Points around the set: far and near, inside, on the boundary, with ties and zeros; shape (count, *shape)."""
    reach = d.radius
    far = 4 * reach * rng.standard_normal((count, *d.shape))
    near = d.centre() + reach * rng.standard_normal((count, *d.shape))
    inside = d.sample(rng, count)
    outwards = rng.standard_normal((count // 3, *d.shape))
    boundary = np.stack([d.lmo_array(c) for c in outwards])
    ties = reach * np.round(rng.standard_normal((count // 3, *d.shape)))
    return np.concatenate([far, near, inside, boundary, ties, np.zeros((1, *d.shape))])
