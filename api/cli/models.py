"""Commands about one model: check, explain, compile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import oco
from oco.backends import BACKENDS
from oco.cli.options import (
    Alert,
    Certify,
    DataPath,
    Force,
    Json,
    Kind,
    ModelPath,
    OnMissing,
    Params,
    PilotTime,
    Precision,
    Target,
    Tradeoff,
    check_outputs,
    effort_of,
    files_read,
    given,
    model_at,
    pairs,
    param_values,
    pilot_seconds,
    planned_for,
    rounds_of,
)
from oco.cli.output import note, paint, say, show_diagnostic, show_json
from oco.cli.progress import working
from oco.dsl.diagnostics import fail
from oco.dsl.suggest import nearest
from oco.pipeline import instrumented

if TYPE_CHECKING:
    from oco.evaluation.data import Data
    from oco.facts import Facts
    from oco.plan import Plan

Algorithm = Annotated[
    str | None, typer.Option("--algorithm", metavar="NAME", help="Take this one instead of choosing.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=FORMULA", help="A setting, as a formula in t and T: alpha=2*sqrt(t)."),
]
Backend = Annotated[str | None, typer.Option("--backend", metavar="NAME", help=f"{' or '.join(BACKENDS)}.")]


def check(
    context: typer.Context,
    model: ModelPath,
    param: Params = None,
    why: Annotated[str | None, typer.Option("--why", metavar="FACT", help="Print the derivation of one fact.")] = None,
    data: Annotated[
        Path | None, typer.Option("--data", metavar="FILE", help="Measure facts on these rounds as well.")
    ] = None,
    on_missing: OnMissing = "error",
    verify: Annotated[
        bool, typer.Option("--verify", metavar="", help="Replay every derivation by other means.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Check a model and list what was proved of it: curvature, bounds, constants, feasibility."""
    loaded = model_at(model, param_values(param))
    rounds = _noted(rounds_of(loaded, data, on_missing), as_json)
    with working(f"checking {model}", silent=as_json):
        facts = oco.check(loaded, data=rounds, effort=effort_of(context))
    if as_json:
        show_json(facts.as_data())
        return
    for warning in facts.warnings:
        show_diagnostic(warning)
    if verify:
        _show_replay(facts)
        return
    if why is None:
        paint(str(facts))
        return
    if why not in facts:
        near = nearest(why, facts)
        raise fail(
            "OCO908", f"there is no fact `{why}`", hint=f"did you mean {near}?" if near else "`oco check` lists them"
        )
    paint(str(facts[why]))


def _show_replay(facts: Facts) -> None:
    """Print the outcome of every step of every derivation; exit with status 1 where one failed."""
    from oco.compiler.prover.audit.falsify import AuditOutcome
    from oco.compiler.prover.audit.verify import replay_text, verify

    result = verify(facts)
    paint(replay_text(result))
    if any(c.outcome is AuditOutcome.FAILED for c in result):
        raise typer.Exit(1)


def _noted(data: Data | None, as_json: bool) -> Data | None:
    """Data unchanged, after printing its notes on stderr."""
    for text in () if data is None or as_json else data.notes:
        note(text)
    return data


def explain(
    context: typer.Context,
    model: ModelPath,
    settings: Kind = None,
    tradeoff: Tradeoff = 1.0,
    data: DataPath = None,
    on_missing: OnMissing = "error",
    budget: PilotTime = None,
    frontier: Annotated[
        bool, typer.Option("--frontier", metavar="", help="What a smaller regret costs in violation, by weight.")
    ] = False,
    param: Params = None,
    as_json: Json = False,
) -> None:
    """Say which algorithm is chosen, with which settings and guarantee, and why every other one is not.

    `hedged` is the default, unless the best guarantee says something and that of `hedged` does not. Where it does not apply, and on data
    without constraints, pilot runs may decide: over the first rounds of the data, else over draws from the model.
    """
    from oco.compiler.selection.explain import explain_data, explain_text
    from oco.compiler.selection.frontier import frontier as points_of
    from oco.compiler.selection.frontier import frontier_text
    from oco.tuning import explained

    loaded = model_at(model, param_values(param))
    rounds = _noted(rounds_of(loaded, data, on_missing), as_json)
    with working(f"choosing an algorithm for {model}", silent=as_json):
        options: dict[str, Any] = {} if (time := pilot_seconds(budget)) is None else {"seconds": time}
        choice = explained(loaded, settings, tradeoff, rounds, effort=effort_of(context), **options)
    if frontier:
        winner = choice.winner
        paint(frontier_text(() if winner is None else points_of(choice.situation, winner)))
        return
    if as_json:
        show_json({"version": 1, "model": choice.situation.canonical.name} | explain_data(choice))
        return
    for warning in dict.fromkeys((*choice.situation.facts.warnings, *choice.warnings)):
        show_diagnostic(warning)
    paint(explain_text(choice))


