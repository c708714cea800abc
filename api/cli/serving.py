"""Learners by key: `oco serve` behind HTTP, `oco pipe` between standard input and output, `oco emit` in an engine of streams."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import oco
from oco.cli.models import Algorithm, Backend, Settings
from oco.cli.options import (
    Alert,
    Certify,
    DataPath,
    Force,
    Kind,
    ModelPath,
    Params,
    Seed,
    Tradeoff,
    check_outputs,
    effort_of,
    files_read,
    given,
    model_at,
    pairs,
    param_values,
    rounds_of,
)
from oco.cli.output import note, say
from oco.cli.progress import working
from oco.dsl.diagnostics import fail
from oco.dsl.extras import require_package
from oco.dsl.writing import write_text
from oco.pipeline import instrumented

if TYPE_CHECKING:
    from oco.dsl.model import Model
    from oco.plan import Plan
    from oco.serving.store import Store

LOOPBACK = ("127.0.0.1", "::1", "localhost")

Place = Annotated[
    Path,
    typer.Argument(
        metavar="WHAT",
        help="A model, a saved state, the folder of a journal, or a store from before (file or folder).",
        show_default=False,
    ),
]
StorePath = Annotated[
    Path | None,
    typer.Option(
        "--store",
        metavar="FILE.db",
        help="Database of the learners. Default: the name of WHAT with .db.",
        show_default=False,
    ),
]
KeepRounds = Annotated[
    int,
    typer.Option("--keep-rounds", min=1, metavar="N", help="Rounds of a key that are kept to answer repeated calls."),
]
StoreSeed = Annotated[
    int | None,
    typer.Option(
        "--seed", min=0, metavar="SEED", help="Of all that learners draw, each by its key.", show_default=False
    ),
]
OutOfBounds = Annotated[
    str | None,
    typer.Option(
        "--on-out-of-bounds",
        metavar="WHAT",
        help="Data outside the model's bounds: error, clip or accept.",
        show_default=False,
    ),
]


def serve(
    context: typer.Context,
    what: Place,
    store: StorePath = None,
    host: Annotated[
        str,
        typer.Option("--host", metavar="ADDRESS", help="Address to listen at; others than this machine's need tokens."),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, metavar="PORT", help="Port; 0: any free one.")] = 8000,
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", metavar="FILE", help="Tokens that are let in, a line each.", show_default=False),
    ] = None,
    rate: Annotated[
        int | None,
        typer.Option(
            "--rate",
            min=1,
            metavar="N",
            help="Requests a second that each token, or address, may send; others get 429 with Retry-After. Default: any number.",
            show_default=False,
        ),
    ] = None,
    keep_rounds: KeepRounds = 100,
    durability: Annotated[
        str,
        typer.Option(
            "--durability",
            metavar="WHAT",
            help="What an answer outlives. disk: a power cut; system: the end of this process, and the disk follows within about a second.",
        ),
    ] = "disk",
    seed: StoreSeed = None,
    on_out_of_bounds: OutOfBounds = None,
    backend: Backend = None,
    algorithm: Algorithm = None,
    setting: Settings = None,
    settings: Kind = None,
    tradeoff: Tradeoff = 1.0,
    data: DataPath = None,
    param: Params = None,
    certify: Certify = None,
    alert: Alert = None,
) -> None:
    """Serve learners by key over HTTP, each round on the disk before it is answered.

    POST /learners/KEY/decide and /observe with JSON, GET /learners/KEY/certificate and /state, /metrics, /healthz, /openapi.json. A call
    that is sent again gets the recorded answer. SIGTERM or Ctrl-C ends it once all calls are answered; started again it goes on.
    """
    require_package("uvicorn", "the service")
    from oco.serving.admission import Admission
    from oco.serving.running import run

    tokens = _tokens(token_file)
    if host not in LOOPBACK and not tokens:
        hint = "--token-file FILE names the tokens that are let in, a line each"
        raise fail("OCO667", f"others can reach {host}, and no tokens are asked for", hint=hint)
    options = _plan_options(context, algorithm, setting, settings, tradeoff, certify, alert)
    opened = _opened(what, store, (backend, seed, on_out_of_bounds, keep_rounds), options, data, param, durability)
    run(opened, host, port, Admission(tokens, rate), note)


def pipe(
    context: typer.Context,
    what: Place,
    store: StorePath = None,
    keep_rounds: KeepRounds = 100,
    seed: StoreSeed = None,
    on_out_of_bounds: OutOfBounds = None,
    backend: Backend = None,
    algorithm: Algorithm = None,
    setting: Settings = None,
    settings: Kind = None,
    tradeoff: Tradeoff = 1.0,
    data: DataPath = None,
    param: Params = None,
    certify: Certify = None,
    alert: Alert = None,
) -> None:
    """Read events as JSON lines, and write the decisions of learners by key, each on the disk before it is written.

    {"key": "a"} asks for a decision; {"key": "a", "round": 1, "observe": {...}} gives the data of a round and asks for the next decision,
    of which "decide": {...} has the contexts. Lines that come again get the recorded answers.
    """
    from oco.serving.piping import pipe_lines

    options = _plan_options(context, algorithm, setting, settings, tradeoff, certify, alert)
    opened = _opened(what, store, (backend, seed, on_out_of_bounds, keep_rounds), options, data, param)
    if pipe_lines(opened, sys.stdin, sys.stdout):
        raise typer.Exit(1)


def emit(
    context: typer.Context,
    engine: Annotated[str, typer.Argument(metavar="ENGINE", help="flink or quix.", show_default=False)],
    model: ModelPath,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE.py", help="File to write. Default: NAME_ENGINE.py.", show_default=False
        ),
    ] = None,
    keep_rounds: KeepRounds = 100,
    seed: Seed = 0,
    on_out_of_bounds: OutOfBounds = None,
    backend: Backend = None,
    algorithm: Algorithm = None,
    setting: Settings = None,
    settings: Kind = None,
    tradeoff: Tradeoff = 1.0,
    data: DataPath = None,
    param: Params = None,
    certify: Certify = None,
    alert: Alert = None,
    force: Force = False,
) -> None:
    """Write a job of an engine of streams with learners by key, one file to edit and run: Flink or Quix Streams (Kafka).

    The engine keeps each learner as the bytes that emitted C saves. Events and answers are the lines of `oco pipe`: one that comes again
    gets the recorded answer. Source, sink and parallelism stand where the file begins.
    """
    from oco.emitting import JobOptions, engine_of, job

    known = engine_of(engine)
    options = _plan_options(context, algorithm, setting, settings, tradeoff, certify, alert)
    loaded = model_at(model, param_values(param))
    path = output or Path(f"{loaded.name}_{engine}.py")
    check_outputs([path], force, files_read(model, loaded, data))
    with working(f"compiling {model}"):
        plan = _compiled(loaded, data, options)
        written = JobOptions(backend, seed, keep_rounds, on_out_of_bounds or "error")
        write_text(path, job(plan, engine, path, written))
    say(f"{path}: {plan.algorithm} for {loaded.name}, by key in {known.title}. Try it: {known.run.format(path=path)}")


def _plan_options(
    context: typer.Context,
    algorithm: str | None,
    setting: list[str] | None,
    settings: str | None,
    tradeoff: float,
    certify: str | None,
    alert: float | None,
) -> dict[str, Any]:
    """Keyword arguments of `oco.compile`."""
    own = {"tradeoff": tradeoff, "effort": effort_of(context), "certify": certify, "alert": alert}
    return {"algorithm": algorithm, **own, **given(pairs(setting, "--set"), settings)}


def _opened(
    what: Path,
    store: Path | None,
    kept: tuple[str | None, int | None, str | None, int],
    options: dict[str, Any],
    data: Path | None,
    param: list[str] | None,
    durability: str = "disk",
) -> Store:
    """Open store of what is served."""
    from oco.backends.database import Durability
    from oco.serving.sources import Options, open_store

    if durability not in {*Durability}:
        raise typer.BadParameter(f"{durability!r} is none of {', '.join(Durability)}", param_hint="--durability")

    def compiled(path: Path) -> Plan:
        return _compiled(model_at(path, param_values(param)), data, options)

    with working(f"compiling {what}"):
        return open_store(what, store, Options(*kept, Durability(durability)), compiled)


def _compiled(model: Model, data: Path | None, options: Mapping[str, Any]) -> Plan:
    """Plan of a model with the options of `_plan_options`, chosen on data where these are given."""
    own = {name: value for name, value in options.items() if name not in ("certify", "alert")}
    plan = oco.compile(model, data=rounds_of(model, data, "error"), **own)
    return instrumented(plan, options["certify"], options["alert"])


def _tokens(path: Path | None) -> list[str]:
    """Tokens of a file, a line each. Raises OCO667 where it cannot be read or has none."""
    if path is None:
        return []
    try:
        tokens = path.read_text(encoding="ascii").split()
    except (OSError, ValueError) as error:
        raise fail(
            "OCO667", f"the tokens in {path} cannot be read: {error}", hint="write a token on each line"
        ) from None
    if not tokens:
        raise fail("OCO667", f"there is no token in {path}", hint="write a token on each line")
    return tokens
