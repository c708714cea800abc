"""What a certificate keeps of the rounds, as a function of the canonical form alone.

A fixed decision u has f_t(u) >= f_t(x_t) + <grad f_t(x_t), u - x_t> + <u - x_t, H_t (u - x_t)> / 2, with equality where f_t is quadratic with
the Hessian H_t (H_t = 0 for an affine one), and with H_t = 0 for any other convex loss. Summed over the rounds that is k + <s, u> +
<u, H u> / 2: a number, a vector, and the sum of the Hessians. Of the constraints that u satisfies there is kept

    worst   the running maximum of the data of a constraint in each round, where that says it all (`algorithms.memory`)
    mean    the sum of the data of a constraint on average, where data enter an additive term alone
    rows    of each entry of all others the sum of its linearisations at x_t: with multipliers that are the same in all rounds
    whole   the sums of these linearisations with multipliers of each round: the learner's own, and what the round broke
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any

import numpy as np

from oco.compiler.algorithms.memory import Form, Memory, kept_of, memory_of
from oco.compiler.domains import Domain
from oco.compiler.domains.product import Product
from oco.compiler.problem.calculus import gradient, hessian_vector
from oco.compiler.problem.canonical import Canonical, Inequality
from oco.compiler.problem.jacobians import jacobian
from oco.compiler.problem.structure import is_affine, is_separable
from oco.dsl import algebra
from oco.dsl.atoms import regularity_of
from oco.dsl.atoms.base import Regularity
from oco.dsl.dims import known
from oco.dsl.expressions import Expr, Kind, changes, names, walk
from oco.dsl.statements import Feedback, Timing

Floats = np.ndarray[Any, Any]
MOST_CURVED = 64
"""Entries of a decision up to which a Hessian is kept in full."""
MOST_ROWS = 1 << 16
"""Entries of the rows of constraints, all together, up to which they are kept one by one."""


class Curvature(StrEnum):
    """Hessian of the loss, as it is kept: none (affine, or linearised), its diagonal, or all of it."""

    NONE = "none"
    DIAGONAL = "diagonal"
    FULL = "full"


@dataclass(frozen=True, eq=False)
class CertificateForm:
    """Sums that make a certificate of a problem whose decisions stand still.

    hessian   the entries of the loss's Hessian as expressions of the data: of the diagonal (d,), or of all pairs of decisions
    exact     True where the sums are the losses' own: they are affine or quadratic
    rows      expressions that are summed as linearisations, `free` of them last: those of equalities, whose multipliers have any sign
    places    of each entry of the rows its place among the entries of all inequalities; -1 for equalities
    each      the entries of the rows that are constraints in each round: those may have multipliers of their own in each round
    counted   inequalities whose broken rounds are counted: those that the decision of a round does not satisfy by construction
    """

    problem: Canonical
    curvature: Curvature
    hessian: tuple[Expr, ...]
    exact: bool
    worst: Memory | None
    mean: Memory | None
    rows: tuple[Expr, ...]
    free: int
    places: tuple[int, ...]
    each: tuple[int, ...]
    counted: tuple[Inequality, ...]

    @property
    def row_count(self) -> int:
        """Number of entries of `rows`."""
        return sum(map(_size, self.rows))

    @property
    def keeps_rows(self) -> bool:
        """True where the rows are few enough to be kept one by one."""
        return self.row_count * self.problem.size <= MOST_ROWS

    @property
    def domain(self) -> Domain:
        """Domain of the decisions, flattened, one after another."""
        domains = tuple(b.domain for b in self.problem.blocks)
        return domains[0] if len(domains) == 1 else Product((sum(d.size for d in domains),), blocks=domains)

    @property
    def exact_constraints(self) -> bool:
        """True where what is kept of the constraints is what all of them say of a fixed decision."""
        decisions = tuple(b.name for b in self.problem.blocks)
        return not self.each and self.keeps_rows and all(is_affine(e, decisions) for e in self.rows)


@lru_cache(maxsize=16)
def certificate_form(problem: Canonical) -> CertificateForm | str:
    """Sums of a problem with its known constraints among the others; in words why there are none.

    problem  the standing form (`Canonical.standing`), in the user's units
    """
    if why := _unavailable(problem):
        return why
    curvature, hessian, exact = _curvature(problem)
    worst, mean, rows = list[Inequality](), list[Inequality](), list[Inequality]()
    for c, kept in zip(problem.inequalities, _kept(problem)):
        on_average = c.timing is Timing.ON_AVERAGE and changes(c.expr)
        if kept is Form.ADDITIVE and on_average:
            mean.append(c)
        elif kept is not None and not on_average:
            worst.append(c)
        else:
            rows.append(c)
    equal = problem.equalities
    starts = dict(zip(map(id, problem.inequalities), np.cumsum([0, *(c.size for c in problem.inequalities)])))
    places = [int(starts[id(c)]) + k for c in rows for k in range(c.size)]
    timings = [c.timing for c in rows for _ in range(c.size)]
    return CertificateForm(
        problem,
        curvature,
        hessian,
        exact,
        _memory(problem, worst),
        _memory(problem, mean),
        (*(c.expr for c in rows), *(c.expr for c in equal)),
        sum(c.size for c in equal),
        (*places, *(-1 for c in equal for _ in range(c.size))),
        tuple(k for k, timing in enumerate(timings) if timing is Timing.EACH_ROUND),
        tuple(c for c in problem.inequalities if not c.known),
    )


def _unavailable(problem: Canonical) -> str:
    """Why no certificate can be kept; "" where it can."""
    if problem.feedback is not Feedback.FULL:
        return f"`feedback {problem.feedback}` does not reveal losses as functions"
    for b in problem.blocks:
        if b.domain.lmo_start is not None:
            return f"linear functions over {b.domain} are minimised by an iteration that proves no bound"
        for operation in ("lmo", "project", "project_jacobian"):
            if why := b.domain.refusals.get(operation):
                return f"{b.domain} has no {operation}: {why}"
    return ""


def _kept(problem: Canonical) -> list[Form | None]:
    """Form of each inequality whose memory cuts no decision that satisfied all rounds; None for the others."""
    return [None if k.inner else k.form for k in kept_of(problem)]


def _memory(problem: Canonical, inequalities: list[Inequality]) -> Memory | None:
    return memory_of(replace(problem, inequalities=tuple(inequalities))) if inequalities else None


def _curvature(problem: Canonical) -> tuple[Curvature, tuple[Expr, ...], bool]:
    """Form of the loss's Hessian, its entries, and whether the loss is affine or quadratic."""
    blocks = problem.blocks
    decisions = tuple(b.name for b in blocks)
    objective = problem.objective
    if is_affine(objective, decisions):
        return Curvature.NONE, (), True
    if is_separable(objective, decisions):
        ones = {b.name: algebra.broadcast(algebra.number(1), b.shape) for b in blocks}
        diagonal = hessian_vector(objective, ones)
        entries = tuple(algebra.broadcast(diagonal[b.name], b.shape) for b in blocks)
        quadratic = not any(names(e, Kind.DECISION) for e in entries) and _smooth(objective)
        return (Curvature.DIAGONAL, entries, True) if quadratic else (Curvature.NONE, (), False)
    if problem.size > MOST_CURVED or not _smooth(objective):
        return Curvature.NONE, (), False
    slopes = gradient(objective, decisions)
    full = list[Expr]()
    for b in blocks:
        second = jacobian(algebra.broadcast(slopes[b.name], b.shape), decisions)
        full += [algebra.broadcast(second[o.name], (*b.shape, *o.shape)) for o in blocks]
    quadratic = not any(names(e, Kind.DECISION) for e in full)
    return (Curvature.FULL, tuple(full), True) if quadratic else (Curvature.NONE, (), False)


def _smooth(expr: Expr) -> bool:
    """True where the derivative of a function has no jumps, so that its second derivative says all of it."""
    return all(regularity_of(n) is Regularity.SMOOTH for n in walk(expr) if names(n, Kind.DECISION))


def _size(expr: Expr) -> int:
    return math.prod(known(expr.shape))
