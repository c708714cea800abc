"""Steps from a model to its facts, its plan, and a saved learner."""

from __future__ import annotations

import logging
import numbers
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from oco.dsl.bind import bind
from oco.dsl.builder import ModelBuilder
from oco.dsl.calls import checked_call
from oco.dsl.diagnostics import contained, fail, require
from oco.dsl.logs import logger
from oco.dsl.model import Model
from oco.dsl.telemetry import span

if TYPE_CHECKING:
    from oco.backends.fleet import Fleet
    from oco.backends.learner import Learner
    from oco.compiler.problem.canonical import Canonical
    from oco.evaluation.report.trace import Trace
    from oco.facts import Facts
    from oco.migrating import Migration
    from oco.plan import Plan
    from oco.tuning import Tuned

log = logger(__name__)


@checked_call
def check(
    model: Model | ModelBuilder, params: Mapping[str, Any] | None = None, data: Any = None, *, effort: float = 1.0
) -> Facts:
    """Prove facts about the model: `facts["loss.lipschitz.l2"]` has a value, a status and a reason.

    data    a file, arrays or a table of rounds: adds measured facts, and errors where the data contradict the model
    effort  multiplies the number of steps that the proof searches may take; where one gives up, the reason of the fact
            says "not searched further". Facts are the same on every machine, and more effort never makes one worse

    Raises OcoError where the model is wrong, and where a loss or a constraint is shown not to be convex.
    """
    from oco.compiler.problem.canonical import canonical
    from oco.compiler.prover.check import check_canonical
    from oco.compiler.prover.search_budget import SearchBudget
    from oco.facts import Facts

    with contained("checking this model"):
        bound, budget = _bound(model, params), SearchBudget(effort)
        if data is None:
            facts = Facts.of(check_canonical(bound, canonical(bound), budget=budget))
        else:
            problem, *seen = _observed(bound, data)
            facts = Facts.of(check_canonical(bound, problem, *seen, budget=budget))
    log.info("%s: %d facts, %d warnings", bound.name, len(facts), len(facts.warnings))
    return facts


def _observed(model: Model, source: Any) -> tuple[Canonical, dict[str, Any], Mapping[str, Any] | None]:
    """The problem, the rounds of the data (what it lacks is drawn), and the best decision of each round where it can be found."""
    from oco.evaluation.comparators import ComparatorBudget
    from oco.evaluation.comparators.compare import compare
    from oco.evaluation.data import load_data, problem_of

    problem = problem_of(model, source)
    data = load_data(problem, source)
    best = compare(problem, data, "dynamic", ComparatorBudget(seconds=30.0))
    return problem, {s.name: data.array(s.name) for s in problem.streams}, best.decision or None


