"""Lines of a C function: declarations, loops, and places in memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import field

from oco.backends.c99.entries import Entries, flat_index
from oco.backends.c99.expressions import Level, Text
from oco.backends.c99.vectors import c_type, without_lanes
from oco.compiler.ir.lanes import LANE
from oco.compiler.ir.names import first_free
from oco.compiler.ir.program import DType, Operand, Type, Var
from oco.dsl.records import dataclass

WIDTH = 110
LARGEST_ON_STACK = 4096
"""Entries of the largest array on the stack; larger ones are in the caller's work space."""


@dataclass(frozen=True)
class CodeLine:
    """Line of C with the depth of its indentation."""

    depth: int
    code: str

    def __str__(self) -> str:
        return "    " * self.depth + self.code


@dataclass(frozen=True)
class Signature:
    """Signature for callers: the C name, the types of parameters and results, and the work space that is needed (in
    doubles).
    """

    name: str
    params: tuple[Type, ...]
    results: tuple[Type, ...]
    work: int = 0

    @property
    def returns(self) -> str:
        """C return type: a single number is returned, anything else is written through pointers."""
        return c_type(self.results[0]) if self.is_number else "void"

    @property
    def is_number(self) -> bool:
        """True where the result is a single number."""
        return len(self.results) == 1 and not self.results[0].shape


Least = Callable[[Operand], float | None]


def unknown(value: Operand) -> None:
    """No bound of any value."""


