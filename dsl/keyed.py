"""Fixed data by name: values from the caller, and columns of csv files, in the order of an index."""

from __future__ import annotations

from typing import Any

import numpy as np

from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.expressions import File
from oco.dsl.labels import Axes, Axis, arranged, fitted, listed
from oco.dsl.members import index_within, places
from oco.dsl.readers.columns import numbers
from oco.dsl.readers.decimals import decimal
from oco.dsl.scope import Array, Scope
from oco.dsl.source import Span
from oco.dsl.statements import Param
from oco.dsl.suggest import did_you_mean


def by_name(name: str, value: Any, axes: Axes, span: Span | None) -> Any:
    """Value of a param, with entries that came by name in the order of its axes. Raises OCO808."""
    return arranged(f"the value of `{name}`", value, axes, lambda message, hint: fail("OCO808", message, span, hint))


def index_names(scope: Scope, name: str, file: File) -> list[str]:
    """Names of an index in a column of a csv file: the one that is named, that of the index, or the only one."""
    columns = _columns(scope, file)
    column = file.column or (name if name in columns or len(columns) > 1 else next(iter(columns)))
    return _column(columns, column, file)


def _columns(scope: Scope, file: File) -> dict[str, list[str]]:
    """Columns of a csv file. Raises OCO801 to OCO805."""
    from oco.dsl.files import read_table

    return read_table(file.path, scope.folder, file.span, scope.quota)


def _column(columns: dict[str, list[str]], column: str, file: File) -> list[str]:
    if column not in columns:
        hint = did_you_mean(column, columns, f"its columns are {listed(columns)}")
        raise fail("OCO804", f"`{file.path}` has no column `{column}`", file.span, hint)
    return columns[column]


def keyed_values(scope: Scope, param: Param, axes: Axes, file: File) -> Array | None:
    """Numbers of a csv file whose columns are named: rows in the order of the index, where a column has its names; of a matrix whose
    columns have names those columns. None where nothing is by name.
    """
    if not file.path.lower().endswith(".csv") or not (file.column or (axes and any(axes))) or len(param.dims) > 2:
        return None
    try:
        columns = _columns(scope, file)
    except OcoError:
        if file.column:
            raise
        return None  # numbers without a header stand by position
    role = f"`{file.path}`, for `{param.name}`,"

    def wrong(message: str, hint: str) -> OcoError:
        return fail("OCO808", message, file.span, hint)

    rows, across = (axes or (None,))[0], axes[1] if len(axes) == 2 else None
    key = None if rows is None else _key(scope, columns, rows)
    named = [c for c in columns if c != key]
    if across is not None:
        present = [c for c in named if c in across.names]
        chosen = [present[k] for k in fitted(role, present, across, wrong)]
    elif file.column or len(param.dims) == 1:
        chosen = [file.column or (param.name if param.name in named or len(named) != 1 else named[0])]
    else:
        chosen = named
    try:
        values = np.column_stack([_values(scope, param, c, _column(columns, c, file), file) for c in chosen])
    except ValueError as error:
        raise fail("OCO804", f"`{file.path}` cannot be read: {error}", file.span) from None
    if key is not None and rows is not None:
        values = values[fitted(role, columns[key], rows, wrong)]
    return values if len(param.dims) == 2 else values[:, 0]


def _values(scope: Scope, param: Param, column: str, cells: list[str], file: File) -> Array:
    """Numbers of a column: of entries of an index where the param lies in one and the cells are names of it."""
    index = index_within(param.bounds)
    if index is None or not set(scope.indexes.get(index.name, ())) & set(cells):
        return numbers(column, cells)
    role = f"`{file.path}`, for `{param.name}`,"
    return np.array(places(role, cells, param.bounds, scope.indexes, file.span))


def _key(scope: Scope, columns: dict[str, list[str]], axis: Axis) -> str | None:
    """Column that has the names of an axis: called as the index, as the column of a file that gave them, or one that holds some."""
    source = getattr(scope.declared.get(axis.index), "value", None)
    own = source.column if isinstance(source, File) else ""
    words = {name for name in axis.names if decimal(name) is None}
    holds = (c for c, cells in columns.items() if words & set(cells))
    return next((c for c in (axis.index, own) if c in columns), None) or next(holds, None)
