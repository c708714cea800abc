"""Certificate: an upper bound of the regret so far, made of what happened, with what proves it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from oco.compiler.certificates.form import CertificateForm
from oco.compiler.ir.build import BEST_EXPERT, CERTIFIED, OF_EACH_ROUND
from oco.compiler.ir.program import ROUND, Program
from oco.compiler.problem.canonical import Equality, Inequality, entry_labels
from oco.dsl.records import dataclass

Floats = np.ndarray[Any, Any]


@dataclass(frozen=True)
class CertificateTerms:
    """Terms of all certificates of a plan.

    theta   a number with exp(-theta n_t) concave, where the curvature of nonlinear terms n_t of losses is summed; else 0
    kinked  True where kinks of losses are summed by where they are
    labels  of the multipliers, in their order; `counted` of the constraints whose broken rounds are counted
    exact   True where losses and constraints are summed as they are: the bound then can be the regret itself
    """

    labels: tuple[str, ...]
    counted: tuple[str, ...]
    exact_losses: bool
    exact_constraints: bool
    theta: float = 0.0
    kinked: bool = False

    @property
    def exact(self) -> bool:
        """True where nothing is linearised in a round."""
        return self.exact_losses and self.exact_constraints


@dataclass(frozen=True, eq=False)
class Certificate:
    """Upper bound of the static regret of the rounds so far. Immutable; `learner.certificate()` makes it.

    loss         sum of the losses of the decisions
    least        lower bound of the sum of the losses of every fixed decision that satisfied all constraints, rounding allowed for
    rounding     what was taken off it for rounding
    point        decision at which losses and constraints were linearised, a vector of all entries (d,)
    multipliers  of constraints at this point, by label
    broken       number of rounds in which each constraint was broken, by label
    dynamic      upper bound of the regret to the best decision of each round, where the learner keeps it; -inf where some round allows none
    best_expert  upper bound of the loss, with violations at their prices, less that of the best expert, where experts are weighed
    impossible   True where `least` is more than any decision can lose: it proves that no fixed decision satisfied all constraints
    """

    rounds: int
    loss: float
    least: float
    rounding: float
    point: Floats
    multipliers: Mapping[str, float]
    broken: Mapping[str, int]
    terms: CertificateTerms = field(repr=False)
    impossible: bool = False
    dynamic: float | None = None
    best_expert: float | None = None

    @property
    def bound(self) -> float:
        """Upper bound of the static regret, loss less `least`, rounded up; -inf where no fixed decision satisfied the constraints."""
        if self.impossible:
            return -math.inf
        return 0.0 if self.rounds == 0 else math.nextafter(self.loss - self.least, math.inf)

    @property
    def share_broken(self) -> Mapping[str, float]:
        """Share of the rounds in which each constraint was broken: counted, so exact."""
        return {label: count / max(self.rounds, 1) for label, count in self.broken.items()}

    @property
    def statement(self) -> str:
        """Statement that the certificate proves, in words."""
        if self.impossible:
            return f"no fixed decision satisfied the constraints of the first {self.rounds:,} rounds, so that there is no static regret"
        fixed = "every fixed decision that satisfied the constraints" if self.terms.labels else "every fixed decision"
        return (
            f"after {self.rounds:,} round{'' if self.rounds == 1 else 's'} the losses sum to {self.loss:.10g}, and {fixed} would have lost "
            f"{self.least:.10g} at least: the static regret is at most {self.bound:.10g}"
        )

    @property
    def latex(self) -> str:
        """Statement as a formula."""
        such = r",\; g_t(u) \le 0" if self.terms.labels else ""
        return (
            rf"\sum_{{t=1}}^{{{self.rounds}}} f_t(x_t) - \min_{{u \in X{such}}} \sum_{{t=1}}^{{{self.rounds}}} f_t(u)"
            rf" \le {_latex(self.loss)} - ({_latex(self.least)}) = {_latex(self.bound)}"
        )

    @property
    def derivation(self) -> tuple[str, ...]:
        """Steps that lead to the bound, in words and formulas; `compiler.certificates.least_loss` proves them."""
        losses = (
            "F(u) = sum_t f_t(u) = k + <s, u> + <u, H u> / 2, summed as it is: the losses are affine or quadratic"
            if self.terms.exact_losses
            else _EXP_CONCAVE.format(theta=self.terms.theta)
            if self.terms.theta
            else "F(u) = sum_t f_t(x_t) + <grad f_t(x_t), u - x_t> <= sum_t f_t(u), since f_t is convex"
        )
        steps = [losses, _KINKED] if self.terms.kinked else [losses]
        if self.terms.labels:
            kept = "as they are" if self.terms.exact_constraints else "as they are, or linearised at x_t in each round"
            steps.append(f"G(u) <= 0 for every u that satisfied the constraints, which are kept {kept}")
            weights = ", ".join(f"{label}: {value:.6g}" for label, value in self.multipliers.items() if value)
            steps.append(f"multipliers mu >= 0 that the search chose: {weights or 'all 0'}")
        lagrangian = "F(y) + <mu, G(y)> + min over u in X of <grad F(y) + sum_n mu_n grad G_n(y), u - y>"
        steps.append(f"F(u) >= {lagrangian if self.terms.labels else 'F(y) + min over u in X of <grad F(y), u - y>'}")
        steps.append(f"less {self.rounding:.3g} for rounding, that is {self.least:.10g}")
        steps.append(f"regret <= {self.loss:.10g} - ({self.least:.10g}) = {self.bound:.10g}")
        return tuple(steps)

    def _repr_latex_(self) -> str:
        return f"$${self.latex}$$"


_KINKED = (
    "terms w max(s u_i + b, 0) of f_t with w >= 0 are summed apart: for each part of the range of u_i that their kinks are in, F has "
    "max(W s u_i + B, 0) with the sums W of w and B of w b over the rounds, no more than their sum by Jensen's inequality"
)
_EXP_CONCAVE = (
    "F(u) = sum_t f_t(x_t) + <grad f_t(x_t), u - x_t> + h_t <k_t, u - x_t>^2 / 2 <= sum_t f_t(u), with k_t the gradient at x_t of the "
    "nonlinear terms n_t of f_t and h_t = theta / (1 + 2 P_t / 3), P_t >= theta <k_t, x_t - v> for every v in X: exp(-theta n_t) is "
    "concave, theta = {theta:.6g}"
)


def _latex(value: float) -> str:
    mantissa, _, exponent = f"{value:.6g}".partition("e")
    return mantissa if not exponent else rf"{mantissa} \cdot 10^{{{int(exponent)}}}"


def certificate_of(
    program: Program, terms: CertificateTerms, state: Sequence[Any], results: Sequence[Any]
) -> Certificate:
    """Certificate from a state of a program and the results of its entry `certificate`."""
    assert program.certificate is not None
    values = {
        n: np.asarray(r, dtype=np.float64) for n, r in zip(program.certificate.result_names, results, strict=True)
    }
    least, most, rounding, point, multipliers, loss, broken = (values[name] for name in CERTIFIED)
    rounds = int(next(v for f, v in zip(program.state, state, strict=True) if f.name == ROUND)) - 1
    taken = float(rounding)
    return Certificate(
        rounds,
        float(loss),
        math.nextafter(float(least) - taken, -math.inf) if rounds else 0.0,
        taken,
        point,
        dict(zip(terms.labels, map(float, multipliers.ravel()), strict=True)),
        dict(zip(terms.counted, (int(n) for n in broken.ravel()), strict=True)),
        terms,
        bool(rounds) and float(least) - taken > float(most) + taken,
        _number(values.get(OF_EACH_ROUND)),
        _number(values.get(BEST_EXPERT)),
    )


def _number(value: Floats | None) -> float | None:
    """Bound rounded up; None where there is none."""
    return None if value is None else -math.inf if value == -math.inf else math.nextafter(float(value), math.inf)


def terms_of(form: CertificateForm) -> CertificateTerms:
    """Terms of the certificates of a form."""
    labels = list[str]()
    for memory, words in ((form.worst, ""), (form.mean, " on average")):
        if memory is not None:
            for c in memory.canonical.inequalities:
                labels += [f"{label}{words}" for label in entry_labels(c.label, c.shape)]
    if form.each:
        labels += ["all, weighed by what they broke", "all, weighed by the learner's multipliers"]
    labels += [f"broken most, {k + 1}" for k in range(form.pooled)]
    for kind in (Inequality, Equality):
        own = [c for c in (*form.means, *(form.rows if form.keeps_rows else ())) if isinstance(c, kind)]
        labels += [f"{label} over all rounds" for c in own for label in entry_labels(c.label, c.shape)]
    counted = [label for c in form.counted for label in entry_labels(c.label, c.shape)]
    return CertificateTerms(
        tuple(labels), tuple(counted), form.exact, form.exact_constraints, form.theta, bool(form.kinks)
    )
