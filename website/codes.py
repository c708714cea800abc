"""Pages of errors and warnings by code, each with its example and what that prints."""

from __future__ import annotations

import contextlib
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import oco
from oco.compiler.prover.check import check
from oco.dsl.codes import CODES, Code, Stage
from oco.dsl.explanations import explanation

GROUPS = {
    "1": "reading a model",
    "2": "names and statements",
    "3": "shapes and kinds",
    "4": "ranges, distributions and domains",
    "5": "constraints and the builder",
    "6": "facts and style",
    "7": "algorithms and plans",
    "8": "data, learners and states",
    "9": "files and commands",
}
"""Subject of the codes of each hundred."""


def index() -> str:
    """Page with all codes in one table."""
    rows = [f"| [`{code}`](oco{code[3]}xx.md#{code.lower()}) | {_cell(row.title)} |" for code, row in CODES.items()]
    return "\n".join(
        [
            "# Troubleshooting by code",
            "",
            "Every error and warning has a code that stays. `oco help OCO203` prints what stands here; the examples below were run for "
            "this page, and what they print was printed by them.",
            "",
            "| code | problem |",
            "| --- | --- |",
            *sorted(rows),
            "",
        ]
    )


def page_of(hundred: str, counts: Counter[str]) -> str:
    """Page of the codes of one hundred; `counts` gets how many examples were run, and how many are shown alone."""
    parts = [f"# OCO{hundred}xx: {GROUPS[hundred]}"]
    for code, row in sorted(CODES.items()):
        if code[3] == hundred:
            parts += [f"## {code}", f"**{_cell(row.title)[0].upper()}{_cell(row.title)[1:]}.**", explanation(row)]
            parts += [*_example(code, row, counts), f"**Way out.** {row.remedy}"]
    return "\n\n".join(parts) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def _example(code: str, row: Code, counts: Counter[str]) -> list[str]:
    language = {Stage.BUILDER: "python", Stage.RUN: "python", Stage.COMMAND: "console"}.get(row.stage, "oco")
    text = (
        "\n".join(f"$ {line}" for line in row.example.splitlines()) if language == "console" else row.example.rstrip()
    )
    printed = _printed(code, row)
    counts[f"examples of codes {'run' if printed else 'shown'}"] += 1
    return [f"```{language}\n{text}\n```", *([f"```text {{ .output .wrapped }}\n{printed}\n```"] if printed else [])]


def _printed(code: str, row: Code) -> str:
    """Diagnostic that the example provokes, "" for examples that need more than themselves."""
    if row.stage not in (Stage.PARSE, Stage.CHECK, Stage.BUILDER):
        return ""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if row.stage is Stage.BUILDER:
                exec(row.example, {"oco": oco})
                return ""
            model = oco.parse(row.example, name="model.oco", folder=Path(folder))
            given = check(model).warnings if row.stage is Stage.CHECK else ()
        except oco.OcoError as error:
            given = (
                tuple(e.diagnostic for e in error.errors)
                if hasattr(error.errors[0], "diagnostic")
                else error.diagnostics
            )
    return "\n".join(d.render().rstrip() for d in given if d.code == code)
