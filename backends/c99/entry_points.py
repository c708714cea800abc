"""Bodies of an emitted learner's public functions: they move state, inputs and results to and from the rule."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from oco.backends.c99.changes import Changes
from oco.backends.c99.constants import array_lines
from oco.backends.c99.expressions import literal
from oco.backends.c99.interface import Interface, Named, size
from oco.backends.c99.return_codes import quoted
from oco.backends.c99.writer import LARGEST_ON_STACK
from oco.backends.contract import Contract, Range
from oco.compiler.evidence.watched_streams import ALARM, REFUTED
from oco.compiler.ir.program import DType, Literal, Type

_MOST = np.finfo(np.float64).max
LARGEST_ROW = 1 << 20  # numbers of a learner whose rows are tested together: counts stay within int


class EntryPoints:
    """Writer of the functions that `Interface.heads` announces."""

    def __init__(self, interface: Interface, contract: Contract) -> None:
        self.of = interface
        self.contract = contract
        self.heads: Mapping[str, str] = interface.heads()

    def lines(self) -> Iterator[str]:
        """Lines of all functions."""
        parts = [
            self._init,
            self._prepare,
            self._decide,
            self.check,
            self._measure,
            self._step,
            self._observe,
            self._run,
            self._certificate,
            self._alarm,
        ]
        for part in parts:
            body = list(part())
            if body:
                yield from body
                yield ""

    def _rule(self, function: str, args: Sequence[str], targets: Sequence[str]) -> Iterator[str]:
        """Call of a rule's function. Targets are arrays, or numbers that can be assigned."""
        s = self.of.signatures[function]
        work = ["self->work"] if s.work else []
        if s.is_number:
            yield f"    {targets[0]} = {s.name}({', '.join([*args, *work])});"
            return
        outs = [t if r.shape else t[1:] if t.startswith("*") else f"&{t}" for t, r in zip(targets, s.results)]
        yield f"    {s.name}({', '.join([*args, *outs, *work])});"

    def _state(self) -> list[str]:
        return [f"self->{n.name}" for n in self.of.state]

    def _init(self) -> Iterator[str]:
        names = [f"{self.of.name}_first_{d.name}" for d in self.of.decisions]
        for name, d in zip(names, self.of.decisions):
            start = np.asarray(self.contract.start[d.field.name], dtype=np.float64).ravel()
            yield from array_lines(name, Type(DType.FLOAT, (max(d.size, 1),)), start)
        yield ""
        yield f"{self.heads['init']} {{"
        args = [
            f"{'' if d.type.shape else '*'}({d.name} ? {d.name} : {name})" for name, d in zip(names, self.of.decisions)
        ]
        yield from self._rule("init", args, self._state())
        yield f"    self->{self.of.decided} = 0;"
        yield "}"

    def _prepare(self) -> Iterator[str]:
        if self.of.prepared is not None:
            yield f"{self.heads['prepare']} {{"
            yield from self._moved("prepare", self.of.prepared, [n.name for n in self.of.known])

    def _decide(self) -> Iterator[str]:
        yield f"{self.heads['decide']} {{"
        targets = [d.name if d.type.shape else f"*{d.name}" for d in self.of.decisions]
        yield from self._rule("decide", [*self._state(), *(n.name for n in self.of.draws)], targets)
        for d in self.of.decisions:
            tested = d.name in self.of.held  # by the step of the round before
            first = f"self->{self.of.state[0].name} == 1" if tested else ""
            yield from not_finite(d, d.name if d.type.shape else f"*{d.name}", d.size, "-1", first)
        yield f"    self->{self.of.decided} = self->{self.of.state[0].name};"
        yield "    return 0;"
        yield "}"

    # what comes in
    def check(self) -> Iterator[str]:
        """Function that finds input that is not finite or out of bounds."""
        tests, before = list[str](), 0
        for n in self.of.inputs:
            low, high = self._bounds(n)
            if (low == low[0]).all() and (high == high[0]).all():
                tests += _tests(n, _bound(float(low[0])), _bound(float(high[0])), before)
            else:
                names = [f"{self.of.name}_{side}_{n.name}" for side in ("lower", "upper")]
                for name, values in zip(names, (low, high)):
                    yield from array_lines(name, Type(DType.FLOAT, values.shape), values)
                tests += _tests(n, names[0], names[1], before, each=True)
            before += n.size
        yield f"{self.heads['check']} {{"
        if any("place" in line for line in tests):
            yield "    int place;"
        yield from tests
        yield "    return 0;"
        yield "}"

    def check_of_many(self) -> list[str] | None:
        """Tests of the inputs of learners `first` to `first + count`; None where bounds of an input differ between its
        entries.
        """
        tests = list[str]()
        for k, n in enumerate(self.of.inputs):
            low, high = self._bounds(n)
            if (
                n.type.dtype is not DType.FLOAT
                or n.size > LARGEST_ROW
                or not ((low == low[0]).all() and (high == high[0]).all())
            ):
                return None
            if n.size:
                rows = f"(const double *)inputs[{k}] + first * {n.size}, {n.size} * count"
                sides = f"{_bound(float(low[0]))}, {_bound(float(high[0]))}"
                tests.append(f"@outside({rows}, {sides}) < {n.size} * count")
        return tests

    def _bounds(self, n: Named) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Least and greatest values of an input, entry by entry (one where it has no entries)."""
        r = self.contract.ranges.get(n.field.name, Range())
        low, high = (
            np.clip(np.broadcast_to(np.asarray(side, dtype=np.float64), n.type.shape).ravel(), -_MOST, _MOST)
            for side in (r.lower, r.upper)
        )
        return (low, high) if n.size else (np.array([-_MOST]), np.array([_MOST]))

    def _measure(self) -> Iterator[str]:
        if self.of.program.measure is None:
            return
        yield f"{self.heads['measure']} {{"
        args = [
            self._state()[self.of.program.number_place],
            *(d.name for d in self.of.decisions),
            *self.of.data([n.name for n in self.of.inputs]),
        ]
        yield from self._rule("measure", args, ["*loss", "constraints", "equalities"])
        yield "}"

    def _certificate(self) -> Iterator[str]:
        if (function := self.of.program.certificate) is None:
            return
        yield f"{self.heads['certificate']} {{"
        results = zip(function.result_names, function.body.results)
        yield from self._rule("certificate", self._state(), [n if r.type.shape else f"*{n}" for n, r in results])
        yield "}"

    def _alarm(self) -> Iterator[str]:
        if (alert := self.contract.alert) is None:
            return
        since, refuted = (next(n.name for n in self.of.state if n.field.name == own) for own in (ALARM, REFUTED))
        yield f"{self.heads['alarm']} {{"
        yield "    static const char *const stated[] = {"
        yield from (f'        "{quoted(text)}",' for text in alert.statements)
        yield "    };"
        yield f"    if (statement) *statement = self->{since} ? stated[self->{refuted}] : NULL;"
        yield f"    return self->{since};"
        yield "}"

    def _step(self) -> Iterator[str]:
        yield f"{self.heads['step']} {{"
        data, draws = self.of.data([n.name for n in self.of.inputs]), [n.name for n in self.of.draws]
        yield from self._moved("update", self.of.updated, [*data, *draws])

    def _moved(self, function: str, of: Changes, given: Sequence[str]) -> Iterator[str]:
        """Body that goes on to another state, which stands in separate places until all of it is computed."""
        offset, targets, tests, moves = self.of.rule_work, list[str](), list[str](), list[str]()
        conditions = [f"changes_{k}" for k in range(len(of.conditions))]
        for change in of.changes:
            n = self.of.state[change.place]
            target, kind, count = f"{n.name}_new", n.c_type, size(change.result.type)
            if count > LARGEST_ON_STACK:
                yield f"    {kind} *const {target} = self->work + {offset};"
                offset += count
            else:
                yield f"    {kind} {target}{f'[{max(count, 1)}]' if change.result.type.shape else ''};"
            places = [f"{target}_place_{k}" for k in range(len(change.row))]
            yield from (f"    int64_t {place};" for place in places)
            targets += [target, *places]
            only = "" if change.when is None else f"if ({conditions[change.when]}) "
            value = replace(n, field=replace(n.field, type=change.result.type))
            tests += [f"    {only}{t.strip()}" for t in not_finite(value, target, count, f"-{change.place + 1}")]
            to = f"self->{n.name}{_offset(places, n.type.shape)}"
            if change.result.type.shape:
                moves.append(f"    {only}{{ memcpy({to}, {target}, {max(count, 1)} * sizeof({kind})); }}")
            else:
                moves.append(f"    {f'*({to})' if places else to} = {target};")
        yield from (f"    bool {name};" for name in conditions)
        yield from self._rule(function, [*self._state(), *given], [*targets, *conditions])
        yield from (*tests, *moves)
        yield "    return 0;"
        yield "}"

    def _observe(self) -> Iterator[str]:
        inputs = [n.name for n in self.of.inputs]
        step = ["self", *inputs, *(n.name for n in self.of.draws)]
        yield f"{self.heads['observe']} {{"
        yield f"    const int64_t wrong = {self.of.name}_check({', '.join(inputs)});"
        undecided = f"self->{self.of.decided} != self->{self.of.state[0].name}"
        yield f"    if (wrong == 0 && {undecided}) {{ return {self.of.undecided}; }}"
        yield f"    return wrong != 0 ? wrong : {self.of.name}_step({', '.join(step)});"
        yield "}"

    # many rounds
    def _run(self) -> Iterator[str]:
        yield f"{self.heads['run']} {{"
        yield "    for (int64_t t = 0; t < rounds; ++t) {"
        yield from (f"        {line}" for line in self.round_of_many())
        yield "    }"
        yield "    return rounds;"
        yield "}"

    def round_of_many(self, decided: Sequence[str] = ()) -> Iterator[str]:
        """Statements that play round t of many, or return t; those of `decided` come between its decision and its feedback."""
        name = self.of.name
        inputs, draws = [_row(n) for n in self.of.inputs], [_row(n) for n in self.of.draws]
        wanted = [w for w, _, _ in self.of.record() if not w.startswith("after_")]
        yield f"if ({name}_check({', '.join(inputs)}) != 0) {{ return t; }}"
        if self.of.program.prepare is not None:
            known = [_row(n) for n in self.of.known]
            yield f"if ({name}_prepare({', '.join(['self', *known])}) != 0) {{ return t; }}"
        yield f"if ({' || '.join(f'record->{w}' for w in wanted)}) {{"
        yield from (f"    {line}" for line in self._played(inputs, draws))
        yield "}"
        yield from decided
        yield f"if ({name}_step({', '.join(['self', *inputs, *draws])}) != 0) {{ return t; }}"
        for n in self.of.state[1:]:
            if n.size:
                source = f"self->{n.name}" if n.type.shape else f"&self->{n.name}"
                yield from _kept(f"after_{n.name}", source, n.size, n.c_type, "")

    def _played(self, inputs: Sequence[str], draws: Sequence[str]) -> Iterator[str]:
        """Decision of round t with its loss and constraints, written into the record."""
        total, before, offset = sum(d.size for d in self.of.decisions), 0, self.of.work
        values, kept = list[str](), list[str]()
        for d in self.of.decisions:
            local, place = f"{d.name}_now", f"record->decisions + t * {total}" + (f" + {before}" if before else "")
            before += d.size
            if d.size > LARGEST_ON_STACK:
                offset -= d.size
                yield f"double *const {local} = self->work + {offset};"
            else:
                yield f"{d.declared(local)};"
            if d.type.shape:
                yield f"double *const {d.name}_kept = record->decisions ? {place} : {local};"
                values.append(f"{d.name}_kept")
            else:
                values.append(local)
                kept.append(f"if (record->decisions) {{ *({place}) = {local}; }}")
        outs = [v if d.type.shape else f"&{v}" for v, d in zip(values, self.of.decisions)]
        yield f"if ({self.of.name}_decide({', '.join(['self', *draws, *outs])}) != 0) {{ return t; }}"
        yield from kept
        if self.of.program.measure is not None:
            yield "if (record->loss || record->constraints || record->equalities) {"
            yield from (f"    {line}" for line in self._measured(values, inputs))
            yield "}"

    def _measured(self, decisions: Sequence[str], inputs: Sequence[str]) -> Iterator[str]:
        """Loss and constraints of a decision, written where they are wanted."""
        counts = self.of.outputs
        yield f"double f, g[{max(counts[0], 1)}], h[{max(counts[1], 1)}];"
        yield f"{self.of.name}_measure({', '.join(['self', *decisions, *inputs, '&f', 'g', 'h'])});"
        yield from _kept("loss", "&f", 1, "double", "")
        for out, local, count in zip(("constraints", "equalities"), "gh", counts):
            if count:
                yield from _kept(out, local, count, "double", "")


def _offset(places: Sequence[str], shape: Sequence[int]) -> str:
    """Distance of a row of an array from its first entry; "" without places."""
    terms = [f"{place} * {math.prod(shape[k + 1 :])}" for k, place in enumerate(places)]
    return "".join(f" + {term}" for term in terms)


def not_finite(n: Named, value: str, size: int, result: str, when: str = "") -> Iterator[str]:
    """Statement that returns `result` where a value of a round has entries that are not finite; `when`: a condition of the test."""
    if n.type.dtype is not DType.FLOAT or not size:
        return
    test = f"!@finite({value}, {size})" if n.type.shape else f"!({value} >= -DBL_MAX && {value} <= DBL_MAX)"
    yield f"    if ({f'{when} && ' if when else ''}{test}) {{ return {result}; }}"


def _kept(name: str, source: str, count: int, kind: str, margin: str) -> Iterator[str]:
    """Statement that writes one round's values to the record, if they are wanted."""
    yield f"{margin}if (record->{name}) {{ memcpy(record->{name} + t * {count}, {source}, {count} * sizeof({kind})); }}"


