"""Program as C99: a header with one struct of state, and a source file that needs libc and libm alone."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from textwrap import wrap

from oco.backends.c99 import library
from oco.backends.c99.arithmetic import EXACT, Arithmetic
from oco.backends.c99.changes import changes_of
from oco.backends.c99.constants import array_lines
from oco.backends.c99.entry_points import EntryPoints
from oco.backends.c99.functions import function_lines
from oco.backends.c99.interface import PUBLIC, Interface
from oco.backends.c99.names import module_name
from oco.backends.c99.return_codes import STATUS_NAMES, ReturnCodes, bytes_of_struct
from oco.backends.c99.ring import IN_TURN, Ring
from oco.backends.c99.single import in_floats
from oco.backends.c99.stack import stack_bytes
from oco.backends.c99.state import STATE_NAMES, state_lines, state_prototypes, state_size
from oco.backends.c99.vectors import is_vector
from oco.backends.c99.writer import Signature, comment
from oco.backends.contract import Contract
from oco.backends.identity import learner_hash
from oco.backends.past_horizon import ALONE, ANYTIME
from oco.backends.round_work import work_of
from oco.compiler.ir.flat_totals import flatten_totals
from oco.compiler.ir.lanes import LANE
from oco.compiler.ir.lower_bounds import LowerBounds
from oco.compiler.ir.mapping import rows_in_lanes
from oco.compiler.ir.names import identifier
from oco.compiler.ir.passes import divide_less, lower
from oco.compiler.ir.precision import in_single
from oco.compiler.ir.program import Block, Global, Program, Var
from oco.compiler.ir.rewrite import all_functions
from oco.compiler.ir.sums_in_parts import sum_in_parts
from oco.dsl.records import dataclass

WRITTEN_AS = {"uniform": "uniform on [0, 1)", "normal": "standard normal"}
"""Distributions of random arrays, in words."""


SHORT = 128
"""Entries of a row below which vectors of eight numbers are no quicker than those of four: more of a row is left over."""


@dataclass(frozen=True)
class CSource:
    """Header and source. `name` is the prefix of every global name in them; `ring` is there where feedback comes later."""

    name: str
    header: str
    code: str
    interface: Interface
    state_size: int
    ring: Ring | None = None


def emit(
    program: Program,
    contract: Contract,
    skip: Collection[str] = (),
    *,
    vectors: bool = False,
    arithmetic: Arithmetic = EXACT,
) -> CSource:
    """Header and source of a program; `skip` names passes to leave out. `vectors`: rows of maps stand side by side in vectors of GNU C."""
    single = arithmetic.single
    name, program = module_name(program.name), replace(program, slopes=None)
    program = in_single(program) if single else program
    rows = _row_lengths(program)
    program = sum_in_parts(flatten_totals(program))
    program = lower(rows_in_lanes(divide_less(program, skip), LANE) if vectors else program, skip)
    text, one = rule(program, f"{name}_{IN_TURN}" if contract.delay else name, arithmetic=arithmetic)
    ring = Ring(one, contract.delay + 1, contract.of_one_turn) if contract.delay else None
    interface = one if ring is None else ring.of
    identity = learner_hash(program, contract, single)
    status = ReturnCodes(interface, contract.algorithm, identity, ring.refusals if ring else {})
    own = [EntryPoints(one, contract.of_one_turn).lines(), state_lines(one, identity)]
    own += [ring.lines(), ring.state_lines()] if ring else []
    body = assembled(program, one, [*text, *(line for part in (*own, status.lines()) for line in part)])
    heads = [*one.prototypes(), *state_prototypes(one, state_size(one))] if ring else []
    if single:
        body, heads = (in_floats("\n".join(lines)).split("\n") for lines in (body, heads))
    title = [*_title(program, contract), *_costs(interface, contract, body, ring)]
    code = [
        *title,
        f'#include "{name}.h"',
        "",
        *(f"#include <{header}.h>" for header in ("float", "math", "stddef", "string")),
        "",
        *_to_compilers(rows | ({LANE} & _row_lengths(program))),
        "",
        *heads,
        *body,
    ]
    header = "\n".join(_header(interface, contract, status, ring))
    header = "\n".join([*title, in_floats(header) if single else header])
    size = ring.state_size if ring else state_size(one)
    return CSource(name, header, "\n".join(code).rstrip() + "\n", interface, size, ring)


def _costs(of: Interface, contract: Contract, body: Sequence[str], ring: Ring | None) -> Iterator[str]:
    """Comment on what a round takes: operations, stack and memory; and on rounds after the horizon."""
    if about := of.arithmetic.about:
        yield from ("/* " + "\n * ".join(wrap(about, 110)) + " */").split("\n")
    if contract.horizon is not None:
        yield f"/* After round {contract.horizon}: {ANYTIME if contract.anytime else ALONE}. */"
    work = work_of(of.program)
    rounds = [f"{of.name}_{name}" for name in ("prepare", "decide", "observe")]
    stack = max(stack_bytes(body, name) for name in rounds)
    yield f"/* A round: about {work.entries:,.0f} operations on numbers (loops that end by a test take as many turns as expected), at most"
    size = ring.bytes_of_struct if ring else bytes_of_struct(of)
    yield f" * {stack:,} bytes of stack beside what libm takes. A learner: {size:,} bytes. Nothing is allocated. */"


def _to_compilers(rows: Collection[int]) -> Iterator[str]:
    """Lines that tell gcc how to find vectors, by the lengths of rows: it takes a maximum of a minimum apart into branches before it
    looks for them.
    """
    yield "#if defined(__GNUC__) && !defined(__clang__)"
    yield '#pragma GCC optimize("no-thread-jumps") /* a maximum of a minimum is two instructions, and no branches */'
    if max(rows, default=0) < SHORT:
        yield "#if defined(__AVX512F__)"
        yield '#pragma GCC target("prefer-vector-width=256") /* rows are short */'
        yield "#endif"
    yield "#endif"


def _row_lengths(program: Program) -> set[int]:
    """Lengths of the rows of a program's arrays."""
    return {n for f in all_functions(program) for v in _bound(f.body) for n in v.type.shape[-1:]}


