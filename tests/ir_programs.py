"""Programs of the step IR for tests: one case for each operation, and random ones."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from oco.backends.python.constants import array_source
from oco.backends.python.functions import function_lines
from oco.backends.python.helpers import HELPERS
from oco.compiler.ir.build import Named, trace_program
from oco.compiler.ir.ops import OPS
from oco.compiler.ir.program import DType, Field, Function, Program, Type
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.dsl.diagnostics import InternalError

FLOAT, INT, BOOL = DType.FLOAT, DType.INT, DType.BOOL


@dataclass(frozen=True)
class Case:
    """An operation on given arguments, and the result worked out by hand."""

    op: str
    args: tuple[Any, ...]
    expected: Any
    attrs: dict[str, Any] = field(default_factory=dict)


TIED = [float(13 * i % 37 // 2) for i in range(75)]
"""With ties, and more entries than four runs that the C kernel sorts by insertion."""


def floats(*entries: Any) -> np.ndarray:
    return np.array(entries, dtype=np.float64)


def ints(*entries: Any) -> np.ndarray:
    return np.array(entries, dtype=np.int64)


def bools(*entries: Any) -> np.ndarray:
    return np.array(entries, dtype=np.bool_)


inf, nan = np.inf, np.nan
_MATRIX = floats([1, 2, 3], [4, 5, 6])
_LONG = 13.0 * np.arange(5000) % 4999
"""More entries than a kernel sorts."""
_E = 2.718281828459045


def _reached(keys: np.ndarray, weights: np.ndarray, amount: float) -> float:
    return next(k for k in sorted(keys) if weights[keys <= k].sum() >= amount)


CASES = (
    Case("neg", (floats(1, -2, 0),), floats(-1, 2, -0.0)),
    Case("neg", (ints(1, -2),), ints(-1, 2)),
    Case("abs", (floats(-1.5, 2),), floats(1.5, 2)),
    Case("sqrt", (floats(4, 2, -1),), floats(2, 1.4142135623730951, nan)),
    Case("exp", (floats(0, 1, -inf),), floats(1, _E, 0)),
    Case("log", (floats(1, _E, 0),), floats(0, 1, -inf)),
    Case("log1p", (floats(0, 1e-20),), floats(0, 1e-20)),
    Case("expm1", (floats(0, 1e-20),), floats(0, 1e-20)),
    Case("sign", (floats(-3, 0, 7),), floats(-1, 0, 1)),
    Case("floor", (floats(-1.5, 1.5),), floats(-2, 1)),
    Case("not", (bools(True, False),), bools(False, True)),
    Case("isfinite", (floats(1, inf, nan),), bools(True, False, False)),
    Case("to_float", (ints(1, -2),), floats(1, -2)),
    Case("to_float", (bools(True, False),), floats(1, 0)),
    Case("to_int", (floats(1.9, -1.9),), ints(1, -1)),
    Case("add", (floats([1], [2]), floats(10, 20)), floats([11, 21], [12, 22])),
    Case("sub", (floats(1, 2), np.float64(3)), floats(-2, -1)),
    Case("mul", (ints(2, 3), ints(4, 5)), ints(8, 15)),
    Case("div", (floats(1, -1, 0), floats(0, 0, 0)), floats(inf, -inf, nan)),
    Case("pow", (floats(2, 9), floats(3, 0.5)), floats(8, 3)),
    Case("mod", (ints(7, -7), np.int64(3)), ints(1, 2)),
    Case("mod", (floats(7.5, -7.5), np.float64(2)), floats(1.5, 0.5)),
    Case("maximum", (floats(1, nan), floats(2, 0)), floats(2, nan)),
    Case("minimum", (floats(1, nan), floats(2, 0)), floats(1, nan)),
    Case("lt", (floats(1, 2, nan), floats(2, 2, 2)), bools(True, False, False)),
    Case("le", (floats(1, 2, nan), floats(2, 2, 2)), bools(True, True, False)),
    Case("eq", (ints(1, 2), ints(1, 3)), bools(True, False)),
    Case("and", (bools(True, True), bools(True, False)), bools(True, False)),
    Case("or", (bools(False, True), bools(False, False)), bools(False, True)),
    Case("where", (bools(True, False), floats(1, 2), np.float64(9)), floats(1, 9)),
    Case("sum", (_MATRIX,), np.float64(21), {"axis": None}),
    Case("sum", (_MATRIX,), floats(5, 7, 9), {"axis": 0}),
    Case("max", (_MATRIX,), floats(3, 6), {"axis": 1}),
    Case("min", (_MATRIX,), np.float64(1), {"axis": None}),
    Case("prod", (ints(2, 3, 4),), np.int64(24), {"axis": None}),
    Case("any", (bools([False, True], [False, False]),), bools(True, False), {"axis": 1}),
    Case("all", (bools(True, False),), np.bool_(False), {"axis": None}),
    Case("argmax", (floats(1, 3, 3),), np.int64(1)),
    Case("argmin", (floats([4, 1], [1, 9]),), np.int64(1)),
    Case("cumsum", (floats(1, 2, 3),), floats(1, 3, 6)),
    Case("matmul", (_MATRIX, floats(1, 0, -1)), floats(-2, -2)),
    Case("matmul", (floats(1, 1), _MATRIX), floats(5, 7, 9)),
    Case("outer", (floats(1, 2), floats(3, 4)), floats([3, 4], [6, 8])),
    Case("transpose", (_MATRIX,), floats([1, 4], [2, 5], [3, 6])),
    Case("reshape", (_MATRIX,), floats(1, 2, 3, 4, 5, 6), {"shape": (6,)}),
    Case("reshape", (np.float64(3),), floats(3), {"shape": (1,)}),
    Case("reshape", (floats(3),), np.float64(3), {"shape": ()}),
    Case("broadcast", (floats(1, 2),), floats([1, 2], [1, 2]), {"shape": (2, 2)}),
    Case("concat", (floats(1), floats(2, 3)), floats(1, 2, 3), {"axis": 0}),
    Case("concat", (floats([1], [2]), floats([3], [4])), floats([1, 3], [2, 4]), {"axis": 1}),
    Case("stack", (floats(1, 2), floats(3, 4)), floats([1, 2], [3, 4])),
    Case("stack", (np.float64(1), np.float64(2)), floats(1, 2)),
    Case("slice", (_MATRIX,), floats([2, 3]), {"starts": (0, 1), "stops": (1, 3)}),
    Case("gather", (floats(5, 6, 7), ints(2, 0, 2)), floats(7, 5, 7)),
    Case("gather", (_MATRIX, ints(0, 1), ints(2, 0)), floats(3, 4)),
    Case("gather", (_MATRIX, np.int64(1)), floats(4, 5, 6)),
    Case("entries", (ints([7]),), np.int64(7)),
    Case("entries", (_MATRIX[:, 1:],), (2.0, 3.0, 5.0, 6.0)),
    Case("scatter_add", (floats(1, 2, 4), ints(1, 0, 1)), floats(2, 5, 0), {"shape": (3,)}),
    Case("scatter_add", (floats(1, 2), ints(0, 1), ints(1, 1)), floats([0, 1], [0, 2]), {"shape": (2, 2)}),
    Case("put", (floats(1, 2, 3), np.float64(9), np.int64(1)), floats(1, 9, 3)),
    Case("put", (_MATRIX, floats(7, 8), ints(0, 1), ints(0, 2)), floats([7, 2, 3], [4, 5, 8])),
    Case("full", (np.float64(2.5),), floats(2.5, 2.5), {"shape": (2,)}),
    Case("full", (np.int64(0),), ints(0, 0), {"shape": (2,)}),
    Case("iota", (), ints(0, 1, 2), {"n": 3}),
    Case("eye", (), floats([1, 0], [0, 1]), {"n": 2}),
    Case("diag", (floats(1, 2),), floats([1, 0], [0, 2])),
    Case("diag", (floats([1, 2], [3, 4]),), floats(1, 4)),
    Case("sort", (floats(3, 1, 2),), floats(1, 2, 3)),
    Case("argsort", (floats(3, 1, 1),), ints(1, 2, 0)),
    Case("argsort", (floats(*TIED),), ints(*sorted(range(len(TIED)), key=TIED.__getitem__))),
    Case("weighted_quantile", (floats(3, 1, 2, 1), floats(1, 2, 4, 3), np.float64(9)), np.float64(2)),
    Case("weighted_quantile", (floats(3, nan, 2), floats(1, 2, 4), np.float64(6)), np.float64(inf)),
    Case("weighted_quantile", (floats(*range(9, 0, -1)) ** 3, np.ones(9), np.float64(0)), np.float64(1)),
    Case(
        "weighted_quantile",
        (_LONG % 701, 1 + _LONG % 3, np.float64(1000)),
        np.float64(_reached(_LONG % 701, 1 + _LONG % 3, 1000)),
    ),
    Case("solve", (floats([2, 0], [0, 4]), floats(2, 2)), floats(1, 0.5)),
    Case("svd", (floats([3, 0], [0, 0]),), floats(3, 0)),
    Case("eigh", (floats([1, 0], [0, -2]),), floats(-2, 1)),
)


def type_of(array: Any) -> Type:
    found = np.asarray(array)
    return Type({"f": FLOAT, "i": INT, "b": BOOL}[found.dtype.kind], found.shape)


def as_python(t: Tracer, function: Function) -> Callable[..., Any]:
    """The emitted Python of a traced function, with the functions and constants that it uses."""
    lines = ["import math", "import numpy as np"]
    for g in t.constants:
        lines.append(f"{g.var.name} = {array_source(g.value)}")
    for f in (*t.functions, function):
        lines += ["", *function_lines(f)]
    namespace: dict[str, Any] = {helper.__name__: helper for helper in HELPERS}
    exec("\n".join(lines), namespace)
    found: Callable[..., Any] = namespace[function.name]
    return found


def same_bits(a: Any, b: Any) -> bool:
    """Equal kind, shape and entries, -0.0 unlike 0.0 and one NaN like another."""
    x, y = np.asarray(a), np.asarray(b)
    if x.shape != y.shape or x.dtype.kind != y.dtype.kind:
        return False
    if x.dtype.kind != "f":
        return bool((x == y).all())
    return bool(np.all((np.isnan(x) & np.isnan(y)) | ((x == y) & (np.signbit(x) == np.signbit(y)))))


# Random programs.

_TYPES = [
    Type(FLOAT),
    Type(FLOAT, (3,)),
    Type(FLOAT, (2, 3)),
    Type(FLOAT, (3, 3)),
    Type(INT),
    Type(INT, (3,)),
    Type(BOOL),
    Type(BOOL, (3,)),
]
_SHAPES = [(), (1,), (3,), (2, 3), (3, 2), (3, 3), (6,), (1, 3)]
_RARELY_DEFINED = {"solve", "svd", "eigh", "put", "gather", "scatter_add", "to_int", "mod", "prod", "weighted_quantile"}
_EITHER_ZERO = {"maximum", "minimum", "max", "min", "sort"}
_NUMBERS = [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 3.25, 1e-3, inf]


def random_program(seed: int) -> tuple[Tracer, Function, list[np.ndarray]]:
    """A tracer, a function traced with it, and arguments for it."""
    rng = random.Random(seed)
    t = Tracer("random")
    types = rng.choices(_TYPES, k=rng.randint(2, 5))
    garden = _Garden(t, rng)
    function = t.function("f", lambda *vs: garden.grown(list(vs), 2), [(f"a{k}", made) for k, made in enumerate(types)])
    return t, function, [_array(rng, made) for made in types]


def random_learner(seed: int) -> tuple[Program, list[np.ndarray]]:
    """A whole program whose `measure` gives every result of random equations, and arguments for `measure`."""
    rng = random.Random(seed)
    t = Tracer("random")
    types = rng.choices(_TYPES, k=rng.randint(1, 4))
    garden = _Garden(t, rng)

    def measure(now: Value, x: Named, seen: Named) -> tuple[Value, Value, Value]:
        found = garden.grown([now, x["x"], *seen.values()], 2)
        return t.lift(0.0), t.concat(*(t.reshape(t.to_float(v), (v.size,)) for v in found)), t.zeros((0,))

    program = trace_program(
        t,
        decision=[Field("x", Type(FLOAT, (3,)))],
        feedback=[Field(f"a{k}", made) for k, made in enumerate(types)],
        init=lambda start: {"x": start["x"]},
        decide=lambda state, drawn: {"x": state["x"]},
        update=lambda state, seen, drawn: {"x": state["x"] + 1.0},
        measure=measure,
    )
    return program, [np.array(seed), _array(rng, Type(FLOAT, (3,))), *(_array(rng, made) for made in types)]


def _array(rng: random.Random, made: Type) -> np.ndarray:
    entry = {
        FLOAT: lambda: rng.choice(_NUMBERS) if rng.random() < 0.4 else rng.uniform(-10, 10),
        INT: lambda: rng.randint(0, 2),
        BOOL: lambda: rng.random() < 0.5,
    }[made.dtype]
    kind = {FLOAT: np.float64, INT: np.int64, BOOL: np.bool_}[made.dtype]
    return np.array([entry() for _ in range(int(np.prod(made.shape)))], dtype=kind).reshape(made.shape)


@dataclass
class _Garden:
    """Grows equations over a pool of values."""

    t: Tracer
    rng: random.Random

    def grown(self, pool: list[Value], depth: int) -> list[Value]:
        """Some equations; the results are the last values and one more."""
        for _ in range(self.rng.randint(2, 10)):
            if depth and self.rng.random() < 0.2:
                pool += self.control(pool, depth - 1)
            elif (made := self.one(pool)) is not None:
                pool.append(made)
        return [*(pool * 3)[-3:], self.rng.choice(pool)]

    def argument(self, pool: Sequence[Value]) -> Any:
        kind = self.rng.random()
        if kind < 0.75:
            return self.rng.choice(pool)
        return self.rng.choice(_NUMBERS) if kind < 0.9 else self.rng.randint(0, 3)

    def one(self, pool: Sequence[Value]) -> Value | None:
        """One equation, if the drawn operation accepts the drawn arguments."""
        name = self.rng.choice(sorted(OPS.keys() - _RARELY_DEFINED))
        row = OPS[name]
        least, most = row.arity
        args = [self.argument(pool) for _ in range(least if most is not None else self.rng.randint(least, 3))]
        shape = self.t.lift(args[0]).shape if args else ()
        try:
            made, *_ = self.t.apply(name, *args, **self.attributes(name, shape))
        except InternalError:
            return None
        if name in _EITHER_ZERO and made.type.dtype is FLOAT:
            made = made + 0.0  # of 0.0 and -0.0 they may give either: NumPy the second, Python and C the first
        return self.t.name(self.rng.choice(["v", "v", "x", "lambda", "np", "Q"]), made)

    def attributes(self, name: str, shape: tuple[int, ...]) -> dict[str, Any]:
        starts = tuple(self.rng.randint(0, n) for n in shape)
        drawn = {
            "axis": self.rng.randint(0, 1) if name == "concat" else self.rng.choice([None, *range(len(shape))]),
            "shape": self.rng.choice(_SHAPES),
            "n": 3,
            "starts": starts,
            "stops": tuple(self.rng.randint(a, n) for a, n in zip(starts, shape)),
        }
        return {key: drawn[key] for key in OPS[name].attrs}

    def control(self, pool: list[Value], depth: int) -> list[Value]:
        """A branch, a loop or a call; loops add to a running total, so that they end and keep their types."""
        t, kind = self.t, self.rng.choice(["if", "for", "while", "call"])
        if kind == "call":
            given = self.rng.choices(pool, k=self.rng.randint(1, 3))
            return list(t.call("helper", lambda *vs: self.grown(list(vs), 0), *given))
        kept = self.rng.choice(pool)
        if kind == "if":
            condition = self.total(self.rng.choice(pool)) < self.rng.choice(_NUMBERS)
            return list(
                t.if_(condition, lambda: self.branch(pool, kept, depth), lambda: self.branch(pool, kept, depth))
            )

        def body(i: Value, total: Value, kept: Value) -> tuple[Value, Value]:
            inner = self.grown([*pool, i, total], depth)
            return total + self.total(inner[0]) * 0.5, kept

        if kind == "for":
            return list(t.for_(self.rng.randint(0, 3), body, (self.rng.choice([0.0, 1.5]), kept)))
        return list(
            t.while_(
                lambda i, total, kept: i < 3, lambda i, total, kept: (i + 1, *body(i, total, kept)), (0, 1.0, kept)
            )
        )

    def branch(self, pool: list[Value], kept: Value, depth: int) -> list[Value]:
        return [*(self.total(v) for v in self.grown(list(pool), depth)), kept]

    def total(self, value: Value) -> Value:
        return self.t.sum(self.t.to_float(value))
