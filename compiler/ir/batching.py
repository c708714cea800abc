"""A program for many learners at once: every value that may differ between them gets the learners as its last axis (lanes).

Learners share the number of the round and what follows from it alone. Where control flow depends on a lane, branches are taken if one
lane takes them, loops turn until no lane goes on, and a lane keeps its values where it is not meant. Each lane computes what the program
computes, in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from oco.compiler.ir.build import Named, trace_program
from oco.compiler.ir.lanes import Lanes, LaneValue
from oco.compiler.ir.names import is_temporary
from oco.compiler.ir.ops import CONTROL, OPS
from oco.compiler.ir.program import Block, DType, Equation, Field, Function, Operand, Program, Type, Var
from oco.compiler.ir.small_solves import expand_small_solves
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Liftable, Value
from oco.dsl.diagnostics import InternalError
from oco.dsl.records import dataclass

Environment = Mapping[str, LaneValue]
ZEROS = {DType.FLOAT: 0.0, DType.INT: 0, DType.BOOL: False}


def batch(program: Program, lanes: int, *, leaving: bool = False) -> Program:
    """The program of `lanes` learners: fields but the round, and the values of `measure`, have the learner last.

    leaving  True where learners leave a loop one by one, for targets that go on with those that are left; else masks tell who is meant
    """
    t = Tracer(program.name)
    program = expand_small_solves(program)
    machine = (_Leaving if leaving else LaneMachine)(t, lanes, {f.name: f for f in program.functions}, None, {})
    constants = {g.var.name: g for g in program.constants}

    def entry(function: Function) -> Callable[..., list[Value]]:
        """The function over fields with lanes, the round (its first parameter, if it has one) without."""

        def run(*given: Value) -> list[Value]:
            known = {n: LaneValue(t.constant(g.value, n, g.why), False) for n, g in constants.items()}
            params = function.body.params
            args = [LaneValue(v, v.type != p.type) for v, p in zip(given, params, strict=True)]
            result = replace(machine, known=known).block(function.body, args, known)
            return [machine.lanes.full(b) for b in result]

        return run

    init, decide, update = map(entry, (program.init, program.decide, program.update))
    fields = [f.name for f in program.state[1:]]

    def measured(now: Value, decisions: Named, seen: Named) -> tuple[Liftable, Liftable, Liftable]:
        if program.measure is None:
            raise InternalError("a program without values to measure")
        loss, g, h = entry(program.measure)(now, *decisions.values(), *seen.values())
        return loss, g, h

    together = trace_program(
        t,
        doc=program.doc,
        decision=_with_lanes(program.decision, lanes),
        feedback=_with_lanes(program.feedback, lanes),
        draws=_with_lanes(program.draws, lanes),
        init=lambda start: dict(zip(fields, init(*start.values())[1:])),
        decide=lambda state, drawn: dict(
            zip((f.name for f in program.decision), decide(*state.values(), *drawn.values()))
        ),
        update=lambda state, seen, drawn: dict(
            zip(fields, update(*state.values(), *seen.values(), *drawn.values())[1:])
        ),
        measure=None if program.measure is None else measured,
        state_docs={f.name: f.doc for f in program.state},
        labels=program.labels,
    )
    return replace(together, previous=program.previous)


def _with_lanes(fields: Sequence[Field], lanes: int) -> list[Field]:
    return [replace(f, type=Type(f.type.dtype, (*f.type.shape, lanes))) for f in fields]


@dataclass(frozen=True)
class LaneMachine:
    """Traces blocks over values with and without lanes. `mask`: the lanes that are meant, None for all. `known`: the constants."""

    t: Tracer
    count: int
    functions: Mapping[str, Function]
    mask: Value | None
    known: Environment

    @property
    def lanes(self) -> Lanes:
        """Operations over the lanes."""
        return Lanes(self.t, self.count, self.mask is not None)

    def block(self, block: Block, args: Sequence[LaneValue], outer: Environment) -> list[LaneValue]:
        """Results of a block at these arguments."""
        env = {**outer, **{p.name: a for p, a in zip(block.params, args)}}
        for p, a in zip(block.params, args):
            if not is_temporary(p.name) and not self.t.is_named(a.value):
                self.t.name(p.name, a.value)
        for e in block.equations:
            if e.note:
                self.t.note(e.note)
            for var, result in zip(e.outs, self.equation(e, env), strict=True):
                if not is_temporary(var.name):
                    self.t.name(var.name, result.value)
                env[var.name] = result
        return [self.read(r, env) for r in block.results]

    def read(self, operand: Operand, env: Environment) -> LaneValue:
        """Value of an operand."""
        return env[operand.name] if isinstance(operand, Var) else LaneValue(Value(self.t, operand), False)

    def equation(self, e: Equation, env: Environment) -> list[LaneValue]:
        """Results of an equation."""
        args = [self.read(a, env) for a in e.args]
        match e.op:
            case "call":
                return self.call(self.functions[e.attr("function")], args)
            case "if":
                return self.branch(args[0], e.blocks, env)
            case "for":
                return self.counted(args[0], args[1:], e.blocks[0], env)
            case "while":
                return self.loop(args, e.blocks, env)
            case "map":
                return self.mapped(e, args, env)
        if True in [a.each for a in args]:
            return self.lanes.apply(e.op, args, dict(e.attrs))
        types = tuple([v.type for v in e.outs])  # as it is: what it was made of was promoted then
        return [LaneValue(v, False) for v in self.t.emit(e.op, tuple([a.value for a in args]), types, **dict(e.attrs))]

    def mapped(self, e: Equation, args: Sequence[LaneValue], env: Environment) -> list[LaneValue]:
        """Rows one after the other."""
        t, count = self.t, e.args[0].type.shape[0]
        rows = [Type(r.type.dtype, r.type.shape) for r in e.blocks[0].results]
        each = any(a.each for a in args) or any(self.each_of(e.blocks[0], [a.each for a in args], env))
        flags = [each] * len(rows)
        zeros = [LaneValue(t.full(ZEROS[r.dtype], (count, *r.shape)), False) for r in rows]

        def turn(k: Value, *made: Value) -> list[Value]:
            row = [LaneValue(t.gather(a.value, k), a.each) for a in args]
            results = self.values(self.block(e.blocks[0], row, env), flags)
            return [t.put(m, r, k) for m, r in zip(made, results, strict=True)]

        return [LaneValue(v, k) for v, k in zip(t.for_(count, turn, self.values(zeros, flags)), flags)]

    def within(self, mask: Value | None) -> LaneMachine:
        """Machine for the lanes of a mask."""
        return replace(self, mask=mask)

    def both(self, condition: Value) -> Value:
        """The lanes that are meant and for which the condition holds."""
        return condition if self.mask is None else self.t.and_(condition, self.mask)

    # control flow
    def call(self, function: Function, args: Sequence[LaneValue]) -> list[LaneValue]:
        """Results of a function of the program: of itself, where the program that is traced has it and nothing has lanes."""
        if self.mask is None and not any(a.each for a in args) and self.t.has(function):
            types = tuple(r.type for r in function.body.results)
            results = self.t.emit("call", tuple(a.value for a in args), types, function=function.name)
            return [LaneValue(v, False) for v in results]
        each: list[bool] = []
        names = [p.name for p in function.body.params]

        def run(*values: Value) -> list[Value]:
            masked = self.mask is not None
            machine = self.within(values[-1] if masked else None)
            given = values[:-1] if masked else values
            result = machine.block(function.body, [LaneValue(v, a.each) for v, a in zip(given, args)], self.known)
            each[:] = [b.each for b in result]
            return [b.value for b in result]

        values = [self.t.name(n, a.value) if not self.t.is_named(a.value) else a.value for n, a in zip(names, args)]
        mask = [] if self.mask is None else [self.mask]
        results = self.t.call(function.name, run, *values, *mask, doc=function.doc)
        return [LaneValue(v, k) for v, k in zip(results, each, strict=True)]

    def branch(self, condition: LaneValue, blocks: Sequence[Block], env: Environment) -> list[LaneValue]:
        """Results of a branch, of both sides where lanes differ."""
        flags = [k or condition.each for k in _either(*(self.each_of(b, (), env) for b in blocks))]
        t = self.t
        if not condition.each:
            then, orelse = (lambda b=b: self.values(self.block(b, (), env), flags) for b in blocks)
            return [LaneValue(v, k) for v, k in zip(t.if_(condition.value, then, orelse), flags)]
        sides = []
        for block, truth in zip(blocks, (condition.value, t.not_(condition.value))):
            meant = self.both(truth)
            machine = self.within(meant)
            sides.append(machine.guarded(meant, block, env))
        return [LaneValue(t.where(condition.value, a, b), True) for a, b in zip(*sides)]

    def guarded(self, meant: Value, block: Block, env: Environment) -> list[Value]:
        """The values of a branch that some lane takes; any values where none does. Short branches are worked out anyway."""
        if len(block.equations) <= 8 and not any(e.op in CONTROL for e in block.equations):
            return [self.lanes.full(b) for b in self.block(block, (), env)]
        t = self.t

        def nothing() -> list[Value]:
            return [t.full(ZEROS[r.type.dtype], (*r.type.shape, self.count)) for r in block.results]

        return list(t.if_(t.any(meant), lambda: [self.lanes.full(b) for b in self.block(block, (), env)], nothing))

    def counted(self, n: LaneValue, start: Sequence[LaneValue], body: Block, env: Environment) -> list[LaneValue]:
        """Results of a loop of n turns."""
        t = self.t
        if n.each:
            return self.until_done(
                [LaneValue(t.lift(0), False), *start], _less_than(n.value), _counting(self, body, env)
            )[1:]
        flags = self.fixed_point([a.each for a in start], lambda f: self.each_of(body, [False, *f], env))

        def turn(i: Value, *values: Value) -> list[Value]:
            given = [LaneValue(v, k) for v, k in zip(values, flags)]
            return self.values(self.block(body, [LaneValue(i, False), *given], env), flags)

        return [LaneValue(v, k) for v, k in zip(t.for_(n.value, turn, self.values(start, flags)), flags)]

    def loop(self, start: Sequence[LaneValue], blocks: Sequence[Block], env: Environment) -> list[LaneValue]:
        """Results of a loop with a condition."""
        condition, body = blocks
        flags = self.fixed_point([a.each for a in start], lambda f: self.each_of(body, f, env))
        if self.each_of(condition, flags, env)[0]:
            return self.until_done(
                start,
                lambda machine, given: machine.block(condition, given, env)[0].value,
                lambda machine, given: machine.block(body, given, env),
            )

        def again(*values: Value) -> Value:
            return self.block(condition, [LaneValue(v, k) for v, k in zip(values, flags)], env)[0].value

        def turn(*values: Value) -> list[Value]:
            return self.values(self.block(body, [LaneValue(v, k) for v, k in zip(values, flags)], env), flags)

        return [LaneValue(v, k) for v, k in zip(self.t.while_(again, turn, self.values(start, flags)), flags)]

    def until_done(self, start: Sequence[LaneValue], condition: Condition, body: Body) -> list[LaneValue]:
        """A loop that each lane leaves in its own time: it goes on while one lane does, and lanes that are done keep their values."""
        t = self.t

        def going(values: Sequence[Value], mask: Value | None) -> Value:
            machine = self.within(mask)
            return machine.both(condition(machine, [LaneValue(v, True) for v in values]))

        def turn(on: Value, *values: Value) -> list[Value]:
            machine = self.within(on)
            made = body(machine, [LaneValue(v, True) for v in values])
            kept = [t.where(on, machine.lanes.full(new), old) for new, old in zip(made, values)]
            return [going(kept, on), *kept]

        first = [self.lanes.full(a) for a in start]
        begin = t.name("on", going(first, self.mask))
        result = t.while_(lambda on, *values: t.any(on), turn, (begin, *first))
        return [LaneValue(v, True) for v in result[1:]]

    def values(self, results: Sequence[LaneValue], flags: Sequence[bool]) -> list[Value]:
        """Traced values, with lanes where the flags say so."""
        return [self.lanes.full(b) if k else b.value for b, k in zip(results, flags, strict=True)]

    # which values have lanes
    def fixed_point(self, flags: Sequence[bool], step: Callable[[list[bool]], list[bool]]) -> list[bool]:
        """Flags of the values that a loop carries: a value has lanes if it begins with them or ever gets them."""
        now = list(flags)
        while (following := _either(now, step(now))) != now:
            now = following
        return now

    def each_of(self, block: Block, params: Sequence[bool], env: Environment) -> list[bool]:
        """Flags of the results of a block that have lanes."""
        return _Flags(self.functions).block(block, params, {n: b.each for n, b in env.items()})


@dataclass(frozen=True)
class _Leaving(LaneMachine):
    """Traces loops whose turns leave it to the target that lanes which are done keep their values."""

    def until_done(self, start: Sequence[LaneValue], condition: Condition, body: Body) -> list[LaneValue]:
        t = self.t

        def going(machine: LaneMachine, values: Sequence[Value]) -> Value:
            return machine.both(condition(machine, [LaneValue(v, True) for v in values]))

        def turn(on: Value, *values: Value) -> list[Value]:
            meant = self.within(on)
            made = [meant.lanes.full(new) for new in body(meant, [LaneValue(v, True) for v in values])]
            return [going(meant, made), *made]

        first = [self.lanes.full(a) for a in start]
        begin = t.name("on", going(self, first))
        result = t.while_(lambda on, *values: t.any(on), turn, (begin, *first), leaving=True)
        return [LaneValue(v, True) for v in result[1:]]


Condition = Callable[[LaneMachine, Sequence[LaneValue]], Value]
Body = Callable[[LaneMachine, Sequence[LaneValue]], list[LaneValue]]


def _less_than(n: Value) -> Condition:
    return lambda machine, given: given[0].value < n


def _counting(outer: LaneMachine, body: Block, env: Environment) -> Body:
    def turn(machine: LaneMachine, given: Sequence[LaneValue]) -> list[LaneValue]:
        return [LaneValue(given[0].value + 1, True), *machine.block(body, given, env)]

    return turn


def _either(*flags: Sequence[bool]) -> list[bool]:
    return [any(each) for each in zip(*flags, strict=True)]


@dataclass(frozen=True)
class _Flags:
    """Follows which values have lanes, without tracing anything."""

    functions: Mapping[str, Function]

    def block(self, block: Block, params: Sequence[bool], outer: Mapping[str, bool]) -> list[bool]:
        env = {**outer, **{p.name: k for p, k in zip(block.params, params)}}
        for e in block.equations:
            for v, k in zip(e.outs, self.equation(e, env), strict=True):
                env[v.name] = k
        return self.read(block.results, env)

    def read(self, operands: Sequence[Operand], env: Mapping[str, bool]) -> list[bool]:
        return [isinstance(o, Var) and env.get(o.name, False) for o in operands]

    def equation(self, e: Equation, env: Mapping[str, bool]) -> list[bool]:
        args = self.read(e.args, env)
        match e.op:
            case "call":
                return self.block(self.functions[e.attr("function")].body, args, {})
            case "if":
                return [args[0] or k for k in _either(*(self.block(b, (), env) for b in e.blocks))]
            case "for" | "while":
                return self.loop(e, args, env)
            case "map":
                return [any(args) or any(self.block(e.blocks[0], args, env))] * len(e.outs)
        return [any(args)] * len(e.outs)

    def loop(self, e: Equation, args: list[bool], env: Mapping[str, bool]) -> list[bool]:
        counted = e.op == "for"
        now = args[1:] if counted else args
        index = [False] if counted else []
        while (following := _either(now, self.block(e.blocks[-1], [*index, *now], env))) != now:
            now = following
        if args[0] if counted else self.block(e.blocks[0], now, env)[0]:  # each lane leaves in its own time
            now = [True] * len(now)
            self.block(e.blocks[-1], [*(True for _ in index), *now], env)
        return now


@dataclass(frozen=True)
class _Indices(_Flags):
    """Follows which values have lanes, and keeps the equations with an index that has them."""

    by_lane: list[Equation]

    def equation(self, e: Equation, env: Mapping[str, bool]) -> list[bool]:
        row = OPS.get(e.op)
        if row is not None and row.indices is not None and any(self.read(e.args[row.indices :], env)):
            self.by_lane.append(e)
        return super().equation(e, env)


def has_indices_by_lane(block: Block, functions: Mapping[str, Function]) -> bool:
    """True where some index differs from lane to lane, if the parameters of the block do."""
    indices = _Indices(functions, [])
    indices.block(block, [True] * len(block.params), {})
    return bool(indices.by_lane)
