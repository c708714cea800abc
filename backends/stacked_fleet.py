"""Fleet whose learners' states lie side by side in arrays, so that a round takes many learners at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from oco.backends.base import Compiled
from oco.backends.contract import Contract
from oco.backends.fleet import Array, Fleet, FleetFeedback
from oco.backends.learner import Learner
from oco.backends.past_horizon import epochs_after
from oco.backends.python.intake import NotFinite
from oco.backends.random_arrays import Generators
from oco.compiler.ir.verifier import KINDS
from oco.compiler.lowering.restarts import EPOCH
from oco.dsl.diagnostics import OcoError, fail


class StackedFleet(Fleet):
    """Fleet of learners that share nothing. `alone` is the class of a single one of its learners, which words its errors."""

    writes_all = True
    _left_out = 0
    alone: type[Learner] = Learner

    def __init__(self, compiled: Compiled, contract: Contract, size: int, **options: Any) -> None:
        self._last: tuple[dict[str, Array], dict[str, Array]] | None = None
        self._drawn: tuple[int, list[Array]] | None = None
        self._lay_out(compiled, contract, size)
        super().__init__(compiled, contract, size, **options)

    # The arrays, which backends lay out.

    def _lay_out(self, compiled: Compiled, contract: Contract, size: int) -> None:
        """Prepare the program and the arrays of so many learners."""
        raise NotImplementedError

    def _fill(self, values: Mapping[str, Array]) -> None:
        """Set the states: values by field with the learner first, one for all or one for each."""
        raise NotImplementedError

    def _decided_with(self, draws: Sequence[Array]) -> list[Array]:
        """Decisions of all learners with these random arrays, in the model's order."""
        raise NotImplementedError

    def _played(self, arrays: Sequence[Array], given: Sequence[Array]) -> tuple[Array, Array, Array]:
        """Losses (n,), constraints (n, N) and equalities (n, M) of this round, after which all learners are in the next one.

        arrays  inputs of the program's kinds, contiguous; `given` are those of the caller, for errors about them
        """
        raise NotImplementedError

    # What all of them do.

    def _make(self, starts: Mapping[str, Array], seeds: Sequence[Any]) -> None:
        """First states: a single one, if all learners start at the same decisions."""
        count = max((len(rows) for rows in starts.values()), default=1)
        made = [
            self.alone(self.compiled, self.contract, start=start or None).values
            for start in self._first_of(starts, count)
        ]
        self._fill({f.name: np.stack([s[f.name] for s in made]) for f in self.compiled.program.state})
        self._generators = Generators(seeds)
        assert self.compiled.program.measure is not None
        self._counts = [int(np.prod(r.type.shape)) for r in self.compiled.program.measure.body.results[1:]]

    def _pass_horizon(self) -> None:
        """Go over to the epochs after the horizon: the arrays of their program, and its last round played there."""
        if self._last is None:
            return
        (values, streams), self._last = self._last, None
        length = self.round - 1
        if (after := epochs_after(self.compiled, self.contract)) is not None:
            self.compiled, self.contract = after
            self._lay_out(*after, self.size)
            self._fill({**values, EPOCH: np.full(self.size, float(length))})
            self._stepped(streams)

    def _begin_with(self, compiled: Compiled, contract: Contract) -> None:
        self._lay_out(compiled, contract, self.size)
        super()._begin_with(compiled, contract)

    def _unprepared(self) -> list[Array]:
        return [*self._kept().values()]

    def _random_generators(self) -> list[np.random.Generator]:
        return self._generators.each

    def _drawn_now(self) -> list[Array] | None:
        return None if self._drawn is None or self._drawn[0] != self.round else self._drawn[1]

    def _set_drawn(self, drawn: list[Array] | None) -> None:
        self._drawn = None if drawn is None else (self.round, drawn)

    def _decisions(self) -> list[Array]:
        return self._decided_with(self._draws())

    def _second_points(self) -> list[Array]:
        return self._decided_with([-a for a in self._draws()])

    def _follow(self, other: Fleet, newest: Fleet) -> None:
        """Take nothing: what rounds leave is known once they are prepared, and stacked fleets are of programs that prepare none."""

    def _leave_out(self) -> None:
        self._drawn = None
        self._left_out += 1

    def _draws(self) -> list[Array]:
        """Algorithm's own random arrays of this round, drawn once, by each learner from its own seed."""
        if not self.compiled.program.draws:
            return []
        if self._drawn is None or self._drawn[0] != self.round:
            with self._generators.undone_on_failure():
                self._drawn = self.round, self._drawn_anew()
        return self._drawn[1]

    def _drawn_anew(self) -> list[Array]:
        fields, distributions = self.compiled.program.draws, self.contract.distributions
        drawn = [np.empty((self.size, *f.type.shape)) for f in fields]
        for k, random in enumerate(self._generators.each):
            for f, array in zip(fields, drawn):
                normal = distributions.get(f.name, "uniform") == "normal"
                array[k] = random.normal(size=f.type.shape) if normal else random.random(f.type.shape)
        return drawn

    def _stepped(self, streams: Mapping[str, Array]) -> FleetFeedback:
        values = [streams[name] for name in self._inputs]
        kinds = [KINDS[f.type.dtype] for f in self.compiled.program.revealed]
        arrays: list[Array] = [np.ascontiguousarray(v, dtype=kind) for v, kind in zip(values, kinds)]
        if any(a.dtype.kind == "i" and v.dtype.kind == "f" and (a != v).any() for a, v in zip(arrays, values)):
            self._explain(values)
        now, last = self.round, None
        if now == self.contract.horizon and self.contract.continued is not None:
            last = self._kept(), {n: np.array(a) for n, a in zip(self._inputs, arrays)}
        loss, g, h = self._played(arrays, values)
        self._last = last
        return FleetFeedback(now, loss, g, h)

    def _explain(self, values: Sequence[Array]) -> None:
        """Raise the error of a single learner for the first wrong row."""
        probe = self.alone(self.compiled, self.contract)
        for k in range(self.size):
            self._checked(k, probe, {name: v[k] for name, v in zip(self._inputs, values)})

    def _not_finite(self, block: range, values: Sequence[Array] | None = None) -> OcoError:
        """Error that names the learner of a block whose decision, or state after the round of `values`, is not finite."""
        who = next((who for k in block if (who := self._overflows(k, values))), None)
        if who is None:  # alone its numbers are rounded otherwise, and just finite
            who = f"the numbers of learner {block[0]}, or of one up to {block[-1]}, would not be finite"
        return fail(
            "OCO859",
            f"in round {self.round} {who}; all learners are as before",
            hint="give settings of another size where they are given by hand, or the streams in other units",
        )

    def _overflows(self, k: int, values: Sequence[Array] | None) -> str | None:
        """Description of the value of a learner that would not be finite if it played this round alone; None where all
        are.
        """
        state, draws = {n: v[k] for n, v in self.values.items()}, [d[k] for d in self._draws()]
        what = "decision"
        try:
            self.compiled.decide(*state.values(), *draws)
            what = "state after it"
            if values is not None:
                data = self.compiled.program.data(state, [v[k] for v in values])
                self.compiled.update(*state.values(), *data, *draws)
        except NotFinite as error:
            return f"the {what} of learner {k} would not be finite: {error.name} overflows"
        return None
