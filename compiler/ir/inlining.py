"""Pass: a function over long arrays that is called at one place is written there (for targets with explicit loops).

Its loops then share passes over memory with those beside it, arrays that it would copy are taken as they are, and data of the next round
may be asked for while it computes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection
from dataclasses import replace

from oco.compiler.ir.loop_groups import LONG
from oco.compiler.ir.names import identifier
from oco.compiler.ir.program import Block, Equation, Function, Operand, Program, Var
from oco.compiler.ir.rewrite import all_functions, blocks_of, bound_names, equations_of, map_functions, substitute

MOST_ENTRIES = 4096
"""Entries of an array above which functions that are not needed at once take turns in the same memory."""


def inline_single_calls(program: Program) -> Program:
    """Write functions that call none in the place of their only calls, where these stand outside loops in what others call."""
    everywhere = Counter(
        e.attr("function") for f in all_functions(program) for e in equations_of(f.body) if e.op == "call"
    )
    once = {e.attr("function") for f in program.entries for e in f.body.equations if e.op == "call"}
    for function in program.functions:
        if everywhere[function.name] == 1 and function.name in once and _pays(function):
            program = _without(program, function)
    return program


def _pays(function: Function) -> bool:
    """True where a function calls none, has long arrays, and none that is very large."""
    equations = [*equations_of(function.body)]
    sizes = [math.prod(v.type.shape) for v in (*function.body.params, *(v for e in equations for v in e.outs))]
    return all(e.op != "call" for e in equations) and LONG <= max(sizes, default=0) <= MOST_ENTRIES


def _without(program: Program, function: Function) -> Program:
    """The program with this function in the place of its call."""
    taken = {g.var.name for g in program.constants} | {f.name for f in program.functions}
    left = replace(program, functions=tuple(f for f in program.functions if f.name != function.name))
    return map_functions(left, lambda f: replace(f, body=_inlined(f.body, function, {*taken, *bound_names(f.body)})))


def _inlined(block: Block, function: Function, taken: Collection[str]) -> Block:
    """A block with the body of a function in the place of a call of it."""
    for k, e in enumerate(block.equations):
        if e.op == "call" and e.attr("function") == function.name:
            own, values = _body(e, function, taken)
            rest = substitute(Block((), block.equations[k + 1 :], block.results), values)
            return Block(block.params, (*block.equations[:k], *own, *rest.equations), rest.results)
    return block


def _body(call: Equation, function: Function, taken: Collection[str]) -> tuple[list[Equation], dict[str, Operand]]:
    """Equations of a call, and what stands for its results."""
    body, used = function.body, set(taken)
    values: dict[str, Operand] = {p.name: a for p, a in zip(body.params, call.args, strict=True)}
    made = {v.name for e in body.equations for v in e.outs}
    for out, result in zip(call.outs, body.results, strict=True):
        if isinstance(result, Var) and result.name in made:
            values.setdefault(result.name, out)
    for v in (v for b in blocks_of(body) for v in (*b.params, *(v for e in b.equations for v in e.outs))):
        if v.name not in values:
            values[v.name] = Var(identifier(v.name, used), v.type)
            used.add(values[v.name].name)  # type: ignore[union-attr]
    own = list(substitute(Block((), body.equations, ()), values).equations)
    if own:
        notes = [n for n in (call.note, function.doc.removesuffix("."), own[0].note) if n]
        own[0] = replace(own[0], note="; ".join(notes))
    stands = {o.name: values.get(r.name, r) if isinstance(r, Var) else r for o, r in zip(call.outs, body.results)}
    return own, stands
