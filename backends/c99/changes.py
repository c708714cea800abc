"""Changes of a state by a function of the program: what it computes anew, what in one row alone, and what only now and then.

A step copies what it has computed into the learner once all of it is finite. So that a large array costs what changes of it, a result
`put(x, row, i)` of the field x is given as the row and its place, and a result `if c: ... else: x` is left unwritten where c is false.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from oco.compiler.ir.program import Equation, Function, Operand, Program, Var
from oco.compiler.ir.rewrite import read_by
from oco.dsl.records import dataclass


@dataclass(frozen=True)
class Change:
    """Change of the field at a place of the state.

    result  what is computed: the field, or a row of it
    row     places of the row, one for each leading axis; none where it is the whole field
    when    number among the conditions of `Changes`, of the one under which it changes; None: always
    """

    place: int
    result: Operand
    row: tuple[Operand, ...] = ()
    when: int | None = None


@dataclass(frozen=True)
class Changes:
    """Function whose results are those of the changes in their order, with their places, then the conditions.

    unwritten  names of results that the function leaves as they are where their condition is false
    """

    function: Function
    changes: tuple[Change, ...]
    conditions: tuple[Operand, ...]
    unwritten: frozenset[str]


def changes_of(program: Program, function: Function) -> Changes:
    """Changes of a program's state by one of its functions from state to state."""
    block = function.body
    made = {v.name: e for e in block.equations for v in e.outs}
    reads = Counter(read_by(block))
    changes, conditions, dropped, unwritten = list[Change](), list[Operand](), set[str](), set[str]()
    for k, (field, result) in enumerate(zip(block.params, block.results[: len(program.state)])):
        if isinstance(result, Var) and result.name == field.name:
            continue
        own = made.get(result.name) if isinstance(result, Var) and reads[result.name] == 1 else None
        if own is not None and _is_row(own, field):
            assert isinstance(result, Var)
            changes.append(Change(k, own.args[1], own.args[2:]))
            dropped.add(result.name)
        elif own is not None and isinstance(result, Var) and _is_kept_else(own, result, field):
            if own.args[0] not in conditions:
                conditions.append(own.args[0])
            changes.append(Change(k, result, (), conditions.index(own.args[0])))
            unwritten.add(result.name)
        else:
            changes.append(Change(k, result))
    names = [n for c in changes for n in (_name(function, c), *("place" for _ in c.row))]
    results = (*(r for c in changes for r in (c.result, *c.row)), *conditions)
    equations = tuple(e for e in block.equations if not (len(e.outs) == 1 and e.outs[0].name in dropped))
    body = replace(block, equations=equations, results=results)
    given = replace(function, body=body, result_names=(*names, *("changes" for _ in conditions)))
    return Changes(given, tuple(changes), tuple(conditions), frozenset(unwritten))


def _name(function: Function, change: Change) -> str:
    return function.result_names[change.place] if change.place < len(function.result_names) else ""


def _is_row(e: Equation, field: Var) -> bool:
    """True for `put(field, row, i, ...)` with a row for each leading axis."""
    if e.op != "put" or not isinstance(e.args[0], Var) or e.args[0].name != field.name:
        return False
    _, value, *places = e.args
    return value.type.shape == field.type.shape[len(places) :] and not any(p.type.shape for p in places)


def _is_kept_else(e: Equation, result: Var, field: Var) -> bool:
    """True where a result is that of a branch whose other side is the field as it was."""
    if e.op != "if" or not result.type.shape or not isinstance(e.args[0], Var):
        return False
    other = e.blocks[1].results[[v.name for v in e.outs].index(result.name)]
    return isinstance(other, Var) and other.name == field.name
