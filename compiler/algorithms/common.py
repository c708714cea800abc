"""Questions that the theorems of several baselines ask, and quantities that their guarantees share."""

from __future__ import annotations

import numpy as np

from oco.compiler.solvable import ask_for_it, solver_objection
from oco.compiler.theorems import Floats, Hypothesis, Objection, Quantity, Situation
from oco.dsl.expressions import Kind, names
from oco.dsl.model import Feedback

NOUNS = {"project": "projection", "bregman_step": "mirror step", "lmo": "linear minimisation"}


def domain_offers(operation: str, words: str) -> Hypothesis:
    """Every block of the domain has the operation."""

    def test(s: Situation) -> Objection | None:
        for d in s.domains:
            why, slow = d.unavailable_reason(operation)
            if why:
                message = f"it needs a {NOUNS[operation]} over {d}: {why}"
                return Objection(
                    message, ask_for_it("decide in a set that has it, such as a box, a ball or a simplex", slow), slow
                )
        return None

    return Hypothesis(words, test)


def _some_inequality(s: Situation) -> Objection | None:
    if s.constraints:
        return None
    return Objection("the model has no constraints: without them it is plain gradient descent", "write `using ogd`")


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
    return s.canonical.fixed


def _slater(s: Situation) -> Objection | None:
    margin = s.number("slater.margin")
    if not s.constraints or (margin is not None and margin > 0):
        return None
    result = s.claim("slater.margin")
    message = "no decision is known that satisfies the constraints with something to spare"
    return Objection(
        f"{message}: {result}" if result else message, "loosen the constraints, or `assume slater.margin >= ...`"
    )


def _exact_step(s: Situation) -> Objection | None:
    return solver_objection(s)


SOME_INEQUALITY = Hypothesis("There are constraints g_k(x) <= 0.", _some_inequality)
FIXED_CONSTRAINTS = Hypothesis("The constraints do not change.", _fixed)
FUNCTIONS_SEEN = Hypothesis("The constraints are known as functions.", _functions_seen)
SLATER = Hypothesis("Some decision has g_k(x) <= -s < 0 for every k (Slater).", _slater, ("slater.margin",))
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
