"""Expressions of JAX for the operations of the step IR: a call by NumPy's name, or a row of their own.

Arguments are names and numbers: nothing needs parentheses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from oco.compiler.ir.ops import OPS
from oco.compiler.ir.program import DType, Equation, Literal
from oco.dsl.primitives import PRIMITIVES, numpy_name

Template = Callable[[Equation, Sequence[str]], str]


def _call(name: str) -> Template:
    return lambda e, args: f"{name}({', '.join(args)})"


def _meaning(op: str, name: str) -> Template:
    """Call of JAX's function of NumPy's name `name`, with the attributes of the operation as keywords."""
    options = OPS[op].attrs
    return lambda e, args: f"jnp.{name}({', '.join([*args, *(f'{o}={e.attr(o)!r}' for o in options)])})"


def _infix(symbol: str) -> Template:
    return lambda e, args: f"{args[0]} {symbol} {args[1]}"


def _reduction(name: str) -> Template:
    def written(e: Equation, args: Sequence[str]) -> str:
        axis = e.attr("axis")
        return f"{name}({args[0]})" if axis is None else f"{name}({args[0]}, axis={axis})"

    return written


def _shaped(name: str) -> Template:
    return lambda e, args: f"jnp.{name}({args[0]}, {e.attr('shape')})"


def _full(e: Equation, args: Sequence[str]) -> str:
    word = {"0.0": "zeros", "1.0": "ones"}.get(args[0])
    return f"jnp.{word}({e.attr('shape')})" if word else f"jnp.full({e.attr('shape')}, {args[0]})"


def _outer(e: Equation, args: Sequence[str]) -> str:
    left, right = (len(a.type.shape) for a in e.args)
    return f"{args[0]}[{', '.join([':'] * left + ['None'] * right)}] * {args[1]}" if left and right else "*".join(args)


def _concat(e: Equation, args: Sequence[str]) -> str:
    return f"jnp.concatenate([{', '.join(args)}]{_axis(e.attr('axis'))})"


def _axis(axis: int) -> str:
    return f", axis={axis}" if axis else ""


def _entries(e: Equation, args: Sequence[str]) -> str:
    return f"jnp.ravel({args[0]})" if len(e.outs) > 1 else f"jnp.reshape({args[0]}, ())"


def _slice(e: Equation, args: Sequence[str]) -> str:
    return f"{args[0]}[{', '.join(f'{a}:{b}' for a, b in zip(e.attr('starts'), e.attr('stops')))}]"


def _scatter_add(e: Equation, args: Sequence[str]) -> str:
    return f"jnp.zeros({e.attr('shape')}).at[{', '.join(args[1:])}].add({args[0]})"


TEMPLATES: dict[str, Template] = {
    **{op: _meaning(op, name) for op in PRIMITIVES if (name := numpy_name(op))},
    **{op: _call(f"jnp.{op}") for op in ("abs", "mod", "argmax", "argmin", "argsort")},
    **{name: _reduction(f"jnp.{name}") for name in ("sum", "max", "min", "prod", "any", "all")},
    "neg": lambda e, args: f"-{args[0]}",
    "to_float": lambda e, args: f"jnp.asarray({args[0]}, jnp.float64)",
    "to_int": lambda e, args: f"jnp.asarray({args[0]}, jnp.int64)",
    "add": _infix("+"),
    "sub": _infix("-"),
    "mul": _infix("*"),
    "div": _infix("/"),
    "lt": _infix("<"),
    "le": _infix("<="),
    "eq": _infix("=="),
    "and": _infix("&"),
    "or": _infix("|"),
    "matmul": _infix("@"),
    "outer": _outer,
    "reshape": _shaped("reshape"),
    "broadcast": _shaped("broadcast_to"),
    "concat": _concat,
    "stack": lambda e, args: f"jnp.stack([{', '.join(args)}])",
    "slice": _slice,
    "gather": lambda e, args: f"{args[0]}[{', '.join(args[1:])}]",
    "entries": _entries,
    "scatter_add": _scatter_add,
    "put": lambda e, args: f"{args[0]}.at[{', '.join(args[2:])}].set({args[1]})",
    "full": _full,
    "iota": lambda e, args: f"jnp.arange({e.attr('n')})",
    "eye": lambda e, args: f"jnp.eye({e.attr('n')})",
    "weighted_quantile": _call("weighted_quantile"),
    "svd": lambda e, args: f"jnp.linalg.svd({args[0]}, full_matrices=False)",
    "eigh": lambda e, args: f"jnp.linalg.eigh({args[0]}, symmetrize_input=False)",
}
"""Expressions of the operations; those with several results give a tuple of them."""


def _of_floats(name: str, plain: str) -> Template:
    """Function of `derivatives.py` where entries are floats that are not known; integers have no derivative."""
    usual = TEMPLATES[plain]
    other = _reduction(name) if plain in ("max", "min") else _call(name)
    return lambda e, args: (other if e.outs[0].type.dtype is DType.FLOAT else usual)(e, args)


DIFFERENTIABLE: dict[str, Template] = {
    **TEMPLATES,
    "div": lambda e, args: (
        TEMPLATES["div"](e, args) if isinstance(e.args[1], Literal) else f"derivatives.ratio({', '.join(args)})"
    ),
    "sqrt": _call("derivatives.root"),
    "maximum": _of_floats("derivatives.larger", "maximum"),
    "minimum": _of_floats("derivatives.smaller", "minimum"),
    "max": _of_floats("derivatives.largest", "max"),
    "min": _of_floats("derivatives.smallest", "min"),
}
"""Expressions of programs that are differentiated, with the functions of `derivatives.py`."""

HELPERS = {
    "weighted_quantile": '''
def weighted_quantile(keys, weights, amount):
    """Least key up to which the weights add up to the amount; infinite where they never do."""
    order = jnp.argsort(keys)
    reached = jnp.cumsum(weights[order]) >= amount
    result = jnp.where(jnp.any(reached), keys[order][jnp.argmax(reached)], jnp.inf)
    return jnp.where(jnp.isnan(result), jnp.inf, result)
'''
}
"""Functions that a text includes where it calls them."""
