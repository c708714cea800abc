"""Arguments of domains and distributions: candidates of every form, and the language's own tables say which of them fit.

Nothing here names a domain or a distribution, so that a new row takes part as soon as candidates fit it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from fuzz.nodes import Array, Literal, Node, Number, Shape
from fuzz.typed import Distribution, Set

from oco.dsl.distributions import DISTRIBUTIONS, check_shapes, check_values
from oco.dsl.domains import DOMAINS, Complaint

Rng = np.random.Generator
TRIES = 2000
SMALL = (0, 1, 2, 3, 0.5, 0.25, 1.5, -1, -2, -0.5, 2.5, 0.1)
UNITS = (1e-6, 1e-3, 1e3, 1e6)
"""Factors of entries that are measured in other units."""
UNUSUAL = 0.1


def node_of(value: Any) -> Node:
    """A number or an array as it is written."""
    array = np.asarray(value)
    return Literal(array) if array.ndim else Number(array.item())


def small(rng: Rng) -> float | int:
    return SMALL[int(rng.integers(len(SMALL)))]


def round_array(rng: Rng, shape: Shape, low: float = -2.0, high: float = 2.0) -> Array:
    """Numbers with two digits, now and then in unlike units."""
    drawn = rng.uniform(low, high, shape).round(2)
    if rng.random() < UNUSUAL:
        drawn = drawn * rng.choice(UNITS, size=shape)
    return np.asarray(drawn)


def definite(rng: Rng, n: int) -> Array:
    """A symmetric positive definite matrix."""
    root = rng.uniform(-1, 1, (n, n)).round(1)
    return (root @ root.T).round(2) + 0.5 * np.eye(n)


def around(rng: Rng, n: int) -> Array:
    """Rows whose half-spaces hold a bounded set together: -I, I, and some more."""
    rows = [np.eye(n), -np.eye(n), rng.uniform(-1, 1, (int(rng.integers(0, 3)), n)).round(1)]
    return np.concatenate(rows)


def edges(rng: Rng, count: int) -> Array:
    """A path, and edges beside it that lead onwards as well: a graph without cycles."""
    nodes = int(rng.integers(2, max(3, count + 1)))
    path = [[k, k + 1] for k in range(nodes - 1)][:count]
    more = [sorted(rng.choice(len(path) + 1, 2, replace=False).tolist()) for _ in range(count - len(path))]
    return np.array([*path, *more])


def candidates(rng: Rng, shape: Shape) -> list[Callable[[], Any]]:
    """Makers of values that an argument of a decision or a stream of this shape may have."""
    size = shape[0] if shape else 1
    return [
        lambda: small(rng),
        lambda: small(rng),
        lambda: float(rng.uniform(0, 3).__round__(2)),
        lambda: float(rng.choice(UNITS)),
        lambda: size,
        lambda: size - 1,
        lambda: round_array(rng, shape),
        lambda: round_array(rng, shape, 0.2, 3),
        lambda: round_array(rng, shape[-1:]),
        lambda: definite(rng, size),
        lambda: around(rng, size),
        lambda: round_array(rng, (2 * size + int(rng.integers(0, 3)),), 0.2, 2),
        lambda: edges(rng, size),
        lambda: np.sort(rng.integers(0, max(1, size), size)) if shape else 0,
        lambda: probabilities(rng),
    ]


def probabilities(rng: Rng) -> Array:
    tenths = rng.multinomial(10, [0.4, 0.3, 0.3])
    return np.asarray(tenths / 10)


def domain_arguments(rng: Rng, kind: str, shape: Shape) -> Set | None:
    """A set of this kind for decisions of this shape; None where no candidates fit."""
    row = DOMAINS[kind]
    names = row.parameters[: len(row.parameters) - int(rng.integers(row.optional + 1))]
    found = _fitting(
        rng,
        names,
        shape,
        lambda arrays: row.shapes(shape, {n: a.shape for n, a in arrays.items()}) or row.values(shape, arrays),
    )
    return None if found is None else Set(kind, found, bool(rng.random() < 0.2))


def distribution_arguments(rng: Rng, kind: str, shape: Shape) -> Distribution | None:
    """A distribution of this kind for a stream of this shape; None where no candidates fit."""
    row = DISTRIBUTIONS[kind]
    found = _fitting(
        rng,
        row.names,
        shape,
        lambda arrays: check_shapes(row, shape, {n: a.shape for n, a in arrays.items()}) or check_values(row, arrays),
    )
    if found is None:
        return None
    return Distribution(kind, tuple(found[n] for n in row.parameters), {n: found[n] for n in row.keywords})


Complaints = Callable[[Mapping[str, Array]], Complaint | None]


def _fitting(rng: Rng, names: Sequence[str], shape: Shape, wrong: Complaints) -> dict[str, Node] | None:
    """Candidates that nothing is wrong with: one that is complained of is drawn again; None where it is the shape of the whole."""
    makers = candidates(rng, shape)

    def draw() -> Any:
        return makers[int(rng.integers(len(makers)))]()

    drawn = {n: draw() for n in names}
    for attempt in range(TRIES):
        complaint = wrong({n: np.asarray(v, dtype=float) for n, v in drawn.items()})
        if complaint is None:
            return {n: node_of(v) for n, v in drawn.items()}
        if complaint.argument not in drawn and (not names or complaint.code == "OCO414"):
            return None
        again = names if complaint.argument not in drawn or attempt % 20 == 19 else (complaint.argument,)
        drawn |= {n: draw() for n in again}
    return None
