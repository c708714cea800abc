"""Functions of JAX from functions of the step IR: an equation a line, blocks as inner functions of `lax.while_loop` and its like."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count

from oco.backends.python.expressions import in_rows, literal
from oco.backends.xla.templates import TEMPLATES, Template
from oco.compiler.ir.ops import CONTROL
from oco.compiler.ir.program import Block, Equation, Function, Literal, Operand, Program
from oco.compiler.ir.rewrite import all_functions, bound_names, equations_of
from oco.dsl.diagnostics import fail

WIDTH = 96
INDENT = "    "


def check_expressible(program: Program) -> None:
    """Check that every operation of a program has a template. Raises OCO873 with those that have none."""
    used = {e.op for f in all_functions(program) for e in equations_of(f.body)}
    if missing := sorted(used - TEMPLATES.keys() - CONTROL.keys()):
        raise fail(
            "OCO873",
            f"{program.name}: the algorithm's step has operations that JAX programs are not written for: {', '.join(missing)}",
            hint="leave the backend out, or name another algorithm",
        )


def function_lines(
    function: Function, as_tuple: bool = False, templates: Mapping[str, Template] = TEMPLATES
) -> list[str]:
    """Lines of a function: head, docstring, equations, results. `as_tuple`: a single result is given as a tuple too."""
    writer = _Writer(set(bound_names(function.body)), templates)
    names = [p.name for p in function.body.params]
    doc = [f'    """{line}"""' for line in function.doc.split("\n")[:1] if line]
    body = writer.block(function.body, as_tuple)
    return [*_rows(f"def {function.name}(", names, "):"), *doc, *(INDENT + line for line in body)]


def call_lines(outs: Sequence[str], name: str, args: Sequence[str]) -> list[str]:
    """Lines of `outs = name(args)`."""
    return _rows(f"{', '.join(outs)}{' = ' if outs else ''}{name}(", args, ")")


def _rows(begin: str, items: Sequence[str], end: str) -> list[str]:
    """Text `begin items end` on one line, or with the items on lines of their own."""
    line = f"{begin}{', '.join(items)}{end}"
    return [line] if len(line) <= WIDTH else [begin, *in_rows(items, WIDTH), end]


def _text(operand: Operand) -> str:
    return literal(operand).code if isinstance(operand, Literal) else operand.name


def _comma(items: Sequence[str]) -> list[str]:
    """Items of a tuple: a single one with the comma that makes it one."""
    return [f"{items[0]},"] if len(items) == 1 else list(items)


class _Writer:
    """Writer of blocks; `taken` are the names that inner functions may not have."""

    def __init__(self, taken: set[str], templates: Mapping[str, Template]) -> None:
        self.taken = taken
        self.templates = templates

    def block(self, block: Block, as_tuple: bool) -> list[str]:
        """Statements of a block, and the return of its results."""
        lines = [line for e in block.equations for line in self.equation(e)]
        results = [_text(r) for r in block.results]
        several = as_tuple or len(results) != 1
        return lines + (_rows("return (", _comma(results), ")") if several else [f"return {results[0]}"])

    def equation(self, e: Equation) -> Iterator[str]:
        """Lines of an equation, its comment above them."""
        if e.note:
            yield f"# {e.note}"
        args, outs = [_text(a) for a in e.args], [v.name for v in e.outs]
        match e.op:
            case "call":
                yield from call_lines(outs, e.attr("function"), args)
            case "if":
                then, orelse = (self.named(outs, word) for word in ("where_true", "where_false"))
                yield from (*self.inner(then, e.blocks[0]), *self.inner(orelse, e.blocks[1]))
                yield from call_lines(_comma(outs), "lax.cond", [args[0], then, orelse])
            case "for":
                turn = self.named(outs, "turn")
                yield from self.inner(turn, e.blocks[0], 1)
                yield from call_lines(_comma(outs), "lax.fori_loop", ["0", args[0], turn, *_tuple(args[1:])])
            case "while":
                goes_on, turn = self.named(outs, "goes_on"), self.named(outs, "turn")
                yield from (*self.inner(goes_on, e.blocks[0], 0, False), *self.inner(turn, e.blocks[1], 0))
                yield from call_lines(_comma(outs), "lax.while_loop", [goes_on, turn, *_tuple(args)])
            case "map":
                row = self.named(outs, "row")
                yield from self.inner(row, e.blocks[0])
                yield from call_lines(_comma(outs), f"jax.vmap({row})", args)
            case _:
                yield f"{', '.join(outs)} = {self.templates[e.op](e, args)}"

    def named(self, outs: Sequence[str], word: str) -> str:
        """Fresh name of an inner function, after the first of the results that it makes."""
        stem = f"{outs[0]}_{word}" if outs else word
        name = next(n for k in count(1) if (n := stem if k == 1 else f"{stem}_{k}") not in self.taken)
        self.taken.add(name)
        return name

    def inner(self, name: str, block: Block, plain: int | None = None, as_tuple: bool = True) -> Iterator[str]:
        """Lines of a block as a function; parameters from place `plain` on come in one tuple, as loops carry them."""
        params = [p.name for p in block.params]
        alone = params if plain is None else [*params[:plain], "carried"]
        yield from _rows(f"def {name}(", alone, "):")
        if plain is not None and params[plain:]:
            yield from (INDENT + line for line in _rows("(", _comma(params[plain:]), ") = carried"))
        yield from (INDENT + line for line in self.block(block, as_tuple))


def _tuple(items: Sequence[str]) -> list[str]:
    """Items of an argument list that is one tuple, kept apart so that a long one is broken between them."""
    if len(items) < 2:
        return [f"({''.join(f'{i},' for i in items)})"]
    return [f"({items[0]}", *items[1:-1], f"{items[-1]})"]
