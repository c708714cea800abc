"""The rules of the IR. Run after tracing and after the passes: a program that breaks one is a bug of the compiler."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from operator import attrgetter
from typing import Any

import numpy as np

from oco.compiler.ir.names import is_legal
from oco.compiler.ir.ops import CONTROL, OPS, describe
from oco.compiler.ir.precision import Tolerance
from oco.compiler.ir.program import (
    Block,
    DType,
    Equation,
    Field,
    Function,
    Global,
    Literal,
    Operand,
    Program,
    Type,
    Var,
)
from oco.compiler.ir.type_rules import require
from oco.dsl.diagnostics import InternalError
from oco.dsl.records import dataclass

_TYPE = attrgetter("type")
_NONE: dict[str, Any] = {}
KINDS = {DType.FLOAT: np.float64, DType.INT: np.int64, DType.BOOL: np.bool_}
PYTHON_KINDS: dict[DType, type] = {DType.FLOAT: float, DType.INT: int, DType.BOOL: bool}


def check(program: Program, before: Program | None = None) -> Program:
    """Return the program if it keeps every rule; functions of the one `before` it was added to are known to keep those of functions."""
    check_rules(program, before)
    _check_interface(program)
    return program


def check_rules(program: Program, before: Program | None = None) -> Program:
    """Return the program if each of its functions keeps the rules, whatever it takes and gives."""
    _check_constants(program.constants)
    kept = set[int]() if before is None else {id(f) for f in (*before.functions, *before.entries)}
    check_functions(program.functions, program.constants, kept)
    names = [g.var.name for g in program.constants] + [f.name for f in program.functions]
    require(len(set(names)) == len(names), lambda: f"global names {names} are not distinct")
    for entry in program.entries:
        if id(entry) not in kept:
            check_function(entry, program.constants, program.functions)
    return program


def check_functions(
    functions: Iterable[Function], constants: Iterable[Global], kept: Collection[int] = ()
) -> list[Function]:
    """The functions, each of which may call those before it, if they keep every rule, as those of the ids `kept` are known to do."""
    known: list[Function] = []
    for function in functions:
        if id(function) not in kept:
            check_function(function, constants, known)
        known.append(function)
    return known


def check_function(function: Function, constants: Iterable[Global], functions: Iterable[Function]) -> None:
    """Every variable bound once and before use, every equation well typed; names legal and unlike the globals."""
    scope = {g.var.name: g.var.type for g in constants}
    signatures = {f.name: _signature(f) for f in functions}
    checker = _Checker(function.name, signatures, bound=set(scope) | set(signatures))
    checker.block(function.body, scope)


Signature = tuple[tuple[Type, ...], tuple[Type, ...]]


def _signature(function: Function) -> Signature:
    return tuple(p.type for p in function.body.params), tuple(r.type for r in function.body.results)


@dataclass
class _Checker:
    """One walk over one function. `bound` holds every name used so far in it, in any block."""

    function: str
    signatures: Mapping[str, Signature]
    bound: set[str]

    def block(self, block: Block, scope: Mapping[str, Type]) -> Signature:
        inner = dict(scope)
        for p in block.params:
            self.bind(p, inner)
        for equation in block.equations:
            self.equation(equation, inner)
            for var in equation.outs:
                self.bind(var, inner)
        for result in block.results:
            self.operand(result, inner)
        return tuple(p.type for p in block.params), tuple(r.type for r in block.results)

    def equation(self, e: Equation, scope: Mapping[str, Type]) -> None:
        expected = self.results(e, scope)
        items = tuple(map(_TYPE, e.outs))
        if items != expected:
            raise self.broken(f"{describe(e)} has types {_show(items)}, not {_show(expected)}")

    def results(self, e: Equation, scope: Mapping[str, Type]) -> tuple[Type, ...]:
        for arg in e.args:
            if not isinstance(arg, Var) or scope.get(arg.name) is not arg.type:
                self.operand(arg, scope)
        types = tuple(map(_TYPE, e.args))
        if e.op in CONTROL:
            return self.control(e, types, scope)
        if e.op not in OPS:
            raise self.broken(f"an unknown operation in {describe(e)}")
        row, attrs = OPS[e.op], dict(e.attrs) if e.attrs else _NONE
        least, most = row.arity
        if len(types) < least or (most is not None and len(types) > most):
            raise self.broken(f"arguments of {describe(e)}")
        if (tuple(attrs) != row.attrs and attrs.keys() - set(row.order) != set(row.attrs)) or e.blocks:
            raise self.broken(f"attributes of {describe(e)}: {sorted(attrs)}")
        return row.infer(types, attrs)

    def control(self, e: Equation, types: tuple[Type, ...], scope: Mapping[str, Type]) -> tuple[Type, ...]:
        blocks = [self.block(b, scope) for b in e.blocks]
        match e.op:
            case "call":
                name = e.attr("function")
                self.require(
                    name in self.signatures, lambda: f"a call of {name}, which is not defined before {self.function}"
                )
                params, results = self.signatures[name]
                self.require(params == types and not blocks, lambda: f"{describe(e)}: {name} takes {_show(params)}")
                return results
            case "if":
                self.require(types == (Type(DType.BOOL),) and len(blocks) == 2, lambda: f"form of {describe(e)}")
                self.require(
                    all(b[0] == () for b in blocks) and blocks[0] == blocks[1], lambda: f"branches of {describe(e)}"
                )
                return blocks[0][1]
            case "for":
                carried = types[1:]
                self.require(types[0] == Type(DType.INT) and len(blocks) == 1, lambda: f"form of {describe(e)}")
                self.require(blocks[0] == ((Type(DType.INT), *carried), carried), lambda: f"body of {describe(e)}")
                return carried
            case "map":
                return self.mapped(e, types, blocks)
        self.require(
            len(blocks) == 2 and blocks[0] == (types, (Type(DType.BOOL),)), lambda: f"condition of {describe(e)}"
        )
        self.require(blocks[1] == (types, types), lambda: f"body of {describe(e)}")
        whole = not e.leaving or (types[0].dtype is DType.BOOL and types[0].shape != ())
        known = all(name in ("leaving", "turns") for name, _ in e.attrs)
        self.require(known and whole, lambda: f"attributes of {describe(e)}")
        return types

    def mapped(self, e: Equation, types: tuple[Type, ...], blocks: list[Signature]) -> tuple[Type, ...]:
        """Stacked results of the rows; a block that takes some of them at once has these as its last axis (`mapping`)."""
        self.require(
            len(blocks) == 1 and bool(types) and len({t.shape[:1] for t in types}) == 1,
            lambda: f"form of {describe(e)}",
        )
        (params, results), rows = blocks[0], tuple(Type(t.dtype, t.shape[1:]) for t in types)
        lanes = params[0].shape[len(rows[0].shape) :]
        taken = tuple(Type(r.dtype, (*r.shape, *lanes)) for r in rows)
        ends = all(r.shape[len(r.shape) - len(lanes) :] == lanes for r in results)
        self.require(params == taken and len(lanes) <= 1 and ends, lambda: f"body of {describe(e)}")
        return tuple(Type(r.dtype, (*types[0].shape[:1], *r.shape[: len(r.shape) - len(lanes)])) for r in results)

    def bind(self, var: Var, scope: dict[str, Type]) -> None:
        if not is_legal(var.name):
            raise self.broken(f"the name {var.name!r} is not legal")
        if var.name in self.bound:
            raise self.broken(f"{var.name} is bound twice")
        if var.type.shape and min(var.type.shape) < 0:
            raise self.broken(f"{var.name} has the shape {var.type.shape}")
        self.bound.add(var.name)
        scope[var.name] = var.type

    def operand(self, operand: Operand, scope: Mapping[str, Type]) -> None:
        if not isinstance(operand, Var):
            _check_literal(operand)
        elif (known := scope.get(operand.name)) is not operand.type and known != operand.type:
            raise self.broken(f"{operand.name}: {operand.type} is not in scope")

    def require(self, condition: bool, message: Callable[[], str]) -> None:
        if not condition:
            raise self.broken(message())

    def broken(self, message: str) -> InternalError:
        """Error of a broken rule; the rules of every equation make no function for its message."""
        return InternalError(f"{self.function}: {message}")


def _show(types: tuple[Type, ...]) -> str:
    return "(" + ", ".join(map(str, types)) + ")"


def _check_literal(literal: Literal) -> None:
    kind = PYTHON_KINDS[literal.type.dtype]
    require(
        literal.type.shape == () and type(literal.value) in (kind, Tolerance) and isinstance(literal.value, kind),
        lambda: f"the literal {literal.value!r} is no {literal.type}",
    )


def _check_constants(constants: Iterable[Global]) -> None:
    for g in constants:
        fits = g.value.shape == g.var.type.shape and g.value.dtype == KINDS[g.var.type.dtype]
        require(
            fits and is_legal(g.var.name),
            f"the constant {g.var.name} is {g.value.dtype}{g.value.shape}, not {g.var.type}",
        )


def _types(*fields: Iterable[Field]) -> tuple[Type, ...]:
    return tuple(f.type for group in fields for f in group)


def _check_interface(program: Program) -> None:
    """The entry functions take and give the fields in their order; the state begins with the round."""
    p = program
    expected: list[tuple[Function | None, tuple[Type, ...], tuple[Type, ...] | None]] = [
        (p.init, _types(p.decision), _types(p.state)),
        (p.decide, _types(p.state, p.draws), _types(p.decision)),
        (p.update, _types(p.state, p.feedback, p.draws), _types(p.state)),
        (p.measure, _types(p.state[:1], p.decision, p.feedback), None),
        (p.slopes, _types(p.state[:1], p.decision, p.feedback), None),
        (p.prepare, _types(p.state, p.known), _types(p.state)),
        (p.certificate, _types(p.state), None),
    ]
    for function, params, results in expected:
        if function is None:
            continue
        result = _signature(function)
        require(result[0] == params, f"{function.name} takes {_show(result[0])}, not {_show(params)}")
        require(results is None or result[1] == results, f"{function.name} gives {_show(result[1])}")
    require(
        bool(p.state) and p.state[0].name == "round" and p.state[0].type == Type(DType.INT),
        "the state begins with round",
    )
    for group in (p.state, p.decision, p.feedback, p.draws):
        require(len({f.name for f in group}) == len(group), "fields of one kind have distinct names")
