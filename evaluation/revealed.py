"""Values of a round that a learner with less than full feedback observes, and gradients where the model says so."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from oco.compiler.problem.calculus import vector_jacobian
from oco.compiler.problem.canonical import Canonical
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Expr, constant
from oco.dsl.statements import Feedback

Array = np.ndarray[Any, Any]


class Revealed:
    """Evaluator of loss and constraints at the decision: the measured values, and the part of them that `observe` is
    given.
    """

    def __init__(self, problem: Canonical) -> None:
        self.problem = problem
        self.names = tuple(b.name for b in problem.blocks)

    def __call__(
        self, decision: Any, streams: Mapping[str, Array], t: int, second: Any = None
    ) -> tuple[float, Array, Array, dict[str, Any]]:
        """Loss, g (N,), h (M,), and the arguments of `observe`; `second` is the other point of `feedback two_point`."""
        env = {**streams, **self._parts(decision)}
        loss = float(evaluate(self.problem.objective, env, t))
        g = self._stacked([c.expr for c in self.problem.inequalities], env, t)
        h = self._stacked([c.expr for c in self.problem.equalities], env, t)
        seen: dict[str, Any] = {"loss": loss}
        seen |= {"constraints": g} if len(g) else {}
        seen |= {"equalities": h} if len(h) else {}
        if self.problem.feedback is Feedback.TWO_POINT:
            seen["second_loss"] = float(evaluate(self.problem.objective, {**streams, **self._parts(second)}, t))
        if self.problem.feedback is Feedback.GRADIENT:
            for name in self.names:
                seen |= self._gradients(name, env, t, len(g), len(h))
        return loss, g, h, seen

    def _parts(self, decision: Any) -> Mapping[str, Any]:
        """Decisions by name."""
        return decision if isinstance(decision, dict) else {self.names[0]: decision}

    def _stacked(self, exprs: list[Expr], env: Mapping[str, Any], t: int) -> Array:
        return np.concatenate([np.zeros(0), *(np.ravel(evaluate(e, env, t)) for e in exprs)])

    def _gradients(self, name: str, env: Mapping[str, Any], t: int, n: int, m: int) -> dict[str, Array]:
        end = "" if len(self.names) == 1 else f"_{name}"
        shape = next(b.shape for b in self.problem.blocks if b.name == name)
        loss, inequalities, equalities = self._derivatives[name]

        def values(exprs: list[Expr]) -> Array:
            return np.stack([np.broadcast_to(evaluate(e, env, t), shape) for e in exprs])

        seen = {f"gradient{end}": values([loss])[0]}
        seen |= {f"constraint_gradients{end}": values(inequalities)} if n else {}
        seen |= {f"equality_gradients{end}": values(equalities)} if m else {}
        return seen

    @cached_property
    def _derivatives(self) -> dict[str, tuple[Expr, list[Expr], list[Expr]]]:
        """Gradients by decision: of the loss, and of each entry of the inequalities and equalities."""

        def rows(name: str, exprs: list[Expr]) -> list[Expr]:
            results = []
            for e in exprs:
                shape = tuple(int(str(d)) for d in e.shape)
                for place in np.ndindex(*shape):
                    unit = np.zeros(shape)
                    unit[place] = 1.0
                    results.append(vector_jacobian(e, constant(unit), self.names)[name])
            return results

        inequalities, equalities = (
            [c.expr for c in part] for part in (self.problem.inequalities, self.problem.equalities)
        )
        return {
            n: (rows(n, [self.problem.objective])[0], rows(n, inequalities), rows(n, equalities)) for n in self.names
        }
