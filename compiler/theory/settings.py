"""Settings of an algorithm: formulas in t, T and facts, from a theorem or from the user, resolved to numbers and schedules.

Text is read by the language's own parser: numbers, names, + - * / ** and a short list of functions; nothing else is evaluated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from oco.compiler.ir.symbolic import HALF, UNDEFINED, Formula, Symbol
from oco.compiler.ir.symbolic_form import (
    FUNCTIONS,
    call,
    decimal_value,
    exact,
    nearest_float,
    negative,
    power,
    product,
    quotient,
    substituted,
    total,
)
from oco.compiler.theory.formula_values import value_at
from oco.compiler.theory.schedule import KEPT, Rounds, Schedule
from oco.dsl.diagnostics import InternalError, OcoError, fail
from oco.dsl.magnitudes import HUGE
from oco.dsl.records import dataclass
from oco.dsl.settings import FORMULA_FUNCTIONS
from oco.dsl.source import Span
from oco.dsl.text import parser, syntax

Floats = np.ndarray[Any, Any]
Numbers = tuple[tuple[str, float], ...]

SCHEDULE_SYMBOLS = ("t", "T", "m")


@dataclass(frozen=True)
class Setting:
    """One setting of a plan. `formula` is one in t and T (and m), or a word; `value` is its number where it is one.

    numbers  those of other symbols of the formula: substituting them thousands of times, as a search does, would take seconds
    """

    name: str
    formula: Formula
    value: float | None
    why: str
    given: bool = False
    numbers: Numbers = ()

    def __str__(self) -> str:
        return f"{self.name} = {self.formula}"

    @cached_property
    def symbols(self) -> frozenset[str]:
        """Names of the symbols of the formula that have no number."""
        return self.formula.symbols.difference(name for name, _ in self.numbers)

    def along(self, rounds: Rounds, horizon: int, m: int = 1) -> Schedule:
        """Values in the rounds of a run planned for a horizon, of expert m; see `along`."""
        key = (rounds, horizon, m)
        if key not in self._schedules:
            result = along(self.formula, rounds, horizon, m, self.numbers)
            if len(rounds.last) > KEPT:
                return result
            self._schedules[key] = result
        return self._schedules[key]

    def number(self, horizon: int) -> float:
        """Value in the first round of a run planned for a horizon."""
        if horizon not in self._numbers:
            self._numbers[horizon] = _first(self.formula, horizon, self.numbers)
        return self._numbers[horizon]

    @cached_property
    def _schedules(self) -> dict[tuple[Rounds, int, int], Schedule]:
        """Schedules that were asked for before: a search asks for those of settings that it does not vary in every step."""
        return {}

    @cached_property
    def _numbers(self) -> dict[int, float]:
        """Numbers that were asked for before, by horizon."""
        return {}


@dataclass(frozen=True)
class Default:
    """A theorem's own choice: a formula in t, T, facts and other settings, and where the paper says it."""

    formula: str | float
    why: str


Symbols = Mapping[str, Formula]


def parse_formula(text: str, symbols: Symbols, span: Span | None = None) -> Formula:
    """The formula of a text. `symbols` gives the meaning of each name, keys of facts among them. Raises OCO721."""
    try:
        tree = _tree(text)
    except OcoError as error:
        raise fail("OCO721", f"the formula `{text}` cannot be read: {error.message}", span, error.hint) from None
    return _Reader(text, symbols, span).read(tree)


@lru_cache(maxsize=512)
def _tree(text: str) -> syntax.Expression:
    """A theorem's formulas are read for every model and in every search."""
    return parser.parse_formula(text)


class _Reader:
    """Walks the syntax tree of a formula; whatever is not listed here is refused."""

    def __init__(self, text: str, symbols: Symbols, span: Span | None) -> None:
        self.text = text
        self.symbols = symbols
        self.span = span

    def read(self, node: syntax.Expression) -> Formula:
        match node:
            case syntax.Number(value=value):
                return self.number(value)
            case syntax.Identifier(name=name):
                return self.name(name)
            case syntax.Call(name=name, args=args, options=()):
                return self.call(name, [self.read(a) for a in args])
        raise self.refuse("it is not a number")

    def number(self, value: int | float) -> Formula:
        if not abs(value) < HUGE:
            raise self.refuse("it holds a number that is too large")
        return exact(value)

    def name(self, key: str) -> Formula:
        if key not in self.symbols:
            known = ", ".join(sorted({str(k) for k in self.symbols if "." not in str(k)}))
            raise self.refuse(f"`{key}` has no value here", f"known are {known}, and facts such as domain.diameter.l2")
        return self.symbols[key]

    def call(self, name: str, args: list[Formula]) -> Formula:
        rows: dict[str, Callable[..., Formula]] = {
            "add": lambda a, b: total((a, b)),
            "sub": lambda a, b: total((a, negative(b))),
            "mul": lambda a, b: product((a, b)),
            "div": self.quotient,
            "pow": self.power,
            "minus": negative,
            "sqrt": lambda a: power(a, HALF),
        }
        if name not in rows and name not in FUNCTIONS:
            raise self.refuse(f"there is no function `{name}` in formulas", f"known are {', '.join(FORMULA_FUNCTIONS)}")
        several = 2 if name in ("add", "sub", "mul", "div", "pow") else None if name in ("min", "max") else 1
        if not args or (several is not None and len(args) != several):
            raise self.refuse(f"`{name}` has the wrong number of arguments")
        if name in ("min", "max") and UNDEFINED in args:
            raise self.refuse(f"`{name}` has an argument that is not a real number")
        return rows[name](*args) if name in rows else call(name, *args)

    def quotient(self, above: Formula, below: Formula) -> Formula:
        if not below.symbols and decimal_value(below) == 0:
            raise self.refuse("it divides by zero")
        return quotient(above, below)

    def power(self, base: Formula, exponent: Formula) -> Formula:
        result = power(base, exponent)
        if result is UNDEFINED and base.is_positive and not base.symbols:
            raise self.refuse("it holds a number that is too large")
        return result

    def refuse(self, what: str, hint: str = "") -> Exception:
        return fail("OCO721", f"the formula `{self.text}` is not usable: {what}", self.span, hint)


