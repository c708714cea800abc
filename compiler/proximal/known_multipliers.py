"""Multipliers of known constraints for a function with a given slope: what one more unit that a constraint allows is worth.

At a minimizer of the function within the constraints, a step against the slope and back into the constraints ends where it began, whatever
its length, and its multipliers are those of the minimizer (Karush-Kuhn-Tucker). Near a minimizer a short step has nearly these
multipliers. A long step has those of a linear function from anywhere, since it ends at a minimizer of <g, x> + |x - start|^2 / (2 length).
Multipliers come from the step's dual (`CutDual`), in which rows give way a little: a row that cannot be met has a multiplier of `UNMET`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import numpy as np

from oco.compiler.domains.dual_newton import CutDual
from oco.compiler.domains.norms import Floats
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.problem.canonical import Inequality
from oco.compiler.proximal.known_point import apart, flat_domain, known_rows, origins_of, rows_at
from oco.dsl.magnitudes import TINY

GIVES = 1e-6
"""Amount by which a row gives way for each unit of its multiplier, in sizes of the domain."""
UNMET = 10.0
"""Largest multiplier of a row of norm one, in slopes of the function: that of a row that no step meets."""


class KnownMultipliers:
    """Multipliers of known constraints, linearized at a decision x.

    known  the constraints
    still  mask of the entries of the flattened decisions that are held fixed, (n,)
    """

    def __init__(self, p: Problem, known: Sequence[Inequality], x: Point, still: Floats) -> None:
        self.p, self.t, t = p, p.tracer, p.tracer
        own = known_rows(replace(p.spec.canonical, known=tuple(known)))
        self.rows, self.origins = rows_at(p, own, x, p.units.outward(x)), origins_of(own)
        self.moves = t.constant(np.where(still, 0.0, 1.0), "moves", "entries that do not stay where they are")
        norms = t.sqrt(t.sum((self.rows.C * self.moves) ** 2.0, axis=1))
        has = norms > TINY
        self.inverse = t.name("inverse", t.where(has, 1.0 / t.where(has, norms, 1.0), 0.0))

    def of_steps(
        self, starts: Value, slope: Point, length: float, there: Callable[[Point], Point] | None = None
    ) -> Value:
        """Multipliers of the rows for steps from K decisions, (K, rows), in units of the slope.

        starts  flattened decisions, in the user's units, (K, n)
        slope   of the function at x, in units of the rule
        length  of the steps, in sizes of the domain
        there   slope at other decisions, where it changes: a second step is taken against the slope where the first one ends
        """
        t, rows, (base, size) = self.t, self.rows, flat_domain(self.p.spec.canonical)
        C = rows.C * self.moves * t.reshape(self.inverse, (self.inverse.size, 1))

        def one(start: Value) -> tuple[Value, ...]:
            r = (rows.r - rows.C @ start) * self.inverse + C @ start
            dual = CutDual(t, base, C, r / size, rows.inequalities, GIVES)

            def stepped(slope: Point) -> tuple[Value, Value]:
                g = slope.flat() * self.moves
                steep = t.name("steep", t.sqrt(t.sum(g * g)))
                mu, y = dual.solve(start / size - length / t.maximum(steep, TINY) * g, dual.none)
                return t.minimum(t.maximum(mu / length, -UNMET), UNMET) * steep * self.inverse, y

            mu, y = stepped(slope)
            if there is not None:
                mu, _ = stepped(there(self.p.units.inward(apart(t, self.p.spec.canonical.blocks, y * size))))
            return (mu,)

        self.p.note("multipliers of the known constraints")
        return t.map_(one, starts)[0]

    def charged(self, multipliers: Value, by: Collection[str] | None = None) -> Value:
        """Charges sum_n mu_n grad g_n for K lists of multipliers, (K, n): what a unit more of each entry costs the others; `by`: of the
        constraints with these labels alone.
        """
        if by is not None:
            own = np.array([1.0 if label in by else 0.0 for label in self.origins])
            multipliers = multipliers * self.t.constant(own, "charging", "rows that charge")
        return multipliers @ self.rows.C
