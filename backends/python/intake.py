"""Checks of the data that a round reveals. This text is also part of every emitted module, so it uses NumPy alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from oco.backends.python.streams import INTEGERS, NAMED, Stream


class StreamError(ValueError):
    """Error for data that does not fit the model. `rule` is "name", "kind", "shape", "finite", "integer" or "bounds"."""

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(message)
        self.rule = rule


class NotFinite(ArithmeticError):
    """Error for an array of the state or of a result that holds infinities or NaN. `name` is the array's."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is not finite")
        self.name = name


_MOST_ALONE = 10_000
"""Entries of an inner product up to which BLAS takes it in this thread; it wakes others for more, which then wait at full speed."""


def _size(flat: Any) -> Any:
    """Number that is not finite where an entry of a vector is not."""
    return flat.dot(flat) if len(flat) <= _MOST_ALONE else flat.sum()


def finite(names: Iterable[str], values: Any, before: Sequence[Any] = ()) -> Any:
    """Values, if all of them are finite; raises NotFinite otherwise. `before`: values that are, by place; they are not looked at again."""
    for k, (name, value) in enumerate(zip(names, values)):
        if k < len(before) and value is before[k]:
            continue
        flat = value.ravel() if isinstance(value, np.ndarray) else value
        size = _size(flat) if isinstance(value, np.ndarray) else value  # one number that tells in most cases
        if size * 0 != 0 and not np.isfinite(value).all():
            raise NotFinite(name)
    return values


class Intake:
    """Conversion of a round's data to arrays, in the order of `streams`. Raises StreamError for data that does not fit."""

    def __init__(self, streams: Mapping[str, Stream]) -> None:
        self.streams = streams
        lower = [np.broadcast_to(s.lower, s.shape).ravel() for s in streams.values()]
        upper = [np.broadcast_to(s.upper, s.shape).ravel() for s in streams.values()]
        most = np.finfo(np.float64).max
        self.lower, self.upper = (np.concatenate([np.empty(0), *each]).clip(-most, most) for each in (lower, upper))

    def arrays(self, given: Mapping[str, Any]) -> list[Any]:
        """Copies of the given values with the right kind and shape; their entries are not checked."""
        if given.keys() != self.streams.keys():
            if missing := [n for n in self.streams if n not in given]:
                raise StreamError("name", f"nothing is given for {', '.join(missing)}")
            unknown, names = ", ".join(n for n in given if n not in self.streams), ", ".join(self.streams)
            raise StreamError("name", f"{unknown} is not among {names or 'the inputs: there are none'}")
        values = []
        for name, stream in self.streams.items():
            value = self._array(name, given[name], stream)
            if value.shape != stream.shape:
                raise StreamError("shape", f"{name} has the shape {value.shape}, not {stream.shape}")
            values.append(value)
        return values

    def __call__(self, given: Mapping[str, Any]) -> list[Any]:
        """Copies of the given values, all of them within their bounds; reals without axes as Python's numbers, which count faster."""
        values = self.arrays(given)
        if values:
            entries = np.concatenate(values, axis=None)
            if not ((self.lower <= entries) & (entries <= self.upper)).all():
                raise self._wrong_entry(values)
        return [v if v.ndim else v[()] if INTEGERS and v.dtype.kind == "i" else v.item() for v in values]

    def _array(self, name: str, given: Any, stream: Stream) -> np.ndarray[Any, Any]:
        """Copy of a given value, of the stream's kind."""
        if NAMED:
            given = arranged(name, given, stream.names)
        if isinstance(given, np.ma.MaskedArray):
            raise StreamError("kind", f"{name} is masked; give an array without gaps")
        try:
            value = np.array(given, order="C")
        except (TypeError, ValueError, OverflowError) as error:
            raise StreamError("kind", f"{name} cannot be read as an array: {error}") from None
        if value.dtype.kind not in "fiub":
            for place, x in np.ndenumerate(value.astype(object)):
                if not isinstance(x, (bool, int, float)):
                    raise StreamError("kind", f"{_entry(name, place)} is {repr(x)[:40]}, which is not a real number")
            raise StreamError("kind", f"{name} does not hold numbers but {value.dtype}")
        if INTEGERS and stream.integer and value.dtype.kind in "fu":
            with np.errstate(all="ignore"):
                wrong = ~((value == np.floor(value)) & (np.abs(value) < 2.0**63))
            for place in np.argwhere(wrong)[:1]:
                message = f"{_entry(name, place)} is {value[tuple(place)]}"
                raise StreamError("integer", f"{message}, which is not an integer below 2**63")
        return value.astype(np.int64 if INTEGERS and stream.integer else np.float64, copy=False)

    def _wrong_entry(self, values: list[Any]) -> StreamError:
        """Error for the first entry that is not finite or not within its bounds."""
        for (name, stream), value in zip(self.streams.items(), values):
            lower, upper = (np.broadcast_to(b, value.shape) for b in (stream.lower, stream.upper))
            good = np.isfinite(value) & (lower <= value) & (value <= upper)
            for place in map(tuple, np.argwhere(~good)):
                wrong = f"{_entry(name, place)} is {value[place]}"
                if not np.isfinite(value[place]):
                    return StreamError("finite", f"{wrong}, which is not a finite number")
                bounds = f"[{lower[place]:g}, {upper[place]:g}]"
                return StreamError("bounds", f"{wrong}, outside the model's bounds {bounds}")
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
