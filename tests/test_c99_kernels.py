"""Kernels of the C backend: sorting, quantiles, systems and decompositions, against the interpreter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from ir_programs import FLOAT
from test_c99 import build, needs_compiler

from oco.compiler.ir.build import trace_program
from oco.compiler.ir.loop_groups import LEAST_TILED, LONG
from oco.compiler.ir.program import Field, Program, Type
from oco.compiler.ir.trace import Tracer


def kernels_program(factor: int = 1) -> Program:
    """Sorting, solving and decompositions of matrices, and what they should give back relative to their size."""
    t = Tracer("kernels")
    order = 5 * factor
    shapes = {
        "tall": (7 * factor, 4 * factor),
        "wide": (3 * factor, 6 * factor),
        "square": (order, order),
        "right": (order, 2),
        "keys": (11,),
    }

    def measure(now, x, seen):
        found = []
        for name in ("tall", "wide"):
            u, s, vt = t.svd(seen[name])
            k = min(shapes[name])
            found += [
                ((u * s) @ vt - seen[name]) / t.max(t.abs(seen[name])),
                u.T @ u - t.eye(k),
                vt @ vt.T - t.eye(k),
                t.minimum(s[:-1] - s[1:], 0.0),
            ]
        symmetric = seen["square"] + seen["square"].T
        w, v = t.eigh(symmetric)
        whole = ((v * w) @ v.T - symmetric) / t.max(t.abs(symmetric))
        found += [whole, v.T @ v - t.eye(order), t.minimum(w[1:] - w[:-1], 0.0)]
        found += [seen["square"] @ t.solve(seen["square"], seen["right"]) - seen["right"]] if factor == 1 else []
        found += [t.sort(seen["keys"]) - t.gather(seen["keys"], t.argsort(seen["keys"]))]
        worst = t.concat(*(t.reshape(t.max(t.abs(f)), (1,)) for f in found))
        return t.lift(0.0), worst, t.sort(seen["keys"])

    return trace_program(
        t,
        decision=[Field("x", Type(FLOAT, (2,)))],
        feedback=[Field(name, Type(FLOAT, shape)) for name, shape in shapes.items()],
        init=lambda start: {"x": start["x"]},
        decide=lambda state, drawn: {"x": state["x"]},
        update=lambda state, seen, drawn: {"x": state["x"]},
        measure=measure,
    )


@needs_compiler
def test_kernels(tmp_path):
    program = kernels_program()
    (native,) = build([program], tmp_path)
    rng = np.random.default_rng(0)
    for _ in range(20):
        args = [rng.normal(size=f.type.shape) for f in program.feedback]
        args[-1] = np.round(args[-1], 1)
        _, worst, ordered = native.measure(1, np.zeros(2), *args)
        assert worst.max() < 1e-12 and np.array_equal(ordered, np.sort(args[-1]))


def products_program(m: int, n: int, inner: int) -> Program:
    """Products of rows with rows: of two matrices, and of one with itself where columns or rows are left out, or columns weighted."""
    t = Tracer(f"products{m}_{n}_{inner}")
    shapes = {"a": (m, inner), "b": (n, inner), "columns": (inner,), "rows": (n, 1)}

    def measure(now, x, seen):
        a, b, columns, rows = seen.values()
        left = [
            t.where(columns > 0.0, b, 0.0),
            columns * b,
            t.where(rows > 0.0, b, 0.0),
            t.where(columns > 0.0, b, 1.0),
        ]
        return t.lift(0.0), a @ b.T, t.stack(*(c @ b.T for c in left))

    return trace_program(
        t,
        decision=[Field("x", Type(FLOAT, (2,)))],
        feedback=[Field(name, Type(FLOAT, shape)) for name, shape in shapes.items()],
        init=lambda start: {"x": start["x"]},
        decide=lambda state, drawn: {"x": state["x"]},
        update=lambda state, seen, drawn: {"x": state["x"]},
        measure=measure,
    )


def in_order(a, b):
    """Inner products of rows, each added up from its first term to its last one."""
    return np.cumsum(a[:, None] * b, axis=2)[:, :, -1]


@needs_compiler
def test_products_of_rows_add_up_their_terms_in_order(tmp_path):
    """In tiles of any width and height, to the bit; those of a matrix with itself below the diagonal, and above it as below."""
    least = LEAST_TILED
    shapes = [(least + i, least + k, LONG + i) for i, k in ((0, 0), (1, least), (2, 3), (7, 1), (19, 20))]
    rng = np.random.default_rng(3)
    for native, (m, n, inner) in zip(build([products_program(*shape) for shape in shapes], tmp_path), shapes):
        a, b = rng.normal(size=(m, inner)), rng.normal(size=(n, inner))
        columns, rows = rng.normal(size=inner), rng.normal(size=(n, 1))
        _, found, with_itself = native.measure(1, np.zeros(2), a, b, columns, rows)
        assert np.array_equal(found, in_order(a, b))
        expected = [
            in_order(c, b) for c in (b * (columns > 0), b * columns, b * (rows > 0), np.where(columns > 0, b, 1))
        ]
        expected[1] = np.tril(expected[1]) + np.tril(expected[1], -1).T
        for own, other in zip(with_itself, expected):
            assert np.array_equal(own, other)


HARD = {
    "any": lambda a: a,
    "equal": np.ones_like,
    "one entry": lambda a: np.where(np.arange(a.size).reshape(a.shape) == a.size // 2, 3.0, 0.0),
    "diagonal": lambda a: np.eye(*a.shape) * a,
    "low rank": lambda a: a[:, :2] @ a[:2],
    "ties": np.round,
    "graded rows": lambda a: a * np.logspace(0, -200, len(a))[:, None],
    "graded columns": lambda a: a * np.logspace(-30, 0, a.shape[1]),
    "blocks": lambda a: a * (np.arange(len(a)) < len(a) // 2)[:, None] * (np.arange(a.shape[1]) < a.shape[1] // 3),
    "second diagonal": lambda a: np.eye(*a.shape, 1),
}
"""Matrices that reductions and their steps can stumble over."""


@needs_compiler
def test_decompositions_of_hard_matrices(tmp_path):
    """Of many rows, too, so that strips and recorded sweeps fill; from 1e-150 to 1e150."""
    made = [kernels_program(factor) for factor in (1, 15)]
    programs = [replace(p, name=f"kernels{k}") for k, p in enumerate(made)]
    rng = np.random.default_rng(1)
    for native, program in zip(build(programs, tmp_path), programs):
        for name, change in HARD.items():
            for scale in (1.0, 1e-150, 1e150):
                args = [rng.normal(size=f.type.shape) for f in program.feedback]
                given = [a if a.ndim == 1 or a.shape[1] == 2 else scale * change(a) for a in args]
                worst = native.measure(1, np.zeros(2), *given)[1]
                solved = worst.size - 2
                kept = np.delete(worst, solved) if program is programs[0] else worst
                assert kept.max() < 2e-13, (name, scale)


@needs_compiler
def test_decompositions_of_what_is_not_finite_end(tmp_path):
    (native,) = build([kernels_program()], tmp_path)
    rng = np.random.default_rng(2)
    for bad in (np.nan, np.inf):
        args = [rng.normal(size=f.type.shape) for f in kernels_program().feedback]
        for a in args[:3]:
            a[1, 1] = bad
        assert np.isnan(native.measure(1, np.zeros(2), *args)[1][:9]).any()