def resolve_settings(
    defaults: Mapping[str, Default],
    given: Mapping[str, str | float],
    symbols: Symbols,
    horizon: int | None,
    span: Span | None = None,
) -> dict[str, Setting]:
    """Every setting as a formula in t and T: the given ones as they are, the others as the theorem says.

    A formula may use the names of other settings. `symbols` holds t, T, m, d and the facts that are numbers. Raises OCO721.
    """
    texts: dict[str, tuple[str | float, str, bool]] = {n: (d.formula, d.why, False) for n, d in defaults.items()}
    for name, value in given.items():
        texts[name] = (value, "given", True)
    done: dict[str, Formula] = {}

    def formula(name: str, pending: tuple[str, ...]) -> Formula:
        if name in pending:
            raise fail("OCO721", f"the settings {', '.join(pending)} are defined by each other", span)
        if name not in done:
            text, _, _ = texts[name]
            names = _Names(symbols, texts, lambda n: formula(n, (*pending, name)))
            done[name] = parse_formula(str(text), names, span) if isinstance(text, str) else exact(text)
        return done[name]

    return {n: _setting(n, formula(n, ()), why, is_given, horizon) for n, (_, why, is_given) in texts.items()}


def word_setting(
    name: str, words: tuple[str, ...], default: Default, given: str | float | None, span: Span | None = None
) -> Setting:
    """A setting that is one of a few words. Raises OCO721 for another."""
    word = str(default.formula if given is None else given).strip('"')
    if word not in words:
        raise fail("OCO721", f"the setting {name} is one of {', '.join(words)}, not `{word}`", span)
    return Setting(name, Symbol(word), None, default.why if given is None else "given", given is not None)


class _Names(Mapping[str, Formula]):
    """The names a formula may use: symbols and facts, then other settings, resolved when asked for."""

    def __init__(self, symbols: Symbols, settings: Mapping[str, Any], resolve: Callable[[str], Formula]) -> None:
        self.symbols, self.settings, self.resolve = symbols, settings, resolve

    def __getitem__(self, key: str) -> Formula:
        return self.resolve(key) if key in self.settings else self.symbols[key]

    def __contains__(self, key: object) -> bool:
        return key in self.settings or key in self.symbols

    def __iter__(self) -> Any:
        return iter([*self.symbols, *self.settings])

    def __len__(self) -> int:
        return len(self.symbols) + len(self.settings)


def _setting(name: str, formula: Formula, why: str, given: bool, horizon: int | None) -> Setting:
    at_horizon = formula if horizon is None else substituted(formula, {"T": exact(horizon)})
    return Setting(name, formula, None if at_horizon.symbols else nearest_float(at_horizon), why, given)


def schedule_symbols() -> dict[str, Formula]:
    """t, T and m."""
    return {name: Symbol(name) for name in SCHEDULE_SYMBOLS}


def along(formula: Formula, rounds: Rounds, horizon: int, m: int = 1, numbers: Numbers = ()) -> Schedule:
    """Values of a formula in t, T, m and symbols with numbers, over rounds that may be in stretches, with T = horizon.

    After round T it keeps T's. Raises OCO722 where one is not finite.
    """
    t: Any = rounds.t
    t = t if rounds.n <= horizon else np.minimum(t, float(horizon))
    with np.errstate(all="ignore"):
        outcome = value_at(formula, {"t": t, "T": np.float64(horizon), "m": np.float64(m), **dict(numbers)})
    result = outcome if isinstance(outcome, Schedule) else rounds.constant(float(outcome))
    if not np.isfinite(result.last).all():
        raise _not_finite(formula)
    return result


def _first(formula: Formula, horizon: int, numbers: Numbers) -> float:
    """Value of a formula in t, T and m at t = m = 1, with T = horizon."""
    with np.errstate(all="ignore"):
        values = {"t": np.float64(1), "T": np.float64(horizon), "m": np.float64(1), **dict(numbers)}
        result = float(value_at(formula, values))
    if not math.isfinite(result):
        raise _not_finite(formula)
    return result


def _not_finite(formula: Formula) -> OcoError:
    return fail("OCO722", f"the setting `{formula}` is not a finite number in every round")


def number(settings: Mapping[str, Setting], name: str, horizon: int) -> float:
    """The value of a setting that does not depend on the round."""
    if name not in settings:
        raise InternalError(f"no setting {name}")
    return settings[name].number(horizon)


def count(settings: Mapping[str, Setting], name: str, horizon: int) -> int:
    """A setting that says how many there are of something: an integer, at least 1."""
    return max(1, round(number(settings, name, horizon)))