def _bound(block: Block) -> Iterator[Var]:
    """Variables that a block binds, those inside it included."""
    yield from block.params
    for e in block.equations:
        yield from e.outs
        for inner in e.blocks:
            yield from _bound(inner)


def assembled(program: Program, interface: Interface, lines: Sequence[str]) -> list[str]:
    """Constants and functions of the library that the lines use, then the lines."""
    used = set(re.findall(r"\w+", "\n".join(lines)))
    names = _constant_names(program, interface.name)
    own = [g for g in program.constants if names[g.var.name] in used]
    constants = [line for g in own for line in _constant(g, names[g.var.name])]
    return [*constants, "", *library.linked(lines, interface.name, interface.arithmetic.pieces)]


@cache
def _taken() -> frozenset[str]:
    """Names of functions that identifiers of a program must not have."""
    return library.names() | {*PUBLIC, *STATE_NAMES, *STATUS_NAMES}


def _constant_names(program: Program, prefix: str) -> dict[str, str]:
    """C names of a program's constants: those of the program, where no function has them."""
    own = {g.var.name for g in program.constants}
    return {n: f"{prefix}_{identifier(n, _taken() | own - {n})}" for n in own}


def _constant(made: Global, name: str) -> Iterator[str]:
    if made.why:
        yield f"/* {comment(made.why)} */"
    yield from array_lines(name, made.var.type, made.value)


def rule(
    program: Program, prefix: str, mixed: bool = False, arithmetic: Arithmetic = EXACT
) -> tuple[list[str], Interface]:
    """Lines of the program's functions, with their signatures."""
    signatures: dict[str, Signature] = {}
    constants = _constant_names(program, prefix)
    changes = [changes_of(program, f) for f in (program.prepare, program.update) if f is not None]
    own = (program.init, program.decide, *(c.function for c in changes), program.measure, program.certificate)
    entries = [f for f in own if f is not None]
    unwritten = {c.function.name: c.unwritten for c in changes}
    lines: list[str] = []
    inputs, bounds = _inputs(program), LowerBounds(program)
    for function in (*program.functions, *entries):
        called = f"rule_{function.name}" if function in entries else identifier(function.name, _taken())
        wide = mixed or any(is_vector(p.type) for p in function.body.params)
        left = unwritten.get(function.name, frozenset()) if function in entries else frozenset()
        rows = inputs if function in (c.function for c in changes) else ()
        least = partial(bounds.least, function.name)
        given = constants, signatures, wide, left, arithmetic, rows, least
        written = function_lines(function, f"{prefix}_{called}", *given)
        text, signatures[function.name] = written
        lines += [*text, ""]
    return lines, Interface(prefix, program, signatures, arithmetic)


def _inputs(program: Program) -> frozenset[str]:
    """Names of the update's parameters that are data which the round reveals."""
    params = program.update.body.params[len(program.state) :]
    return frozenset(p.name for p, f in zip(params, program.feedback) if f in program.revealed)


def _header(interface: Interface, contract: Contract, status: ReturnCodes, ring: Ring | None) -> Iterator[str]:
    guard = f"OCO_{interface.name.upper()}_H"
    yield from (f"#ifndef {guard}", f"#define {guard}", "", "#include <stdbool.h>", "#include <stdint.h>", "")
    yield from ("#ifdef __cplusplus", 'extern "C" {', "#endif", "")
    own = ring or interface
    yield from own.struct()
    yield ""
    yield from _drawn(interface, contract)
    yield from own.prototypes()
    yield from state_prototypes(interface, ring.state_size if ring else state_size(interface))
    yield from status.header()
    yield from ("#ifdef __cplusplus", "}", "#endif", "", "#endif", "")


def _drawn(interface: Interface, contract: Contract) -> Iterator[str]:
    """Comment on the rule's random draws with their distributions."""
    if not interface.draws:
        return
    yield "/* The caller draws for each round anew, independent of all else, and gives decide and observe of one round the same:"
    for n in interface.draws:
        distribution = WRITTEN_AS[contract.distributions.get(n.field.name, "uniform")]
        count = " x ".join(map(str, n.type.shape))
        yield f" *     {n.name}: {f'{count} numbers' if count else 'a number'}, {distribution}; {comment(n.field.doc)}"
    if any(n.field.name == "second_loss" for n in interface.inputs):
        yield " * The second point of the round, whose loss is second_loss, is what decide gives with all these numbers negated."
    yield from (" */", "")


def _title(program: Program, contract: Contract) -> Iterator[str]:
    yield f"/* {comment(program.name)}: decisions round by round with the algorithm {comment(contract.algorithm)}."
    if contract.cite:
        yield f" * {comment(contract.cite)}"
    yield " *"
    yield from (f" *     {_model_line(line)}".rstrip() for line in contract.text.splitlines())
    yield " *"
    yield from (f" * {comment(line)}" for line in contract.guarantee)
    yield " */"


def _model_line(text: str) -> str:
    """A line of the model within a comment, with its spaces."""
    shown = "".join(c if c.isprintable() else " " for c in text)
    return shown.replace("*/", "* /").replace("/*", "/ *").replace("??/", "? ?/").removesuffix("\\")
