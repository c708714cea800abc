"""Forms that are an atom in other words: `x @ x` is `sum_squares(x)`, `log(exp(f) + exp(g))` is `log_sum_exp([f, g])`.

Each rule gets a call whose equal parts are one node, and gives an expression of the same value and shape, or None.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from oco.compiler.facts.entry import entry
from oco.compiler.facts.matching import args_of, is_all, is_call, options_of
from oco.dsl.build import applied, array, call
from oco.dsl.dims import known
from oco.dsl.expressions import Call, Constant, Expr, constant, uniform

Varies = Callable[[Expr], bool]
MOST_SOFT = 64  # terms of a logarithm of a sum of exponentials


def spelled(node: Call, varies: Varies) -> Expr | None:
    """`node` as one atom, where it is one in other words."""
    match node.atom:
        case "matmul" | "dot":
            return _product(node, varies)
        case "quad_form":
            return _gram(node)
        case "transpose" if len(node.shape) == 1:
            return node.args[0]
        case "pow" | "power" if node.args[1].shape == ():
            return _power(node)
        case "square" | "sum_squares":
            return _square(node)
        case "neg":
            return call("pos", call("minus", node.args[0]), span=node.span)
        case "hinge":
            return call("pos", call("sub", 1.0, node.args[0]), span=node.span)
        case "maximum" | "minimum" if len(node.args) == 2:
            return _above_zero(node)
        case "norm1" | "norm2" | "norm_inf" if is_call(node.args[0], "abs"):
            return applied(node.atom, args_of(node.args[0]), node.options, node.span)
        case "sum" if not node.options and is_call(node.args[0], "square"):
            return call("sum_squares", *args_of(node.args[0]), span=node.span)
        case "sqrt" if is_call(node.args[0], "sum_squares"):
            return call("norm2", *args_of(node.args[0]), span=node.span)
        case "sqrt" if is_call(node.args[0], "square"):
            return call("abs", *args_of(node.args[0]), span=node.span)
        case "log" if is_call(node.args[0], "sum") and is_call(args_of(node.args[0])[0], "exp"):
            return applied("log_sum_exp", args_of(args_of(node.args[0])[0]), options_of(node.args[0]), node.span)
        case "log":
            return _soft_maximum(node, _exponents(node.args[0], node))
        case "log1p":
            inner = _exponents(node.args[0], node)
            zero = uniform(0.0, known(node.shape))
            return None if inner is None else _soft_maximum(node, [zero, *inner])
    return None


def _above_zero(node: Call) -> Expr | None:
    """`maximum(u, 0)` is `pos(u)`, `minimum(u, 0)` is `-pos(-u)`."""
    for zero, other in (node.args, node.args[::-1]):
        if is_all(zero, 0.0) and other.shape == node.shape:
            if node.atom == "maximum":
                return call("pos", other, span=node.span)
            return call("minus", call("pos", call("minus", other)), span=node.span)
    return None


# ---- squares


def _power(node: Call) -> Expr | None:
    """Powers of 1 and 2, and even powers of what has no sign."""
    base, exponent = node.args
    if is_all(exponent, 2.0):
        return call("square", base, span=node.span)
    if is_all(exponent, 1.0):
        return base
    if isinstance(exponent, Constant) and float(exponent.value.array) % 2 == 0 and float(exponent.value.array) > 2:
        if is_call(base, "abs"):
            return call(node.atom, *args_of(base), exponent, span=node.span)
        if is_call(base, "norm2") and not options_of(base):
            half = constant(float(exponent.value.array) / 2)
            return call(node.atom, call("sum_squares", *args_of(base)), half, span=node.span)
    return None


def _square(node: Call) -> Expr | None:
    """The square of a norm is a sum of squares, of an absolute value the square itself."""
    (base,) = node.args
    if is_call(base, "abs") or is_call(base, "minus"):
        return call(node.atom, *args_of(base), span=node.span)
    if node.atom == "square" and is_call(base, "norm2"):
        (inner,) = args_of(base)
        if options_of(base):
            return applied("sum", (call("square", inner),), options_of(base), node.span)
        return call("sum_squares", inner, span=node.span)
    return None


def without_jump(factor: Expr, jump: Expr) -> Expr | None:
    """A function that is 0 where its slope jumps, times the slope: pos(u) * _positive(u) is pos(u), u**2 * _sign(u) is u * abs(u)."""
    base, exponent = _power_of(factor)
    if exponent <= 0 or not isinstance(jump, Call) or jump.atom not in ("_positive", "_sign"):
        return None
    (arg,) = jump.args
    if jump.atom == "_positive" and is_call(base, "pos") and args_of(base)[0] is arg:
        return factor
    if jump.atom == "_sign" and base is arg and exponent in (1, 2):
        return call("abs", arg) if exponent == 1 else call("mul", arg, call("abs", arg))
    if jump.atom == "_sign" and is_call(base, "abs") and args_of(base)[0] is arg and exponent >= 1:
        return arg if exponent == 1 else call("mul", arg, call("power", base, exponent - 1))
    return None


def _power_of(node: Expr) -> tuple[Expr, float]:
    """A base and its exponent."""
    if is_call(node, "square"):
        return args_of(node)[0], 2.0
    if is_call(node, "pow") or is_call(node, "power"):
        base, exponent = args_of(node)
        if isinstance(exponent, Constant) and exponent.shape == ():
            return base, float(exponent.value.array)
    return node, 1.0


# ---- quadratic forms


def _product(node: Call, varies: Varies) -> Expr | None:
    left, right = node.args
    if len(left.shape) != 1:
        return None
    if left is right:
        return call("sum_squares", left, span=node.span)
    if len(right.shape) == 1:
        return _of_gram(node) or _quadratic(node, varies)
    if is_call(right, "transpose"):
        return call("matmul", *args_of(right), left, span=node.span)
    return None


def _quadratic(node: Call, varies: Varies) -> Expr | None:
    """`x @ (P @ x)` and `(x @ P) @ x` are `quad_form(x, P)`."""
    left, right = node.args
    for outer, inner, position in ((left, right, 1), (right, left, 0)):
        if is_call(inner, "matmul") and args_of(inner)[position] is outer:
            matrix = args_of(inner)[1 - position]
            if len(matrix.shape) == 2 and not varies(matrix):
                return call("quad_form", outer, matrix, span=node.span)
    return None


def _of_gram(node: Call) -> Expr | None:
    """`((x @ A.T) @ A) @ x`, `x @ (A.T @ (A @ x))` and `(x @ A.T) @ (A @ x)` are `sum_squares(A @ x)`."""
    left, right = (_applied(a) for a in node.args)
    if left is not None and right is not None and left[1] is right[1]:
        turned = _transposes(left[0], right[0])
        if turned is not None and turned != (left[2] == right[2]):
            return call("sum_squares", node.args[1], span=node.span)
    for outer, image in zip(node.args, (right, left)):
        inner = None if image is None else _applied(image[1])
        if image is None or inner is None or inner[1] is not outer:
            continue
        if _transposes(image[0], inner[0]) == (image[2] == inner[2]):
            return call("sum_squares", image[1], span=node.span)
    return None


def _applied(node: Expr) -> tuple[Expr, Expr, bool] | None:
    """A matrix, the vector that it is applied to, and whether from the right, as its transpose."""
    if not is_call(node, "matmul") or len(node.shape) != 1:
        return None
    left, right = args_of(node)
    return (left, right, False) if len(left.shape) == 2 else (right, left, True)


def _transposes(one: Expr, other: Expr) -> bool | None:
    """Whether one matrix is the transpose of the other; False where they are equal, None where they are neither."""
    if one is other:
        return False
    for a, b in ((one, other), (other, one)):
        if is_call(a, "transpose") and args_of(a)[0] is b:
            return True
    if isinstance(one, Constant) and isinstance(other, Constant) and one.shape == other.shape[::-1]:
        return True if np.array_equal(one.value.array, other.value.array.T) else None
    return None


def _gram(node: Call) -> Expr | None:
    """`quad_form(x, A.T @ A)` as `sum_squares(A @ x)`."""
    vector, matrix = node.args
    if is_call(matrix, "matmul") and _transposes(*args_of(matrix)):
        return call("sum_squares", call("matmul", args_of(matrix)[1], vector), span=node.span)
    return None


# ---- logarithms of sums of exponentials


def _soft_maximum(node: Call, exponents: list[Expr] | None) -> Expr | None:
    """log(exp(f) + exp(g) + ...), a 0 among the exponents standing for 1."""
    if exponents is None or len(exponents) > MOST_SOFT:
        return None
    if len(exponents) == 1:
        return exponents[0] if exponents[0].shape == node.shape else None
    if len(exponents) > 2 and not node.shape:
        return call("log_sum_exp", array(tuple(exponents)), span=node.span)
    if len(exponents) > 2:
        return None
    first, second = exponents
    for base, other in ((first, second), (second, first)):
        if is_all(base, 0.0) and other.shape == node.shape:
            return call("logistic", other, span=node.span)
        if isinstance(base, Constant) and other.shape == node.shape:
            return call("add", base, call("logistic", call("sub", other, base)), span=node.span)
    if not node.shape:
        return call("log_sum_exp", array((first, second)), span=node.span)
    return call("add", first, call("logistic", call("sub", second, first)), span=node.span)


def _exponents(total: Expr, node: Call) -> list[Expr] | None:
    """The logarithms of the terms of a sum, each of its shape, where every term is a positive number times an exponential or a number."""
    found: list[Expr] = []
    stack = [total]
    while stack:
        term = stack.pop()
        if is_call(term, "add") and all(a.shape == node.shape for a in args_of(term)):
            stack.extend(reversed(args_of(term)))
            continue
        several = _exponents_of_sum(term)
        exponent = None if several else _exponent(term, node)
        if exponent is None and not several:
            return None
        found += several if exponent is None else [exponent]
    return None if all(isinstance(e, Constant) for e in found) else found


def _exponents_of_sum(term: Expr) -> list[Expr]:
    """The entries of u for a term `sum(exp(u))`, where they are few."""
    if not is_call(term, "sum") or options_of(term) or not is_call(args_of(term)[0], "exp"):
        return []
    (inner,) = args_of(args_of(term)[0])
    few = math.prod(known(inner.shape)) <= MOST_SOFT
    return [entry(inner, at) for at in np.ndindex(*known(inner.shape))] if few else []


def _exponent(term: Expr, node: Call) -> Expr | None:
    """The logarithm of a term without `log`."""
    if isinstance(term, Constant) and term.shape in ((), node.shape) and np.all(term.value.array > 0):
        value = term.value.array
        equal = value.size and bool(np.all(value == value.flat[0]))
        logarithm = uniform(float(np.log(value.flat[0])), known(node.shape)) if equal else constant(np.log(value))
        return logarithm if np.all(np.isfinite(logarithm.value.array)) else None
    if is_call(term, "exp") and term.shape == node.shape:
        return args_of(term)[0]
    if is_call(term, "sum") and is_call(args_of(term)[0], "exp"):
        return applied("log_sum_exp", args_of(args_of(term)[0]), options_of(term))
    if is_call(term, "mul") and isinstance(args_of(term)[0], Constant):
        factor, other = args_of(term)
        inner, level = _exponent(other, node), _exponent(factor, node)
        return None if inner is None or level is None else call("add", level, inner)
    return None
