"""Typing of the syntax tree's expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeGuard, assert_never

from oco.dsl import build
from oco.dsl.along import NAMED, applied_along
from oco.dsl.atoms import ATOMS
from oco.dsl.axes import expression_axes
from oco.dsl.chains import PLAIN, halved
from oco.dsl.checks import refuse_as_function
from oco.dsl.diagnostics import MOST_MISTAKES, Findings, OcoError, fail
from oco.dsl.distributions import DISTRIBUTIONS
from oco.dsl.domains import DOMAINS
from oco.dsl.expressions import Constant, Expr, File, Kind, Name, Slice, constant
from oco.dsl.index_families import IndexFamily, misplaced
from oco.dsl.labels import Axes, Axis
from oco.dsl.members import members_of
from oco.dsl.previous import WORD, previous
from oco.dsl.scope import Scope, kind_of
from oco.dsl.source import Span
from oco.dsl.statements import Param
from oco.dsl.statistics import STATISTICS, statistic
from oco.dsl.suggest import did_you_mean, nearest
from oco.dsl.text import syntax


class Typer:
    """Typing of expressions in a scope. An expression that cannot be typed is None; the mistake behind it is kept in
    `findings`, once.

    later     declarations of the whole file by name
    broken    names whose declaration failed: their uses are None, without another message
    doubtful  words of statements that could not be read, any of which may have been a declaration
    nameless  True where there is a declaration without a name: it may have been that of any name
    """

    def __init__(self, scope: Scope, findings: Findings, later: Mapping[str, Span]) -> None:
        self.scope = scope
        self.findings = findings
        self.later = later
        self.broken: set[str] = set()
        self.doubtful: set[str] = set()
        self.nameless = False
        self.reported: set[str] = set()
        self.asked = 0
        self.predicting = False

    def exprs(self, nodes: Sequence[syntax.Expression]) -> tuple[Expr, ...] | None:
        """Typed expressions, or None when one of them cannot be typed."""
        typed = [self.expr(n) for n in nodes]
        kept = tuple(e for e in typed if e is not None)
        return kept if len(kept) == len(typed) else None

    def bounds(self, bounds: tuple[syntax.Expression, syntax.Expression] | None) -> tuple[Expr, Expr] | None:
        """Ends of a range; an index in the place of both is the range of the numbers of its entries."""
        if bounds is not None and bounds[0] is bounds[1]:
            return self._index_range(bounds[0])
        ends = None if bounds is None else self.exprs(bounds)
        return None if ends is None else (ends[0], ends[1])

    def _index_range(self, node: syntax.Expression) -> tuple[Expr, Expr] | None:
        index = None if self._is_undeclared(node) else self.expr(node)
        own = self.scope.declared.get(index.name) if isinstance(index, Name) else None
        if index is not None and isinstance(own, Param) and own.is_index:
            return members_of(index)
        if index is not None or self._is_undeclared(node):
            hint = f"or in an index, whose entries they name; `{node.span.text}` is none"
            hint = did_you_mean(node.span.text, self.scope.indexes, hint)
            self._refuse(fail("OCO120", "values lie `in [lo, hi]`, or `in lo..hi` for integers", node.span, hint))
        return None

    def lists_names(self, node: syntax.Expression | None) -> TypeGuard[syntax.ArrayLiteral]:
        """True for a list with a text in quotes in it, or with a word that is not declared."""
        items = node.items if isinstance(node, syntax.ArrayLiteral) else ()
        return any(isinstance(item, syntax.QuotedString) or self._is_undeclared(item) for item in items)

    def sides(self, constraint: syntax.ConstraintStatement) -> tuple[Expr | None, Expr | None]:
        """Typed sides of a constraint; those of a family as arrays over its index."""
        left, right, family = constraint.left, constraint.right, constraint.family
        if family is None:
            return self.expr(left), self.expr(right)
        with self.findings.guard():
            own = IndexFamily(*family, self.scope, lambda node: Typer(self.scope, Findings(), {}).expr(node))
            left, right = own.sides(left, right)
            return self.expr(left), self.expr(right)
        return None, None

    def prediction(self, node: syntax.Expression) -> Expr | None:
        """Typed expression in which statistics of streams may stand; None after a mistake."""
        self.predicting = True
        value = self.expr(node)
        self.predicting = False
        return value

    def expr(self, node: syntax.Expression, inside: str = "") -> Expr | None:
        """Typed expression; None after a mistake, which is kept. `inside` is the `let` whose value this is."""
        if self.findings.full:
            return None
        match node:
            case syntax.Number(value=value):
                return constant(value, node.span)
            case syntax.Identifier():
                return self._name(node, inside)
            case syntax.QuotedString():
                return self._refuse(
                    fail("OCO213", "a text means nothing here", node.span, 'only `file("...")` takes one')
                )
            case syntax.ValueSet():
                return self._refuse(
                    fail(
                        "OCO213",
                        "a set of values is no number",
                        node.span,
                        "a stream lies in one: `stream y in {-1, 1}`",
                    )
                )
            case syntax.ArrayLiteral(items=items):
                typed = [self.expr(i, inside) for i in items]
                entries = tuple(e for e in typed if e is not None)
                return self._build(lambda: build.array(entries, node.span)) if len(entries) == len(typed) else None
            case syntax.Subscript():
                return self._subscript(node, inside)
            case syntax.Call(name="add" | "sub") if node.operator:
                return self._sum(node, inside)
            case syntax.Call():
                return self._call(node, inside)
        assert_never(node)

    def _build(self, step: Callable[[], Expr]) -> Expr | None:
        with self.findings.guard():
            return self.scope.resolved(step())
        return None

    def _refuse(self, error: OcoError) -> Expr | None:
        self.findings.add(error.diagnostics)
        return None

    def _name(self, node: syntax.Identifier, inside: str) -> Expr | None:
        name, span = node.name, node.span
        if name in self.scope.declared and name not in self.broken:
            return self.scope.name(name, span)
        if name in ("t", "T"):
            return Name(name, Kind.ROUND if name == "t" else Kind.HORIZON, integer=True, span=span)
        if not any(name in known for known in (self.broken, self.doubtful, self.reported)):
            self.reported.add(name)
            if not (self.nameless and self._excused(name)):
                self._refuse(self._unknown(name, span, inside))
        return None

    def _excused(self, name: str) -> bool:
        """True where an undeclared name may be that of the declaration without one."""
        self.asked += 1
        return self.asked > MOST_MISTAKES or not nearest(name, self.scope.declared)

    def _unknown(self, name: str, span: Span, inside: str) -> OcoError:
        if name == inside:
            return fail(
                "OCO206", f"`{name}` is defined by itself", span, "an abbreviation uses names declared before it"
            )
        if name in self.later:
            line = self.later[name].line
            return fail(
                "OCO204", f"`{name}` is used before it is declared, on line {line}", span, "move its declaration up"
            )
        if name in DOMAINS or name in DISTRIBUTIONS or name == "file":
            return refuse_as_function(name, span)
        if name in ATOMS and not name.startswith("_") and not ATOMS[name].operator:
            return fail("OCO213", f"`{name}` is a function: it needs arguments", span, f"write {name}(...)")
        if "." in name:
            return fail("OCO213", f"`{name}` is a fact, and facts stand after `assume` and in formulas only", span)
        hint = did_you_mean(name, [*self.scope.declared, *self.broken, "t"], _declare_hint(name))
        if name == "unknown" and not self.scope.declared:
            hint = "where it is the horizon that is unknown, write `horizon T unknown`"
        return fail("OCO201", f"`{name}` is not declared", span, hint)

    def _subscript(self, node: syntax.Subscript, inside: str) -> Expr | None:
        base = self.expr(node.base, inside)
        axes = self._axes(base, node.items)
        items = [self._item(i, inside, axis) for i, axis in zip(node.items, axes)]
        kept = tuple(i for i in items if i is not None)
        if base is None or len(kept) < len(items):
            return None
        return self._build(lambda: build.index(base, kept, node.span))

    def _axes(self, base: Expr | None, items: Sequence[syntax.Item]) -> Axes:
        """Axes that items index, looked for where one may be the name of an entry."""
        none: Axes = (None,) * len(items)
        if base is None or not any(isinstance(i, syntax.QuotedString) or self._is_undeclared(i) for i in items):
            return none
        return (expression_axes(base, self.scope.declared, self.scope.indexes) + none)[: len(items)]

    def _is_undeclared(self, node: syntax.Item) -> bool:
        known = (self.scope.declared, self.broken, self.doubtful, self.reported, self.later, ("t", "T"))
        return isinstance(node, syntax.Identifier) and not any(node.name in names for names in known)

    def _item(self, item: syntax.Item, inside: str, axis: Axis | None) -> Expr | None:
        if axis is not None and (isinstance(item, syntax.QuotedString) or self._is_undeclared(item)):
            name = item.value if isinstance(item, syntax.QuotedString) else item.span.text
            return self._build(lambda: constant(axis.place(name, "this axis", item.span), item.span))
        if isinstance(item, syntax.GroupItem):
            return self._refuse(misplaced(item))
        if not isinstance(item, syntax.Slice):
            if isinstance(item, syntax.Call) and item.operator == "..":
                return self._refuse_range(item)
            return self.expr(item, inside)
        ends = [None if e is None else self.expr(e, inside) for e in (item.start, item.stop)]
        if any(e is None and message is not None for e, message in zip(ends, (item.start, item.stop))):
            return None
        return Slice(ends[0], ends[1], span=item.span)

    def _refuse_range(self, item: syntax.Call) -> Expr | None:
        """Refuse `x[0..4]`: `..` includes both ends and a slice does not, so the meaning would be unclear."""
        first, last = (a.span.text for a in item.args)
        stop = str(item.args[1].value + 1) if isinstance(item.args[1], syntax.Number) else f"{last} + 1"
        return self._refuse(
            fail("OCO325", "`..` is no index", item.span, f"a slice leaves out its end: {first}:{stop}")
        )

    def _sum(self, node: syntax.Call, inside: str) -> Expr | None:
        """Chain of + and -, term by term from the left, of any length."""
        first, links = syntax.sum_of(node)
        total = self.expr(first, inside)
        for link in links:
            term = self.expr(link.args[1], inside)
            if total is None or term is None:
                total = None
            else:
                total = self._build(partial(build.call, link.name, total, term, span=link.span))
        return total if total is None or len(links) < PLAIN else halved(total)

    def _call(self, node: syntax.Call, inside: str) -> Expr | None:
        if node.name == "file" and not node.operator:
            return self._refuse(refuse_as_function("file", node.span))
        args = [self.expr(a, inside) for a in node.args]
        if node.name == WORD and not node.operator:
            return self._previous(node, args)
        if (
            self.predicting
            and node.name in STATISTICS
            and not (node.options or (node.name in ATOMS and len(args) == 1))
        ):
            return self._statistic(node, args)
        kept = tuple(a for a in args if a is not None)
        options = self._options(node)
        if not node.operator and not self._is_function(node):
            return None
        if options is None or len(kept) < len(args):
            return None
        atom = (ATOMS[node.name].several if len(kept) > 1 else "") or node.name
        return self._build(lambda: applied_along(atom, kept, options, self.scope, node.span))

    def _previous(self, node: syntax.Call, args: list[Expr | None]) -> Expr | None:
        if len(args) != 1 or node.options:
            return self._refuse(fail("OCO217", "`prev` takes the name of a decision", node.span, "write `prev(x)`"))
        x = args[0]
        return None if x is None else self._build(lambda: previous(x, node.span))

    def _statistic(self, node: syntax.Call, args: list[Expr | None]) -> Expr | None:
        kept = [a for a in args if a is not None]
        return self._build(lambda: statistic(node.name, kept, node.span)) if len(kept) == len(args) else None

    def _is_function(self, node: syntax.Call) -> bool:
        name, head = node.name, head_span(node)
        if name in ATOMS and not name.startswith("_") and not ATOMS[name].operator:
            return True
        if name in self.broken or name in self.reported:
            return False
        if name in self.scope.declared:
            kind = kind_of(self.scope.declared[name])
            hint = "write `*` between them to multiply, or [ ] for an entry"
            if kind == "decision":
                hint += f"; its value of the round before is `prev({name})`"
            self._refuse(fail("OCO202", f"`{name}` is a {kind}, not a function", head, hint))
            return False
        self.reported.add(name)
        self._refuse(refuse_as_function(name, head))
        return False

    def _options(self, node: syntax.Call) -> dict[str, int | float | Expr] | None:
        """Options such as `axis = 0`, which are plain numbers but for those in `NAMED`."""
        results: dict[str, int | float | Expr] = {}
        for name, value in node.options:
            if name in ("span", "shape"):
                self._refuse(fail("OCO304", f"{node.name} has no option {name}", value.span))
                return None
            typed = self.expr(value)
            if typed is None:
                return None
            if name in NAMED:
                results[name] = typed
                continue
            if not isinstance(typed, Constant) or typed.shape:
                self._refuse(fail("OCO304", f"the option `{name}` is a plain number", value.span))
                return None
            results[name] = typed.value.array.item()
        return results


def head_span(call: syntax.Call) -> Span:
    """Span of a call's name, without its arguments."""
    return Span(call.span.source, call.span.start, call.span.start + len(call.name))


def _declare_hint(name: str) -> str:
    if name.lower() in ("inf", "infinity", "nan"):
        return "every number is finite: write the largest value that can come"
    return f"declare it: `param {name} = ...` for fixed data, `stream {name} in [lo, hi]` for data of each round"


def file_of(call: syntax.Call) -> File:
    """File that `file("data.csv")` names. Raises OCO213 where its arguments are no names in quotes."""
    options = dict(call.options)
    column = options.pop("column", syntax.QuotedString("", span=call.span))
    path = call.args[0] if len(call.args) == 1 else None
    if options or not isinstance(path, syntax.QuotedString) or not isinstance(column, syntax.QuotedString):
        hint = 'write file("data.csv"), or file("data.csv", column = "price")'
        raise fail("OCO213", "`file` takes one name in quotes", call.span, hint)
    return File(path.value, column.value, span=call.span)
