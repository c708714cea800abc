"""Tracing: Python code in a paper's notation, run once over `Value`s, leaves the equations of a program behind."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from itertools import zip_longest
from typing import Any

import numpy as np

from oco.compiler.ir.methods import PrimitiveMethods
from oco.compiler.ir.names import identifier, is_temporary
from oco.compiler.ir.program import Block, DType, Equation, Function, Global, Operand, Type, Var
from oco.compiler.ir.rename import rename_function
from oco.compiler.ir.value import OPERAND, Liftable, Value
from oco.compiler.ir.words import soft, word_of
from oco.dsl.diagnostics import InternalError
from oco.dsl.records import dataclass

Values = tuple[Value, ...]
Result = Value | Sequence[Value]
UNNAMED = "v"


@dataclass
class _Scope:
    """The equations of one block while it is traced."""

    equations: list[Equation] = field(default_factory=list)
    note: str = ""


class Tracer(PrimitiveMethods):
    """Records equations. One tracer makes one program: its constants and functions are shared by all that is traced with it."""

    def __init__(self, title: str = "program") -> None:
        self.title = title
        self.constants: list[Global] = []
        self.functions: list[Function] = []
        self._scopes: list[_Scope] = []
        self._hints: dict[str, str] = {}
        self._count = 0
        self._reserved: set[str] = set()
        self._texts: dict[str, str] = {}
        self._called: dict[Hashable, tuple[Function, bool]] = {}

    def begin_with(
        self, constants: Iterable[Global], functions: Iterable[Function], reserved: Iterable[str] = ()
    ) -> None:
        """Take over constants and functions of another program under their names; `reserved` are names of functions yet to come."""
        self.constants += constants
        self.functions += functions
        self._reserved |= set(reserved)
        self._hints |= {g.var.name: g.var.name for g in self.constants}

    # names, notes and constants
    def note(self, text: str) -> None:
        """A comment on the next equation: `t.note("equation (8)")`."""
        scope = self._scope
        scope.note = f"{scope.note}; {text}" if scope.note else text

    def name(self, hint: str, value: Liftable) -> Value:
        """Return the value, called `hint` in generated code where the name is free."""
        named = self.lift(value)
        if isinstance(named.operand, Var) and named.operand.name.startswith("%"):
            self._hints[named.operand.name] = hint
        return named

    def word(self, word: str, value: Liftable) -> Value:
        """Return the value, called `word` in generated code where it stands on a line of its own."""
        named = self.lift(value)
        if not self.is_named(named):
            self.name(soft(word), named)
        return named

    def is_named(self, value: Value) -> bool:
        """True if the value has been given a name of its own."""
        return isinstance(value.operand, Var) and not is_temporary(self._hints.get(value.operand.name, ""))

    def constant(self, value: np.ndarray[Any, Any] | float, name: str = "", why: str = "") -> Value:
        """A constant of the program, with its name and where it came from (`1/T (Theorem 1)`). Equal ones of one name are one."""
        array = np.array(value, order="C")
        kind = {"f": np.float64, "i": np.int64, "u": np.int64, "b": np.bool_}[array.dtype.kind]
        array = array.astype(kind)
        array.setflags(write=False)
        made = Type(_dtype_of(array), array.shape)
        for known in self.constants:
            same = known.var.type == made and known.value.tobytes() == array.tobytes()
            if same and (not name or self._hints[known.var.name] == name):
                return Value(self, known.var)
        name = name or {0.0: "zeros", 1.0: "ones"}.get(_only_entry(array), "constant")
        wish = f"given_{name}" if is_temporary(identifier(name)) else name
        var = Var(identifier(wish, self._global_names()), made)
        self._hints[var.name] = name
        self.constants.append(Global(var, array, why))
        return Value(self, var)

    def _global_names(self) -> set[str]:
        return {g.var.name for g in self.constants} | {f.name for f in self.functions} | self._reserved

    # equations
    @property
    def _scope(self) -> _Scope:
        if not self._scopes:
            raise InternalError("equations are traced inside a function")
        return self._scopes[-1]

    @property
    def blocks(self) -> tuple[object, ...]:
        """A mark for each block that is traced now, the innermost last: a value is seen in its own block and those within."""
        return tuple(self._scopes)

    @property
    def open_equations(self) -> Iterator[Equation]:
        """Equations of the blocks that are traced now, so far."""
        return (e for scope in self._scopes for e in scope.equations)

    def _fresh(self, made: Type, hint: str = UNNAMED) -> Var:
        """A variable with a provisional name; `rename_function` gives the final one."""
        self._count += 1
        var = Var(f"%{self._count}", made)
        self._hints[var.name] = hint
        return var

    def emit(
        self,
        op: str,
        args: tuple[Value, ...],
        results: tuple[Type, ...],
        blocks: tuple[Block, ...] = (),
        **attrs: Any,
    ) -> Values:
        """Results of a new equation in the innermost open block."""
        scope = self._scope
        operands = tuple(map(OPERAND, args))
        word = UNNAMED if len(results) > 1 else word_of(op, tuple(map(self._hint_of, operands)))
        outs = tuple([self._fresh(r, word) for r in results])
        scope.equations.append(Equation(outs, op, operands, tuple(sorted(attrs.items())), blocks, scope.note))
        scope.note = ""
        return tuple([Value(self, v) for v in outs])

    def _block(
        self, fn: Callable[..., Result], types: Sequence[Type], hints: Sequence[str]
    ) -> tuple[Block, Values, bool]:
        """`fn` traced over fresh parameters: the block, its results, and whether fn gave a tuple."""
        params = tuple(self._fresh(made, hint) for made, hint in zip(types, hints))
        self._scopes.append(_Scope())
        try:
            result = fn(*(Value(self, p) for p in params))
            several = not isinstance(result, Value) and isinstance(result, Iterable)
            results = tuple(self.lift(v) for v in (result if several else (result,)))  # type: ignore[arg-type]
            scope = self._scope
        finally:
            self._scopes.pop()
        return Block(params, tuple(scope.equations), tuple(v.operand for v in results)), results, several

    @contextmanager
    def outermost(self) -> Iterator[None]:
        """Write what is traced within before the loop or branch that is being traced, so that all of the function may use it."""
        scopes, self._scopes = self._scopes, self._scopes[:1]
        try:
            yield
        finally:
            self._scopes = scopes

    # control flow
    def while_(
        self,
        cond: Callable[..., Value],
        body: Callable[..., Result],
        init: Sequence[Liftable],
        *,
        turns: int | None = None,
        leaving: bool = False,
    ) -> Values:
        """`while cond(*vs): vs = body(*vs)`, from `init`; the values keep their types.

        turns    that are expected, for estimates of time; None: few
        leaving  True where the values are those of lanes that leave one by one
        """
        attrs: dict[str, Any] = {"leaving": True} if leaving else {}
        attrs |= {} if turns is None else {"turns": turns}
        start = tuple(self.lift(v) for v in init)
        types = tuple(v.type for v in start)
        hints = self._parameter_hints(body, start)
        condition, (truth, *rest), _ = self._block(cond, types, hints)
        if rest or truth.type != Type(DType.BOOL):
            raise InternalError("the condition of while_ is one truth value")
        step, results, _ = self._block(body, types, hints)
        _same_types("while_", types, results)
        return self.emit("while", start, types, (condition, step), **attrs)

    def for_(self, n: Liftable, body: Callable[..., Result], init: Sequence[Liftable]) -> Values:
        """`for i in range(n): vs = body(i, *vs)`, from `init`; the values keep their types."""
        start = tuple(self.lift(v) for v in init)
        types = tuple(v.type for v in start)
        index, *hints = self._parameter_hints(body, (self.lift(0), *start))
        step, results, _ = self._block(body, (Type(DType.INT), *types), (index, *hints))
        _same_types("for_", types, results)
        return self.emit("for", (self.lift(n), *start), types, (step,))

    def if_(self, c: Liftable, then: Callable[[], Result], orelse: Callable[[], Result]) -> Values:
        """The values of `then()` where the truth value c holds, else those of `orelse()`; both have the same types."""
        yes, results, _ = self._block(then, (), ())
        no, others, _ = self._block(orelse, (), ())
        types = tuple(v.type for v in results)
        _same_types("if_", types, others)
        return self.emit("if", (self.lift(c),), types, (yes, no))

    def map_(self, body: Callable[..., Result], *rows: Value) -> Values:
        """Results of `body` of each row of the arrays (K, ...), stacked to (K, ...). No row sees what another one makes."""
        block, results, _ = self._block(
            body, [Type(r.dtype, r.shape[1:]) for r in rows], self._parameter_hints(body, rows)
        )
        return self.emit("map", rows, tuple(Type(v.dtype, (rows[0].shape[0], *v.shape)) for v in results), (block,))

    def map_over(
        self,
        body: Callable[..., Result],
        rows: Sequence[Value],
        params: Sequence[Type],
        hints: Sequence[str],
        results: Sequence[Type],
    ) -> Values:
        """`map_` with a body that takes values of these types, several rows in each, under these names."""
        return self.emit("map", tuple(rows), tuple(results), (self._block(body, params, hints)[0],))

    # functions
    def function(
        self, name: str, fn: Callable[..., Result], params: Sequence[tuple[str, Type]], doc: str = ""
    ) -> Function:
        """`fn` traced as a function of the named parameters; it sees them and the constants alone, which `verifier` checks."""
        return self._trace(name, fn, params, doc)[0]

    def _trace(
        self, name: str, fn: Callable[..., Result], params: Sequence[tuple[str, Type]], doc: str
    ) -> tuple[Function, bool]:
        outer, self._scopes = self._scopes, []
        try:
            block, _, several = self._block(fn, [made for _, made in params], [hint for hint, _ in params])
        finally:
            self._scopes = outer
        names = tuple(self._hints.get(r.name, "") if isinstance(r, Var) else "" for r in block.results)
        return rename_function(Function(name, block, names, doc), self._hints, self._global_names()), several

    def call(
        self,
        name: str,
        fn: Callable[..., Result],
        *args: Liftable,
        doc: str = "",
        words: Sequence[str] = (),
        key: Hashable = None,
    ) -> Any:
        """`fn` as a function of the program, applied to args. Traced again for each call, kept once for each distinct body.

        words  names of the parameters, in the order of args, where the values have none
        key    what makes `fn`: calls by one name with one key have the same body for arguments of the same types and names, which is
               traced once; None where nothing is known of that

        Constants of the program are not passed: the function sees them anyway.
        """
        given = tuple(self.lift(a) for a in args)
        constants = {g.var.name for g in self.constants}
        passed = [v for v in given if not (isinstance(v.operand, Var) and v.operand.name in constants)]

        def with_constants(*values: Value) -> Result:
            left = iter(values)
            return fn(*(next(left) if any(v is p for p in passed) else v for v in given))

        names = zip_longest(self._parameter_hints(fn, given), words[: len(given)], fillvalue="")
        spoken = [word if word and hint == UNNAMED else hint for hint, word in names]
        hints = [h for h, v in zip(spoken, given) if any(v is p for p in passed)]
        params = [(h, v.type) for h, v in zip(hints, passed)]
        whole = tuple(v.operand if not any(v is p for p in passed) else None for v in given)
        slot = None if key is None else (key, name, tuple(params), whole)
        if slot is None or slot not in self._called:
            traced, several = self._trace(identifier(name), with_constants, params, doc or _doc(fn))
            function = replace(traced, name=self._known(traced))
            if slot is not None:
                self._called[slot] = function, several
        else:
            function, several = self._called[slot]
        types = tuple(r.type for r in function.body.results)
        results = self.emit("call", tuple(passed), types, function=function.name)
        for hint, value in zip(function.result_names, results):
            self._hints[value.operand.name] = hint or UNNAMED  # type: ignore[union-attr]
        return results if several else results[0]

    def has(self, function: Function) -> bool:
        """True for one of the functions of the program so far."""
        return any(known is function for known in self.functions)

    def _known(self, function: Function) -> str:
        """The name under which the program has this very function, adding it if it is new."""
        own = ""
        for other in self.functions:
            if other.name.startswith(function.name) and other.body == function.body:
                own = own or repr(function.body)
                if self._text_of(other) == own:
                    return other.name
        unique = identifier(function.name, self._global_names())
        self.functions.append(Function(unique, function.body, function.result_names, function.doc))
        if own:
            self._texts[unique] = own
        return unique

    def _text_of(self, function: Function) -> str:
        """Text of the body of a function of the program, which tells -0.0 from 0.0; made once, for every call that is traced asks."""
        if function.name not in self._texts:
            self._texts[function.name] = repr(function.body)
        return self._texts[function.name]

    def _parameter_hints(self, fn: Callable[..., Any], values: Sequence[Value]) -> list[str]:
        """Names for parameters: those of fn's signature, then those of the values themselves."""
        named = [p.name for p in inspect.signature(fn).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
        own = [self._hint_of(v.operand) for v in values]
        known = [UNNAMED if is_temporary(hint) else hint for hint in own]
        return (named + known[len(named) :])[: len(values)]

    def _hint_of(self, operand: Operand) -> str:
        return self._hints.get(operand.name, UNNAMED) if isinstance(operand, Var) else UNNAMED


def _dtype_of(array: np.ndarray[Any, Any]) -> DType:
    return {"f": DType.FLOAT, "i": DType.INT, "b": DType.BOOL}[array.dtype.kind]


def _only_entry(array: np.ndarray[Any, Any]) -> float:
    """The number that all entries are, if they are one number."""
    return float(array.flat[0]) if array.size and (array == array.flat[0]).all() else np.nan


def _doc(fn: Callable[..., Any]) -> str:
    return inspect.getdoc(fn) or ""


def _same_types(what: str, expected: tuple[Type, ...], result: Values) -> None:
    if tuple(v.type for v in result) != expected:
        shown = [str(v.type) for v in result]
        raise InternalError(f"{what}: values of types {[str(e) for e in expected]} become {shown}")
