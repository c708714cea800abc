"""Kinds of settings: the paper's, those of the problem without units, those of the least guarantee, and tuned ones."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from numbers import Real

from oco.dsl.diagnostics import fail

SettingsMode = str | Mapping[str, "str | float"]
"""A kind of settings by its name, or formulas by the names of settings."""


class Mode(StrEnum):
    """Kind of the settings that are not given; a member is the word that a user writes."""

    PAPER = "paper"
    """Settings of the paper, in the user's units."""
    LEAST = "optimal"
    """Settings of the problem without units, with the free constants that make the guarantee least."""
    UNIT_FREE = "unit-free"
    """Settings of the problem without units, with the paper's constants."""
    TUNED = "tuned"
    """Settings that a search on pilot rounds chooses, beginning at those of `LEAST`."""


def mode_of(settings: SettingsMode) -> tuple[Mode, dict[str, str | float]]:
    """Kind of settings, and formulas by name. Raises OCO709 for an unknown kind, OCO721 for what is no formula."""
    if not isinstance(settings, str):
        for name, value in settings.items():
            if isinstance(value, bool) or not isinstance(value, str | Real):
                message = f"the setting {name} is {value!r:.60}: a number or a formula is wanted"
                raise fail("OCO721", message, None, 'such as {"alpha": "2 * sqrt(t)"}')
        return Mode.PAPER, dict(settings)
    if settings in tuple(Mode):
        return Mode(settings), {}
    hint = f"there are {', '.join(Mode)}, or formulas by name"
    raise fail("OCO709", f'there are no settings "{settings}"', None, hint)