@checked_call
def compile(
    model: Model | ModelBuilder,
    algorithm: str | None = None,
    settings: str | Mapping[str, str | float] | None = None,
    backend: str | None = None,
    params: Mapping[str, Any] | None = None,
    *,
    tradeoff: float = 1.0,
    data: Any = None,
    seed: int = 0,
    effort: float = 1.0,
    budget: float | None = None,
    on_missing: str = "error",
    certify: str | None = None,
    alert: float | None = None,
    precision: str | None = None,
) -> Plan:
    """Check the model, choose the algorithm, and set its parameters: `hedged`, which weighs rules of practice, or where the best
    guarantee says something and that of `hedged` does not, the algorithm that has it; else the best of pilot runs.

    algorithm  name of the algorithm to use instead of choosing one
    settings   "optimal": scaled to be free of units, with the constants of the best guarantee; "unit-free": so scaled,
               with the paper's constants; "paper": exactly the paper's; "tuned": chosen on pilot rounds; or formulas in
               t, T and facts by name: {"alpha": "2 * sqrt(t)"}. None: "optimal"; where every guarantee is vacuous and
               no algorithm is named, "optimal" or "unit-free", whichever does better in pilot runs
    backend    "numpy" or "c", None for the fastest; `precision`: that of learners in C, "exact" or "fast" (`Plan.with_precision`)
    params     values for the params that the model leaves open
    tradeoff   weight of violation against regret where the two are added, and on data the price of violations that state
               no penalty: in ranges of the loss over the size of a constraint, in `hedged` in slopes that come
    data       rounds to plan for: the horizon becomes their number, and the algorithm, if none is named, `hedged` where it
               applies, else the best of pilot runs on the first rounds. None draws pilot rounds where they are needed
    seed       of pilot runs and of tuning; `effort` of proof searches is that of `check`
    budget     seconds of pilot runs, by a model of costs or by the clock, after which no other algorithm is begun; None: 30
    on_missing values that the data lack: "error", "hold" (the last value before) or "skip" (leave the round out)
    certify    "static": learners keep the sums of a certificate of the static regret (`learner.certificate()`); "dynamic": of
               that to the best decision of each round too, which takes a search in every round
    alert      most probable false alarm: learners go over to another rule once the streams are not as the model states

    Raises OcoError where the model is wrong or no algorithm applies.
    """
    require(algorithm, (str, type(None)), "the name of an algorithm", "`oco algorithms` lists them")
    require(settings, (str, Mapping, type(None)), "a kind of settings, or formulas by name")
    require(tradeoff, numbers.Real, "a number as the tradeoff")
    require(seed, numbers.Integral, "an integer as the seed")
    require(budget, (numbers.Real, type(None)), "a number of seconds as the budget")
    if data is not None:
        from oco.evaluation.data import check_source, load_data, problem_for, problem_of

        check_source(data)
    with contained("compiling this model"):
        bound = _bound(model, params)
        if data is not None:
            data = load_data(problem_of(bound, data), data, seed=seed, on_missing=on_missing)
        problem = bound if data is None else problem_for(bound, data, seed)
        options: dict[str, Any] = {"tradeoff": tradeoff, "effort": effort, "budget": budget, "data": data}
        with span("oco.compile", {"oco.model": problem.name}):
            plan = planned(problem, algorithm, settings, backend, seed=seed, **options)
        return _logged(instrumented(plan, certify, alert, precision))


def _logged(plan: Plan) -> Plan:
    """Plan, of which the log has the algorithm and the warnings."""
    if log.isEnabledFor(logging.WARNING):
        log.info("%s: %s for %s rounds", plan.model.name, plan.algorithm, plan.horizon or "any number of")
        for warning in plan.warnings:
            log.warning("%s: %s %s", plan.model.name, warning.code, warning.message)
    return plan


def instrumented(plan: Plan, certify: str | None, alert: float | None, precision: str | None = None) -> Plan:
    """Plan whose learners keep a certificate of this kind and watch their streams with this probability of false alarms, if any, with
    numbers of a precision.
    """
    require(certify, (str, type(None)), "a kind of regret to certify", '"static" or "dynamic"')
    require(alert, (numbers.Real, type(None)), "a probability of false alarms as `alert`")
    plan = plan if precision is None else plan.with_precision(precision)
    plan = plan if certify is None else plan.certified(certify)
    return plan if alert is None else plan.alerting(alert)


def planned(
    problem: Model | Canonical,
    algorithm: str | None,
    settings: str | Mapping[str, str | float] | None,
    backend: str | None,
    *,
    data: Any,
    seed: int,
    tradeoff: float,
    effort: float,
    budget: float | None = None,
) -> Plan:
    """Plan for the horizon of the problem, with `data` as its pilot rounds. Parameters and errors are those of
    `compile`.
    """
    from oco.compiler.problem.canonical import Canonical, canonical
    from oco.compiler.selection.modes import Mode
    from oco.compiler.selection.plan import compile_plan
    from oco.overflow_check import check_overflow
    from oco.plan import Plan
    from oco.tuning import PILOT_SECONDS, piloted, rounds_given, tuned

    kind = Mode.LEAST if settings is None else settings
    with contained("compiling this model"):
        problem = problem if isinstance(problem, Canonical) else canonical(problem)
        seen = None if data is None else rounds_given(problem, data, seed)
        plan = Plan.of(compile_plan(problem, algorithm, kind, tradeoff=tradeoff, effort=effort, seen=seen), backend)
        check_overflow(plan)
        if plan.mode is not Mode.PAPER:
            seconds = PILOT_SECONDS if budget is None else float(budget)
            plan = piloted(plan, data, seed, constants=settings is None, seconds=seconds)
        return tuned(plan, data, seed).plan if settings == "tuned" else plan


