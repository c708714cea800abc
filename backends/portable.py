"""Learner beyond its process: saved states, copies, pickles, and the schema of its calls."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from oco.backends.base import Compiled
from oco.backends.contract import Contract, Range
from oco.backends.factors import names_of
from oco.backends.ownership import Owned
from oco.backends.past_horizon import epochs_after, is_continued
from oco.backends.python.state_file import remove_parts, write_state
from oco.backends.saved import learner_state, restore_into
from oco.compiler.ir.program import DType, Field
from oco.dsl.diagnostics import fail
from oco.dsl.writing import reason_of

if TYPE_CHECKING:
    from oco.backends.learner import Learner

PUBLIC = (
    *(
        "alarm",
        "certificate",
        "close",
        "compiled",
        "conditions",
        "contract",
        "decide",
        "feedback",
        "guarantee",
        "notify",
        "observe",
    ),
    *("on_out_of_bounds", "round", "save", "schema", "second_point", "skip", "state", "timeout", "update"),
    *("value", "values", "warnings"),
)
"""Names that `dir(learner)` lists."""


class Portable(Owned):
    """Part of a learner that leaves its process: by its state, and by the recipe of its plan."""

    compiled: Compiled
    contract: Contract

    def state(self: Learner) -> dict[str, Any]:  # type: ignore[misc]  # the learner is the one class that has this part
        """JSON values from which a learner continues bit for bit: the algorithm's state, the random generator,
        warnings, the recipe.
        """
        with self._owned():
            return learner_state(self)

    def value_bytes(self) -> bytes | None:
        """Algorithm's values as the bytes that emitted C saves; None where the learner has none, and `state` has them."""
        return None

    def load_bytes(self, saved: bytes) -> bool:
        """Take the values of `value_bytes`; False where they are damaged or another learner's, and nothing is changed then."""
        return False

    @classmethod
    def from_state(cls, state: Mapping[str, Any], compiled: Compiled, contract: Contract) -> Self:
        """Learner from its `state`. Raises OCO850 where that is damaged, OCO851 where it is of another model or plan."""
        after = epochs_after(compiled, contract) if is_continued(state.get("recipe")) else None
        compiled, contract = (compiled, contract) if after is None else after
        learner = cls(compiled, contract)  # type: ignore[call-arg, arg-type]
        restore_into(learner, state)  # type: ignore[arg-type]
        return learner

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file, completely or not at all. Raises OCO903 where it cannot be written; the old file
        is then unchanged.
        """
        write_whole(path, self.state())  # type: ignore[misc]

    def __copy__(self) -> Self:
        """Learner that continues from here on its own, bit for bit; a journal stays with the original."""
        return self.from_state(self.state(), self.compiled, self.contract)  # type: ignore[misc]

    def __deepcopy__(self, memo: Any) -> Self:
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, ...]:
        """State, and the function that makes the plan of its recipe again in another process."""
        if self.contract.restored is None:
            raise TypeError("this learner does not know the function that makes its plan again: use `state()`")
        return self.contract.restored, (self.state(), self.compiled.backend)  # type: ignore[misc]

    def schema(self) -> dict[str, Any]:
        """JSON schemas (draft 2020-12): arguments of `decide` and of `observe` by name, and the decision, nested lists of its shape.

        Bounds are those of the model; where entries differ in theirs, the least and the greatest of all.
        """
        program, ranges = self.compiled.program, self.contract.ranges
        known = {f.name: _field(f, ranges.get(f.name)) for f in program.feedback if f.name in program.context}
        after = {f.name: _field(f, ranges.get(f.name)) for f in program.revealed if f.name not in program.context}
        shapes = {f.name: _array("number", f.type.shape, {}) for f in program.decision}
        names = names_of(program)
        decision = shapes[names[0]] if len(names) == 1 and names[0] in shapes else _object(shapes)
        return {"model": program.name, "decide": _object(known), "decision": decision, "observe": _object(after)}

    def __dir__(self) -> list[str]:
        return sorted(PUBLIC)


def write_whole(path: str | os.PathLike[str], state: Mapping[str, Any]) -> None:
    """Write a state to a file. Raises OCO903 where it cannot be written."""
    try:
        write_state(path, state)
        remove_parts(path)
    except (OSError, ValueError) as error:
        raise fail("OCO903", f"{os.fspath(path)!r} cannot be written: {reason_of(error)}") from None


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": [*properties], "additionalProperties": False}


def _field(field: Field, within: Range | None) -> dict[str, Any]:
    ends: dict[str, Any] = {}
    if within is not None:
        low, high = float(np.min(within.lower)), float(np.max(within.upper))
        ends = {key: end for key, end in (("minimum", low), ("maximum", high)) if np.isfinite(end)}
    return _array("integer" if field.type.dtype is DType.INT else "number", field.type.shape, ends)


def _array(kind: str, shape: tuple[int, ...], ends: Mapping[str, Any]) -> dict[str, Any]:
    """Schema of nested lists of a shape, whose entries lie within the ends."""
    if not shape:
        return {"type": kind, **ends}
    return {"type": "array", "minItems": shape[0], "maxItems": shape[0], "items": _array(kind, shape[1:], ends)}


def row_of(row: Any, wanted: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
    """Values by name from a dict, a Series of pandas, a named tuple or a table of one row (of pandas, polars or Arrow).

    wanted  shapes by name: `price` of shape (3,) may stand in columns price[0], price[1], ... or price.a, price.b, ... in their order
    """
    values = _mapping(row)
    results: dict[str, Any] = {}
    for name, shape in wanted.items():
        parts = [v for key, v in values.items() if str(key).startswith((f"{name}[", f"{name}."))]
        if name in values:
            results[name] = values[name]
        elif shape and len(parts) == int(np.prod(shape)):
            results[name] = np.reshape(np.asarray(parts), shape)
    others = {str(key): v for key, v in values.items() if not any(str(key).startswith(name) for name in wanted)}
    return results if len(results) == len(wanted) else {**results, **others}


def _mapping(row: Any) -> Mapping[Any, Any]:
    """Values of a row by the names of its columns. Raises OCO841 for what is no row, and for a table of more rows than one, or of none."""
    if isinstance(row, Mapping):
        return row
    records = _records(row)
    if records is not None and len(records) == 1 and isinstance(records[0], Mapping):
        return records[0]
    hint = "a row is a dict, a Series, a named tuple or a table of one row; or give each stream by its name"
    if records is not None and len(records) != 1:
        raise fail("OCO841", f"a round is one row, and this {type(row).__name__} has {len(records)}", hint=hint)
    raise fail("OCO841", f"a row is not of type {type(row).__name__}", hint=hint)


def _records(row: Any) -> Sequence[Any] | None:
    """Rows of a named tuple, a Series or a table: of pandas, polars or Arrow; None for anything else."""
    for method in ("to_dicts", "to_pylist"):
        if hasattr(row, method):
            return list(getattr(row, method)())
    if hasattr(row, "_asdict"):
        return [row._asdict()]
    if hasattr(row, "to_dict"):
        return row.to_dict("records") if getattr(row, "ndim", 1) == 2 else [row.to_dict()]
    return None
