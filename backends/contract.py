"""Contract of a program as a learner: the ranges of its inputs, its start, and its guarantee."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any

import numpy as np

from oco.backends.base import Compiled
from oco.backends.monitor import Constants
from oco.compiler.certificates.certificate import CertificateTerms
from oco.compiler.certificates.watched_conditions import WatchedConditions
from oco.compiler.domains import Domain
from oco.compiler.evidence.watched_streams import AlertTerms
from oco.compiler.theory.guarantees import FROM_CENTRE
from oco.dsl.labels import Axes
from oco.dsl.records import dataclass

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Range:
    """Range of an input: `lower <= value <= upper` entrywise. `distribution` is the distribution in the model's words,
    if it has one.
    """

    lower: Array | float = -np.inf
    upper: Array | float = np.inf
    distribution: str = ""


@dataclass(frozen=True, eq=False)
class Contract:
    """Promises of a plan, in words and numbers, for those who run or print its program.

    text        the model in the language
    algorithm   its name; `cite` the paper, `guarantee` the theorem's guarantee, a line each
    horizon     T, or None
    ranges      by feedback field; a field without one is unbounded
    start       the first decision, by decision
    domains     the set that each decision lies in, by decision
    equalities  labels of the equality constraints (those of the inequalities are the program's)
    distributions  of the algorithm's own random draws: "uniform" on [0, 1) or "normal", by field of `Program.draws`
    recipe      JSON values from which the same plan is made again: kept in saved states
    duals       factors that convert queues and multipliers to the model's units, by field of the state; the state
                itself has no units
    constants   bounds that the guarantee rests on, which the learner compares with the data it sees
    from_centre True where the guarantee is for the plan's own first decision alone
    axes        names of the entries of decisions and inputs, where the model has an index for them
    terms       of certificates, where the program's state keeps their sums
    watched     conditions of the guarantee, and how the program's state tells of them; None where there are none
    alert       of learners that watch what the model states of its streams, and go over to another rule; None for others
    delay       rounds by which feedback comes later, at most
    restored    function of a state and a backend that makes a learner in another process, where one is known
    anytime     True where the guarantee needs no horizon: learners go on after it with the settings of each round
    continued   function of a backend that gives the program and contract of the epochs after the horizon, where there are some
    """

    text: str
    algorithm: str
    horizon: int | None
    start: Mapping[str, Array]
    domains: Mapping[str, Domain] = field(default_factory=dict)
    cite: str = ""
    guarantee: tuple[str, ...] = ()
    ranges: Mapping[str, Range] = field(default_factory=dict)
    equalities: tuple[str, ...] = ()
    distributions: Mapping[str, str] = field(default_factory=dict)
    recipe: Mapping[str, Any] = field(default_factory=dict)
    duals: Mapping[str, Array] = field(default_factory=dict)
    constants: Constants = field(default_factory=Constants)
    from_centre: bool = False
    axes: Mapping[str, Axes] = field(default_factory=dict)
    terms: CertificateTerms | None = None
    watched: WatchedConditions | None = None
    alert: AlertTerms | None = None
    delay: int = 0
    restored: Callable[[Mapping[str, Any], str], Any] | None = field(default=None, compare=False)
    anytime: bool = False
    continued: Callable[[str], tuple[Compiled, Contract]] | None = field(default=None, compare=False)

    @property
    def of_one_turn(self) -> Contract:
        """Contract of one of the learners in turn under delayed feedback, which plays every (d + 1)th round."""
        horizon = None if self.horizon is None else -(-self.horizon // (self.delay + 1))
        return replace(self, horizon=horizon, delay=0) if self.delay else self

    def about_start(self, first: Mapping[str, Array]) -> str:
        """Consequence of these first decisions, by field, for the guarantee; "" where there is none."""
        elsewhere = any(not np.array_equal(x, self.start[name]) for name, x in first.items())
        return f"{FROM_CENTRE}, and this run begins elsewhere" if self.from_centre and elsewhere else ""
