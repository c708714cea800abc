"""Expressions at random, grown from the leaves up: the tables of atoms say what fits, where it has values, and how it bends.

Nothing here names an atom (but to write the shift that a logarithm needs), so that a new row takes part by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from fuzz.arguments import Rng, round_array, small
from fuzz.typed import Apply, At, Literal, Node, Number, Part, Ref, Stack, walk

from oco.dsl.atoms import ATOMS, Atom, Curvature, Monotone
from oco.dsl.diagnostics import OcoError
from oco.dsl.enclose import enclose_node
from oco.dsl.expressions import Kind
from oco.dsl.intervals import Interval

PUBLIC: tuple[Atom, ...] = tuple(a for a in ATOMS.values() if not a.name.startswith("_"))
LARGEST_VALUE = 1e4
LARGEST_SIZE = 24
"""Parts of an expression, at most."""
CONSTANT, AFFINE, CONVEX, CONCAVE, UNKNOWN = (
    Curvature.CONSTANT,
    Curvature.AFFINE,
    Curvature.CONVEX,
    Curvature.CONCAVE,
    Curvature.UNKNOWN,
)
FLAT = (CONSTANT, AFFINE)


@dataclass(frozen=True, eq=False)
class Term:
    """An expression with the range of its values and its curvature in the decisions."""

    node: Node
    range: Interval
    curvature: Curvature

    @property
    def size(self) -> int:
        return sum(1 for _ in walk(self.node))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.node.shape

    @property
    def varies(self) -> bool:
        return self.curvature is not CONSTANT

    @property
    def reveals(self) -> bool:
        """True where a stream is in it."""
        return any(isinstance(n, Ref) and n.kind is Kind.STREAM for n in walk(self.node))

    def uses(self, atom: str) -> bool:
        return any(isinstance(n, Apply) and n.atom == atom for n in walk(self.node))


def fixed(node: Node) -> Term:
    """A number or an array of numbers."""
    return Term(node, enclose_node(node.expr, (), {}), CONSTANT)


def moderate(range: Interval) -> bool:
    """True where values are finite and of a size that people work with."""
    ends = np.concatenate([np.ravel(range.lo), np.ravel(range.hi)])
    return bool(np.all(np.isfinite(ends)) and np.max(np.abs(ends), initial=0) <= LARGEST_VALUE)


def composed(own: Curvature, monotone: Sequence[Monotone], args: Sequence[Term]) -> Curvature:
    """Disciplined convex programming (Grant, Boyd & Ye 2006, section 3)."""
    bent = {CONVEX: CONVEX, CONCAVE: CONCAVE}
    kinds = [AFFINE] if own in FLAT else []
    kinds += [CONVEX] if own in (AFFINE, CONVEX) else []
    kinds += [CONCAVE] if own in (AFFINE, CONCAVE) else []
    for kind in kinds:
        if kind is AFFINE:
            if all(a.curvature in FLAT for a in args):
                return AFFINE
            continue
        with_it = {Monotone.UP: kind, Monotone.DOWN: CONCAVE if kind is CONVEX else CONVEX}
        if all(a.curvature in (*FLAT, bent.get(with_it.get(m, AFFINE), AFFINE)) for m, a in zip(monotone, args)):
            return kind
    return UNKNOWN


def joined(atom: Atom, args: Sequence[Term], options: tuple[tuple[str, int], ...], named: bool = False) -> Term | None:
    """The atom over arguments; None where it has no values on their ranges, or a length that only a param gives. Raises OcoError where
    their shapes do not fit."""
    node = Apply(atom.name, tuple(a.node for a in args), options, named)
    call, ranges, varies = node.expr, tuple(a.range for a in args), tuple(a.varies for a in args)
    if not all(isinstance(length, int) for length in call.shape):
        return None
    if atom.allowed is not None and atom.allowed(call, *ranges):
        return None
    with np.errstate(all="ignore"):
        range_ = atom.bounds(call, *ranges)
        if not any(varies):
            return Term(node, range_, CONSTANT)
        return Term(node, range_, composed(atom.curvature(call, ranges, varies), atom.monotone(call, *ranges), args))


def _shifts(args: Sequence[Term]) -> Iterator[list[Term]]:
    """The arguments as they are; with the last, the first, and all of them moved above 0."""
    yield list(args)
    if args:
        raised = [_raised(a) for a in args]
        yield from ([*args[:-1], raised[-1]], [raised[0], *args[1:]], raised)


def names_of(term: Term) -> set[Kind]:
    """The kinds of names in an expression."""
    return {n.kind for n in walk(term.node) if isinstance(n, Ref)}


def _by_round(t: Term, length: int) -> Term:
    """The place of round t among so many entries, which begin again where the rounds are more."""
    place = joined(ATOMS["sub"], [t, fixed(Number(1))], ())
    assert place is not None
    again = place if t.range.greatest <= length else joined(ATOMS["mod"], [place, fixed(Number(length))], ())
    assert again is not None
    return again


def _raised(term: Term) -> Term:
    least = term.range.least
    if least > 0 or not np.isfinite(least):
        return term
    found = joined(ATOMS["add"], [term, fixed(Number(float(np.ceil(-least)) + 0.5))], ())
    assert found is not None
    return found


class Growth:
    """A pool of expressions over some leaves.

    focus  the atom to be used where it can be, so that all are used in turn
    bent   the share of expressions without known curvature that are kept
    """

    def __init__(self, rng: Rng, leaves: Sequence[Term], focus: Atom | None = None, bent: float = 0.0) -> None:
        self.rng, self.pool, self.focus, self.bent = rng, list(leaves), focus, bent

    def pick(self, options: Sequence[Term]) -> Term:
        return options[int(self.rng.integers(len(options)))]

    def grow(self, count: int) -> None:
        """Add so many expressions, at most; the first ones with the atom in focus."""
        for k in range(count):
            in_focus = self.focus is not None and (k < 3 or self.rng.random() < 0.1)
            for _ in range(200 if in_focus else 12):
                found = self.applied(self.focus) if in_focus and self.focus else self._any()
                if found is not None and self._kept(found):
                    self.pool.append(found)
                    break

    def _kept(self, term: Term) -> bool:
        if term.size > LARGEST_SIZE or not moderate(term.range):
            return False
        return term.curvature is not UNKNOWN or self.rng.random() < self.bent

    def _any(self) -> Term | None:
        draw = self.rng.random()
        if draw < 0.12:
            return self.index()
        if draw < 0.18:
            return self.stack()
        return self.applied(PUBLIC[int(self.rng.integers(len(PUBLIC)))])

    # One part over others.

    def argument(self) -> Term:
        """Mostly what was grown, decisions and the newest above all."""
        draw = self.rng.random()
        if draw < 0.15:
            return fixed(Number(small(self.rng)))
        if draw < 0.22:
            shape = self.pick(self.pool).shape
            return fixed(Literal(round_array(self.rng, shape)) if shape else Number(small(self.rng)))
        if draw < 0.45:
            return self.pick([t for t in self.pool if t.varies] or self.pool)
        if draw < 0.6:
            streams = [t for t in self.pool if isinstance(t.node, Ref) and t.node.kind is Kind.STREAM]
            return self.pick(streams or self.pool)
        return self.pick(self.pool[-8:] if draw < 0.75 else self.pool)

    def applied(self, atom: Atom) -> Term | None:
        """The atom over arguments at random; None where they do not fit."""
        least, most = atom.arity
        count = int(self.rng.integers(least, (least + 1 if most is None else most) + 1))
        args = [self.argument() for _ in range(count)]
        if atom.shape.__name__ in ("filled", "identity", "whole_range"):
            args = [fixed(Number(int(self.rng.integers(1, 4)))) for _ in range(count)]
        options: tuple[tuple[str, int], ...] = ()
        if "axis" in atom.options and args[0].shape and self.rng.random() < 0.4:
            options = (("axis", int(self.rng.integers(len(args[0].shape)))),)
        return self.over(atom, args, options)

    def over(self, atom: Atom, args: Sequence[Term], options: tuple[tuple[str, int], ...] = ()) -> Term | None:
        """The atom over these arguments, shifted to where it has values; None where they do not fit."""
        named = bool(
            len(args) > 1 and not atom.operator and len(args) - 2 < len(atom.by_name) and self.rng.random() < 0.5
        )
        named = named and isinstance(args[-1].node, Number)
        try:
            return next(filter(None, (joined(atom, each, options, named) for each in _shifts(args))), None)
        except OcoError:
            return None

    def index(self) -> Term | None:
        """Some entries, chosen in each way that the language has."""
        bases = [t for t in self.pool if t.shape]
        if not bases:
            return None
        base = self.pick(bases)
        items = [self._item(length) for length in base.shape[: int(self.rng.integers(1, len(base.shape) + 1))]]
        return self.entries(base, items)

    def of_the_round(self, t: Term) -> Term | None:
        """Values of fixed data in round t."""
        bases = [b for b in self.pool if b.shape and not names_of(b) - {Kind.PARAM}]
        base = self.pick(bases or [fixed(Literal(round_array(self.rng, (int(self.rng.integers(1, 8)),))))])
        return self.entries(base, [_by_round(t, base.shape[0])])

    def entries(self, base: Term, items: Sequence[Term | Part]) -> Term | None:
        """base[items]; None where they do not fit."""
        node = At(base.node, tuple(i.node if isinstance(i, Term) else i for i in items))
        try:
            expr = node.expr
        except OcoError:
            return None
        range_ = enclose_node(expr, (base.range, *(i.range for i in items if isinstance(i, Term))), {})
        return Term(node, range_, base.curvature)

    def _item(self, length: int) -> Term | Part:
        draw = self.rng.random()
        fitting = [t for t in self.pool if isinstance(t.node, Ref) and t.node.integer and t.node.kind is not Kind.ROUND]
        fitting = [t for t in fitting if t.range.least >= 0 and t.range.greatest < length]
        if fitting and draw < 0.4:
            return self.pick(fitting)
        if draw < 0.7:
            return fixed(Number(int(self.rng.integers(length))))
        if draw < 0.85:
            start, stop = sorted(self.rng.choice(length + 1, 2, replace=False).tolist())
            return Part(start if start or self.rng.random() < 0.5 else None, stop if self.rng.random() < 0.7 else None)
        return fixed(Literal(self.rng.integers(length, size=int(self.rng.integers(1, 4)))))

    def stack(self) -> Term | None:
        """[a, b, ...] of expressions of one shape."""
        few = [t for t in self.pool if len(t.shape) < 2]
        if not few:
            return None
        first = self.pick(few)
        alike = [t for t in self.pool if t.shape == first.shape]
        items = [first, *(self.pick(alike) for _ in range(int(self.rng.integers(3))))]
        if not any(i.varies or not isinstance(i.node, Number) for i in items):
            return None
        node = Stack(tuple(i.node for i in items))
        range_ = enclose_node(node.expr, tuple(i.range for i in items), {})
        kinds = {i.curvature for i in items} - {CONSTANT}
        worst = AFFINE if kinds <= {AFFINE} else next(iter(kinds - {AFFINE})) if len(kinds - {AFFINE}) == 1 else UNKNOWN
        return Term(node, range_, worst if kinds else CONSTANT)

    # What statements need.

    def choose(self, fits: Callable[[Term], bool]) -> Term | None:
        """One of the expressions that fit: with the atom in focus and with streams where there is any, rather a large one."""
        found = [t for t in self.pool if fits(t)]
        if self.focus is not None and self.rng.random() < 0.6:
            found = [t for t in found if t.uses(self.focus.name)] or found
        if self.rng.random() < 0.6:
            found = [t for t in found if t.reveals] or found
        found = sorted(found, key=lambda t: t.size)[-max(3, len(found) // 2) :]
        return self.pick(found) if found else None

    def negative(self, term: Term) -> Term:
        found = joined(ATOMS["minus"], [term], ())
        assert found is not None
        return found

    def convex(self, term: Term) -> Term:
        """The expression, or its negative where it is concave."""
        return self.negative(term) if term.curvature is CONCAVE else term
