"""Text to model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oco.dsl.diagnostics import fail
from oco.dsl.model import Model
from oco.dsl.parser import parse_file
from oco.dsl.resolver import resolve
from oco.dsl.source import Source


def parse(
    text: str, params: Mapping[str, Any] | None = None, name: str = "<string>", folder: str | Path | None = None
) -> Model:
    """The model that a text describes.

    params  values for its params: numbers, nested lists or arrays
    name    what diagnostics call the text
    folder  where the files lie that `file("...")` names
    """
    file, errors = parse_file(Source(name, text))
    return resolve(file, params, None if folder is None else Path(folder), errors)


def load(path: str | Path, params: Mapping[str, Any] | None = None) -> Model:
    """The model in a file; data files are found beside it."""
    place = Path(path)
    try:
        text = place.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise fail("OCO902", f"{path} is not text in UTF-8: byte {error.start} cannot be read") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise fail("OCO901", f"{path} cannot be read: {reason}") from None
    return parse(text, params, str(path), place.resolve().parent)
