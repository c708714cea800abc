"""Facts of one function: the loss, or one entry of a constraint."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from oco.compiler.calculus import gradient
from oco.compiler.facts.curvature import CONVEX_KINDS
from oco.compiler.facts.setting import Setting
from oco.compiler.facts.types import Fact, Status, Step
from oco.compiler.facts.witness import convexity_witness
from oco.compiler.facts.words import number, say
from oco.dsl.expressions import Expr
from oco.dsl.intervals import Interval, interval


@dataclass(frozen=True)
class Bound:
    """A proved number with its derivation; `loose` where it need not be within 5% of the true one."""

    value: float
    step: Step
    loose: bool = False


class Function:
    """One scalar function of decisions and streams, `words` being what it is called (`the loss`, `limits[0]`)."""

    def __init__(self, setting: Setting, expr: Expr, prefix: str, words: str) -> None:
        self.setting = setting
        self.expr = setting.simplify(expr)
        self.original = expr
        self.prefix = prefix
        self.words = words

    @cached_property
    def gradients(self) -> Mapping[str, Expr]:
        """The gradient in each decision, of that decision's shape."""
        found = gradient(self.expr, list(self.setting.decisions))
        return {name: self.setting.simplify(g) for name, g in found.items()}

    @cached_property
    def range(self) -> Interval:
        return self.setting.ranges(self.expr)

    def facts(self) -> Iterator[Fact]:
        yield self.convexity
        yield self._bound()
        yield from self._lipschitz()
        yield from self._second_order()

    def _second_order(self) -> Iterator[Fact]:
        least, most, step = self.setting.hessians.eigenvalues(self.expr)
        smooth = max(abs(least), abs(most))
        key = f"{self.prefix}.smoothness.l2"
        if math.isinf(smooth):
            yield Fact(key, None, Status.UNKNOWN, step)
        else:
            why = Step("smoothness", f"the gradient has the Lipschitz constant {number(smooth)}", smooth, (step,))
            yield Fact(key, smooth, Status.PROVED, why)
        key, modulus = f"{self.prefix}.strong_convexity.l2", max(0.0, least)
        why = Step(
            "strong convexity", f"the modulus of strong convexity is at least {number(modulus)}", modulus, (step,)
        )
        yield Fact(key, modulus, Status.PROVED if least >= 0 else Status.UNKNOWN, why)

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

    def _bound(self) -> Fact:
        found = self.range.abs().greatest
        why = Step(
            "largest", f"|{self.words}| is at most {number(found)}", found, (self.setting.ranges.step(self.expr),)
        )
        return Fact(f"{self.prefix}.bound", found, Status.PROVED, why)

    def _lipschitz(self) -> Iterator[Fact]:
        ranges = [self.setting.ranges(g).broadcast(self.setting.blocks[n].shape) for n, g in self.gradients.items()]
        steps = tuple(self.setting.ranges.step(g) for g in self.gradients.values())
        total = interval(0.0, 0.0, ())
        for r in ranges:
            total = total + r.square().sum()
        l2 = total.sqrt().greatest
        l1 = max(float(r.magnitude.max()) for r in ranges)
        words = ", ".join(say(g) for g in self.gradients.values())
        for key, value, norm in (("l2", l2, "l2"), ("l1", l1, "linf")):
            why = Step("entrywise norm", f"the gradient {words} has {norm} norm at most {number(value)}", value, steps)
            yield Fact(f"{self.prefix}.lipschitz.{key}", value, Status.PROVED, why)
