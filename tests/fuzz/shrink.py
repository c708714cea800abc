"""Smaller models on which a law fails for the same reason: statements left out, expressions replaced by their parts, shapes shrunk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, replace
from time import monotonic
from typing import Any

import numpy as np
from fuzz.case import Case, Law, Refused, Violation
from fuzz.clock import OutOfTime, within
from fuzz.meaning import Evaluator
from fuzz.typed import (
    Apply,
    At,
    Constraint,
    Decision,
    Horizon,
    Let,
    Literal,
    Minimize,
    Node,
    Number,
    Param,
    Part,
    Ref,
    Set,
    Statement,
    Tree,
    mapped,
    names_in,
    nodes_of,
    rebuilt,
    walk,
)

from oco.dsl.diagnostics import OcoError
from oco.dsl.expressions import Kind

MOST_TRIES = 400
PLAIN_SET = Set("box", {"lo": Number(0), "hi": Number(1)})
PLAIN_NUMBERS = (0, 1, 0.5, -1, 2)


def shrunk(tree: Tree, fails: Callable[[Tree], bool], seconds: float = 60.0) -> Tree:
    """A model of shorter text that still fails; no step of `candidates` makes it shorter, unless the time is over."""
    end, tries = monotonic() + seconds, 0
    going = True
    while going:
        going = False
        for candidate in candidates(tree):
            if monotonic() > end or tries >= MOST_TRIES:
                return tree
            try:
                if len(candidate.text) >= len(tree.text):
                    continue
                tries += 1
                with within(end - monotonic()):
                    failed = fails(candidate)
                if failed:
                    tree, going = candidate, True
                    break
            except OcoError:  # the parts do not fit together
                continue
            except OutOfTime:
                return tree
    return tree


def same_failure(law: Law, kind: str, seed: int, effort: float) -> Callable[[Tree], bool]:
    """True where the law fails on a tree as it did."""

    def fails(tree: Tree) -> bool:
        try:
            law(Case(tree, seed, effort))
        except Violation as violation:
            return violation.kind == kind
        except (Refused, OcoError):
            return False
        except Exception:  # what the law cannot read is not the failure that is looked for
            return False
        return False

    return fails


def candidates(tree: Tree) -> Iterator[Tree]:
    """Trees a step smaller, those that leave out most first. Not all are valid models."""
    yield from _without(tree)
    yield from _inlined(tree)
    yield from _plainer(tree)
    yield from _shorter(tree)
    yield from _parts(tree)
    yield from _numbers(tree)


def _at(tree: Tree, k: int, *instead: Statement) -> Tree:
    return replace(tree, statements=(*tree.statements[:k], *instead, *tree.statements[k + 1 :]))


def _without(tree: Tree) -> Iterator[Tree]:
    """Halves of the constraints, then single statements that nothing else names."""
    for k, s in reversed(list(enumerate(tree.statements))):
        if isinstance(s, Horizon | Minimize):
            continue
        rest = _at(tree, k)
        if getattr(s, "name", None) not in {n for other in rest.statements for n in names_in(other)}:
            yield rest


def _inlined(tree: Tree) -> Iterator[Tree]:
    """A let or a param in the places where it is named."""
    for k, s in enumerate(tree.statements):
        value: Node | None = None
        if isinstance(s, Let):
            value = s.value
        elif isinstance(s, Param):
            data = np.asarray(Evaluator(tree).params[s.name])
            data = data if data.dtype.kind == "i" else data.astype(float)
            value = Literal(data) if data.ndim else Number(data.item())
        if value is not None:
            put = _putting(lambda n, name=s.name: isinstance(n, Ref) and n.name == name, value)
            rest = _at(tree, k)
            yield replace(rest, statements=tuple(mapped(other, put) for other in rest.statements))


def _putting(which: Callable[[Node], bool], value: Node) -> Callable[[Node], Node]:
    return lambda top: rebuilt(top, lambda n: value if which(n) else n)


def _plainer(tree: Tree) -> Iterator[Tree]:
    """Optional parts of a statement left out, plain sets, few rounds."""
    for k, s in enumerate(tree.statements):
        if isinstance(s, Horizon) and s.rounds != 5:
            yield _at(tree, k, Horizon(5))
        if isinstance(s, Decision):
            for j in range(len(s.set.cuts)):
                cuts = (*s.set.cuts[:j], *s.set.cuts[j + 1 :])
                yield _at(tree, k, replace(s, set=replace(s.set, cuts=cuts)))
            yield _at(tree, k, replace(s, set=replace(PLAIN_SET, cuts=s.set.cuts)))
        if isinstance(s, Constraint):
            for side in ("left", "right"):
                yield _at(tree, k, replace(s, comparison=replace(s.comparison, **{side: Number(0)})))
        if getattr(s, "dims", ()) and any(isinstance(d, Ref) for d in s.dims):
            yield _at(tree, k, replace(s, dims=tuple(Number(n) for n in s.shape)))
        for f in fields(s):
            default = f.default if f.default is not MISSING else None
            if default is not getattr(s, f.name) and f.default is not MISSING:
                yield _at(tree, k, replace(s, **{f.name: default}))
        if hasattr(s, "bounds") and s.bounds is not None:
            yield _at(tree, k, replace(s, bounds=(Number(0), Number(1))))


def _shorter(tree: Tree) -> Iterator[Tree]:
    """A length shrunk wherever it occurs: in shapes, arrays, indices and slices."""
    lengths = {n for s in tree.statements for n in getattr(s, "shape", ()) if n > 1}
    lengths |= {
        n for s in tree.statements for top in nodes_of(s) for e in walk(top) for n in _literal_shape(e) if n > 1
    }
    for old in sorted(lengths):
        for new in dict.fromkeys((1, old - 1)):
            yield replace(tree, statements=tuple(_resized(s, old, new) for s in tree.statements))


def _literal_shape(node: Node) -> tuple[int, ...]:
    return node.value.shape if isinstance(node, Literal) else ()


def _resized(s: Statement, old: int, new: int) -> Statement:
    def smaller(node: Node) -> Node:
        if isinstance(node, Literal):
            kept = tuple(slice(new) if n == old else slice(None) for n in node.value.shape)
            value = node.value[kept]
            return Literal(np.minimum(value, new - 1) if value.dtype.kind == "i" else value)
        if isinstance(node, Number) and node.value == old and isinstance(node.value, int):
            return Number(new)
        if isinstance(node, Ref):
            return replace(node, of=tuple(new if n == old else n for n in node.of))
        if isinstance(node, At):
            return replace(node, items=tuple(_item(i, new) for i in node.items))
        return node

    found = mapped(s, lambda top: rebuilt(top, smaller))
    if hasattr(found, "of"):
        found = replace(found, of=tuple(new if n == old else n for n in found.of))
    if getattr(found, "given", None) is not None:
        found = replace(
            found, given=found.given[tuple(slice(new) if n == old else slice(None) for n in found.given.shape)]
        )
    return found


def _item(item: Any, new: int) -> Any:
    if isinstance(item, Part):
        return Part(item.start and min(item.start, new - 1), item.stop and min(item.stop, new))
    return Number(min(int(item.value), new - 1)) if isinstance(item, Number) else item


def _parts(tree: Tree) -> Iterator[Tree]:
    """A node replaced by one of its parts, or by a number; the largest nodes first."""
    for k, s in enumerate(tree.statements):
        found = {id(n): n for top in nodes_of(s) for n in walk(top) if n.children}
        for node in sorted(found.values(), key=lambda n: -len(list(walk(n)))):
            for instead in (*node.children, *([] if _plain(node) else [Number(1)])):
                put = _putting(lambda n, target=node: n is target, instead)
                yield _at(tree, k, mapped(s, put))
            if isinstance(node, Apply) and (node.options or node.named):
                put = _putting(lambda n, target=node: n is target, replace(node, options=(), named=False))
                yield _at(tree, k, mapped(s, put))


def _plain(node: Node) -> bool:
    """True where nothing but numbers is in it."""
    return not any(isinstance(n, Ref) and n.kind is not Kind.ROUND for n in walk(node))


def _numbers(tree: Tree) -> Iterator[Tree]:
    """Rounder numbers."""
    for k, s in enumerate(tree.statements):
        for node in {id(n): n for top in nodes_of(s) for n in walk(top)}.values():
            options: list[Node] = []
            if isinstance(node, Number):
                options = [Number(n) for n in PLAIN_NUMBERS] + [Number(float(np.round(node.value, 1)))]
            elif isinstance(node, Literal):
                flat = [np.full(node.value.shape, n, dtype=node.value.dtype) for n in (0, 1)]
                options = [Number(0), Number(1), *map(Literal, flat), Literal(np.round(node.value, 1))]
            for instead in options:
                put = _putting(lambda n, target=node: n is target, instead)
                yield _at(tree, k, mapped(s, put))
