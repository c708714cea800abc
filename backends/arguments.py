"""Inputs of a learner from a caller: seeds, first decisions and rounds, checked before use; errors about streams."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from oco.backends.contract import Range
from oco.backends.python.intake import StreamError
from oco.backends.python.streams import Stream
from oco.compiler.ir.program import DType
from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.suggest import listed, nearest

Array = np.ndarray[Any, Any]
CODES = {
    "name": "OCO840",
    "kind": "OCO841",
    "shape": "OCO842",
    "finite": "OCO843",
    "integer": "OCO844",
    "bounds": "OCO845",
}
"""Codes of the errors of an intake, by its rule."""


def wrong_input(error: StreamError, more: str = "", given: Iterable[str] = (), wanted: Iterable[str] = ()) -> OcoError:
    """Error for data that an intake refused, with a code and a way out; for a wrong name the nearest of those `wanted`."""
    if error.rule == "name":
        more, hint = _renamed(list(given), list(wanted))
        return fail(CODES["name"], f"{error}{more}", hint=hint)
    hints = {"bounds": 'correct the data or the model\'s bounds, or choose on_out_of_bounds="clip" or "accept"'}
    return fail(CODES[error.rule], f"{error}{more}", hint=hints.get(error.rule, ""))


def _renamed(given: list[str], wanted: list[str]) -> tuple[str, str]:
    """Names that are given and not wanted, and the names meant: the nearest, or the only one that lacks a value."""
    unknown, missing = ([n for n in a if n not in b] for a, b in ((given, wanted), (wanted, given)))
    if not missing:
        return (
            "",
            f"leave {listed(unknown)} out: `decide` takes contexts alone, `observe` what is revealed after it"
            if unknown
            else "",
        )
    if not unknown:
        return "", f"give {', '.join(f'`{n}=...`' for n in missing)} as well"
    near = nearest(unknown[0], missing) or (missing[0] if len(unknown) == len(missing) == 1 else None)
    more = f", and there is no {', '.join(f'`{n}`' for n in unknown)}"
    return more, f"did you mean `{near}`?" if near else f"give {', '.join(f'`{n}=...`' for n in missing)}"


def is_integer(number: Any) -> bool:
    """True for an integer of Python or NumPy; True and False are not numbers."""
    return isinstance(number, int | np.integer) and not isinstance(number, bool)


def generator(seed: Any) -> np.random.Generator:
    """Random generator of a seed. Raises OCO849 where the seed is not valid."""
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        hint = "give an integer from 0"
        raise fail("OCO849", f"a seed is an integer from 0 or a sequence of them, not {seed!r}", hint=hint) from None


def first_decision(name: str, given: Any) -> Array:
    """Copy of the start that is given for a decision. Raises OCO846 where it is not made of numbers."""
    try:
        return np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise fail("OCO846", f"the start of {name} is not an array of numbers: {given!r:.80}") from None


def decision_within(name: str, given: Any, shape: tuple[int, ...], domain: Any) -> Array:
    """Copy of a start of this shape in a domain (None: anywhere). Raises OCO846 where it is not finite or not in it."""
    value = first_decision(name, given)
    if value.shape != shape:
        raise fail("OCO846", f"the start of {name} has the shape {value.shape}, not {shape}")
    if not np.isfinite(value).all():
        raise fail("OCO846", f"the start of {name} holds numbers that are not finite")
    if domain is not None and not domain.contains(value):
        raise fail("OCO846", f"the start of {name} lies outside {domain}", hint=f"give a point of {domain}, or none")
    return value


def by_decision(given: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any] | None:
    """Arguments `gradient={"x": a, "y": b}` as `gradient_x`, `gradient_y`; None if no value is a dict by these names of
    decisions.
    """
    flat: dict[str, Any] = {}
    for name, value in given.items():
        if isinstance(value, Mapping) and set(value) <= set(names):
            flat |= {name if len(names) == 1 else f"{name}_{key}": part for key, part in value.items()}
        else:
            flat[name] = value
    return flat if len(flat) != len(given) or any(isinstance(v, Mapping) for v in given.values()) else None


def stream_of(shape: tuple[int, ...], dtype: DType, given: Range | None) -> Stream:
    """Input of this shape and kind, in a range that may be given."""
    bounds = given or Range()
    return Stream(shape, bounds.lower, bounds.upper, dtype is DType.INT, bounds.distribution)


def given_draw(draws: Mapping[str, Array], name: str, shape: tuple[int, ...], round: int) -> Array:
    """Random array of a round among those that the caller gave, rounds first. Raises OCO849 where it is absent or not finite."""
    rounds = draws.get(name, np.empty(0))
    if len(rounds) < round or rounds.shape[1:] != shape:
        message = f"draws[{name!r}] has the shape {rounds.shape}; round {round} needs ({round}, *{shape})"
        raise fail("OCO849", message)
    drawn: Array = rounds[round - 1]
    if not np.isfinite(drawn).all():
        raise fail("OCO849", f"draws[{name!r}] of round {round} holds numbers that are not finite")
    return drawn
