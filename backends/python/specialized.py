"""Text of this folder's modules for one model: branches that it decides are cut, and what is then unused is left out.

The sources are ASCII, so that a column counts characters.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from oco.dsl.records import dataclass

_Edit = tuple[int, int, str]
_LEAVES = frozenset({"ctx", "op", "ops", "id", "attr", "arg", "kind", "type_comment"})
"""Fields of nodes that hold no expression."""
_NAMES = (ast.Name, ast.Attribute)  # a pair is looked through faster than a union
_PUBLIC = ("Learner", "StateError", "Stream", "StreamError")


def specialized(text: str, known: Mapping[str, Any]) -> str:
    """Definitions of a text, where the names of `known` have these values; without annotations.

    An `if` or a conditional expression over these names alone gives way to its branch. A private method or a
    definition that nothing uses any longer is left out.
    """
    tree = ast.parse(text)
    while edits := list(_decided(tree, text, known)):
        text = _edited(text, edits)
        tree = ast.parse(text)
    text = re.sub(r" +# (type: ignore|noqa).*", "", _edited(text, list(_annotations(tree, text))))
    text = _edited(text, list(_unused(ast.parse(text), text)))
    return re.sub(r"\n{3,}(?= )", "\n\n", re.sub(r"\n{4,}", "\n\n\n", text))


def reads(tree: ast.AST) -> Counter[str]:
    """Names and attributes that a tree reads, and how often."""
    counts: Counter[str] = Counter()
    open_ = [tree]
    while open_:  # unlike `ast.walk`, without the contexts and operators, which are a third of all nodes
        node = open_.pop()
        if isinstance(node, _NAMES) and isinstance(node.ctx, ast.Load):
            counts[node.id if isinstance(node, ast.Name) else node.attr] += 1
        for name in node._fields:
            child = getattr(node, name, None) if name not in _LEAVES else None
            if isinstance(child, ast.AST):
                open_.append(child)
            elif isinstance(child, list):
                open_ += [c for c in child if isinstance(c, ast.AST)]
    return counts


def _edited(text: str, edits: list[_Edit]) -> str:
    for start, stop, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[stop:]
    return text


class _Places:
    """Offsets of nodes in a text."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines(keepends=True)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))

    def span(self, node: Any) -> tuple[int, int]:
        """Offsets of a node's first character and after its last."""
        return self.starts[node.lineno - 1] + node.col_offset, self.starts[node.end_lineno - 1] + node.end_col_offset

    def rows(self, first: Any, last: Any) -> tuple[int, int]:
        """Lines of statements, from 0: of the first with its decorators."""
        head = min([first.lineno, *(d.lineno for d in getattr(first, "decorator_list", ()))])
        return head - 1, last.end_lineno


def _decided(tree: ast.AST, text: str, known: Mapping[str, Any]) -> Iterator[_Edit]:
    """Edits of the outermost conditions that are decided, wholly or in part."""
    places, open_ = _Places(text), [tree]
    named = [m.start() for m in re.finditer(rf"\b({'|'.join(known)})\b", text)]

    def may_be_decided(node: Any) -> bool:
        if not hasattr(node, "lineno"):
            return True
        start, stop = places.span(node)
        return bisect_left(named, start) < bisect_left(named, stop)

    while open_:
        node = open_.pop()
        holds = _holds(node.test, known) if isinstance(node, ast.If | ast.IfExp) else None
        if isinstance(node, ast.IfExp) and holds is not None:
            start, stop = places.span(node.body if holds else node.orelse)
            yield (*places.span(node), text[start:stop])
        elif isinstance(node, ast.If) and holds is not None:
            first, last = places.rows(node, node)
            lines = _branch_lines(node, node.body if holds else node.orelse, places)
            yield places.starts[first], places.starts[last], "".join(lines)
        elif (
            isinstance(node, ast.BoolOp)
            and (rest := [v for v in node.values if _holds(v, known) is None]) != node.values
        ):
            word = " and " if isinstance(node.op, ast.And) else " or "
            yield (*places.span(node), word.join(text[slice(*places.span(v))] for v in rest))
        else:
            open_ += filter(may_be_decided, ast.iter_child_nodes(node))


def _holds(test: ast.expr, known: Mapping[str, Any]) -> bool | None:
    """Value of a condition; None where it is not decided."""
    if isinstance(test, ast.BoolOp):
        parts, whole = [_holds(v, known) for v in test.values], isinstance(test.op, ast.And)
        return (not whole) if (not whole) in parts else None if None in parts else whole
    names = {n.id for n in ast.walk(test) if isinstance(n, ast.Name)}
    if not names or not names <= known.keys():
        return None
    return bool(eval(compile(ast.Expression(test), "condition", "eval"), {"__builtins__": {}}, dict(known)))


