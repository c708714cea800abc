"""Python functions from functions of the IR: loops and branches around the walker's statements."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from types import MappingProxyType

from oco.backends.python.expressions import LANES, Level, Text, call, in_rows
from oco.backends.python.templates import STATEMENTS
from oco.backends.python.uses import read_after, read_inside, variables_read
from oco.backends.python.walker import WIDTH, Walker
from oco.compiler.ir.in_place import replaced_in_place
from oco.compiler.ir.lanes import LANE
from oco.compiler.ir.names import identifier, is_temporary
from oco.compiler.ir.program import Block, Equation, Function, Operand, Var
from oco.compiler.ir.rewrite import bound_names


def function_lines(
    function: Function,
    nonzero: Collection[str] = (),
    least: Mapping[str, float] = MappingProxyType({}),
    by_rows: frozenset[str] = frozenset(),
) -> list[str]:
    """Lines of a function: `def name(params):`, its docstring, its statements, and its result (a tuple if there are
    several).

    `nonzero` names the constants that are known not to be zero, `least` has lower bounds of numbers by name. `by_rows`:
    names of results that are laid out by rows, as a restored state is, since sums depend on it in their last bits.
    """
    writer = _Writer(function.body, nonzero, least)
    writer.names.update({p.name: p.name for p in function.body.params})
    results = function.body.results
    with writer.indented():
        writer.equations(function.body)
        writer.by_rows = by_rows
        code = writer.listed(results, writer.room - len("return ")) or "()"
        writer.write(f"return {code}", writer.use_up(results))
    doc = [f'    """{line}"""' for line in function.doc.split("\n")[:1] if line]
    with_lanes = next((p.name for p in function.body.params if LANE in p.type.shape), None)
    lanes = [f"    {LANES} = {with_lanes}.shape[-1]"] if any(LANES in line for line in writer.lines) else []
    return _head(function) + doc + lanes + writer.lines


def _head(function: Function) -> list[str]:
    """Head `def name(a, b):`; many parameters are put on lines of their own."""
    return _head_of(function.name, [p.name for p in function.body.params], WIDTH)


def _head_of(name: str, params: Sequence[str], room: int) -> list[str]:
    line = f"def {name}({', '.join(params)}):"
    return [line] if len(line) <= room else [f"def {name}(", *in_rows(params, room), "):"]


class _Writer(Walker):
    """Walker with control flow."""

    def equations(self, block: Block) -> None:
        for k, e in enumerate(block.equations):
            match e.op:
                case "if":
                    self._branch(e)
                case "for" | "while":
                    self._loop(e, block, k)
                case _:
                    self.plain(e)

    def _captured(self, block: Block) -> list[str]:
        """Statements of a block, one step further indented, not yet part of the text."""
        outer, self.lines = self.lines, []
        with self.indented():
            self.equations(block)
        result, self.lines = self.lines, outer
        return result

    # loops
    def _loop(self, e: Equation, outer: Block, place: int) -> None:
        """Loop whose variables have one name: before, inside and after the loop."""
        if e.leaving:
            self._leaving(e)
            return
        counted = e.op == "for"
        body, start = e.blocks[-1], e.args[1:] if counted else e.args
        names = self._loop_names(e, start, outer, place)
        for block in e.blocks:
            inside = block.params[1:] if counted else block.params
            self.names.update({p.name: n for p, n in zip(inside, names)})
        self.names.update({v.name: n for v, n in zip(e.outs, names)})
        inside = body.params[1:] if counted else body.params
        self._keep_names(body, inside, names)
        in_place = replaced_in_place(body, inside, at_once=True)
        changed = {r: k for r, k in in_place.items() if self._moves_alone(k, names, start)}
        self.names.update({result: names[k] for result, k in changed.items()})
        self.release(names)
        self._begin(names, start, frozenset(changed.values()), outer, self._own(e))
        if counted:
            index = self.name(body.params[0]) if self.uses.counts[body.params[0].name] else "_"
            count = self.text(e.args[0]).code
            self.use_up(e.args[:1])
            self.write(f"for {index} in range({count}):")
        else:
            self._condition(e.blocks[0])
        self._body(body, names)

    def _moves_alone(self, k: int, names: Sequence[str], start: Sequence[Operand]) -> bool:
        """True if variable k of a loop may get its first value after the others."""
        others = [j for j in range(len(names)) if j != k]
        own, beside = self.reads(start[k]), self.reads(*(start[j] for j in others))
        return names[k] not in beside and own.isdisjoint(names[j] for j in others)

    def _begin(
        self, names: Sequence[str], start: Sequence[Operand], changed: Set[int], outer: Block, notes: tuple[str, ...]
    ) -> None:
        """First values of a loop's variables; those that change in place are new arrays."""
        new = {v.name for e in outer.equations for v in e.outs if e.op == "full" and self.uses.counts[v.name] == 1}
        copied = [k for k in sorted(changed) if getattr(start[k], "name", "") not in new]
        rest = [k for k in range(len(names)) if k not in copied]
        self.assign([names[k] for k in rest], [start[k] for k in rest], notes)
        for k in copied:
            code = self.text(start[k]).code
            self.write(f'{names[k]} = np.array({code}, order="C")', self.use_up([start[k]]) + (() if rest else notes))

    def _leaving(self, e: Equation) -> None:
        """Loop that lanes leave one by one: a turn is a function of the lanes that are left."""
        self.write_waiting(list(self.waiting.values()))
        body = e.blocks[-1]
        inside = set(bound_names(body))
        around = [self.name(v) for n, v in variables_read(body).items() if n not in inside and LANE in v.type.shape]
        wanted = [k for k, v in enumerate(e.outs) if k and self.uses.counts[v.name]]
        order = [*wanted, *(k for k in range(1, len(e.outs)) if k not in wanted)]
        turn = identifier("turn", self.taken)
        self.taken.add(turn)
        params = [LANES, *around, *(self.name(body.params[k]) for k in (0, *order))]
        first, *rest = _head_of(turn, params, self.room)
        self.write(first, self._own(e))
        for line in rest:
            self.write(line)
        with self.indented():
            self.equations(body)
            results = [body.results[k] for k in (0, *order)]
            self.write(f"return {self.listed(results, self.room - len('return '))}", self.use_up(results))
        on, *start = (self.text(e.args[k]).code for k in (0, *order))
        given = [turn, on, f"[{', '.join(around)}]", f"[{', '.join(start)}]", str(len(wanted))]
        left = ", ".join(self.name(e.outs[k]) for k in wanted)
        for line in self._in_rows(f"[{left}] = ", call("until_done", given, e.outs[0].type)):
            self.write(line)

    def _own(self, e: Equation) -> tuple[str, ...]:
        return (e.note,) if e.note else ()

    def _loop_names(self, e: Equation, start: Sequence[Operand], outer: Block, place: int) -> list[str]:
        """Names of the loop's variables: that of the start where nothing else needs it any more, else their own."""
        inside = e.blocks[0].params[-len(e.outs) :] if e.outs else ()
        needed = read_after(outer, place).keys() | read_inside(e)
        own = {p.name for p in outer.params} | {v.name for before in outer.equations[:place] for v in before.outs}
        names: list[str] = []
        for out, param, first in zip(e.outs, inside, start):
            free = isinstance(first, Var) and first.name in own - needed and first.name not in self.waiting
            name = self.name(first) if free and isinstance(first, Var) else ""
            if not name or name in names or (isinstance(first, Var) and is_temporary(first.name)):
                name = self.name(out) if not is_temporary(out.name) or is_temporary(param.name) else self.name(param)
            names.append(name)
        return names

    def _keep_names(self, body: Block, params: Sequence[Var], names: Sequence[str]) -> None:
        """Let a result of the body take the name of its loop variable at once, where the old value is not needed after
        it.
        """
        made_at = {v.name: k for k, e in enumerate(body.equations) for v in e.outs if e.op not in STATEMENTS}
        for k, (result, param, name) in enumerate(zip(body.results, params, names)):
            if not isinstance(result, Var) or result.name not in made_at or result in body.results[:k]:
                continue
            place = made_at[result.name]
            inside = body.equations[place].op != "if" and param.name in read_inside(body.equations[place])
            if not inside and not read_after(body, place)[param.name]:
                self.names[result.name] = name

    def _condition(self, block: Block) -> None:
        statements = self._captured(block)
        truth = self.text(block.results[0])
        self.use_up(block.results)
        if not statements:
            self.write(f"while {truth.code}:")
            return
        self.write("while True:")
        self.lines += statements
        with self.indented():
            self.write(f"if not {truth.at(Level.NOT)}:")
            self.write("    break")

    def _body(self, body: Block, names: list[str]) -> None:
        before = len(self.lines)
        with self.indented():
            self.equations(body)
            self.assign(names, body.results)
            if len(self.lines) == before:
                self.write("pass")

    # branches
    def _branch(self, e: Equation) -> None:
        condition = self.text(e.args[0])
        notes = self.use_up(e.args) + self._own(e)
        then, orelse = (self._captured(block) for block in e.blocks)
        if not then and not orelse and len(e.outs) == 1 and self._conditional(e, condition, notes):
            return
        read = [k for k, v in enumerate(e.outs) if self.uses.counts[v.name]]
        names = [self.name(e.outs[k]) for k in read]
        self.write(f"if {condition.code}:", notes)
        for statements, block, last in zip((then, orelse), e.blocks, (False, True)):
            self.lines += statements
            with self.indented():
                before = len(self.lines)
                self.assign(names, [block.results[k] for k in read])
                if not statements and len(self.lines) == before:
                    self.write("pass")
            if not last:
                self.write("else:")

    def _conditional(self, e: Equation, condition: Text, notes: tuple[str, ...]) -> bool:
        """Expression `a if c else b`, where it fits."""
        a, b = (self.text(block.results[0]) for block in e.blocks)
        code = f"{a.at(Level.OR)} if {condition.at(Level.OR)} else {b.at(Level.CONDITIONAL)}"
        if len(self.name(e.outs[0])) + 3 + len(code) > self.room:
            return False
        for block in e.blocks:
            notes += self.use_up(block.results)
        self.bind(e.outs[0], Text(code, Level.CONDITIONAL, e.outs[0].type, weak=a.weak or b.weak), notes)
        return True
