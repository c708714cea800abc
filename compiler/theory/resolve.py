"""A theorem's settings as formulas: its own defaults, what the user gives, and the constants that it leaves free."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from oco.compiler.ir.symbolic import Formula
from oco.compiler.ir.symbolic_form import exact
from oco.compiler.theory.settings import Default, Setting, resolve_settings, schedule_symbols, word_setting
from oco.compiler.theory.theorems import Situation, Theorem
from oco.dsl.settings import UNITS, WORD_SETTINGS
from oco.dsl.source import Span

GivenSettings = Mapping[str, str | float]
FreeNumbers = Mapping[str, float | str]
"""Numbers of free constants by setting; or names, to leave them open."""


def theorem_settings(
    theorem: Theorem,
    s: Situation,
    given: GivenSettings,
    span: Span | None = None,
    free: FreeNumbers | None = None,
    open_names: Mapping[str, Formula] | None = None,
) -> dict[str, Setting]:
    """The theorem's settings with the given ones in their place, and its free constants as `free` says (1 or the paper's otherwise).

    open_names  symbols for names in `free`
    """
    numbers, words = defaults(theorem, s, given, span)
    if free:
        numbers |= {n: d for n, d in theorem.best.items() if n in numbers and n not in given}
    for constant in theorem.free:
        number = (free or {}).get(constant.name)
        if number is not None and constant.name in numbers and constant.name not in given:
            default = numbers[constant.name]
            message = default.why if constant.kind == "value" else f"{default.why}, times {number}"
            numbers[constant.name] = Default(constant.formula(default, number), message)
    formulas = {k: v for k, v in given.items() if k not in WORD_SETTINGS and k != UNITS}
    return resolve_settings(numbers, formulas, _Symbols(s, open_names or {}), s.horizon, span) | words


def formulas(theorem: Theorem, s: Situation, given: GivenSettings, numbers: Mapping[str, float]) -> dict[str, str]:
    """The free constants at these numbers as settings that may be given, with those that hang on them."""
    result, _ = defaults(theorem, s, given)
    chosen = {f.name: str(f.formula(result[f.name], numbers[f.name])) for f in theorem.free if f.name in numbers}
    best = {n: str(d.formula) for n, d in theorem.best.items() if n in result and n not in given}
    return chosen | (best if chosen else {})


def all_formulas(theorem: Theorem, s: Situation, given: GivenSettings, numbers: Mapping[str, float]) -> dict[str, str]:
    """Every setting as one that may be given: the words, the free constants at these numbers, and the theorem's own of the others."""
    result, words = defaults(theorem, s, given)
    own = {n: str(w.formula) for n, w in words.items()} | {n: str(d.formula) for n, d in result.items()}
    return own | formulas(theorem, s, given, numbers) | {n: str(x) for n, x in given.items()}


def defaults(
    theorem: Theorem, s: Situation, given: GivenSettings, span: Span | None = None
) -> tuple[dict[str, Default], dict[str, Setting]]:
    """Defaults of the theorem for each setting that is a number, and the settings that are words."""
    results = theorem.settings(s)
    words = {
        n: word_setting(n, WORD_SETTINGS[n], d, given.get(n), span) for n, d in results.items() if n in WORD_SETTINGS
    }
    results = {**results, **theorem.settings_of_words(s, {n: str(w.formula) for n, w in words.items()})}
    return {n: d for n, d in results.items() if n not in WORD_SETTINGS}, words


class _Symbols(Mapping[str, Formula]):
    """Symbols of a formula of settings: t, T, m, d, params that are numbers, and facts that are numbers, worked out when asked for."""

    def __init__(self, s: Situation, more: Mapping[str, Formula]) -> None:
        numbers = {p.name: p.data.item() for p in s.canonical.model.params if p.data is not None and p.data.ndim == 0}
        self.facts = s
        self.known = {name: exact(v) for name, v in ({"d": s.size} | numbers).items()} | schedule_symbols() | dict(more)

    def __getitem__(self, key: str) -> Formula:
        if key in self.known:
            return self.known[key]
        value = self.facts.number(key)
        if value is None:
            raise KeyError(key)
        return exact(value)

    def __iter__(self) -> Iterator[str]:
        return iter([*self.known, *self.facts.facts])

    def __len__(self) -> int:
        return sum(1 for _ in self)
