"""The C of a fleet: learners in blocks, a block's arrays with the learner last, so that each operation runs over the learners of a block.

The rule is that of `batch(program, lanes)`. Around it stand functions that turn arrays with the learner first into those of a block and
back. One lane: the rule of the program itself, on the caller's arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from oco.backends.c99.entry_points import EntryPoints
from oco.backends.c99.interface import Interface, Named, size
from oco.backends.c99.module import assembled, rule
from oco.backends.c99.names import module_name
from oco.backends.c99.vectors import LANE, WIDTH, c_type, is_vector
from oco.backends.contract import Contract
from oco.compiler.ir.batching import batch
from oco.compiler.ir.dead_code import remove_dead_code
from oco.compiler.ir.passes import optimize
from oco.compiler.ir.program import Equation, Program, Type
from oco.compiler.ir.rewrite import all_functions, equations_of

LARGEST_IN_LANES = 16384
"""Entries of all arrays of a rule in one learner: beyond it, blocks would leave the cache, and learners go one by one."""


@dataclass(frozen=True)
class FleetSource:
    """`block` has the struct and the rule of `lanes` learners, `one` the names of a single learner's data."""

    name: str
    code: str
    lanes: int
    one: Interface
    block: Interface


def in_lanes(program: Program) -> Program | None:
    """The program of a block; None where blocks would be large, or a learner has to be picked out of one (to sort, to decompose)."""
    entries = sum(size(v.type) for f in all_functions(program) for e in equations_of(f.body) for v in e.outs)
    if entries > LARGEST_IN_LANES:
        return None
    many = optimize(batch(program, LANE))
    return None if any(_picks(e) for f in all_functions(many) for e in equations_of(f.body)) else many


def _picks(e: Equation) -> bool:
    """Whether an equation looks at the learners of a block one by one."""
    if e.op == "iota":
        return bool(e.attr("n") == LANE)
    first = {"gather": 1, "put": 2, "scatter_add": 1}.get(e.op)
    if first is None:
        return False
    base = e.attr("shape") if e.op == "scatter_add" else e.args[0].type.shape
    indices = e.args[first:]
    return any(is_vector(i.type) for i in indices) or (base[-1:] == (LANE,) and len(indices) == len(base))


def emit_fleet(program: Program, contract: Contract) -> FleetSource:
    """The source of a fleet of the program."""
    name, program = module_name(program.name), remove_dead_code(program)
    many = in_lanes(program)
    count = 1 if many is None else WIDTH
    lines, block = rule(many or program, f"{name}_block", mixed=many is not None)
    one = Interface(name, program, block.signatures)
    glue = [*_struct(block), *lines, *EntryPoints(one, contract).check(), "", *_Glue(one, block, count).lines()]
    headers = ("float", "math", "stdbool", "stddef", "stdint", "string")
    code = [*(f"#include <{h}.h>" for h in headers), "", *assembled(many or program, block, glue)]
    return FleetSource(name, "\n".join(code) + "\n", count, one, block)


def _struct(block: Interface) -> Iterator[str]:
    yield "typedef struct {"
    yield from (f"    {n.declared(n.name)};" for n in block.state)
    if block.rule_work:
        yield f"    double work[{block.rule_work}];"
    yield f"}} {block.name};"
    yield ""


