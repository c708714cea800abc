"""Facts of one function: the loss, or one entry of a constraint."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property

from oco.compiler.calculus import gradient
from oco.compiler.facts.bounds import Bound
from oco.compiler.facts.curvature import CONVEX_KINDS
from oco.compiler.facts.kinks import differentiable
from oco.compiler.facts.pieces import pieces
from oco.compiler.facts.setting import Setting
from oco.compiler.facts.structure_facts import structure_fact
from oco.compiler.facts.types import Fact, Status, Step
from oco.compiler.facts.witness import convexity_witness
from oco.compiler.facts.words import number, printed, say
from oco.dsl.build import call
from oco.dsl.expressions import Expr
from oco.dsl.intervals import Interval


class Function:
    """One scalar function of decisions and streams, `words` being what it is called (`the loss`, `limits[0]`)."""

    def __init__(self, setting: Setting, expr: Expr, prefix: str, words: str) -> None:
        self.setting = setting
        self.expr = setting.simplify(expr)
        self.original = expr
        self.prefix = prefix
        self.words = words

    @cached_property
    def gradients(self) -> tuple[Mapping[str, Expr], ...]:
        """The gradient in each decision, of that decision's shape, of each piece that the function is made of."""
        parts = pieces(self.expr, self.setting.depends)
        return tuple(self._gradient(self.setting.simplify(p)) for p in parts)

    def _gradient(self, expr: Expr) -> Mapping[str, Expr]:
        found = gradient(expr, list(self.setting.decisions))
        return {name: self.setting.simplify(g) for name, g in found.items()}

    @cached_property
    def range(self) -> Interval:
        return self.setting.ranges(self.expr)

    def facts(self) -> Iterator[Fact]:
        yield self.convexity
        yield from self._values()
        yield from self._lipschitz()
        yield from self._second_order()
        yield structure_fact(self.setting, self.expr, self.prefix, self.words)

    @cached_property
    def convexity(self) -> Fact:
        """Proved by composition or second derivatives, refuted by a witness, else unknown."""
        key, curvatures = f"{self.prefix}.convex", self.setting.curvatures
        if curvatures(self.expr) in CONVEX_KINDS:
            return Fact(key, True, Status.PROVED, curvatures.step(self.expr))
        witness = convexity_witness(self.setting, self.expr)
        if witness is not None:
            why = Step("witness", f"{self.words} is not convex: {witness.words}", False, (), self.expr.span, self.expr)
            return Fact(key, False, Status.REFUTED, why, witness=witness)
        return Fact(key, None, Status.UNKNOWN, curvatures.step(self.expr))

    # ---- values

    @cached_property
    def _sides(self) -> tuple[Bound, Bound]:
        """Upper bounds of f and of -f."""
        bounds, negative = self.setting.bounds, self.setting.simplify(call("minus", self.expr))
        return bounds.upper(self.expr), bounds.upper(negative)

    def _values(self) -> Iterator[Fact]:
        up, down = self._sides
        largest = up if up.value >= down.value else down
        words = f"|{self.words}| is at most {number(largest.value)}"
        why = Step("largest", words, largest.value, (up.step, down.step, *self._rewritten))
        yield bounded(f"{self.prefix}.bound", largest.value, why, largest.loose)
        yield bounded(f"{self.prefix}.upper", up.value, up.step, up.loose)
        least = Step("negative", f"{self.words} is at least {number(-down.value)}", -down.value, (down.step,))
        yield bounded(f"{self.prefix}.lower", 0.0 - down.value, least, down.loose)

    # ---- slopes

    @cached_property
    def lipschitz(self) -> Bound:
        """Of the l2 norm of the whole gradient."""
        return max((self._norm(g) for g in self.gradients), key=lambda b: b.value)

    def _norm(self, slopes: Mapping[str, Expr]) -> Bound:
        """The l2 norm of one gradient."""
        total: Expr = call("sum_squares", next(iter(slopes.values())))
        for g in list(slopes.values())[1:]:
            total = call("add", total, call("sum_squares", g))
        found = self.setting.bounds.upper(self.setting.simplify(total))
        words = ", ".join(say(g) for g in slopes.values())
        root = self.setting.bounds.square_root(found, f"the l2 norm of the gradient {words} is at most")
        return replace(root, step=replace(root.step, premises=(*root.step.premises, self._derived(slopes))))

    def _derived(self, slopes: Mapping[str, Expr]) -> Step:
        """That these are the slopes of the function, or of one of its pieces."""
        of = self.words if len(self.gradients) == 1 else f"a piece of {self.words}"
        each = ", ".join(f"towards {name} {say(g)}" for name, g in slopes.items())
        return Step("gradient", f"the gradient of {of} is {each}", None, self._rewritten, None, (self.original, slopes))

    @cached_property
    def _rewritten(self) -> tuple[Step, ...]:
        """That the function is the one that the derivation is about, where it was brought into another form."""
        if printed(self.expr) == printed(self.original):
            return ()
        words = f"{self.words}, {say(self.original)}, equals `{printed(self.expr)}`"
        return (Step("rewrite", words, None, (), self.original.span, (self.original, self.expr)),)

    def _lipschitz(self) -> Iterator[Fact]:
        l2 = self.lipschitz
        yield bounded(f"{self.prefix}.lipschitz.l2", l2.value, self._of_pieces(l2), l2.loose)
        largest = [self.setting.simplify(_largest(g)) for slopes in self.gradients for g in slopes.values()]
        found = [self.setting.bounds.upper(e) for e in largest]
        worst = max(found, key=lambda b: b.value)
        words = f"no entry of the gradient is larger than {number(worst.value)}"
        why = Step("largest", words, worst.value, tuple(b.step for b in found))
        yield bounded(f"{self.prefix}.lipschitz.l1", worst.value, why, worst.loose)

    def _of_pieces(self, worst: Bound) -> Step:
        """The step for the whole, from those of its pieces."""
        if len(self.gradients) == 1:
            return worst.step
        steps = tuple(self._norm(g).step for g in self.gradients)
        words = f"at most {number(worst.value)}, the largest over the {len(steps)} pieces that the function is made of"
        return Step("largest piece", words, worst.value, steps)

    def _second_order(self) -> Iterator[Fact]:
        least, most, step = self.setting.hessians.eigenvalues(self.expr)
        smooth = max(abs(least), abs(most)) if differentiable(self.setting, self.expr) else math.inf
        words = f"the gradient has the Lipschitz constant {number(smooth)}"
        yield bounded(f"{self.prefix}.smoothness.l2", smooth, Step("smoothness", words, smooth, (step,)))
        modulus = max(0.0, least)
        why = Step(
            "strong convexity", f"the modulus of strong convexity is at least {number(modulus)}", modulus, (step,)
        )
        proved = self.convexity.status is Status.PROVED or least >= 0
        yield Fact(f"{self.prefix}.strong_convexity.l2", modulus, Status.PROVED if proved else Status.UNKNOWN, why)


def _largest(g: Expr) -> Expr:
    """The largest absolute value of an entry."""
    return call("max", call("abs", g)) if g.shape else call("abs", g)


def bounded(key: str, value: float, why: Step, loose: bool = False) -> Fact:
    """A number, where there is one."""
    if not math.isfinite(value):
        return Fact(key, None, Status.UNKNOWN, why)
    return Fact(key, value, Status.PROVED, why, loose=loose)
