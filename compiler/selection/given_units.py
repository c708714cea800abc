"""Units of the settings that are given."""

from __future__ import annotations

from oco.compiler.theory.resolve import GivenSettings
from oco.dsl.diagnostics import fail
from oco.dsl.settings import UNIT_WORDS, UNITS, WORD_SETTINGS
from oco.dsl.source import Span


def numbers_given(given: GivenSettings) -> bool:
    """True if some setting that is not a word is given."""
    return any(n not in WORD_SETTINGS and n != UNITS for n in given)


def unit_word(given: GivenSettings, span: Span | None) -> str:
    """The units of given settings: the user's, or those of the problem without units. Raises OCO721."""
    word = str(given.get(UNITS, UNIT_WORDS[0])).strip('"')
    if word not in UNIT_WORDS:
        raise fail("OCO721", f"the setting {UNITS} is one of {', '.join(UNIT_WORDS)}, not `{word}`", span)
    return word
