"""Kinds of settings: what a user asks for, as words or formulas, and the policy of choosing that follows."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real

from oco.compiler.selection.choice import Policy
from oco.compiler.theory.objective import checked_tradeoff
from oco.dsl.diagnostics import fail

SettingsMode = str | Mapping[str, "str | float"]
LEAST, PLAIN = "optimal", "unit-free"
MODES = ("paper", LEAST, PLAIN, "tuned")
"""Kinds of settings: the paper's; on the problem without units with the constants of the least guarantee, or with the paper's; tuned."""


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
