"""Pass: numbers that multiply or divide an array are multiplied with each other first: `-(x / a) * b` is `x * (-b / a)`.

For targets where an operation on an array is a call that costs ten times one on numbers; it changes the last bits, in the same way whatever
powers of two are among the factors. A factor of a sum goes to its terms, where each of them has a factor already, and one of a choice to
its sides. A number over a multiple of an array is one over the array: `a / (b + c * x)` is `(a / c) / (b / c + x)`. A division is one by
a number that is known to be at least `TINY`: what an array is scaled by, so that nothing overflows, may be so small that its reciprocal
is infinite.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import field, replace

from oco.compiler.ir.dead_code import remove_dead_code
from oco.compiler.ir.lower_bounds import Bounds, lower_bounds
from oco.compiler.ir.program import Block, DType, Equation, Function, Literal, Operand, Program, Type, Var
from oco.compiler.ir.rewrite import free_names, map_functions, read_by
from oco.dsl.magnitudes import TINY
from oco.dsl.records import dataclass

NUMBER = Type(DType.FLOAT)
Link = tuple[str, Operand | None]
"""Operation by which a factor comes in: "mul" or "div" with a number, or "neg"."""


def is_exact(link: Link) -> bool:
    """True for a sign and a power of two, which round nothing."""
    number = link[1]
    return number is None or (isinstance(number, Literal) and math.frexp(number.value)[0] == 0.5)


def parted(links: Sequence[Link]) -> tuple[float, list[tuple[str, Operand]]]:
    """Product of the exact factors, and the others in their order."""
    exact = 1.0
    for op, number in filter(is_exact, links):
        value = number.value if isinstance(number, Literal) else -1.0
        exact = exact / value if op == "div" else exact * value
    return exact, [(op, number) for op, number in links if number is not None and not is_exact((op, number))]


def join_factors(program: Program) -> Program:
    """Put one product with a number in the place of several."""
    program = remove_dead_code(program)  # which would count among the reads
    constants = {g.var.name: float(g.value.min()) for g in program.constants if g.value.size}
    bounds = lower_bounds(program)

    def joined(f: Function) -> Function:
        least = {**constants, **bounds[f.name]}
        return f.having(_Joining(least, Counter(read_by(f.body)), free_names(f, program)).block(f.body))

    return map_functions(program, joined)


@dataclass
class _Joining:
    """Rewriting of one function, with lower bounds of its values. `made_by`: equations of this block alone, since a loop would repeat what
    is outside it.
    """

    least: Bounds
    reads: Counter[str]
    free: Iterator[str]
    made_by: dict[str, Equation] = field(default_factory=dict)
    made: list[Equation] = field(default_factory=list)

    def block(self, block: Block) -> Block:
        made: list[Equation] = []
        inner = replace(self, made_by={}, made=made)
        for e in block.equations:
            if e.blocks:
                e = e.having(e.args, tuple(self.block(b) for b in e.blocks))
            elif (own := self.link(e)) is not None and (value := inner.scaled(own[0], [own[1]])) is not None:
                e = replace(e, op=value.op, args=value.args, attrs=())
            elif (shorter := inner.over(e)) is not None:
                e = replace(e, args=shorter)
            made.append(e)
            for v in e.outs:
                inner.made_by[v.name] = e
        return block.having(tuple(made))

    def behind(self, operand: Operand) -> Equation | None:
        """Equation of a value that nothing else reads."""
        alone = isinstance(operand, Var) and self.reads[operand.name] == 1
        return self.made_by.get(operand.name) if alone else None  # type: ignore[union-attr]

    def scaled(self, x: Operand, links: Sequence[Link]) -> Equation | None:
        """Equation of x under these factors, the first one first; None where x has none to join them."""
        e = self.behind(x)
        if e is None:
            return None
        if (own := self.link(e)) is not None:
            deeper = [own[1], *links]
            return self.scaled(own[0], deeper) or self.product(own[0], deeper)
        if e.op == "where" and all(self.takes(a) for a in e.args[1:]):
            return Equation((), "where", (e.args[0], *(self.taking(a, links) for a in e.args[1:])))
        if e.op not in ("add", "sub") or any(a.type.shape != x.type.shape for a in e.args):
            return None
        if not all(map(self.is_rounded, e.args)):
            return None
        sides = [self.bound(self.scaled(a, links), a.type) for a in e.args]
        return Equation((), e.op, tuple(sides))

    def takes(self, x: Operand) -> bool:
        """True for a side of a choice that is a number, or an array with a factor: a number over an array has one."""
        e = self.behind(x)
        return x.type == NUMBER or (e is not None and (self.link(e) is not None or _is_inverse(e)))

    def taking(self, x: Operand, links: Sequence[Link]) -> Operand:
        """Side of a choice under factors that it takes."""
        e = self.behind(x)
        if x.type == NUMBER or e is None:
            return self.times(x, links)
        if _is_inverse(e):
            return self.bound(Equation((), "div", (self.times(e.args[0], links), e.args[1])))
        return self.bound(self.scaled(x, links), x.type)

    def times(self, number: Operand, links: Sequence[Link]) -> Operand:
        """Number under factors."""
        exact, rounded = parted(links)
        result = (
            Literal(number.value * exact, NUMBER) if isinstance(number, Literal) else self.scale("mul", number, exact)
        )
        for op, other in rounded:
            result = self.number(op, result, other)
        return result

    def over(self, e: Equation) -> tuple[Operand, Operand] | None:
        """Number and array with the quotient of a number by a multiple of an array, or by that and a number; None for other equations."""
        if not _is_inverse(e):
            return None
        number, divisor = e.args
        total = self.behind(divisor)
        offset = total.args if total is not None and total.op == "add" and total.args[0].type == NUMBER else None
        x, links = self.stripped(offset[1] if offset else divisor)
        if not links or not TINY <= parted(links)[0] <= 1 / TINY:
            return None
        if not all(n is None or (self.divides(n) and (op == "mul" or is_exact((op, n)))) for op, n in links):
            return None
        inverse = [("div" if op == "mul" else "mul", n) for op, n in links if n is not None]
        if offset:
            x = self.bound(Equation((), "add", (self.times(offset[0], inverse), x)))
        return self.times(number, inverse), x

    def stripped(self, x: Operand) -> tuple[Operand, list[Link]]:
        """Array without its factors, and these."""
        e = self.behind(x)
        if e is None:
            return x, []
        if (own := self.link(e)) is not None:
            inner, links = self.stripped(own[0])
            return inner, [*links, own[1]]
        if e.op != "mul" or any(a.type != x.type for a in e.args):
            return x, []
        (a, first), (b, second) = map(self.stripped, e.args)
        links = first + second
        if a == b and (moved := self.without_scale(a)) is not None:
            a = b = moved[0]
            links += [moved[1], moved[1]]
        return (self.bound(Equation((), "mul", (a, b))), links) if links else (x, [])

    def without_scale(self, x: Operand) -> tuple[Operand, Link] | None:
        """Array b / c + x and the factor c of b + c x, which its square alone reads, for a power of two c; None for other arrays."""
        e = self.made_by.get(x.name) if isinstance(x, Var) and self.reads[x.name] == 2 else None
        if e is None or e.op != "add" or not isinstance(e.args[0], Literal):
            return None
        inner = self.behind(e.args[1])
        own = None if inner is None else self.link(inner)
        if own is None or own[1][0] != "mul" or not is_exact(own[1]) or own[0].type != x.type:
            return None
        return self.bound(Equation((), "add", (self.times(e.args[0], [("div", own[1][1])]), own[0]))), own[1]

    def product(self, x: Operand, links: Sequence[Link]) -> Equation:
        """Equation of x times all of these factors; those that are exact go to the first of the others, and change no rounding."""
        exact, rounded = parted(links)
        if not rounded:
            return Equation((), "mul", (x, Literal(exact, NUMBER)))
        (op, number), *others = rounded
        if not others and (op == "mul" or exact > 0.0):
            return Equation((), op, (x, self.scale(op, number, exact)))
        if op == "div":
            factor = self.number("div", Literal(exact, NUMBER), number)
        else:
            factor = self.scale("mul", number, exact)
        for op, number in others:
            factor = self.number(op, factor, number)
        return Equation((), "mul", (x, factor))

    def scale(self, op: str, number: Operand, exact: float) -> Operand:
        """Number times or over an exact factor, with its lower bound."""
        if exact == 1.0:
            return number
        e = self.behind(number)
        if e is not None and e.op == "mul" and isinstance(e.args[0], Literal):  # 4 v for 64 v / 16
            factor, number = e.args[0].value, e.args[1]
            exact, op = (factor / exact if op == "div" else factor * exact), "mul"
            return number if exact == 1.0 else self.number("mul", Literal(exact, NUMBER), number)
        scaled = self.number(op, number, Literal(exact, NUMBER))
        if exact > 0.0 and isinstance(number, Var) and isinstance(scaled, Var) and number.name in self.least:
            least = self.least[number.name]
            self.least[scaled.name] = least / exact if op == "div" else least * exact
        return scaled

    def number(self, op: str, *args: Operand) -> Operand:
        """Number that is bound to an operation on numbers."""
        return self.bound(Equation((), op, args), NUMBER)

    def bound(self, e: Equation | None, made: Type | None = None) -> Operand:
        """Variable that is bound to an equation."""
        assert e is not None  # each term has a factor
        out = Var(next(self.free), made or next(a.type for a in e.args if a.type.shape))
        e = replace(e, outs=(out,))
        self.made.append(e)
        self.made_by[out.name] = e
        self.reads[out.name] = 1
        return out

    def is_rounded(self, x: Operand) -> bool:
        """True for an array with a factor that is not a power of two: those change no rounding, so that no sum is taken apart for them."""
        own = None if (e := self.behind(x)) is None else self.link(e)
        return own is not None and (not is_exact(own[1]) or own[1][1] is None or self.is_rounded(own[0]))

    def link(self, e: Equation) -> tuple[Operand, Link] | None:
        """Array of floats under one factor, and that factor; None for other equations."""
        if e.op not in ("mul", "div", "neg") or not e.outs[0].type.shape or e.outs[0].type.dtype is not DType.FLOAT:
            return None
        if e.op == "neg":
            return e.args[0], ("neg", None)
        for x, number in (e.args, e.args[::-1]) if e.op == "mul" else (e.args,):
            if x.type == e.outs[0].type and number.type == NUMBER and (e.op == "mul" or self.divides(number)):
                return x, (e.op, number)
        return None

    def divides(self, number: Operand) -> bool:
        """True for a divisor whose reciprocal is finite."""
        least = number.value if isinstance(number, Literal) else self.least.get(number.name, 0.0)
        return least >= TINY


def _is_inverse(e: Equation) -> bool:
    """True for a number over an array."""
    return (
        e.op == "div" and e.args[0].type == NUMBER and bool(e.args[1].type.shape) and e.args[1].type == e.outs[0].type
    )
