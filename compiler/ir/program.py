"""The step IR: a small typed array language in A-normal form. What a backend prints and the interpreter runs.

Every equation binds fresh variables; arguments are variables or literals; control flow is an equation with blocks. All shapes are
integers. `ops.py` holds the table of operations, `verifier.py` the rules, `interpret.py` the meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import StrEnum
from operator import is_
from textwrap import indent
from typing import Any

import numpy as np

from oco.dsl.records import dataclass

ROUND, NUMBER, OBSERVED = "round", "number", "observed"
"""State of learners: the number of the round among their own; of those in turn, among those of all, and how many rounds all observed."""
HANDED = "left_"
"""Beginning of the names of state that a round leaves to the next; what follows is the name of the state that takes it."""
CORRECTED = "corrected_"
"""Beginning of the names of state with what observed rounds were beyond what they counted as."""


class DType(StrEnum):
    """Kind of the entries of an array."""

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

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Literal:
    """A scalar written out: float, int or bool."""

    value: float | int | bool
    type: Type

    def __str__(self) -> str:
        return repr(self.value)


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
        """Attribute of a name. Raises KeyError where there is none."""
        return dict(self.attrs)[name]

    @property
    def leaving(self) -> bool:
        """True for a loop that lanes leave one by one."""
        return ("leaving", True) in self.attrs

    def having(
        self,
        args: tuple[Operand, ...],
        blocks: tuple[Block, ...] | None = None,
        outs: tuple[Var, ...] | None = None,
    ) -> Equation:
        """Equation with other arguments, blocks and results, itself where these are its own: each pass asks it of every equation.

        `replace` takes thrice the time.
        """
        blocks, outs = self.blocks if blocks is None else blocks, self.outs if outs is None else outs
        if (
            _are(args, self.args)
            and (outs is self.outs or _are(outs, self.outs))
            and (blocks is self.blocks or _are(blocks, self.blocks))
        ):
            return self
        return Equation(outs, self.op, args, self.attrs, blocks, self.note)

    def __str__(self) -> str:
        bound = ", ".join(f"{v}: {v.type}" for v in self.outs)
        given = "; ".join(part for part in (_listed(self.args), ", ".join(f"{k}={v}" for k, v in self.attrs)) if part)
        head = f"{bound} = {self.op}({given})" + (f"  # {self.note}" if self.note else "")
        return "\n".join((head, *(indent(str(b), "    ") for b in self.blocks)))


@dataclass(frozen=True, slots=True)
class Block:
    """Equations in order, from parameters to results. Inner blocks see the variables of outer ones."""

    params: tuple[Var, ...]
    equations: tuple[Equation, ...]
    results: tuple[Operand, ...]

    def having(self, equations: tuple[Equation, ...], results: tuple[Operand, ...] | None = None) -> Block:
        """Block with other equations and results, itself where these are its own."""
        results = self.results if results is None else results
        if _are(equations, self.equations) and _are(results, self.results):
            return self
        return Block(self.params, equations, results)

    def __str__(self) -> str:
        lines = (f"({_listed(self.params)}) ->", *map(str, self.equations), f"return {_listed(self.results)}")
        return "\n".join((lines[0], *(indent(line, "    ") for line in lines[1:])))


@dataclass(frozen=True, slots=True)
class Function:
    """A named block, called by the `call` operation: `project`, `decide`. Sees the program's constants and its parameters."""

    name: str
    body: Block
    result_names: tuple[str, ...] = ()
    doc: str = ""

    def having(self, body: Block) -> Function:
        """Function with another body, itself where this is its own."""
        return self if body is self.body else Function(self.name, body, self.result_names, self.doc)

    def __str__(self) -> str:
        return f"{self.name} {self.body}"


@dataclass(frozen=True, slots=True)
class Field:
    """A named array that goes in or out of a program: a state variable, a stream, a decision, a draw."""

    name: str
    type: Type
    doc: str = ""


@dataclass(frozen=True, eq=False)
class Global:
    """A constant of the program: its variable, its value, and where the value came from (`1/T (Theorem 1)`).

    `beside_arrays`: it is a number that is read beside arrays alone.
    """

    var: Var
    value: np.ndarray[Any, Any]
    why: str = ""
    beside_arrays: bool = False


