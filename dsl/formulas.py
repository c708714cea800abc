"""Check of `using ALGORITHM with SETTING = FORMULA`: the algorithm, its settings, and the names in a formula."""

from __future__ import annotations

import re
from collections.abc import Sequence

from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.fact_keys import catalogue
from oco.dsl.settings import FORMULA_FUNCTIONS, FORMULA_SYMBOLS, SETTINGS, UNIT_WORDS, UNITS, WORD_SETTINGS
from oco.dsl.source import Span
from oco.dsl.statements import Using
from oco.dsl.suggest import did_you_mean, listed
from oco.dsl.text import syntax
from oco.dsl.text.parser import parse_formula


def check_using(using: Using, params: Sequence[str], labels: tuple[str, ...]) -> None:
    """Check a `using` line. Raises OcoError for an unknown algorithm, a setting it does not have, or a formula that
    cannot be read.
    """
    if using.algorithm is not None and using.algorithm not in SETTINGS:
        hint = did_you_mean(using.algorithm, SETTINGS, "`oco algorithms` lists them; without the name one is chosen")
        raise fail("OCO701", f"there is no algorithm `{using.algorithm}`", _part(using.span, using.algorithm), hint)
    every = list(dict.fromkeys(s for names in SETTINGS.values() for s in names))
    known = every if using.algorithm is None else list(SETTINGS[using.algorithm])
    for name, text in using.settings:
        if name not in (*known, UNITS):
            owner = using.algorithm or "no algorithm"
            message = (
                f"`{owner}` has no setting `{name}`" if using.algorithm else f"no algorithm has a setting `{name}`"
            )
            raise fail(
                "OCO702",
                message,
                _part(using.span, name),
                did_you_mean(name, known, f"its settings are {', '.join(known)}"),
            )
        if name in (*WORD_SETTINGS, UNITS):
            _check_word(name, text, using.span)
        else:
            _check_formula(text, [*params, *known], labels, using.span)


def _check_word(name: str, text: str, span: Span | None) -> None:
    words = UNIT_WORDS if name == UNITS else WORD_SETTINGS[name]
    if text.strip('"') not in words:
        hint = did_you_mean(text.strip('"'), words)
        raise fail("OCO721", f"`{name}` is one of {listed(words, 'or')}; `{text}` is not", _part(span, text), hint)


def _check_formula(text: str, names: Sequence[str], labels: tuple[str, ...], span: Span | None) -> None:
    at = _part(span, text)
    try:
        formula = parse_formula(text)
    except OcoError as error:
        raise fail("OCO721", f"the formula `{text}` cannot be read: {error.message}", at, error.hint) from None
    known = dict.fromkeys([*FORMULA_SYMBOLS, *names, *catalogue(labels)])
    for node in syntax.walk(formula):
        if isinstance(node, syntax.Identifier) and node.name not in known:
            hint = did_you_mean(
                node.name, known, "formulas use t (the round), T (the horizon), params, other settings, and facts"
            )
            raise fail("OCO721", f"`{node.name}` means nothing in a formula", _part(at, node.name), hint)
        if isinstance(node, syntax.Call) and not node.operator and node.name not in FORMULA_FUNCTIONS:
            hint = did_you_mean(node.name, FORMULA_FUNCTIONS, f"formulas use {', '.join(FORMULA_FUNCTIONS)}")
            raise fail("OCO721", f"there is no function `{node.name}` in formulas", _part(at, node.name), hint)
        if isinstance(node, (syntax.Subscript, syntax.ArrayLiteral, syntax.ValueSet, syntax.QuotedString)):
            raise fail("OCO721", f"the formula `{text}` is not a number", at)


def _part(span: Span | None, text: str) -> Span | None:
    """Span of `text` within a span, as a whole word; the span itself where it does not occur."""
    if span is None:
        return None
    match = re.search(rf"(?<![\w.-]){re.escape(text)}(?![\w-])", span.text)
    return span if match is None else Span(span.source, span.start + match.start(), span.start + match.end())
