"""A decision for each round: feasible at every corner of the streams, hence, by convexity, at every value between them.

For constraints that are jointly convex in decision and streams: if x_v serves the corner s_v of the streams' box, then
sum l_v x_v serves sum l_v s_v for all weights l.
"""

from __future__ import annotations

import numpy as np

from oco.compiler.prover.context import ProofContext
from oco.compiler.prover.curvature.composition import CONVEX_KINDS
from oco.compiler.prover.feasibility.scenario import Scenario
from oco.compiler.prover.feasibility.slater import slater_point
from oco.compiler.prover.phrasing import number
from oco.compiler.prover.search_budget import Allowance
from oco.compiler.prover.suprema.corners import MOST_PROBLEMS, stream_box_corners
from oco.compiler.prover.types import ProofRule, Step
from oco.dsl.expressions import Kind, names
from oco.dsl.intervals import point

POINTS = 4  # that are tried at each corner whatever they take


def corner_policy(setting: ProofContext, search: Allowance) -> Step | None:
    """The proof that each round has a decision, where the constraints' streams have few corners; None where it does not go through."""
    canonical = setting.canonical
    if canonical.equalities or not all(
        setting.joint(setting.simplify(c.expr)) in CONVEX_KINDS for c in canonical.inequalities
    ):
        return None
    used = sorted({n for c in canonical.inequalities for n in names(c.expr, Kind.STREAM)})
    corners = stream_box_corners(setting, used, MOST_PROBLEMS)
    if corners is None or any(setting.streams[n].integer for n in used):
        return None
    worst = np.inf
    for corner in corners:
        streams = {**{n: setting.box[n] for n in setting.streams}, **{n: point(v) for n, v in corner.items()}}
        scenario = Scenario(setting, "at a corner of the streams", streams, search)
        if not search.take(POINTS * scenario.cost(c.expr for c in canonical.inequalities)):
            return None
        result = slater_point(scenario)
        if result is None or result.margin < 0:
            return None
        worst = min(worst, result.margin)
    claim = (
        f"each of the {len(corners)} corners of the streams has a decision with at least {number(worst)} to spare, "
        "and between corners the mixtures of these serve: the constraints are convex in decision and streams together"
    )
    return Step(ProofRule.CORNER_POLICY, claim, worst, (), None, corners)
