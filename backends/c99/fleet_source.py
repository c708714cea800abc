"""C source of a fleet: learners in blocks, a block's arrays with the learner last, so that each operation runs over the
learners of a block.

The rule is that of `batch(program, lanes)`. Other functions convert arrays with the learner first into those of a block
and back. With one lane it is the rule of the program itself, on the caller's arrays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from oco.backends.c99.entry_points import EntryPoints
from oco.backends.c99.interface import Interface, Named, size
from oco.backends.c99.module import assembled, rule
from oco.backends.c99.names import module_name
from oco.backends.c99.vectors import WIDTH, c_type, is_vector
from oco.backends.contract import Contract
from oco.compiler.ir.batching import batch
from oco.compiler.ir.flat_totals import flatten_totals
from oco.compiler.ir.lanes import LANE
from oco.compiler.ir.mapping import LARGEST_IN_CACHE
from oco.compiler.ir.ops import OPS
from oco.compiler.ir.passes import PASSES, divide_less, optimize
from oco.compiler.ir.program import ROUND, Block, DType, Equation, Function, Operand, Program, Type
from oco.compiler.ir.rename import rename_function
from oco.compiler.ir.rewrite import all_functions, bound_names, equations_of, substitute
from oco.compiler.ir.sums_in_parts import sum_in_parts
from oco.compiler.ir.verifier import check
from oco.dsl.records import dataclass

WHOLE = "whole_round"


@dataclass(frozen=True)
class FleetSource:
    """Source of a fleet. `block` has the struct and the rule of `lanes` learners, `one` the names of a single learner's
    data.
    """

    name: str
    code: str
    lanes: int
    one: Interface
    block: Interface


def in_lanes(program: Program, skip: Collection[str] = ()) -> Program | None:
    """Program of a block; None where blocks would be large, or single learners must be treated apart (to sort, to
    decompose).
    """
    if program.numbered_by != ROUND:
        return None  # blocks have one round for all, and the state a number for each
    entries = sum(size(v.type) for f in all_functions(program) for e in equations_of(f.body) for v in e.outs)
    if entries > LARGEST_IN_CACHE:
        return None
    many = optimize(batch(program, LANE), skip)
    return None if any(_picks(e) for f in all_functions(many) for e in equations_of(f.body)) else many


def with_whole_round(program: Program) -> Program:
    """Program and a function for a whole round, in which decision, loss and constraints and the next state share
    computations.
    """
    decide, measure, update = program.decide, program.measure, program.update
    assert measure is not None
    state, inputs = len(program.state), len(program.feedback)
    own, first = update.body, update.body.params
    decided = _beside(decide, [*first[:state], *first[state + inputs :]], [own])
    valued = _beside(
        measure, [first[program.number_place], *decided.results, *first[state : state + inputs]], [own, decided]
    )
    parts = {"decided": decided, "measured": valued, "after": own}
    body = Block(
        first,
        tuple(e for b in parts.values() for e in b.equations),
        tuple(r for b in parts.values() for r in b.results),
    )
    names = tuple(f"{part}_{k}" for part, b in parts.items() for k in range(len(b.results)))
    whole = Function(
        WHOLE, body, names, "A whole round: the decision, its loss and constraint values, the state after it."
    )
    return replace(program, functions=(*program.functions, whole))


def _beside(function: Function, given: Sequence[Operand], others: Sequence[Block]) -> Block:
    """Body of a function at these arguments, with names distinct from those of other blocks."""
    body = rename_function(function, {}, {name for b in others for name in bound_names(b)}).body
    return substitute(body, {p.name: a for p, a in zip(body.params, given, strict=True)})


def _picks(e: Equation) -> bool:
    """True where an equation treats the learners of a block one by one."""
    if e.op == "iota":
        return bool(e.attr("n") == LANE)
    row = OPS.get(e.op)
    if row is None or row.indices is None:
        return False
    base, indices = e.attr("shape") if "shape" in row.attrs else e.args[0].type.shape, e.args[row.indices :]
    return any(is_vector(i.type) for i in indices) or (base[-1:] == (LANE,) and len(indices) == len(base))


def emit_fleet(program: Program, contract: Contract, skip: Collection[str] = ()) -> FleetSource:
    """Source of a fleet of the program; `skip` names passes of `PASSES` to leave out."""
    name, program = (
        module_name(program.name),
        _after("dead-code", divide_less(sum_in_parts(flatten_totals(program))), skip),
    )
    many = in_lanes(program, skip)
    count = 1 if many is None else WIDTH
    stepped = _after("common-subexpressions", with_whole_round(many or program), skip)
    lines, block = rule(stepped, f"{name}_block", mixed=many is not None)
    one = Interface(name, program, block.signatures)
    points = EntryPoints(one, contract)
    tests = points.check_of_many()
    checks = [] if tests is not None else [*points.check(), ""]
    glue = [*_struct(block), *lines, *checks, *_Glue(one, block, count, tests).lines()]
    headers = ("float", "math", "stdbool", "stddef", "stdint", "string")
    code = [*(f"#include <{h}.h>" for h in headers), "", *assembled(stepped, block, glue)]
    return FleetSource(name, "\n".join(code) + "\n", count, one, block)


def _after(name: str, program: Program, skip: Collection[str]) -> Program:
    """Program after one pass, unless `skip` names it."""
    return check(program if name in skip else PASSES[name](program))


def _struct(block: Interface) -> Iterator[str]:
    yield "typedef struct {"
    yield from (f"    {n.declared(n.name)};" for n in block.state)
    if block.rule_work:
        yield f"    double work[{block.rule_work}];"
    yield f"}} {block.name};"
    yield ""


@dataclass(frozen=True)
class _Glue:
    """Functions fleet_decide and fleet_step on whole blocks: they return 0, or 1 + the block in which an input is wrong
    or a number is not finite.

    fleet_step leaves the states unchanged and writes the next ones to `following`. Learner by learner it needs room for
    `decisions`.
    """

    one: Interface
    block: Interface
    lanes: int
    tests: list[str] | None

    def lines(self) -> Iterator[str]:
        name = self.one.name
        own = "void *learners, int64_t from, int64_t to, int64_t size, const void *const *inputs, double *const *decisions"
        yield from _function(
            f"int64_t {name}_fleet_decide({own})",
            [
                *self._begin(),
                *self._taken(self.one.draws, len(self.one.inputs)),
                *self._decided(),
                *self._finite_decisions(),
                *self._end(),
            ],
        )
        yield from _function(
            f"int64_t {name}_fleet_step({own}, double *loss, double *g, double *h, void *following)",
            [
                *self._begin(),
                f"    {self.block.name} *const after = ({self.block.name} *)following + b;",
                *self._checks(),
                *self._taken([*self.one.inputs, *self.one.draws]),
                *self._stepped(),
                *self._finite_decisions(),
                *self._finite_state(),
                *self._end(),
            ],
        )

    def _checks(self) -> Iterator[str]:
        """Checks of a block's inputs, just before they are used: rows at once where bounds are the same for all
        entries, else learner by learner.
        """
        if self.tests is not None:
            yield from (f"    if ({test}) {{ return b + 1; }}" for test in self.tests)
            return
        inputs = ", ".join(_at(n, k, "i") for k, n in enumerate(self.one.inputs))
        yield "    for (int64_t i = first; i < first + count; ++i) {"
        yield f"        if ({self.one.name}_check({inputs}) != 0) {{ return b + 1; }}"
        yield "    }"

    def _begin(self) -> list[str]:
        return [
            "(void)inputs;",
            f"{self.block.name} *const blocks = learners;",
            "for (int64_t b = from; b < to; ++b) {",
            f"    {self.block.name} *const self = blocks + b;",
            f"    const int64_t first = b * {self.lanes};",
            f"    const int count = size - first < {self.lanes} ? (int)(size - first) : {self.lanes};",
            "    (void)count;",
        ]

    def _end(self) -> list[str]:
        return ["}", "return 0;"]

    def _finite_decisions(self) -> Iterator[str]:
        for d in self.one.decisions:
            yield from _finite(f"(const double *){d.name}_lanes", d.size * self.lanes)

    def _finite_state(self) -> Iterator[str]:
        for n in self.block.state:
            if n.type.dtype is DType.FLOAT:
                yield from _finite(
                    f"(const double *)&after->{n.name}", n.size * (self.lanes if is_vector(n.type) else 1)
                )

    def _taken(self, values: Sequence[Named], before: int = 0) -> Iterator[str]:
        """Inputs of a block; the last learner's data fill lanes without a learner."""
        for k, n in enumerate(values, before):
            rows = f"(const {n.c_type} *)inputs[{k}] + first * {n.size}"
            if self.lanes == 1:
                yield f"    const {n.c_type} *const {n.name}_lanes = {rows};"
                continue
            yield _array(n, self._kind(n))
            columns = "@columns" if n.type.dtype is DType.FLOAT else "@columns_whole"
            yield f"    {columns}({rows}, {n.size}, count, {n.name}_lanes);"

    def _passed(self, values: Sequence[Named]) -> list[str]:
        scalar = self.lanes == 1
        return [f"*{n.name}_lanes" if scalar and not n.type.shape else f"{n.name}_lanes" for n in values]

    def _kind(self, n: Named) -> str:
        """C type of an entry in all learners of a block."""
        return c_type(Type(n.type.dtype, (*n.type.shape, LANE)))

    def _call(self, function: str, args: Sequence[str], outs: Sequence[str]) -> str:
        s = self.block.signatures[function]
        work = ["self->work"] if s.work else []
        if s.is_number:
            return f"    *({outs[0]}) = {s.name}({', '.join([*args, *work])});"
        return f"    {s.name}({', '.join([*args, *outs, *work])});"

    def _state(self) -> list[str]:
        return [f"self->{n.name}" for n in self.block.state]

    def _decided(self) -> Iterator[str]:
        yield from self._declared_decisions()
        outs = [f"{d.name}_lanes" for d in self.one.decisions]
        yield self._call("decide", [*self._state(), *self._passed(self.one.draws)], outs)
        yield from self._collected_decisions()

    def _declared_decisions(self) -> Iterator[str]:
        for k, d in enumerate(self.one.decisions):
            rows = f"decisions[{k}] + first * {d.size}"
            yield (f"    double *const {d.name}_lanes = {rows};" if self.lanes == 1 else _array(d, self._kind(d)))

    def _collected_decisions(self) -> Iterator[str]:
        if self.lanes > 1:
            for k, d in enumerate(self.one.decisions):
                yield from _collect(f"decisions[{k}] + first * {d.size}", f"{d.name}_lanes", d.size, self.lanes)

    def _stepped(self) -> Iterator[str]:
        """Whole round: decisions, their loss and constraints, the state after it."""
        yield "    (void)decisions;"
        yield from self._declared_decisions()
        sizes = dict(zip(("loss", "g", "h"), (1, *self.one.outputs)))
        if self.lanes > 1:
            yield from (f"    @vector {w}_lanes[{max(k, 1)}];" for w, k in sizes.items())
        measured = [f"{w}_lanes" if self.lanes > 1 else f"{w} + first * {k}" for w, k in sizes.items()]
        after = [f"{'' if n.type.shape else '&'}after->{n.name}" for n in self.block.state]
        data = self.block.data(self._passed(self.one.inputs))
        given = [*self._state(), *data, *self._passed(self.one.draws)]
        yield self._call(WHOLE, given, [*(f"{d.name}_lanes" for d in self.one.decisions), *measured, *after])
        for w, k in sizes.items() if self.lanes > 1 else ():
            unused = [f"    (void){w}, (void){w}_lanes;"]
            yield from _collect(f"{w} + first * {k}", f"{w}_lanes", k, self.lanes) if k else unused


def _array(n: Named, kind: str) -> str:
    return f"    {kind} {n.name}_lanes[{max(n.size, 1)}];"


def _finite(entries: str, count: int) -> Iterator[str]:
    """Statement that returns the place of the block where entries of its learners are not finite."""
    if count:
        yield f"    if (!@finite({entries}, {count})) {{"
        yield from ("        return b + 1;", "    }")


def _collect(rows: str, source: str, count: int, lanes: int) -> Iterator[str]:
    """Statement that turns columns into rows, for the lanes that have a learner."""
    yield "    for (int l = 0; l < count; ++l) {"
    yield f"        double *const row = {rows} + l * {count};"
    yield f"        const double *const column = (const double *){source} + l;"
    yield f"        for (int i = 0; i < {count}; ++i) {{ row[i] = column[i * {lanes}]; }}"
    yield "    }"


def _at(n: Named, k: int, index: str) -> str:
    pointer = f"(const {n.c_type} *)inputs[{k}] + {index} * {n.size}"
    return pointer if n.type.shape else f"*({pointer})"


def _function(head: str, body: Sequence[str]) -> Iterator[str]:
    yield from ("", f"{head};", f"{head} {{", *(f"    {line}" for line in body), "}")
