"""The step IR: a small typed array language in A-normal form. What a backend prints and the interpreter runs.

Every equation binds fresh variables; arguments are variables or literals; control flow is an equation with blocks. All shapes are
whole numbers. `ops.py` holds the table of operations, `check.py` the rules, `interpret.py` the meaning.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np


class DType(StrEnum):
    FLOAT = "float64"
    INT = "int64"
    BOOL = "bool"


@dataclass(frozen=True, slots=True)
class Type:
    """Entries and shape of an array; a scalar has the shape ()."""

    dtype: DType
    shape: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]" if self.shape else str(self.dtype)


@dataclass(frozen=True, slots=True)
class Var:
    """A value with a name that is unique in its function (and a legal identifier in every target)."""

    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class Literal:
    """A scalar written out: float, int or bool."""

    value: float | int | bool
    type: Type


Operand = Var | Literal


@dataclass(frozen=True, slots=True)
class Equation:
    """`outs = op(args; attrs)`, with blocks for control flow. `note` is a comment for the reader (an equation's number)."""

    outs: tuple[Var, ...]
    op: str
    args: tuple[Operand, ...]
    attrs: tuple[tuple[str, Any], ...] = ()
    blocks: tuple[Block, ...] = ()
    note: str = ""

    def attr(self, name: str) -> Any:
        return dict(self.attrs)[name]


@dataclass(frozen=True, slots=True)
class Block:
    """Equations in order, from parameters to results. Inner blocks see the variables of outer ones."""

    params: tuple[Var, ...]
    equations: tuple[Equation, ...]
    results: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Function:
    """A named block, called by the `call` operation: `project`, `decide`. Sees the program's constants and its parameters."""

    name: str
    body: Block
    result_names: tuple[str, ...] = ()
    doc: str = ""


@dataclass(frozen=True, slots=True)
class Field:
    """A named array that goes in or out of a program: a state variable, a stream, a decision, a draw."""

    name: str
    type: Type
    doc: str = ""


@dataclass(frozen=True, eq=False)
class Global:
    """A constant of the program: its variable, its value, and where the value came from (`1/T (Theorem 1)`)."""

    var: Var
    value: np.ndarray[Any, Any]
    why: str = ""


@dataclass(frozen=True)
class Program:
    """A learner as data.

    init(start...) -> state; decide(state..., draws...) -> decision; update(state..., feedback..., draws...) -> state;
    measure(round, decision..., feedback...) -> (loss, constraints (N,), equalities (M,)). Parameters stand as the fields do.
    The draws of a round are the same in decide and update. A decision X that is `factored` has three fields, left (m, K), weights (K,) and
    right (n, K), with X = left diag(weights) right'.
    """

    name: str
    doc: str
    constants: tuple[Global, ...]
    state: tuple[Field, ...]
    decision: tuple[Field, ...]
    feedback: tuple[Field, ...]
    draws: tuple[Field, ...]
    functions: tuple[Function, ...]
    init: Function
    decide: Function
    update: Function
    measure: Function | None
    labels: tuple[str, ...] = field(default=())
    factored: tuple[str, ...] = field(default=())
