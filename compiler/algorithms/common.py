"""Questions that the theorems of several baselines ask, and quantities that their guarantees share."""

from __future__ import annotations

import numpy as np

from oco.compiler.lowering.predicted_round import positions
from oco.compiler.problem.canonical import Inequality
from oco.compiler.proximal.solvable import ask_for_it, solver_objection
from oco.compiler.theory.theorems import Condition, Floats, Hypothesis, Objection, Quantity, Situation, needed
from oco.dsl.expressions import Kind, names
from oco.dsl.labels import MOST_NAMED
from oco.dsl.statements import Feedback, Measure

NOUNS = {"project": "projection", "bregman_step": "mirror step", "lmo": "linear minimisation"}


def domain_offers(operation: str, words: str) -> Hypothesis:
    """Every block of the domain has the operation."""

    def test(s: Situation) -> Objection | None:
        for d in s.domains:
            if why := d.expensive.get(operation):
                message = f"it needs a {NOUNS[operation]} over {d}: {why}"
                return Objection(
                    message,
                    ask_for_it("decide in a set that has it, such as a box, a ball or a simplex"),
                    slow=True,
                )
        return None

    return Hypothesis(words, test)


def nothing_to_learn(s: Situation) -> str:
    """Clause that says why no constraint is left for an algorithm."""
    return "all constraints are known before the decision" if s.canonical.known else "the model has no constraints"


def _some_inequality(s: Situation) -> Objection | None:
    if s.constraints or s.equalities:  # a rule for inequalities alone says so by another hypothesis
        return None
    return Objection(f"{nothing_to_learn(s)}: without them it is plain gradient descent", "write `using ogd`")


def _fixed(s: Situation) -> Objection | None:
    if s.canonical.fixed:
        return None
    for c in s.canonical.inequalities:
        if names(c.expr, Kind.ROUND):
            message = f"`{c.origin}` changes with the round t, and the theorem is about fixed constraints"
            return Objection(message, f"take t out of `{c.origin}`")
        for name in names(c.expr, Kind.STREAM):
            fix = f"make `{name}` a param, if it does not change"
            return Objection(f"`{c.origin}` changes with `{name}`, and the theorem is about fixed constraints", fix)
    return None


def _functions_seen(s: Situation) -> Objection | None:
    if s.canonical.feedback is Feedback.FULL or constraints_are_fixed(s):
        return None
    message = f"{s.canonical.feedback} feedback does not give the constraints as functions, and it needs them"
    return Objection(message, "write `feedback full`")


def constraints_are_fixed(s: Situation) -> bool:
    """True where no stream and no round enters an inequality."""
    return s.canonical.fixed


def named_constraints(s: Situation) -> str:
    """Names of the constraints of a model for a condition: `a` and `b`, or "the constraints" where there are many."""
    origins = (c.origin if isinstance(c, Inequality) else c.label for c in s.canonical.whole.constraints)
    labels = list(dict.fromkeys(f"`{name}`" for name in origins))
    if len(labels) > MOST_NAMED:
        return "the constraints"
    return f"{', '.join(labels[:-1])} and {labels[-1]}" if len(labels) > 1 else labels[0]


def loss_ends(s: Situation) -> tuple[float, float]:
    """Least and greatest value of the losses that are known. Raises UnknownFact where nothing bounds them."""
    bound = needed(s, "loss.bound")
    lower, upper = s.number("loss.lower"), s.number("loss.upper")
    return max(-bound, -bound if lower is None else lower), min(bound, bound if upper is None else upper)


def slater_margin(s: Situation) -> float | None:
    """Slater margin that a guarantee may name: a fact, else that of the data that are given; None where neither tells.

    That of data is a condition on the sequence (`SLATER`); `margin_note` says so.
    """
    known = s.number("slater.margin")
    if known is not None or s.seen is None or s.is_refuted("slater.margin"):
        return known
    return None if s.seen.margin is None else s.seen.margin / s.margin_unit


def margin_note(s: Situation) -> str:
    """Remark on a bound in whose formula the Slater margin s is that of data; "" where it is a fact, or unknown."""
    own = s.number("slater.margin") is None and slater_margin(s) is not None
    return ", with the margin s that the data have" if own else ""


