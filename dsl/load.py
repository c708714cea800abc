"""Reading of a model from its text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oco.dsl.calls import checked_call
from oco.dsl.diagnostics import contained, require
from oco.dsl.logs import logger
from oco.dsl.model import Model
from oco.dsl.resolver import resolve
from oco.dsl.source import Source
from oco.dsl.text.parser import parse_file
from oco.dsl.writing import read_text

log = logger(__name__)


@checked_call
def parse(
    text: str, params: Mapping[str, Any] | None = None, name: str = "<string>", folder: str | Path | None = None
) -> Model:
    """Model that a text describes. Raises OcoError with all mistakes.

    params  values for its params: numbers, nested lists or arrays
    name    name of the text in diagnostics
    folder  folder of the files that `file("...")` names
    """
    require(text, str, "the text of a model", "oco.load(path) reads a file")
    require(params, (Mapping, type(None)), "values by the names of params")
    with contained("reading this model"):
        file, errors = parse_file(Source(name, text))
        model = resolve(file, params, None if folder is None else Path(folder), errors)
    log.info("%s: model %s is read", name, model.name)
    return model


@checked_call
def load(path: str | Path, params: Mapping[str, Any] | None = None) -> Model:
    """Model in a file; data files are found beside it.

    path    of the file, text in UTF-8
    params  values for its params: numbers, nested lists or arrays

    Raises OcoError with all mistakes, and OCO901 or OCO902 where the file cannot be read.
    """
    place = Path(path)
    return parse(read_text(place), params, str(path), place.resolve().parent)
