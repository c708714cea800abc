"""Pages of the examples: the model, the choice, and the plots of a run, all made in the build."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import oco
from oco.evaluation.drawn import trial_rounds
from website.plots import inline, is_broken

ROOT = Path(__file__).parent.parent
ROUNDS = 400
"""Rounds of the run that a page shows, at most."""
DEAR = {"ratings": 30, "matrix_completion": 100}
"""Examples with thousands to millions of entries, and how many rounds are played of them, with settings that take no search."""


def names() -> list[str]:
    """Names of the examples."""
    return sorted(path.stem for path in (ROOT / "examples").glob("*.oco"))


def index() -> str:
    """Page that lists the examples with the first sentence of their comment."""
    rows = [f"| [`{name}`]({name}.md) | {_first_sentence(name)} |" for name in names()]
    return "\n".join(
        [
            "# Examples",
            "",
            "Each is a file of `examples/` that runs as it is: `oco run examples/NAME.oco`. The pages show the model, what is proved and "
            "chosen, and a short run.",
            "",
            "| example | what is decided |",
            "| --- | --- |",
            *rows,
            "",
        ]
    )


def _first_sentence(name: str) -> str:
    comment = " ".join(
        line.lstrip("# ")
        for line in _text(name).split("model ")[0].splitlines()
        if line.startswith("#") and "run:" not in line
    )
    return re.split(r"(?<=[.:]) ", comment)[0].rstrip(":").replace("|", "\\|")


def _text(name: str) -> str:
    return (ROOT / "examples" / f"{name}.oco").read_text(encoding="utf-8")


def page_of(name: str) -> str:
    """Page of an example in Markdown."""
    path = ROOT / "examples" / f"{name}.oco"
    paper = name in DEAR
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = oco.compile(oco.load(path), settings="paper" if paper else None)
        rounds = DEAR.get(name, min(plan.horizon or ROUNDS, ROUNDS))
        data = data_of(plan, name, rounds)
        trace = plan.run(data, rounds=rounds, seed=0, mapping=mapping_of(name))
    explained = str(plan.explain()).split("\n\nalgorithm ")[0].strip()
    broken = is_broken(trace)
    panels = [*(["violation"] if broken else []), "decisions"]
    kept = " No constraint was broken." if trace.labels and not broken else ""
    return (
        "\n\n".join(
            [
                f"# {name.replace('_', ' ')}",
                f'```oco title="{name}.oco"\n{_text(name).rstrip()}\n```',
                "## What is chosen without data" + (", with the paper's settings" if paper else ""),
                f"```text {{ .output }}\n{explained}\n```",
                "## A short run",
                f"The first {rounds} rounds of the data that the file names, or of draws, with this plan: the loss is "
                f"{_rounded(trace.loss.sum())}.{kept} `oco run examples/{name}.oco` chooses with the "
                "data in view, and may take another algorithm.",
                inline(trace, panels),
            ]
        )
        + "\n"
    )


def _rounded(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _stated(name: str) -> list[str]:
    match = re.search(r"^# run: (.*)$", _text(name), re.MULTILINE)
    return match[1].split() if match else []


def data_of(plan: Any, name: str, rounds: int) -> Any:
    """Rounds of an example as its line `# run:` names them: a file, or entries drawn uniformly; None where the model draws all."""
    words = _stated(name)
    if "--data" not in words:
        return None
    source = words[words.index("--data") + 1]
    return trial_rounds(plan.canonical, rounds, seed=0) or None if source == "drawn" else ROOT / "examples" / source


def mapping_of(name: str) -> dict[str, list[str]] | None:
    words = _stated(name)
    if "--map" not in words:
        return None
    stream, _, columns = words[words.index("--map") + 1].partition("=")
    return {stream: columns.split(",")}