def _slater(s: Situation) -> Objection | Condition | None:
    margin = s.number("slater.margin")
    if not s.constraints or (margin is not None and margin > 0) or s.is_declared("slater.point"):
        return None
    if not s.is_refuted("slater.margin"):
        where = "" if s.canonical.fixed else " in the mean"
        words = f"some decision satisfies {named_constraints(s)}{where} with a margin s > 0 (Slater's condition)"
        return Condition("slater.margin", words)
    message = "no decision satisfies the constraints with a positive margin"
    return Objection(
        f"{message}: {s.claim('slater.margin')}", "loosen the constraints, or `assume slater.margin >= ...`"
    )


def _comparator(s: Situation) -> Objection | Condition | None:
    """Wang, Yan & Liu 2025, Lemma 3, needs [g_t(x*_t)]_+ = 0 in every round: x*_t of the round, or one x* for all rounds."""
    static = s.canonical.measure is Measure.STATIC
    key = "feasible.common" if static else "feasible.each_round"
    if s.holds(key):
        return None
    if s.is_refuted(key):
        refuted = "no decision satisfies the constraints of every round"
        refuted = refuted if static else "some rounds have no decision that satisfies their constraints"
        return Objection(f"{refuted}: {s.claim(key)}", "loosen the constraints")
    who = "one decision satisfies" if static else "some decision of each round satisfies"
    return Condition(key, f"{who} {named_constraints(s)}{' in every round' if static else ' there'}")


def common_comparator(s: Situation) -> bool:
    """True where `FEASIBLE_COMPARATOR` gives one feasible decision for all rounds: proved, or a condition of static regret."""
    return s.canonical.measure is Measure.STATIC or s.holds("feasible.common")


def _feasible_mean(s: Situation) -> Objection | Condition | None:
    if s.holds("feasible.mean"):
        return None
    if s.is_refuted("feasible.mean"):
        message = f"no decision satisfies the constraints in the mean: {s.claim('feasible.mean')}"
        return Objection(message, "loosen the constraints")
    return Condition("feasible.mean", f"some decision satisfies {named_constraints(s)} in the mean")


def _exact_step(s: Situation) -> Objection | None:
    return solver_objection(s)


SOME_INEQUALITY = Hypothesis("There are constraints g_k(x) <= 0.", _some_inequality)
FIXED_CONSTRAINTS = Hypothesis("The constraints do not change.", _fixed)
FUNCTIONS_SEEN = Hypothesis("The constraints are known as functions.", _functions_seen)
SLATER = Hypothesis("Some decision has g_k(x) <= -s < 0 for every k (Slater).", _slater, ("slater.margin",))
FEASIBLE_COMPARATOR = Hypothesis(
    "The comparator satisfies each round's constraints (Wang, Yan & Liu 2025, Lemma 3).",
    _comparator,
    ("feasible.common", "feasible.each_round"),
)
FEASIBLE_MEAN = Hypothesis(
    "Some decision satisfies the constraints in expectation.", _feasible_mean, ("feasible.mean",)
)
EXACT_STEP = Hypothesis("The step can be solved exactly.", _exact_step, ("constraints.*.smoothness.l2",))
PROJECTION = domain_offers("project", "Points can be projected onto the domain.")
MIRROR_STEP = domain_offers("bregman_step", "Mirror steps can be made over the domain.")


def slopes(s: Situation) -> Floats:
    """sup |grad g_k|_2 of each constraint, shape (N,)."""
    result = s.inequality_bounds("lipschitz.l2")
    assert result is not None
    return result


def sizes(s: Situation) -> Floats:
    """sup |g_k| of each constraint, shape (N,); infinite where nothing bounds one."""
    result = s.inequality_bounds("bound")
    return np.full(s.constraints, np.inf) if result is None else result


def unknown(s: Situation, *constants: str) -> str:
    """The key of a fact that nothing bounds: of the loss's Lipschitz constant or of one of these of a constraint; "" where all are known.

    A default that names it says in an error what to assume, and steps aside where the setting is given.
    """
    if s.number("loss.lipschitz.l2") is None:
        return "loss.lipschitz.l2"
    for c in s.canonical.inequalities:
        for what in constants:
            if s.entries(c.label, c.shape, what) is None:
                return f"constraints.{c.label}.{what}"
    return ""


ROUNDS = Quantity("T", "T", "rounds", lambda n, T: n.last)


def _averaged(s: Situation) -> Objection | None:
    names = positions(s.canonical)
    if not names:
        return None
    message = f"`{names[0]}` picks entries of arrays, and an average of positions is no position"
    return Objection(message, f"write the entries that `{names[0]}` picks as a stream of their own")


AVERAGED = Hypothesis("Data can be averaged.", _averaged)
