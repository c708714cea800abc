"""Options that several commands share, and the parsing of their text."""

from __future__ import annotations

import json
import re
import sys
from collections import abc
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import oco
from oco.dsl.diagnostics import fail
from oco.dsl.expressions import File

if TYPE_CHECKING:
    from oco.dsl.model import Model
    from oco.evaluation.baselines.rules import RuleChoice
    from oco.evaluation.comparators import ComparatorBudget
    from oco.evaluation.data import Data

STDIN = "-"
"""Path of a model that comes on standard input."""
DRAWN = "drawn"
"""Word in the place of a file of data: streams without a distribution are drawn uniformly from their ranges."""

ModelPath = Annotated[
    Path, typer.Argument(metavar="MODEL.oco", help="The model file; - reads standard input.", show_default=False)
]
Params = Annotated[
    list[str] | None,
    typer.Option("--param", metavar="NAME=VALUE", help="Value of a param: a number or a JSON array. May be repeated."),
]
Json = Annotated[bool, typer.Option("--json", metavar="", help="Print a stable, versioned JSON document instead.")]
DataPath = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="FILE",
        help="CSV, Parquet, Arrow, NPY or NPZ, a row a round; or the word drawn, for a trial.",
        show_default=False,
    ),
]
Mapping = Annotated[
    list[str] | None,
    typer.Option("--map", metavar="STREAM=COLUMNS", help="Which columns fill a stream: price=a,b,c or price=zone.*"),
]
Details = Annotated[
    bool, typer.Option("--details", metavar="", help="Print the facts, the settings and all measures as well.")
]
Force = Annotated[bool, typer.Option("--force", metavar="", help="Overwrite files that are there.")]

Algorithms = Annotated[
    str | None, typer.Option("--algorithms", metavar="A,B,C", help="Run these instead of the chosen one, and compare.")
]
Rounds = Annotated[int | None, typer.Option("--rounds", min=1, metavar="N", help="How many rounds; by default all.")]
Seeds = Annotated[int, typer.Option("--seeds", min=1, metavar="K", help="Repeat with seeds SEED, SEED+1, ...")]
Seed = Annotated[int, typer.Option("--seed", min=0, metavar="SEED", help="Of everything that is drawn.")]
Out = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Write traces, plots and a report here.", show_default=False),
]
OnMissing = Annotated[
    str,
    typer.Option(
        "--on-missing", metavar="WHAT", help="Missing values: error, hold (the last value) or skip the round."
    ),
]
StatedOnMissing = Annotated[
    str | None,
    typer.Option(
        "--on-missing",
        metavar="WHAT",
        help="Missing values: error (the default), hold (the last value) or skip the round.",
    ),
]
Grid = Annotated[
    list[str] | None,
    typer.Option("--grid", metavar="SETTING=A,B", help="Run with each of these values. May be repeated."),
]
EngineName = Annotated[
    str,
    typer.Option(
        "--engine", metavar="WHERE", help="Where several runs happen: auto, here, processes, ray or ray://ADDRESS."
    ),
]
Journal = Annotated[
    Path | None,
    typer.Option("--journal", metavar="DIR", help="Record every round here first; go on from there after a crash."),
]
Replay = Annotated[
    Path | None, typer.Option("--replay", metavar="TRACE", help="Run again what gave this trace; compare the bits.")
]
Cost = Annotated[
    str | None,
    typer.Option(
        "--budget",
        metavar="TIME,MEMORY",
        help="What a comparator may cost: 30s, 2GiB (what it is), or both; the time is also that of pilot runs (else 30s).",
    ),
]
PilotTime = Annotated[
    str | None,
    typer.Option(
        "--budget", metavar="SECONDS", help="Time of pilot runs, after which no other algorithm is tried (30)."
    ),
]
Comparators = Annotated[
    str,
    typer.Option(
        "--comparators",
        metavar="KIND",
        help="fast: as long as the run took, 5 to 30 s each; exact: up to 10 min each; none. --budget sets another time.",
    ),
]
MaybeModel = Annotated[
    Path | None, typer.Argument(metavar="MODEL.oco", help="The model file; - reads standard input.", show_default=False)
]


