"""Calls of every atom on arguments of ordinary shapes and ranges, and drawing of points in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import pytest

from oco.dsl.build import call
from oco.dsl.expressions import Call, Expr, Kind, Name, constant

Box = tuple[float, float]
ANY, ABOVE, BELOW, UNIT = (-2.0, 3.0), (0.25, 3.0), (-3.0, -0.25), (0.0, 1.0)
NUMBER, VECTOR, MATRIX, SQUARE = (), (3,), (2, 3), (3, 3)
FIXED = np.array([[2.0, -0.5, 0.25], [-0.5, 1.5, 0.0], [0.25, 0.0, 1.0]])


@dataclass(frozen=True)
class Case:
    """An atom over names a0, a1, ... of these shapes and ranges; entries of `args` that are numbers or arrays stay fixed."""

    atom: str
    args: tuple[tuple[tuple[int, ...], Box] | float | np.ndarray, ...]
    options: dict[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        parts = [f"{a[0]}in{a[1]}" if isinstance(a, tuple) else "fixed" for a in self.args]
        return f"{self.atom}-{'-'.join(parts)}{self.options or ''}"

    @property
    def boxes(self) -> dict[str, tuple[tuple[int, ...], Box]]:
        return {f"a{i}": a for i, a in enumerate(self.args) if isinstance(a, tuple)}

    def call(self) -> Call:
        return call(self.atom, *self.arguments(), **self.options)

    def arguments(self) -> list[Expr]:
        return [
            Name(f"a{i}", Kind.DECISION, shape=a[0]) if isinstance(a, tuple) else constant(a)
            for i, a in enumerate(self.args)
        ]

    def draw(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        return {name: rng.uniform(*box, size=shape) for name, (shape, box) in self.boxes.items()}


def each_case(cases: Iterable[Case]) -> Callable[[Callable[[Case], None]], Any]:
    """Decorator of the test of a case: a test for each atom goes through the atom's cases, and a failure names its case."""
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(case.atom, []).append(case)

    def decorated(test: Callable[[Case], None]) -> Any:
        def over_cases(atom: str) -> None:
            for case in groups[atom]:
                try:
                    test(case)
                except BaseException as error:
                    error.add_note(f"case {case.name}")
                    raise

        for name in ("__name__", "__qualname__", "__module__", "__doc__"):
            setattr(over_cases, name, getattr(test, name))
        return pytest.mark.parametrize("atom", groups)(over_cases)

    return decorated


def _unary(names: str, *boxes: Box) -> list[Case]:
    return [Case(n, ((s, b),)) for n in names.split() for b in boxes for s in (NUMBER, VECTOR, MATRIX)]


def _binary(names: str, *boxes: tuple[Box, Box]) -> list[Case]:
    shapes = ((VECTOR, VECTOR), (NUMBER, MATRIX), (MATRIX, VECTOR))
    return [Case(n, ((s, a), (r, b))) for n in names.split() for (a, b) in boxes for s, r in shapes]


def _powers() -> list[Case]:
    everywhere = [(ANY, p) for p in (0.0, 1.0, 2.0, 3.0, 4.0)] + [(BELOW, p) for p in (2.0, 3.0, -1.0, -2.0)]
    positive = [(ABOVE, p) for p in (-1.0, -2.0, -0.5, 0.5, 1.5, 2.0, 3.0, 2.7)] + [(UNIT, 0.5), (UNIT, 1.5)]
    return [Case(n, ((VECTOR, box), p)) for n in ("pow", "power") for box, p in everywhere + positive]


def _reductions() -> list[Case]:
    names = ["sum", "mean", "max", "min", "norm1", "norm2", "norm_inf", "log_sum_exp"]
    along = [Case(n, ((MATRIX, box),), {"axis": k}) for n in names for k in (0, 1) for box in (ANY, ABOVE, BELOW)]
    return along + _unary(" ".join(names) + " sum_squares", ANY, ABOVE, BELOW)


def _matrices() -> list[Case]:
    signs = list(product((ANY, ABOVE, BELOW), repeat=2))
    return [
        *(
            Case("matmul", ((s, a), (r, b)))
            for a, b in signs
            for s, r in [(VECTOR, VECTOR), (MATRIX, VECTOR), (MATRIX, SQUARE)]
        ),
        *(Case("matmul", ((VECTOR, a), (SQUARE, b))) for a, b in signs),
        *(Case(n, ((VECTOR, a), (VECTOR, b))) for n in ("dot", "outer") for a, b in signs),
        *(
            Case("quad_form", ((VECTOR, a), p))
            for a in (ANY, ABOVE, BELOW)
            for p in (FIXED, -FIXED, np.abs(FIXED), FIXED - np.eye(3))
        ),
        Case("quad_form", (np.ones(3), (SQUARE, ANY))),
        *(Case("trace", ((SQUARE, a),)) for a in (ANY, ABOVE)),
        *(Case("diag", ((s, ANY),)) for s in (VECTOR, SQUARE)),
        *(Case(n, ((s, a),)) for n in ("nuclear_norm", "sigma_max") for s in (MATRIX, SQUARE) for a in (ANY, ABOVE)),
        *(Case("transpose", ((s, ANY),)) for s in (VECTOR, MATRIX)),
    ]


CASES: list[Case] = [
    *_binary("add sub mul maximum minimum", (ANY, ANY), (ABOVE, ANY), (BELOW, ABOVE)),
    *_binary("div", *product((ANY, ABOVE, BELOW), (ABOVE, BELOW))),
    *_unary("minus abs pos neg square exp logistic hinge huber", ANY, ABOVE, BELOW),
    *_unary("sqrt entr", UNIT, ABOVE),
    *_unary("log inv_pos", ABOVE),
    *_unary("log1p", UNIT, (-0.75, 2.0)),
    *_binary("kl_div rel_entr", (UNIT, ABOVE), ((0.1, 0.2), ABOVE), (ABOVE, (0.1, 0.2))),
    *(Case("huber", ((VECTOR, box), 0.5)) for box in (ANY, ABOVE, BELOW)),
    Case("maximum", ((VECTOR, ANY), (NUMBER, ANY), 0.5)),
    Case("minimum", ((VECTOR, ANY), (NUMBER, ANY), 0.5)),
    *_powers(),
    Case("pow", (2.0, (VECTOR, ANY))),
    Case("pow", (0.5, (VECTOR, ANY))),
    *_reductions(),
    *_matrices(),
    *(Case("repeat", ((s, ANY), 2)) for s in (NUMBER, VECTOR)),
]

FIXED_CASES: list[Case] = [
    Case("range", (2, 6)),
    Case("ones", (2, 3)),
    Case("zeros", (4,)),
    Case("eye", (3,)),
    Case("mod", (7, 3)),
]
