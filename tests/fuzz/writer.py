"""Writers of models at random: the statements so far, what they declare, and values that streams may have."""

from __future__ import annotations

from typing import Any

import numpy as np
from fuzz.arguments import Rng
from fuzz.growth import CONSTANT, PUBLIC, Growth, Term, joined
from fuzz.nodes import Apply, Array, Node, Number, Shape
from fuzz.typed import (
    Decision,
    Declaration,
    Horizon,
    Index,
    Minimize,
    Param,
    Set,
    Statement,
    Stream,
    Tree,
)

from oco.compiler.problem.canonical import Canonical, DecisionBlock, StreamRange, canonical
from oco.dsl.atoms import ATOMS
from oco.dsl.diagnostics import OcoError
from oco.dsl.intervals import interval
from oco.dsl.load import parse

ATTEMPTS = 30


class Unlucky(Exception):
    """No valid part was found after many attempts."""


class Writer:
    """A model in the making: the statements so far, the leaves that they declare, and the sets that decisions lie in."""

    def __init__(self, seed: int) -> None:
        self.seed, self.rng = seed, np.random.default_rng(seed)
        self.n, self.m = (int(k) for k in self.rng.choice((2, 3, 4, 5), 2, replace=False))
        self.tree, self.leaves, self.serial = Tree(()), list[Term](), 0
        self.blocks: list[DecisionBlock] = []
        self.streams: list[StreamRange] = []
        self.growth = Growth(self.rng, (), PUBLIC[seed % len(PUBLIC)])

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def pick(self, options: Any) -> Any:
        options = list(options)
        return options[int(self.rng.integers(len(options)))]

    def name(self, letter: str) -> str:
        self.serial += 1
        return f"{letter}{self.serial}"

    def shape(self, *kinds: str) -> Shape:
        """A shape of the language; with `kinds` among "number", "vector", "matrix", "square" only."""
        n, m = self.n, self.m
        shapes = {
            "number": [(), (1,), (1, 1)],
            "vector": [(n,), (n,), (m,), (1, n), (n, 1)],
            "matrix": [(m, n), (n, m)],
            "square": [(n, n)],
        }
        return tuple(
            self.pick(shapes[self.pick(kinds or ("number", "vector", "vector", "vector", "matrix", "square"))])
        )

    def add(self, statement: Statement) -> None:
        self.tree = self.tree.and_(statement)

    def declare(self, statement: Declaration, low: Any, high: Any, curvature: Any = CONSTANT) -> None:
        self.add(statement)
        self.leaves.append(Term(statement.ref(), interval(low, high, statement.shape), curvature))

    def dims(self, shape: Shape) -> tuple[Node, ...]:
        """The shape as it is written: numbers, or params that have that value."""
        whole = {int(p.value.value): p for p in self.tree.of(Param) if isinstance(p.value, Number) and p.integer}
        whole |= {len(i.labels): i for i in self.tree.of(Index)}
        return tuple(whole[k].ref() if k in whole and self.chance(0.7) else Number(k) for k in shape)

    def check(self, statement: Decision | Stream) -> Canonical | None:
        """The problem of a declaration over the params so far; None where the language refuses it, as for an empty set."""
        x = statement if isinstance(statement, Decision) else PLAIN
        wanted = (Horizon(1), *self.tree.of(Index), *self.tree.of(Param), *([] if statement is x else [x]), statement)
        declared = Tree((*wanted, Minimize(Apply("sum", (x.ref(),)))))
        try:
            return canonical(parse(declared.text, params=declared.given or None))
        except OcoError as error:
            if error.code in ("OCO999", "OCO133"):
                raise
            return None


PLAIN = Decision("x0", (), (), Set("box", {"lo": Number(0), "hi": Number(1)}))


def drawn(rng: Rng, s: StreamRange) -> Array:
    """A value that a stream may have."""
    if s.stream.values:
        values = np.array(s.stream.values)[rng.integers(len(s.stream.values), size=s.shape)]
        return np.asarray(values, dtype=np.int64 if s.integer else float)
    return stream_value(rng, s.lower, s.upper, s.shape, s.integer)


def stream_value(rng: Rng, lower: Any, upper: Any, shape: Shape, integer: bool) -> Array:
    """A value within bounds: ends, one end for all entries, or anything between; unbounded ends are moderate."""
    lo, hi = np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)
    lo = np.where(np.isfinite(lo), lo, np.where(np.isfinite(hi), hi, 0) - 10)
    hi = np.where(np.isfinite(hi), hi, lo + 20)
    mode = rng.random()
    share = rng.random(shape) if mode < 0.4 else rng.integers(0, 2, shape) if mode < 0.8 else rng.integers(0, 2)
    value = np.broadcast_to(lo + share * (hi - lo), shape)
    return np.round(value).astype(np.int64) if integer else np.array(np.clip(value, lo, hi))


def both(atom: str, left: Term, right: Term) -> Term:
    found = joined(ATOMS[atom], [left, right], ())
    assert found is not None
    return found
