"""Commands about promises in Lean: prove, verify-promise."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import oco
from oco.cli.models import Algorithm, Settings
from oco.cli.options import (
    Force,
    Json,
    Kind,
    ModelPath,
    Params,
    check_outputs,
    effort_of,
    files_read,
    given,
    model_at,
    pairs,
    param_values,
)
from oco.cli.output import say, show_diagnostic, show_json
from oco.cli.progress import working
from oco.dsl.writing import write_text

if TYPE_CHECKING:
    from oco.compiler.promises.promise import LeanPromise

LeanPath = Annotated[Path, typer.Option("--lean", metavar="FILE.lean", help="The file to write.", show_default=False)]


def prove(
    context: typer.Context,
    model: ModelPath,
    lean: LeanPath,
    algorithm: Algorithm = None,
    setting: Settings = None,
    settings: Kind = None,
    param: Params = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write the guarantee of a model's learner as a theorem of Lean 4 with Mathlib, with all its constants as checked inequalities.

    For ogd, oeg and nested with additive constraints. The file is read back and verified in exact rational arithmetic, as
    `oco verify-promise` does; Lean verifies the rest of it.
    """
    from oco.compiler.promises.checking import verify_promise
    from oco.compiler.promises.making import promise_of_plan

    loaded = model_at(model, param_values(param))
    check_outputs([lean], force, files_read(model, loaded), option="--lean")
    options: dict[str, Any] = {"effort": effort_of(context), **given(pairs(setting, "--set"), settings)}
    with working(f"compiling {model}", silent=as_json):
        plan = oco.compile(loaded, algorithm, **options)
        text = plan.lean()
        promise = verify_promise(text, promise_of_plan(plan))
    write_text(lean, text)
    if as_json:
        show_json({"version": 1, "model": loaded.name, "file": str(lean), **_data(promise)})
        return
    for warning in plan.warnings:
        show_diagnostic(warning)
    bound = None if plan.guarantee is None else plan.guarantee.regret()
    beside = "" if bound is None else f" (the guarantee in doubles: {bound:,.6g})"
    say(f"{lean}: {plan.algorithm} for {loaded.name}, {_words(promise)}{beside}")


def verify_promise(
    lean: Annotated[Path, typer.Argument(metavar="FILE.lean", help="As `oco prove` writes it.")], as_json: Json = False
) -> None:
    """Verify the statements of a promise in exact rational arithmetic; status 1 where it is refused.

    Nothing but the file is read: every inequality is evaluated as it stands there, and the statements are compared with those of the
    model in it. The lemmas over real numbers are for Lean: `lake env lean FILE.lean` in a project with Mathlib.
    """
    from oco.compiler.promises.checking import verify_promise as verified
    from oco.compiler.promises.reading import read_text

    with working(f"verifying {lean}", silent=as_json):
        promise = verified(read_text(lean))
    if as_json:
        show_json({"version": 1, "file": str(lean), "verified": True, **_data(promise)})
        return
    say(f"{lean}: verified, {promise.theorem}: {_words(promise)}")


def _words(promise: LeanPromise) -> str:
    """Sentence on what is proved and by how many statements."""
    broken = f", violation at most {float(sum(promise.violation)):,.6g}" if promise.violation else ""
    rounds = dict(promise.counts)["T"]
    return (
        f"regret at most {float(promise.regret):,.6g} over {rounds:,} rounds{broken}; {promise.statements:,} statements"
    )


def _data(promise: LeanPromise) -> dict[str, Any]:
    exact = {"regret": str(promise.regret), "violation": [str(v) for v in promise.violation]}
    return {"theorem": promise.theorem, "statements": promise.statements, "exact": exact}
