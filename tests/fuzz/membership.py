"""Distance of a decision outside its domain, in plain NumPy, written from the table of domains in grammar/language.md.

Everything is measured in widths: a row a @ x <= b that is broken by r is broken by r / (|a| @ w), w the widths of the entries, and a norm
by its share of the radius.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from fuzz.meaning import Evaluator
from fuzz.typed import Array, Comparison, Decision

Args = Mapping[str, Array]
EPS = float(np.finfo(float).eps)
ROUNDING = 16.0
"""Roundings of the largest number in a row that are allowed beside the share of the widths: what a sum of few entries takes."""


class Outside:
    """The most by which a decision breaks a row or a norm, in widths w of its entries (same shape)."""

    def __init__(self, x: Array, widths: Array) -> None:
        self.x, self.w, self.worst = np.asarray(x, dtype=np.longdouble), widths, -np.inf

    def most(self, values: Array, limits: Array, slopes: Array, terms: Array) -> None:
        """values <= limits; `slopes` is |a| @ w of each, `terms` the size of what is added up."""
        room = ROUNDING * EPS * (terms + np.abs(limits))
        broken = np.maximum(np.asarray(values - limits) - room, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(broken > 0, broken / slopes, 0.0)
        self.worst = max(self.worst, float(np.max(share, initial=0.0)))

    def entries(self, low: Any, high: Any) -> None:
        size = np.abs(self.x)
        self.most(self.x, high, self.w, size)
        self.most(-self.x, -np.asarray(low), self.w, size)

    def rows(self, A: Array, b: Array, equal: bool = False) -> None:
        """A @ x <= b for the flattened x, or ==."""
        flat, w = self.x.ravel(), self.w.ravel()
        value, slopes, terms = A @ flat, np.abs(A) @ w, np.abs(A) @ np.abs(flat)
        self.most(value, b, slopes, terms)
        if equal:
            self.most(-value, -b, slopes, terms)

    def total(self, total: Any) -> None:
        self.rows(np.ones((1, self.x.size)), np.reshape(total, 1), equal=True)

    def norm(self, value: Any, radius: Any) -> None:
        self.most(np.asarray(value), np.asarray(radius), np.asarray(radius), np.asarray(value))


def _spectrum(x: Array) -> Array:
    return np.linalg.svd(x.astype(float), compute_uv=False)


def _spectrahedron(o: Outside, a: Args) -> None:
    units = np.eye(o.x.size).reshape(o.x.size, *o.x.shape)
    o.rows((units - units.swapaxes(1, 2)).reshape(o.x.size, -1), np.zeros(o.x.size))
    o.norm(a["trace"] - np.linalg.eigvalsh(o.x.astype(float))[0], a["trace"])
    o.rows(np.eye(len(o.x)).reshape(1, -1), a["trace"].reshape(1), equal=True)


def _birkhoff(o: Outside, a: Args) -> None:
    n = len(o.x)
    o.entries(0, np.inf)
    sums = [np.kron(np.eye(n), np.ones(n)), np.kron(np.ones(n), np.eye(n))]
    o.rows(np.concatenate(sums), np.ones(2 * n), equal=True)


def _groups(o: Outside, a: Args) -> None:
    labels = a["groups"].astype(int)
    o.norm(sum(np.sqrt(np.sum(o.x[labels == g] ** 2)) for g in np.unique(labels)), a["r"])


def _flow(o: Outside, a: Args) -> None:
    """Net flow out of each node: 1 at the source, -1 at the sink, and 0 elsewhere."""
    edges, source, sink = a["edges"].astype(int), int(a["source"]), int(a["sink"])
    nodes = sorted({*edges.ravel().tolist(), source, sink})
    A = np.array([(edges[:, 0] == v).astype(float) - (edges[:, 1] == v) for v in nodes])
    o.entries(0, np.inf)
    o.rows(A, np.array([float(v == source) - float(v == sink) for v in nodes]), equal=True)


def _ellipsoid(o: Outside, a: Args) -> None:
    away = (o.x - a.get("c", 0)).astype(float)
    o.norm(np.sqrt(away @ np.linalg.solve(a["P"].astype(float), away)), 1.0)


def _simplex(o: Outside, a: Args) -> None:
    o.entries(0, np.inf)
    o.total(a.get("s", 1.0))


def _budget(o: Outside, a: Args) -> None:
    o.entries(a["lo"], a["hi"])
    o.total(a["total"])


def _capped(o: Outside, a: Args) -> None:
    o.entries(0, a["cap"])
    o.total(a.get("s", 1.0))


def _nonneg(o: Outside, a: Args) -> None:
    o.entries(0, np.inf)
    o.norm(np.sqrt(np.sum(o.x**2)), a["r"])


MEMBERSHIP: dict[str, Callable[[Outside, Args], None]] = {
    "box": lambda o, a: o.entries(a["lo"], a["hi"]),
    "ball": lambda o, a: o.norm(np.sqrt(np.sum(o.x**2)), a["r"]),
    "l1_ball": lambda o, a: o.norm(np.sum(np.abs(o.x)), a["r"]),
    "simplex": _simplex,
    "nonneg_ball": _nonneg,
    "polytope": lambda o, a: o.rows(a["A"], np.broadcast_to(a["b"], len(a["A"]))),
    "ellipsoid": _ellipsoid,
    "nuclear_ball": lambda o, a: o.norm(np.sum(_spectrum(o.x)), a["r"]),
    "spectrahedron": _spectrahedron,
    "birkhoff": _birkhoff,
    "budget": _budget,
    "capped_simplex": _capped,
    "group_ball": _groups,
    "flow": _flow,
}
"""A function for each domain of the language. A new domain needs its line here, from its definition."""


def outside(value: Evaluator, decision: Decision, x: Array, widths: Array) -> float:
    """The most by which `x` breaks the decision's domain or a cut of it, in widths of its entries."""
    found = Outside(np.asarray(x).reshape(decision.shape), np.asarray(widths).reshape(decision.shape))
    args = {name: np.asarray(value(node, {})) for name, node in decision.set.args.items()}
    MEMBERSHIP[decision.set.kind](found, args)
    for comparison in decision.set.cuts:
        _cut(value, found, decision, comparison)
    return found.worst


def _cut(value: Evaluator, found: Outside, decision: Decision, comparison: Comparison) -> None:
    """left - right is affine: its rows are its values at the unit vectors less that at 0."""

    def difference(x: Array) -> Array:
        env = {decision.name: x}
        sides = value(comparison.left, env), value(comparison.right, env)
        return np.ravel(sides[0] - sides[1])

    size = int(np.prod(decision.shape, dtype=int))
    at_zero = difference(np.zeros(decision.shape))
    units = np.eye(size).reshape(size, *decision.shape)
    A = np.stack([difference(u) - at_zero for u in units], axis=1)
    sign = -1.0 if comparison.relation == ">=" else 1.0
    found.rows(sign * A, -sign * at_zero, equal=comparison.relation == "==")
