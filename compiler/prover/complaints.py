"""Errors about a model's curvature, in the user's words and at the user's text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from oco.compiler.problem.canonical import Canonical, Inequality
from oco.compiler.problem.expanded_products import square_in
from oco.compiler.problem.opposed_kinks import if_data_allow
from oco.compiler.prover.context import ProofContext
from oco.compiler.prover.curvature.composition import FLAT_KINDS, Culprit
from oco.compiler.prover.fact import Fact
from oco.compiler.prover.phrasing import say
from oco.compiler.prover.types import ProofRule, Status
from oco.dsl.atoms import Curvature, form_of, forms
from oco.dsl.diagnostics import Diagnostic, Severity
from oco.dsl.expressions import Call, Expr
from oco.dsl.source import Span
from oco.dsl.statements import Relation

LOSS, GAIN = "the loss", "the gain"


def complaints(setting: ProofContext, facts: Mapping[str, Fact]) -> Iterator[Diagnostic]:
    """An error for each function that is refuted, a warning for each that is not decided."""
    canonical = setting.canonical
    objective, gain = canonical.objective, canonical.model.maximized
    yield from _judged(setting, objective, facts["loss.convex"], GAIN if gain else LOSS, "OCO501", objective.span)
    reported: set[str] = set()
    for h in canonical.equalities:
        if setting.curvatures(setting.simplify(h.expr)) not in FLAT_KINDS:
            yield _not_affine(setting, h.label, h.expr, h.span)
    for c in canonical.inequalities:
        fact = facts[f"constraints.{c.label}.convex"]
        if c.origin in reported or fact.status is Status.PROVED:
            continue
        reported.add(c.origin)
        if c.label != c.origin:
            yield _not_affine(setting, c.origin, c.expr, c.span)
        else:
            yield from _judged(setting, c.expr, fact, f"constraint `{c.label}`", "OCO502", c.span, _side(canonical, c))


def _side(canonical: Canonical, c: Inequality) -> str:
    relation = next(k.relation for k in canonical.model.constraints if k.label == c.origin)
    if relation is Relation.GE:
        return "with `>=` the left side minus the right must be concave"
    return "with `<=` the left side minus the right must be convex"


def _judged(
    setting: ProofContext, expr: Expr, fact: Fact, what: str, code: str, span: Span | None, side: str = ""
) -> Iterator[Diagnostic]:
    if fact.status is Status.PROVED:
        return
    culprit = next(setting.curvatures.culprits(expr), None)
    where = culprit.expr.span if culprit is not None and culprit.expr.span is not None else span
    named = f": {say(culprit.expr)} {_described(culprit)}" if culprit is not None else ""
    shape = "concave" if what == GAIN else "convex"
    joined = _with_kinks_joined(setting.canonical, expr)
    if fact.status is Status.REFUTED:
        way_out = joined or _way_out(culprit, what)
        hint = "; ".join(p for p in (way_out, side) if p)
        note = fact.witness.words if fact.witness is not None else ""
        yield Diagnostic(code, f"{what} is not {shape}{named}", where, hint, note=note)
        return
    hint = joined or "no decision was found that refutes it either; theorems that need convexity do not apply"
    if fact.why is not None and fact.why.rule == ProofRule.NOT_SEARCHED:
        hint = f"{ProofRule.NOT_SEARCHED}: {setting.search.advice}; as long as it is not known, theorems that need convexity do not apply"
    yield Diagnostic("OCO602", f"it is not known whether {what} is {shape}{named}", where, hint, Severity.WARNING)


def _with_kinks_joined(canonical: Canonical, expr: Expr) -> str:
    """Form that is convex where data keep the price of kinks that meet in one place at 0 or more; "" where none does."""
    form = if_data_allow(expr, tuple(b.name for b in canonical.blocks), canonical.streams) if expr.shape == () else None
    if form is None:
        return ""
    price, terms = form
    together = f"its kinks in one place count {say(price)} together, which is below 0 for some data in their ranges"
    return f"{together}; where no data are like that, write {say(terms)} for them"


def _described(culprit: Culprit) -> str:
    """`is concave where a convex expression is needed`."""
    reason = culprit.reason.removeprefix("it ")
    if culprit.own is Curvature.UNKNOWN:
        return reason
    article = "an" if culprit.wanted is Curvature.AFFINE else "a"
    return f"is {culprit.own} where {article} {culprit.wanted} expression is needed"


def _way_out(culprit: Culprit | None, what: str) -> str:
    if culprit is None:
        return ""
    node = culprit.expr
    if (square := square_in(node)) is not None:
        return f"it is a square times {say(square)}, which takes both signs for data in their ranges; where it has one, the ranges say so"
    if isinstance(node, Call) and isinstance(form_of(node), forms.Bilinear) and culprit.own is Curvature.UNKNOWN:
        return "one factor of a product must be a number, a param or a stream"
    if culprit.wanted is Curvature.AFFINE and isinstance(culprit.inside, Call):
        return _affine_place(node, culprit.inside)
    if culprit.own is Curvature.CONCAVE and what == LOSS:
        return f"the compiler minimizes; to make {say(node)} large, put a minus before it, or write `maximize`"
    if culprit.own is Curvature.CONVEX and what == GAIN:
        return f"a gain is concave; to make {say(node)} small, put a minus before it"
    if culprit.own is Curvature.CONVEX and culprit.wanted is Curvature.CONCAVE:
        return f"{say(node)} stands where its negative counts, as after a minus or on the other side of the relation"
    return ""


def _affine_place(node: Expr, inside: Call) -> str:
    """Why `inside` takes an affine expression alone: it neither only rises nor only falls with it."""
    if isinstance(form_of(inside), (forms.Bilinear, forms.Quotient)):
        factors = [a for a in inside.args if a is not node]
        if factors:
            return f"{say(factors[0])} takes both signs; where it is never negative, its range says so: `in [0, ...]`"
    return (
        f"{say(inside)} rises with it in places and falls in others, so that only an affine expression may stand there"
    )


def _not_affine(setting: ProofContext, label: str, expr: Expr, span: Span | None) -> Diagnostic:
    culprit = next(setting.curvatures.culprits(expr, Curvature.AFFINE), None)
    where = culprit.expr.span if culprit is not None and culprit.expr.span is not None else span
    named = f": {say(culprit.expr)} {_described(culprit)}" if culprit is not None else ""
    hint = "an equality holds on a convex set only where both sides are affine; state an inequality if one direction is enough"
    return Diagnostic("OCO503", f"`==` in `{label}` is not affine in the decisions{named}", where, hint)
