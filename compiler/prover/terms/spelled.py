"""Forms that are an atom in other words: `x @ x` is `sum_squares(x)`, `log(exp(f) + exp(g))` is `log_sum_exp([f, g])`.

Each rule gets a call whose equal parts are one node, and gives an expression of the same value and shape, or None.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from oco.compiler.prover.terms.entry import entry
from oco.compiler.prover.terms.matching import args_of, is_all, options_of
from oco.dsl.atoms import form_of, forms
from oco.dsl.build import applied, array, call
from oco.dsl.dims import known
from oco.dsl.expressions import Call, Constant, Expr, constant, uniform

Varies = Callable[[Expr], bool]
MOST_SOFT = 64  # terms of a logarithm of a sum of exponentials


def spelled(node: Call, varies: Varies) -> Expr | None:
    """`node` as one atom, where it is one in other words."""
    match form_of(node):
        case forms.MATRIX_PRODUCT:
            return _product(node, varies)
        case forms.Quadratic():
            return _gram(node)
        case forms.TRANSPOSE if len(node.shape) == 1:
            return node.args[0]
        case forms.Power(exponent=None) if node.args[1].shape == ():
            return _power(node)
        case forms.SQUARE | forms.SUM_OF_SQUARES:
            return _square(node)
        case forms.NEGATIVE_PART:
            return call("pos", call("minus", node.args[0]), span=node.span)
        case forms.HINGE:
            return call("pos", call("sub", 1.0, node.args[0]), span=node.span)
        case forms.LARGEST | forms.SMALLEST if len(node.args) == 2:
            return _above_zero(node)
        case forms.SUM_OF_SIZES | forms.LENGTH | forms.LARGEST_SIZE if form_of(node.args[0]) is forms.SIZE:
            return applied(node.atom, args_of(node.args[0]), node.options, node.span)
        case forms.TOTAL if not node.options and form_of(node.args[0]) is forms.SQUARE:
            return call("sum_squares", *args_of(node.args[0]), span=node.span)
        case forms.ROOT if form_of(node.args[0]) is forms.SUM_OF_SQUARES:
            return call("norm2", *args_of(node.args[0]), span=node.span)
        case forms.ROOT if form_of(node.args[0]) is forms.SQUARE:
            return call("abs", *args_of(node.args[0]), span=node.span)
        case forms.LOGARITHM if (
            form_of(node.args[0]) is forms.TOTAL and form_of(args_of(node.args[0])[0]) is forms.EXPONENTIAL
        ):
            return applied("log_sum_exp", args_of(args_of(node.args[0])[0]), options_of(node.args[0]), node.span)
        case forms.LOGARITHM:
            return _soft_maximum(node, _exponents(node.args[0], node))
        case forms.Logarithm(shift=1.0):
            inner = _exponents(node.args[0], node)
            zero = uniform(0.0, known(node.shape))
            return None if inner is None else _soft_maximum(node, [zero, *inner])
    return None


def _above_zero(node: Call) -> Expr | None:
    """`maximum(u, 0)` is `pos(u)`, `minimum(u, 0)` is `-pos(-u)`."""
    for zero, other in (node.args, node.args[::-1]):
        if is_all(zero, 0.0) and other.shape == node.shape:
            if form_of(node) is forms.LARGEST:
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
        if form_of(base) is forms.SIZE:
            return call(node.atom, *args_of(base), exponent, span=node.span)
        if form_of(base) is forms.LENGTH and not options_of(base):
            half = constant(float(exponent.value.array) / 2)
            return call(node.atom, call("sum_squares", *args_of(base)), half, span=node.span)
    return None


def _square(node: Call) -> Expr | None:
    """The square of a norm is a sum of squares, of an absolute value the square itself."""
    (base,) = node.args
    if form_of(base) is forms.SIZE or form_of(base) is forms.NEGATIVE:
        return call(node.atom, *args_of(base), span=node.span)
    if form_of(node) is forms.SQUARE and form_of(base) is forms.LENGTH:
        (inner,) = args_of(base)
        if options_of(base):
            return applied("sum", (call("square", inner),), options_of(base), node.span)
        return call("sum_squares", inner, span=node.span)
    return None


def without_jump(factor: Expr, jump: Expr) -> Expr | None:
    """A function that is 0 where its slope jumps, times the slope: pos(u) * _positive(u) is pos(u), u**2 * _sign(u) is u * abs(u)."""
    (base, exponent), form = _power_of(factor), form_of(jump)
    if exponent <= 0 or not isinstance(form, forms.Jump):
        return None
    (arg,) = args_of(jump)
    if form is forms.STEP and form_of(base) is forms.POSITIVE_PART and args_of(base)[0] is arg:
        return factor
    if form is forms.SIGN and base is arg and exponent in (1, 2):
        return call("abs", arg) if exponent == 1 else call("mul", arg, call("abs", arg))
    if form is forms.SIGN and form_of(base) is forms.SIZE and args_of(base)[0] is arg and exponent >= 1:
        return arg if exponent == 1 else call("mul", arg, call("power", base, exponent - 1))
    return None


def _power_of(node: Expr) -> tuple[Expr, float]:
    """A base and its exponent."""
    if form_of(node) is forms.SQUARE:
        return args_of(node)[0], 2.0
    if isinstance(form := form_of(node), forms.Power) and form.exponent is None:
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
    if form_of(right) is forms.TRANSPOSE:
        return call("matmul", *args_of(right), left, span=node.span)
    return None


def _quadratic(node: Call, varies: Varies) -> Expr | None:
    """`x @ (P @ x)` and `(x @ P) @ x` are `quad_form(x, P)`."""
    left, right = node.args
    for outer, inner, position in ((left, right, 1), (right, left, 0)):
        if form_of(inner) is forms.MATRIX_PRODUCT and args_of(inner)[position] is outer:
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
    if form_of(node) is not forms.MATRIX_PRODUCT or len(node.shape) != 1:
        return None
    left, right = args_of(node)
    return (left, right, False) if len(left.shape) == 2 else (right, left, True)


def _transposes(one: Expr, other: Expr) -> bool | None:
    """True if one matrix is the transpose of the other; False where they are equal, None where they are neither."""
    if one is other:
        return False
    for a, b in ((one, other), (other, one)):
        if form_of(a) is forms.TRANSPOSE and args_of(a)[0] is b:
            return True
    if isinstance(one, Constant) and isinstance(other, Constant) and one.shape == other.shape[::-1]:
        return True if np.array_equal(one.value.array, other.value.array.T) else None
    return None


def _gram(node: Call) -> Expr | None:
    """`quad_form(x, A.T @ A)` as `sum_squares(A @ x)`."""
    vector, matrix = node.args
    if form_of(matrix) is forms.MATRIX_PRODUCT and _transposes(*args_of(matrix)):
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
    results: list[Expr] = []
    stack = [total]
    while stack:
        term = stack.pop()
        if form_of(term) is forms.SUM and all(a.shape == node.shape for a in args_of(term)):
            stack.extend(reversed(args_of(term)))
            continue
        several = _exponents_of_sum(term)
        exponent = None if several else _exponent(term, node)
        if exponent is None and not several:
            return None
        results += several if exponent is None else [exponent]
    return None if all(isinstance(e, Constant) for e in results) else results


def _exponents_of_sum(term: Expr) -> list[Expr]:
    """The entries of u for a term `sum(exp(u))`, where they are few."""
    if form_of(term) is not forms.TOTAL or options_of(term) or form_of(args_of(term)[0]) is not forms.EXPONENTIAL:
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
    if form_of(term) is forms.EXPONENTIAL and term.shape == node.shape:
        return args_of(term)[0]
    if form_of(term) is forms.TOTAL and form_of(args_of(term)[0]) is forms.EXPONENTIAL:
        return applied("log_sum_exp", args_of(args_of(term)[0]), options_of(term))
    if form_of(term) is forms.TIMES and isinstance(args_of(term)[0], Constant):
        factor, other = args_of(term)
        inner, level = _exponent(other, node), _exponent(factor, node)
        return None if inner is None or level is None else call("add", level, inner)
    return None
