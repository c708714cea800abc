"""Contract of a plan: what it promises and expects, in the words and numbers that backends print and learners check."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from oco.backends.contract import Contract, Range
from oco.backends.factors import part_names
from oco.backends.monitor import DUALS, OF_EQUALITIES, Constants, Limit
from oco.compiler.evidence.watched_streams import AlertTerms
from oco.compiler.selection.alert import GOES_ON
from oco.compiler.selection.plan import Plan
from oco.compiler.theory.guarantees import vacuous_words
from oco.compiler.theory.settings import Setting
from oco.compiler.theory.theorems import Guarantee
from oco.dsl.contained import self_contained
from oco.dsl.diagnostics import fail
from oco.dsl.magnitudes import HUGE
from oco.dsl.records import dataclass
from oco.dsl.statements import Feedback
from oco.dsl.text.printer import print_distribution


def contract_of(plan: Plan, discloses: bool = False) -> Contract:
    """Contract of a plan for backends and learners: domains, ranges of the streams, guarantee, recipe, units of the
    duals, constants.

    discloses  True for the program whose rounds give their streams whatever the model's feedback
    """
    problem = plan.canonical
    full = discloses or problem.feedback is Feedback.FULL
    return Contract(
        text=plan.model.to_oco(),
        algorithm=plan.algorithm,
        horizon=plan.horizon,
        start=_start(plan),
        domains={b.name: b.domain for b in problem.blocks},
        cite=plan.choice.winner.algorithm.cite if plan.choice.winner is not None else "",
        guarantee=(*promises(plan.guarantee, plan.withheld), *problem.remarks),
        ranges={s.name: Range(s.lower, s.upper, _distribution(s)) for s in problem.streams if full or s.stream.known},
        equalities=problem.equality_names,
        axes=problem.axes,
        distributions=plan.distributions,
        recipe=recipe_of(plan),
        duals=_duals(plan),
        constants=_constants(plan),
        from_centre=plan.guarantee is not None and plan.guarantee.from_centre,
        terms=plan.terms,
        anytime=plan.anytime,
        watched=plan.watched,
        alert=_alert(plan),
        delay=problem.delay,
    )


def _alert(plan: Plan) -> AlertTerms | None:
    """Terms of the alarm of its learners, with what is guaranteed after it; None where they do not watch their streams."""
    if plan.alert is None:
        return None
    stays, choice = plan.alert.why == GOES_ON, plan.alert.choice
    winner = None if choice is None else choice.winner
    return replace(
        plan.alert.terms, guarantee=None if stays else promises(None if winner is None else winner.guarantee)
    )


def _start(plan: Plan) -> dict[str, Any]:
    """The centre of each domain, by the fields of the program's decision: of a matrix kept as factors a multiple of the identity."""
    centres = {b.name: b.domain for b in plan.canonical.blocks}
    diagonals = {part_names(name)[-1]: centres[name].centre()[0, 0] for name in plan.program.factored}
    return {
        f.name: np.array(centres[f.name].centre(), dtype=np.float64)
        if f.name in centres
        else np.full(f.type.shape, diagonals[f.name])
        if f.name in diagonals
        else np.zeros(f.type.shape)
        for f in plan.program.decision
    }


def _duals(plan: Plan) -> dict[str, Any]:
    """The units of queues and multipliers, by field of the state."""
    winner, kept = plan.choice.winner, plan.kept_equalities
    if winner is None or winner.scales is None:
        return {}
    results = {}
    for f in (f for f in plan.program.state if f.name in DUALS):
        equality = f.name == OF_EQUALITIES
        unit = winner.scales.dual(equality, f.name in winner.algorithm.multipliers, bool(f.type.shape))
        results[f.name] = unit[list(kept)] if equality else unit
    return results


def _constants(plan: Plan) -> Constants:
    """Constants that the guarantee rests on, for the learner to compare with the data it sees."""
    s, winner = plan.choice.played, plan.choice.winner
    theorem = None if winner is None else winner.theorem
    norm = "l2" if theorem is None else theorem.norm
    asked = () if theorem is None or plan.guarantee is None else theorem.facts

    learned, diameter = plan.canonical.learned, s.number("domain.diameter.l2") or np.inf
    labels = learned.constraint_labels

    def known(what: str) -> list[float]:
        """Bounds for the loss and then for each constraint; infinite where nothing is known."""
        own, bounds = s.number(f"loss.{what}"), s.inequality_bounds(what)
        if what == "bound" and learned.moving is not None:
            own = None  # that is of a loss that stands still, and the learner pays for its moves
        return [
            np.inf if own is None else own,
            *map(float, np.full(len(labels), np.inf) if bounds is None else bounds),
        ]

    smoothnesses = [smoothness and smoothness * diameter for smoothness in known("smoothness.l2")]

    def limits(what: str, of: str, loss: bool, constraints: bool) -> tuple[Limit, ...]:
        """Limits for the loss and then for each constraint, without a bound where none is known. The flags: do settings
        depend on them?
        """
        asks, all_ask = f"loss.{what}" in asked, f"constraints.*.{what}" in asked
        results = [("the loss", f"loss.{what}", asks, not adapts and (asks or loss))]
        for label, name in zip(labels, learned.constraint_names, strict=True):
            results.append((name, f"constraints.{label}.{what}", all_ask, not adapts and (all_ask or constraints)))
        return tuple(
            Limit(name, bound, fact, of, rests, sets, smoothness if of else 0.0)
            for (name, fact, rests, sets), bound, smoothness in zip(results, known(what), smoothnesses, strict=True)
        )

    adapts = winner is not None and winner.algorithm.adapts
    scaled = winner is not None and winner.scales is not None
    searched = (
        winner is not None and winner.best is not None
    )  # for a sum in which the regret is over the range of the loss
    values = limits("bound", "", searched, scaled)
    return Constants(values, limits(f"lipschitz.{norm}", norm, scaled, False), diameter)