@checked_call
def tune(
    model: Model | ModelBuilder,
    data: Any = None,
    algorithm: str | None = None,
    params: Mapping[str, Any] | None = None,
    *,
    tradeoff: float = 1.0,
    seed: int = 0,
    effort: float = 1.0,
    seconds: float | None = None,
    gradient: bool = False,
) -> Tuned:
    """Choose settings on pilot data: the constants that the theorem leaves free, the price of violations, the memory, and the
    algorithm where none is named. What is judged is the steady state: the second half of each trial of the search, then the
    rounds that the search did not use, in one run from the first round. The default is kept where nothing costs less there, by more than
    chance may show.

    data    pilot rounds, a file or arrays with the round first; None draws them from the model. The plan is for the
            model's horizon
    effort  as for `compile`
    seconds that the search may take, ten minutes by default; the result counts the trials that were left out
    gradient  True for a few steps from the default along the slopes of the cost, with JAX, in place of trials: constants alone

    The result has the plan, the search, and the `using` line for the model file. Raises what `compile` raises.
    """
    from oco.evaluation.data import check_source, load_data, problem_of
    from oco.tuning import TUNING_SECONDS, tuned

    check_source(data)
    with contained("tuning this model"):
        problem = problem_of(_bound(model, params), data)
        source = None if data is None else load_data(problem, data, seed=seed)
        kind = None if algorithm is None else "optimal"
        options: dict[str, Any] = {"tradeoff": tradeoff, "effort": effort}
        plan = planned(problem, algorithm, kind, None, data=source, seed=seed, **options)
        return tuned(plan, source, seed, TUNING_SECONDS if seconds is None else seconds, gradient)


@checked_call
def restore(
    source: str | os.PathLike[str] | Mapping[str, Any] | bytes, backend: str | None = None, *, plan: Plan | None = None
) -> Learner:
    """Learner from `learner.save(path)`, `learner.state()` or the bytes of `NAME_save` in C, which continues bit for bit.

    backend  by default the one that saved the state, where it works on this machine
    plan     of the learner, where its state is bytes: those hold the algorithm's values and no model

    Raises OCO850 where the state is damaged, OCO851 where its model now gives another plan.
    """
    from oco.backends.saved import learner_of_bytes, read_saved
    from oco.plan import restored_learner

    require(source, (str, os.PathLike, Mapping, bytes), "the path of a saved state, a state, or bytes")
    if isinstance(source, bytes):
        if plan is None:
            raise fail(
                "OCO850", "bytes of a state name no model", hint="give their plan: oco.restore(bytes, plan=plan)"
            )
        return learner_of_bytes(source, plan.learner(backend=backend or "c"))
    state = source if isinstance(source, Mapping) else read_saved(source)
    return restored_learner(state, backend)


@checked_call
def restore_fleet(
    path: str | os.PathLike[str], backend: str | None = None, *, workers: int = 1, timeout: float | None = 0.0
) -> Fleet:
    """Fleet from `fleet.save(path)`, which continues bit for bit.

    backend  by default the one that saved it, where it works on this machine
    workers, timeout  as for `plan.fleet`

    Raises OCO850 where the file is damaged, OCO851 where its model now gives another plan.
    """
    from oco.backends.fleet_file import read_fleet
    from oco.backends.registry import usable
    from oco.plan import Plan

    require(path, (str, os.PathLike), "the path of a saved fleet")
    saved = read_fleet(path)
    plan = Plan.from_recipe(saved.about.get("recipe"), backend or usable(saved.about.get("backend")))
    with contained("restoring this model"):
        fleet = plan.fleet(saved.about["size"], workers=workers, timeout=timeout)
        fleet._restore(saved)
        return fleet


