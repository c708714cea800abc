"""An independent replay of derivations: every step is worked out again, or attacked with samples, without the prover's code.

Shared with the prover are the tree of expressions, its meaning (`dsl.evaluate`), and the sets that decisions lie in. Ranges, curvature
and suprema are redone here in other ways: what can be recomputed is `replayed`, what is a supremum is `tested` against decisions and
stream values that try to break it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from oco.compiler.problem.canonical import canonical
from oco.compiler.prover.audit.falsify import TOLERANCE, AuditOutcome, Place, Verdict
from oco.compiler.prover.audit.replay_calculus import Calculus
from oco.compiler.prover.audit.replay_claims import CONVEX_WORDS, Claims, top
from oco.compiler.prover.audit.replay_points import Points
from oco.compiler.prover.fact import Fact
from oco.compiler.prover.facts import Facts
from oco.compiler.prover.types import ProofRule, Status, Step
from oco.dsl.atoms import ATOMS, form_of, forms
from oco.dsl.dims import known
from oco.dsl.expressions import Array as Stack
from oco.dsl.expressions import Call, Constant, Expr, Index, Slice
from oco.dsl.records import dataclass

Array = np.ndarray[Any, Any]
MOST_NUMBERS = 200_000  # numbers of ranges that the audit reads again: it is plain Python
MISSHAPEN = (
    AttributeError,
    TypeError,
    ValueError,
    KeyError,
    IndexError,
)  # what a handler meets in a step of another make
WITH_MARGIN = (ProofRule.SLATER_POINT, ProofRule.INTERIOR_POINT, ProofRule.CORNER_POLICY)
"""Rules that prove a flag, and end with how much there is to spare."""
FROM_PREMISES = (
    ProofRule.LARGEST,
    ProofRule.SQUARE_ROOT,
    ProofRule.NEGATIVE,
    ProofRule.SMOOTHNESS,
    ProofRule.STRONG_CONVEXITY,
    ProofRule.PRODUCT_DOMAIN,
    ProofRule.SECOND_DERIVATIVE,
)

_REFUTED = "of facts that are refuted or unknown: no fact that is proved rests on it"
_GIVEN = "repeats what the user assumes or the data say: no fact that is proved rests on it"
NOT_AUDITED: Mapping[ProofRule, str] = {
    ProofRule.WITNESS: "a decision at which a claim fails; the fact holds its values",
    ProofRule.RANGE_ABOVE_ZERO: _REFUTED,
    ProofRule.DEPENDENT_ROWS: _REFUTED,
    ProofRule.EQUALITY: _REFUTED,
    ProofRule.NO_INTERIOR_POINT: _REFUTED,
    ProofRule.NO_MARGIN: _REFUTED,
    ProofRule.NO_MEAN: _REFUTED,
    ProofRule.ASSUMPTION: _GIVEN,
    ProofRule.DATA: _GIVEN,
    ProofRule.MEASURED: _GIVEN,
    ProofRule.RANGE_OF_THE_DATA: _GIVEN,
    ProofRule.SAMPLE_MEAN: _GIVEN,
    ProofRule.UNIT_FREE: "of facts in the units of a problem, each beside one of the model that is audited",
}
"""Rules without an audit, and why."""


@dataclass(frozen=True)
class Check:
    """Outcome of the check of one step of the derivation of a fact."""

    key: str
    rule: str
    claim: str
    outcome: AuditOutcome
    words: str = ""


def verify(facts: Facts, seed: int = 0) -> list[Check]:
    """Check every step of every proved fact once, and every proved number against the function it is about."""
    replay = _Replay(canonical(facts.model), np.random.default_rng(seed))
    results: list[Check] = []
    seen: set[int] = set()
    for key, fact in facts.items():
        if fact.status is Status.PROVED and fact.why is not None:
            results += [Check(key, s.rule, s.claim, *replay.step(s)) for s in _steps(fact.why, seen)]
            results += replay.conclusion(fact)
            results += replay.fact(key, fact.value)
    return results


def _steps(root: Step, seen: set[int]) -> Iterator[Step]:
    """Premises first, each step once."""
    stack = [(root, False)]
    while stack:
        step, ready = stack.pop()
        if ready:
            yield step
        elif id(step) not in seen:
            seen.add(id(step))
            stack.append((step, True))
            stack.extend((p, False) for p in step.premises)


class _Replay(Claims, Calculus, Points):
    def step(self, step: Step) -> Verdict:
        """The verdict on one step; a step that is not of the make that its rule asks for is refused."""
        rule = RULES.get(step.rule)
        if rule is None:
            return AuditOutcome.FAILED, f"there is no rule `{step.rule}`"
        if step.rule in FROM_PREMISES and not step.premises:
            return AuditOutcome.FAILED, "it follows from nothing"
        try:
            return rule(self, step)
        except MISSHAPEN:
            return AuditOutcome.FAILED, "it has not the parts that its rule asks for"

    def conclusion(self, fact: Fact) -> list[Check]:
        """The fact says what the last step of its derivation says."""
        step = fact.why
        assert step is not None
        if _agree(fact.value, step):
            return []
        return [
            Check(fact.key, step.rule, step.claim, AuditOutcome.FAILED, "the fact is not what its derivation ends with")
        ]

    # ---- facts against the functions they are about

    def fact(self, key: str, value: Any) -> list[Check]:
        """A proved number of a function, against its values and difference quotients."""
        prefix, _, kind = key.rpartition(".")
        if kind in ("l1", "l2"):
            prefix, _, kind = prefix.rpartition(".")
            kind += key[-3:]
        f = self.functions.get(prefix)
        if f is None or not isinstance(value, (int, float)) or isinstance(value, bool):
            return []
        worst = max((self._violation(f, kind, float(value), p) for p in self.places[:40]), default=0.0)
        if worst > 1e-5 * max(1.0, abs(float(value))):
            return [
                Check(
                    key,
                    "fact",
                    key,
                    AuditOutcome.FAILED,
                    f"broken by {worst:g} at a decision and stream values that were tried",
                )
            ]
        return [Check(key, "fact", key, AuditOutcome.TESTED)]

    def _violation(self, f: Callable[[Place], float], kind: str, value: float, p: Place) -> float:
        """By how much one place breaks the number; at most 0 where it does not."""
        here = f(p)
        if not np.isfinite(here):
            return -np.inf
        match kind:
            case "bound":
                return abs(here) - value
            case "upper":
                return here - value
            case "lower":
                return value - here
            case "lipschitz.l2" | "lipschitz.l1":
                q = {
                    **p,
                    **{n: v for n, v in self.places[int(self.rng.integers(self.count))].items() if n in self.decisions},
                }
                order = 2 if kind.endswith("l2") else 1
                gap = float(np.linalg.norm(np.concatenate([(p[n] - q[n]).ravel() for n in self.decisions]), order))
                return abs(f(q) - here) / gap - value if gap > 1e-9 else -np.inf
        return -np.inf

    # ---- ranges and suprema

    def _interval(self, step: Step) -> Verdict:
        """The operation again, over the ranges of the premises."""
        node = step.subject
        if not isinstance(node, (Call, Index, Stack)):
            return AuditOutcome.FAILED, "nothing is computed there"
        if not isinstance(node, Call):
            return self._within_samples(step)
        given = {id(p.subject): p.value for p in step.premises}
        ranges = []
        for arg in node.args:
            if isinstance(arg, Slice):
                return self._within_samples(step)
            ends = _constant_ends(arg) if isinstance(arg, Constant) else _ends(given.get(id(arg)), arg)
            if ends is None:
                return self._within_samples(step)
            ranges.append(ends)
        if sum(r[0].size for r in ranges) > MOST_NUMBERS:
            return self._within_samples(step)
        rule = ATOMS[node.atom].replay
        if rule is None:
            return self._within_samples(step)
        result = rule(node, *ranges)
        claimed = _ends(step.value, node)
        assert claimed is not None
        slack = TOLERANCE * np.maximum(1.0, np.maximum(np.abs(result[0]), np.abs(result[1])))
        with np.errstate(invalid="ignore"):
            holds = np.all((claimed[0] <= result[0] + slack) | np.isinf(result[0])) and np.all(
                (claimed[1] >= result[1] - slack) | np.isinf(result[1])
            )
        return (
            (AuditOutcome.REPLAYED, "")
            if holds
            else (AuditOutcome.FAILED, "the range of the operation is wider than claimed")
        )

    def _norm(self, step: Step) -> Verdict:
        if form_of(step.subject) not in (forms.LENGTH, forms.SUM_OF_SQUARES):
            return AuditOutcome.FAILED, "it is no norm"
        return self._within_samples(step)

    # ---- arithmetic between steps

    def _largest(self, step: Step) -> Verdict:
        tops = [t for p in step.premises if (t := top(p.value)) is not None]
        number = step.subject is None and not isinstance(step.value, bool)
        holds = number and bool(tops) and step.value >= max(tops) * (1 - TOLERANCE) - 1e-300
        return (AuditOutcome.REPLAYED, "") if holds else (AuditOutcome.FAILED, "a premise is larger")

    def _square_root(self, step: Step) -> Verdict:
        above = top(step.premises[0].value)
        holds = above is not None and step.value**2 >= above * (1 - TOLERANCE)
        return (AuditOutcome.REPLAYED, "") if holds else (AuditOutcome.FAILED, "the square is smaller than the premise")

    def _negative(self, step: Step) -> Verdict:
        above = top(step.premises[0].value)
        holds = above is not None and -step.value >= above - TOLERANCE * max(1.0, abs(above))
        return (AuditOutcome.REPLAYED, "") if holds else (AuditOutcome.FAILED, "it is not the negative of the premise")


RULES: Mapping[ProofRule, Callable[[_Replay, Step], Verdict]] = {
    ProofRule.INTERVAL: _Replay._interval,
    ProofRule.DECLARED_RANGE: _Replay._declared,
    ProofRule.CONSTANT: _Replay._constant,
    ProofRule.SUPPORT: _Replay._support,
    ProofRule.NORM: _Replay._norm,
    ProofRule.VERTICES: _Replay._supremum,
    ProofRule.ENTRY_BY_ENTRY: _Replay._supremum,
    ProofRule.BALL: _Replay._supremum,
    ProofRule.TANGENT: _Replay._supremum,
    ProofRule.BRANCH_AND_BOUND: _Replay._supremum,
    ProofRule.NOT_SEARCHED: _Replay._supremum,
    ProofRule.LARGEST: _Replay._largest,
    ProofRule.SQUARE_ROOT: _Replay._square_root,
    ProofRule.NEGATIVE: _Replay._negative,
    ProofRule.EVERY_ENTRY: _Replay._every_entry,
    ProofRule.GRADIENT: _Replay._gradient,
    ProofRule.PIECES: _Replay._pieces,
    ProofRule.REWRITE: _Replay._rewrite,
    ProofRule.VARIABLE: _Replay._variable,
    ProofRule.COMPOSITION: _Replay._composed,
    ProofRule.SECOND_DERIVATIVE: _Replay._by_eigenvalues,
    ProofRule.SECOND_DERIVATIVE_OF_ENTRIES: _Replay._composed,
    ProofRule.SECOND_DERIVATIVE_BY_TERMS: _Replay._nonlinear,
    ProofRule.SECOND_DERIVATIVE_WRITTEN_OUT: _Replay._nonlinear,
    ProofRule.CHANGE_OF_GRADIENT: _Replay._change_of_gradient,
    ProofRule.SMOOTHNESS: _Replay._smoothness,
    ProofRule.STRONG_CONVEXITY: _Replay._strong_convexity,
    ProofRule.EXP_CONCAVITY: _Replay._exp_concavity,
    ProofRule.STRUCTURE: _Replay._structure,
    ProofRule.DOMAIN: _Replay._domain,
    ProofRule.PRODUCT_DOMAIN: _Replay._product,
    ProofRule.ORACLE: _Replay._oracle,
    ProofRule.AT_A_POINT: _Replay._at_a_point,
    ProofRule.SLATER_POINT: _Replay._slater,
    ProofRule.INTERIOR_POINT: _Replay._interior,
    ProofRule.MIXTURE: _Replay._mixture,
    ProofRule.MIXTURE_OF_EACH_ROUND: _Replay._mixture_of_each_round,
    ProofRule.TANGENT_BOUND: _Replay._nowhere,
    ProofRule.CORNER_POLICY: _Replay._corner_policy,
    ProofRule.COMMON_POINT: _Replay._common,
    ProofRule.DEPENDENT_ROW: _Replay._dependent,
    ProofRule.NO_CONSTRAINTS: _Replay._no_constraints,
}
"""Audit of each rule."""


def _constant_ends(node: Constant) -> tuple[Array, Array]:
    value = np.asarray(node.value.array, dtype=np.float64)
    return value, value


def _ends(value: Any, node: Expr) -> tuple[Array, Array] | None:
    """Both ends at full shape."""
    if not hasattr(value, "lo"):
        return None
    shape = known(node.shape)
    return np.broadcast_to(value.lo, shape).astype(np.float64), np.broadcast_to(value.hi, shape).astype(np.float64)


def _agree(value: Any, step: Step) -> bool:
    """True if the value of a fact is that of the step; arrays may stand for a point, words for a flag."""
    message = step.value
    if isinstance(value, bool):
        return message is value or (value and message in CONVEX_WORDS) or step.rule in WITH_MARGIN
    number = top(message)
    if isinstance(value, (int, float)) and number is not None:
        return bool(np.isclose(value, number, rtol=1e-9, atol=0.0)) or value == number
    if isinstance(value, (dict, np.ndarray)) and isinstance(step.subject, dict):
        points = value if isinstance(value, dict) else dict.fromkeys(step.subject, value)
        return all(np.array_equal(points[n], x) for n, x in step.subject.items())
    return True


def replay_text(checks: list[Check]) -> str:
    """The outcome of a replay: how many steps of each kind, and every step that failed."""
    counts = Counter(c.outcome for c in checks)
    labels = {
        AuditOutcome.REPLAYED: "worked out again",
        AuditOutcome.TESTED: "attacked with samples, unbroken",
        AuditOutcome.STATED: "taken as stated",
        AuditOutcome.FAILED: "FAILED",
    }
    lines = [f"{counts[outcome]:>5} steps {words}" for outcome, words in labels.items() if counts[outcome]]
    for c in checks:
        if c.outcome is AuditOutcome.FAILED:
            lines += ["", f"{c.key}: {c.words}", f"    {c.claim}   [{c.rule}]"]
    return "\n".join(lines) + "\n"