@dataclass(frozen=True)
class Program:
    """A learner as data.

    init(start...) -> state; decide(state..., draws...) -> decision; update(state..., feedback..., draws...) -> state;
    measure(round, decision..., feedback...) -> (loss, constraints (N,), equalities (M,)). Parameters stand as the fields do.
    slopes, of the same parameters -> norms of the gradients (of the loss, of the constraints (N,)): what a learner looks at now and then.
    The draws of a round are the same in decide and update. A decision X that is `factored` has three fields, left (m, K), weights (K,) and
    right (n, K), with X = left diag(weights) right'. `context` names the feedback that is known before the decision.
    `previous` pairs feedback that rounds leave to the next (a previous decision, a state, a statistic) with the field of the state that has
    its value: learners fill it in.
    `numbered_by`: the state that `measure` and `slopes` take as the round, `NUMBER` where learners in turn have losses about it.
    prepare(state..., context...) -> state, where a decision hangs on them: the state from which `decide` and `update` go on.
    `handed` pairs state that a round takes from the one before with the state in which that one left it, where learners take turns: before
    one decides a round, it takes what the learner of the round before left, and the state in `corrected` of the one that observed last.
    `shared` names state that learners in turn have in common (`compiler.lowering.learning_together`): before one observes a round, it takes
    that of the one whose `OBSERVED` is largest. `in_order` where rounds are observed in their order, and none is left out.
    certificate(state...) -> (lower and upper bound of the loss of every fixed decision, rounding of the lower one, the point (d,) and the
    multipliers (n,) that prove it), where the state keeps the sums of one (`compiler.certificates`).
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
    slopes: Function | None = None
    context: tuple[str, ...] = field(default=())
    prepare: Function | None = None
    previous: tuple[tuple[str, str], ...] = field(default=())
    shared: tuple[str, ...] = field(default=())
    handed: tuple[tuple[str, str], ...] = field(default=())
    corrected: tuple[str, ...] = field(default=())
    in_order: bool = False
    certificate: Function | None = None
    numbered_by: str = ROUND

    @property
    def entries(self) -> tuple[Function, ...]:
        """The functions that are called from outside."""
        every = (self.init, self.prepare, self.decide, self.update, self.measure, self.slopes, self.certificate)
        return tuple(f for f in every if f is not None)

    @property
    def numbers(self) -> bool:
        """True where the state has the number of the round among those of all learners in turn."""
        return any(f.name == NUMBER for f in self.state)

    @property
    def number_place(self) -> int:
        """Place in the state of the round that `measure` takes."""
        return next(k for k, f in enumerate(self.state) if f.name == self.numbered_by)

    @property
    def known(self) -> tuple[Field, ...]:
        """Fields of the context."""
        return tuple(f for f in self.feedback if f.name in self.context)

    @property
    def revealed(self) -> tuple[Field, ...]:
        """Feedback that data give: all but what rounds leave to the next."""
        own = dict(self.previous)
        return tuple(f for f in self.feedback if f.name not in own)

    def data(self, state: Mapping[str, Any], revealed: Iterable[Any]) -> list[Any]:
        """All data of a round in the order of the feedback: what was revealed, and from the state by name what earlier rounds left."""
        own, given = dict(self.previous), iter(revealed)
        return [state[own[f.name]] if f.name in own else next(given) for f in self.feedback]

    def __str__(self) -> str:
        """The program as text, an equation a line: what a backend is about to print."""
        constants = (f"{c.var}: {c.var.type}" + (f"  # {c.why}" if c.why else "") for c in self.constants)
        fields = (
            f"{kind} {f.name}: {f.type}" + (f"  # {f.doc}" if f.doc else "")
            for kind in ("state", "decision", "feedback", "draws")
            for f in getattr(self, kind)
        )
        head = (f"# {self.doc}", f"program {self.name}", *(f"constant {c}" for c in constants), *fields)
        return "\n".join((*head, *(f"\n{f}" for f in (*self.functions, *self.entries))))


def _are(some: tuple[object, ...], others: tuple[object, ...]) -> bool:
    """True where two tuples have the very same items: numbers that are equal may differ in a bit."""
    return some is others or (len(some) == len(others) and all(map(is_, some, others)))


def _listed(operands: tuple[Operand, ...]) -> str:
    return ", ".join(map(str, operands))
