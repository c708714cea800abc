"""Pass: products and inner products of quotients in which factors cancel, with one division an entry.

The curvature of a logarithm, (a / s) (a / (b / s^2 + c)), is a^2 / (b + c s^2): the divisor of an inner quotient goes to the other side,
where it meets what it cancels with. It changes the last bits. What cancels is an array that is known to be positive, with powers of at
least `TINY`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from itertools import chain

from oco.compiler.ir.lower_bounds import LowerBounds
from oco.compiler.ir.program import Block, DType, Equation, Function, Literal, Operand, Program, Type, Var
from oco.compiler.ir.rewrite import free_names, map_functions, read_by
from oco.dsl.magnitudes import TINY
from oco.dsl.records import dataclass

FLOAT = DType.FLOAT
_MAKE_PRODUCTS = ("mul", "div", "where", "add", "sub")
"""Operations whose result may be told as a product of values."""


def cancel_quotients(program: Program) -> Program:
    """Put one quotient in the place of products of several that share factors."""
    bounds = LowerBounds(program)

    def changed(f: Function) -> Function:
        cancelling = _Cancelling(f.name, bounds, Counter(read_by(f.body)), free_names(f, program))
        return f.having(cancelling.block(f.body))

    return map_functions(program, changed)


@dataclass(frozen=True, slots=True)
class _Sum:
    """Sum or difference of two products without quotients by arrays."""

    op: str
    terms: tuple[_Product, _Product]
    type: Type


@dataclass(frozen=True, slots=True)
class _Product:
    """`factor` times powers of values, each of which has the shape of the product or none; 0 where `mask`, if there is one, is false."""

    factor: float = 1.0
    powers: tuple[tuple[Var | _Sum, int], ...] = ()
    mask: Var | None = None

    @property
    def nested(self) -> bool:
        """True where a factor is a sum of what were quotients."""
        return any(isinstance(base, _Sum) for base, _ in self.powers)

    @property
    def divides(self) -> bool:
        """True where it is divided by an array."""
        return any(k < 0 and base.type.shape for base, k in self.powers)

    @property
    def divisors(self) -> _Product:
        """Arrays that are divided by, as a product."""
        return _Product(powers=tuple((base, -k) for base, k in self.powers if k < 0 and base.type.shape))

    def times(self, other: _Product, power: int = 1) -> _Product | None:
        """Product with another, or quotient by it; None where it cannot be told as one."""
        factor = self.factor * other.factor if power > 0 else self.factor / other.factor
        if not (math.isfinite(factor) and factor) or (
            other.mask and (power < 0 or self.mask not in (None, other.mask))
        ):
            return None
        powers = dict(self.powers)
        for base, k in other.powers:
            powers[base] = powers.get(base, 0) + power * k
        return _Product(factor, tuple((b, k) for b, k in powers.items() if k), self.mask or other.mask)

    def cancels(self, other: _Product) -> list[tuple[Var | _Sum, int]]:
        """Arrays that are a factor of one and a divisor of the other, with the larger of the two powers."""
        own = dict(self.powers)
        return [(b, max(abs(k), abs(own[b]))) for b, k in other.powers if own.get(b, 0) * k < 0 and b.type.shape]


@dataclass
class _Cancelling:
    """Rewriting of one function: how often each value is read, and names that are free."""

    function: str
    bounds: LowerBounds
    reads: Counter[str]
    free: Iterator[str]
    made: list[Equation] = field(default_factory=list)

    def block(self, block: Block, known: Mapping[str, _Product] | None = None) -> Block:
        """The block; `known`: products that values outside it are."""
        products, made_by, outer = dict(known or {}), dict[str, Equation](), self.made
        self.made, sums = [], dict[_Sum, Var]()
        for e in block.equations:
            if e.blocks:
                self.made.append(e.having(e.args, tuple(self.block(b, products) for b in e.blocks)))
                continue
            for v in e.outs:
                made_by[v.name] = e
            product = self.product(e, products)
            if product and not (product.nested and self.reads[e.outs[0].name] > 1):
                products[e.outs[0].name] = product
            pair = e.args if e.op == "mul" else self.vectors(e, made_by)
            if pair and (shorter := self.shorter(*(_of(x, products) for x in pair))):
                self.write(e, shorter, pair[0].type if e.op == "matmul" else e.outs[0].type, sums)
            else:
                self.made.append(e)
        equations, self.made = tuple(self.made), outer
        return block.having(equations)

    def product(self, e: Equation, products: Mapping[str, _Product]) -> _Product | None:
        """Product of others that an equation makes; None where it makes none."""
        out = e.outs[0].type if e.op in _MAKE_PRODUCTS else None
        if out is None or out.dtype is not FLOAT or any(a.type.shape not in ((), out.shape) for a in e.args):
            return None
        parts = [_of(a, products) for a in e.args]
        if e.op in ("mul", "div"):
            return parts[0].times(parts[1], 1 if e.op == "mul" else -1)
        if e.op == "where" and isinstance(e.args[0], Var) and e.args[2] == Literal(0.0, Type(FLOAT)):
            return parts[1].times(_Product(mask=e.args[0]))
        return self.cleared(e.op, parts[0], parts[1]) if e.op in ("add", "sub") else None

    def cleared(self, op: str, a: _Product, b: _Product) -> _Product | None:
        """A sum of quotients as a quotient; None where nothing is divided by an array."""
        if not (a.divides or b.divides) or a.nested or b.nested or a.mask or b.mask:
            return None
        divisors = _common(a.divisors, b.divisors)
        first, second = a.times(divisors), b.times(divisors)
        if first is None or second is None:
            return None  # a factor that is no finite number
        shapes = {base.type.shape for base, _ in first.powers + second.powers}  # entries may have cancelled
        total = _Sum(op, (first, second), Type(FLOAT, max(shapes, key=len, default=())))
        return _Product(powers=((total, 1),)).times(divisors, -1)

    def vectors(self, e: Equation, made_by: Mapping[str, Equation]) -> tuple[Operand, Operand] | None:
        """The two vectors of an inner product."""
        if e.op != "matmul" or math.prod(e.outs[0].type.shape) != 1 or e.outs[0].type.dtype is not FLOAT:
            return None
        a, b = (self.vector(x, made_by) for x in e.args)
        return (a, b) if a.type == b.type and len(a.type.shape) == 1 else None

    def vector(self, x: Operand, made_by: Mapping[str, Equation]) -> Operand:
        """Value before it was given another shape, where nothing else reads it in that."""
        while isinstance(x, Var) and self.reads[x.name] == 1 and x.name in made_by:
            e = made_by[x.name]
            if e.op not in ("reshape", "transpose"):
                break
            x = e.args[0]
        return x

    def shorter(self, a: _Product, b: _Product) -> _Product | None:
        """Product of two in which factors cancel; None where none do, or some may be as good as zero."""
        common = a.cancels(b)
        if not common or not all(isinstance(base, Var) and self.least(base) ** k >= TINY for base, k in common):
            return None
        return a.times(b)

    def least(self, v: Var) -> float:
        """Lower bound of the entries of an array, no more than 1; 0 where none above it is known."""
        return min(max(self.bounds.of[self.function].get(v.name, 0.0), 0.0), 1.0)

    def write(self, e: Equation, product: _Product, made: Type, sums: dict[_Sum, Var]) -> None:
        """Bind what an equation binds to a product, or to the sum of its entries."""
        value: Operand = self.value(product, sums)
        if value.type != made:
            value = self.apply("full", value, made=made, shape=made.shape)
        if e.op == "matmul":
            total = self.apply("sum", value, made=Type(FLOAT), axis=None)
            value = self.apply("reshape", total, made=e.outs[0].type, shape=e.outs[0].type.shape)
        elif not (self.made and self.made[-1].outs == (value,)):
            value = self.apply("mul", value, Literal(1.0, Type(FLOAT)), made=made)
        self.made[-1] = replace(self.made[-1], outs=e.outs, note=e.note)

    def value(self, product: _Product, sums: dict[_Sum, Var]) -> Operand:
        """Value of a product, with one division."""
        result = self.powers(product, 1, sums, product.factor)
        if any(k < 0 for _, k in product.powers):
            result = self.apply("div", result, self.powers(product, -1, sums, 1.0))
        return self.apply("where", product.mask, result, Literal(0.0, Type(FLOAT))) if product.mask else result

    def powers(self, product: _Product, sign: int, sums: dict[_Sum, Var], factor: float) -> Operand:
        """Product of a number and the factors, or the divisors; numbers first."""
        bases = [[base] * (sign * k) for base, k in product.powers if sign * k > 0]
        result: Operand | None = None if bases and factor == 1 else Literal(factor, Type(FLOAT))
        for base in sorted(chain(*bases), key=lambda base: len(base.type.shape)):
            if isinstance(base, _Sum) and base not in sums:
                terms = (self.value(t, sums) for t in base.terms)
                sums[base] = self.apply(base.op, *terms)
            value = sums[base] if isinstance(base, _Sum) else base
            result = value if result is None else self.apply("mul", result, value)
        assert result is not None  # a number, where there are no factors
        return result

    def apply(self, op: str, *args: Operand, made: Type | None = None, **attrs: object) -> Var:
        """Variable bound to an operation."""
        out = Var(next(self.free), made or Type(FLOAT, max((a.type.shape for a in args), key=len)))
        self.made.append(Equation((out,), op, args, tuple(attrs.items())))
        return out


def _of(x: Operand, products: Mapping[str, _Product]) -> _Product:
    """Product that a value is."""
    if isinstance(x, Literal):
        return _Product(float(x.value)) if x.value and math.isfinite(x.value) else _Product(math.nan)
    known = products.get(x.name)
    return _Product(powers=((x, 1),)) if known is None else known


def _common(a: _Product, b: _Product) -> _Product:
    """Least product that has both as factors."""
    powers = dict(a.powers)
    for base, k in b.powers:
        powers[base] = max(powers.get(base, 0), k)
    return _Product(powers=tuple(powers.items()))
