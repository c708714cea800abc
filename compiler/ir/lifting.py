"""Pass: what a function computes from the same arguments at each of its calls is computed once by the caller, and passed.

A function that is called in a loop, or more than once, often works out the same norms and products every time. Those that depend only
on parameters that are one and the same value at every call of a caller move there, in front of the first call.

Where every operation is a call, each array that is computed so is worth passing, through callers that call but once too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from oco.compiler.ir.hoisting import STAY
from oco.compiler.ir.names import identifier, is_temporary
from oco.compiler.ir.ops import OPS
from oco.compiler.ir.program import Block, DType, Equation, Function, Operand, Program, Var
from oco.compiler.ir.rewrite import all_functions, bound_names, map_functions, substitute
from oco.compiler.ir.words import word_in


def lift(program: Program) -> Program:
    """Move computations that callers can do once out of functions, which take the results as arguments."""
    table = _CallTable()
    for function in reversed(program.functions):
        callers = table.callers(program, function.name)
        program = _lifted(
            program, function.name, callers, _same_in_callers(program, function.name, callers), _is_expensive
        )
    return program


def lift_arrays(program: Program) -> Program:
    """Move every array that a caller, or one of its own callers, can compute once out of functions."""
    table = _CallTable()
    for function in program.functions:  # callers come after those that they call, and what moved there may move on
        steady = _steady(program, function.name, table)
        program = _lifted(program, function.name, table.callers(program, function.name), steady, _makes_array)
    return program


def _is_expensive(e: Equation) -> bool:
    return e.op in OPS and OPS[e.op].expensive


def _makes_array(e: Equation) -> bool:
    made = e.outs[0].type
    return e.op in OPS and bool(made.shape) and made.dtype is DType.FLOAT and not OPS[e.op].view


@dataclass(frozen=True)
class _Call:
    """A call: its arguments, whether it stands in a loop, and the place of the top-level equation that holds it."""

    args: tuple[Operand, ...]
    in_loop: bool
    place: int


def _spoken(function: Function, passed: Sequence[Var], global_names: set[str]) -> dict[str, Var]:
    """Parameters in the place of temporary variables, named by their word."""
    taken = set(bound_names(function.body)) | global_names
    result = dict[str, Var]()
    for v in passed:
        if is_temporary(v.name) and (word := word_in(v.name)):
            result[v.name] = Var(identifier(word, taken), v.type)
            taken.add(result[v.name].name)
    return result


class _CallTable:
    """Calls in each function of a program by the function called, looked for again where a function is another."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[Function, dict[str, list[_Call]]]] = {}

    def callers(self, program: Program, name: str) -> dict[str, list[_Call]]:
        """Calls of a function by the caller's name."""
        return {f.name: calls for f in all_functions(program) if (calls := self._calls_in(f).get(name))}

    def _calls_in(self, function: Function) -> dict[str, list[_Call]]:
        seen, calls = self._seen.get(function.name, (None, {}))
        if seen is not function:
            calls = {}
            for called, call in _calls(function.body):
                calls.setdefault(called, []).append(call)
            self._seen[function.name] = function, calls
        return calls


def _same_in_callers(program: Program, name: str, callers: Mapping[str, Sequence[_Call]]) -> set[int]:
    """Places of the parameters that get the same value at every call of each caller, one that is known in front of the first."""
    functions = {f.name: f for f in all_functions(program)}
    same = set(range(len(functions[name].body.params)))
    for caller, calls in callers.items():
        same &= _same(functions[caller], calls)
    return same


def _steady(program: Program, name: str, table: _CallTable) -> set[int]:
    """Places of those of `_same_in_callers`, and of those for which the one call of a caller hands on steady parameters of its own."""
    functions, entries = {f.name: f for f in all_functions(program)}, {f.name for f in program.entries}
    same = set(range(len(functions[name].body.params)))
    for caller, calls in table.callers(program, name).items():
        own = _same(functions[caller], calls)
        if len(calls) == 1 and caller not in entries:
            params, steady = functions[caller].body.params, _steady(program, caller, table)
            handed_on = {params[k].name for k in steady}
            own |= {k for k, a in enumerate(calls[0].args) if isinstance(a, Var) and a.name in handed_on}
        same &= own
    return same


def _lifted(
    program: Program,
    name: str,
    callers: Mapping[str, Sequence[_Call]],
    same: set[int],
    moves: Callable[[Equation], bool],
) -> Program:
    """The program where what this function makes of these parameters alone, and is worth it, is made by its callers."""
    function = next(f for f in program.functions if f.name == name)
    moved = _movable(function, same, moves)
    if not callers or not moved:
        return program
    names = {v.name for e in moved for v in e.outs}
    left = tuple(e for e in function.body.equations if all(v.name not in names for v in e.outs))
    read = {a.name for e in left for a in _operands(e)} | {r.name for r in function.body.results if isinstance(r, Var)}
    passed = [v for e in moved for v in e.outs if v.name in read & names]
    taken = {g.var.name for g in program.constants} | {g.name for g in program.functions}
    spoken = _spoken(function, passed, taken)
    body = substitute(Block((), left, function.body.results), spoken)
    params = (*function.body.params, *(spoken.get(v.name, v) for v in passed))
    slim = replace(function, body=replace(body, params=params))

    def changed(f: Function) -> Function:
        if f.name == name:
            return slim
        return _calling(f, callers[f.name], function, moved, passed, taken) if f.name in callers else f

    return map_functions(program, changed)


def _calls(block: Block) -> Iterator[tuple[str, _Call]]:
    """Names of the functions that a block calls, with the calls."""

    def inside(e: Equation, in_loop: bool, place: int) -> Iterator[tuple[str, _Call]]:
        if e.op == "call":
            yield e.attr("function"), _Call(e.args, in_loop, place)
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


def _movable(function: Function, same: set[int], moves: Callable[[Equation], bool]) -> list[Equation]:
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
        if moves(e) or e.outs[0].name in wanted:
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
