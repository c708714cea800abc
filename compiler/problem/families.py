"""Like numbers, such as constraints written in a loop, as entries of one vector: a family is evaluated and derived at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from oco.compiler.problem.vectorize import LEAST, Member, Slot, as_vector, like_term_key
from oco.dsl.dims import known
from oco.dsl.expressions import Expr
from oco.dsl.records import dataclass

Ints = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Families:
    """Expressions whose entries, one expression after the other, are those of others in another order.

    members  of each of them the others that it stands for, by number
    order    the place of each entry among those of the others, shape (N,); None where that is its own
    """

    exprs: tuple[Expr, ...]
    members: tuple[tuple[int, ...], ...]
    order: Ints | None

    @property
    def back(self) -> Ints | None:
        """The place of each entry of the others here."""
        return None if self.order is None else np.argsort(self.order)

    @property
    def parts(self) -> list[tuple[Expr, int]]:
        """The expressions with their numbers of entries."""
        return [(e, int(np.prod(known(e.shape), dtype=np.int64))) for e in self.exprs]


def families(exprs: Sequence[Expr], kinds: Sequence[object] | None = None) -> Families:
    """Put like numbers of one kind together, at least `LEAST` at a time; arrays and other numbers stay as they are."""
    starts = np.cumsum([0, *(int(np.prod(known(e.shape), dtype=np.int64)) for e in exprs)])
    groups: dict[object, list[tuple[int, Member]]] = {}
    for k, expr in enumerate(exprs):
        slots = list[Slot]()
        key = like_term_key(expr, slots) if expr.shape == () else None
        kind = ("apart", k) if key is None else (None if kinds is None else kinds[k], key)
        groups.setdefault(kind, []).append((k, (expr, slots)))
    results: list[tuple[tuple[int, ...], Expr]] = []
    for group in groups.values():
        vector = as_vector([member for _, member in group]) if len(group) >= LEAST else None
        if vector is not None and vector.shape != ():
            results.append((tuple(k for k, _ in group), vector))
        else:
            results += [((k,), expr) for k, (expr, _) in group]
    results.sort(key=lambda pair: pair[0])
    places = [np.arange(starts[k], starts[k + 1]) for members, _ in results for k in members]
    order = np.concatenate([np.zeros(0, dtype=np.int64), *places])
    own = bool((order == np.arange(order.size)).all())
    return Families(tuple(e for _, e in results), tuple(m for m, _ in results), None if own else order)
