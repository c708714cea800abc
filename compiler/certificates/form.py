"""Content of a certificate: what is kept of the rounds, as a function of the canonical form alone.

A fixed decision u has f_t(u) >= f_t(x_t) + <grad f_t(x_t), u - x_t> + <u - x_t, H_t (u - x_t)> / 2, with equality where f_t is quadratic
with the Hessian H_t (H_t = 0 for an affine one), and with H_t = 0 for any other convex loss. Summed over the rounds that is k + <s, u> +
<u, H u> / 2: a number, a vector, and the sum of the Hessians. Where f_t is an affine function and one n_t with exp(-theta n_t) concave,
H_t is a part of grad n_t grad n_t' (`curved_sums`); quadratic losses are taken at u = 0 instead of x_t, and an H_t that is the same in all
rounds is not summed; kinks in single entries are summed by where they are (`kinked_losses`). A function that
is affine in the streams sums to T times itself at their means, whatever it is in the decision. Of the constraints that u satisfies there
is kept

    worst   the running maximum of the data of a constraint in each round, where that says it all (`algorithms.memory`)
    mean    the sum of the data of a constraint on average, where data enter an additive term alone
    means   the sums of the streams of a constraint that is affine in them: with a multiplier that is the same in all rounds
    rows    of each entry of all others the sum of its linearisations at x_t: also with a multiplier that is the same in all rounds

and of the constraints in each round that are not kept by their worst data also

    whole   the sums of their linearisations with multipliers of each round: the learner's own, and what the round broke
    pool    the linearisations of the rounds that were broken most, for the length of their slopes: with a multiplier each
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from oco.compiler.algorithms.memory import Memory, MemoryForm, as_function_of, kept_of, memory_of
from oco.compiler.certificates.kinked_losses import KinkedTerm, without_kinks
from oco.compiler.domains import Domain
from oco.compiler.domains.product import Product
from oco.compiler.problem.calculus import gradient, hessian_vector
from oco.compiler.problem.canonical import Canonical, Equality, Inequality, StreamRange
from oco.compiler.problem.degrees import degree_in_streams
from oco.compiler.problem.expectation import in_expectation
from oco.compiler.problem.jacobians import jacobian
from oco.compiler.problem.structure import Structure, is_affine, is_separable
from oco.compiler.prover.context import ProofContext
from oco.compiler.prover.curvature.exp_concavity import inverse
from oco.compiler.prover.domain import downward
from oco.compiler.prover.terms.summands import summands, total
from oco.dsl import algebra
from oco.dsl.atoms import regularity_of
from oco.dsl.atoms.base import Regularity
from oco.dsl.dims import known
from oco.dsl.expressions import Expr, Index, Kind, Name, changes, names, rewrite, walk
from oco.dsl.records import dataclass
from oco.dsl.statements import Feedback, Timing

Floats = np.ndarray[Any, Any]
MOST_CURVED = 64
"""Entries of a decision up to which a Hessian is kept in full."""
LEAST_CURVED = 1 / 64
"""Product of theta and the range of the loss from which on the curvature of an exp-concave loss is worth its sums."""
MOST_CONSTRAINTS = 256
"""Entries of inequalities up to which each has a multiplier of its own; of more the constraints in each round share those of rounds."""
MOST_POOLED = 64  # multipliers that rounds share: each is a number of the state and a row of the search
MOST_ROWS = 1 << 16
"""Entries of the rows of constraints, all together, up to which they are kept one by one."""


class HessianForm(StrEnum):
    """Hessian of the loss, as it is kept: none (affine, or linearised), its diagonal, or all of it; or the loss at the streams' means.

    Of an exp-concave loss it is a lower bound of the curvature along the gradient.
    """

    NONE = "none"
    MEAN = "mean"
    DIAGONAL = "diagonal"
    FULL = "full"
    EXP_CONCAVE = "exp-concave"


@dataclass(frozen=True, eq=False)
class CertificateForm:
    """Sums that make a certificate of a problem whose decisions stand still.

    kinks     kinked terms of the loss that are summed by where their kinks are; `rest`: the problem without them, which all else is about
    hessian   the entries of the loss's Hessian as expressions of the data: of the diagonal (d,), or of all pairs of decisions
    exact     True where the sums are the losses' own: they are affine or quadratic
    theta     a number with exp(-theta n_t) concave for the loss n_t without its affine terms, `nonlinear_loss`, where the curvature of such
              losses is kept; else 0
    means     expressions, affine in the streams `averaged`, that stand for their sums at the means of these; equalities last, as in
    rows      expressions that are summed as linearisations
    each      inequalities in each round among `means` and `rows`: they may have multipliers of their own in each round
    places    of each entry of `each` its place among the entries of all inequalities
    counted   inequalities whose broken rounds are counted: those that the decision of a round does not satisfy by construction
    """

    problem: Canonical
    rest: Canonical
    kinks: tuple[KinkedTerm, ...]
    curvature: HessianForm
    hessian: tuple[Expr, ...]
    exact: bool
    theta: float
    worst: Memory | None
    mean: Memory | None
    means: tuple[Inequality | Equality, ...]
    rows: tuple[Inequality | Equality, ...]
    each: tuple[Inequality, ...]
    places: tuple[int, ...]
    counted: tuple[Inequality, ...]

    @cached_property
    def nonlinear(self) -> Canonical | None:
        """Problem of all constraints, where a step with them is exact: sums of functions of single entries over a box, none of them summed
        as linearisations; None where it is not. Data of `mean` are streams called as `renamed` says.
        """
        if self.rows or self.each:
            return None
        worst = self.worst.canonical.inequalities if self.worst else ()
        mean = self.mean.canonical.inequalities if self.mean else ()
        sides = [(c.expr,) if isinstance(c, Inequality) else (c.expr, algebra.minus(c.expr)) for c in self.means]
        exprs = [*(c.expr for c in worst), *(renamed(c.expr) for c in mean), *(e for side in sides for e in side)]
        return nonlinear_problem(self.problem, exprs)

    @cached_property
    def nonlinear_loss(self) -> Expr:
        """Loss without its affine terms."""
        return _nonlinear_part(self.rest)

    @cached_property
    def homogeneous(self) -> bool:
        """True where the loss is seen to be 0 at the decision 0 whatever the data."""
        problem = self.problem
        zeros = {b.name: algebra.broadcast(algebra.number(0), b.shape) for b in problem.blocks}
        at_zero = rewrite(problem.objective, lambda n: zeros.get(n.name, n) if isinstance(n, Name) else n)
        lies = ProofContext(problem).ranges(at_zero)
        return bool((lies.lo == 0).all() and (lies.hi == 0).all())

    @property
    def curved(self) -> bool:
        """True where Hessians are summed."""
        return self.quadratic or self.curvature is HessianForm.EXP_CONCAVE

    @property
    def quadratic(self) -> bool:
        """True where the loss, without its kinks, is quadratic and not affine, and its Hessian is kept."""
        return self.curvature in (HessianForm.DIAGONAL, HessianForm.FULL)

    @property
    def steady_hessian(self) -> bool:
        """True where this Hessian is the same in all rounds, so that it is no sum."""
        return self.quadratic and not any(map(changes, self.hessian))

    @property
    def averaged(self) -> tuple[StreamRange, ...]:
        """Streams whose sums are kept."""
        exprs = [
            *(c.expr for c in self.means),
            *((self.rest.objective,) if self.curvature is HessianForm.MEAN else ()),
        ]
        used = {name for e in exprs for name in names(e, Kind.STREAM)}
        return tuple(s for s in self.problem.streams if s.name in used)

    @property
    def row_count(self) -> int:
        """Number of entries of `rows`."""
        return sum(c.size for c in self.rows)

    @property
    def keeps_rows(self) -> bool:
        """True where the rows are few enough to be kept one by one."""
        return self.row_count * self.problem.size <= MOST_ROWS

    @property
    def pooled(self) -> int:
        """Number of rounds whose broken constraints are kept: none where there are none, few where decisions are large."""
        return min(MOST_POOLED, MOST_ROWS // self.problem.size) if self.each else 0

    @property
    def domain(self) -> Domain:
        """Domain of the decisions, flattened, one after another."""
        domains = tuple(b.domain for b in self.problem.blocks)
        return domains[0] if len(domains) == 1 else Product((sum(d.size for d in domains),), blocks=domains)

    @property
    def exact_constraints(self) -> bool:
        """True where what is kept of the constraints is what all of them say of a fixed decision."""
        decisions = tuple(b.name for b in self.problem.blocks)
        return not self.each and self.keeps_rows and all(is_affine(c.expr, decisions) for c in self.rows)


@lru_cache(maxsize=16)
def certificate_form(problem: Canonical) -> CertificateForm | str:
    """Sums of a problem with its known constraints among the others; in words why there are none.

    problem  the standing form (`Canonical.standing`), in the user's units; constraints on average under a stated distribution are those
             of its expectation, as comparators have them
    """
    if why := _unavailable(problem):
        return why
    counted = tuple(c for c in problem.inequalities if not c.known)
    problem = in_expectation(problem)
    rest, kinks, theta = problem, tuple[KinkedTerm, ...](), 0.0
    curvature, hessian, exact = _curvature(problem)
    if not exact:
        rest, kinks = without_kinks(problem)
        curvature, hessian, smooth = _curvature(rest)
        theta = 0.0 if smooth else _exp_concavity(rest)
    curvature = HessianForm.EXP_CONCAVE if theta else curvature
    crowded = sum(c.size for c in problem.inequalities) > MOST_CONSTRAINTS
    worst, mean, alone = list[Inequality](), list[Inequality](), list[Inequality]()
    means, rows = list[Inequality | Equality](), list[Inequality | Equality]()
    for c, kept in zip(problem.inequalities, _kept(problem)):
        on_average = c.timing is Timing.ON_AVERAGE and changes(c.expr)
        if crowded and c.timing is Timing.EACH_ROUND:
            alone.append(c)
        elif kept is MemoryForm.ADDITIVE and on_average:
            mean.append(c)
        elif kept is not None and not on_average:
            worst.append(c)
        else:
            (means if affine_in_streams(c.expr) else rows).append(c)
    for h in problem.equalities:
        (means if affine_in_streams(h.expr) else rows).append(h)
    each = tuple(c for c in (*alone, *means, *rows) if isinstance(c, Inequality) and c.timing is Timing.EACH_ROUND)
    starts = dict(zip(map(id, problem.inequalities), np.cumsum([0, *(c.size for c in problem.inequalities)])))
    return CertificateForm(
        problem,
        rest,
        kinks,
        curvature,
        hessian,
        exact,
        theta,
        _memory(problem, worst),
        _memory(problem, mean),
        tuple(means),
        tuple(rows),
        each,
        tuple(int(starts[id(c)]) + k for c in each for k in range(c.size)),
        counted,
    )


def _unavailable(problem: Canonical) -> str:
    """Why no certificate can be kept; "" where it can."""
    if problem.feedback is not Feedback.FULL:
        return f"`feedback {problem.feedback}` does not reveal losses as functions"
    if problem.delay:
        return "under delayed feedback learners take turns, and each keeps sums of its own rounds alone"
    if problem.moving is not None:
        return "the loss is about the decision before, and the sums are of losses of single decisions"
    for b in problem.blocks:
        if b.domain.lmo_start is not None:
            return f"linear functions over {b.domain} are minimised by an iteration that proves no bound"
    return ""


def _kept(problem: Canonical) -> list[MemoryForm | None]:
    """Form of each inequality whose memory cuts no decision that satisfied all rounds and is soon searched; None for the others."""
    return [None if k.inner or k.slow else k.form for k in kept_of(problem)]


def _memory(problem: Canonical, inequalities: list[Inequality]) -> Memory | None:
    return memory_of(replace(problem, inequalities=tuple(inequalities))) if inequalities else None


def _curvature(problem: Canonical) -> tuple[HessianForm, tuple[Expr, ...], bool]:
    """Form of the loss's Hessian, its entries, and whether the loss is affine or quadratic."""
    blocks = problem.blocks
    decisions = tuple(b.name for b in blocks)
    objective = problem.objective
    if is_affine(objective, decisions):
        return HessianForm.NONE, (), True
    linearised = (HessianForm.MEAN, (), True) if affine_in_streams(objective) else (HessianForm.NONE, (), False)
    if _is_separable(objective, decisions):
        ones = {b.name: algebra.broadcast(algebra.number(1), b.shape) for b in blocks}
        diagonal = hessian_vector(objective, ones)
        entries = tuple(algebra.broadcast(diagonal[b.name], b.shape) for b in blocks)
        quadratic = not any(names(e, Kind.DECISION) for e in entries) and _smooth(objective)
        return (HessianForm.DIAGONAL, entries, True) if quadratic else linearised
    if problem.size > MOST_CURVED or not _smooth(objective):
        return linearised
    slopes = gradient(objective, decisions)
    full = list[Expr]()
    for b in blocks:
        second = jacobian(algebra.broadcast(slopes[b.name], b.shape), decisions)
        full += [algebra.broadcast(second[o.name], (*b.shape, *o.shape)) for o in blocks]
    quadratic = not any(names(e, Kind.DECISION) for e in full)
    return (HessianForm.FULL, tuple(full), True) if quadratic else linearised


