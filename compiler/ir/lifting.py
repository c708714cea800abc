"""Pass: what a function computes from the same arguments at each of its calls is computed once by the caller, and passed.

A function that is called in a loop, or more than once, often works out the same norms and products every time. Those that depend only
on parameters that are one and the same value at every call of a caller move there, in front of the first call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from oco.compiler.ir.hoisting import STAY
from oco.compiler.ir.names import identifier
from oco.compiler.ir.ops import OPS
from oco.compiler.ir.program import Block, Equation, Function, Operand, Program, Var
from oco.compiler.ir.rewrite import all_functions, bound_names, map_functions, substitute


def lift(program: Program) -> Program:
    """Move computations that callers can do once out of functions, which take the results as arguments."""
    for function in reversed(program.functions):
        program = _lifted(program, function.name)
    return program


@dataclass(frozen=True)
class _Call:
    """A call: its arguments, whether it stands in a loop, and the place of the top-level equation that holds it."""

    args: tuple[Operand, ...]
    in_loop: bool
    place: int


def _lifted(program: Program, name: str) -> Program:
    function = next(f for f in program.functions if f.name == name)
    callers = {f.name: calls for f in all_functions(program) if (calls := list(_calls(f.body, name)))}
    same = set(range(len(function.body.params)))
    for f in all_functions(program):
        if f.name in callers:
            same &= _same(f, callers[f.name])
    moved = _movable(function, same)
    if not callers or not moved:
        return program
    names = {v.name for e in moved for v in e.outs}
    left = tuple(e for e in function.body.equations if e not in moved)
    read = {a.name for e in left for a in _operands(e)} | {r.name for r in function.body.results if isinstance(r, Var)}
    passed = [v for e in moved for v in e.outs if v.name in read & names]
    slim = replace(function, body=replace(function.body, params=(*function.body.params, *passed), equations=left))

    taken = {g.var.name for g in program.constants} | {g.name for g in program.functions}

    def changed(f: Function) -> Function:
        if f.name == name:
            return slim
        return _calling(f, callers[f.name], function, moved, passed, taken) if f.name in callers else f

    return map_functions(program, changed)


def _calls(block: Block, name: str) -> Iterator[_Call]:
    def inside(e: Equation, in_loop: bool, place: int) -> Iterator[_Call]:
        if e.op == "call" and e.attr("function") == name:
            yield _Call(e.args, in_loop, place)
        for b in e.blocks:
            for inner in b.equations:
                yield from inside(inner, in_loop or e.op in ("for", "while", "map"), place)

    for place, e in enumerate(block.equations):
        yield from inside(e, False, place)


def _same(caller: Function, calls: Sequence[_Call]) -> set[int]:
    """Places of the parameters that get the same value at every call, one that is known in front of the first."""
    if len(calls) < 2 and not calls[0].in_loop:
        return set()
    block = caller.body
    late = {v.name for e in block.equations[calls[0].place :] for v in e.outs}
    late |= {n for e in block.equations for b in e.blocks for n in bound_names(b)}
    first = calls[0].args
    return {
        k
        for k, a in enumerate(first)
        if all(c.args[k] == a for c in calls) and not (isinstance(a, Var) and a.name in late)
    }


def _movable(function: Function, same: set[int]) -> list[Equation]:
    """The equations that depend on these parameters alone and are worth it, with all that they need."""
    outside = {p.name for k, p in enumerate(function.body.params) if k not in same}
    free = list[Equation]()
    for e in function.body.equations:
        needs = [a.name for a in e.args if isinstance(a, Var)]
        if e.op in STAY or outside.intersection(needs) or not needs:
            outside |= {v.name for v in e.outs}
        else:
            free.append(e)
    wanted: set[str] = set()
    for e in reversed(free):
        if (e.op in OPS and OPS[e.op].expensive) or e.outs[0].name in wanted:
            wanted |= {v.name for v in e.outs} | {a.name for a in e.args if isinstance(a, Var)}
    return [e for e in free if e.outs[0].name in wanted]


def _operands(e: Equation) -> Iterator[Var]:
    yield from (a for a in e.args if isinstance(a, Var))
    for b in e.blocks:
        for inner in b.equations:
            yield from _operands(inner)
        yield from (r for r in b.results if isinstance(r, Var))


def _calling(
    f: Function,
    calls: Sequence[_Call],
    callee: Function,
    moved: Sequence[Equation],
    passed: Sequence[Var],
    global_names: set[str],
) -> Function:
    """The caller that computes what moved, in front of its first call."""
    taken = set(bound_names(f.body)) | global_names
    values: dict[str, Operand] = {p.name: a for p, a in zip(callee.body.params, calls[0].args)}
    for e in moved:
        for v in e.outs:
            values[v.name] = Var(identifier(v.name, taken), v.type)
            taken.add(values[v.name].name)  # type: ignore[union-attr]
    own = substitute(Block((), tuple(moved), ()), values).equations
    more = tuple(values[v.name] for v in passed)

    def call(e: Equation) -> Equation:
        if e.op == "call" and e.attr("function") == callee.name:
            return replace(e, args=(*e.args, *more))
        return replace(e, blocks=tuple(map(block, e.blocks))) if e.blocks else e

    def block(b: Block) -> Block:
        return replace(b, equations=tuple(map(call, b.equations)))

    body = block(f.body)
    place = calls[0].place
    equations = (*body.equations[:place], *own, *body.equations[place:])
    return replace(f, body=replace(body, equations=equations))
