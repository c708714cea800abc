"""Going on after the horizon: the next epochs of the doubling form, with the sum of the epochs' bounds as guarantee.

A theorem that holds at every round goes on by itself, with the settings of each round. One whose settings are made for T rounds is
begun anew after them, for 2 T, 4 T, ... rounds (`restarts.py`), with the settings' formulas at the length of each epoch.
"""

from __future__ import annotations

from dataclasses import replace

from oco.compiler.lowering.restarts import in_epochs, needs_horizon
from oco.compiler.selection.resolve_again import promised_again
from oco.compiler.selection.verdicts import Verdict
from oco.compiler.theory.theorems import Restart, Situation


def is_anytime(v: Verdict) -> bool:
    """True where the theorem and the settings of a verdict know no horizon."""
    return v.theorem is not None and not _uses_horizon(v)


def _uses_horizon(v: Verdict) -> bool:
    assert v.theorem is not None
    return needs_horizon(v.theorem) or any("T" in x.symbols for x in v.settings.values())


def continues(s: Situation, v: Verdict) -> bool:
    """True where a method that is made for a horizon can be begun anew after it."""
    known = s.horizon is not None and v.theorem is not None and v.theorem.restart is not Restart.NEVER
    return known and _uses_horizon(v)


def continued(s: Situation, v: Verdict, weight: float) -> tuple[Situation, Verdict]:
    """Situation and verdict of the method in epochs of T, 2 T, ... rounds, where `continues`."""
    assert v.theorem is not None and s.horizon is not None
    following = replace(s, canonical=replace(s.canonical, horizon=None), horizon=None)
    verdict = replace(v, theorem=in_epochs(v.theorem, s.horizon), best=None)
    return following, promised_again(following, verdict, weight) if v.guarantee is not None else verdict
