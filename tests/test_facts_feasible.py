"""Feasibility, Slater margins and multipliers, against closed forms, SciPy's linear programs, and the paper's counterexamples."""

from __future__ import annotations

import itertools
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog
from thorough import turns

from oco.compiler.problem.canonical import canonical
from oco.compiler.prover.check import check
from oco.compiler.prover.context import ProofContext
from oco.compiler.prover.facts import Facts
from oco.compiler.prover.feasibility import infeasible, slater, solver
from oco.compiler.prover.feasibility.feasible import KEYS
from oco.compiler.prover.feasibility.scenario import robust
from oco.compiler.prover.types import Status
from oco.dsl.evaluate import evaluate
from oco.dsl.load import load, parse

EXAMPLES = Path(__file__).parent.parent / "examples"
HEAD = "model m\nhorizon T = 100\n"
BOX = HEAD + "decision x[2] in box(0, 1)\nminimize -x[0]\nsubject to\n"


def facts_of(text: str) -> Facts:
    return check(parse(text))


def codes(facts: Facts) -> list[str]:
    return [w.code for w in facts.warnings]


# ---- Slater margins


CORNERS = {
    "down": "stream A[2, 3] in [0.5, 2]\nstream b[2] in [4, 5]\nminimize -sum(x)\nsubject to\n    a: A @ x <= b each round\n",
    "both ways": "stream s in [1, 2]\nminimize x[0]\nsubject to\n    a: s * x[0] - 2 * x[1] + square(x[2] + 3) <= 40 each round\n",
    "two": "minimize x[0]\nsubject to\n    a: sum(x) <= 9 each round\n    b: x[0] <= 1.5 each round\n",
    "against each other": "minimize x[0]\nsubject to\n    a: x[0] <= 1.5 each round\n    b: x[0] >= 0.8 each round\n",
    "no corner": "minimize x[0]\nsubject to\n    a: square(x[0] - 1.5) <= 1 each round\n",
}


@pytest.mark.parametrize("name", CORNERS)
def test_the_best_corner_has_the_margin_that_a_solver_finds(name: str) -> None:
    scenario = robust(
        ProofContext(canonical(parse(HEAD + "decision x[3] in box([1, -2, 0], [3, 1, 2])\n" + CORNERS[name])))
    )
    found, (_, best) = slater._best_corner(scenario), slater._solved(scenario)
    if name in ("against each other", "no corner"):
        assert found is None and best is not None
        return
    assert found is not None
    assert found[1] == pytest.approx(best, abs=1e-6)


def test_no_solver_is_asked_where_a_corner_is_best(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slater, "_solved", lambda scenario: pytest.fail("a solver was asked"))
    facts = check(load(EXAMPLES / "tracking.oco"))
    assert facts["slater.margin"].status is Status.CONDITION and facts["feasible.common"].value is True


def test_margin_of_job_scheduling_is_that_of_full_power() -> None:
    facts = check(load(EXAMPLES / "job_scheduling.oco"))
    assert facts["slater.margin"].value == pytest.approx(400 * math.log(4001) - 3200, rel=1e-9)
    assert facts["slater.margin"].value <= 400 * math.log(4001) - 3200
    assert np.allclose(facts["slater.point"].value, 1000, atol=1e-3)


def test_no_margin_where_only_the_boundary_serves() -> None:
    facts = check(load(EXAMPLES / "tracking.oco"))
    assert facts["feasible.common"].value is True
    assert facts["slater.margin"].status is Status.CONDITION and facts["slater.margin"].value is None


