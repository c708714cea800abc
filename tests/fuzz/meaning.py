"""The meaning of expressions in plain NumPy, written from grammar/language.md: an evaluator that shares nothing with the compiler's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np
from fuzz.nodes import Apply, Array, At, Literal, Node, Number, Part, Ref, Stack
from fuzz.typed import Index, Let, Param, Tree

from oco.dsl.expressions import Kind

Value = Any
EXTENDED = np.longdouble
"""Numbers in which the evaluator works: on x86 with 64 binary digits, so that its rounding does not count beside that of doubles."""


def _relative_entropy(x: Value, y: Value) -> Value:
    return x * np.log(np.where(x == 0, 1, x) / np.where(x == 0, 1, y))


def _along(f: Callable[..., Value]) -> Callable[..., Value]:
    return lambda x, axis=None: f(x, axis=axis)


def _singular(x: Value) -> Value:
    return np.linalg.svd(np.asarray(x, dtype=np.float64), compute_uv=False)


def _log_sum_exp(x: Value, axis: int | None = None) -> Value:
    top = np.max(x, axis=axis, keepdims=True)
    return np.log(np.sum(np.exp(x - top), axis=axis)) + np.max(x, axis=axis)


def _huber(x: Value, M: Value = 1) -> Value:
    return np.where(np.abs(x) <= M, x * x, 2 * M * np.abs(x) - M * M)


def _logistic(x: Value) -> Value:
    return np.logaddexp(0, x)


MEANING: dict[str, Callable[..., Value]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "mod": np.mod,
    "matmul": lambda a, b: a @ b,
    "minus": lambda a: -a,
    "pow": lambda a, b: np.power(a, b),
    "transpose": lambda a: np.transpose(a),
    "range": lambda a, b: np.arange(int(a), int(b) + 1),
    "abs": np.abs,
    "pos": lambda x: np.maximum(x, 0),
    "neg": lambda x: np.maximum(-x, 0),
    "square": lambda x: x * x,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "log1p": np.log1p,
    "logistic": _logistic,
    "huber": _huber,
    "entr": lambda x: -x * np.log(np.where(x == 0, 1, x)),
    "kl_div": lambda x, y: _relative_entropy(x, y) - x + y,
    "rel_entr": _relative_entropy,
    "inv_pos": lambda x: 1 / x,
    "power": lambda x, p: np.power(x, p),
    "hinge": lambda x: np.maximum(1 - x, 0),
    "maximum": lambda *xs: reduce(np.maximum, xs),
    "minimum": lambda *xs: reduce(np.minimum, xs),
    "sum": _along(np.sum),
    "mean": _along(np.mean),
    "max": _along(np.max),
    "min": _along(np.min),
    "norm1": lambda x, axis=None: np.sum(np.abs(x), axis=axis),
    "norm2": lambda x, axis=None: np.sqrt(np.sum(x * x, axis=axis)),
    "norm_inf": lambda x, axis=None: np.max(np.abs(x), axis=axis),
    "sum_squares": lambda x: np.sum(x * x),
    "log_sum_exp": _log_sum_exp,
    "quad_form": lambda x, P: x @ (P @ x),
    "dot": lambda a, b: np.sum(a * b),
    "outer": lambda a, b: np.outer(a, b),
    "trace": np.trace,
    "diag": np.diag,
    "nuclear_norm": lambda x: np.sum(_singular(x)),
    "sigma_max": lambda x: np.max(_singular(x)),
    "ones": lambda *shape: np.ones(tuple(map(int, shape))),
    "zeros": lambda *shape: np.zeros(tuple(map(int, shape))),
    "eye": lambda n: np.eye(int(n)),
    "repeat": lambda v, k: np.repeat(v, int(k)),
}
"""A function for each atom of the language. A new atom needs its line here, from its definition and not from the compiler's column."""


class Evaluator:
    """Values of the expressions of a tree, and how large the numbers were that they were made of."""

    def __init__(self, tree: Tree, dtype: Any = EXTENDED) -> None:
        self.dtype = dtype
        self.lets: Mapping[str, Node] = {s.name: s.value for s in tree.of(Let)}
        self.horizon = tree.horizon
        self.params: dict[str, Array] = {}
        for index in tree.of(Index):
            self.params[index.name] = np.asarray(len(index.labels))
        for p in tree.of(Param):
            self.params[p.name] = np.broadcast_to(p.given if p.value is None else self(p.value, {}), p.shape)
        self.largest = 0.0

    def __call__(self, node: Node, env: Mapping[str, Array], t: float = 1.0) -> Array:
        """The value where decisions and streams are `env`, in round t; `largest` is then the greatest number in its making."""
        self.largest = 0.0
        with np.errstate(all="ignore"):
            return np.asarray(self._value(node, env, t))

    def _value(self, node: Node, env: Mapping[str, Array], t: float) -> Value:
        found = np.asarray(self._node(node, env, t))
        if found.dtype.kind == "f":
            found = found.astype(self.dtype, copy=False)
        if found.size:
            self.largest = max(self.largest, float(np.max(np.abs(found))))
        return found

    def _node(self, node: Node, env: Mapping[str, Array], t: float) -> Value:
        match node:
            case Number(value=value) | Literal(value=value):
                return np.asarray(value) if np.asarray(value).dtype.kind == "i" else np.asarray(value, dtype=self.dtype)
            case Ref(kind=Kind.ROUND):
                return np.asarray(t, dtype=self.dtype)
            case Ref(kind=Kind.HORIZON):
                return np.asarray(self.horizon)
            case Ref(name=name, kind=Kind.LET):
                return self._value(self.lets[name], env, t)
            case Ref(name=name, kind=Kind.PARAM):
                return self.params[name]
            case Ref(name=name):
                return env[name] if name in env else env[name.removeprefix("prev(").removesuffix(")")]  # standing still
            case Apply(atom=atom, args=args, options=options):
                values = [self._value(a, env, t) for a in args]
                if atom in ("pow", "power"):
                    values[0] = np.asarray(values[0], dtype=self.dtype)
                return MEANING[atom](*values, **dict(options))
            case Stack(items=items):
                return np.stack([self._value(i, env, t) for i in items])
            case At(base=base, items=items):
                return self._value(base, env, t)[tuple(self._place(i, env, t) for i in items)]
        raise TypeError(type(node).__name__)

    def _place(self, item: Node | Part, env: Mapping[str, Array], t: float) -> Any:
        if isinstance(item, Part):
            return slice(item.start, item.stop)
        return np.asarray(self._value(item, env, t)).astype(int)
