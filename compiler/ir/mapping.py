"""Rows of `map` together: for targets where every operation is a call all of them at once, for vectors of C a few at a time.

The rows become the last axis of the body's values, as learners do in `batching`; each row computes what it would compute alone, in the
same order. Bodies that treat rows one by one (to sort, to decompose), or have many values, stay as they are or become loops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from oco.compiler.ir.batching import Environment, LaneMachine, has_indices_by_lane
from oco.compiler.ir.dead_code import used_by
from oco.compiler.ir.lanes import LaneValue
from oco.compiler.ir.ops import CONTROL, OPS
from oco.compiler.ir.program import Block, DType, Equation, Function, Program, Type
from oco.compiler.ir.rename import without_clashes
from oco.compiler.ir.rewrite import all_functions, equations_of, map_functions
from oco.compiler.ir.small_solves import expand_small_solves
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.dsl.records import dataclass

LARGEST_IN_CACHE = 16384
"""Entries of all arrays of a row, or of a learner of a fleet, beyond which they go one by one: together they would leave the cache."""
Machine = Callable[[Tracer, Mapping[str, Function], Environment], LaneMachine]


def rows_at_once(program: Program) -> Program:
    """Program without `map`: all rows at once, or a loop over them."""
    return _retraced(program, lambda t, functions, known: _AllRows(t, 1, functions, None, known))


def rows_in_lanes(program: Program, lanes: int) -> Program:
    """Program whose maps take that many rows at a time, as the last axis of their bodies' values, where that is possible: all rows pick
    entries at the same places.
    """
    return _retraced(program, lambda t, functions, known: _SomeRows(t, lanes, functions, None, known))


def _retraced(program: Program, machine: Machine) -> Program:
    """Program with every function that has maps traced again."""
    if not any(map(_has_maps, all_functions(program))):
        return program
    program = expand_small_solves(program)
    t = Tracer(program.name)
    t.begin_with(program.constants, (), (f.name for f in program.functions))
    functions: dict[str, Function] = {}
    known = {g.var.name: LaneValue(Value(t, g.var), False) for g in program.constants}

    def again(function: Function) -> Function:
        if not _has_maps(function):
            return function

        def run(*given: Value) -> list[Value]:
            args = [LaneValue(v, False) for v in given]
            return [r.value for r in machine(t, functions, known).block(function.body, args, known)]

        params = [(p.name, p.type) for p in function.body.params]
        return replace(t.function(function.name, run, params, function.doc), result_names=function.result_names)

    for f in program.functions:
        functions[f.name] = again(f)
        t.functions.append(functions[f.name])
    entries = map_functions(replace(program, functions=()), again)
    traced = replace(entries, constants=tuple(t.constants), functions=tuple(t.functions))
    taken = {g.var.name for g in t.constants} | {f.name for f in t.functions}
    # New functions may have the names of variables elsewhere.
    named = map_functions(traced, lambda f: without_clashes(f, taken))
    return replace(named, functions=used_by(named, named.entries)[0])


def _has_maps(function: Function) -> bool:
    return any(e.op == "map" for e in equations_of(function.body))


@dataclass(frozen=True)
class _AllRows(LaneMachine):
    """Traces a program as it is, and the rows of each map together."""

    def mapped(self, e: Equation, args: Sequence[LaneValue], env: Environment) -> list[LaneValue]:
        if not rows_go_together(e.blocks[0], self.functions):
            return super().mapped(e, args, env)
        machine = LaneMachine(self.t, e.args[0].type.shape[0], self.functions, None, self.known)
        results = machine.block(e.blocks[0], [LaneValue(_rows_last(a.value), True) for a in args], env)
        return [LaneValue(_rows_first(machine.lanes.full(r)), False) for r in results]


@dataclass(frozen=True)
class _SomeRows(LaneMachine):
    """Traces a program as it is, and the bodies of its maps over `count` rows."""

    def mapped(self, e: Equation, args: Sequence[LaneValue], env: Environment) -> list[LaneValue]:
        (body,), rows = e.blocks, [a.value for a in args]
        kinds = {v.type.dtype for v in (*body.params, *body.results)}
        together = kinds == {DType.FLOAT} and rows_go_together(body, self.functions)
        lanes = together and not has_indices_by_lane(body, self.functions)
        machine = LaneMachine(self.t, self.count, self.functions, None, self.known)

        def run(*given: Value) -> list[Value]:
            results = machine.block(body, [LaneValue(v, lanes) for v in given], env)
            return [machine.lanes.full(r) if lanes else r.value for r in results]

        hints, more = [p.name for p in body.params], (self.count,) if lanes else ()
        types = [Type(p.type.dtype, (*p.type.shape, *more)) for p in body.params]
        stacked = [v.type for v in e.outs]
        return [LaneValue(v, False) for v in self.t.map_over(run, rows, types, hints, stacked)]


def rows_go_together(block: Block, functions: Mapping[str, Function]) -> bool:
    """True where every operation goes over many rows at once and one row's values are few."""
    every = list(_equations(block, functions))
    size = sum(math.prod(v.type.shape) for e in every for v in e.outs)
    return size <= LARGEST_IN_CACHE and all(map(_has_lanes, every))


def learners_go_together(program: Program) -> bool:
    """True where a round takes many learners at once, and one learner's values are few."""
    expanded = expand_small_solves(program)
    functions = {f.name: f for f in expanded.functions}
    entries = [f for f in (expanded.decide, expanded.measure, expanded.update) if f is not None]
    return all(rows_go_together(f.body, functions) for f in entries)


def _has_lanes(e: Equation) -> bool:
    if e.op in CONTROL:
        return e.op != "map"
    return OPS[e.op].elementwise or OPS[e.op].lanes is not None or not e.args


def _equations(block: Block, functions: Mapping[str, Function]) -> Iterator[Equation]:
    """Equations of a block and of all functions that it calls."""
    for e in equations_of(block):
        yield e
        if e.op == "call":
            yield from _equations(functions[e.attr("function")].body, functions)


def _rows_last(x: Value) -> Value:
    """Array (K, ...) with the axis of the rows last, laid out in memory that way."""
    t, (count, *rest) = x.tracer, x.shape
    if not rest:
        return x
    places = [t.reshape(t.iota(n), (n, *(1 for _ in rest[k:]), 1)) for k, n in enumerate(rest, 1)]
    return t.gather(x, t.iota(count), *places)


def _rows_first(x: Value) -> Value:
    """Array (..., K) with the axis of the rows first."""
    t, (*rest, count) = x.tracer, x.shape
    matrix = t.transpose(t.reshape(x, (math.prod(rest), count))) if rest else x
    return t.reshape(matrix, (count, *rest))
