"""Pilot runs and tuning for a plan: `compile` where guarantees are vacuous, and `oco tune`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from oco.backends.choose import usual_seconds
from oco.compiler.algorithms.dual_prices import is_drawn_on_average
from oco.compiler.problem.canonical import Canonical, canonical
from oco.compiler.problem.stores import stores
from oco.compiler.selection.choice import Choice
from oco.compiler.selection.explain import bound_text
from oco.compiler.selection.explain_settings import literal
from oco.compiler.selection.modes import Mode
from oco.compiler.selection.pilots import Pilots
from oco.compiler.selection.plan import explain_choice, plan_of
from oco.compiler.selection.resolve_again import given_formulas
from oco.compiler.selection.shared_program import with_program_of
from oco.compiler.selection.variants import starts_of, variants
from oco.compiler.selection.verdicts import Applicability, Informativeness, Verdict
from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.model import Model
from oco.dsl.records import dataclass
from oco.dsl.statements import Feedback
from oco.overflow_check import MOST_NUMBERS
from oco.plan import Plan

if TYPE_CHECKING:
    from oco.evaluation.data import Data
    from oco.evaluation.pilot import Candidate
    from oco.evaluation.tuning import SearchSpace, Tuning

PILOT_ROUNDS, MOST_PILOT_ROUNDS = 200, 2000
"""Rounds of a pilot run: on data more than the first number only as far as `LONG_SECONDS` allow."""
LONG_SECONDS = 2.0
"""Seconds of longer pilot runs of all candidates together, by the model of costs."""
PILOT_SEEDS = 2
PILOT_CANDIDATES = 4
"""Algorithms that are tried on rounds drawn from the model, where every guarantee is vacuous; on data all are."""
BESIDE_SECONDS = 0.3
"""Seconds, by the model of costs, that runs may take which decide nothing and are reported beside the others."""
PILOT_SECONDS = 30.0  # seconds of pilot runs, after which no other algorithm is begun: `--budget` gives others
TUNING_ROUNDS = 2000
"""Rounds that are drawn to tune on where there is no data."""
OTHERS = 6
"""Algorithms beside the default that a search tries."""
TUNING_SECONDS = 600.0
"""Time that a search may take."""
FAR = 4
"""Constants that were searched on a part of the rounds this many times shorter may not be those of the whole run."""


def piloted(
    plan: Plan, data: Any = None, seed: int = 0, constants: bool = True, seconds: float = PILOT_SECONDS
) -> Plan:
    """Plan that pilot runs choose, on data and where no guarantee does: its algorithm and, with `constants` and where
    its guarantee is vacuous, if it takes the paper's constants. What values stores stays: pilot runs end with some left.

    data     rounds to run on; None draws them from the model, where all its streams have a distribution
    seconds  of wall time, after which no other algorithm is begun
    """
    first = plan.choice.winner
    if first is not None and first.algorithm.values_left and stores(plan.choice.situation.canonical):
        return plan
    if (ahead := _ahead_of_pilots(plan.choice, data)) is not None:
        return plan.deciding(_led(plan.choice, ahead))
    vacuous = plan.choice.vacuous
    if len(_tried(plan.choice, plan.choice.usable, data)) < (1 if constants and vacuous else 2):
        return plan
    candidates, pilots, best = _pilots(plan, data, seed, constants, seconds)
    if pilots.skipped and not (vacuous or pilots.left_out):
        return plan
    choice = candidates.decided_by(pilots)
    result = replace(plan.deciding(choice), mode=Mode.UNIT_FREE if choice.policy.mode is Mode.UNIT_FREE else plan.mode)
    return result if best is None else with_program_of(result, best)


def _ahead_of_pilots(choice: Choice, data: Any) -> Verdict | None:
    """Algorithm that goes first without pilot runs, where it applies: one that weighs rules as the rounds come, without data only where no
    number is promised of others or one of it, too; without data, where budgets are in total and a round's loss is known before, one that
    paces them.

    Where a constraint states no penalty the tradeoff is the price of its violation. On data without constraints pilot runs decide. Where
    values are all that is seen what weighs models of the loss goes first in any case: estimates of gradients from single values lose to
    holding a decision, whatever is promised of them.
    """
    s = choice.situation
    has_values_alone = s.canonical.feedback is Feedback.BANDIT
    if data is not None and not s.constraints and not has_values_alone:
        return None
    paces = data is None and _has_totals(s.canonical)
    paced = [v for v in choice.usable if paces and v.algorithm.sees_round]
    mixing = [choice.searched(v) for v in choice.usable if v.algorithm.mixes]
    in_any_case = data is not None or has_values_alone or choice.vacuous or is_drawn_on_average(s.canonical)
    if not (in_any_case or any(map(_says_something, mixing))):
        mixing = []
    return next(iter([*paced, *mixing]), None)


def _says_something(v: Verdict) -> bool:
    """True where numbers are promised that are not vacuous."""
    return v.informativeness is Informativeness.NUMBERS


def _has_totals(problem: Canonical) -> bool:
    """True where a constraint is a budget for all rounds in total. Rules of a mixture keep it to an even plan."""
    return any(c.budget is not None for c in problem.known)


def _priced(choice: Choice) -> bool:
    """True where each inequality states a penalty."""
    return all(c.penalties for c in choice.situation.canonical.inequalities)


def _led(choice: Choice, v: Verdict) -> Choice:
    """Choice of that verdict, without pilot runs."""
    weighs = f"weighs {_weighed(choice)}" if v.algorithm.mixes else "paces budgets by their prices as the rounds come"
    others = [x for x in choice.verdicts if x.name != v.name]
    for k, x in enumerate(others):
        if x.applicability is not Applicability.REFUSED:
            others[k] = replace(x, applicability=Applicability.APPLICABLE, reason=f"`{v.name}` {weighs}")
    best = replace(v, applicability=Applicability.CHOSEN, reason=f"it {weighs}: no pilot runs are made")
    return replace(choice, verdicts=(best, *others), unsearched=choice.unsearched - {v.name})


def _weighed(choice: Choice) -> str:
    """Words for what a mixture weighs, and by what."""
    s = choice.situation
    if s.canonical.feedback is Feedback.BANDIT:
        return "models of the loss as the rounds come, by the values that they foresaw"
    if not s.constraints:
        return "rules as the rounds come, by their losses"
    price = "the penalties that the model states" if _priced(choice) else "the tradeoff, in slopes that come"
    return f"rules as the rounds come, by {price}"


def _tried(choice: Choice, usable: tuple[Verdict, ...], data: Any) -> tuple[Verdict, ...]:
    """Verdicts that pilot runs decide between, by rank: on data all that apply and read what the feedback reveals.

    Estimates of gradients from values lose to the gradients, whatever a short run says.
    """
    if data is None:
        return usable[:PILOT_CANDIDATES] if choice.vacuous else ()
    blind = choice.situation.canonical.feedback.gives_values_alone
    return tuple(v for v in usable if blind or not v.algorithm.reads_values_alone) or usable


def _pilots(plan: Plan, source: Any, seed: int, constants: bool, seconds: float) -> tuple[Choice, Pilots, Plan | None]:
    """Choice with the constants of the candidates searched, where there are rounds to run them on; their runs, and the plan of the best."""
    from oco.evaluation.pilot import beside, pilot

    if plan.canonical.size > MOST_NUMBERS:
        return plan.choice, Pilots(skipped=f"a decision has more than {MOST_NUMBERS} numbers"), None
    try:
        data, note = rounds_for(plan, source, seed, PILOT_ROUNDS)
    except OcoError as error:
        return plan.choice, Pilots(skipped=f"{error.message}; `--data FILE` gives rounds to run on"), None
    plan = replace(plan, choice=plan.choice.with_searched(PILOT_CANDIDATES if source is None else None))
    candidates = _tried(plan.choice, plan.choice.usable, source)
    s, has_papers = plan.choice.situation, plan.choice.policy.mode is Mode.UNIT_FREE
    made: dict[Candidate, Callable[[], Plan]] = {}
    rounds = None if source is not None else data.first(PILOT_ROUNDS).rounds
    for v in candidates:
        made[v.name, has_papers] = cache(partial(_for_pilot, plan, v, rounds))
        if constants and v.informativeness is Informativeness.VACUOUS and v.best is not None and v.best.constants:
            made[v.name, True] = cache(partial(_for_pilot, plan, plan.choice.with_papers_constants(v), rounds))
    first = data.first(PILOT_ROUNDS if source is None else _pilot_rounds(data, made, seconds))
    seeds = range(seed, seed + PILOT_SEEDS) if first.drawn else (seed,)
    # What spends by prices is no rule of a mixture, and need not beat chance.
    mixture = "" if _has_totals(s.canonical) else next((v.name for v in candidates if v.algorithm.mixes), "")
    result = pilot(made, first, seeds, s, plan.tradeoff, note, seconds, mixture)
    if result.skipped:
        return plan.choice, result, next(iter(made.values()))()
    result = replace(result, measured=source is not None and not plan.choice.vacuous)
    best = next(v for v in candidates if v.name == result.order[0])
    own = literal(s, best) if constants else None
    beside_it = None if own is None else _for_pilot(plan, own, rounds)
    if beside_it is not None and len(seeds) * usual_seconds(beside_it.program, first.rounds) <= BESIDE_SECONDS:
        result = replace(result, literal=beside(result, beside_it, first, seeds, s, plan.tradeoff))
    return plan.choice, result, made[result.results[0].algorithm, result.papers_constants]()


def _for_pilot(plan: Plan, verdict: Verdict, rounds: int | None) -> Plan:
    """Plan of a candidate with settings for that horizon; None: with those of the run, of which a pilot on data is the beginning.

    Settings that know no horizon are those of the run anyway, and so is the program.
    """
    result = plan.taking(verdict)
    return result if rounds is None or result.anytime else result.with_constants(None, rounds)


def _pilot_rounds(data: Data, plans: Mapping[Candidate, Callable[[], Plan]], seconds: float) -> int:
    """Rounds of the data that pilots are run on: as many as the model of costs allows, no more than a choice may see."""
    from oco.evaluation.tuning import searched

    most = min(searched(data), MOST_PILOT_ROUNDS)
    if most <= PILOT_ROUNDS or seconds <= 0:
        return min(most, PILOT_ROUNDS)
    seeds = PILOT_SEEDS if data.drawn else 1
    a_round = seeds * sum(usual_seconds(made().program, 1) for made in plans.values())
    return max(PILOT_ROUNDS, min(most, int(min(LONG_SECONDS, seconds / 12) / a_round)))


def rounds_for(plan: Plan, source: Any, seed: int, rounds: int) -> tuple[Data, str]:
    """Rounds of the source, or draws from the model; and a phrase that names their origin."""
    from oco.evaluation.data import load_data

    wanted = min(rounds, plan.horizon or rounds)
    if source is None:
        return load_data(plan.canonical, None, seed=seed, rounds=wanted), "drawn from the model"
    return load_data(plan.canonical, source, seed=seed), "from the beginning of the data"


def rounds_given(problem: Canonical, source: Any, seed: int) -> dict[str, Any]:
    """Arrays of the streams that the source has, the round first."""
    from oco.evaluation.data import load_data

    return dict(load_data(problem, source, seed=seed).given)


def explained(
    model: Model,
    settings: str | None,
    tradeoff: float = 1.0,
    data: Any = None,
    seed: int = 0,
    effort: float = 1.0,
    seconds: float = PILOT_SECONDS,
) -> Choice:
    """Verdicts on a model, even where no algorithm applies; with pilot runs on data and where no guarantee decides."""
    kind = Mode.LEAST if settings is None else settings
    if data is None:
        problem, seen = canonical(model), None
    else:
        from oco.evaluation.data import problem_for

        problem = problem_for(model, data, seed)
        seen = rounds_given(problem, data, seed)
    choice = explain_choice(problem, kind, tradeoff, effort, seen)
    if not _tried(choice, choice.usable, data) and _ahead_of_pilots(choice, data) is None:
        return choice
    plan = Plan.of(plan_of(choice, problem, kind))
    return plan.choice if plan.mode is Mode.PAPER else piloted(plan, data, seed, settings is None, seconds).choice


@dataclass(frozen=True, eq=False)
class Tuned:
    """Result of tuning: the plan with the best constants, the search, and the line for the model file, "" where that stays as it is."""

    plan: Plan
    search: Tuning
    line: str

    def __str__(self) -> str:
        return tuning_text(self)


def tuned(
    plan: Plan, data: Any = None, seed: int = 0, seconds: float = TUNING_SECONDS, gradient: bool = False
) -> Tuned:
    """Plan with its settings chosen on pilot data: rounds given, or drawn from the model; within so many seconds.

    gradient  True for a descent along the slopes of the cost, in the constants of the plan's own algorithm; else trials around the default

    Raises OcoError where nothing can be chosen, and where there are no rounds to tune on.
    """
    from oco.evaluation.descent import descend
    from oco.evaluation.tuning import tune
    from oco.gradients import slopes_of

    spaces = {plan.algorithm: own_space(plan)} if gradient else search_spaces(plan)
    if len(spaces) == 1 and not plan.free:
        raise fail("OCO711", f"`{plan.algorithm}` leaves no constant free here", hint='use settings="optimal"')
    source, _ = rounds_for(plan, data, seed, TUNING_ROUNDS)
    if source.rounds < 2:
        raise fail("OCO710", "there is one round only to tune on", hint="give more rounds with --data")
    options: dict[str, Any] = {"weight": plan.tradeoff, "seed": seed, "seconds": seconds}
    if gradient:
        own = spaces[plan.algorithm]
        slopes = partial(slopes_of, plan, seed)
        result = descend(plan.algorithm, own, slopes, source, plan.choice.played, **options)
    else:
        result = tune(spaces, source, plan.choice.situation, **options)
    best, why = result.best, chosen_why(result, plan.horizon)
    chosen: Plan = spaces[best.space].plan  # type: ignore[assignment]
    given = chosen.given_constants(best.numbers) if chosen.free else dict(given_formulas(chosen.choice.verdicts[0]))
    if "season" in chosen.settings and chosen.season > 1:  # measured on data, which a model file does not have
        given = {**given, "season": chosen.season}
    numbers = best.numbers if chosen.free else None
    stays = best is result.default and not plan.choice.forced
    return Tuned(_with(chosen, given, numbers, why), result, "" if stays else using_line(chosen.algorithm, given))


def own_space(plan: Plan) -> SearchSpace:
    """Constants of the plan, with its starts."""
    from oco.evaluation.tuning import SearchSpace

    return SearchSpace(plan, plan.free, starts_of(plan.choice), plan.allows)


def search_spaces(plan: Plan) -> dict[str, SearchSpace]:
    """Settings that are searched, by name: those of the plan, of its other prices and memories, and of other algorithms where
    none was named.
    """
    from oco.evaluation.tuning import SearchSpace

    spaces = {plan.algorithm: own_space(plan)}
    others = (v for v in plan.choice.with_searched().usable[1:] if not v.algorithm.reads_values_alone)
    for name, v in (*variants(plan.choice).items(), *((v.name, v) for v in islice(others, OTHERS))):
        other = plan.taking(v)
        numbers = {} if v.best is None else v.best.numbers
        spaces[name] = SearchSpace(other, other.free, {name: numbers}, other.allows)
    return spaces


def chosen_why(search: Tuning, horizon: int | None) -> str:
    """Explanation of the choice, with a remark where the search was short compared with the run."""
    if horizon is None or horizon < FAR * search.split:
        return str(search)
    return (
        f"{search}; it saw {search.split} rounds, and the best constants of {horizon} are often others: tune on as many"
    )


def _with(plan: Plan, given: Mapping[str, str | float], numbers: Mapping[str, float] | None, why: str) -> Plan:
    """Plan with these constants (None: its own) and the guarantee that follows from them."""
    chosen = plan if numbers is None else plan.with_constants(numbers).promised()
    winner = chosen.choice.winner
    assert winner is not None
    message = replace(winner, reason=f"its settings are tuned on pilot rounds: {why}", best=None)
    choice = replace(chosen.choice, verdicts=(message, *chosen.choice.verdicts[1:]))
    return replace(plan, choice=choice, mode=Mode.TUNED, given=dict(given))


def using_line(algorithm: str, given: Mapping[str, str | float]) -> str:
    """Line that gives a model file these settings."""
    settings = ", ".join(f"{name} = {value}" for name, value in given.items())
    return f"using {algorithm} with {settings}" if settings else f"using {algorithm}"


def tuning_text(result: Tuned) -> str:
    """Table of the trials, the best first, and the line for the model file."""
    search = result.search
    lines = [
        f"{result.plan.algorithm}: {len(search.tried)} settings, searched on rounds 1 to {search.split}, judged on rounds "
        f"{search.split + 1} to {search.rounds} (seed {search.seed})",
        "",
        f"{'':<16}{'rounds':>8}{'searched':>14}{'held out':>14}  constants",
    ]
    for t in sorted(search.tried[:10], key=lambda t: t is not search.best):
        held = "" if t.held_out is None else f"{t.held_out:.6g}"
        growing = " (violation grows)" if t.grows else ""
        constants = ", ".join(f"{n} {x:g}" for n, x in t.numbers.items())
        lines.append(f"{t.name:<16}{t.rounds:>8}{t.searched:>14.6g}{held:>14}  {constants}{growing}")
    lines += [
        "",
        "Costs a round, in the second half of the rounds searched and in those held out: loss / range of the loss +",
        "tradeoff (violations / their scales, or at their penalties).",
        f"Chosen: {chosen_why(search, result.plan.horizon)}.",
    ]
    guarantee = result.plan.guarantee
    if guarantee is not None and guarantee.horizon is not None:
        lines += [f"Guarantee: {bound_text(b, guarantee)}" for b in guarantee.bounds]
    return "\n".join([*lines, "", result.line or "The model stays as it is."]) + "\n"