Kind = Annotated[
    str | None,
    typer.Option(
        "--settings",
        metavar="KIND",
        help="optimal (default; where all guarantees are vacuous pilots may take unit-free), unit-free, paper or tuned.",
        show_default=False,
    ),
]
Tradeoff = Annotated[
    float, typer.Option("--tradeoff", metavar="W", help="What violations count against regret in a sum of both.")
]


Certify = Annotated[
    str | None,
    typer.Option(
        "--certify", metavar="KIND", help="Keep the sums of a certificate of the static or the dynamic regret."
    ),
]
Alert = Annotated[
    float | None,
    typer.Option(
        "--alert",
        metavar="ALPHA",
        help="Watch what the model states of its streams and go over to another rule once it is refuted; false alarms have this "
        "probability at most.",
    ),
]
Precision = Annotated[
    str | None,
    typer.Option(
        "--precision",
        metavar="NAME",
        help="Numbers of the learner: exact, or for C fast (rounded as is fast) or float32. \\[default: exact]",
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="NAME",
        help="Compile for another platform: wasm, with an ES module that runs it.",
        show_default=False,
    ),
]
Baselines = Annotated[
    str,
    typer.Option(
        "--baselines",
        metavar="WHICH",
        help="Rules to play over the same rounds: some (two cheap ones; the best is printed), all or none.",
    ),
]


def baselines_of(text: str) -> RuleChoice:
    """Rules to play, from the word of `--baselines`."""
    from oco.evaluation.baselines.rules import RuleChoice

    if text not in list(RuleChoice):
        raise typer.BadParameter(f"{text!r} is none of {', '.join(RuleChoice)}", param_hint="--baselines")
    return RuleChoice(text)


def effort_of(context: typer.Context) -> float:
    """Number after `oco --effort`, which stands before the command."""
    return float(context.obj.effort)


def pairs(texts: list[str] | None, option: str) -> dict[str, str]:
    """Parse `["a=1", "b=2"]` into a dict; the part before `=` is a name."""
    results: dict[str, str] = {}
    for text in texts or []:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise typer.BadParameter(f"{text!r} is not of the form NAME=VALUE", param_hint=option)
        results[name.strip()] = value.strip()
    return results


def param_values(texts: list[str] | None) -> dict[str, Any]:
    """Values of params from `--param`: JSON numbers and arrays."""
    values: dict[str, Any] = {}
    for name, text in pairs(texts, "--param").items():
        try:
            values[name] = json.loads(text)
        except ValueError:
            raise typer.BadParameter(f"{text!r} is neither a number nor a JSON array", param_hint="--param") from None
    return values


