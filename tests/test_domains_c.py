"""Every domain in C: projections, linear minimisations and mirror steps against the definitions of the step IR, at hostile points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from domain_cases import CASES, Case, points
from thorough import thorough

from oco.backends.contract import Contract
from oco.backends.registry import backend
from oco.compiler.domains import Domain
from oco.compiler.ir.build import trace_program
from oco.compiler.ir.passes import optimize
from oco.compiler.ir.program import DType, Field, Program, Type
from oco.compiler.ir.trace import Tracer

FLOAT = DType.FLOAT
SETS = (
    "box-arrays",
    "ball",
    "l1_ball",
    "nonneg_ball",
    "group_ball",
    "budget-signed",
    "capped_simplex",
    "nuclear_ball-wide",
)
MORE = (
    "spectrahedron",
    "ellipsoid-tilted",
    "polytope",
    "birkhoff",
    "flow",
    "simplex",
    "product",
    "box-row",
    "box-row-equal",
)
CUTS = ("cut-ball", "cut-spectrahedron")
CHOSEN = [case for case in CASES if case.name in (*SETS, *MORE, *CUTS)]


def operations(d: Domain) -> Program:
    """A program, before any pass, whose update applies what the domain offers to v."""
    t = Tracer("operations")
    offered = ["project", "lmo", "bregman_step"]

    def update(state: Mapping[str, Any], seen: Mapping[str, Any], drawn: Mapping[str, Any]) -> Mapping[str, Any]:
        v, inside = seen["v"], seen["inside"]
        results = {
            "project": lambda: d.project(t, v),
            "lmo": lambda: d.lmo(t, v),
            "bregman_step": lambda: d.bregman_step(t, inside, v),
        }
        return {name: results[name]() for name in offered}

    return trace_program(
        t,
        decision=[Field("x", Type(FLOAT, (1,)))],
        feedback=[Field("v", Type(FLOAT, d.shape)), Field("inside", Type(FLOAT, d.shape))],
        init=lambda start: {name: t.zeros(d.shape) for name in offered},
        decide=lambda state, drawn: {"x": t.zeros((1,))},
        update=update,
    )


@pytest.mark.parametrize("every", [False, thorough(True)], ids=["some", "every"])
@pytest.mark.parametrize("case", CHOSEN, ids=lambda c: c.name)
def test_domains_are_the_same_in_c(case: Case, every: bool) -> None:
    """At scale one, and where the set scales, at 1e-150 and 1e150, or one of these by turns: within the tolerance of the set, and in the
    set.
    """
    rng, extremes = np.random.default_rng(3), (1e-150, 1e150)
    turn = extremes if every else extremes[CHOSEN.index(case) % 2 :][:1]
    for scale in (1.0, *turn) if case.scales and case.exact else (1.0,):
        d = case.at(scale)
        program = optimize(operations(d))
        compiled = backend("c").compile(program, Contract("", "", None, {"x": np.zeros(1)}))
        names = [f.name for f in program.state[1:]]
        state = [np.zeros(d.shape) for _ in names]
        inside = d.sample(rng, 1)[0]
        for v in points(d, rng, 6):
            found = dict(zip(names, compiled.update(1, *state, v, inside)[1:]))
            for name, x in found.items():
                assert d.contains(x, case.tolerance if name != "bregman_step" else 1e-9), (name, scale)
            if "project" in found:
                room = 20 * case.tolerance * max(d.radius, float(np.max(np.abs(v))))
                np.testing.assert_allclose(found["project"], d.project_array(v), rtol=0, atol=room)
            if "lmo" in found:
                value, best = (np.sum(v / d.radius * (x / d.radius)) for x in (found["lmo"], d.lmo_array(v)))
                assert value == pytest.approx(best, rel=1e-9, abs=1e-9)
