"""Curvature by composition: disciplined convex programming with signs and monotonicity taken from the ranges of the arguments.

Grant, Boyd & Ye 2006, section 3: h(u_1, ..., u_k) is convex where h is convex and, in each argument that varies, either the argument
is affine, or h is nondecreasing and it is convex, or h is nonincreasing and it is concave. Here h is judged on the range of its
arguments over the domain and every value of the streams, so `q * x + (1 - q) * maximum(x, 0)` with q in [0, 1] is accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from oco.compiler.prover.phrasing import Phrases
from oco.compiler.prover.ranges.enclosure import Enclosure
from oco.compiler.prover.terms.summands import summands, within_sums
from oco.compiler.prover.types import ProofRule, Step
from oco.dsl.atoms import ATOMS, Curvature, Monotone, form_of, forms
from oco.dsl.expressions import Array, Call, Constant, Expr, Index, Name, walk
from oco.dsl.intervals import Interval
from oco.dsl.records import dataclass

CONVEX_KINDS = (Curvature.CONSTANT, Curvature.AFFINE, Curvature.CONVEX)
CONCAVE_KINDS = (Curvature.CONSTANT, Curvature.AFFINE, Curvature.CONCAVE)
FLAT_KINDS = (Curvature.CONSTANT, Curvature.AFFINE)


FEW_SUMS = 8  # nested in one another

SecondOrder = Callable[[Call], "tuple[Curvature, Step] | None"]


@dataclass(frozen=True)
class Composition:
    """Curvature of a node in the varying names, with that of its function alone and its monotonicity in each argument."""

    curvature: Curvature
    own: Curvature
    monotone: tuple[Monotone, ...] = ()


@dataclass(frozen=True)
class Culprit:
    """The subexpression at which composition fails: `own` is the curvature found there, `wanted` what its place needs.

    `inside` is the function or operator that it stands in; None where it is the whole.
    """

    expr: Expr
    own: Curvature
    wanted: Curvature
    reason: str
    inside: Expr | None = None


class Curvatures:
    """The curvature of every node in the names of `varying`, all others held fixed at any value of their ranges."""

    def __init__(self, ranges: Enclosure, varying: frozenset[str], second_order: SecondOrder | None = None) -> None:
        self.ranges = ranges
        self.varying = varying
        self._second_order = second_order
        self._known: dict[int, tuple[Expr, Composition]] = {}
        self._passed_over: set[int] = set()
        self._steps: dict[int, Step] = {}
        self._phrases = Phrases()

    def __call__(self, expr: Expr) -> Curvature:
        return self.verdict(expr).curvature

    def verdict(self, expr: Expr) -> Composition:
        """Curvature of an expression, with the step that proves it or the place where composition fails."""
        nodes = list(walk(expr, self._known))
        inner = within_sums(expr, nodes)
        for node in nodes:
            self._known[id(node)] = (node, self._node(node))
            if id(node) in inner and len(inner) > FEW_SUMS:
                self._passed_over.add(id(node))  # asking each part of a long sum takes time with its square
            else:
                self._try_second_order(node)
        if id(expr) in self._passed_over:
            self._passed_over.remove(id(expr))
            self._try_second_order(expr)
        return self._known[id(expr)][1]

    def varies(self, expr: Expr) -> bool:
        """True unless the expression is proved constant in the names that vary."""
        return self(expr) is not Curvature.CONSTANT

    def _try_second_order(self, node: Expr) -> None:
        """Use the second derivative where composition gives no curvature."""
        verdict = self._known[id(node)][1]
        if verdict.curvature is not Curvature.UNKNOWN or self._second_order is None or not isinstance(node, Call):
            return
        result = self._second_order(node)
        if result is not None:
            self._known[id(node)] = (node, Composition(result[0], verdict.own, verdict.monotone))
            self._steps[id(node)] = result[1]

    def _node(self, node: Expr) -> Composition:
        match node:
            case Name(name=name):
                kind = Curvature.AFFINE if name in self.varying else Curvature.CONSTANT
                return Composition(kind, kind)
            case Call():
                return self._call(node)
            case Index(base=base):
                curvature = self._known[id(base)][1].curvature
                if any(self._known[id(i)][1].curvature is not Curvature.CONSTANT for i in node.items):
                    curvature = Curvature.UNKNOWN
                return Composition(curvature, Curvature.AFFINE, (Monotone.UP,) * len(node.children))
            case Array(items=items):
                results = [self._known[id(i)][1].curvature for i in items]
                return Composition(_worst(results), Curvature.AFFINE, (Monotone.UP,) * len(items))
        return Composition(Curvature.CONSTANT, Curvature.CONSTANT)

    def _call(self, node: Call) -> Composition:
        results = [self._known[id(a)][1].curvature for a in node.args]
        varies = tuple(c is not Curvature.CONSTANT for c in results)
        if not any(varies):
            return Composition(Curvature.CONSTANT, Curvature.CONSTANT)
        intervals = tuple(self.ranges(a) for a in node.args)
        row = ATOMS[node.atom]
        own = row.curvature(node, intervals, varies)
        monotone = row.monotone(node, *intervals)
        if row.allowed is not None and row.allowed(node, *intervals):  # the rules of an atom hold where it has values
            return Composition(Curvature.UNKNOWN, Curvature.UNKNOWN, monotone)
        if self._square_over_positive(node, results, intervals):
            return Composition(Curvature.CONVEX, Curvature.CONVEX, monotone)
        return Composition(composed(own, monotone, results), own, monotone)

    def _square_over_positive(self, node: Call, results: list[Curvature], intervals: tuple[Interval, ...]) -> bool:
        """u^2 / v is jointly convex for affine u and positive v, and falls as v grows, so v may be concave."""
        if form_of(node) != forms.QUOTIENT or results[1] not in CONCAVE_KINDS or not intervals[1].positive:
            return False
        above = node.args[0]
        if not isinstance(above, Call) or form_of(above) not in (forms.SQUARE, forms.SUM_OF_SQUARES):
            return False
        return self._known[id(above.args[0])][1].curvature in FLAT_KINDS

    # ---- reasons

    def step(self, expr: Expr) -> Step:
        """The derivation of the curvature of `expr`."""
        self.verdict(expr)
        for node in walk(expr, self._steps):
            if id(node) in self._known:
                self._steps[id(node)] = self._step(node)
        return self._steps[id(expr)]

    def _step(self, node: Expr) -> Step:
        verdict = self._known[id(node)][1]
        value = str(verdict.curvature)
        if isinstance(node, Name) and node.name in self.varying:
            return Step(ProofRule.VARIABLE, lambda: f"{self._phrases.say(node)} is {value}", value, (), node.span, node)
        if verdict.curvature is Curvature.CONSTANT:
            words = " does not depend on the decision"
            return Step(ProofRule.CONSTANT, lambda: self._phrases.say(node) + words, value, (), node.span, node)
        varying = [self._steps[id(c)] for c in node.children if id(c) in self._known and self.varies(c)]
        signs = [self.ranges.step(c) for c in node.children if self._sign_matters(node, c)]
        return Step(
            ProofRule.COMPOSITION, lambda: self._claim(node, verdict), value, (*varying, *signs), node.span, node
        )

    def _claim(self, node: Expr, verdict: Composition) -> str:
        claim = f"{self._phrases.say(node)} is {verdict.curvature}"
        if verdict.own is Curvature.AFFINE and (words := _linear_words(form_of(node))):
            return f"{claim}: {words}"
        return f"{claim}: {self._composition_words(node, verdict)}" if isinstance(node, Call) else claim

    def _composition_words(self, node: Call, verdict: Composition) -> str:
        parts = []
        for arg, monotone in zip(node.args, verdict.monotone):
            if self.varies(arg) and self(arg) is not Curvature.AFFINE:
                parts.append(f"{monotone} in {self._phrases.say(arg)}, which is {self(arg)}")
        own = f"{node.atom} is {verdict.own} there"
        return f"{own}, {' and '.join(parts)}" if parts else f"{own}, and its argument is affine"

    def _sign_matters(self, node: Expr, child: Expr) -> bool:
        """True if the rule used a child's range:
        the sign of a factor, or the range where a function is curved one way."""
        if not isinstance(node, Call) or isinstance(child, Constant):
            return False
        match form_of(node):
            case forms.TIMES | forms.MATRIX_PRODUCT | forms.QUOTIENT:
                return not self.varies(child) and self._known[id(node)][1].curvature is not Curvature.AFFINE
            case forms.SIZE | forms.SQUARE | forms.RECIPROCAL | forms.Power(exponent=None):
                return self(child) is not Curvature.AFFINE
        return False

    # ---- what is wrong

    def culprits(self, root: Expr, wanted: Curvature = Curvature.CONVEX) -> Iterator[Culprit]:
        """The subexpressions that keep `root` from being `wanted`, outermost place first; at least one where it is not."""
        allowed = {Curvature.CONVEX: CONVEX_KINDS, Curvature.CONCAVE: CONCAVE_KINDS}.get(wanted, FLAT_KINDS)
        verdict = self.verdict(root)
        if verdict.curvature in allowed:
            return
        if wanted is Curvature.AFFINE and verdict.curvature is not Curvature.UNKNOWN:
            yield Culprit(
                root, verdict.curvature, wanted, f"it is {verdict.curvature} where an affine expression is needed"
            )
            return
        if isinstance(root, Call) and verdict.own not in allowed:
            yield Culprit(root, verdict.own, wanted, _own_words(root, verdict.own))
            return
        pairs = list(zip(root.children, verdict.monotone or (Monotone.UP,) * len(root.children)))
        terms = summands(root)
        if len(terms) > FEW_SUMS:  # not one part of a long sum after the other
            pairs = [(u, Monotone.UP if sign > 0 else Monotone.DOWN) for sign, u in terms]
        for child, monotone in pairs:
            if id(child) in self._known:
                for result in self.culprits(child, _passed_down(wanted, monotone)):
                    yield replace(result, inside=root) if result.expr is child else result


def composed(own: Curvature, monotone: tuple[Monotone, ...], arguments: list[Curvature]) -> Curvature:
    """The composition rule."""
    pairs = [(m, c) for m, c in zip(monotone, arguments) if c is not Curvature.CONSTANT]
    if own in FLAT_KINDS and all(c is Curvature.AFFINE for _, c in pairs):
        return Curvature.AFFINE
    if own in CONVEX_KINDS and all(_passed_down(Curvature.CONVEX, m) is c or c is Curvature.AFFINE for m, c in pairs):
        return Curvature.CONVEX
    if own in CONCAVE_KINDS and all(_passed_down(Curvature.CONCAVE, m) is c or c is Curvature.AFFINE for m, c in pairs):
        return Curvature.CONCAVE
    return Curvature.UNKNOWN


def _passed_down(wanted: Curvature, monotone: Monotone) -> Curvature:
    """Curvature that an argument must have so that the whole is `wanted`."""
    if monotone is Monotone.NEITHER or wanted is Curvature.AFFINE:
        return Curvature.AFFINE
    if monotone is Monotone.UP:
        return wanted
    return Curvature.CONCAVE if wanted is Curvature.CONVEX else Curvature.CONVEX


def _worst(results: list[Curvature]) -> Curvature:
    """One curvature for entries of several."""
    kinds = set(results) - {Curvature.CONSTANT}
    if not kinds:
        return Curvature.CONSTANT
    if kinds == {Curvature.AFFINE}:
        return Curvature.AFFINE
    if kinds <= set(CONVEX_KINDS):
        return Curvature.CONVEX
    return Curvature.CONCAVE if kinds <= set(CONCAVE_KINDS) else Curvature.UNKNOWN


def _own_words(node: Call, own: Curvature) -> str:
    if own is Curvature.UNKNOWN and isinstance(form_of(node), forms.Bilinear):
        return "it multiplies two expressions that both depend on the decision"
    if own is Curvature.UNKNOWN:
        return "it is neither convex nor concave on its range"
    return f"it is {own}"


def _linear_words(form: forms.Form | None) -> str:
    """Why an affine function of this form keeps the curvature of its arguments."""
    match form:
        case forms.NEGATIVE:
            return "the negative turns curvature round"
        case forms.DIFFERENCE:
            return "a difference of these"
        case forms.Signed() | forms.TOTAL:
            return "a sum keeps the curvature of its terms"
        case forms.MEAN:
            return "a mean keeps the curvature of its terms"
        case forms.TRANSPOSE:
            return "a transpose keeps the curvature of the entries"
        case forms.TIMES | forms.MATRIX_PRODUCT:
            return "a product with a factor that the decision does not change"
        case forms.QUOTIENT:
            return "a quotient by what the decision does not change"
    return ""
