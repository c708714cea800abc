"""`oco lint`: style and likely mistakes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oco.cli.bug_report import with_report
from oco.cli.command import Invocation
from oco.cli.options import STDIN, Json, OnMissing, Params, effort_of, param_values, rounds_of
from oco.cli.output import note, show_diagnostic, show_json
from oco.cli.progress import working
from oco.dsl.diagnostics import Diagnostic, OcoError, Severity, contained, fail
from oco.dsl.source import Source
from oco.dsl.suggest import nearest
from oco.dsl.writing import read_text, write_text

if TYPE_CHECKING:
    from oco.linting import ModelText

Codes = list[str] | None


def lint(
    context: typer.Context,
    files: Annotated[
        list[Path],
        typer.Argument(metavar="MODEL.oco...", help="Model files; - reads standard input.", show_default=False),
    ],
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="FILE", help="Rounds, for the rules that compare a model with data."),
    ] = None,
    select: Annotated[
        Codes, typer.Option("--select", metavar="CODE,...", help="Give warnings of these codes alone. May be repeated.")
    ] = None,
    ignore: Annotated[
        Codes, typer.Option("--ignore", metavar="CODE,...", help="Give no warnings of these codes. May be repeated.")
    ] = None,
    fix: Annotated[
        bool,
        typer.Option(
            "--fix", metavar="", help="Make the edits that repair warnings, where there are some, in the files."
        ),
    ] = False,
    param: Params = None,
    on_missing: OnMissing = "error",
    as_json: Json = False,
) -> None:
    """Warn of style and likely mistakes: unused names, mixed units, constraints that never bind, horizons that are too short.

    Exit status 1 where a warning remains or a model is wrong, else 0. `# oco: ignore OCO631` at the end of a line silences a
    warning there, on a line of its own before the first statement in the whole file.
    """
    from oco.linting import repaired

    if fix and as_json and Path(STDIN) in files:
        raise typer.BadParameter(
            "the text of standard input goes to standard output, and so does --json", param_hint="--fix"
        )
    codes = _wanted(select, ignore)
    diagnostics: list[Diagnostic] = []
    counts: dict[str, int] = {}
    for path in files:
        try:
            with contained(f"linting {path}"):  # a bug leaves the other files their warnings
                written = _read(path, param_values(param))
                if fix:
                    written, counts[str(path)] = repaired(written, codes)
                    _write(path, written, counts[str(path)])
                diagnostics += _warnings(path, written, codes, (data, on_missing), (effort_of(context), as_json))
        except OcoError as error:
            diagnostics += with_report(error, context.ensure_object(Invocation).words).diagnostics
    _show(diagnostics, counts, as_json)
    if diagnostics:
        raise typer.Exit(1)


def _wanted(select: Codes, ignore: Codes) -> frozenset[str]:
    """Codes of the rules to apply. Raises OCO907 for a code that lint never gives."""
    from oco.linting import RULES

    chosen, left_out = (_listed(texts) for texts in (select, ignore))
    for code in (*chosen, *left_out):
        if code not in RULES:
            near = nearest(code, RULES)
            hint = f"did you mean {near}?" if near else "docs/lint.md lists the codes"
            raise fail("OCO907", f"`oco lint` has no code {code}", hint=hint)
    return frozenset(chosen or RULES) - frozenset(left_out)


def _listed(texts: Codes) -> list[str]:
    return [code.strip().upper() for text in texts or () for code in text.split(",") if code.strip()]


def _read(path: Path, params: dict[str, Any]) -> ModelText:
    from oco.linting import ModelText

    if str(path) == STDIN:
        return ModelText(Source("<stdin>", sys.stdin.read()), params, Path.cwd())
    return ModelText(Source(str(path), read_text(path)), params, path.resolve().parent)


def _write(path: Path, written: ModelText, count: int) -> None:
    """Put a repaired text in its file; that of standard input goes to standard output."""
    if str(path) == STDIN:
        sys.stdout.write(written.source.text)
    elif count:
        write_text(path, written.source.text)


def _warnings(
    path: Path, written: ModelText, codes: frozenset[str], rounds: tuple[Path | None, str], how: tuple[float, bool]
) -> tuple[Diagnostic, ...]:
    from oco.linting import lint as lint_model

    (data, on_missing), (effort, silent) = rounds, how
    read = None if data is None else rounds_of(written.model(), data, on_missing)
    with working(f"linting {path}", silent=silent):
        return lint_model(written, codes, read, effort)


def _show(diagnostics: list[Diagnostic], counts: dict[str, int], as_json: bool) -> None:
    if as_json:
        show_json({"version": 1, "diagnostics": [d.as_data() for d in diagnostics], "fixed": counts})
        return
    for d in diagnostics:
        show_diagnostic(d)
    for path, count in counts.items():
        if count:
            note(f"{path}: {count} fixed")
    if diagnostics:
        fixable = sum(bool(d.fixes) for d in diagnostics)
        edits = f"; --fix edits {fixable} of them" if fixable else ""
        note(f"{_counted(diagnostics)}{edits}. `oco help {diagnostics[0].code}` explains the first.")


def _counted(diagnostics: list[Diagnostic]) -> str:
    """`1 error, 2 warnings`."""
    kinds = [(kind, sum(d.severity is kind for d in diagnostics)) for kind in Severity]
    return ", ".join(f"{count} {kind}{'' if count == 1 else 's'}" for kind, count in kinds if count)