@pytest.mark.parametrize("seed", range(4))
def test_fixed_affine_margin_is_the_optimum_of_a_linear_program(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(4, 3)), rng.uniform(0.2, 1.0, size=4)
    text = (
        f"{HEAD}param A[4, 3] = {a.tolist()}\nparam b[4] = {b.tolist()}\ndecision x[3] in box(-1, 2)\nminimize sum(x)\n"
    )
    facts = facts_of(text + "subject to\n    rows: A @ x <= b   each round\n")
    program = linprog(
        [0, 0, 0, -1],
        A_ub=np.hstack([a, np.ones((4, 1))]),
        b_ub=b,
        bounds=[(-1, 2)] * 3 + [(None, None)],
        method="highs",
    )
    assert facts["slater.margin"].value <= -program.fun + 1e-12
    assert facts["slater.margin"].value == pytest.approx(-program.fun, abs=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_robust_margin_is_that_of_all_corners(seed: int) -> None:
    rng = np.random.default_rng(seed)
    b = float(rng.uniform(1.0, 2.0))
    text = f"{HEAD}decision x[3] in box(-1, 2)\nstream c[3] in [-1, 0.5]\nstream d in [0, 0.3]\nminimize c @ x\n"
    facts = facts_of(text + f"subject to\n    row: c @ x + d * (1 + x[0]) + 0.5 <= {b}   each round\n")
    rows, right = [], []
    for corner in itertools.product([-1, 0.5], [-1, 0.5], [-1, 0.5], [0, 0.3]):
        c, d = np.array(corner[:3]), corner[3]
        rows.append([*(c + np.array([d, 0, 0])), 1])
        right.append(b - 0.5 - d)
    program = linprog([0, 0, 0, -1], A_ub=rows, b_ub=right, bounds=[(-1, 2)] * 3 + [(None, None)], method="highs")
    assert facts["slater.margin"].value <= -program.fun + 1e-12
    assert facts["slater.margin"].value == pytest.approx(-program.fun, abs=1e-6)


def test_slater_points_do_not_leave_thin_sets_for_round_numbers() -> None:
    """The set is one point, of 16 digits: fewer would lie outside."""
    total = 915.4766901437698
    text = f"{HEAD}decision x[1] in l1_ball(1000) with x <= 916.5, x == {total}\nminimize sum(x)\nsubject to\n    g: sum(x) <= 916.5\n"
    assert facts_of(text)["slater.point"].value == pytest.approx([total], rel=1e-15)


def test_mean_margin_of_a_constraint_that_is_affine_in_its_streams() -> None:
    facts = check(load(EXAMPLES / "portfolio.oco"))
    assert facts["slater.margin"].value == pytest.approx(0.5 - 1 / 3, abs=1e-8)
    assert facts["slater.margin"].value <= 0.5 - 1 / 3


def test_the_mean_is_that_of_the_truncated_law() -> None:
    text = f"{HEAD}decision x in box(0, 1)\nstream s ~ exponential(1) in [0, 2]\nminimize x\nsubject to\n    g: s <= 1 - 0.2 * x\n"
    mean = 1 - 2 * math.exp(-2) / (1 - math.exp(-2))
    assert facts_of(text)["slater.margin"].value == pytest.approx(1 - mean, abs=1e-7)


def test_products_of_one_stream_have_no_mean_that_is_known() -> None:
    text = f"{HEAD}decision x in box(0, 1)\nstream s ~ uniform(0, 1)\nminimize x\nsubject to\n    g: square(s) <= 0.5 * x\n"
    assert facts_of(text)["feasible.mean"].status is Status.UNKNOWN


def test_the_point_has_the_margin_that_is_claimed() -> None:
    for name in ("job_scheduling", "online_qp", "blind_pricing"):
        model = load(EXAMPLES / f"{name}.oco")
        facts, problem = check(model), canonical(model)
        rng = np.random.default_rng(0)
        for _ in range(50):
            env = {s.name: rng.uniform(s.lower, s.upper, size=s.shape) for s in problem.streams}
            env[problem.blocks[0].name] = facts["slater.point"].value
            for c in problem.inequalities:
                assert np.all(evaluate(c.expr, env) <= -facts["slater.margin"].value + 1e-9)


# ---- multipliers: erratum 6a


def test_a_dependent_pacing_row_is_dropped_and_named() -> None:
    facts = check(load(EXAMPLES / "datacenter.oco"))
    assert facts["multipliers.bounded"].value is True
    dependent = [w for w in facts.warnings if w.code == "OCO601"]
    assert len(dependent) == 1 and "pacing[3]" in dependent[0].message
    assert dependent[0].span is not None and dependent[0].span.text.startswith("group @")


@pytest.mark.parametrize(
    "text",
    (
        BOX + "    e: x[0] + x[1] == 0\n",
        f"{HEAD}decision x[2] in simplex\nminimize -x[0]\nsubject to\n    e: x[0] == 0\n",
    ),
    ids=("corner of the box", "face of the simplex"),
)
def test_independent_rows_without_an_interior_point_prove_nothing(text: str) -> None:
    fact = facts_of(text)["multipliers.bounded"]
    assert fact.status is Status.REFUTED and fact.witness is not None


def test_a_row_that_the_domain_implies_is_dropped() -> None:
    text = (
        f"{HEAD}decision x[3] in simplex\nminimize -x[0]\nsubject to\n    total: sum(x) == 1\n    half: x[0] == 0.5\n"
    )
    facts = facts_of(text)
    assert facts["multipliers.bounded"].value is True
    assert ["total" in w.message for w in facts.warnings if w.code == "OCO601"] == [True]


def test_a_dependent_row_with_another_right_side_is_a_contradiction() -> None:
    facts = facts_of(BOX + "    one: x[0] + x[1] == 1\n    two: 2 * x[0] + 2 * x[1] == 3\n")
    assert facts["feasible.mean"].status is Status.REFUTED
    assert facts["multipliers.bounded"].value is not True


def test_a_point_inside_proves_multipliers_bounded() -> None:
    facts = facts_of(BOX + "    e: x[0] + x[1] == 1\n    g: x[0] <= 0.9   # allow OCO611\n")
    assert facts["multipliers.bounded"].value is True and codes(facts) == []


# ---- three kinds of feasibility


def test_a_decision_for_each_round_without_a_common_one() -> None:
    text = f"{HEAD}decision x in box(0, 2)\nstream d in [0, 2]\nminimize x\nsubject to\n    track: abs(x - d) <= 0.25   each round\n"
    facts = facts_of(text)
    assert facts["feasible.each_round"].value is True
    assert facts["feasible.common"].value is not True


def test_a_round_that_no_decision_serves() -> None:
    text = f"{HEAD}decision x[2] in box(0, 1)\nstream d in [0, 2]\nminimize sum(x)\nsubject to\n    load: sum(x) >= 1.6 * d   each round\n"
    facts = facts_of(text)
    for key in ("feasible.common", "feasible.each_round"):
        assert facts[key].status is Status.CONDITION and not facts[key].known
        witness = facts[key].witness
        assert witness is not None and 1.6 * float(witness.values["d"]) > 2
    assert "OCO605" not in codes(facts)


def test_what_fails_for_every_value_of_the_streams_is_refuted() -> None:
    """With d in [1.3, 2] even the smallest d asks for more than the box holds: no sequence is feasible."""
    row = "load: sum(x) >= 1.6 * d   each round"
    text = f"{HEAD}decision x[2] in box(0, 1)\nstream d in [1.3, 2]\nminimize sum(x)\nsubject to\n    {row}\n"
    facts = facts_of(text)
    for key in ("feasible.common", "feasible.each_round"):
        assert facts[key].status is Status.REFUTED and facts[key].witness is not None
    assert "OCO605" in codes(facts)


def test_rows_without_streams_that_contradict_each_other_are_refuted_beside_rows_with_streams() -> None:
    rows = "    low: sum(x) <= 0.5 each round\n    high: sum(x) >= 1 each round\n    load: x[0] >= d each round\n"
    text = f"{HEAD}decision x[2] in box(0, 1)\nstream d in [0, 2]\nminimize sum(x)\nsubject to\n{rows}"
    facts = facts_of(text)
    assert facts["feasible.common"].status is Status.REFUTED
    (found,) = [w for w in facts.warnings if w.code == "OCO605"]
    assert "low and high" in found.message and "load" not in found.message


@pytest.mark.parametrize("row", ("load: x[0] >= d", "even: x[0] + x[1] == d"))
def test_draws_of_unknown_mean_leave_feasibility_in_the_mean_open(row: str) -> None:
    text = (
        f"{HEAD}decision x[2] in box(0, 1)\nstream d iid in [0, 5]\nminimize sum(x)\nsubject to\n    {row} on average\n"
    )
    assert facts_of(text)["feasible.mean"].status in (Status.CONDITION, Status.UNKNOWN)
    known = facts_of(text.replace("iid in [0, 5]", "iid mean = 4 in [0, 5]"))
    assert known["feasible.mean"].status is Status.REFUTED


def test_feasible_in_the_mean_alone() -> None:
    text = f"{HEAD}decision x[2] in box(0, 1)\nstream d ~ uniform(0, 2)\nminimize sum(x)\nsubject to\n    load: sum(x) >= 1.6 * d\n"
    facts = facts_of(text)
    assert facts["feasible.mean"].value is True and facts["feasible.common"].status is Status.CONDITION
    assert "OCO605" not in codes(facts)


def test_an_irreducible_set_is_named_with_its_smallest_relaxation() -> None:
    facts = facts_of(BOX + "    low: sum(x) <= 0.5\n    high: sum(x) >= 1\n    side: x[0] <= 0.9\n")
    (found,) = [w for w in facts.warnings if w.code == "OCO605"]
    assert "low and high" in found.message and "side" not in found.message
    assert "relax low by 0.5 (line 6)" in found.hint and "relax high by 0.5 (line 7)" in found.hint


def test_three_constraints_of_which_any_two_agree() -> None:
    facts = facts_of(BOX + "    a: x[0] >= 0.6\n    b: x[1] >= 0.6\n    c: x[0] + x[1] <= 1\n    d: x[0] <= 2\n")
    (found,) = [w for w in facts.warnings if w.code == "OCO605"]
    assert all(f"{label}" in found.message for label in ("a and b and c",)) and facts["feasible.mean"].value is False


TOUCHING = {
    "log_sum_exp(x) - 1.4319456220014434": "simplex",  # log 3 + 1/3 is the least value, at x = 1/3
    "sum(exp(x)) - 4.186837275258271": "simplex",  # 3 exp(1/3)
    "sum_squares(x - 1/3) - 1e-16": "box(-1, 1)",
}


@pytest.mark.parametrize(("least", "scale"), turns([*TOUCHING], [1e4, 1.0, 1e-2, 1e-4]))
def test_a_constraint_that_touches_its_bound_is_not_said_to_fail(least: str, scale: float) -> None:
    """The decision of thirds is feasible; a solver finds a margin of some 1e-10 below or above 0, however the constraint is scaled."""
    x = np.full(3, 1 / 3)
    spare = 1.4319456220014434 - math.log(np.exp(x).sum()), 4.186837275258271 - np.exp(x).sum(), 1e-16
    assert min(spare) >= 0
    head = f"decision x[3] in {TOUCHING[least]}\nminimize x[0]\nsubject to\n"
    facts = facts_of(HEAD + head + f"    a: {scale} * ({least}) <= 0 each round\n")
    for key in ("feasible.common", "feasible.each_round", "feasible.mean"):
        assert facts[key].status in (Status.PROVED, Status.UNKNOWN)


@pytest.mark.parametrize("scale", [1.0, 1e-4])
def test_a_constraint_that_fails_by_more_than_rounding_is_said_to_fail(scale: float) -> None:
    text = f"decision x[3] in simplex\nminimize x[0]\nsubject to\n    a: {scale} * (log_sum_exp(x) - 1.42) <= 0 each round\n"
    assert facts_of(HEAD + text)["feasible.common"].status in (Status.REFUTED, Status.CONDITION)


SOLVED = set(KEYS)


@pytest.mark.parametrize("written", ["rows", "one by one"])
def test_facts_of_300_rows_on_average_are_known(written: str) -> None:
    """Random rows that x = 0 satisfies with a half to spare, on average with streams of known mean beside them."""
    rows = np.random.default_rng(3).uniform(-1, 1, (300, 4)).round(3)
    texts = ["[" + ", ".join(map(str, row)) + "]" for row in rows]
    constraints = {
        "rows": f"    c: [{', '.join(texts)}] @ x <= b on average\n",
        "one by one": "".join(f"    c{k}: dot({text}, x) <= b on average\n" for k, text in enumerate(texts)),
    }
    head = "decision x[4] in box(-1, 1)\nstream a[4] in [-1, 1]\nstream b ~ uniform(0.25, 0.75)\nminimize sum_squares(x - a)\n"
    facts = facts_of(HEAD + head + "subject to\n" + constraints[written])
    unknown = {key for key in facts if facts[key].status is Status.UNKNOWN}
    assert not unknown & SOLVED and not {key for key in unknown if key.startswith("constraints")}
    bounds = [(-1, 1)] * 4 + [(None, None)]
    best = linprog([0, 0, 0, 0, -1], np.c_[rows, np.ones(300)], np.full(300, 0.5), bounds=bounds)
    assert facts["slater.margin"].value == pytest.approx(-best.fun, rel=1e-6)


def test_a_model_without_constraints_is_feasible() -> None:
    facts = facts_of(HEAD + "decision x[2] in box(0, 1)\nminimize sum(x)\n")
    assert facts["feasible.common"].value is True and facts["multipliers.bounded"].value is True


def test_a_conflict_names_entries_as_the_index_does() -> None:
    """Line 5 of trams is entry 2 of the array: `seats[2]` would be read as another line."""
    text = (
        f"{HEAD}index line = [1, 2, 5]\nparam least[line] = [0, 0, 2]\ndecision x[line] in box(0, 1)\nminimize sum(x)\n"
    )
    (found,) = [
        w for w in facts_of(f"{text}subject to\n    seats: x >= least  each round\n").warnings if w.code == "OCO605"
    ]
    assert "seats[5]" in found.message and "relax seats[5] by 1 " in found.hint


# ---- without a solver


def test_a_row_that_no_decision_meets_is_refuted_at_its_corner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Least of 9 - sum(s log(1 + x)) over the box, at s = 1 that of the worst round: 9 - 2 log 3, where x is greatest."""
    monkeypatch.setattr(infeasible, "_least_violation", lambda *_: pytest.fail("a solver was asked"))
    model = parse(
        BOX.replace("box(0, 1)", "box(0, 2)\nstream s[2] in [1, 3]")
        + "    a: 9 - sum(s * log(1 + x)) <= 0 each round\n"
    )
    scenario = robust(ProofContext(canonical(model)))
    proof = infeasible.impossible(scenario, infeasible.rows_of(scenario, scenario.setting.canonical.inequalities))
    assert proof is not None
    least, bound = 9 - 2 * math.log(3), proof.step.value
    assert least * (1 - 1e-12) <= bound <= least


def test_an_interior_point_of_equalities_is_found_by_projections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    facts = check(load(EXAMPLES / "datacenter.oco"))
    step = facts["multipliers.bounded"].why.premises[0]
    assert facts["multipliers.bounded"].status is facts["feasible.mean"].status is Status.PROVED
    mu = step.subject["mu"]
    group, beta = np.loadtxt(EXAMPLES / "datacenter_groups.csv", delimiter=","), np.array([0.05, 0.10, 0.25, 0.60])
    assert group @ mu == pytest.approx(beta * mu.sum(), rel=1e-9) and mu.min() > 0 and mu.max() < 30


ONE_ROW = {
    "simplex": "decision x[4] in simplex",
    "capped": "decision x[4] in capped_simplex(2, 0.7)",
    "ball": "decision x[4] in ball(2)",
    "flow": "decision x[4] in flow([[0, 1], [1, 3], [0, 2], [2, 3]], 0, 3)",
    "two blocks": "decision x[4] in simplex\ndecision y[2] in ball(1)",
}


@pytest.mark.parametrize("domain", ONE_ROW)
def test_one_affine_row_needs_no_solver(domain: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its least value at the worst streams, and the decision, are those that a solver finds."""
    more = " + [3, -4] @ y" if domain == "two blocks" else ""
    text = "\nstream w[4] in [-1, 2]\nstream b in [4, 6]\nminimize x[0]\nsubject to\n"
    text += f"    a: [1, 2, -1, 3] @ x + sum(w) + b{more} <= 1 on average\n"
    scenario = robust(ProofContext(canonical(parse(HEAD + ONE_ROW[domain] + text))))
    exprs = [c.expr for c in scenario.setting.canonical.inequalities]
    wanted = solver._convex_program(scenario, exprs)
    monkeypatch.setattr(solver, "_convex_program", lambda *_: pytest.fail("a solver was asked"))
    found = solver.least_violation(scenario, exprs)
    assert found is not None and wanted is not None
    assert found.value == pytest.approx(wanted.value, abs=1e-6) and found.weights.tolist() == [1]
    for block in scenario.setting.canonical.blocks:
        assert block.domain.contains(found.x[block.name], 1e-9)
    assert scenario.worst(exprs[0], found.x).greatest == pytest.approx(found.value, abs=1e-9)
