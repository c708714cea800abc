"""Identity of a learner's model and plan: hashes that do not change when only the emitted text changes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from oco.backends.contract import Contract
from oco.compiler.ir.program import Field, Program


def model_hash(contract: Contract) -> str:
    """Hash of the model's text with its data."""
    return _digest(contract.recipe.get("model", contract.text))


def plan_hash(program: Program, contract: Contract, resolved: Mapping[str, str] | None = None) -> str:
    """Hash of the algorithm, its settings and the horizon, and of names, kinds and shapes of inputs, outputs and state.

    resolved  the settings to count; by default all of the contract's
    """
    layout = [_layout(fields) for fields in (program.state, program.decision, program.feedback, program.draws)]
    settings = resolved_of(contract.recipe) if resolved is None else resolved
    return _digest([contract.algorithm, contract.horizon, dict(settings), dict(contract.distributions), layout])


def resolved_of(recipe: Mapping[str, Any]) -> dict[str, str]:
    """Final settings in a recipe."""
    return {str(name): str(value) for name, value in recipe.get("settled", {}).items()}


def learner_hash(program: Program, contract: Contract, single: bool = False) -> str:
    """Hash of model and plan, and of the numbers where they are of single precision."""
    return _digest([model_hash(contract), plan_hash(program, contract), *(["float32"] if single else [])])


def _layout(fields: Sequence[Field]) -> list[Any]:
    return [[f.name, f.type.dtype.value, list(f.type.shape)] for f in fields]


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
