"""Array primitives: their names and their meaning in NumPy. Atoms are written over them, and the step IR is made of
them.

An interpretation (evaluation here, tracing and intervals elsewhere) is an object with a method for each primitive.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Values = Any


def _gather(x: Values, *indices: Values) -> Values:
    return x[tuple(np.asarray(i) for i in indices)]


def _scatter_add(values: Values, *indices: Values, shape: tuple[int, ...]) -> Values:
    out = np.zeros(shape)
    np.add.at(out, tuple(np.asarray(i).astype(np.int64, copy=False) for i in indices), values)
    return out


def _put(x: Values, value: Values, *indices: Values) -> Values:
    out = np.array(x)
    out[tuple(np.asarray(i) for i in indices)] = value
    return out


def _slice(x: Values, *, starts: tuple[int, ...], stops: tuple[int, ...]) -> Values:
    return x[tuple(slice(a, b) for a, b in zip(starts, stops))]


def _weighted_quantile(keys: Values, weights: Values, amount: Values) -> Values:
    order = np.argsort(keys, kind="stable")
    reached = np.cumsum(weights[order]) >= amount
    result = keys[order][np.argmax(reached)] if reached.any() else np.inf
    return np.float64(np.inf if np.isnan(result) else result)


PRIMITIVES: dict[str, Callable[..., Values]] = {
    # elementwise, one argument
    "neg": np.negative,
    "abs": np.abs,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "log1p": np.log1p,
    "expm1": np.expm1,
    "sign": np.sign,
    "floor": np.floor,
    "not": np.logical_not,
    "isfinite": np.isfinite,
    "to_float": lambda x: np.asarray(x, dtype=np.float64),
    "to_int": lambda x: np.asarray(x, dtype=np.int64),
    # elementwise, two or three arguments, with broadcasting
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "pow": np.power,
    "mod": np.mod,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "lt": np.less,
    "le": np.less_equal,
    "eq": np.equal,
    "and": np.logical_and,
    "or": np.logical_or,
    "where": np.where,
    # reductions: axis is None (all) or one axis
    "sum": lambda x, *, axis=None: np.sum(x, axis=axis),
    "max": lambda x, *, axis=None: np.max(x, axis=axis),
    "min": lambda x, *, axis=None: np.min(x, axis=axis),
    "prod": lambda x, *, axis=None: np.prod(x, axis=axis),
    "any": lambda x, *, axis=None: np.any(x, axis=axis),
    "all": lambda x, *, axis=None: np.all(x, axis=axis),
    "argmax": lambda x: np.int64(np.argmax(x)),
    "argmin": lambda x: np.int64(np.argmin(x)),
    "cumsum": np.cumsum,
    # products and shapes
    "matmul": np.matmul,
    "outer": np.multiply.outer,
    "transpose": np.transpose,
    "reshape": lambda x, *, shape: np.reshape(x, shape),
    "broadcast": lambda x, *, shape: np.broadcast_to(x, shape),
    "concat": lambda *xs, axis=0: np.concatenate(xs, axis=axis),
    "stack": lambda *xs: np.stack(xs),
    # indexing
    "slice": _slice,
    "gather": _gather,
    "entries": lambda x: tuple(x.ravel()) if x.size > 1 else x.ravel()[0],
    "scatter_add": _scatter_add,
    "put": _put,
    # constructors
    "full": lambda value, *, shape: np.full(shape, value),
    "iota": lambda *, n: np.arange(n, dtype=np.int64),
    "eye": lambda *, n: np.eye(n),
    "diag": np.diag,
    # kernels
    "sort": np.sort,
    "argsort": lambda x: np.argsort(x, kind="stable"),
    "weighted_quantile": _weighted_quantile,
    "solve": np.linalg.solve,
    "svd": lambda x: np.linalg.svd(x, full_matrices=False),
    "eigh": np.linalg.eigh,
}


def numpy_name(primitive: str) -> str | None:
    """Name below `numpy` of the function that a primitive is, as `linalg.solve`; None where it is none of NumPy's."""
    meaning, name = PRIMITIVES[primitive], str(PRIMITIVES[primitive].__name__)
    for prefix, module in (("", np), ("linalg.", np.linalg)):
        if getattr(module, name, None) is meaning:
            return prefix + name
    return None


def has_name(primitive: str) -> bool:
    """True where the function that a primitive is may be called by its name: one of NumPy's, or of ours without an underscore."""
    name = PRIMITIVES[primitive].__name__
    return numpy_name(primitive) is not None or (name.isidentifier() and not name.startswith("_"))


class ArrayOps:
    """Primitives as methods over NumPy arrays: `ArrayOps().exp(x)`; Python keywords take an underscore (`and_`)."""

    def __getattr__(self, name: str) -> Callable[..., Values]:
        try:
            return PRIMITIVES[name.rstrip("_")]
        except KeyError:
            raise AttributeError(name) from None
