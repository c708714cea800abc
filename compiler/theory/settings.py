"""Settings of an algorithm: formulas in t, T and facts, from a theorem or from the user, resolved to numbers and schedules.

Text is read by the language's own parser: numbers, names, + - * / ** and a short list of functions; nothing else is evaluated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from oco.compiler.theory.formula_values import evaluated, symbols_of, value_at
from oco.compiler.theory.schedule import KEPT, Rounds, Schedule
from oco.dsl.diagnostics import InternalError, OcoError, fail
from oco.dsl.magnitudes import HUGE
from oco.dsl.settings import FORMULA_FUNCTIONS
from oco.dsl.source import Span
from oco.dsl.text import parser, syntax

Floats = np.ndarray[Any, Any]

MAX_EXACT_EXPONENT = 64  # powers beyond are taken in floating point: exact ones have thousands of digits
PROBES = 10.0 ** np.arange(-9.0, 13.0)
"""Numbers at which two formulas in positive symbols are compared, all symbols at once."""
PROBED_TO = 1e-6
"""Relative differences of formulas that rounding does not explain."""
SCHEDULE_SYMBOLS = ("t", "T", "m")


@dataclass(frozen=True)
class Setting:
    """One setting of a plan. `formula` is a SymPy expression in t and T (and m); `value` is its number where it is one."""

    name: str
    formula: Any
    value: float | None
    why: str
    given: bool = False

    def __str__(self) -> str:
        return f"{self.name} = {self.formula}"

    @property
    def symbols(self) -> frozenset[str]:
        """Names of the symbols of the formula."""
        return symbols_of(self.formula)

    def along(self, rounds: Rounds, horizon: int, m: int = 1) -> Schedule:
        """Values in the rounds of a run planned for a horizon, of expert m; see `along`."""
        key = (rounds, horizon, m)
        if key not in self._schedules:
            result = along(self.formula, rounds, horizon, m)
            if len(rounds.last) > KEPT:
                return result
            self._schedules[key] = result
        return self._schedules[key]

    def number(self, horizon: int) -> float:
        """Value in the first round of a run planned for a horizon."""
        if horizon not in self._numbers:
            self._numbers[horizon] = _first(self.formula, horizon)
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


Symbols = Mapping[str, Any]


def parse_formula(text: str, symbols: Symbols, span: Span | None = None) -> Any:
    """The formula as a SymPy expression. `symbols` gives the meaning of each name, keys of facts among them. Raises OCO721."""
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
        import sympy

        self.sympy = sympy
        self.text = text
        self.symbols = symbols
        self.span = span

    def read(self, node: syntax.Expression) -> Any:
        match node:
            case syntax.Number(value=value):
                return self.number(value)
            case syntax.Identifier(name=name):
                return self.name(name)
            case syntax.Call(name=name, args=args, options=()):
                return self.call(name, [self.read(a) for a in args])
        raise self.refuse("it is not a number")

    def number(self, value: int | float) -> Any:
        if not abs(value) < HUGE:
            raise self.refuse("it holds a number that is too large")
        return exact(value)

    def name(self, key: str) -> Any:
        if key not in self.symbols:
            known = ", ".join(sorted({str(k) for k in self.symbols if "." not in str(k)}))
            raise self.refuse(f"`{key}` has no value here", f"known are {known}, and facts such as domain.diameter.l2")
        return self.symbols[key]

    def call(self, name: str, args: list[Any]) -> Any:
        rows = {
            "add": lambda a, b: a + b,
            "sub": lambda a, b: a - b,
            "mul": lambda a, b: a * b,
            "div": self.quotient,
            "pow": self.power,
            "minus": lambda a: -a,
            "sqrt": self.sympy.sqrt,
            "log": self.sympy.log,
            "exp": self.exponential,
            "floor": self.sympy.floor,
            "ceiling": self.sympy.ceiling,
            "abs": self.sympy.Abs,
            "min": lambda *xs: _extreme(self.sympy.Min, xs),
            "max": lambda *xs: _extreme(self.sympy.Max, xs),
        }
        if name not in rows:
            raise self.refuse(f"there is no function `{name}` in formulas", f"known are {', '.join(FORMULA_FUNCTIONS)}")
        several = 2 if name in ("add", "sub", "mul", "div", "pow") else None if name in ("min", "max") else 1
        if not args or (several is not None and len(args) != several):
            raise self.refuse(f"`{name}` has the wrong number of arguments")
        try:
            return rows[name](*args)
        except ValueError:  # SymPy's, of complex numbers
            raise self.refuse(f"`{name}` has an argument that is not a real number") from None

    def quotient(self, above: Any, below: Any) -> Any:
        if below.is_zero:
            raise self.refuse("it divides by zero")
        return above / below

    def exponential(self, exponent: Any) -> Any:
        if exponent.has(self.sympy.exp) or any(not p.is_number for p in exponent.atoms(self.sympy.Pow)):
            raise self.refuse("an exponent holds another power")
        return self.sympy.exp(exponent)

    def power(self, base: Any, exponent: Any) -> Any:
        """Numbers stay small: an exponent holds no further power, and large ones are taken in floating point."""
        if exponent.has(self.sympy.exp) or any(not p.is_number for p in exponent.atoms(self.sympy.Pow)):
            raise self.refuse("an exponent holds another power")
        if not (base.is_number and exponent.is_number):
            return base**exponent
        if abs(exponent) <= MAX_EXACT_EXPONENT and abs(base) <= HUGE ** (1 / MAX_EXACT_EXPONENT):
            return base**exponent
        try:
            return self.sympy.Float(float(base) ** float(exponent), 30)
        except (OverflowError, ZeroDivisionError, TypeError, ValueError):
            raise self.refuse("it holds a number that is too large") from None

    def refuse(self, what: str, hint: str = "") -> Exception:
        return fail("OCO721", f"the formula `{self.text}` is not usable: {what}", self.span, hint)


@lru_cache(maxsize=512)
def _extreme(kind: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Least or greatest of some expressions: SymPy takes ten milliseconds to see that neither is always the other's."""
    return kind(*args, evaluate=not _cross(args))


