"""Rounds whose data wait in the state until they are summed together, so that a round costs one row of an array and not all the sums."""

from __future__ import annotations

import math
from collections.abc import Mapping

from oco.compiler.certificates.sums import CertificateSums, joined, point_of
from oco.compiler.ir.batching import LaneMachine
from oco.compiler.ir.lanes import LaneValue
from oco.compiler.ir.program import DType, Field, Function, Type
from oco.compiler.ir.rewrite import read_by
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.dsl.records import dataclass

PENDING = "pending_rounds"
SYMBOLS = {
    PENDING: "decisions and data of the rounds that are not summed yet, a row each, from the round after the last sum"
}
MOST_PENDING = 64
"""Rounds that wait: of so many the sums cost a round no more than its row does."""
MOST_NUMBERS = 2048
"""Numbers of all rows: each round of a learner copies them."""
FEWEST = 8
"""Rounds from which on waiting is worth its row."""
FEWEST_OPERATIONS = 50
"""Operations of a round's terms from which on waiting is worth its row: those of an affine loss are 15, and cost less at once."""
NOW, DECIDED, OWN = "now", "decided", "own"


@dataclass(frozen=True, eq=False)
class PendingRounds:
    """Layout of the waiting rounds, and the terms of one round as a function of what its row holds.

    parts     names and types of what a row holds, in its order
    rounds    R, the number of rows
    function  terms of a round, by `names`, from `params`: its number, and all that a round has; what it does not read has no part
    """

    sums: CertificateSums
    parts: tuple[tuple[str, Type], ...]
    rounds: int
    function: Function
    params: tuple[str, ...]
    names: tuple[str, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """(R, entries of a row)."""
        return self.rounds, sum(_size(made) for _, made in self.parts)

    def row(self, x: Point, seen: Mapping[str, Value], own: Value | None) -> Value:
        """Row of a round: what its terms are functions of, as numbers."""
        t = self.sums.t
        given = {**seen, DECIDED: x.flat()}
        given[OWN] = t.zeros((len(self.sums.form.places),)) if own is None else own
        rows = [t.reshape(given[name], (_size(made),)) for name, made in self.parts]
        return joined(t, [r if r.dtype is DType.FLOAT else t.to_float(r) for r in rows])

    def summed(
        self, state: Mapping[str, Value], rows: Value, first: Value, meant: Value | None = None
    ) -> dict[str, Value]:
        """Sums with these rows (R, entries), of which `first` is the number of the first round; `meant`: those that count, None for all."""
        t, columns, start = self.sums.t, self.sums.t.transpose(rows), 0
        given = {NOW: LaneValue(t.iota(self.rounds) + first, True)}
        for name, made in self.parts:
            part = t.reshape(columns[start : start + _size(made)], (*made.shape, self.rounds))
            given[name] = LaneValue(part if made.dtype is DType.FLOAT else t.to_int(part), True)
            start += _size(made)
        nothing = [
            t.lift(0) if p.type.dtype is DType.INT else t.full(0.0, p.type.shape) for p in self.function.body.params
        ]
        args = [given.get(name, LaneValue(zero, False)) for name, zero in zip(self.params, nothing, strict=True)]
        known = {g.var.name: LaneValue(Value(t, g.var), False) for g in t.constants}
        machine = LaneMachine(t, self.rounds, {f.name: f for f in t.functions}, None, known)
        results = machine.block(self.function.body, args, known)
        terms = {name: machine.lanes.full(v) for name, v in zip(self.names, results, strict=True)}
        return self.sums.after_many(state, terms, meant)

    def after(self, state: Mapping[str, Value], row: Value) -> dict[str, Value]:
        """Fields after a round with this row: sums only where it was the last that fits."""
        t, R, now = self.sums.t, self.rounds, state["round"]
        place = (now - 1) % R
        names = tuple(self.sums.shapes)

        def add() -> list[Value]:
            rows = t.concat(state[PENDING][: R - 1], t.reshape(row, (1, self.shape[1])))
            result = self.summed(state, rows, now - (R - 1))
            return [result[name] for name in names]

        t.note("sums of the certificate, of many rounds at once")
        sums = t.if_(t.eq(place, R - 1), add, lambda: [state[name] for name in names])
        return {PENDING: t.put(state[PENDING], row, place), **dict(zip(names, sums))}

    def all_of(self, state: Mapping[str, Value]) -> dict[str, Value]:
        """Sums of all rounds, those that wait among them."""
        t, now = self.sums.t, state["round"]
        waiting = (now - 1) % self.rounds
        return self.summed(state, state[PENDING], now - waiting, t.iota(self.rounds) < waiting)


def pending_rounds(sums: CertificateSums, fields: tuple[Field, ...], multiplied: bool) -> PendingRounds | None:
    """Layout for the data `fields` of a round; None where each round had better be summed at once: long rows, short terms, curves.

    multiplied  True where the rule may have a multiplier of each constraint in each round
    """
    t, form = sums.t, sums.form
    if form.theta:
        return None
    own = [(OWN, Type(DType.FLOAT, (len(form.places),)))] if multiplied and form.each else []
    parts = [(DECIDED, Type(DType.FLOAT, (form.problem.size,))), *own, *((f.name, f.type) for f in fields)]
    names = list[str]()

    def terms(now: Value, *values: Value) -> list[Value]:
        given = {name: value for (name, _), value in zip(parts, values, strict=True)}
        p = Problem(t, sums.spec, {f.name: given[f.name] for f in fields}, now)
        result = sums.of_round(p, point_of(t, form.problem, given[DECIDED]), given.get(OWN))
        names[:] = result
        return list(result.values())

    doc = "Terms of the sums of a certificate in one round."
    function = t.function("certificate_terms", terms, [(NOW, Type(DType.INT)), *parts], doc)
    read = set(read_by(function.body))
    params = NOW, *(name for name, _ in parts)
    used = tuple(part for part, p in zip(parts, function.body.params[1:], strict=True) if p.name in read)
    rounds = min(MOST_PENDING, MOST_NUMBERS // max(sum(_size(made) for _, made in used), 1))
    # Of a table of kinks a round that is summed at once copies all.
    little = len(function.body.equations) < FEWEST_OPERATIONS and not form.kinks
    return None if rounds < FEWEST or little else PendingRounds(sums, used, rounds, function, params, tuple(names))


def _size(made: Type) -> int:
    return math.prod(made.shape)
