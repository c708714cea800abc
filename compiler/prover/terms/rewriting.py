"""Rewriting of a function so that names occur as rarely as possible: intervals are tight where names occur once.

Equal subexpressions become one node, sums are collected (`H @ x - H @ ones(10)` is `H @ (x - ones(10))`), and forms that composition
does not see through become the atom that they spell (`x @ x` is `sum_squares(x)`, `log(sum(exp(x)))` is `log_sum_exp(x)`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from oco.compiler.prover.terms.matching import args_of, is_all, is_number
from oco.compiler.prover.terms.monomials import gathered
from oco.compiler.prover.terms.spelled import spelled, without_jump
from oco.compiler.prover.terms.summands import is_sum, within_sums
from oco.dsl import algebra
from oco.dsl.atoms import ATOMS, form_of, forms
from oco.dsl.build import call
from oco.dsl.dims import known
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Array, Call, Constant, Expr, Index, Name, Slice, constant, uniform, walk
from oco.dsl.intervals import Interval

Key = tuple[object, ...]
LARGE = 10_000  # entries of a constant that is looked at for being one number


class Simplifier:
    """Rewrites expressions; those rewritten by one simplifier share their equal parts."""

    def __init__(self, varies: Callable[[Expr], bool], ranges: Callable[[Expr], Interval | None]) -> None:
        self.varies = varies
        self.ranges = ranges
        self._nodes: dict[Key, Expr] = {}
        self._keys: dict[int, Key] = {}
        self._done: dict[int, tuple[Expr, Expr]] = {}

    def __call__(self, expr: Expr) -> Expr:
        nodes = list(walk(expr, self._done))
        inner = within_sums(expr, nodes)
        parts: dict[int, Expr] = {}
        for node in nodes:
            children = tuple(parts[id(c)] if id(c) in parts else self._done[id(c)][1] for c in node.children)
            same = all(a is b for a, b in zip(children, node.children))
            rebuilt = self._shared(node if same else node.with_children(children))
            if id(node) in inner:  # the sum that it is a part of is collected as a whole
                parts[id(node)] = rebuilt
                continue
            result = self._rules(rebuilt)
            self._done[id(node)] = (node, result)
            self._done.setdefault(id(result), (result, result))
        return self._done[id(expr)][1]

    # ---- equal nodes are one node

    def _shared(self, node: Expr) -> Expr:
        key = self._key(node)
        result = self._nodes.setdefault(key, node)
        self._keys[id(result)] = key
        return result

    def _key(self, node: Expr) -> Key:
        children = tuple(id(c) for c in node.children)
        match node:
            case Constant(value=data):
                values = data.array if any(data.array.strides) else data.array.flat[0]
                return ("constant", node.shape, node.integer, any(data.array.strides), values.tobytes())
            case Name(name=name):
                return ("name", name, node.shape)
            case Call(atom=atom, options=options):
                return ("call", atom, options, node.shape, children)
            case Slice(start=start, stop=stop):
                return ("slice", start is None, stop is None, children)
            case Index():
                return ("index", children)
            case Array():
                return ("array", children)
        return ("other", id(node))

    # ---- rules

    def _rules(self, node: Expr) -> Expr:
        if not isinstance(node, Call):
            return node
        if all(isinstance(a, Constant) for a in node.args):
            return self._shared(_folded(node))
        for rule in (self._decided, self._spelled, self._unit):
            result = rule(node)
            if result is not None:
                return self(result)
        return self._collected(node) if is_sum(node) else node

    def _decided(self, node: Call) -> Expr | None:
        """The piece that the node is, on the ranges of its arguments."""
        rule = ATOMS[node.atom].decided
        if rule is None:
            return None
        intervals = [r for r in map(self.ranges, node.args) if r is not None]
        return rule(algebra, node, *intervals) if len(intervals) == len(node.args) else None

    def _spelled(self, node: Call) -> Expr | None:
        form = form_of(node)
        if form not in (forms.TIMES, forms.QUOTIENT):
            return spelled(node, self.varies)
        return gathered(node, self.ranges) or (self._product(node) if form == forms.TIMES else None)

    def _unit(self, node: Call) -> Expr | None:
        """Products with one and sums with zero."""
        form = form_of(node)
        if form in (forms.TIMES, forms.QUOTIENT) and is_all(node.args[1], 1.0) and node.shape == node.args[0].shape:
            return node.args[0]
        if form == forms.TIMES and is_all(node.args[0], 1.0) and node.shape == node.args[1].shape:
            return node.args[1]
        if form == forms.TIMES and any(is_all(a, 0.0) for a in node.args):
            return uniform(0.0, known(node.shape), node.span)
        return None

    def _at_least(self, expr: Expr, value: float) -> bool:
        result = self.ranges(expr)
        return result is not None and result.least >= value

    def _product(self, node: Call) -> Expr | None:
        """A product in order: constants, then what does not vary, then what does, pairs of these that spell an atom made one."""
        factors: list[Expr] = []
        stack: list[Expr] = [node]
        while stack:
            e = stack.pop()
            if form_of(e) == forms.TIMES:
                stack.extend(reversed(e.children))
            else:
                factors.append(e)
        moving = [f for f in factors if self.varies(f)]
        while (paired := self._paired(moving, node)) is not None:
            moving = paired
        constants: list[Expr] = [f for f in factors if isinstance(f, Constant)]
        fixed = [f for f in factors if not isinstance(f, Constant) and not self.varies(f)]
        result = self._times(moving) if moving else None
        for group in (fixed, constants):
            if group:
                product = self._times(group)
                result = product if result is None else self._shared(call("mul", product, result))
        assert result is not None
        if result.shape != node.shape:
            result = self._shared(call("mul", uniform(1.0, known(node.shape)), result))
        return None if result is self._shared(node) else replace(result, span=node.span)

    def _paired(self, factors: list[Expr], node: Call) -> list[Expr] | None:
        """The factors with the first pair that spells an atom replaced by it."""
        for i, a in enumerate(factors):
            for j, b in enumerate(factors):
                if i != j and (result := self._pair(a, b, node)) is not None:
                    return [result, *(f for k, f in enumerate(factors) if k not in (i, j))]
        return None

    def _pair(self, a: Expr, b: Expr, node: Call) -> Expr | None:
        """u * u is square(u), u * log(u) is -entr(u), u * log(u / v) is rel_entr(u, v), exp(u) * exp(v) is exp(u + v)."""
        if a is b and len(node.args) == 2 and a.shape == node.shape:
            return call("square", a)
        if (result := without_jump(a, b)) is not None:
            return result
        if form_of(b) is forms.LOGARITHM and args_of(b)[0] is a and a.shape == node.shape:
            return call("minus", call("entr", a))
        if (
            form_of(b) is forms.LOGARITHM
            and form_of(args_of(b)[0]) is forms.QUOTIENT
            and args_of(args_of(b)[0])[0] is a
            and self._at_least(a, 0.0)
        ):
            return call("rel_entr", *args_of(args_of(b)[0]))
        if form_of(a) is forms.EXPONENTIAL and form_of(b) is forms.EXPONENTIAL:
            return call("exp", call("add", args_of(a)[0], args_of(b)[0]))
        return None

    def _times(self, factors: list[Expr]) -> Expr:
        """The product from left to right; constants are multiplied out."""
        total = factors[0]
        for f in factors[1:]:
            product = call("mul", total, f)
            both = isinstance(total, Constant) and isinstance(f, Constant)
            total = self._shared(_folded(product) if both else product)
        return total

    # ---- sums

    def _collected(self, node: Call) -> Expr:
        """A sum with equal terms merged and common factors taken out."""
        terms = self._terms(node)
        merged: dict[int, tuple[float, Expr]] = {}
        for coefficient, term in terms:
            merged[id(term)] = (merged.get(id(term), (0.0, term))[0] + coefficient, term)
        kept = [(c, u) for c, u in merged.values() if c != 0.0]
        factored = self._factored(kept)
        if len(factored) == len(terms):
            return node
        result = self._sum(factored, node)
        return self._shared(result) if isinstance(result, Call) else result

    def _terms(self, node: Expr) -> list[tuple[float, Expr]]:
        """`node` as a sum of numbers times terms; terms of another shape than the sum's (they stretch) stay as they are."""
        results: list[tuple[float, Expr]] = []
        stack: list[tuple[float, Expr]] = [(1.0, node)]
        while stack:
            coefficient, e = stack.pop()
            match form_of(e), e.children:
                case forms.Signed(signs), args:
                    stack.extend((coefficient * s, a) for s, a in reversed(list(zip(signs, args))))
                case forms.TIMES, (factor, other) if is_number(factor):
                    stack.append((coefficient * _value(factor), other))
                case _:
                    results.append((coefficient, e))
        return results

    def _factored(self, terms: list[tuple[float, Expr]]) -> list[tuple[float, Expr]]:
        """Take factors that several products share out of them; beside `c @ u`, `sum(u)` is a product with ones."""
        terms = self._with_sums_as_products(terms)
        for form in (forms.MATRIX_PRODUCT, forms.TIMES):
            for position in (1, 0):
                groups: dict[tuple[int, tuple[object, ...]], list[int]] = {}
                for i, (_, term) in enumerate(terms):
                    if isinstance(term, Call) and form_of(term) == form:
                        shapes = (term.shape, term.args[1 - position].shape)
                        groups.setdefault((id(term.args[position]), shapes), []).append(i)
                shared = [members for members in groups.values() if len(members) > 1]
                if shared:
                    taken = {i for members in shared for i in members}
                    rest = [term for i, term in enumerate(terms) if i not in taken]
                    merged = [self._merged([terms[i] for i in members], position) for members in shared]
                    return self._factored([*rest, *merged])
        return terms

    def _with_sums_as_products(self, terms: list[tuple[float, Expr]]) -> list[tuple[float, Expr]]:
        others = {id(a) for _, u in terms if form_of(u) == forms.MATRIX_PRODUCT and u.shape == () for a in args_of(u)}
        results = []
        for c, u in terms:
            if form_of(u) == forms.TOTAL and id(args_of(u)[0]) in others:
                ones = self(uniform(1.0, known(args_of(u)[0].shape)))
                u = self._shared(call("matmul", ones, args_of(u)[0]))
            results.append((c, u))
        return results

    def _merged(self, terms: list[tuple[float, Expr]], position: int) -> tuple[float, Expr]:
        """Products that share the factor at `position`, as one product."""
        first = terms[0][1]
        assert isinstance(first, Call)
        inner = [(c, args_of(u)[1 - position]) for c, u in terms]
        template = call("add", inner[0][1], inner[1][1])
        combined = self(self._sum(inner, template))
        args = (first.args[0], combined) if position == 0 else (combined, first.args[1])
        return 1.0, self(call(first.atom, *args))

    def _sum(self, terms: list[tuple[float, Expr]], node: Call) -> Expr:
        total: Expr | None = None
        for coefficient, term in sorted(terms, key=lambda t: t[0] < 0):
            scaled = term if abs(coefficient) == 1.0 else call("mul", abs(coefficient), term)
            if total is None:
                total = scaled if coefficient > 0 else call("minus", scaled)
            else:
                total = call("add" if coefficient > 0 else "sub", total, scaled)
        shape = known(node.shape)
        if total is None:
            return uniform(0.0, shape, node.span)
        if total.shape != node.shape:
            total = call("add", total, uniform(0.0, shape))
        return total


def _folded(node: Call) -> Constant:
    """The value of a call of constants; a large one of equal entries is kept as one number."""
    array = np.asarray(evaluate(node, {}))
    if array.size > LARGE and array.dtype.kind == "f" and np.all(array == array.flat[0]):
        return uniform(float(array.flat[0]), array.shape, node.span)
    value = constant(array, node.span)
    return Constant(value.value, shape=value.shape, integer=node.integer, span=node.span)


def _value(node: Expr) -> float:
    assert isinstance(node, Constant)
    return float(node.value.array)