def _row(n: Named) -> str:
    """Part of an input of many rounds that belongs to round t."""
    if not n.type.shape:
        return f"{n.name}[t]"
    return f"{n.name} + t * {n.size}"


def _bound(value: float) -> str:
    if abs(value) == _MOST:
        return "DBL_MAX" if value > 0 else "-DBL_MAX"
    return literal(Literal(value, Type(DType.FLOAT))).code


def _tests(n: Named, low: str, high: str, before: int, each: bool = False) -> Iterator[str]:
    """Statements that return from `check` at the first entry outside its bounds; a NaN is outside of all. `each`:
    bounds are arrays.
    """
    if not n.size:
        yield f"    (void){n.name};"
    elif n.type.shape and n.type.dtype is DType.FLOAT:
        function = "@outside_each" if each else "@outside"
        yield f"    place = {function}({n.name}, {n.size}, {low}, {high});"
        yield f"    if (place < {n.size}) {{ return place + {before + 1}; }}"
    else:
        entry = f"{n.name}[i]" if n.type.shape else n.name
        value = entry if n.type.dtype is DType.FLOAT else f"(double){entry}"
        sides = [f"{side}[i]" if each else side for side in (low, high)]
        test = f"if (!({value} >= {sides[0]} && {value} <= {sides[1]}))"
        if not n.type.shape:
            yield f"    {test} {{ return {before + 1}; }}"
            return
        yield f"    for (int i = 0; i < {n.size}; ++i) {{"
        yield from (f"        {test} {{ return i + {before + 1}; }}", "    }")
