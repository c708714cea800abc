"""Pass: leave out what nobody reads: equations, results of branches and loops, functions that are not called, constants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from oco.compiler.ir.program import Block, Equation, Function, Global, Operand, Program, Var
from oco.compiler.ir.rewrite import all_functions, equations_of, keep_notes, map_functions, read_by


def remove_dead_code(program: Program) -> Program:
    """Remove equations, parameters, functions and constants that no result depends on."""
    read: dict[str, set[str]] = {}

    def pruned(f: Function) -> Function:
        if f.name not in changed:
            return f
        body, read[f.name] = _block(f.body)
        return replace(f, body=body)

    changed = {f.name for f in all_functions(program)}
    while changed:
        program = map_functions(program, pruned)
        program, changed = _without_unread_parameters(program, read)
    functions, constants = used_by(program, program.entries)
    return replace(program, functions=functions, constants=constants)


def used_by(program: Program, entries: Sequence[Function]) -> tuple[tuple[Function, ...], tuple[Global, ...]]:
    """The functions that these entries call, at first or second hand, and the constants that all of them read."""
    called = {f.name: _calls(f.body) for f in program.functions}
    live: set[str] = set()
    waiting = [name for f in entries for name in _calls(f.body)]
    while waiting:
        name = waiting.pop()
        if name not in live:
            live.add(name)
            waiting += called[name]
    functions = tuple(f for f in program.functions if f.name in live)
    read = {name for f in (*functions, *entries) for name in read_by(f.body)}
    return functions, tuple(g for g in program.constants if g.var.name in read)


def _without_unread_parameters(program: Program, read: Mapping[str, set[str]]) -> tuple[Program, set[str]]:
    """Functions take what they read, by the name of the function; with the names of those that became others so."""
    kept: dict[str, list[int]] = {}
    for f in program.functions:
        places = [k for k, p in enumerate(f.body.params) if p.name in read[f.name]]
        if len(places) < len(f.body.params):
            kept[f.name] = places
    if not kept:
        return program, set()
    changed = {f.name for f in all_functions(program) if f.name in kept or not kept.keys().isdisjoint(_calls(f.body))}

    def block(b: Block) -> Block:
        return replace(b, equations=tuple(map(equation, b.equations)))

    def equation(e: Equation) -> Equation:
        if e.op == "call" and e.attr("function") in kept:
            return replace(e, args=tuple(e.args[k] for k in kept[e.attr("function")]))
        return replace(e, blocks=tuple(map(block, e.blocks))) if e.blocks else e

    def function(f: Function) -> Function:
        if f.name not in changed:
            return f
        body = block(f.body)
        if f.name in kept:
            body = replace(body, params=tuple(body.params[k] for k in kept[f.name]))
        return replace(f, body=body)

    return map_functions(program, function), changed


def _calls(block: Block) -> list[str]:
    return [e.attr("function") for e in equations_of(block) if e.op == "call"]


def _names(operands: Iterable[Operand]) -> set[str]:
    return {o.name for o in operands if isinstance(o, Var)}


def _block(block: Block) -> tuple[Block, set[str]]:
    """Backwards from the results: an equation stays if one of its results is read later. With the names that are read in what stays."""
    live = _names(block.results)
    kept: list[tuple[Equation, bool]] = []
    for e in reversed(block.equations):
        stays = any(v.name in live for v in e.outs)
        if stays:
            if e.blocks:
                e, inside = _equation(e, live)
                live |= inside
            live |= _names(e.args)
        kept.append((e, stays))
    return Block(block.params, keep_notes(reversed(kept)), block.results), live


def _equation(e: Equation, live: set[str]) -> tuple[Equation, set[str]]:
    """The equation with those of its results that are read later, and the names that its blocks read."""
    match e.op:
        case "if":
            read = [k for k, v in enumerate(e.outs) if v.name in live]
            blocks = [_block(Block((), b.equations, tuple(b.results[k] for k in read))) for b in e.blocks]
            kept = replace(e, outs=tuple(e.outs[k] for k in read), blocks=tuple(block for block, _ in blocks))
            return kept, set().union(*(names for _, names in blocks))
        case "for" | "while":
            return _loop(e, live)
        case "map":
            return _map(e, live)
        case _:
            return e, {name for inner in e.blocks for name in read_by(inner)}


def _loop(e: Equation, live: set[str]) -> tuple[Equation, set[str]]:
    """A loop carries what is read after it, and what that, or the condition, depends on from turn to turn."""
    first = 1 if e.op == "for" else 0
    body = e.blocks[-1]
    needed = {k for k, v in enumerate(e.outs) if v.name in live}
    conditions: tuple[Block, ...] = ()
    asked: set[str] = set()
    if e.op == "while":
        condition, asked = _block(e.blocks[0])
        needed |= _places(condition.params, asked)
    while True:
        pruned, read = _block(_carrying(body, needed, first))
        grown = needed | _places(body.params[first:], read)
        if grown == needed:
            break
        needed = grown
    order = sorted(needed)
    if e.op == "while":
        conditions = (replace(condition, params=tuple(condition.params[k] for k in order)),)
    args = (*e.args[:first], *(e.args[first + k] for k in order))
    kept = replace(e, outs=tuple(e.outs[k] for k in order), args=args, blocks=(*conditions, pruned))
    return kept, read | asked


def _map(e: Equation, live: set[str]) -> tuple[Equation, set[str]]:
    """Results that are read, from the rows that they need; of one argument at least, which has the number of rows."""
    (body,), outs = e.blocks, [k for k, v in enumerate(e.outs) if v.name in live]
    pruned, read = _block(replace(body, results=tuple(body.results[k] for k in outs)))
    needed = sorted(_places(body.params, read) or {0})
    block = replace(pruned, params=tuple(body.params[k] for k in needed))
    args = tuple(e.args[k] for k in needed)
    return replace(e, outs=tuple(e.outs[k] for k in outs), args=args, blocks=(block,)), read


def _carrying(body: Block, needed: set[int], first: int) -> Block:
    order = sorted(needed)
    params = (*body.params[:first], *(body.params[first + k] for k in order))
    return Block(params, body.equations, tuple(body.results[k] for k in order))


def _places(params: Iterable[Var], names: set[str]) -> set[int]:
    return {k for k, p in enumerate(params) if p.name in names}
