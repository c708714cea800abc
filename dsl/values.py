"""Values of params, and of expressions of params: sizes, bounds, arguments of domains and distributions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from oco.dsl.atoms import shapes
from oco.dsl.atoms.expression_names import describe
from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.dims import Shape, broadcast, show
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Constant, EntryNames, Expr, File, Kind, constant, names, walk
from oco.dsl.keyed import keyed_values
from oco.dsl.labels import Axes
from oco.dsl.limits import MOST_NUMBERS, numbers
from oco.dsl.members import names_in, places
from oco.dsl.scope import Array, Scope, check_fixed
from oco.dsl.source import Span
from oco.dsl.statements import Param


def is_known(shape: Shape) -> bool:
    """True where every length is an integer."""
    return all(isinstance(d, int) for d in shape)


def count(shape: Shape) -> int:
    """Number of entries of a known shape, without overflow."""
    return math.prod(d for d in shape if isinstance(d, int))


def check_count(shape: Shape, role: str, span: Span | None, most: int = MOST_NUMBERS) -> None:
    """Refuse an array of too many entries before anything is allocated."""
    if is_known(shape) and count(shape) > most:
        raise fail("OCO805", f"{role} has {count(shape):,} entries; at most {most:,} are allowed", span)


def fixed_value(scope: Scope, expr: Expr, role: str) -> Array | None:
    """Value of an expression of numbers and params; None while a param in it has no value yet.

    The size of every part is checked before anything is computed.
    """
    check_fixed(expr, role)
    if any(name not in scope.values for name in names(expr, Kind.PARAM)):
        return None
    for part in walk(expr):
        check_count(part.shape, role, part.span or expr.span)
    scope.made.add(sum(numbers(part) for part in walk(expr) if part.children), role, expr.span)
    with np.errstate(all="ignore"):
        value = np.asarray(evaluate(expr, scope.values))
    check_finite(value, role, expr.span)
    return value


def check_finite(value: Array, role: str, span: Span | None) -> None:
    """Check that all entries are finite. Raises OCO807."""
    wrong = np.argwhere(~np.isfinite(value))
    if len(wrong):
        raise fail("OCO807", f"{entry(role, tuple(wrong[0]))} is {_word(value[tuple(wrong[0])])}", span)


def _word(value: Any) -> str:
    return "undefined: 0 / 0, or a function outside its domain" if np.isnan(value) else "infinite"


def shown(value: Array, at: tuple[int, ...] = ()) -> str:
    """Text of an entry of an array that broadcasts to the index `at`: integers without a decimal point."""
    pair = [0 if size == 1 else i for i, size in zip(at[len(at) - value.ndim :], value.shape)]
    return repr(value[tuple(pair)].item()).removesuffix(".0")


def entry(role: str, index: tuple[int, ...]) -> str:
    """Phrase `entry [3] of ...`, or the role itself for a scalar."""
    return f"entry [{', '.join(map(str, index))}] of {role}" if index else role


def given_value(name: str, value: Any, span: Span | None, ranged: bool = False) -> Constant | EntryNames:
    """Constant from the value that a caller passed for a param; names of entries where it has a range, which may be that of an index.

    Raises OCO804, OCO805 or OCO807.
    """
    if ranged and (given := names_in(value, span)) is not None:
        return given
    try:
        array = np.asarray(value)
    except ValueError:
        raise fail("OCO804", f"the value given for `{name}` is not an array: its rows differ in length", span) from None
    if array.dtype.kind not in "iubf":
        hint = "it is an integer too large for 64 bits" if array.dtype.kind == "O" else ""
        raise fail("OCO804", f"the value given for `{name}` is not made of numbers: {str(value)[:40]}", span, hint)
    if array.size > MOST_NUMBERS:
        raise fail(
            "OCO805",
            f"the value given for `{name}` has {array.size:,} entries; at most {MOST_NUMBERS:,} are allowed",
            span,
        )
    if array.size == 0:
        raise fail("OCO804", f"the value given for `{name}` has no entries", span)
    check_finite(array, f"the value given for `{name}`", span)
    return constant(array, span)


def param_value(scope: Scope, param: Param, axes: Axes = ()) -> Array | None:
    """Checked array of a param, in its shape; None while it has none."""
    if param.value is None or not is_known(param.shape):
        return None
    role = f"`{param.name}`"
    file = param.value if isinstance(param.value, File) else None
    value = f"the value of {role}"
    if isinstance(param.value, EntryNames):
        raw = places(role, param.value.names, param.bounds, scope.indexes, param.value.span)
    else:
        raw = fixed_value(scope, param.value, value) if file is None else _read(scope, param, file, axes)
    if raw is None:
        return None
    if raw.shape == ():  # one number for every entry
        scope.made.add(count(param.shape), role, param.value.span)
    shaped = _in_shape(raw, param)
    if param.integer:
        shaped = _whole(shaped, param)
    _check_bounds(scope, shaped, param)
    return np.array(shaped, dtype=np.int64 if param.integer else np.float64)


def _read(scope: Scope, param: Param, file: File, axes: Axes) -> Array:
    """Numbers of a file, by name where its columns have the names of the axes."""
    from oco.dsl.files import read_array

    raw = keyed_values(scope, param, axes, file)
    if raw is None:
        raw = read_array(file.path, scope.folder, param.name, file.span, scope.quota)
    _count_read(scope, raw, file)
    return raw


def _count_read(scope: Scope, raw: Array, file: File) -> None:
    scope.read += raw.size
    if scope.read > MOST_NUMBERS:
        message = f"up to `{file.path}` the files of this model hold {scope.read:,} numbers; at most {MOST_NUMBERS:,} are read"
        raise fail("OCO805", message, file.span)


def _in_shape(raw: Array, param: Param) -> Array:
    """Value in the declared shape: equal, a single number for all entries, or one row or column of a file for a vector."""
    shape = tuple(d for d in param.shape if isinstance(d, int))
    assert param.value is not None
    if raw.shape == shape:
        return raw
    if raw.shape == () and not isinstance(param.value, File):
        return np.broadcast_to(raw, shape)
    if (
        isinstance(param.value, File)
        and raw.ndim == 2
        and 1 in raw.shape
        and count(shape) == raw.size
        and len(shape) < 2
    ):
        return raw.reshape(shape)
    raise wrong_shape(param.name, param.shape, raw.shape, param.value)


def wrong_shape(name: str, declared: Shape, result: Shape, value: Expr) -> OcoError:
    """Error for a value that does not have the declared shape."""
    message = f"with shape {show(declared)}" if declared else "as a number"
    has = f"shape {show(result)}" if result else "a number"
    if isinstance(value, File):
        what = f"`{value.path}` holds an array of {has}" if result else f"`{value.path}` holds {has}"
        return fail("OCO321", f"`{name}` is declared {message}, but {what}", value.span)
    hint = f"declare it as `{name}{show(result)}`" if result else ""
    return fail(
        "OCO321", f"`{name}` is declared {message}, but its value {'has' if result else 'is'} {has}", value.span, hint
    )


def _whole(value: Array, param: Param) -> Array:
    wrong = np.argwhere(value != np.floor(value))
    if len(wrong):
        at = tuple(wrong[0])
        assert param.value is not None
        raise fail("OCO806", f"{entry(f'`{param.name}`', at)} is {shown(value, at)}, not an integer", param.value.span)
    return value.astype(np.int64)


def _check_bounds(scope: Scope, value: Array, param: Param) -> None:
    if param.bounds is None:
        return
    low, high = (fixed_value(scope, b, f"the range of `{param.name}`") for b in param.bounds)
    if low is None or high is None:
        return
    wrong = np.argwhere((value < low) | (value > high))
    if len(wrong):
        at = tuple(wrong[0])
        message = f"{shown(low, at)}..{shown(high, at)}" if param.integer else f"[{shown(low, at)}, {shown(high, at)}]"
        assert param.value is not None
        raise fail(
            "OCO806", f"{entry(f'`{param.name}`', at)} is {shown(value, at)}, outside {message}", param.value.span
        )


def _of_shape(shape: Shape) -> str:
    return f"of shape {show(shape)}" if shape else "a number"


def check_range(scope: Scope, bounds: tuple[Expr, Expr], shape: Shape, role: str, integer: bool) -> None:
    """Check `in [lo, hi]` or `in a..b`: fixed, of a shape that broadcasts to `shape`, whole where required, lo <= hi."""
    for bound in bounds:
        check_fixed(bound, f"the range of {role}")
        if broadcast(bound.shape, shape) != shape:
            raise fail(
                "OCO322",
                f"{describe(bound, 'a bound')} has shape {show(bound.shape)}, which does not fit {role}, {_of_shape(shape)}",
                bound.span,
            )
        if integer:
            shapes.as_dim(bound, f"an end of the range of {role}")
    low, high = (fixed_value(scope, b, f"the range of {role}") for b in bounds)
    if low is None or high is None:
        return
    wrong = np.argwhere(np.broadcast_to(low > high, np.broadcast_shapes(low.shape, high.shape)))
    if len(wrong):
        at = tuple(wrong[0])
        raise fail(
            "OCO424",
            f"the range of {entry(role, at)} is empty: {shown(low, at)} is above {shown(high, at)}",
            bounds[0].span and bounds[0].span.to(bounds[1].span),
            "write the lower end first",
        )


def is_data(value: Any) -> bool:
    """True for data in the place of a shape: shapes are integers, or tuples and lists of them."""
    if isinstance(value, (list, tuple)):
        return any(isinstance(v, (list, tuple, float, np.floating, np.ndarray)) for v in value)
    return isinstance(value, (float, np.floating, np.ndarray)) or hasattr(value, "to_numpy")


def as_array(value: Any) -> Any:
    """Data as an array: tables of pandas and polars become one."""
    return value.to_numpy() if hasattr(value, "to_numpy") else value
