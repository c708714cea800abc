"""`oco fleet`: learners of many keys in step, over files of rounds, in processes that share them."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import oco
from oco.cli.models import Algorithm, Backend, Settings
from oco.cli.options import (
    Kind,
    ModelPath,
    Params,
    Seed,
    Tradeoff,
    effort_of,
    given,
    model_at,
    pairs,
    param_values,
)
from oco.cli.output import say
from oco.cli.progress import working
from oco.dsl.diagnostics import fail
from oco.dsl.extras import require_package
from oco.dsl.writing import make_folder

if TYPE_CHECKING:
    from oco.fleets.cluster import ClusterFleet
    from oco.plan import Plan

Data = Annotated[
    Path,
    typer.Option(
        "--data",
        metavar="FILE",
        help="Parquet file, or folder of them: key, round and the streams, in the order of rounds.",
        show_default=False,
    ),
]
Shards = Annotated[
    int | None,
    typer.Option(
        "--shards", min=1, metavar="N", help="Parts of the keys. Default: four for each worker.", show_default=False
    ),
]
WorkerCount = Annotated[
    int, typer.Option("--workers", min=1, metavar="N", help="Processes that share the shards, with Ray.")
]
EngineName = Annotated[
    str, typer.Option("--engine", metavar="NAME", help="here, ray, or the address of a cluster (ray://HOST:10001).")
]
SnapshotPlace = Annotated[
    str | None,
    typer.Option(
        "--snapshots",
        metavar="PLACE",
        help="Folder, or address (s3://...), that all workers reach; the command goes on from what is there.",
        show_default=False,
    ),
]
Every = Annotated[int, typer.Option("--every", min=1, metavar="N", help="Rounds from a snapshot to the next.")]
Folder = Annotated[
    Path,
    typer.Option("--out", metavar="DIR", help="Folder for decisions, losses and violations.", show_default=False),
]


def fleet(
    context: typer.Context,
    model: ModelPath,
    data: Data,
    out: Folder,
    shards: Shards = None,
    workers: WorkerCount = 1,
    engine: EngineName = "here",
    snapshots: SnapshotPlace = None,
    every: Every = 100,
    seed: Seed = 0,
    backend: Backend = None,
    algorithm: Algorithm = None,
    setting: Settings = None,
    settings: Kind = None,
    tradeoff: Tradeoff = 1.0,
    param: Params = None,
) -> None:
    """Play rounds of many keys, each with a learner of its own, in processes that share them; more than memory holds.

    Rows are divided by key first, and each worker reads those of its shards. With --snapshots a worker that dies is replaced, and the
    command, given again, goes on where it stopped.
    """
    require_package("pyarrow", "a fleet by key")
    from oco.fleets.cluster import ClusterFleet
    from oco.fleets.parquet import divide

    if out.exists() and any(out.iterdir()) and snapshots is None:
        raise fail("OCO905", f"{out} is there already", hint="give another name with --out, or --snapshots to go on")
    loaded = model_at(model, param_values(param))
    options = {"tradeoff": tradeoff, "effort": effort_of(context), **given(pairs(setting, "--set"), settings)}
    own: dict[str, Any] = {"engine": engine, "workers": workers}
    begun: dict[str, Any] = {"shards": shards or 4 * workers, "every": every, "seed": seed, "backend": backend}
    make_folder(out)
    with ExitStack() as stack:
        parts = stack.enter_context(tempfile.TemporaryDirectory(prefix="oco_fleet_", dir=out.absolute().parent))
        with working(f"compiling {model}"):
            plan = oco.compile(loaded, algorithm, **options)
        made = _kept(plan, snapshots, own)
        with working(f"dividing {data} by key"):
            keys = divide(data, parts, begun["shards"] if made is None else made.shards)
        made = stack.enter_context(made or ClusterFleet(plan, keys, snapshots=snapshots, **own, **begun))
        first = made.round
        with working(f"playing {made.size:,} learners"):
            sums = made.play(parts, out)
            if snapshots is not None:
                made.snapshot()
    if made.round == first:
        return say(f"{out}: {made.size:,} learners, which have played all rounds of {data} before")
    total = ", ".join(f"{name} {value:.6g}" for name, value in sums.items())
    say(f"{out}: {made.size:,} learners, rounds {first} to {made.round - 1}; sums: {total}")


def _kept(plan: Plan, snapshots: str | None, options: dict[str, Any]) -> ClusterFleet | None:
    """Fleet of the last snapshot; None where there is none. Raises OCO851 where it is of another model."""
    from oco.backends.identity import model_hash
    from oco.backends.saved import other_model
    from oco.fleets.cluster import MANIFEST, ClusterFleet
    from oco.fleets.places import FilePlace

    if snapshots is None or not FilePlace(snapshots).has(MANIFEST):
        return None
    fleet = ClusterFleet.restore(snapshots, **options)
    if model_hash(fleet.plan.contract) != model_hash(plan.contract):
        fleet.close()
        raise other_model(f"{snapshots} belongs", fleet.plan.recipe, plan.contract)
    return fleet
