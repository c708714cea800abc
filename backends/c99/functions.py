"""C functions from functions of the IR."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from oco.backends.c99.arithmetic import EXACT, Arithmetic
from oco.backends.c99.entries import Entries, flat_index
from oco.backends.c99.expressions import Level
from oco.backends.c99.loops import rows_ahead, together
from oco.backends.c99.statements import STATEMENTS, sum_of_logs
from oco.backends.c99.vectors import WIDTH, c_type, is_vector, without_lanes
from oco.backends.c99.writer import Least, Signature, Writer, comment, in_rows, unknown
from oco.compiler.ir.fusion import given_up, picked_rows, stored
from oco.compiler.ir.in_place import replaced_in_place
from oco.compiler.ir.loop_groups import groups, taken_over
from oco.compiler.ir.names import is_temporary
from oco.compiler.ir.ops import POINTWISE
from oco.compiler.ir.program import Block, Equation, Function, Operand, Type, Var
from oco.compiler.ir.rewrite import equations_of, read_by


def function_lines(
    function: Function,
    name: str,
    constants: Mapping[str, str],
    signatures: Mapping[str, Signature],
    mixed: bool = False,
    unwritten: frozenset[str] = frozenset(),
    arithmetic: Arithmetic = EXACT,
    inputs: Collection[str] = (),
    least: Least = unknown,
) -> tuple[list[str], Signature]:
    """Text of a static function, and its signature for callers. Functions of the library are written `@name`.

    name        of the function in C
    constants   C names of the program's constants
    signatures  of the functions that it may call
    mixed       True where operations of all kinds share loops
    unwritten   results of branches that stay as they are on the other side (`Changes`)
    arithmetic  of the source
    inputs      parameters that are rows of data, round after round in memory
    least       of a value, a number that none of its entries is below; None where none is known
    """
    body = _Body(function, name, constants, signatures, mixed, unwritten, arithmetic)
    body.w.least = least
    body.w.rows = rows_ahead(p for p in function.body.params if p.name in inputs)
    body.write()
    return body.text(), body.signature


class MapRows(NamedTuple):
    """Rows that a map takes: where the first one lies, how far they are apart, and their places where they are picked."""

    base: str
    stride: int
    place: str = ""


class _Body:
    """Writer of one function. A result that is an array of its own is computed where the caller wants it."""

    def __init__(
        self,
        function: Function,
        name: str,
        constants: Mapping[str, str],
        signatures: Mapping[str, Signature],
        mixed: bool,
        unwritten: frozenset[str],
        arithmetic: Arithmetic,
    ) -> None:
        self.mixed = mixed
        self.unwritten = unwritten
        self.function = function
        self.name = name
        self.stored = stored(function.body)
        made_by = {v.name: e for e in equations_of(function.body) for v in e.outs}
        places = {**constants, **{p.name: p.name for p in function.body.params}}
        entries = Entries(places, made_by)
        taken = set(made_by) | {p.name for p in _all_params(function.body)} | {"work"}
        self.w = Writer(entries, signatures, taken)
        self.given_up = given_up(function.body, self.stored)
        self.outs = [self._result_place(k, r) for k, r in enumerate(function.body.results)]
        places.update({name: places[out] for name, out in self.given_up.items() if out in places})

    def _result_place(self, k: int, result: Operand) -> str:
        """Name of the pointer through which result k is returned."""
        block = self.function.body
        own = {v.name for e in block.equations for v in e.outs if e.op not in POINTWISE or v.name in self.stored}
        if isinstance(result, Var) and result.type.shape and result.name in own and result not in block.results[:k]:
            self.w.entries.places[result.name] = result.name
            return result.name
        names = self.function.result_names
        return self.w.fresh(f"{names[k] or 'out'}_out" if k < len(names) and names[k].isidentifier() else "out")

    @property
    def signature(self) -> Signature:
        block = self.function.body
        work = self.w.used_work + self.w.callee_work
        return Signature(self.name, tuple(p.type for p in block.params), tuple(r.type for r in block.results), work)

    def text(self) -> list[str]:
        doc = [f"/* {comment(self.function.doc)} */"] if self.function.doc else []
        unread = [f"    (void){p.name};" for p in self.function.body.params if p.name not in self.w.entries.read]
        return [*doc, *self._head(), *unread, *map(str, [*self.w.first(), *self.w.lines]), "}"]

    def _head(self) -> Iterator[str]:
        s, block = self.signature, self.function.body
        params = [_parameter(p.type, p.name) for p in block.params]
        if not s.is_number:
            params += [f"{c_type(r.type)} *restrict {name}" for r, name in zip(block.results, self.outs)]
        params += ["double *restrict work"] if s.work else []
        head = f"static {s.returns} {self.name}("
        line = head + (", ".join(params) or "void") + ") {"
        if len(line) <= 120:
            yield line
        else:
            yield head
            yield from in_rows(params)
            yield ") {"

    def write(self) -> None:
        block = self.function.body
        self.equations(block)
        if self.signature.is_number:
            self.w.line(f"return {self.w.number(block.results[0])};")
            return
        for result, name in zip(block.results, self.outs):
            if 0 in result.type.shape:
                self.w.line(f"(void){name};")
            elif not result.type.shape:
                self.w.line(f"*{name} = {self.w.number(result)};")
            elif not isinstance(result, Var) or self.w.entries.places.get(result.name) != name:
                self.w.fill(name, result)

    # equations
    def equations(self, block: Block) -> None:
        notes = self._notes(block)
        loops = groups(block, self.stored, self.w.entries.made_by, self.mixed)
        if block is self.function.body:
            self.w.share_memory(taken_over(block, loops, self.stored, self.w.entries.made_by))
        for group in loops:
            self.w.note = "; ".join(
                n for e in group.equations if (n := notes.get(e.outs[0].name if e.outs else "", ""))
            )
            if group.shape is None:
                self._alone(group.equations[0])
            else:
                self.w.entries.numbers |= group.numbers
                together(self.w, group.shape, group.equations)

    def _notes(self, block: Block) -> dict[str, str]:
        """Comments by the first result of their equation; those of results without a place wait for one that has."""
        result, pending = dict[str, str](), list[str]()
        for e in block.equations:
            pending += [comment(e.note)] if e.note else []
            if e.outs and pending and (e.op not in POINTWISE or e.outs[0].name in self.stored):
                result[e.outs[0].name] = "; ".join(pending)
                pending.clear()
        return result

    def _alone(self, e: Equation) -> None:
        match e.op:
            case "for" | "while":
                self._loop(e)
            case "if":
                self._branch(e)
            case "map":
                self._map(e)
            case "call":
                self._call(e)
            case "sum":
                sum_of_logs(self.w, e)
            case _ if e.op not in POINTWISE:
                STATEMENTS[e.op](self.w, e)
            case _:
                self.w.scalar(e.outs[0], self.w.entries.computed(e.outs[0]))

    def _call(self, e: Equation) -> None:
        w = self.w
        signature = w.signatures[e.attr("function")]
        args = [w.memory(a) if a.type.shape else w.number(a) for a in e.args]
        work = [w.work_for(signature.work)] if signature.work else []
        if signature.is_number:
            out = e.outs[0]
            w.line(f"const {c_type(out.type)} {out.name} = {signature.name}({', '.join(args + work)});")
            w.entries.places[out.name] = out.name
            return
        outs = [w.place(v) if v.type.shape else f"&{self._declared(v)}" for v in e.outs]
        w.line(f"{signature.name}({', '.join(args + outs + work)});")

    def _declared(self, var: Var) -> str:
        """Declared variable for a number, not constant."""
        self.w.line(f"{c_type(var.type)} {var.name};")
        self.w.entries.places[var.name] = var.name
        return var.name

    # control flow
    def _loop(self, e: Equation) -> None:
        """Loop whose variables have places of their own; each turn ends by moving the new values there."""
        w, counted = self.w, e.op == "for"
        start, body = (e.args[1:] if counted else e.args), e.blocks[-1]
        inside = body.params[1:] if counted else e.blocks[0].params
        for out, param, first in zip(e.outs, inside, start):
            self._begin(out, param, first)
        for block in e.blocks:
            params = block.params[1:] if counted else block.params
            w.entries.places.update({p.name: w.entries.places[v.name] for p, v in zip(params, e.outs)})
        if counted:
            index = body.params[0].name
            w.entries.places[index] = index
            count = w.number(e.args[0], Level.SUM)
            with w.braces(f"for (int64_t {index} = 0; {index} < {count}; ++{index})"):
                self._turn(e, body)
            return
        self._while(e, body)

    def _map(self, e: Equation) -> None:
        """Loop over rows, where they lie; in lanes `WIDTH` of them a turn, side by side in vectors."""
        w, (body,), count = self.w, e.blocks, e.args[0].type.shape[0]
        rows, outs = [self._rows_of(a) for a in e.args], [w.place(v) for v in e.outs]
        lanes = is_vector(body.params[0].type)
        first = w.fresh("first", "row")
        with w.braces(f"for (int {first} = 0; {first} < {count}; {first} += {WIDTH if lanes else 1})"):
            if lanes:
                w.line(f"const int rows = {count} - {first} < {WIDTH} ? {count} - {first} : {WIDTH};")
            for p, source in zip(body.params, rows):
                self._row(p, source, first, lanes)
            outer, self.mixed = self.mixed, self.mixed or lanes
            self.equations(body)
            self.mixed = outer
            for out, result in zip(outs, body.results):
                self._stacked(out, result, first, lanes)

    def _rows_of(self, operand: Operand) -> MapRows:
        w, (base, *places) = self.w, picked_rows(operand, self.w.entries.made_by)
        if not places or (isinstance(operand, Var) and operand.name in w.entries.places):
            return MapRows(w.memory(operand), math.prod(operand.type.shape[1:]))
        place, e = w.memory(places[0]), w.entries.made_by.get(getattr(base, "name", ""))
        if e is not None and e.op == "slice" and (whole := w.entries.pointer(e.args[0])) is not None:
            before, width = (
                flat_index([str(n) for n in e.attr("starts")], e.args[0].type.shape),
                e.args[0].type.shape[1],
            )
            return MapRows(f"{whole} + {before}", width, place)
        return MapRows(w.memory(base), base.type.shape[1], place)

    def _row(self, p: Var, rows: MapRows, first: str, lanes: bool) -> None:
        """Parameter of a map: a row, a number, or a column of rows side by side."""
        w, size = self.w, math.prod(without_lanes(p.type.shape))
        w.entries.places[p.name] = p.name
        if lanes:
            w.line(f"{c_type(p.type)} {p.name}[{size}];")
            picked = f"@picked({rows.base}, {rows.stride}, {rows.place} + {first}, {size}, rows, {p.name});"
            w.line(picked if rows.place else f"@columns({rows.base} + {first} * {size}, {size}, rows, {p.name});")
            return
        row = f"{rows.place}[{first}]" if rows.place else first
        if p.type.shape:
            w.line(f"const {c_type(p.type)} *const {p.name} = {rows.base} + {row} * {rows.stride};")
        else:
            w.line(f"const {c_type(p.type)} {p.name} = {rows.base}[{row}];")

    def _stacked(self, out: str, result: Operand, first: str, lanes: bool) -> None:
        """Result of a map in its rows."""
        w, size = self.w, math.prod(without_lanes(result.type.shape))
        if lanes:
            columns = w.memory(result)
            with w.loops((size,)) as (i,), w.braces("for (int l = 0; l < rows; ++l)"):
                w.line(f"{out}[({first} + l) * {size} + {i}] = {columns}[{i}][l];")
        elif result.type.shape:
            w.fill(f"({out} + {first} * {size})", result)
        else:
            w.line(f"{out}[{first}] = {w.number(result)};")

    def _while(self, e: Equation, body: Block) -> None:
        """Loop `while (condition)`; where the condition takes statements, a loop with an exit in the middle."""
        w = self.w
        with w.block() as statements:
            self.equations(e.blocks[0])
        truth = w.entry(e.blocks[0].results[0])
        with w.braces("for (;;)" if statements else f"while ({truth.code})"):
            w.lines += statements
            if statements:
                with w.braces(f"if (!{truth.at(Level.UNARY)})"):
                    w.line("break;")
            self._turn(e, body)

    def _begin(self, out: Var, param: Var, first: Operand) -> None:
        """Loop variable with its first value; it has the name used in the body, unless its result has a name."""
        w = self.w
        name = param.name if is_temporary(out.name) and not is_temporary(param.name) else out.name
        if out.type.shape:
            if isinstance(first, Var) and self.given_up.get(first.name) == out.name:
                w.entries.places[out.name] = w.place(first)
                return
            if out.name not in w.entries.places:
                w.entries.places[out.name] = w.array(name, out.type)
            w.fill(w.entries.places[out.name], first)
        else:
            w.line(f"{c_type(out.type)} {name} = {w.number(first)};")
            w.entries.places[out.name] = name

    def _turn(self, e: Equation, body: Block) -> None:
        read, made = Counter(read_by(body)), {v.name for inner in body.equations for v in inner.outs}
        params = body.params[len(body.params) - len(e.outs) :]
        for name, k in replaced_in_place(body, params).items():
            self.w.entries.places[name] = self.w.entries.places[e.outs[k].name]
        for out, param, result in zip(e.outs, params, body.results):
            if not isinstance(result, Var) or result.name not in made & self.stored:
                continue
            if result.type.shape and not read[param.name] and body.results.count(result) == 1:
                self.w.entries.places[result.name] = self.w.entries.places[out.name]  # nothing reads the value before
        self.equations(body)
        self._move([self.w.entries.places[v.name] for v in e.outs], body.results)

    def _move(self, targets: Sequence[str], values: Sequence[Operand]) -> None:
        """Simultaneous assignment: numbers that read a target through new names, arrays from places that are not
        targets.
        """
        w = self.w
        pairs = [
            (t, v) for t, v in zip(targets, values) if not (isinstance(v, Var) and w.entries.places.get(v.name) == t)
        ]
        over = [(t, v) for t, v in pairs if v.type.shape and self._over_itself(v, v.type.shape, t, targets)]
        ready: list[tuple[str, str, Type]] = []
        for target, value in (pair for pair in pairs if pair not in over):
            if value.type.shape:
                source = w.memory(value) if not self._is_target(value, targets) else w.copy("moved", value)
            else:
                with w.entries.recorded() as read:
                    source = w.number(value)
                if len(pairs) > 1 and read.intersection(targets):
                    source = w.fresh("following")
                    w.line(f"const {c_type(value.type)} {source} = {w.number(value)};")
            ready.append((target, source, value.type))
        for target, value in over:
            w.fill(target, value)
        for target, source, made in ready:
            if made.shape:
                with w.loops(made.shape) as index:
                    place = flat_index(index, made.shape)
                    w.line(f"{target}[{place}] = {source}[{place}];")
            else:
                w.line(f"{target} = {source};")

    def _over_itself(self, value: Operand, shape: Sequence[int], target: str, targets: Sequence[str]) -> bool:
        """True where an entry is made of that in the same place of the target, and of no other target: it may be written over it."""
        if not isinstance(value, Var):
            return True
        if (place := self.w.entries.places.get(value.name)) is not None:
            return place not in targets or (place == target and value.type.shape == shape)
        e = self.w.entries.made_by[value.name]
        return e.op in POINTWISE and all(
            a.type.shape in ((), shape) and self._over_itself(a, shape, target, targets) for a in e.args
        )

    def _is_target(self, value: Operand, targets: Sequence[str]) -> bool:
        return self.w.entries.pointer(value) in targets

    def _branch(self, e: Equation) -> None:
        w = self.w
        condition = w.number(e.args[0])
        for out in e.outs:
            if out.type.shape:
                w.place(out)
            else:
                self._declared(out)
        targets = [w.entries.places[v.name] for v in e.outs]
        w.line(f"if ({condition}) {{")
        for k, block in enumerate(e.blocks):
            with w.block() as statements:
                self.equations(block)
                for out, target, value in zip(e.outs, targets, block.results):
                    if k == 1 and out.name in self.unwritten:
                        continue
                    if value.type.shape:
                        w.fill(target, value)
                    else:
                        w.line(f"{target} = {w.number(value)};")
            w.lines += statements
            w.line("} else {" if k == 0 else "}")


def _all_params(block: Block) -> Iterator[Var]:
    yield from block.params
    for e in block.equations:
        for inner in e.blocks:
            yield from _all_params(inner)


def _parameter(made: Type, name: str) -> str:
    kind = c_type(made)
    return f"const {kind} *restrict {name}" if made.shape else f"{kind} {name}"