@dataclass
class Writer:
    """Writer of lines. `signatures` are those of the functions written before; `taken` holds every name in use; `rows` are parameters of
    which the next round's may be asked for, with their entries, and `counts` the variables that tell how many were; `shared`
    names for arrays that lie where another does that other; `least` tells what no entry of a value is below, where that is known.
    """

    entries: Entries
    signatures: Mapping[str, Signature]
    taken: set[str]
    least: Least = unknown
    rows: Mapping[str, int] = field(default_factory=dict)
    counts: dict[str, str] = field(default_factory=dict)
    shared: dict[str, str] = field(default_factory=dict)
    lines: list[CodeLine] = field(default_factory=list)
    depth: int = 1
    used_work: int = 0
    callee_work: int = 0
    rest: str = ""
    note: str = ""

    # text
    def line(self, code: str) -> None:
        """Add a line, after the pending comment."""
        self._write_note()
        self.lines.append(CodeLine(self.depth, code))

    def _write_note(self) -> None:
        """Add the pending comment, which begins a paragraph."""
        if self.note:
            self.lines += [CodeLine(0, "")] if self.lines else []
            self.lines.append(CodeLine(self.depth, f"/* {self.note} */"))
            self.note = ""

    @contextmanager
    def block(self) -> Iterator[list[CodeLine]]:
        """Context that collects its lines, one step further indented, for its user to place."""
        outer, self.lines = self.lines, []
        self.depth += 1
        yield self.lines
        self.depth -= 1
        self.lines = outer

    @contextmanager
    def braces(self, head: str, tail: str = "}") -> Iterator[None]:
        """Context that encloses its lines in braces after `head`."""
        self.line(f"{head} {{")
        with self.block() as body:
            yield
        self.lines += body
        self.line(tail)

    def fresh(self, *wishes: str) -> str:
        """Unused name: one of the wishes, or the first with a number."""
        free = [w for w in wishes if w not in self.taken]
        name = free[0] if free else first_free(lambda number: f"{wishes[0]}_{number}", self.taken)
        self.taken.add(name)
        return name

    @contextmanager
    def loops(self, shape: Sequence[int]) -> Iterator[list[str]]:
        """Context with a loop for each axis that is longer than one; yields the index."""
        index, names = list[str](), list[str]()
        with ExitStack() as opened:
            for n in shape:
                if n in (1, LANE):
                    index.append("0")
                    continue
                name = self.fresh("i", "j", "k", "l", "m")
                opened.enter_context(self._loop(f"for (int {name} = 0; {name} < {n}; ++{name})"))
                index.append(name)
                names.append(name)
            yield index
        self.taken.difference_update(names)

    @contextmanager
    def _loop(self, head: str) -> Iterator[None]:
        """Context of a loop. One with a single short statement is put on one line."""
        self._write_note()
        with self.block() as body:
            yield
        whole = CodeLine(self.depth, f"{head} {{ {body[0].code} }}") if len(body) == 1 else None
        if whole is not None and len(str(whole)) <= WIDTH:
            self.lines.append(whole)
        else:
            self.lines += [CodeLine(self.depth, f"{head} {{"), *body]
            self.line("}")

    # places
    def place(self, var: Var) -> str:
        """C name of a variable that has a place, declared if it is an array that has none yet."""
        if var.name in self.shared and var.name not in self.entries.places:
            self.line(f"{c_type(var.type)} *const {var.name} = {self.entries.places[self.shared[var.name]]};")
            self.entries.places[var.name] = var.name
        if var.name not in self.entries.places:
            self.entries.places[var.name] = self.array(var.name, var.type) if var.type.shape else var.name
        return self.entries.places[var.name]

    def share_memory(self, over: dict[str, str]) -> None:
        """Let arrays, in their order, lie where others lay that are read no more: all where the last of them does, if that is a
        result, else where the first does.
        """
        for name in reversed(over):
            if name in self.shared or name in self.entries.places:
                self.shared[over[name]] = self.shared.get(name, name)
        for name, before in over.items():
            if name not in self.shared and name not in self.entries.places:
                self.shared[name] = self.shared.get(before, before)

    def array(self, name: str, made: Type) -> str:
        """Declare an array: on the stack, or in the work space if it is large."""
        size = max(math.prod(without_lanes(made.shape)), 1)
        kind = c_type(made)
        if size <= LARGEST_ON_STACK:
            self.line(f"{kind} {name}[{size}];")
            return name
        cast = "" if made.dtype is DType.FLOAT else f"({kind} *)"
        self.line(
            f"{kind} *const {name} = {cast}{f'(work + {self.used_work})' if cast else f'work + {self.used_work}'};"
        )
        self.used_work += size
        return name

    def scalar(self, var: Var, text: Text) -> None:
        """Declaration `const double x = ...;`"""
        self.line(f"const {c_type(var.type)} {var.name} = {text.code};")
        self.entries.places[var.name] = var.name

    def entry(self, operand: Operand, index: Sequence[str] = ()) -> Text:
        """Entry of an operand at an index."""
        return self.entries.at(operand, index)

    def number(self, operand: Operand, least: Level = Level.CONDITIONAL) -> str:
        """Code of an operand that is a number, in parentheses where it binds less tightly than `least`."""
        return self.entries.at(operand).at(least)

    def fill(self, target: str, operand: Operand) -> None:
        """Statements `target[...] = operand[...]`, entry by entry."""
        if 0 in operand.type.shape:
            return
        with self.loops(operand.type.shape) as index:
            self.line(f"{target}[{flat_index(index, operand.type.shape)}] = {self.entry(operand, index).code};")

    def memory(self, operand: Operand) -> str:
        """Pointer to the entries of an array in row order; they are computed into a new place if they have none."""
        result = self.entries.pointer(operand)
        if result is None:
            result = self.array(self.fresh("argument"), operand.type)
            self.fill(result, operand)
        return result

    def copy(self, name: str, operand: Operand) -> str:
        """Copy of an operand as an array that may be overwritten."""
        made = self.array(self.fresh(name), operand.type)
        self.fill(made, operand)
        return made

    def scratch(self, size: int) -> str:
        """Space for one statement: on the stack if it is small, else a part of the work space that others use too."""
        return (
            self.work_for(size)
            if size > LARGEST_ON_STACK
            else self.array(self.fresh("space"), Type(DType.FLOAT, (size,)))
        )

    def work_for(self, size: int) -> str:
        """Part of the work space that a called function may use: it begins where this function's own part ends."""
        self.callee_work = max(self.callee_work, size)
        self.rest = self.rest or self.fresh("rest")
        return self.rest

    def asked(self, row: str) -> str:
        """Variable that counts the entries of a row which are asked for."""
        if row not in self.counts:
            self.counts[row] = self.fresh(f"{row}_ahead")
        return self.counts[row]

    def first(self) -> list[CodeLine]:
        """Declarations that are known once the function is written: its counts, and the part of the work space for called functions."""
        start = f"work + {self.used_work}" if self.used_work else "work"
        counts = [CodeLine(1, f"int {name} = 0;") for name in self.counts.values()]
        return counts + ([CodeLine(1, f"double *const {self.rest} = {start};")] if self.rest else [])


def in_rows(params: Sequence[str]) -> list[str]:
    """Parameters on lines of their own, as many on one as fit."""
    rows = [f"    {params[0]}"]
    for p in params[1:]:
        if len(rows[-1]) + len(p) + 3 <= WIDTH:
            rows[-1] += f", {p}"
        else:
            rows[-1] += ","
            rows.append(f"    {p}")
    return rows


def comment(text: str) -> str:
    """Text that may stand in a C comment."""
    shown = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(shown.replace("*/", "* /").replace("/*", "/ *").replace("??/", "? ? /").split())