@dataclass(frozen=True)
class _Glue:
    """fleet_check(from, to, inputs) gives 1 if an input of these learners is wrong; fleet_decide and fleet_step work on whole blocks."""

    one: Interface
    block: Interface
    lanes: int

    def lines(self) -> Iterator[str]:
        name = self.one.name
        inputs = [_at(n, k, "i") for k, n in enumerate(self.one.inputs)]
        yield from _function(
            f"int64_t {name}_fleet_check(int64_t from, int64_t to, const void *const *inputs)",
            [
                "(void)inputs;",
                "for (int64_t i = from; i < to; ++i) {",
                f"    if ({name}_check({', '.join(inputs)}) != 0) {{",
                "        return 1;",
                "    }",
                "}",
                "return 0;",
            ],
        )
        own = "void *learners, int64_t from, int64_t to, int64_t size, const void *const *inputs, double *const *decisions"
        yield from _function(
            f"void {name}_fleet_decide({own})",
            [*self._begin(), *self._taken(self.one.draws, len(self.one.inputs)), *self._decided(), *self._end()],
        )
        yield from _function(
            f"void {name}_fleet_step({own}, double *loss, double *g, double *h)",
            [
                *self._begin(),
                *self._taken([*self.one.inputs, *self.one.draws]),
                *self._decided(),
                *self._measured(),
                *self._stepped(),
                *self._end(),
            ],
        )

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
        return ["}"]

    def _taken(self, values: Sequence[Named], before: int = 0) -> Iterator[str]:
        """What a block reads; the last learner's data stand in for lanes without a learner."""
        for k, n in enumerate(values, before):
            rows = f"(const {n.c_type} *)inputs[{k}] + first * {n.size}"
            if self.lanes == 1:
                yield f"    const {n.c_type} *const {n.name}_lanes = {rows};"
                continue
            yield _array(n, self._kind(n))
            yield from _spread(f"{n.name}_lanes", rows, n.c_type, n.size, self.lanes)

    def _passed(self, values: Sequence[Named]) -> list[str]:
        scalar = self.lanes == 1
        return [f"*{n.name}_lanes" if scalar and not n.type.shape else f"{n.name}_lanes" for n in values]

    def _kind(self, n: Named) -> str:
        """The C type of an entry in all learners of a block."""
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
        for k, d in enumerate(self.one.decisions):
            rows = f"decisions[{k}] + first * {d.size}"
            yield (f"    double *const {d.name}_lanes = {rows};" if self.lanes == 1 else _array(d, self._kind(d)))
        outs = [f"{d.name}_lanes" for d in self.one.decisions]
        yield self._call("decide", [*self._state(), *self._passed(self.one.draws)], outs)
        if self.lanes > 1:
            for k, d in enumerate(self.one.decisions):
                yield from _collect(f"decisions[{k}] + first * {d.size}", f"{d.name}_lanes", d.size, self.lanes)

    def _measured(self) -> Iterator[str]:
        sizes = (1, *self.one.outputs)
        names = ("loss", "g", "h")
        if self.lanes > 1:
            yield from (f"    @vector {n}_lanes[{max(k, 1)}];" for n, k in zip(names, sizes))
            outs = [f"{n}_lanes" for n in names]
        else:
            outs = [f"{n} + first * {k}" for n, k in zip(names, sizes)]
        given = [self._state()[0], *self._passed(self.one.decisions), *self._passed(self.one.inputs)]
        yield self._call("measure", given, outs)
        if self.lanes > 1:
            for n, k in zip(names, sizes):
                yield from (
                    _collect(f"{n} + first * {k}", f"{n}_lanes", k, self.lanes)
                    if k
                    else [f"    (void){n}, (void){n}_lanes;"]
                )

    def _stepped(self) -> Iterator[str]:
        targets = [f"{n.name}_new" for n in self.block.state]
        yield from (f"    {n.declared(t)};" for n, t in zip(self.block.state, targets))
        outs = [t if n.type.shape else f"&{t}" for n, t in zip(self.block.state, targets)]
        given = self._passed([*self.one.inputs, *self.one.draws])
        yield self._call("update", [*self._state(), *given], outs)
        for n, t in zip(self.block.state, targets):
            whole = f"memcpy(self->{n.name}, {t}, sizeof self->{n.name});"
            yield f"    {whole if n.type.shape else f'self->{n.name} = {t};'}"


def _array(n: Named, kind: str) -> str:
    return f"    {kind} {n.name}_lanes[{max(n.size, 1)}];"


def _spread(target: str, rows: str, kind: str, count: int, lanes: int) -> Iterator[str]:
    """Rows, a learner each, to columns."""
    yield f"    for (int l = 0; l < {lanes}; ++l) {{"
    yield f"        const {kind} *const row = {rows} + (l < count ? l : count - 1) * {count};"
    yield f"        {kind} *const column = ({kind} *){target} + l;"
    yield f"        for (int i = 0; i < {count}; ++i) {{ column[i * {lanes}] = row[i]; }}"
    yield "    }"


def _collect(rows: str, source: str, count: int, lanes: int) -> Iterator[str]:
    """Columns to rows, for the lanes that have a learner."""
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
