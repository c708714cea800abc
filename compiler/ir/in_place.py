"""Loops that replace entries of an array: where a turn may write them into the array of the turn before."""

from __future__ import annotations

from collections.abc import Sequence

from oco.compiler.ir.ops import POINTWISE
from oco.compiler.ir.program import Block, Equation, Operand, Var
from oco.compiler.ir.rewrite import read_by

MAY_SHARE = POINTWISE | {"entries", "call", "if", "for", "while", "map"}
"""Operations whose results may be computed later, or lie where an argument lies; reductions and `put` have places of their own."""


def replaced_in_place(body: Block, params: Sequence[Var], *, at_once: bool = False) -> dict[str, int]:
    """Results of `put`, by name, that may be written where the loop's variable lies that they are made of, with its number.

    `params` are those of the variables. A variable is changed so where its next value is made of it by `put` alone, and nothing after the
    first of these needs the value before.
    """
    made = {v.name: k for k, e in enumerate(body.equations) for v in e.outs}
    results: dict[str, int] = {}
    for place, (param, last) in enumerate(zip(params, body.results)):
        chain, value = list[int](), last
        while isinstance(value, Var) and value.name in made and body.equations[made[value.name]].op == "put":
            chain.append(made[value.name])
            value = body.equations[chain[-1]].args[0]
        if chain and value == param and _alone(body, param, chain[::-1], place, at_once):
            results |= {body.equations[k].outs[0].name: place for k in chain}
    return results


def _alone(body: Block, param: Var, chain: Sequence[int], place: int, at_once: bool) -> bool:
    """True if no equation after a `put` of the chain, nor a result but that at `place`, may need what the array was before."""
    stale: set[str] = set()  # what may share memory with values before
    current = {param.name}  # what may share memory with the last one
    for k, e in enumerate(body.equations):
        if k in chain:
            arrays = not at_once and any(a.type.shape for a in e.args[1:])
            if _reads(e.args[1:], stale) or (arrays and _reads(e.args[1:], current)):
                return False
            stale |= current
            current = {e.outs[0].name}
            continue
        read = _names_read(e)
        if k > chain[0] and read & stale:
            return False
        if read & current and e.op in MAY_SHARE:
            current |= {v.name for v in e.outs}
    others = [r for k, r in enumerate(body.results) if k != place]
    return not _reads(others, stale | current)


def _names_read(e: Equation) -> set[str]:
    """Names that an equation reads, in its blocks too."""
    return {a.name for a in e.args if isinstance(a, Var)}.union(*(read_by(inner) for inner in e.blocks))


def _reads(operands: Sequence[Operand], names: set[str]) -> bool:
    return any(isinstance(o, Var) and o.name in names for o in operands)