def compile(
    context: typer.Context,
    model: ModelPath,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="PATH",
            help="A folder, where NumPy has a file with the rule alone, to review, or with .py one module of all. Default: NAME_BACKEND.",
            show_default=False,
        ),
    ] = None,
    backend: Backend = None,
    algorithm: Algorithm = None,
    setting: Settings = None,
    settings: Kind = None,
    tradeoff: Tradeoff = 1.0,
    data: DataPath = None,
    on_missing: OnMissing = "error",
    budget: PilotTime = None,
    param: Params = None,
    certify: Certify = None,
    alert: Alert = None,
    precision: Precision = None,
    target: Target = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write the learner to be run elsewhere: a Python module that needs NumPy alone, C99, or WebAssembly.

    --data gives the rounds to plan for, and to choose by as `oco explain` does. Where the file lacks streams that the model draws, or
    values, the rounds that `oco run` measures are written beside the learner.
    """
    loaded = model_at(model, param_values(param))
    options = {"tradeoff": tradeoff, "effort": effort_of(context), **given(pairs(setting, "--set"), settings)}
    pilots = _noted(rounds_of(loaded, data, on_missing), as_json)
    with working(f"compiling {model}", silent=as_json):
        made = oco.compile(loaded, algorithm, backend=backend, data=pilots, budget=pilot_seconds(budget), **options)
        plan = instrumented(made, certify, alert)
        path = output or _default_place(plan, target or backend or next(iter(BACKENDS)), target)
        written = list(plan.files_at(path, backend, precision, target))
    _note_horizon(pilots, as_json)
    rounds = _rounds_beside(path, written == [path], pilots, data, on_missing)
    written += [rounds] if rounds else []
    check_outputs(written, force, files_read(model, loaded, data))
    plan.write(path, backend, precision, target)
    if pilots is not None and rounds is not None:
        from oco.evaluation.rounds_file import write_rounds

        write_rounds(pilots, rounds)
    if as_json:
        return show_json(json.loads(plan.to_json()) | {"file": str(path), "files": [str(file) for file in written]})
    for warning in plan.warnings:
        show_diagnostic(warning)
    if rounds is not None:
        note(f"{rounds}: the rounds of {data}, with what it lacks")
    say(
        f"{path}: {plan.algorithm} for {loaded.name}, {plan.usage(path, rounds or data or 'data.csv', backend, target, precision)}"
    )


def _note_horizon(pilots: Data | None, as_json: bool) -> None:
    """Notes on a number of rounds of data that is not the model's."""
    for text in () if pilots is None or as_json else planned_for(pilots.rounds, pilots.problem.horizon):
        note(text)


def _default_place(plan: Plan, ending: str, target: str | None) -> Path:
    """Folder of the model's and the backend's or target's name, or the file of a backend that writes one."""
    folder = Path(f"{plan.model.name}_{ending}")
    return folder if target or list(plan.files_at(folder)) != [folder] else Path(next(iter(plan.files())))


def _rounds_beside(
    learner: Path, one_file: bool, pilots: Data | None, data: Path | None, on_missing: str
) -> Path | None:
    """File for rounds that the learner cannot read from the data itself; None where it can, and where none can hold its values."""
    if pilots is None or data is None:
        return None
    from oco.evaluation.rounds_file import is_complete

    if is_complete(pilots, data, on_missing):
        return None
    if pilots.problem.feedback.gives_values_alone:
        return None
    return learner.with_name(f"{learner.stem}_rounds.csv") if one_file else learner / "rounds.csv"
