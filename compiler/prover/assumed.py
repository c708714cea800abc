"""Facts that the user declares: `assume KEY <= value` has status `declared` where it says more than is proved."""

from __future__ import annotations

from collections.abc import Mapping

from oco.compiler.problem.canonical import Assumed
from oco.compiler.prover.fact import Fact
from oco.compiler.prover.phrasing import number
from oco.compiler.prover.types import ProofRule, Status, Step
from oco.dsl.diagnostics import Diagnostic, Severity
from oco.dsl.fact_keys import is_claim
from oco.dsl.statements import Relation

SIGNED = ("upper", "lower", "V_x", "V_g")
"""Facts that may be negative: all others that are bounded from above are sizes."""


def declared(assumption: Assumed, fact: Fact, attained: Mapping[str, float]) -> tuple[Fact, Diagnostic | None]:
    """The fact as it stands after an assumption, with what there is to say about it: an error where the two contradict each other.

    `attained` holds values that some decision reaches whatever the streams do, by key.
    """
    if is_claim(assumption.key):
        return _yes_or_no(assumption, fact)
    message = f"`{assumption.key}` {assumption.relation} {number(assumption.value)}"
    if fact.status is Status.REFUTED:
        return fact, _contradiction(assumption, f"{message} is assumed, and {_reason(fact)}")
    if assumption.relation is Relation.LE and assumption.value < 0 and assumption.key.rsplit(".", 1)[-1] not in SIGNED:
        return fact, _contradiction(assumption, f"{message} is assumed, and it is never less than 0")
    reached = attained.get(assumption.key)
    if reached is not None and _better(assumption.relation, assumption.value, reached, slack=1e-9 * abs(reached)):
        return fact, _contradiction(
            assumption, f"{message} is assumed, and {number(reached)} is reached whatever the streams do"
        )
    if (
        fact.status is Status.PROVED
        and fact.value is not None
        and not _better(assumption.relation, assumption.value, fact.value)
    ):
        message = f"{message} is assumed, and {number(fact.value)} is proved: the assumption changes nothing"
        return fact, Diagnostic("OCO610", message, assumption.span, "leave it out", Severity.WARNING)
    why = Step(ProofRule.ASSUMPTION, f"the model assumes {message}", assumption.value, (), assumption.span)
    return Fact(assumption.key, assumption.value, Status.DECLARED, why), None


def _yes_or_no(assumption: Assumed, fact: Fact) -> tuple[Fact, Diagnostic | None]:
    says = assumption.relation is Relation.GE and assumption.value > 0
    words = f"the model assumes that `{assumption.key}` {'holds' if says else 'does not hold'}"
    holds = fact.value if isinstance(fact.value, bool) else True  # of a point that is known
    if fact.status in (Status.PROVED, Status.REFUTED) and fact.value is not None and holds is not says:
        return fact, _contradiction(assumption, f"{words}, and the opposite is proved: {_reason(fact)}")
    if fact.status is Status.PROVED:
        return fact, Diagnostic(
            "OCO610", f"{words}, which is proved", assumption.span, "leave it out", Severity.WARNING
        )
    return Fact(
        assumption.key, says, Status.DECLARED, Step(ProofRule.ASSUMPTION, words, says, (), assumption.span)
    ), None


def _better(relation: Relation, value: float, than: float, slack: float = 0.0) -> bool:
    """True if `value` is sharper than the number `than`, by more than `slack`."""
    return value < than - slack if relation is Relation.LE else value > than + slack


def _reason(fact: Fact) -> str:
    if fact.witness is not None:
        return fact.witness.words
    return fact.why.claim if fact.why is not None else "it is refuted"


def _contradiction(assumption: Assumed, message: str) -> Diagnostic:
    return Diagnostic("OCO620", message, assumption.span, "correct the number, or the model")
