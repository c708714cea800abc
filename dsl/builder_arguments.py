"""Arguments of the builder's methods, checked."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from oco.dsl.caller import caller_span
from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.members import members_of, names_in
from oco.dsl.scope import Scope
from oco.dsl.source import Span
from oco.dsl.statements import Param, Timing
from oco.dsl.suggest import did_you_mean
from oco.dsl.terms import Term, wrong_argument
from oco.dsl.text.parser import formula_text
from oco.dsl.text.tokens import is_name


def listed_values(values: set[Any] | frozenset[Any], span: Span | None) -> tuple[float, ...]:
    """Values of a set, ascending. Raises OCO526 where one is no finite number, or none is there."""
    numbers = all(isinstance(v, (int, float, np.number)) and math.isfinite(v) for v in values)
    if not values or not numbers:
        raise wrong_argument("`bounds`", "a set of numbers", values, span)
    return tuple(sorted(int(v) if float(v).is_integer() and not isinstance(v, float) else float(v) for v in values))


def entry_names(value: Any, span: Span | None) -> Any:
    """Names of the entries of an index as a value of a param; any other value as it is."""
    names = names_in(value, span)
    return value if names is None else Term(names)


def ends_of(bounds: Any, integer: bool, scope: Scope, span: Span | None) -> tuple[tuple[Any, Any] | None, bool]:
    """Ends of a range from a pair (lo, hi), a Python range of integers, or an index; and a flag for integers. Raises OCO526."""
    if bounds is None:
        if integer:
            raise fail("OCO526", "integers need bounds: the least and the greatest", span)
        return None, False
    own = scope.declared.get(getattr(getattr(bounds, "expr", None), "name", ""))
    if isinstance(bounds, Term) and isinstance(own, Param) and own.is_index:
        first, last = members_of(bounds.expr)
        return (Term(first, scope), Term(last, scope)), True
    if isinstance(bounds, range):
        if bounds.step != 1:
            raise wrong_argument("`bounds`", "a pair (lo, hi)", bounds, span)
        bounds, integer = (bounds.start, bounds.stop - 1), True
    if not isinstance(bounds, (tuple, list, np.ndarray)) or len(bounds) != 2:
        hint = "write `bounds=(0, 1)`; entries of their own have arrays, `bounds=(lo, hi)`; a set of values is `bounds={-1, 1}`"
        raise wrong_argument("`bounds`", "a pair (lo, hi)", bounds, span, hint)
    return (bounds[0], bounds[1]), integer


def checked_name(name: Any, what: str, span: Span | None) -> str:
    """Name in the form of one. Raises OCO526."""
    if not isinstance(name, str) or not is_name(name):
        shown = repr(name)[:40]
        hint = "names are made of letters, digits and `_`, and begin with a letter"
        raise fail("OCO526", f"{shown} cannot name {what}", span, hint)
    return name


def checked_word(word: str, words: list[str], what: str) -> str:
    """Word among those of a list. Raises OCO210."""
    if word not in words:
        near = did_you_mean(str(word), words, ", ".join(words))
        raise fail("OCO210", f"there is no {what} called {word!r}", caller_span(), near)
    return word


def formula(value: Any, name: str, span: Span | None) -> str:
    """Text of a setting: a formula, or a number."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float, np.integer, np.floating)):
        raise wrong_argument(f"the setting `{name}`", "a number or a formula", value, span)
    text = value if isinstance(value, str) else repr(value.item() if isinstance(value, np.generic) else value)
    try:
        return formula_text(text)
    except OcoError as error:
        raise fail("OCO721", f"the formula `{text}` cannot be read: {error.message}", span, error.hint) from None


def timing_of(each_round: bool, percent: object, in_total: bool, span: Span | None) -> Timing:
    """Time at which a constraint has to hold. Raises OCO526 where two are given, a flag is no truth value, or a percentage no number."""
    for name, flag in (("each_round", each_round), ("in_total", in_total)):
        if not isinstance(flag, (bool, np.bool_)):
            hint = f"write `{name}=True`; without each_round, percent and in_total a constraint holds on average"
            raise wrong_argument(f"`{name}`", "True or False", flag, span, hint)
    if percent is not None and (each_round or isinstance(percent, bool) or not isinstance(percent, (int, float))):
        raise wrong_argument("`percent`", "a number such as 99, without each_round", percent, span)
    if in_total and (each_round or percent is not None):
        raise wrong_argument("`in_total`", "alone, without each_round and percent", in_total, span)
    if in_total:
        return Timing.IN_TOTAL
    if percent is not None:
        return Timing.IN_SHARE
    return Timing.EACH_ROUND if each_round else Timing.ON_AVERAGE
