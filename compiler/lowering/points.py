"""Points of a product domain: one traced array a decision, with the operations of a vector space, and rows of such points."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import reduce
from inspect import Parameter, signature
from typing import Any

import numpy as np

from oco.compiler.domains import Domain
from oco.compiler.domains.combination import Combination, chosen
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Liftable, Value
from oco.dsl.records import dataclass

Floats = np.ndarray[Any, Any]


Block = Any
"""A traced array; for a large matrix that is kept as factors, a `Combination`, which has the same arithmetic."""


@dataclass(frozen=True)
class Point:
    """A vector of the product space, kept block by block."""

    blocks: tuple[Block, ...]

    def named(self, t: Tracer, name: str) -> Point:
        """Return the point, called `name` in generated code."""
        return Point(tuple(b if isinstance(b, Combination) else t.name(name, b) for b in self.blocks))

    def map(self, f: Callable[..., Block], *others: Point) -> Point:
        """`f` on each block, together with the same block of the others."""
        return Point(tuple(f(*parts) for parts in zip(self.blocks, *(o.blocks for o in others), strict=True)))

    def __add__(self, other: Point) -> Point:
        return self.map(lambda a, b: a + b, other)

    def __sub__(self, other: Point) -> Point:
        return self.map(lambda a, b: a - b, other)

    def __neg__(self) -> Point:
        return self.map(lambda a: -a)

    def __mul__(self, factor: Liftable) -> Point:
        return self.map(lambda a: a * factor)

    __rmul__ = __mul__

    def __truediv__(self, divisor: Liftable) -> Point:
        return self.map(lambda a: a / divisor)

    def dot(self, other: Point) -> Value:
        """<x, y> over all blocks."""
        pairs = zip(self.blocks, other.blocks, strict=True)
        return _total([a.inner(b) if isinstance(a, Combination) else a.tracer.sum(a * b) for a, b in pairs])

    def squared_norm(self) -> Value:
        """|x|_2^2 over all blocks."""
        return self.dot(self)

    def flat(self) -> Value:
        """Entries of all blocks, which are arrays, as one vector, shape (d,)."""
        parts: list[Value] = [b.tracer.reshape(b, (b.size,)) for b in self.blocks]
        return parts[0] if len(parts) == 1 else parts[0].tracer.concat(*parts)

    def of_flat(self, v: Value) -> Point:
        """Point of the shapes of this one from a vector, shape (d,)."""
        start, blocks = 0, []
        for b in self.blocks:
            blocks.append(v.tracer.reshape(v[start : start + b.size], b.shape))
            start += b.size
        return Point(tuple(blocks))

    def dual_norm(self, norm: str) -> Value:
        """|x|_2 where decisions are measured in l2, the largest |entry| where they are in l1; blocks are arrays."""
        t: Tracer = self.blocks[0].tracer
        return t.sqrt(self.squared_norm()) if norm == "l2" else reduce(t.maximum, [t.max(abs(b)) for b in self.blocks])


def select(t: Tracer, c: Value, x: Point, y: Point) -> Point:
    """x where the truth value c holds, else y."""
    return x.map(lambda a, b: chosen(t, c, a, b) if isinstance(a, Combination) else t.where(c, a, b), y)


@dataclass(frozen=True)
class Rows:
    """N vectors of the product space: the gradients of N constraints. Each block has the shape (N, *shape of the block)."""

    blocks: tuple[Value, ...]

    def named(self, t: Tracer, name: str) -> Rows:
        """Return the rows, called `name` in generated code."""
        return Rows(tuple(t.name(name, b) for b in self.blocks))

    @property
    def count(self) -> int:
        """Number of vectors, N."""
        return self.blocks[0].shape[0]

    def map(self, f: Callable[[Value], Value]) -> Rows:
        """`f` on each block."""
        return Rows(tuple(map(f, self.blocks)))

    def row(self, index: Liftable) -> Point:
        """One of the vectors."""
        return Point(tuple(m[index] for m in self.blocks))

    def replaced(self, index: Liftable, x: Point) -> Rows:
        """Return the rows with the vector `x` at `index`."""
        return Rows(tuple(m.tracer.put(m, b, index) for m, b in zip(self.blocks, x.blocks, strict=True)))

    def combine(self, weights: Value) -> Point:
        """sum_n weights_n row_n."""
        return Point(tuple(_shaped(weights @ _matrix(m), m.shape[1:]) for m in self.blocks))

    def weighted(self, weights: Value) -> Rows:
        """Rows sum_n weights_mn row_n, for weights of shape (M, N)."""
        count = weights.shape[0]
        return self.map(lambda m: _shaped(weights @ _matrix(m), (count, *m.shape[1:])))

    def apply(self, x: Point) -> Value:
        """<row_n, x> for each n, shape (N,)."""
        return _total([_matrix(m) @ _vector(v) for m, v in zip(self.blocks, x.blocks, strict=True)])

    def gram(self, other: Rows) -> Value:
        """<row_m, other row_n>, shape (N, N)."""
        return _total([_matrix(a) @ _matrix(b).T for a, b in zip(self.blocks, other.blocks, strict=True)])

    def squared_norms(self) -> Value:
        """|row_n|_2^2, shape (N,)."""
        return _total([m.tracer.sum(_matrix(m) * _matrix(m), axis=1) for m in self.blocks])

    def dual_norms(self, norm: str) -> Value:
        """|row_n|_2 where decisions are measured in l2, the largest |entry| where they are in l1, shape (N,)."""
        t = self.blocks[0].tracer
        if norm == "l2":
            return t.sqrt(self.squared_norms())
        return reduce(t.maximum, [t.max(abs(_matrix(m)), axis=1) for m in self.blocks])

    def times(self, weights: Value) -> Rows:
        """Each row times its own number; `weights` has the shape (N,)."""
        return Rows(tuple(m * _shaped(weights, (*weights.shape, *(1,) * (m.ndim - 1))) for m in self.blocks))

    def scale(self, factors: Point) -> Rows:
        """Each row times `factors`, entry by entry."""
        return Rows(tuple(m * f for m, f in zip(self.blocks, factors.blocks, strict=True)))


class Starts:
    """Starting points of iterative linear minimisations, a vector for each decision (by its place) that has one:
    where the last one ended.

    Those within a loop or a branch start at the vectors from outside of it, and leave none.
    """

    def __init__(self, t: Tracer, vectors: Mapping[int, Value]) -> None:
        self.t, self.blocks, self.vectors = t, t.blocks, dict(vectors)

    def of(self, k: int) -> Value | None:
        """Starting vector of the k-th decision, where the tracer is in the block that it was made in; else None."""
        seen = self.t.blocks[: len(self.blocks)]
        within = len(seen) == len(self.blocks) and all(a is b for a, b in zip(seen, self.blocks))
        return self.vectors.get(k) if within else None

    def ended(self, k: int, vector: Value) -> None:
        """Keep the vector at which the minimisation of the k-th decision ended."""
        if len(self.t.blocks) == len(self.blocks):
            self.vectors[k] = vector


@dataclass(frozen=True)
class Geometry:
    """The product of the decisions' domains, over traced points."""

    t: Tracer
    domains: tuple[Domain, ...]
    starts: Starts

    @property
    def is_entrywise(self) -> bool:
        """True where a projection cuts each entry alone."""
        return all(d.is_box for d in self.domains)

    @property
    def diameter(self) -> float:
        """Largest distance between two of its points."""
        return math.sqrt(sum(d.diameter("l2") ** 2 for d in self.domains))

    @property
    def least_width(self) -> float:
        """Width of the narrowest entry that can move where projections cut entries alone; the diameter where they mix them."""
        if not self.is_entrywise:
            return self.diameter
        widths = np.concatenate([np.ravel(d.upper - d.lower) for d in self.domains])
        return float(np.min(widths[widths > 0], initial=math.inf)) if (widths > 0).any() else 0.0

    def project(self, v: Point) -> Point:
        """argmin |u - v|_2, a projection a block."""
        return Point(tuple(self._named("project", d)(b) for d, b in zip(self.domains, v.blocks, strict=True)))

    def project_jacobian(self, v: Point, p: Point, rows: Rows) -> Rows:
        """The rows times a generalized Jacobian of the projection at v, where p = project(v)."""
        parts = zip(self.domains, v.blocks, p.blocks, rows.blocks, strict=True)
        return Rows(tuple(d.project_jacobian(self.t, a, b, m) for d, a, b, m in parts))

    def lmo(self, c: Point) -> Point:
        """argmin <c, u>, a linear minimisation a block."""
        return Point(
            tuple(self._minimiser(k, d, b) for k, (d, b) in enumerate(zip(self.domains, c.blocks, strict=True)))
        )

    def _minimiser(self, k: int, domain: Domain, c: Block) -> Block:
        start = self.starts.of(k)
        if start is None:
            return domain.lmo(self.t, c)
        vertex, end = domain.lmo_from(self.t, c, start)
        self.starts.ended(k, end)
        return vertex

    def bregman_step(self, x: Point, p: Point) -> Point:
        """argmin <p, u> + D(u, x), a mirror step a block."""
        parts = zip(self.domains, x.blocks, p.blocks, strict=True)
        return Point(tuple(d.bregman_step(self.t, a, b) for d, a, b in parts))

    def clip(self, x: Point) -> Point:
        """The point with each entry cut to its least and greatest value over the domain."""
        lower, upper = self.of_bounds(lambda lo, hi: lo), self.of_bounds(lambda lo, hi: hi)
        return x.map(lambda b, lo, hi: self.t.minimum(self.t.maximum(b, lo), hi), lower, upper)

    def of_bounds(self, f: Callable[[Floats, Floats], Floats], full: bool = False) -> Point:
        """A function of the least and the greatest value of each entry: a number a block where its entries agree, unless `full`."""
        return Point(tuple(self._constant(f(d.lower, d.upper), full) for d in self.domains))

    def _constant(self, array: Floats, full: bool) -> Value:
        array = np.asarray(array)
        if array.size and bool((array == array.flat[0]).all()):
            return self.t.full(float(array.flat[0]), array.shape) if full else self.t.lift(float(array.flat[0]))
        return self.t.constant(np.ascontiguousarray(array), "bounds", "of the bounds of the domain")

    def _named(self, what: str, domain: Domain) -> Callable[[Value], Value]:
        """A named function of the program, or the equations in place where they are few."""
        if domain.is_box:
            return lambda v: domain.project(self.t, v)
        return lambda v: self._call(what, domain, v)

    def _call(self, what: str, domain: Domain, v: Value) -> Value:
        result: Value = self.t.call(
            what, lambda v: domain.project(self.t, v), v, doc=f"The point of {domain} nearest to v.", key=domain
        )
        return result


