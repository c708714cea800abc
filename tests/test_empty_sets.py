"""Sets that are empty by little are refused, thin ones are kept, and decisions lie in them: against rational arithmetic."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from thorough import corners, one_in, thorough

import oco
from oco.compiler.domains import Domain, cut, domain
from oco.dsl.diagnostics import OcoError
from tests.exact_lp import exact, least_violation, violation

MODEL = """model m
horizon T = 200
decision x[{shape}] in {domain}
stream a[{shape}] in [-1, 1]
minimize sum(a * x)
"""

EMPTY = {
    "box(0, 1) with sum(x) <= -1e-7": "4",
    "box(0, 1) with sum(x) <= -1e-12": "4",
    "box(0, 1) with sum(x) <= -1e-300": "4",
    "box(0, 1) with sum(x) == -1e-9": "100",
    "box(0.89, 1.4) with [1.0, 0.0, 0.5, 1.0] @ x <= 2.22499999": "4",
    "simplex() with sum(x) == 1.000000001": "4",
    "capped_simplex(0.5) with x[0] >= 0.50000001": "4",
    "budget(0, 1, 2) with x[0] + x[1] >= 2.00000001": "4",
    "l1_ball(1) with sum(x) >= 1.0000001": "4",
    "polytope([[1, 1], [-1, 0], [0, -1]], [1, 0, 0]) with sum(x) >= 1.00000001": "2",
    "birkhoff(3) with x[0, 0] >= 1.00000001": "3, 3",
    "ball(1) with x[0] == 0.5, x[0] <= 0.49999999": "4",
    "ball(1) with x[0] == 0.5, x[0] == 0.50000001": "4",
    "nonneg_ball(1) with sum(x) <= -1e-8": "4",
    "group_ball(1, [0, 0, 1, 1]) with x[0] >= 1.00000001": "4",
    "nuclear_ball(1) with x[0, 0] >= 1.00000001": "3, 3",
    "spectrahedron(1) with trace(x) <= 0.99999999": "3, 3",
    "spectrahedron(1) with trace(x) == 1.000000000001": "3, 3",
    "ellipsoid([[1, 0], [0, 4]]) with x[0] == 0.5, 2 * x[0] == 1.00000001": "2",
}

SCALES = 10.0 ** np.arange(-6, 7, 3)

ROUNDED = 1e-13
"""Sizes of the base by which a set may be empty and still count as rounded data."""


def bases(s: float) -> dict[str, Domain]:
    return {
        "box": domain("box", (3,), -s, [s, 2 * s, 3 * s]),
        "simplex": domain("simplex", (4,), s),
        "capped_simplex": domain("capped_simplex", (4,), s / 2, s),
        "budget": domain("budget", (3,), -s, s, s),
        "l1_ball": domain("l1_ball", (3,), s),
        "polytope": domain("polytope", (2,), np.array([[1, 1], [-1, 0], [0, -1], [1, -2]]), np.array([s, 0, 0, s / 2])),
        "off": domain("box", (3,), 100 * s, 101 * s),
    }


def near_empty(base: Domain, s: float, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """A row at the least value it has over the base, moved by a share of the size of either sign or by none, and maybe a second."""
    n = base.size
    A = np.round(4 * rng.standard_normal((2, n))) / 4
    A[~A.any(axis=1), 0] = 1.0
    moved = rng.choice([-1.0, 0.0, 1.0]) * 10.0 ** -rng.integers(1, 13)
    b = np.array([-base.support(-A[0].reshape(base.shape)) + moved * s, base.support(A[1].reshape(base.shape))])
    none = np.zeros((0, n)), np.zeros(0)
    if rng.random() < 0.3:
        return A[1:], b[1:], A[:1], b[:1]
    return A, b, *none


@pytest.mark.parametrize("written", EMPTY)
def test_sets_that_are_empty_by_little_are_refused_where_they_stand(written: str) -> None:
    with pytest.raises(OcoError) as caught:
        oco.compile(oco.parse(MODEL.format(shape=EMPTY[written], domain=written)))
    [diagnostic] = caught.value.diagnostics
    assert diagnostic.code == "OCO410" and diagnostic.hint
    assert diagnostic.span is not None and diagnostic.span.line == 3


BY_TURNS = [(kind, SCALES[[0, -1][k % 2]]) for k, kind in enumerate(bases(1.0))]


@pytest.mark.parametrize(("kind", "s"), corners(product(bases(1.0), SCALES), BY_TURNS))
def test_emptiness_is_that_of_rational_arithmetic(kind: str, s: float) -> None:
    base, rng, kept, refused = bases(s)[kind], np.random.default_rng([round(np.log10(s)) + 6, len(kind)]), 0, 0
    sides = base.halfspaces()
    assert sides is not None
    size = float(np.max(np.abs([base.lower, base.upper])))
    for _ in range(8):
        A, b, E, f = near_empty(base, s, rng)
        broken = float(least_violation(sides, A, b, E, f)) / size
        try:
            d = cut(base, A, b, E, f)
        except OcoError as error:
            assert error.code == "OCO410" and broken > 0, (A, b, E, f)
            refused += 1
            continue
        assert broken <= ROUNDED, (A, b, E, f)
        kept += 1
        C, r = (
            np.concatenate([sides.A, A, sides.E, -sides.E, E, -E]),
            np.concatenate([sides.b, b, sides.f, -sides.f, f, -f]),
        )
        width = max(float(np.max(d.upper - d.lower)), ROUNDED * size)
        for v in rng.standard_normal((3, *base.shape)):
            for x in (d.centre(), d.project_array(5 * s * v), d.lmo_array(v)):
                over = max(p / sum(map(abs, exact(row))) for p, row in zip(violation(C, r, x), C))
                assert over <= Fraction(1e-9 * width) + Fraction(1e-15 * size)
    assert kept and refused


@pytest.mark.parametrize("s", one_in(2, SCALES))
def test_thin_sets_are_kept(s: float) -> None:
    one, eye, first = np.ones((1, 4)), np.eye(4), np.eye(9)[:1]
    trace = np.eye(3).reshape(1, 9)
    none = np.zeros((0, 4)), np.zeros(0)
    made = {
        "a point": (cut(domain("box", (4,), 0.0, s), one, 0.0), 0),
        "a corner": (cut(domain("simplex", (4,), s), -eye[:1], -s), 0),
        "a face": (cut(domain("simplex", (4,), s), eye[:1], 0.0), 2),
        "a facet": (cut(domain("l1_ball", (4,), s), -one, -s), 3),
        "the set": (cut(domain("simplex", (4,), s), E=one, f=s), 3),
        "rounded": (cut(domain("box", (4,), 0.0, s), *none, np.array([eye[0], 3 * eye[0]]), [0.1 * s, 0.3 * s]), 3),
        "a disc": (cut(domain("ball", (4,), s), eye[:1], 0.5 * s, eye[:1], 0.5 * s), 3),
        "twice": (cut(domain("ball", (4,), s), E=np.array([eye[0], 3 * eye[0]]), f=[0.1 * s, 0.3 * s]), 3),
        "its trace": (cut(domain("spectrahedron", (3, 3), s), trace, s), 5),
        "an entry": (cut(domain("spectrahedron", (3, 3), s), first, 0.5 * s, first, 0.5 * s), 4),
    }
    for name, (d, dimension) in made.items():
        assert d.dimension == dimension and d.violation(d.centre()) <= 1e-9, name


PLAYED = {
    "box({s}, 2 * {s}) with [1.0, 0.0, 0.5, 1.0] @ x <= 2.50001 * {s}": "4",
    "box(-{s}, {s}) with sum(x) == 0.5 * {s}, x[0] <= -0.999999 * {s}": "4",
    "simplex({s}) with x[0] <= 1e-6 * {s}": "4",
    "l1_ball({s}) with sum(x) >= {s}": "4",
    "ball({s}) with x[0] == 0.1 * {s}, 3 * x[0] == 0.3 * {s}": "4",
    "spectrahedron({s}) with trace(x) <= {s}": "3, 3",
}


@pytest.mark.parametrize("s", [thorough("1e-6"), "1", thorough("1e6")])
@pytest.mark.parametrize("rounds", [30, thorough(200)])
@pytest.mark.parametrize("written", PLAYED)
def test_decisions_lie_in_thin_sets(written: str, rounds: int, s: str) -> None:
    backends = ["numpy", "c"] if s == "1" else ["numpy"]
    plan = oco.compile(oco.parse(MODEL.format(shape=PLAYED[written], domain=written.format(s=s))))
    d = plan.canonical.blocks[0].domain
    rows = d.halfspaces() or d.rows_added
    C, r = np.concatenate([rows.A, rows.E, -rows.E]), np.concatenate([rows.b, rows.f, -rows.f])
    width, lengths = float(np.max(d.upper - d.lower)), np.linalg.norm(C, axis=1)
    for backend in backends:
        learner, rng = plan.learner(backend=backend), np.random.default_rng(7)
        for _ in range(rounds):
            x = learner.decide()
            over = np.array([float(v) for v in violation(C, r, x)]) / lengths
            assert np.max(over) <= 1e-9 * width and d.contains(x, 1e-9)
            learner.observe(a=rng.choice([-1.0, 1.0], d.shape))
