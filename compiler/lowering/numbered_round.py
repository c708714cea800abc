"""Number of a round as an update rule sees it: of the run, of an epoch, or of the learners that take turns."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Self

from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.compiler.lowering.trace_spec import Epoch, TraceSpec, Turn
from oco.dsl.diagnostics import InternalError


class NumberedRound:
    """Round of a number, `round_`, over a tracer; None before the first one.

    round  number that expressions have, of all rounds
    own    number among those of this learner, where others take turns with it and it learns alone; settings follow that
    """

    def __init__(self, tracer: Tracer, spec: TraceSpec, round_: Value | None) -> None:
        self.tracer = tracer
        self.spec = spec
        self.round = round_
        self.own: Value | None = None
        self.epoch: Epoch | None = None
        self.turn: Turn | None = None

    def in_epoch(self, length: Value, first: int) -> Self:
        """View of the round as one of an epoch."""
        result = copy(self)
        result.epoch = Epoch(length, first)
        result.__dict__.pop("t", None)
        return result

    def numbered(self, number: Value) -> Self:
        """View of the round of a learner that takes turns with others and learns alone, with its number among those of all."""
        result = copy(self)
        result.own, result.round = self.round, number
        result.__dict__.pop("t", None)
        return result

    def in_turn(self, count: int, number: Value, observed: Value) -> Self:
        """View of the round as one of `count` learners in turn that learn together: with the number of the round among those of all, of
        which so many are observed.
        """
        result = copy(self)
        result.spec = replace(self.spec, horizon=self.spec.canonical.horizon)
        result.turn = Turn(count, number, self.round, observed)
        result.round = None if self.round is None else number
        result.__dict__.pop("t", None)
        return result

    @property
    def counted(self) -> Value:
        """Number of the round that settings follow."""
        now = self.round if self.own is None else self.own
        if now is None:
            raise InternalError("no round has been played yet")
        return now

    @property
    def round_of_turn(self) -> Value:
        """Number of the round among those of its learner."""
        own = None if self.turn is None else self.turn.own
        return self.counted if own is None else own

    @property
    def ahead(self) -> int:
        """Rounds from the one that came to the next that is decided with what it taught."""
        return 1 if self.turn is None else self.turn.count

    @property
    def begun(self) -> Value:
        """True where a round of this learner is over."""
        own = None if self.turn is None else self.turn.own
        return self.played > 1.5 if own is None else own > 1

    @property
    def horizon(self) -> Value | float:
        """T: of the epoch, or of the run."""
        return float(self.spec.horizon or 1) if self.epoch is None else self.epoch.length

    @cached_property
    def t(self) -> Value:
        """Round as a float, at most T where the settings are made for T rounds."""
        with self.tracer.outermost():
            if self.epoch is not None:
                return self.tracer.name("t", self.played)
            horizon = None if self.spec.anytime else self.spec.horizon
            now = self.counted if horizon is None else self.tracer.minimum(self.counted, horizon)
            return self.tracer.name("t", self.tracer.to_float(now))

    @property
    def played(self) -> Value:
        """The number of rounds up to this one, as a float; unlike `t` it goes on after round T. Learners in turn count those that all of
        them observed, and this.
        """
        if self.turn is not None:
            return self.tracer.to_float(self.turn.observed) + 1.0
        now = self.tracer.to_float(self.counted)
        return now if self.epoch is None else now - (self.epoch.length - float(self.epoch.first))
