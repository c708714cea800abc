"""Checks of the data that a round reveals. This text is also part of every emitted module, so it uses NumPy alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np


class Stream(NamedTuple):
    """Shape of an input and range of its entries; `distribution` is the distribution that the model gives it, `names` has the names of
    the entries along each axis (None: counted from 0), and is empty where there are none.
    """

    shape: tuple[int, ...]
    lower: Any = -np.inf
    upper: Any = np.inf
    integer: bool = False
    distribution: str = ""
    names: tuple[tuple[str, ...] | None, ...] = ()


class StreamError(ValueError):
    """Error for data that does not fit the model. `rule` is one of "name", "kind", "shape", "finite", "integer",
    "bounds".
    """

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(message)
        self.rule = rule


class NotFinite(ArithmeticError):
    """Error for an array of the state or of a result that holds infinities or NaN. `name` is the array's."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is not finite")
        self.name = name


def finite(names: Iterable[str], values: Any) -> Any:
    """Values, if all of them are finite; raises NotFinite otherwise."""
    for name, value in zip(names, values):
        flat = value.ravel() if isinstance(value, np.ndarray) else value
        size = flat.dot(flat) if isinstance(value, np.ndarray) else value  # one number that tells in most cases
        if size * 0 != 0 and not np.isfinite(value).all():
            raise NotFinite(name)
    return values


class Intake:
    """Conversion of a round's data to arrays, in the order of `streams`. Raises StreamError for data that does not fit."""

    def __init__(self, streams: Mapping[str, Stream]) -> None:
        most = np.finfo(np.float64).max
        self.streams = streams
        self.kinds = {n: np.dtype(np.int64 if s.integer else np.float64) for n, s in streams.items()}
        self.forms = [(n, s.shape, self.kinds[n]) for n, s in streams.items()]
        lower = [np.broadcast_to(s.lower, s.shape).ravel() for s in streams.values()]
        upper = [np.broadcast_to(s.upper, s.shape).ravel() for s in streams.values()]
        self.lower = np.maximum(np.concatenate([np.empty(0), *lower]), -most)
        self.upper = np.minimum(np.concatenate([np.empty(0), *upper]), most)

    def arrays(self, given: Mapping[str, Any]) -> list[Any]:
        """Copies of the given values with the right kind and shape; their entries are not checked."""
        if len(given) != len(self.forms):
            raise self._wrong_names(given)
        values = []
        for name, shape, kind in self.forms:
            if name not in given:
                raise self._wrong_names(given)
            value = self._array(name, arranged(name, given[name], self.streams[name].names))
            if value.dtype != kind:
                value = self._converted(name, value, kind)
            if value.shape != shape:
                raise StreamError("shape", f"{name} has the shape {value.shape}, not {shape}")
            values.append(value)
        return values

    def __call__(self, given: Mapping[str, Any]) -> list[Any]:
        """Copies of the given values, all of them within their bounds."""
        values = self.arrays(given)
        if values:
            entries = np.concatenate(values, axis=None)
            if not ((self.lower <= entries) & (entries <= self.upper)).all():
                raise self._wrong_entry(values)
        return values

    def _wrong_names(self, given: Mapping[str, Any]) -> StreamError:
        missing = [n for n in self.streams if n not in given]
        if missing:
            return StreamError("name", f"nothing is given for {', '.join(missing)}")
        unknown = [n for n in given if n not in self.streams]
        return StreamError(
            "name", f"{', '.join(unknown)} is not among {', '.join(self.streams) or 'the inputs: there are none'}"
        )

    def _array(self, name: str, given: Any) -> np.ndarray[Any, Any]:
        """Copy of a given value."""
        if type(given) is np.ndarray:
            return given.copy()
        if isinstance(given, np.ma.MaskedArray):
            raise StreamError("kind", f"{name} is masked; give an array without gaps")
        try:
            return np.array(given)
        except (TypeError, ValueError, OverflowError) as error:
            raise StreamError("kind", f"{name} cannot be read as an array: {error}") from None

    def _converted(self, name: str, value: np.ndarray[Any, Any], kind: np.dtype[Any]) -> np.ndarray[Any, Any]:
        if value.dtype.kind not in "fiub":
            entries = (
                (place, x) for place, x in np.ndenumerate(value.astype(object)) if not isinstance(x, (bool, int, float))
            )
            for place, x in entries:
                raise StreamError("kind", f"{_entry(name, place)} is {repr(x)[:40]}, which is not a real number")
            raise StreamError("kind", f"{name} does not hold numbers but {value.dtype}")
        if kind.kind == "i" and value.dtype.kind in "fu":
            with np.errstate(all="ignore"):
                wrong = ~((value == np.floor(value)) & (np.abs(value) < 2.0**63))
            for place in np.argwhere(wrong)[:1]:
                message = f"{_entry(name, place)} is {value[tuple(place)]}"
                raise StreamError("integer", f"{message}, which is not an integer below 2**63")
        return value.astype(kind)

    def _wrong_entry(self, values: list[Any]) -> StreamError:
        """Error for the first entry that is not finite or not within its bounds."""
        for (name, shape, _), value in zip(self.forms, values):
            lower, upper = (np.broadcast_to(b, shape) for b in self.streams[name][1:3])
            finite = np.isfinite(value)
            good = finite & (lower <= value) & (value <= upper)
            if not good.all():
                place = tuple(np.argwhere(~good)[0])
                result = f"{_entry(name, place)} is {value[place]}"
                if not finite[place]:
                    return StreamError("finite", f"{result}, which is not a finite number")
                return StreamError(
                    "bounds", f"{result}, outside the model's bounds [{lower[place]:g}, {upper[place]:g}]"
                )
        raise AssertionError("every entry is within its bounds")


def arranged(name: str, given: Any, names: Any) -> Any:
    """Value in the order of its names where it is a dict of them; any other value as it is. StreamError for missing or unknown ones."""
    if not names or not isinstance(given, Mapping):
        return given
    own = names[0]
    if own is None:
        raise StreamError("name", f"{name} is a dict, and its first axis has no names")
    missing, unknown = [n for n in own if n not in given], [str(n) for n in given if n not in own]
    if missing or unknown:
        wrong = [f"without {', '.join(missing)}"] * bool(missing) + [f"with {', '.join(unknown)}"] * bool(unknown)
        raise StreamError("name", f"{name} comes {' and '.join(wrong)}; its names are {', '.join(own)}")
    return [arranged(name, given[n], names[1:]) for n in own]


def _entry(name: str, place: Any) -> str:
    """Name of an entry: `price[3]`, or the name alone."""
    return f"{name}{[int(i) for i in place]}" if len(place) else name
