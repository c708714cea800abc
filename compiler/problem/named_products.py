"""Products of names as names of their own: `buffer - 4 * slow * rate` is affine in `buffer` and in `rate * slow`."""

from __future__ import annotations

from collections.abc import Callable

from oco.dsl import algebra
from oco.dsl.atoms import form_of, forms
from oco.dsl.build import applied
from oco.dsl.expressions import Call, Expr, Kind, Name, names, rewrite
from oco.dsl.text.printer import print_expr


def any_product(node: Expr) -> bool:
    """True for a product or a quotient of expressions that both have names in them."""
    return isinstance(form_of(node), (forms.Bilinear, forms.Quotient)) and all(map(names, node.children))


def scaled_by_data(node: Expr) -> bool:
    """True for a product or a quotient of what is decided and of data."""
    if not any_product(node):
        return False
    decided, data = ([bool(names(c, kind)) for c in node.children] for kind in (Kind.DECISION, Kind.STREAM))
    return sum(decided) == 1 and any(is_data and not is_own for is_own, is_data in zip(decided, data, strict=True))


def with_products_named(expr: Expr, where: Callable[[Expr], bool]) -> tuple[Expr, dict[str, Expr]]:
    """Expression in which names of kind decision, their texts, stand for the products for which `where` is true, and these by name.

    Numbers by which they are multiplied stand before the names. A product may be of names that stand for others, which come before it.
    """
    products = dict[str, Expr]()

    def named(node: Expr) -> Expr:
        if not where(node):
            return node
        factor, rest = _without_number(node)
        name = Name(print_expr(rest), Kind.DECISION, shape=rest.shape)
        products.setdefault(name.name, rest)
        return name if factor == 1 else algebra.mul(algebra.number(factor), name)

    return rewrite(expr, named), products


def _without_number(node: Expr) -> tuple[float, Expr]:
    """Number k and expression e with the value k e: 4 and `rate * slow` for `4 * slow * rate`, factors in the order of their texts."""
    form = form_of(node)
    if not isinstance(node, Call) or not (form is forms.TIMES or isinstance(form, forms.Quotient)):
        return 1.0, node
    first, second = node.children
    if form is not forms.TIMES:
        factor, rest = _without_number(first)
        return factor, applied(node.atom, (rest, second), node.options)
    for number, other in ((first, second), (second, first)):
        if (value := algebra.value_of(number)) is not None and other.shape == node.shape:
            factor, rest = _without_number(other)
            return value * factor, rest
    (k, one), (j, other) = map(_without_number, (first, second))
    return k * j, algebra.mul(*sorted((one, other), key=print_expr))
