"""What a plan promises and expects, in the words and numbers that backends print and learners check."""

from __future__ import annotations

from typing import Any

import numpy as np

from oco.backends.contract import Contract, Range
from oco.backends.reckoning import Constants
from oco.compiler.canonical import entry_labels
from oco.compiler.plan import Plan
from oco.compiler.settings import Setting
from oco.compiler.theorems import Guarantee
from oco.dsl.contained import self_contained
from oco.dsl.model import Feedback
from oco.dsl.text.printer import print_model


def contract_of(plan: Plan) -> Contract:
    problem = plan.canonical
    full = problem.feedback is Feedback.FULL
    return Contract(
        text=print_model(plan.model),
        algorithm=plan.algorithm,
        horizon=plan.horizon,
        start=_start(plan),
        domains={b.name: b.domain for b in problem.blocks},
        cite=plan.choice.winner.algorithm.cite if plan.choice.winner is not None else "",
        guarantee=promises(plan.guarantee),
        ranges={s.name: Range(s.lower, s.upper, _law(s)) for s in problem.streams} if full else {},
        equalities=tuple(label for c in problem.equalities for label in entry_labels(c.label, c.shape)),
        laws=plan.laws,
        recipe=recipe_of(plan),
        constants=_constants(plan),
    )


def _start(plan: Plan) -> dict[str, Any]:
    """The centre of each domain, by the fields of the program's decision; that of a matrix kept as factors is zero."""
    centres = {b.name: b.domain for b in plan.canonical.blocks}
    return {
        f.name: np.array(centres[f.name].centre(), dtype=np.float64) if f.name in centres else np.zeros(f.type.shape)
        for f in plan.program.decision
    }


def _constants(plan: Plan) -> Constants:
    """What the guarantee rests on, for the learner to compare with what it sees."""
    s = plan.choice.situation
    bounds = s.inequality_bounds("bound")
    labels = plan.canonical.constraint_labels
    unbounded = np.full(len(labels), np.inf)
    return Constants(
        loss=s.number("loss.bound") or np.inf,
        constraints=unbounded if bounds is None else bounds,
        labels=labels,
        diameter=s.number("domain.diameter.l2") or np.inf,
    )


def promises(guarantee: Guarantee | None) -> tuple[str, ...]:
    """The guarantee, a line a measure."""
    if guarantee is None:
        return ("No guarantee: the algorithm was asked for, and its theorem does not apply to this model.",)
    T = guarantee.horizon
    lines = [f"{guarantee.theorem}, for {'every T' if T is None else f'T = {T}'}:"]
    for bound in guarantee.bounds:
        number = None if T is None else bound.number(T)
        size = "" if number is None else f" <= {number:.6g}"
        says_nothing = T is not None and bound.vacuous(T)
        vacuous = " (vacuous: no sequence of decisions can do worse)" if says_nothing else ""
        lines.append(f"{bound.measure}{size}, O({bound.rate}){vacuous}")
    return (*lines, *guarantee.conditions)


def recipe_of(plan: Plan) -> dict[str, Any]:
    """What makes the same plan again, and the settings that it came to. Data from files is written into the model's text."""
    return {
        "name": plan.model.name,
        "model": print_model(self_contained(plan.model)),
        "algorithm": plan.algorithm,
        "settings": {name: str(value) for name, value in plan.given.items()},
        "mode": plan.mode,
        "tradeoff": plan.tradeoff,
        "settled": {name: _exact(s) for name, s in plan.settings.items()},
    }


def _exact(setting: Setting) -> str:
    return str(setting.formula) if setting.value is None else float(setting.value).hex()


def _law(stream: Any) -> str:
    from oco.dsl.text.printer import print_distribution

    return "" if stream.stream.distribution is None else print_distribution(stream.stream.distribution)
