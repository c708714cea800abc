"""Facts of one function: the loss, or one entry of a constraint."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property

from oco.compiler.problem.calculus import gradient
from oco.compiler.prover.context import ProofContext
from oco.compiler.prover.curvature.composition import CONVEX_KINDS
from oco.compiler.prover.curvature.witness import convexity_witness
from oco.compiler.prover.fact import Fact
from oco.compiler.prover.phrasing import number, printed, say
from oco.compiler.prover.structure_facts import structure_fact
from oco.compiler.prover.suprema.attained import TIGHT, Slopes
from oco.compiler.prover.suprema.bounds import UpperBound
from oco.compiler.prover.suprema.lower_bound import Attained
from oco.compiler.prover.terms.piecewise import pieces
from oco.compiler.prover.types import ProofRule, Status, Step
from oco.dsl.build import call
from oco.dsl.expressions import Expr, names
from oco.dsl.intervals import Interval


class ScalarFunction:
    """One scalar function of decisions and streams, `words` being what it is called (`the loss`, `limits[0]`)."""

    def __init__(self, setting: ProofContext, expr: Expr, prefix: str, words: str) -> None:
        self.setting = setting
        self.expr = setting.simplify(expr)
        self.original = expr
        self.prefix = prefix
        self.words = words

    @cached_property
    def _pieces(self) -> tuple[Expr, ...]:
        return tuple(self.setting.simplify(p) for p in pieces(self.expr, self.setting.depends))

    @cached_property
    def gradients(self) -> tuple[Mapping[str, Expr], ...]:
        """The gradient in each decision, of that decision's shape, of each piece that the function is made of."""
        return tuple(self._gradient(p) for p in self._pieces)

    def _gradient(self, expr: Expr) -> Mapping[str, Expr]:
        result = gradient(expr, list(self.setting.blocks))
        return {name: self.setting.simplify(g) for name, g in result.items()}

    @cached_property
    def range(self) -> Interval:
        """Range of the values."""
        return self.setting.ranges(self.expr)

    def facts(self) -> Iterator[Fact]:
        """Facts on convexity, values, Lipschitz constants, second derivatives and structure."""
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
            why = Step(
                ProofRule.WITNESS, f"{self.words} is not convex: {witness.words}", False, (), self.expr.span, self.expr
            )
            return Fact(key, False, Status.REFUTED, why, witness=witness)
        return Fact(
            key, None, Status.UNKNOWN, self._searched(f"the curvature of {self.words}", curvatures.step(self.expr))
        )

    def _searched(self, about: str, why: Step) -> Step:
        """The reason of what is not known, under the word that a search gave up where one did."""
        return self.setting.search.ended(about, why) if self.setting.search.gave_up else why

    # ---- values

    @cached_property
    def _sides(self) -> tuple[UpperBound, UpperBound]:
        """Upper bounds of f and of -f."""
        bounds, negative = self.setting.bounds, self.setting.simplify(call("minus", self.expr))
        return bounds.upper(self.expr), bounds.upper(negative)

    def _values(self) -> Iterator[Fact]:
        up, down = self._sides
        largest = up if up.value >= down.value else down
        size = max(0.0, up.attained, down.attained)  # |f| is as large somewhere
        words = f"|{self.words}| is at most {number(largest.value)}"
        why = Step(ProofRule.LARGEST, words, largest.value, (up.step, down.step, *self._rewritten))
        yield bounded(f"{self.prefix}.bound", largest.value, why, largest.value <= TIGHT * size)
        yield bounded(f"{self.prefix}.upper", up.value, up.step, up.tight(size))
        least = Step(ProofRule.NEGATIVE, f"{self.words} is at least {number(-down.value)}", -down.value, (down.step,))
        yield bounded(f"{self.prefix}.lower", 0.0 - down.value, least, down.tight(size))

    # ---- slopes

    @cached_property
    def _steepest(self) -> tuple[UpperBound, Step]:
        """The largest l2 norm of the gradients of all pieces, and its derivation."""
        result, steps = self._of_pieces[0]
        root = self._met(self.setting.bounds.square_root(result), 0)
        count = len(self._pieces)
        over = f", the largest over its {count} pieces" if count > 1 else ""
        words = f"the l2 norm of the gradient of {self.words} is at most {number(root.value)}{over}"
        if count == 1:
            return root, Step(ProofRule.SQUARE_ROOT, words, root.value, (*steps, self._derived(self.gradients[0])))
        derived = tuple(self._derived(g) for g in self.gradients)
        top = Step(ProofRule.LARGEST, f"every piece is at most {number(result.value)}", result.value, steps)
        return root, Step(ProofRule.SQUARE_ROOT, words, root.value, (top, *derived))

    @cached_property
    def _of_pieces(self) -> tuple[tuple[UpperBound, tuple[Step, ...]], tuple[UpperBound, tuple[Step, ...]]]:
        """Bounds of the squared l2 norm and of the largest entry of the gradients of all pieces."""
        entries: list[Expr] = []
        for slopes in self.gradients:
            entries += [call("max", call("abs", g)) if g.shape else call("abs", g) for g in slopes.values()]
        bounds, simplify = self.setting.bounds, self.setting.simplify
        squares = bounds.largest([self._squares(g) for g in self.gradients])
        return squares, bounds.largest([simplify(e) for e in entries])

    def _met(self, bound: UpperBound, which: int) -> UpperBound:
        """Replace the value that a piece attains by the attained gradient of the function:
        a piece counts only where it is the function."""
        if not math.isfinite(bound.value) or (len(self._pieces) == 1 and bound.tight()):
            return bound
        attained = self._attained_slopes[which]
        return replace(
            bound, exact=False, reached=Attained(max(attained, bound.attained if len(self._pieces) == 1 else 0.0), {})
        )

    @cached_property
    def _attained_slopes(self) -> tuple[float, float]:
        """l2 norm and largest entry of gradients that are met away from kinks."""
        (squares, _), (entry, _) = self._of_pieces
        sought = self.setting.bounds.square_root(squares).value, entry.value
        return Slopes(self.setting, self._gradient(self.expr)).largest(*sought)

    def _squares(self, slopes: Mapping[str, Expr]) -> Expr:
        """The squared l2 norm of one gradient."""
        total: Expr = call("sum_squares", next(iter(slopes.values())))
        for g in list(slopes.values())[1:]:
            total = call("add", total, call("sum_squares", g))
        return self.setting.simplify(total)

    def _derived(self, slopes: Mapping[str, Expr]) -> Step:
        """Step that says that these are the slopes of the function, or of one of its pieces."""

        def words(of: str) -> str:
            return f"the gradient of {of} is " + ", ".join(f"towards {name} {say(g)}" for name, g in slopes.items())

        if len(self.gradients) == 1:
            return Step(
                ProofRule.GRADIENT, lambda: words(self.words), None, self._rewritten, None, (self.original, slopes)
            )
        piece = self._pieces[[id(g) for g in self.gradients].index(id(slopes))]
        return Step(ProofRule.GRADIENT, lambda: words(say(piece)), None, (self._cut,), None, (piece, slopes))

    @cached_property
    def _cut(self) -> Step:
        """Step that says that the function has everywhere the value of one of its pieces."""
        words = f"{self.words} is at each point one of {len(self._pieces)} pieces"
        return Step(ProofRule.PIECES, words, None, self._rewritten, self.original.span, (self.original, self._pieces))

    @cached_property
    def _rewritten(self) -> tuple[Step, ...]:
        """Step that says that the function equals the one of the derivation, where it was brought into another form."""
        if printed(self.expr) == printed(self.original):
            return ()
        words = f"{self.words}, {say(self.original)}, equals `{printed(self.expr)}`"
        return (Step(ProofRule.REWRITE, words, None, (), self.original.span, (self.original, self.expr)),)

    @cached_property
    def _largest_slope(self) -> tuple[UpperBound, tuple[Step, ...]]:
        """The largest absolute value of an entry of the gradient of any piece."""
        bound, steps = self._of_pieces[1]
        return self._met(bound, 1), steps

    def _lipschitz(self) -> Iterator[Fact]:
        l2, why = self._steepest
        yield bounded(f"{self.prefix}.lipschitz.l2", l2.value, why, l2.tight())
        l1, steps = self._largest_slope
        words = f"no entry of the gradient is larger than {number(l1.value)}"
        yield bounded(
            f"{self.prefix}.lipschitz.l1", l1.value, Step(ProofRule.LARGEST, words, l1.value, steps), l1.tight()
        )

    @property
    def attained(self) -> dict[str, float]:
        """Values that |f|, the norms of its gradient and its curvature reach whatever the streams do, by the key of the fact.

        An assumption may say of the streams more than their ranges do; it cannot change what does not depend on them.
        """
        results: list[tuple[str, UpperBound]] = []
        if self.setting.streams.keys().isdisjoint(names(self.expr)):
            results += [("bound", b) for b in self._sides]
            results += [("lipschitz.l2", self._steepest[0]), ("lipschitz.l1", self._largest_slope[0])]
        values: dict[str, float] = {}
        for kind, b in results:
            if b.reached is not None:
                key = f"{self.prefix}.{kind}"
                values[key] = max(b.reached.value, values.get(key, 0.0))
            elif b.exact:
                values[f"{self.prefix}.{kind}"] = b.value
        most = self.setting.hessians.moduli(self.expr).most
        if math.isfinite(most):  # no modulus of strong convexity is larger than the largest eigenvalue
            values[f"{self.prefix}.strong_convexity.l2"] = most
        return values

    def _second_order(self) -> Iterator[Fact]:
        hessians = self.setting.hessians
        result = hessians.moduli(self.expr)
        smooth = result.steepest if math.isfinite(result.steepest) and hessians.differentiable(self.expr) else math.inf
        modulus = max(0.0, result.least)
        steep, strong = hessians.tight(self.expr, smooth, modulus)
        words = f"the gradient has the Lipschitz constant {number(smooth)}"
        reason = Step(ProofRule.SMOOTHNESS, words, smooth, (result.change or result.step,))
        if not math.isfinite(smooth):
            reason = self._searched(f"the second derivative of {self.words}", reason)
        yield bounded(f"{self.prefix}.smoothness.l2", smooth, reason, steep)
        words = f"the modulus of strong convexity is at least {number(modulus)}"
        why = Step(ProofRule.STRONG_CONVEXITY, words, modulus, (result.step,))
        proved = self.convexity.status is Status.PROVED or result.least >= 0
        status = Status.PROVED if proved else Status.UNKNOWN
        yield Fact(f"{self.prefix}.strong_convexity.l2", modulus, status, why, loose=proved and not strong)


def bounded(key: str, value: float, why: Step, tight: bool = False) -> Fact:
    """A number, where there is one: loose unless it is known to be within 5% of the best."""
    if not math.isfinite(value):
        return Fact(key, None, Status.UNKNOWN, why)
    return Fact(key, value, Status.PROVED, why, loose=not tight)
