"""Whole Python functions out of functions of the IR: loops and branches around the walker's statements."""

from __future__ import annotations

from collections.abc import Collection

from oco.backends.python.expressions import Level, Text
from oco.backends.python.uses import is_temporary
from oco.backends.python.walker import WIDTH, Walker
from oco.compiler.ir.program import Block, Equation, Function, Var


def function_lines(function: Function, nonzero: Collection[str] = ()) -> list[str]:
    """`def name(params):`, its docstring, its statements, and its result (a tuple if there are several).

    `nonzero` names the constants that are known not to be zero.
    """
    writer = _Writer(function.body, nonzero)
    writer.names.update({p.name: p.name for p in function.body.params})
    results = function.body.results
    with writer.indented():
        writer.equations(function.body)
        code = writer.listed(results, writer.room - len("return ")) or "()"
        writer.write(f"return {code}", writer.use_up(results))
    doc = [f'    """{line}"""' for line in function.doc.split("\n")[:1] if line]
    return _head(function) + doc + writer.lines


def _head(function: Function) -> list[str]:
    """`def name(a, b):`; many parameters stand on lines of their own."""
    names = [p.name for p in function.body.params]
    line = f"def {function.name}({', '.join(names)}):"
    if len(line) <= WIDTH:
        return [line]
    rows = ["   "]
    for name in names:
        if len(rows[-1]) + len(name) + 2 > WIDTH:
            rows.append("   ")
        rows[-1] += f" {name},"
    return [f"def {function.name}(", *rows, "):"]


class _Writer(Walker):
    """The walker, with control flow."""

    def equations(self, block: Block) -> None:
        for e in block.equations:
            match e.op:
                case "if":
                    self._branch(e)
                case "for" | "while":
                    self._loop(e)
                case _:
                    self.plain(e)

    def _captured(self, block: Block) -> list[str]:
        """The statements of a block, one step further in, not yet part of the text."""
        outer, self.lines = self.lines, []
        with self.indented():
            self.equations(block)
        found, self.lines = self.lines, outer
        return found

    # loops
    def _loop(self, e: Equation) -> None:
        """The variables that go round have one name: before, inside and after the loop."""
        counted = e.op == "for"
        body, start = e.blocks[-1], e.args[1:] if counted else e.args
        first = body.params[1:] if counted else e.blocks[0].params
        names = [self._loop_name(out, inside) for out, inside in zip(e.outs, first)]
        for block in e.blocks:
            inside = block.params[1:] if counted else block.params
            self.names.update({p.name: n for p, n in zip(inside, names)})
        self.names.update({v.name: n for v, n in zip(e.outs, names)})
        notes = self.use_up([a for a in e.args if isinstance(a, Var) and a.name not in self.waiting]) + self._own(e)
        self.assign(names, start, notes)
        if counted:
            index = self.name(body.params[0]) if self.uses.counts[body.params[0].name] else "_"
            count = self.text(e.args[0]).code
            self.use_up(e.args[:1])
            self.write(f"for {index} in range({count}):")
        else:
            self._condition(e.blocks[0])
        self._body(body, names)

    def _own(self, e: Equation) -> tuple[str, ...]:
        return (e.note,) if e.note else ()

    def _loop_name(self, out: Var, inside: Var) -> str:
        return self.name(out) if not is_temporary(out.name) or is_temporary(inside.name) else self.name(inside)

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
        """`a if c else b`, where it fits."""
        a, b = (self.text(block.results[0]) for block in e.blocks)
        code = f"{a.at(Level.OR)} if {condition.at(Level.OR)} else {b.at(Level.CONDITIONAL)}"
        if len(self.name(e.outs[0])) + 3 + len(code) > self.room:
            return False
        for block in e.blocks:
            notes += self.use_up(block.results)
        self.bind(e.outs[0], Text(code, Level.CONDITIONAL, e.outs[0].type, weak=a.weak or b.weak), notes)
        return True
