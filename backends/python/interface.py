"""Names that an emitted module defines above its learner, with the values of an empty model."""

from __future__ import annotations

from typing import Any

from oco.backends.python.streams import Stream

MODEL = ""
MODEL_HASH = ""
PLAN_HASH = ""
DELAY = 0
SHARED: tuple[str, ...] = ()
HANDED: dict[str, str] = {}
IN_ORDER = False
"""True where rounds are observed in their order."""
CORRECTED: tuple[str, ...] = ()
NUMBERS = False
"""True where the state has the number of the round among those of all learners in turn."""
NUMBERED = False
"""True where loss and constraints are about that number."""
HORIZON: int | None = None
AFTER_HORIZON = ""
STATE: tuple[str, ...] = ("round",)
START: dict[str, Any] = {}
STREAMS: dict[str, Stream] = {}
NAMES: dict[str, tuple[tuple[str, ...] | None, ...]] = {}
DRAWS: dict[str, tuple[tuple[int, ...], str]] = {}
CONSTRAINTS: tuple[str, ...] = ()
EQUALITIES: tuple[str, ...] = ()
LABELS = False
"""True where there are constraints or equalities."""
LIPSCHITZ: tuple[tuple[str, float], ...] = ()
slopes: Any = None
prepare: Any = None
certificate: Any = None
CERTIFIED: tuple[str, ...] = ()
"""Names of the results of `certificate`."""
STATED: tuple[str, ...] = ()
ON_ALARM = ""
CONTEXT: tuple[str, ...] = ()
PREVIOUS: dict[str, str] = {}


def init(*start: Any) -> Any:
    """First state from the first decisions."""
    return 1


def decide(*state_and_draws: Any) -> Any:
    """Decision of this round, from the state and the random draws; a tuple of them if there are several."""
    return ()


def update(*state_and_round: Any) -> Any:
    """State after this round, from the state, the round's data, and the random draws."""
    return state_and_round[0] + 1


def measure(*round_and_decision: Any) -> Any:
    """Loss, constraint values and equality values, from the round, the decisions and the round's data."""
    return 0.0, (), ()
