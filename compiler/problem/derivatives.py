"""Derivatives of a problem's loss and inequalities, which a program takes at many points: as expressions they are made once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache, reduce

from oco.compiler.problem.calculus import gradient, hessian_vector, vector_jacobian
from oco.compiler.problem.canonical import Canonical
from oco.compiler.problem.jacobians import jacobian
from oco.dsl import algebra
from oco.dsl.expressions import Expr, Kind, Name
from oco.dsl.records import dataclass

Slopes = dict[str, Expr]
"""A derivative towards each decision, by its name."""


def weights_of(exprs: Sequence[Expr]) -> tuple[Name, ...]:
    """A name for the weights of the entries of each expression, of its shape."""
    return tuple(Name(f"_weights{k}", Kind.STREAM, shape=e.shape) for k, e in enumerate(exprs))


@dataclass(frozen=True, eq=False)
class Derivatives:
    """Derivatives towards all decisions of `problem`; those of sums of inequalities have weights by the names of `weights`."""

    problem: Canonical

    @cached_property
    def decisions(self) -> tuple[str, ...]:
        """Names of the decisions."""
        return tuple(b.name for b in self.problem.blocks)

    @cached_property
    def loss(self) -> Slopes:
        """Gradient of the loss."""
        return gradient(self.problem.objective, self.decisions)

    @cached_property
    def loss_hessian(self) -> Mapping[str, Slopes]:
        """Hessian of the loss: by decision, the slopes of every entry of its gradient towards it."""
        return self._hessian_of(self.loss)

    @cached_property
    def weights(self) -> tuple[Name, ...]:
        """Names of the weights of each family of inequalities."""
        return weights_of(self.problem.families.exprs)

    @cached_property
    def rows(self) -> tuple[Slopes, ...]:
        """Gradients of the entries of each family of inequalities, of shape `family.shape + decision.shape`."""
        return tuple(jacobian(e, self.decisions) for e in self.problem.families.exprs)

    @cached_property
    def combination(self) -> tuple[Slopes, ...]:
        """Gradient of the weighted sum of each family."""
        exprs = self.problem.families.exprs
        return tuple(vector_jacobian(e, w, self.decisions) for w, e in zip(self.weights, exprs, strict=True))

    @cached_property
    def weighted(self) -> Expr:
        """Weighted sum of all inequalities, of which there is one at least."""
        terms = [algebra.mul(w, e) for w, e in zip(self.weights, self.problem.families.exprs, strict=True)]
        return reduce(algebra.add, (t if t.shape == () else algebra.call("sum", t) for t in terms))

    @cached_property
    def gradient_of_weighted(self) -> Slopes:
        """Gradient of the weighted sum of all inequalities."""
        return gradient(self.weighted, self.decisions)

    @cached_property
    def hessian(self) -> Mapping[str, Slopes]:
        """Hessian of the weighted sum: by decision, the slopes of every entry of its gradient towards it."""
        return self._hessian_of(self.gradient_of_weighted)

    @cached_property
    def curvature(self) -> Slopes:
        """Sums of the rows of the Hessian of the weighted sum: its diagonal where each inequality is separable."""
        ones = {b.name: algebra.broadcast(algebra.number(1), b.shape) for b in self.problem.blocks}
        return hessian_vector(self.weighted, ones)

    def _hessian_of(self, slopes: Slopes) -> Mapping[str, Slopes]:
        whole = ((b.name, algebra.broadcast(slopes[b.name], b.shape)) for b in self.problem.blocks)
        return {name: jacobian(slope, self.decisions) for name, slope in whole}


@lru_cache(maxsize=16)
def derivatives(problem: Canonical) -> Derivatives:
    """Derivatives of the problem, made as they are asked for."""
    return Derivatives(problem)
