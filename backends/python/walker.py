"""Python statements from the equations of a block: a short expression that is used once is written where it is used."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count

from oco.backends.python.expressions import Level, Text, call, in_rows, literal
from oco.backends.python.templates import STATEMENTS, TEMPLATES
from oco.backends.python.uses import Uses
from oco.compiler.ir.names import identifier, is_temporary
from oco.compiler.ir.program import Block, DType, Equation, Operand, Type, Var
from oco.compiler.ir.rewrite import bound_names, equations_of, read_by
from oco.compiler.ir.words import word_in
from oco.dsl.records import dataclass

WIDTH = 96
INLINE = 60
_SHORT = 12
TINY = 1e-300
"""Lower bound above which a number is not zero after rounding either."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Expression on its way to the place where it is used, with the names of the variables that it reads, and with the
    comments that belong above that line. `viewed`: it is the transpose or conversion of a name.
    """

    var: Var
    text: Text
    reads: frozenset[str]
    notes: tuple[str, ...] = ()
    viewed: bool = False


class Walker:
    """Writer of statements without control flow. `nonzero` names the constants that are not zero, `least` has lower
    bounds of numbers.
    """

    def __init__(self, body: Block, nonzero: Collection[str], least: Mapping[str, float]) -> None:
        self.lines: list[str] = []
        self.margin = ""
        self.waiting: dict[str, Waiting] = {}
        self.names: dict[str, str] = {}
        self.uses = Uses.of(body)
        self.taken = set(bound_names(body)) | set(read_by(body)) | {e.attr("function") for e in _calls(body)}
        self.numbered = 0
        self.nonzero = nonzero
        self.least = least
        self.strong: set[str] = set()
        self.by_rows: frozenset[str] = frozenset()

    @contextmanager
    def indented(self) -> Iterator[None]:
        """Context of lines indented by one step."""
        self.margin += "    "
        yield
        self.margin = self.margin[:-4]

    @property
    def room(self) -> int:
        """Number of characters left on a line."""
        return WIDTH - len(self.margin)

    def write(self, code: str, notes: Iterable[str] = ()) -> None:
        """Write one line, under its comments; a comment begins a paragraph."""
        for note in notes:
            if self.lines and not self.lines[-1].endswith(":") and not self.lines[-1].lstrip().startswith("#"):
                self.lines.append("")
            self.lines.append(f"{self.margin}# {note}")
        self.lines.append(self.margin + code)

    # names and values
    def name(self, var: Var) -> str:
        """Python name of a variable; those with a word alone take it, others are numbered in the order of the text."""
        if var.name not in self.names:
            self.names[var.name] = self._spoken(var.name) if is_temporary(var.name) else var.name
        return self.names[var.name]

    def _spoken(self, name: str) -> str:
        """Name of a temporary variable: its word, or a number."""
        if word := word_in(name):
            result = identifier(word, self.taken)
        else:
            self.numbered = next(k for k in count(self.numbered + 1) if f"v{k}" not in self.taken)
            result = f"v{self.numbered}"
        self.taken.add(result)
        return result

    def text(self, operand: Operand) -> Text:
        """Expression that waits under this name, or the name, or the number."""
        if not isinstance(operand, Var):
            return literal(operand)
        if operand.name in self.waiting:
            return self.waiting[operand.name].text
        weak = operand.type == Type(DType.FLOAT) and operand.name not in self.strong
        return self.known(operand, Text(self.name(operand), Level.ATOM, operand.type, weak=weak))

    def reads(self, *operands: Operand) -> frozenset[str]:
        """Names of the variables in the texts of operands."""
        variables = [o for o in operands if isinstance(o, Var)]
        waiting = [self.waiting[v.name].reads for v in variables if v.name in self.waiting]
        return frozenset(self.name(v) for v in variables if v.name not in self.waiting).union(*waiting)

    def known(self, var: Var, text: Text) -> Text:
        """Text of a variable with known properties of its value."""
        least = self.least.get(var.name, -math.inf)
        nonzero, nonnegative = least > TINY or var.name in self.nonzero, least >= 0
        if (text.nonzero, text.nonnegative) == (nonzero, nonnegative):
            return text
        return replace(text, nonzero=nonzero, nonnegative=nonnegative)

    def use_up(self, operands: Iterable[Operand]) -> tuple[str, ...]:
        """Comments of the waiting expressions that are written now for their only time."""
        notes: tuple[str, ...] = ()
        for o in operands:
            if isinstance(o, Var) and o.name in self.waiting and self.uses.counts[o.name] == 1:
                notes += self.waiting.pop(o.name).notes
        return notes

    def write_longest(self, operands: Sequence[Operand]) -> bool:
        """Give the longest waiting operand a line of its own; False if all are short."""
        results = [self.waiting[o.name] for o in operands if isinstance(o, Var) and o.name in self.waiting]
        longest = max(results, key=lambda w: len(w.text.code), default=None)
        if longest is None or len(longest.text.code) <= _SHORT:
            return False
        del self.waiting[longest.var.name]
        self.bind(longest.var, longest.text, longest.notes)
        return True

    def write_long(self, operands: Sequence[Operand]) -> None:
        """Give every waiting operand that is not short a line of its own, the longest first."""
        results = [self.waiting[o.name] for o in operands if isinstance(o, Var) and o.name in self.waiting]
        for w in sorted(results, key=lambda w: -len(w.text.code)):
            if w.var.name in self.waiting and len(w.text.code) > _SHORT:
                del self.waiting[w.var.name]
                self.bind(w.var, w.text, w.notes)

    def write_noted(self) -> None:
        """Give every waiting expression that carries a comment a line of its own."""
        self.write_waiting([w for w in self.waiting.values() if w.notes])

    def write_waiting(self, expressions: Iterable[Waiting]) -> None:
        """Give each of these expressions a line of its own."""
        for w in expressions:
            if w.var.name in self.waiting:
                del self.waiting[w.var.name]
                self.bind(w.var, w.text, w.notes)

    def bind(self, var: Var, text: Text, notes: Iterable[str]) -> None:
        """Write an assignment to the variable."""
        if not text.weak:
            self.strong.add(var.name)
        self.release([self.name(var)])
        self.write(f"{self.name(var)} = {text.code}", notes)

    def release(self, targets: Sequence[str]) -> None:
        """Write down the waiting expressions that read a variable which is about to get another value."""
        for w in list(self.waiting.values()):
            if not w.reads.isdisjoint(targets):
                del self.waiting[w.var.name]
                self.bind(w.var, w.text, w.notes)

    # equations
    def plain(self, e: Equation) -> None:
        """Write an equation without blocks. One with a comment comes after the lines of the comment before it."""
        if e.note:
            self.write_noted()
        if e.op in STATEMENTS:
            first, *rest = STATEMENTS[e.op](self.name(e.outs[0]), [self.text(a) for a in e.args], e)
            notes = self._notes(e)
            self.release([self.name(e.outs[0])])
            self.write(first, notes)
            for line in rest:
                self.write(line)
            return
        if 3 * len(e.args) > self.room:  # it fits no line whatever waits
            self.write_long(e.args)
        text = self._expression(e)
        while len(self._target(e)) + len(text.code) + 3 > self.room and self.write_longest(e.args):
            text = self._expression(e)
        if len(e.outs) == 1 and (e.op != "call" or len(text.code) < INLINE):
            self.place(e, text)
            return
        notes, target = self._notes(e), self.name(e.outs[0]) if len(e.outs) == 1 else self._target(e)
        self.release([self.name(v) for v in e.outs if len(e.outs) == 1 or self.uses.counts[v.name]])
        self.strong |= {v.name for v in e.outs if e.op not in ("call", "entries")}
        for line in self._in_rows(f"{target} = ", text):
            self.write(line, notes)
            notes = ()

    def place(self, e: Equation, text: Text) -> None:
        """Place a single result: kept waiting if it may move and is short, a statement otherwise."""
        (out,) = e.outs
        longest = INLINE if is_temporary(out.name) else _SHORT
        moves = out.name in self.uses.movable and len(text.code) <= longest
        viewed = e.op in ("transpose", "to_float") and self._is_view(e.args[0])
        if moves or (viewed and is_temporary(out.name)):
            reads = self.reads(*e.args)
            self.waiting[out.name] = Waiting(out, text, reads, self._notes(e), viewed)
        else:
            self.bind(out, text, self._notes(e))

    def _is_view(self, operand: Operand) -> bool:
        """True for a name, and for its transpose or conversion."""
        return isinstance(operand, Var) and (operand.name not in self.waiting or self.waiting[operand.name].viewed)

    def _in_rows(self, left: str, text: Text) -> list[str]:
        """Statement `left f(a, b)`, with the arguments on lines of their own if it is too long."""
        if len(left) + len(text.code) <= self.room or not text.arguments:
            return [left + text.code]
        return [f"{left}{text.function}(", *in_rows(text.arguments, self.room), ")"]

    def _notes(self, e: Equation) -> tuple[str, ...]:
        return self.use_up(e.args) + ((e.note,) if e.note else ())

    def _target(self, e: Equation) -> str:
        """Left side, about as long as it will be; unread ones among several results are `_`."""
        if len(e.outs) == 1:
            return self.name(e.outs[0]) if not is_temporary(e.outs[0].name) else "v1"
        return ", ".join(self.name(v) if self.uses.counts[v.name] else "_" for v in e.outs)

    def _expression(self, e: Equation) -> Text:
        args = [self.text(a) for a in e.args]
        if e.op == "call":
            made = e.outs[0].type
            return replace(call(e.attr("function"), args, made), weak=made == Type(DType.FLOAT))
        result = TEMPLATES[e.op](args, e)
        return result if e.outs[0].type.shape else self.known(e.outs[0], result)

    def assign(self, targets: Sequence[str], operands: Sequence[Operand], notes: tuple[str, ...] = ()) -> None:
        """Write `a, b = x, y` at once: an operand may read the old value of a target."""
        pairs = [(n, o) for n, o in zip(targets, operands, strict=True) if self.text(o).code != n]
        if not pairs:
            return
        names, values = [n for n, _ in pairs], [o for _, o in pairs]
        if len(pairs) > 1 and self._in_turn(names, values):
            for target, value in pairs:
                code = self.text(value).code
                self.write(f"{target} = {code}", notes + self.use_up([value]))
                notes = ()
            return
        left = ", ".join(names)
        right = self.listed(values, self.room - len(left) - 3)
        self.write(f"{left} = {right}", notes + self.use_up(values))

    def _in_turn(self, names: Sequence[str], values: Sequence[Operand]) -> bool:
        """True where one line for each target has the same meaning and reads better."""
        codes = [self.text(v).code for v in values]
        free = all(self.reads(v).isdisjoint(names[:k]) for k, v in enumerate(values))
        return free and (len(names) > 2 or sum(map(len, codes)) > INLINE // 2)

    def listed(self, operands: Sequence[Operand], room: int) -> str:
        """Operands `x, y, z` in at most `room` characters, where waiting expressions can be written before."""

        def code() -> str:
            return ", ".join(self._by_rows(o) for o in operands)

        while len(code()) > room and self.write_longest(operands):
            pass
        return code()

    def _by_rows(self, operand: Operand) -> str:
        code = self.text(operand).code
        return f"np.ascontiguousarray({code})" if isinstance(operand, Var) and operand.name in self.by_rows else code


def _calls(body: Block) -> list[Equation]:
    """Equations of a body that call functions of the program."""
    return [e for e in equations_of(body) if e.op == "call"]