def _cross(args: tuple[Any, ...]) -> bool:
    """True where numbers show that each of two expressions is somewhere above the other, so that nothing can be left out."""
    import sympy

    symbols = frozenset[Any]().union(*(a.free_symbols for a in args))
    if len(args) != 2 or any(isinstance(a, (sympy.Min, sympy.Max)) for a in args):
        return False
    if not all(s.is_positive and s.is_integer is None for s in symbols):
        return False
    above, below = (evaluated(a, {s.name: PROBES for s in symbols}) for a in args)
    room = PROBED_TO * (np.abs(above) + np.abs(below))
    with np.errstate(invalid="ignore"):  # both may be infinite
        return bool((above - below > room).any() and (below - above > room).any())


def exact(number: int | float) -> Any:
    """A short decimal as the fraction that it is meant to be; any other number as it is."""
    import sympy

    return sympy.Rational(str(number)) if len(repr(number)) <= 12 else sympy.Float(number, 30)


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
    done: dict[str, Any] = {}

    def formula(name: str, pending: tuple[str, ...]) -> Any:
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
    import sympy

    word = str(default.formula if given is None else given).strip('"')
    if word not in words:
        raise fail("OCO721", f"the setting {name} is one of {', '.join(words)}, not `{word}`", span)
    return Setting(name, sympy.Symbol(word), None, default.why if given is None else "given", given is not None)


class _Names(Mapping[str, Any]):
    """The names a formula may use: symbols and facts, then other settings, resolved when asked for."""

    def __init__(self, symbols: Symbols, settings: Mapping[str, Any], resolve: Callable[[str], Any]) -> None:
        self.symbols, self.settings, self.resolve = symbols, settings, resolve

    def __getitem__(self, key: str) -> Any:
        return self.resolve(key) if key in self.settings else self.symbols[key]

    def __contains__(self, key: object) -> bool:
        return key in self.settings or key in self.symbols

    def __iter__(self) -> Any:
        return iter([*self.symbols, *self.settings])

    def __len__(self) -> int:
        return len(self.symbols) + len(self.settings)


def _setting(name: str, formula: Any, why: str, given: bool, horizon: int | None) -> Setting:
    try:
        return Setting(name, formula, _number_of(formula, horizon), why, given)
    except ValueError:  # SymPy's, of complex numbers
        raise fail("OCO722", f"the setting {name} = `{formula}` is not a real number at the horizon") from None


@lru_cache(maxsize=4096)
def _number_of(formula: Any, horizon: int | None) -> float | None:
    """Value of a formula at the horizon; None where it is no real number, or varies."""
    import sympy

    if horizon is not None and "T" in symbols_of(formula):
        formula = formula.subs(sympy.Symbol("T", positive=True), _rounds(formula, horizon))
    return float(formula.evalf()) if formula.is_number and formula.is_real else None


def _rounds(formula: Any, horizon: int) -> Any:
    """Horizon as a number of SymPy, a float under roots beyond the square root: products of such roots of integers take minutes."""
    import sympy

    exponents = (p.exp for p in formula.atoms(sympy.Pow))
    return sympy.Float(horizon, 30) if any(e.is_Rational and e.q > 2 for e in exponents) else horizon


def schedule_symbols() -> dict[str, Any]:
    """t, T and m, all positive."""
    import sympy

    return {name: sympy.Symbol(name, positive=True) for name in SCHEDULE_SYMBOLS}


def schedule(formula: Any, rounds: int, horizon: int, m: int = 1) -> Floats:
    """The values of a formula in t, T and m at t = 1..rounds, with T = horizon; shape (rounds,). After round T it keeps T's."""
    return along(formula, Rounds.every(rounds), horizon, m).last


def along(formula: Any, rounds: Rounds, horizon: int, m: int = 1) -> Schedule:
    """The values of a formula in t, T and m over rounds that may be in stretches, with T = horizon. After round T it keeps T's.

    Raises OCO722 where one is not finite.
    """
    t: Any = rounds.t
    t = t if rounds.n <= horizon else np.minimum(t, float(horizon))
    with np.errstate(all="ignore"):
        outcome = value_at(formula, {"t": t, "T": np.float64(horizon), "m": np.float64(m)})
    result = outcome if isinstance(outcome, Schedule) else rounds.constant(float(outcome))
    if not np.isfinite(result.last).all():
        raise _not_finite(formula)
    return result


def _first(formula: Any, horizon: int) -> float:
    """Value of a formula in t, T and m at t = m = 1, with T = horizon."""
    with np.errstate(all="ignore"):
        result = float(value_at(formula, {"t": np.float64(1), "T": np.float64(horizon), "m": np.float64(1)}))
    if not math.isfinite(result):
        raise _not_finite(formula)
    return result


def _not_finite(formula: Any) -> OcoError:
    return fail("OCO722", f"the setting `{formula}` is not a finite number in every round")


def number(settings: Mapping[str, Setting], name: str, horizon: int) -> float:
    """The value of a setting that does not depend on the round."""
    if name not in settings:
        raise InternalError(f"no setting {name}")
    return settings[name].number(horizon)


def count(settings: Mapping[str, Setting], name: str, horizon: int) -> int:
    """A setting that says how many there are of something: an integer, at least 1."""
    return max(1, round(number(settings, name, horizon)))