_COST = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")
_SECONDS = {"": 1.0, "s": 1.0, "min": 60.0, "h": 3600.0}
_BYTES = {"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "kib": 2.0**10, "mib": 2.0**20, "gib": 2.0**30, "tib": 2.0**40}


def budget_of(text: str | None) -> ComparatorBudget:
    """Budget from `120s,2GiB`; a limit that is not given keeps its default."""
    from oco.evaluation.comparators import ComparatorBudget

    budget = ComparatorBudget()
    for part in (text or "").split(",") if text else ():
        match = _COST.fullmatch(part)
        amount, unit = (float(match[1]), match[2].lower()) if match else (0.0, "?")
        if unit in _SECONDS:
            budget = replace(budget, seconds=amount * _SECONDS[unit])
        elif unit in _BYTES:
            budget = replace(budget, memory=int(amount * _BYTES[unit]))
        else:
            raise typer.BadParameter(
                f"{part.strip()!r} is neither a time (120s, 2min) nor memory (4GiB)", param_hint="--budget"
            )
    return budget


def comparators_of(kind: str, text: str | None) -> tuple[ComparatorBudget, bool]:
    """Budget of a comparator for `--comparators` and `--budget`; True with it where it is to follow the time of the run."""
    from oco.evaluation.comparators.base import EXACT, FAST

    times = {"fast": FAST, "exact": EXACT, "none": FAST}
    if kind not in times:
        raise typer.BadParameter(f"there is no {kind!r}: it is {', '.join(times)}", param_hint="--comparators")
    given = budget_of(text)
    timed = text is not None and any((m := _COST.fullmatch(p)) and m[2].lower() in _SECONDS for p in text.split(","))
    budget = given if timed else replace(given, seconds=times[kind])
    return replace(budget, wanted=kind != "none"), kind == "fast" and not timed


def pilot_seconds(text: str | None) -> float | None:
    """Seconds that pilot runs may take, from `120s`, `2min` or `120s,2GiB`; None where no time is given."""
    timed = [p for p in (text or "").split(",") if (m := _COST.fullmatch(p)) and m[2].lower() in _SECONDS]
    return budget_of(text).seconds if timed else None


def rounds_of(
    model: Model, path: Path | None, on_missing: str, mapping: list[str] | None = None, seed: int = 0
) -> Data | None:
    """Rounds of `--data`, with missing values treated as `--on-missing` asks; None where no file is named."""
    if path is None:
        return None
    return data_of(model, path, mapping=mapping, seed=seed, on_missing=on_missing)


def data_of(
    model: Model,
    path: Path | None,
    *,
    mapping: list[str] | None = None,
    seed: int = 0,
    rounds: int | None = None,
    on_missing: str = "error",
) -> Data:
    """Rounds of a file, rounds that the model draws (None), or trial rounds (`drawn`)."""
    from oco.compiler.problem.canonical import canonical
    from oco.evaluation.data import load_data
    from oco.evaluation.drawn import trial_rounds
    from oco.evaluation.mapping import parse_map

    problem = canonical(model)
    count = rounds or problem.horizon
    source: Any = path
    if str(path) == DRAWN:
        source = None if count is None else trial_rounds(problem, count, seed) or None
    options: dict[str, Any] = {"mapping": parse_map(mapping or []), "seed": seed, "on_missing": on_missing}
    data = load_data(problem, source, rounds=rounds, **options)
    if str(path) != DRAWN or not data.given:
        return data
    names = ", ".join(f"`{name}`" for name in data.given)
    words = f"{names} drawn uniformly, for a trial: --data FILE takes yours"
    drawn = ", ".join(f"`{s.name}`" for s in data.drawn)
    return replace(
        data, notes=(words, *([f"{drawn} drawn from the model's distributions (seed {seed})"] if drawn else []))
    )


def given(settings: dict[str, str], kind: str | None = None) -> dict[str, Any]:
    """Keyword argument `settings` for `oco.compile`; empty where none were given, so that the default of `compile`
    holds.
    """
    if settings and kind is not None:
        raise typer.BadParameter("with --set the other settings are the paper's", param_hint="--settings")
    return {"settings": settings} if settings else {"settings": kind} if kind is not None else {}


def units_of(kind: str | None) -> dict[str, str]:
    """Kind of settings as the setting that a table of runs may hold."""
    if kind == "tuned":
        raise typer.BadParameter("a table of runs has no tuning: see `oco tune`", param_hint="--settings")
    if kind == "unit-free":
        raise typer.BadParameter("a table of runs has paper or optimal settings", param_hint="--settings")
    return {"units": "user"} if kind == "paper" else {}


def model_at(path: Path, params: abc.Mapping[str, Any] | None) -> Model:
    """Model in a file, or on standard input where the path is `-`: files that it names are then in the working folder."""
    if str(path) != STDIN:
        return oco.load(path, params)
    return oco.parse(sys.stdin.read(), params, name="<stdin>", folder=Path.cwd())


def files_read(path: Path, model: Model, data: Path | None = None) -> list[Path]:
    """Files that a command reads: the model, the files that it names, the data."""
    named = [path.parent / p.value.path for p in model.params if isinstance(p.value, File)]
    return [path, *named, *([] if data is None else [data])]


def check_outputs(outputs: Sequence[Path], force: bool, inputs: Sequence[Path] = (), option: str = "-o") -> None:
    """Refuse to replace a file that the command reads (OCO910), and without --force any existing file (OCO905)."""
    there = [path for path in outputs if path.exists()]
    for path in there:
        if any(read.exists() and path.samefile(read) for read in inputs):
            raise fail("OCO910", f"{path} is read by this command, and would be replaced")
    if there and not force:
        more = f", and {len(there) - 1} more" if len(there) > 1 else ""
        hint = f"give another name with {option}, or --force to overwrite it"
        raise fail("OCO905", f"{there[0]} is there already{more}", hint=hint)


def planned_for(rounds: int, horizon: int | None) -> tuple[str, ...]:
    """Print a note where data have another number of rounds than the model says."""
    if horizon in (None, rounds):
        return ()
    return (f"{rounds} rounds, and the model's horizon is {horizon}: planned for {rounds}",)
