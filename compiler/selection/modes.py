"""Kinds of settings: what a user asks for, as words or formulas, in which units, and the policy of choosing that follows."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real

from oco.compiler.theory.objective import checked_tradeoff
from oco.compiler.theory.resolve import GivenSettings
from oco.dsl.diagnostics import fail
from oco.dsl.records import dataclass
from oco.dsl.settings import UNIT_WORDS, UNITS, WORD_SETTINGS
from oco.dsl.source import Span

SettingsMode = str | Mapping[str, "str | float"]
LEAST, PLAIN = "optimal", "unit-free"
MODES = ("paper", LEAST, PLAIN, "tuned")
"""Kinds of settings: the paper's; on the problem without units with the constants of the least guarantee, or with the paper's; tuned."""


@dataclass(frozen=True)
class Policy:
    """Policy for finding settings.

    optimal  on the problem without units, with the free constants at their best; else the paper's, in the user's units
    weight   of the violations against the regret, where the two are added
    plain    on the problem without units with the paper's constants, where that is `optimal`
    """

    optimal: bool = False
    weight: float = 1.0
    plain: bool = False

    @property
    def searches(self) -> bool:
        """True where free constants are searched."""
        return self.optimal and not self.plain


PAPER = Policy()


def policy_of(mode: str, tradeoff: float) -> Policy:
    """Policy of choosing for a kind of settings and a weight of violation against regret."""
    return Policy(mode != "paper", checked_tradeoff(tradeoff), mode == PLAIN)


def mode_of(settings: SettingsMode) -> tuple[str, dict[str, str | float]]:
    """Kind of settings, and formulas by name. Raises OCO709 for an unknown kind, OCO721 for what is no formula."""
    if not isinstance(settings, str):
        for name, value in settings.items():
            if isinstance(value, bool) or not isinstance(value, str | Real):
                message = f"the setting {name} is {value!r:.60}: a number or a formula is wanted"
                raise fail("OCO721", message, None, 'such as {"alpha": "2 * sqrt(t)"}')
        return "paper", dict(settings)
    if settings in MODES:
        return settings, {}
    hint = f"there are {', '.join(MODES)}, or formulas by name"
    raise fail("OCO709", f'there are no settings "{settings}"', None, hint)


def numbers_given(given: GivenSettings) -> bool:
    """True if some setting that is not a word is given."""
    return any(n not in WORD_SETTINGS and n != UNITS for n in given)


def unit_word(given: GivenSettings, span: Span | None) -> str:
    """The units of given settings: the user's, or those of the problem without units. Raises OCO721."""
    word = str(given.get(UNITS, UNIT_WORDS[0])).strip('"')
    if word not in UNIT_WORDS:
        raise fail("OCO721", f"the setting {UNITS} is one of {', '.join(UNIT_WORDS)}, not `{word}`", span)
    return word