def _is_separable(expr: Expr, decisions: tuple[str, ...]) -> bool:
    """True if an expression is a sum of functions of single entries of the decisions, of which streams may say which they are."""
    entries: dict[str, Name] = {}

    def named(node: Expr) -> Expr:
        match node:
            case Index(base=Name(kind=Kind.DECISION), items=items) if any(map(changes, items)):
                name = Name(f"_entry{len(entries)}", Kind.DECISION, shape=node.shape)
                return entries.setdefault(name.name, name)
        return node

    return is_separable(rewrite(expr, named), (*decisions, *entries))


def _nonlinear_part(problem: Canonical) -> Expr:
    """Sum of the terms of a loss that are not affine in the decisions; the loss itself where all are."""
    decisions = tuple(b.name for b in problem.blocks)
    terms = [(sign, e) for sign, e in summands(problem.objective) if not is_affine(e, decisions)]
    return total(terms) if terms else problem.objective


def _exp_concavity(problem: Canonical) -> float:
    """Largest theta that is proved of the nonlinear part n of a loss, exp(-theta n) concave; 0 where it says little or x is long."""
    if problem.size > MOST_CURVED:
        return 0.0
    setting = ProofContext(problem)
    expr = setting.simplify(_nonlinear_part(problem))
    r, range_ = float(inverse(setting, expr, 1)), setting.ranges(expr)
    theta = downward(1.0 / r) if 0.0 < r < np.inf else 0.0
    return theta if theta * float(range_.hi - range_.lo) >= LEAST_CURVED else 0.0