@checked_call
def migrate(
    source: str | os.PathLike[str] | Mapping[str, Any] | Learner, plan: Plan, backend: str | None = None
) -> Migration:
    """Carry a learner to a plan of the same decisions and streams whose horizon, settings, bounds or data changed.

    source   a saved state or its file, the folder of a journal (which stays as it is), or a learner
    plan     that goes on from there
    backend  by default the one that saved the state, where it works on this machine

    Where both plans have the same rule with the same numbers, the state is one of the new plan, and its guarantee covers the rounds
    that were played. Else the new plan begins at the decision reached, values that a round leaves to the next are carried, and over all
    rounds the regret is at most the sum of both bounds. `result.kept` says which, and the learner has it among its warnings.

    Raises OCO862 where decisions or streams differ, OCO850 and OCO851 for states, OCO854 to OCO858 for journals.
    """
    from oco.backends.delayed import DelayedLearner
    from oco.backends.learner import Learner
    from oco.migrating import migrated
    from oco.plan import Plan

    kinds = (str, os.PathLike, Mapping, Learner, DelayedLearner)
    require(source, kinds, "a saved state, its file, the folder of a journal, or a learner")
    require(plan, Plan, "a plan", "oco.compile(model) makes one")
    return migrated(source, plan, backend)


@checked_call
def alert(plan: Plan, alpha: float = 0.01, **options: Any) -> Learner:
    """Learner that watches the distributions, means and independence that its model states of the streams.

    alpha    probability of a false alarm, over all rounds and all statements together, at most
    options  as `plan.learner` takes them

    On an alarm it says since which round what is no longer claimed, and goes over to the rule of a plan for any sequence in the
    ranges of the streams, from the decision reached: the learner of `plan.alerting(alpha)`. Raises OCO872 where nothing is stated.
    """
    from oco.plan import Plan

    require(plan, Plan, "a plan", "oco.compile(model) makes one")
    with contained("compiling this model"):
        return plan.alerting(alpha).learner(**options)


@checked_call
def load_trace(path: str | os.PathLike[str]) -> Trace:
    """Trace from the NetCDF or Zarr file of `trace.save` or `oco run --out`, with data, decisions and manifest. Raises
    OCO833.
    """
    from oco.evaluation.load import load_trace as read
    from oco.evaluation.report.trace import Trace

    return Trace.of(read(os.fspath(path)))


@checked_call
def open(
    plan: Plan,
    folder: str | os.PathLike[str],
    *,
    seed: int = 0,
    start: Any = None,
    backend: str | None = None,
    on_out_of_bounds: str = "error",
    snapshot_every: int = 100,
    keep_rounds: int | None = None,
) -> Learner:
    """Learner with a journal: decisions and data are on disk before they count, and a new process continues where this
    one ended.

    folder          of the journal; rounds that it already has are replayed, and its `seed`, `start` and
                    `on_out_of_bounds` are kept
    backend         by default that of a journal that has rounds; another one is then refused
    snapshot_every  rounds between snapshots of the state, at most so many are replayed
    keep_rounds     least number of rounds to keep; by default all, each with its decision and data in full: 11 bytes a
                    number

    `learner.observe(..., round=t)` may be repeated, as after a crash: the same data changes nothing, other data raises
    OCO856, a round out of order OCO847. Raises OCO851 for the journal of another model, plan or backend, OCO854 to
    OCO858 for one that is damaged, in use or not writable. The folder belongs to its learner while that is open: copy
    all of it, after `close`.
    """
    from oco.backends.opening import open_journal

    choice = plan.backend_for(plan.horizon, backend)

    def made(recorded: str | None) -> Learner:
        name = choice.following(recorded).name
        return plan.learner(seed=seed, start=start, backend=name, on_out_of_bounds=on_out_of_bounds)

    return open_journal(made, folder, snapshot_every, keep_rounds, turns=plan.canonical.delay + 1)


def _bound(model: Model | ModelBuilder, params: Mapping[str, Any] | None) -> Model:
    built = model.build() if isinstance(model, ModelBuilder) else model
    require(built, Model, "a model", "oco.parse(text) makes one of a text, oco.load(path) of a file")
    require(params, (Mapping, type(None)), "values by the names of params")
    return bind(built, params) if params else built
