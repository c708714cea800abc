"""NumPy's functions on the builder's terms: arithmetic of arrays with terms is the terms' own; any other function
raises an error that names oco's.
"""

from __future__ import annotations

from collections.abc import Mapping

from oco.dsl.atoms import ATOMS
from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.source import Span

ARITHMETIC: Mapping[str, str] = {row.ufunc: row.name for row in ATOMS.values() if row.ufunc}
"""Atom of each operator on arrays."""

RELATIONS: Mapping[str, str] = {"less_equal": "<=", "greater_equal": ">=", "equal": "=="}
TURNED: Mapping[str, str] = {"<=": ">=", ">=": "<=", "==": "=="}
"""Relations with their sides exchanged: `array <= term` is `term >= array`."""

OTHERWISE: Mapping[str, str] = {
    "absolute": "abs",
    "fmax": "maximum",
    "fmin": "minimum",
    "logaddexp": "log_sum_exp",
    "reciprocal": "inv_pos",
    "add.reduce": "sum",
    "maximum.reduce": "max",
    "minimum.reduce": "min",
}
"""Names of functions in oco, where they differ from NumPy's."""


def not_on_terms(name: str, method: str, span: Span | None) -> OcoError:
    """Error for `np.log(x)` and the like, with the corresponding function of oco where there is one."""
    called = name if method == "__call__" else f"{name}.{method}"
    atom = OTHERWISE.get(called, name if method == "__call__" else "")
    hint = f"write oco.{atom}(...)" if atom in ATOMS else "`oco` has the functions that a model may use"
    shown = f"np.{called}"
    return fail("OCO524", f"`{shown}` works on arrays, and an expression of a model has no values yet", span, hint)
