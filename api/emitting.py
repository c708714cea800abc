"""Jobs of engines of streams: one file each, with learners of a plan by key, to be edited where it begins."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from string import Template
from types import MappingProxyType
from typing import Any

from oco import __version__
from oco.dsl.diagnostics import fail
from oco.dsl.records import dataclass
from oco.plan import Plan
from oco.serving.states import LONG


@dataclass(frozen=True)
class StreamEngine:
    """Engine that jobs are written for.

    title     name of the engine
    template  file in `templates`, a Python module with places `$name` for what is of the plan
    run       command that runs the job on this machine
    """

    title: str
    template: str
    run: str


ENGINES: Mapping[str, StreamEngine] = MappingProxyType(
    {
        "flink": StreamEngine("Apache Flink", "flink.py.txt", "pip install apache-flink && python {path}"),
        "quix": StreamEngine("Quix Streams", "quix.py.txt", "pip install quixstreams && python {path}"),
    }
)
"""Engines by the names of `oco emit`: an engine is a file of `templates` and a row."""


@dataclass(frozen=True)
class JobOptions:
    """Options of the learners of a job, as those of a store: seed of all, rounds that are kept of each key, data outside their bounds."""

    backend: str | None = None
    seed: int = 0
    keep: int = 100
    on_out_of_bounds: str = "error"


def engine_of(name: str) -> StreamEngine:
    """Engine of a name. Raises OCO877 where there is none."""
    if name not in ENGINES:
        raise fail("OCO877", f"no jobs are written for {name!r}", hint=f"engines: {', '.join(ENGINES)}")
    return ENGINES[name]


def job(plan: Plan, engine: str, file: Path, options: JobOptions | None = None) -> str:
    """Text of a Python file that runs learners of a plan by key in an engine of streams. Raises OCO877, OCO732.

    file  name that the job names itself by
    """
    options = options or JobOptions()
    template = files("oco").joinpath("templates", engine_of(engine).template).read_text("utf-8")
    recipe = {name: value for name, value in plan.recipe.items() if name != "model"}
    return Template(template).substitute(
        name=plan.model.name,
        algorithm=plan.algorithm,
        file=file.name,
        version=__version__,
        backend=plan.backend_for(plan.horizon or LONG, options.backend).name,
        seed=options.seed,
        keep=options.keep,
        outside=options.on_out_of_bounds,
        model=_quoted(plan.recipe["model"]),
        recipe=_literal({"model": ..., **recipe}),
    )


def _quoted(text: str) -> str:
    """Literal of a text, on lines of its own where these can be read as they stand."""
    return repr(text) if "\\" in text or '"""' in text or text.endswith('"') else f'"""\\\n{text}"""'


def _literal(value: Any, indent: str = "") -> str:
    """Literal of JSON values in Python, an entry of an object a line; `...` stands for the text of the model."""
    if isinstance(value, Mapping):
        inner = indent + "    "
        lines = [f"{inner}{_literal(name)}: {_literal(of, inner)},\n" for name, of in value.items()]
        return f"{{\n{''.join(lines)}{indent}}}" if lines else "{}"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return "MODEL" if value is ... else repr(value)
