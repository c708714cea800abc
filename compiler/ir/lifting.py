"""Pass: what a function computes from the same arguments at each of its calls is computed once by the caller, and passed.

A function that is called in a loop, or more than once, often works out the same norms and products every time. Those that depend only
on parameters that are one and the same value at every call of a caller move there, in front of the first call.

Where every operation is a call, each array that is computed so is worth passing, through callers that call but once too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from oco.compiler.ir.hoisting import STAY
from oco.compiler.ir.names import identifier, is_temporary
from oco.compiler.ir.ops import OPS
from oco.compiler.ir.program import Block, DType, Equation, Function, Operand, Program, Var
from oco.compiler.ir.rewrite import all_functions, bound_names, map_functions, substitute
from oco.compiler.ir.words import word_in
from oco.dsl.records import dataclass


def lift(program: Program) -> Program:
    """Move computations that callers can do once out of functions, which take the results as arguments."""
    calls = _CallTable()
    for function in reversed(program.functions):
        same = _same_in_callers(program, function.name, calls)
        program = _lifted(program, function.name, same, _is_expensive, calls)
    return program


def lift_arrays(program: Program) -> Program:
    """Move every array that a caller, or one of its own callers, can compute once out of functions."""
    calls = _CallTable()
    for function in program.functions:  # callers come after those that they call, and what moved there may move on
        same = _steady(program, function.name, calls)
        program = _lifted(program, function.name, same, _makes_array, calls)
    return program


def _is_expensive(e: Equation) -> bool:
    return e.op in OPS and OPS[e.op].expensive


def _makes_array(e: Equation) -> bool:
    made = e.outs[0].type
    return e.op in OPS and bool(made.shape) and made.dtype is not DType.INT and not OPS[e.op].view


@dataclass(frozen=True)
class _Call:
    """A call: its arguments, whether it stands in a loop, and the place of the top-level equation that holds it."""

    args: tuple[Operand, ...]
    in_loop: bool
    place: int


class _CallTable:
    """Calls in each function by the name of what is called, found once for a function that stays as it is."""

    def __init__(self) -> None:
        self._tables: dict[int, tuple[Function, dict[str, list[_Call]]]] = {}

    def callers(self, program: Program, name: str) -> dict[str, list[_Call]]:
        """Calls of a function by the name of its caller."""
        return {f.name: calls for f in all_functions(program) if (calls := self._within(f).get(name))}

    def _within(self, f: Function) -> dict[str, list[_Call]]:
        if id(f) not in self._tables:
            self._tables[id(f)] = f, _calls(f.body)
        return self._tables[id(f)][1]


def _spoken(function: Function, passed: Sequence[Var], global_names: set[str]) -> dict[str, Var]:
    """Parameters in the place of temporary variables, named by their word."""
    taken = set(bound_names(function.body)) | global_names
    result = dict[str, Var]()
    for v in passed:
        if is_temporary(v.name) and (word := word_in(v.name)):
            result[v.name] = Var(identifier(word, taken), v.type)
            taken.add(result[v.name].name)
    return result


def _same_in_callers(program: Program, name: str, calls: _CallTable) -> set[int]:
    """Places of the parameters that get the same value at every call of each caller, one that is known in front of the first."""
    functions = {f.name: f for f in all_functions(program)}
    same = set(range(len(functions[name].body.params)))
    for caller, own in calls.callers(program, name).items():
        same &= _same(functions[caller], own)
    return same


def _steady(program: Program, name: str, calls: _CallTable) -> set[int]:
    """Places of those of `_same_in_callers`, and of those for which the one call of a caller hands on steady parameters of its own."""
    functions, entries = {f.name: f for f in all_functions(program)}, {f.name for f in program.entries}
    same = set(range(len(functions[name].body.params)))
    for caller, own_calls in calls.callers(program, name).items():
        own = _same(functions[caller], own_calls)
        if len(own_calls) == 1 and caller not in entries:
            params, steady = functions[caller].body.params, _steady(program, caller, calls)
            handed_on = {params[k].name for k in steady}
            own |= {k for k, a in enumerate(own_calls[0].args) if isinstance(a, Var) and a.name in handed_on}
        same &= own
    return same


def _lifted(
    program: Program, name: str, same: set[int], moves: Callable[[Equation], bool], calls: _CallTable
) -> Program:
    """The program where what this function makes of these parameters alone, and is worth it, is made by its callers."""
    function, callers = next(f for f in program.functions if f.name == name), calls.callers(program, name)
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
    slim = function.having(replace(body, params=params))

    def changed(f: Function) -> Function:
        if f.name == name:
            return slim
        return _calling(f, callers[f.name], function, moved, passed, taken) if f.name in callers else f

    return map_functions(program, changed)


def _calls(block: Block) -> dict[str, list[_Call]]:
    """Calls in a block and in the blocks inside it, in order, by the name of what is called."""
    by_name = dict[str, list[_Call]]()

    def add(e: Equation, in_loop: bool, place: int) -> None:
        if e.op == "call":
            by_name.setdefault(e.attr("function"), []).append(_Call(e.args, in_loop, place))
        for b in e.blocks:
            for inner in b.equations:
                add(inner, in_loop or e.op in ("for", "while", "map"), place)

    for place, e in enumerate(block.equations):
        add(e, False, place)
    return by_name


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
        return e.having(e.args, tuple(map(block, e.blocks))) if e.blocks else e

    def block(b: Block) -> Block:
        return b.having(tuple(map(call, b.equations)))

    body = block(f.body)
    place = calls[0].place
    equations = (*body.equations[:place], *own, *body.equations[place:])
    return f.having(replace(body, equations=equations))