def _branch_lines(condition: ast.If, branch: list[ast.stmt], places: _Places) -> Iterator[str]:
    """Lines of a branch in the place of its condition: as far to the right as that, or under `else` where that continues another."""
    if not branch:
        return
    column, continues = condition.col_offset, places.lines[condition.lineno - 1].lstrip().startswith("elif")
    first, last = places.rows(branch[0], branch[-1])
    lines, chained = places.lines[first:last], branch[0].col_offset == column
    if continues:
        yield from lines if chained else [" " * column + "else:\n", *lines]
    elif chained:
        yield from (lines[0].replace("elif", "if", 1), *lines[1:])
    else:
        further = branch[0].col_offset - column
        yield from (line[further:] if line.strip() else line for line in lines)


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Statements of a tree, with the handlers and cases that hold some."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        for node in getattr(tree, name, ()):
            yield node
            yield from _statements(node)


def _annotations(tree: ast.AST, text: str) -> Iterator[_Edit]:
    """Edits that take the annotations of functions and of variables with a value away."""
    places = _Places(text)
    statements = list(_statements(tree))
    fields = {id(n) for c in statements if isinstance(c, ast.ClassDef) for n in c.body}
    for node in statements:
        if isinstance(node, ast.FunctionDef):
            yield from _bare_head(node, text, places)
        elif isinstance(node, ast.AnnAssign) and node.value is not None and id(node) not in fields:
            yield places.span(node.target)[1], places.span(node.annotation)[1], ""


def _bare_head(node: ast.FunctionDef, text: str, places: _Places) -> Iterator[_Edit]:
    """Edits of the parameters and the result of one function."""
    given = node.args
    plain = [*given.posonlyargs, *given.args]
    defaults = dict(zip([a.arg for a in plain][::-1], given.defaults[::-1])) | {
        a.arg: d for a, d in zip(given.kwonlyargs, given.kw_defaults) if d is not None
    }
    for a in [*plain, *given.kwonlyargs, given.vararg, given.kwarg]:
        if a is not None and a.annotation is not None:
            name_end, default = places.span(a)[0] + len(a.arg), defaults.get(a.arg)
            if default is None:
                yield name_end, places.span(a.annotation)[1], ""
            else:
                yield name_end, places.span(default)[0], "="
    if node.returns is not None:
        start, stop = places.span(node.returns)
        yield text.rindex(" -> ", 0, start), stop, ""


def _unused(tree: ast.Module, text: str) -> Iterator[_Edit]:
    """Edits that take away definitions that nothing reads but themselves and others that go: at the top, and private methods of classes."""
    places, tops = _Places(text), [_Definition.of(node) for node in tree.body]
    read = sum((top.read for top in tops), Counter[str]())
    owner = {d: top for top in tops for d in top.private}
    left, gone = [*tops, *owner], set[_Definition]()
    while unread := [d for d in left if d.names and not any(read[n] > d.read[n] or n in _PUBLIC for n in d.names)]:
        gone |= {*unread}
        for d in (d for d in unread if owner.get(d) not in gone):
            read -= d.read
            if d in owner:
                owner[d].read -= d.read
        left = [d for d in left if d not in gone and owner.get(d) not in gone]
    for d in (d for d in gone if owner.get(d) not in gone):
        first, last = places.rows(d.node, d.node)
        yield places.starts[first], places.starts[last], ""


@dataclass(eq=False)
class _Definition:
    """Statement, the names that it defines, what is read in it and how often, and of a class the private methods, which may go alone."""

    node: ast.stmt
    names: set[str]
    read: Counter[str]
    private: tuple[_Definition, ...] = ()

    @classmethod
    def of(cls, node: ast.stmt) -> _Definition:
        """Definition that is a statement at the top or in a class."""
        if not isinstance(node, ast.ClassDef):
            return cls(node, _defined(node), reads(node))
        head = [*node.bases, *(k.value for k in node.keywords), *node.decorator_list]
        inner = [cls.of(n) for n in node.body]
        total = sum((d.read for d in inner), sum((reads(n) for n in head), Counter[str]()))
        private = (d for d in inner if getattr(d.node, "name", "").startswith("_"))
        return cls(node, _defined(node), total, tuple(private))


def _defined(node: ast.stmt) -> set[str]:
    """Names that a definition gives; none where it is special to Python."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return set() if node.name.startswith("__") else {node.name}
    return {t.id for t in node.targets if isinstance(t, ast.Name)} if isinstance(node, ast.Assign) else set()
