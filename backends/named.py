"""Arrays whose entries have names: decisions of models with an `index`, and rounds that come by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.labels import Axes, arranged

Array = np.ndarray[Any, Any]


class NamedArray(np.ndarray[Any, Any]):
    """Array that also takes names in the place of numbers: `x["NYC"]`. What is computed from it is a plain array; so is `x.array`."""

    axes: Axes = ()

    def __new__(cls, array: Array, axes: Axes) -> NamedArray:
        named = np.asarray(array).view(cls)
        named.axes = axes
        return named

    @property
    def array(self) -> Array:
        """Plain array, without a copy."""
        return self.view(np.ndarray)

    def __getitem__(self, key: Any) -> Any:
        places = key if isinstance(key, tuple) else (key,)
        if self.axes and any(isinstance(k, str) for k in places):
            axes = self.axes + (None,) * len(places)
            key = tuple(_place(k, axis) for k, axis in zip(places, axes))
        return self.array[key]

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        plain = (i.array if isinstance(i, NamedArray) else i for i in inputs)
        if "out" in options:
            options["out"] = tuple(o.array if isinstance(o, NamedArray) else o for o in options["out"])
        return getattr(ufunc, method)(*plain, **options)

    def __repr__(self) -> str:
        if self.ndim != 1 or not self.axes or self.axes[0] is None:
            return repr(self.array)
        return f"NamedArray({', '.join(f'{n}={v:.6g}' for n, v in zip(self.axes[0].names, self.array))})"

    def __reduce__(self) -> Any:
        return self.array.__reduce__()


def _place(key: Any, axis: Any) -> Any:
    """Number of a named entry."""
    if not isinstance(key, str):
        return key
    if axis is None:
        raise fail("OCO327", f"this axis has no names, so that {key!r} is none of its entries", hint="give a number")
    return axis.place(key, "this array")


def named(arrays: Mapping[str, Any], axes: Mapping[str, Axes]) -> dict[str, Any]:
    """Arrays by declaration, with the names of their entries where there are some."""
    return {n: NamedArray(a, axes[n]) if axes.get(n) else a for n, a in arrays.items()}


def learners_first(name: str, given: Any, axes: Axes) -> Any:
    """Data of a fleet, (n, *shape), from a dict of names, each with an array of which the learner comes first; other data as they are.

    Raises OCO861 where names are missing or unknown.
    """
    if not isinstance(given, Mapping) or not axes:
        return given
    return np.moveaxis(by_position({name: given}, {name: axes[1:2]})[name], 0, 1)


def by_position(given: Mapping[str, Any], axes: Mapping[str, Axes]) -> dict[str, Any]:
    """Values of a round in the order of their axes. Raises OCO861 where names are missing or unknown."""

    def wrong(message: str, hint: str) -> OcoError:
        return fail("OCO861", message, hint=hint)

    return {n: arranged(f"`{n}`", value, axes.get(n, ()), wrong) for n, value in given.items()}
