"""Self-contained models: data from files or from the caller is written into the text."""

from __future__ import annotations

from dataclasses import replace

from oco.dsl.expressions import File, constant, walk
from oco.dsl.model import Model
from oco.dsl.statements import Param


def self_contained(model: Model) -> Model:
    """Model with the data of its params in place of file names and of values given at compile time; itself where it has none."""
    params = tuple(_contained(p) for p in model.params)
    return model if all(new is old for new, old in zip(params, model.params)) else replace(model, params=params)


def _contained(param: Param) -> Param:
    if param.data is None or (param.value is not None and not any(isinstance(e, File) for e in walk(param.value))):
        return param
    return replace(param, value=constant(param.data))