def _matrix(m: Value) -> Value:
    return m if m.ndim == 2 else m.tracer.reshape(m, (m.shape[0], m.size // max(m.shape[0], 1)))


def _vector(v: Value) -> Value:
    return v if v.ndim == 1 else v.tracer.reshape(v, (v.size,))


def _shaped(v: Value, shape: tuple[int, ...]) -> Value:
    return v if v.shape == shape else v.tracer.reshape(v, shape)


def _total(parts: Sequence[Value]) -> Value:
    return reduce(lambda a, b: a + b, parts)


def repeated(t: Tracer, x: Point, count: int) -> Rows:
    """`count` copies of a point."""
    return Rows(tuple(t.broadcast(b, (count, *b.shape)) for b in x.blocks))


Structured = Value | Point | Rows


def call_over(
    t: Tracer,
    name: str,
    fn: Callable[..., Sequence[Value]],
    *args: Structured,
    doc: str = "",
    words: Sequence[str] = (),
    key: Hashable = None,
) -> tuple[Value, ...]:
    """`t.call` for a function of points and rows, with its `key`: they travel block by block, and `fn` gets them whole.

    words  names of the last of the args where they have none; the first are called as the parameters of `fn` are
    """

    def run(*values: Value) -> Sequence[Value]:
        left = iter(values)
        given: list[Structured] = []
        for a in args:
            if isinstance(a, Value):
                given.append(next(left))
            else:
                given.append(type(a)(tuple(next(left) for _ in a.blocks)))
        return fn(*given)

    flat = [v for a in args for v in ((a,) if isinstance(a, Value) else a.blocks)]
    own = [p.name for p in signature(fn).parameters.values() if p.kind is Parameter.POSITIONAL_OR_KEYWORD]
    called = [*own, *[""] * (len(args) - len(own) - len(words)), *words][: len(args)]
    spoken = [c for a, c in zip(args, called) for _ in ((a,) if isinstance(a, Value) else a.blocks)]
    results: tuple[Value, ...] = t.call(name, run, *flat, doc=doc, words=spoken, key=key)
    return results


def if_over(
    t: Tracer, c: Value, then: Callable[[], Sequence[Structured]], orelse: Callable[[], Sequence[Structured]]
) -> tuple[Structured, ...]:
    """`t.if_` for branches that give points and rows: they travel block by block."""
    shapes: list[Structured] = []

    def flat(branch: Callable[[], Sequence[Structured]]) -> Callable[[], Sequence[Value]]:
        def run() -> list[Value]:
            shapes[:] = branch()
            return [v for s in shapes for v in ((s,) if isinstance(s, Value) else s.blocks)]

        return run

    left = iter(t.if_(c, flat(then), flat(orelse)))
    return tuple(next(left) if isinstance(s, Value) else type(s)(tuple(next(left) for _ in s.blocks)) for s in shapes)
