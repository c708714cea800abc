"""Which model and which plan a learner belongs to: hashes that stay the same when only the emitted text changes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from oco.backends.contract import Contract
from oco.compiler.ir.program import Field, Program


def model_hash(contract: Contract) -> str:
    """Of the model's text with its data."""
    return _digest(contract.recipe.get("model", contract.text))


def plan_hash(program: Program, contract: Contract, resolved: Mapping[str, str] | None = None) -> str:
    """Of the algorithm, its settings and the horizon, and of the names, kinds and shapes of all that goes in and out or is kept.

    settled  the settings to count; by default all of the contract's
    """
    layout = [_layout(fields) for fields in (program.state, program.decision, program.feedback, program.draws)]
    settings = resolved_of(contract.recipe) if resolved is None else resolved
    return _digest([contract.algorithm, contract.horizon, dict(settings), dict(contract.distributions), layout])


def resolved_of(recipe: Mapping[str, Any]) -> dict[str, str]:
    """The settings that a recipe came to."""
    return {str(name): str(value) for name, value in recipe.get("settled", {}).items()}


def learner_hash(program: Program, contract: Contract) -> str:
    """Of both."""
    return _digest([model_hash(contract), plan_hash(program, contract)])


def _layout(fields: Sequence[Field]) -> list[Any]:
    return [[f.name, f.type.dtype.value, list(f.type.shape)] for f in fields]


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