def promises(guarantee: Guarantee | None, withheld: str = "") -> tuple[str, ...]:
    """Lines that state the guarantee, one a measure, or why there is none."""
    if guarantee is None:
        return (f"No guarantee: {withheld or 'no theorem of the algorithm applies to this model'}.",)
    T = guarantee.horizon
    lines = [f"{guarantee.theorem}, for {'every T' if T is None else f'T = {T}'}:"]
    for bound in guarantee.bounds:
        number = None if T is None else bound.number(T)
        size = "" if number is None else f" <= {number:.6g}"
        trivial = None if T is None or number is None else bound.trivial_total(T)
        beside = f" (whatever is decided: {trivial:.6g})" if trivial else ""
        if T is not None and bound.vacuous(T):
            size, beside = " ", vacuous_words(f"{trivial:.6g}")
        lines.append(f"{bound.measure}{size}{beside}, O({bound.rate})")
    return (*lines, *guarantee.provisos)


def recipe_of(plan: Plan) -> dict[str, Any]:
    """JSON values from which the same plan is made again, with its settings. Data from files is written into the
    model's text.
    """
    effort = {} if plan.facts.effort == 1 else {"effort": plan.facts.effort}
    own = plan.choice.situation.own_seasons
    season = {} if plan.season == 1 else {"season": {"": plan.season, **own} if own else plan.season}
    after = {} if plan.after is None else {"after": plan.after}
    return {
        "name": plan.model.name,
        "model": self_contained(plan.model).to_oco(),
        "algorithm": plan.algorithm,
        "settings": {name: str(value) for name, value in plan.given.items()},
        "mode": str(plan.mode),
        "tradeoff": plan.tradeoff,
        **effort,
        **({"certify": plan.certify} if plan.certify else {}),
        **({"alert": plan.alert.alpha} if plan.alert is not None else {}),
        **season,
        **after,
        "settled": {name: _exact(s) for name, s in plan.settings.items()},
    }


@dataclass(frozen=True)
class Recipe:
    """Recipe of a saved state or a trace, with each part checked to have its type."""

    name: str
    model: str
    algorithm: str
    settings: Mapping[str, str]
    mode: str
    tradeoff: float
    effort: float
    season: int | Mapping[str, int]
    resolved: Mapping[str, str]
    certify: str = ""
    alert: float = 0.0

    @classmethod
    def read(cls, recipe: Any) -> Recipe:
        """Read a recipe from untrusted JSON values. Raises OCO850 where a part is absent or has the wrong type."""
        result = recipe if isinstance(recipe, Mapping) else {}
        texts = [result.get(part) for part in ("name", "model", "algorithm", "mode")]
        tables = [result.get("settings"), result.get("settled", {})]
        tradeoff, effort, season = (result.get(part, 1) for part in ("tradeoff", "effort", "season"))
        certify, alert = result.get("certify", ""), result.get("alert", 0.0)
        numbers = _is_number(tradeoff) and _is_number(effort) and effort > 0
        by_name = dict(season) if isinstance(season, Mapping) else {"": season}
        numbers = numbers and "" in by_name and all(map(_is_season, by_name.values()))
        whole = all(isinstance(text, str) for text in texts) and all(map(_is_table, tables))
        if not (whole and numbers and isinstance(certify, str) and _is_number(alert) and 0 <= alert < 1):
            hint = "where a module that `oco compile` wrote has saved it, `Learner.load` of that module reads it"
            raise fail("OCO850", "the saved state does not say which plan it belongs to", hint=hint)
        name, model, algorithm, mode = map(str, texts)
        settings, resolved = ({str(key): str(text) for key, text in dict(table or {}).items()} for table in tables)
        numbers_given = float(tradeoff), float(effort), by_name if len(by_name) > 1 else by_name[""]
        return cls(name, model, algorithm, settings, mode, *numbers_given, resolved, certify, float(alert))

    @property
    def words(self) -> str:
        """Text that says all of it, from which `of_words` makes it again."""
        return json.dumps(asdict(self))

    @classmethod
    def of_words(cls, words: str) -> Recipe:
        """Recipe of its `words`."""
        return cls(**json.loads(words))


def _is_season(value: Any) -> bool:
    """A number of rounds."""
    return isinstance(value, int) and _is_number(value) and value >= 1


def _is_number(value: Any) -> bool:
    """A finite number within `HUGE`."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= HUGE


def _is_table(value: Any) -> bool:
    """A table of texts by texts."""
    return isinstance(value, Mapping) and all(isinstance(part, str) for item in value.items() for part in item)


def _exact(setting: Setting) -> str:
    return str(setting.formula) if setting.value is None else float(setting.value).hex()


def _distribution(stream: Any) -> str:
    return "" if stream.stream.distribution is None else print_distribution(stream.stream.distribution)
