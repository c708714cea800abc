"""Families of constraints over an index, `cap[z in zone]: sum(x[plant in at[z]]) <= limit[z]`, as one constraint of arrays.

Each part that depends on z is a number for each z, so that it becomes an array over the index: `limit[z]` is `limit`, and the sum of
the entries of a group `sum(x, by = at)`. What acts on numbers then acts entry by entry; nothing is written out for each z.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from oco.dsl.along import BY
from oco.dsl.atoms import ATOMS
from oco.dsl.atoms.shapes import entrywise
from oco.dsl.axes import axis_lengths
from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.dims import symbol
from oco.dsl.expressions import Expr
from oco.dsl.members import index_within
from oco.dsl.scope import Scope
from oco.dsl.statements import Param
from oco.dsl.text import syntax

FORM = "write it with arrays: `cap: sum(x, by = at) <= limit` adds up the entries of each group"


def misplaced(item: syntax.GroupItem) -> OcoError:
    """Error for a choice of entries that stands in no sum of a family."""
    return fail("OCO554", "entries are chosen by `in` in the sums of a family alone", item.span, FORM)


def _by_groups(atom: str) -> bool:
    return atom in ATOMS and BY in ATOMS[atom].options


class IndexFamily:
    """Family of constraints with a variable over an index. `typed` gives the expression of a part, None where it is none.

    Raises OCO554 where a part is no number for each value of the variable.
    """

    def __init__(
        self,
        variable: syntax.Identifier,
        index: syntax.Identifier,
        scope: Scope,
        typed: Callable[[syntax.Expression], Expr | None],
    ) -> None:
        self.variable, self.index, self.scope, self.typed = variable.name, index.name, scope, typed
        own = scope.declared.get(index.name)
        if not isinstance(own, Param) or not own.is_index:
            hint = f"declare it: `index {index.name} = [...]`; or write `service: x <= 1`: a constraint of arrays holds for every entry"
            raise fail("OCO554", f"a family is over an index; `{index.name}` is none", index.span, hint)
        if variable.name in scope.declared:
            message = f"`{variable.name}` is declared, so it cannot be the variable of a family"
            raise fail("OCO554", message, variable.span, "give it another name, `z` say")

    def sides(self, left: syntax.Expression, right: syntax.Expression) -> tuple[syntax.Expression, syntax.Expression]:
        """Sides of the constraint of arrays."""
        if not self._depends(left) and not self._depends(right):
            message = f"nothing in this constraint depends on `{self.variable}`"
            raise fail("OCO554", message, left.span.to(right.span), "leave out the brackets behind its label")
        return self.array(left), self.array(right)

    def array(self, node: syntax.Expression) -> syntax.Expression:
        """Array over the index of the numbers that a part is, or a part that is one number for all."""
        if not self._depends(node):
            self._one_number(node)
            return node
        match node:
            case syntax.Subscript(items=items):
                if chosen := next((i for i in items if isinstance(i, syntax.GroupItem)), None):
                    raise misplaced(chosen)
                return self._entry(node, None)
            case syntax.Call(name=name, args=(argument,), options=()) if self._chosen(argument) and _by_groups(name):
                return self._total(node, argument)
            case syntax.Call(name=name, args=args, options=()) if name in ATOMS and ATOMS[name].shape is entrywise:
                return replace(node, args=tuple(self.array(a) for a in args))
        message = f"`{node.span.text}` is not made entry by entry for each `{self.variable}`"
        raise fail("OCO554", message, node.span, FORM)

    def _depends(self, node: syntax.Expression) -> bool:
        parts = [n for n in syntax.walk(node) if isinstance(n, (syntax.Identifier, syntax.Subscript))]
        return any(self._is_variable(n) for n in parts) or bool(self._chosen(node))

    def _is_variable(self, node: syntax.Item) -> bool:
        return isinstance(node, syntax.Identifier) and node.name == self.variable

    def _chosen(self, node: syntax.Expression) -> list[syntax.GroupItem]:
        """Choices of entries in a part."""
        items = [i for n in syntax.walk(node) if isinstance(n, syntax.Subscript) for i in n.items]
        return [i for i in items if isinstance(i, syntax.GroupItem)]

    def _one_number(self, node: syntax.Expression) -> None:
        own = self.typed(node)
        if own is not None and own.shape:
            message = f"each constraint of a family is one number, and `{node.span.text}` has several entries"
            raise fail("OCO554", message, node.span, f"choose one: `[{self.variable}]` behind it")

    def _entry(self, node: syntax.Subscript, group: syntax.Identifier | None) -> syntax.Expression:
        """Array of the entries of each z: the base itself, its columns, or within the sum of a group what each entry of it has."""
        base = self.typed(node.base)
        if base is None:
            return node.base
        places = [k for k, item in enumerate(node.items) if self._is_variable(item)]
        lengths = axis_lengths(base, self.scope.declared, self.scope.indexes)
        fits = len(places) == 1 and len(node.items) == len(lengths) and lengths[places[0]] == symbol(self.index)
        others = [item for item in node.items if not self._is_variable(item)]
        if not fits or any(isinstance(i, (syntax.Slice, syntax.GroupItem)) or self._depends(i) for i in others):
            message = f"`{node.span.text}` is not one entry for each name of `{self.index}`"
            raise fail("OCO554", message, node.span, f"take one: `limit[{self.variable}]`, `A[{self.variable}, 0]`")
        for item in others:
            if not isinstance(item, (syntax.Slice, syntax.GroupItem)):
                self._one_number(item)
        whole: syntax.Item = syntax.Slice(None, None, span=node.span) if group is None else group
        if not others and group is None:
            return node.base
        return replace(node, items=tuple(whole if self._is_variable(i) else i for i in node.items))

    def _total(self, node: syntax.Call, argument: syntax.Expression) -> syntax.Expression:
        """Sum by the groups of the entries that are chosen."""
        groups = {self._group(c.group) for c in self._chosen(argument)}
        at = next(iter(groups), None)
        own = None if at is None else self.scope.declared.get(at.name)
        index = index_within(own.bounds) if isinstance(own, Param) else None
        if len(groups) != 1 or at is None or index is None or index.name != self.index:
            choice = self._chosen(argument)[0]
            message = f"`{choice.span.text}` chooses no group of each name of `{self.index}`"
            hint = f"declare `param at[plant] in {self.index} = [...]`, and choose `x[plant in at[{self.variable}]]`"
            raise fail("OCO554", message, choice.span, hint)
        return replace(node, args=(self._members(argument, at),), options=((BY, at),))

    def _group(self, node: syntax.Expression) -> syntax.Identifier | None:
        """Param that chooses the entries of each z: `at` of `at[z]`."""
        match node:
            case syntax.Subscript(base=syntax.Identifier() as at, items=(item,)) if self._is_variable(item):
                return at
        return None

    def _members(self, node: syntax.Expression, at: syntax.Identifier) -> syntax.Expression:
        """Part that is added up, for each entry that has a group: chosen entries as they are, entries of z as that of the group."""
        match node:
            case syntax.Subscript(base=base, items=(syntax.GroupItem(group=group),)) if self._group(group) == at:
                return base
            case syntax.Subscript() if self._depends(node):
                return self._entry(node, at)
            case syntax.Call(name=name, args=args, options=()) if name in ATOMS and ATOMS[name].shape is entrywise:
                return replace(node, args=tuple(self._members(a, at) for a in args))
        if self._depends(node):
            message = f"`{node.span.text}` is not made entry by entry for each `{self.variable}`"
            raise fail("OCO554", message, node.span, FORM)
        self._one_number(node)
        return node
