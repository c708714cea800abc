"""Suprema of concave functions: the tangent at any point lies above the function (Jaggi 2013, the Frank-Wolfe gap)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from oco.compiler.prover.curvature.composition import CONCAVE_KINDS
from oco.compiler.prover.ranges.enclosure import Enclosure
from oco.compiler.prover.ranges.support import support
from oco.compiler.prover.suprema.lower_bound import LARGEST_ENTRIES, Climber
from oco.dsl.expressions import Expr, entries, names
from oco.dsl.intervals import Interval, interval, point

if TYPE_CHECKING:
    from oco.compiler.prover.context import ProofContext


def tangent_sup(setting: ProofContext, expr: Expr) -> float | None:
    """f(z) + max <f'(z), x - z> for a jointly concave f, z near its maximizer; None where f is not known to be concave."""
    if setting.joint(expr) not in CONCAVE_KINDS or any(
        setting.streams[n].integer for n in names(expr) if n in setting.streams
    ):
        return None
    if entries(expr) > LARGEST_ENTRIES:
        return None
    climber = Climber(setting, expr)
    best = climber.climb(np.inf, starts=2, steps=120)
    if best is None:
        return None
    box = {**setting.box, **{n: point(v) for n, v in best.place.items() if n != "t"}}
    ranges = Enclosure(box)
    total = ranges(expr)
    for name, slope in climber.slopes.items():
        a = ranges(slope).broadcast(setting.box[name].shape)
        most = _most(setting, name, a)
        total = total + interval(most, most) - (a * point(best.place[name])).sum()
    return total.greatest if np.isfinite(total.greatest) else None


def _most(setting: ProofContext, name: str, a: Interval) -> float:
    """The greatest value of <a, v> over the set of a name."""
    if name in setting.blocks:
        return support(setting.blocks[name].domain, setting.box[name], a)
    return (a * setting.box[name]).sum().greatest
