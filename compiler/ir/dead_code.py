"""Pass: leave out what nobody reads: equations, results of branches and loops, functions that are not called, constants."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from oco.compiler.ir.program import Block, Equation, Function, Global, Operand, Program, Var
from oco.compiler.ir.rewrite import LeftAlone, equations_of, keep_notes, map_functions, read_by


def remove_dead_code(program: Program, left_alone: LeftAlone | None = None) -> Program:
    """Remove equations, parameters, functions and constants that no result depends on."""
    left_alone = left_alone or LeftAlone()
    while True:
        program = map_functions(program, lambda f: f.having(_live(f.body)[0]), left_alone)
        fewer = _without_unread_parameters(program)
        if fewer is program:
            break
        program = fewer
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


def with_one_entry(program: Program, entry: Function) -> Program:
    """Program with one entry, and what that calls and reads: in the places of those that every program has is an empty one."""
    functions, constants = used_by(program, [entry])
    empty = Function("nothing", Block((), (), ()))

    def kept(f: Function | None) -> Function | None:
        return f if f is entry else None

    return replace(
        program,
        functions=functions,
        constants=constants,
        init=kept(program.init) or empty,
        decide=kept(program.decide) or empty,
        update=kept(program.update) or empty,
        measure=kept(program.measure),
        slopes=kept(program.slopes),
        prepare=kept(program.prepare),
        certificate=kept(program.certificate),
    )


def _without_unread_parameters(program: Program) -> Program:
    """Functions take what they read; the very program if all do."""
    kept: dict[str, list[int]] = {}
    for f in program.functions:
        read = set(read_by(f.body))
        places = [k for k, p in enumerate(f.body.params) if p.name in read]
        if len(places) < len(f.body.params):
            kept[f.name] = places
    if not kept:
        return program

    def block(b: Block) -> Block:
        return b.having(tuple(map(equation, b.equations)))

    def equation(e: Equation) -> Equation:
        if e.op == "call" and e.attr("function") in kept:
            return e.having(tuple(e.args[k] for k in kept[e.attr("function")]))
        return e.having(e.args, tuple(map(block, e.blocks))) if e.blocks else e

    def function(f: Function) -> Function:
        body = block(f.body)
        if f.name in kept:
            body = replace(body, params=tuple(body.params[k] for k in kept[f.name]))
        return f.having(body)

    return map_functions(program, function)


def _calls(block: Block) -> list[str]:
    return [e.attr("function") for e in equations_of(block) if e.op == "call"]


def _names(operands: Iterable[Operand]) -> set[str]:
    return {o.name for o in operands if isinstance(o, Var)}


def _live(block: Block) -> tuple[Block, set[str]]:
    """Rest of a block, and the names that it reads. Backwards from the results: an equation stays if one of its results is read later."""
    live = _names(block.results)
    kept: list[tuple[Equation, bool]] = []
    for e in reversed(block.equations):
        stays = e.outs[0].name in live if len(e.outs) == 1 else any(v.name in live for v in e.outs)
        if stays:
            if e.blocks:
                e, within = _equation(e, live)
                live |= within
            for a in e.args:
                if isinstance(a, Var):
                    live.add(a.name)
        kept.append((e, stays))
    return block.having(keep_notes(reversed(kept))), live


def _equation(e: Equation, live: set[str]) -> tuple[Equation, set[str]]:
    """Rest of an equation with blocks, and the names that its blocks read."""
    match e.op:
        case "if":
            places = [k for k, v in enumerate(e.outs) if v.name in live]
            sides = [_live(Block((), b.equations, tuple(b.results[k] for k in places))) for b in e.blocks]
            blocks, read = zip(*sides)
            return replace(e, outs=tuple(e.outs[k] for k in places), blocks=blocks), set[str]().union(*read)
        case "for" | "while":
            return _loop(e, live)
        case "map":
            return _map(e, live)
        case _:
            return e, {name for b in e.blocks for name in read_by(b)}


def _loop(e: Equation, live: set[str]) -> tuple[Equation, set[str]]:
    """A loop carries what is read after it, and what that, or the condition, depends on from turn to turn."""
    first = 1 if e.op == "for" else 0
    body = e.blocks[-1]
    needed = {k for k, v in enumerate(e.outs) if v.name in live}
    if e.op == "while":
        needed |= _places(e.blocks[0].params, _live(e.blocks[0])[1])
    while True:
        pruned, read = _live(_carrying(body, needed, first))
        grown = needed | _places(body.params[first:], read)
        if grown == needed:
            break
        needed = grown
    order = sorted(needed)
    blocks: list[Block] = []
    if e.op == "while":
        condition, asked = _live(e.blocks[0])
        blocks = [replace(condition, params=tuple(condition.params[k] for k in order))]
        read |= asked
    args = (*e.args[:first], *(e.args[first + k] for k in order))
    return replace(e, outs=tuple(e.outs[k] for k in order), args=args, blocks=(*blocks, pruned)), read


def _map(e: Equation, live: set[str]) -> tuple[Equation, set[str]]:
    """Results that are read, from the rows that they need; of one argument at least, which has the number of rows."""
    (body,), results = e.blocks, [k for k, v in enumerate(e.outs) if v.name in live]
    pruned, read = _live(replace(body, results=tuple(body.results[k] for k in results)))
    needed = sorted(_places(body.params, read) or {0})
    block = replace(pruned, params=tuple(body.params[k] for k in needed))
    outs, args = tuple(e.outs[k] for k in results), tuple(e.args[k] for k in needed)
    return replace(e, outs=outs, args=args, blocks=(block,)), read


def _carrying(body: Block, needed: set[int], first: int) -> Block:
    order = sorted(needed)
    params = (*body.params[:first], *(body.params[first + k] for k in order))
    return Block(params, body.equations, tuple(body.results[k] for k in order))


def _places(params: Iterable[Var], names: set[str]) -> set[int]:
    return {k for k, p in enumerate(params) if p.name in names}
