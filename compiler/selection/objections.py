"""Objections to algorithms and to their theorems on a model."""

from __future__ import annotations

from oco.compiler.algorithms import Algorithm
from oco.compiler.proximal.solvable import known_objections
from oco.compiler.theory.theorems import Objection, Situation, Theorem, Violation
from oco.compiler.theory.unit_free import without_units
from oco.dsl.statements import Feedback

NEEDS_DECISION = Objection(
    "it needs the loss of its decision, and the loss of the draw is seen", "write `feedback gradient`"
)


def required(a: Algorithm, s: Situation, asked: bool) -> list[Objection]:
    """Requirements of a rule that do not hold; without those that a user who names it (`asked`) takes into account."""
    results = [o for h in a.requirements if isinstance(o := h.test(s), Objection)]
    if s.canonical.feedback.gives_values_alone and any(b.rounded for b in s.canonical.blocks) and not a.reads_draws:
        results.append(NEEDS_DECISION)
    if s.canonical.known:
        results += known_objections(s, bool(a.plays) or a.prepares(s.canonical))
    return [o for o in results if not (asked and o.slow) and not (o.unasked and (asked or s.seen is not None))]


def theorem_objections(theorem: Theorem, s: Situation, scaled: bool) -> list[Objection]:
    """Objections to a theorem on the problem that its settings are made for, in the user's numbers where they hold there too."""
    result = theorem.objections(s)
    if not scaled:
        return result
    inner = theorem.objections(without_units(s, theorem.norm)[0])
    return inner and (result or inner)


def inapplicable(a: Algorithm, s: Situation) -> list[Objection]:
    """Objections that no setting removes: the rule reads data that the feedback or the model does not have."""
    results: list[Objection] = []
    hard = any(t.violation is Violation.HARD for t in a.theorems)
    reads = a.reads or (Feedback.FULL if hard else Feedback.GRADIENT)
    if s.canonical.feedback.gives_values_alone and not reads.gives_values_alone:
        message = f"it needs gradients, and {s.canonical.feedback} feedback gives only values"
        results.append(Objection(message, "write `feedback gradient`"))
    if reads is Feedback.FULL and s.canonical.feedback is not Feedback.FULL:
        results.append(Objection("it needs each round's constraints as functions", "write `feedback full`"))
    if hard and s.equalities and not a.balances:
        results.append(Objection("it has no rule for equalities on average", "write `each round` after them"))
    if hard and not s.constraints and all(t.violation is Violation.HARD for t in a.theorems):
        results.append(Objection("it has no rule without constraints", "write `using ogd`"))
    return results