def nonlinear_problem(problem: Canonical, exprs: Sequence[Expr]) -> Canonical | None:
    """Problem of these constraints, where they are sums of functions of single entries over a box, and not all affine; else None."""
    if not exprs or not all(b.domain.is_box for b in problem.blocks):
        return None
    inequalities = [
        Inequality(f"kept[{k}]", known(e.shape), e, Timing.EACH_ROUND, f"kept[{k}]") for k, e in enumerate(exprs)
    ]
    result = replace(problem, inequalities=tuple(inequalities), equalities=())
    return result if result.structure[0] is Structure.SEPARABLE else None


def renamed(expr: Expr) -> Expr:
    """Expression with its streams called apart from those of another memory."""
    return rewrite(
        expr, lambda n: replace(n, name=apart(n.name)) if isinstance(n, Name) and n.kind is Kind.STREAM else n
    )


def apart(name: str) -> str:
    """Name of a stream of `mean` beside those of `worst`."""
    return f"{name}_mean"


def affine_in_streams(expr: Expr) -> bool:
    """True where an expression is affine in all streams together, for each decision, and knows no round."""
    return degree_in_streams(expr) <= 1 and not names(expr, Kind.ROUND)


def stream_slopes(expr: Expr) -> Mapping[str, Expr]:
    """Derivatives of each entry towards each stream, of the shape of the expression and then the stream's."""
    streams = tuple(names(expr, Kind.STREAM))
    slopes = jacobian(as_function_of(expr, streams), streams)
    return {s: as_function_of(e, tuple(names(e, Kind.STREAM))) for s, e in slopes.items()}


def _smooth(expr: Expr) -> bool:
    """True where the derivative of a function has no jumps, so that its second derivative says all of it."""
    return all(regularity_of(n) is Regularity.SMOOTH for n in walk(expr) if names(n, Kind.DECISION))
