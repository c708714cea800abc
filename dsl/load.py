"""Text to model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oco.dsl.diagnostics import contained, require
from oco.dsl.model import Model
from oco.dsl.resolver import resolve
from oco.dsl.source import Source
from oco.dsl.text.parser import parse_file
from oco.dsl.writing import read_text


def parse(
    text: str, params: Mapping[str, Any] | None = None, name: str = "<string>", folder: str | Path | None = None
) -> Model:
    """The model that a text describes.

    params  values for its params: numbers, nested lists or arrays
    name    what diagnostics call the text
    folder  where the files lie that `file("...")` names
    """
    require(text, str, "the text of a model", "oco.load(path) reads a file")
    require(params, (Mapping, type(None)), "values by the names of params")
    with contained("reading"):
        file, errors = parse_file(Source(name, text))
        return resolve(file, params, None if folder is None else Path(folder), errors)


def load(path: str | Path, params: Mapping[str, Any] | None = None) -> Model:
    """The model in a file; data files are found beside it."""
    place = Path(path)
    return parse(read_text(place), params, str(path), place.resolve().parent)
