"""Comparators of the first rounds, of data that does not fit, of functions with many kinks, and within a budget: intervals that hold."""

from __future__ import annotations

from time import sleep

import numpy as np
import pytest
from comparator_cases import MODELS, check_certificate, drawn, problem, reference
from thorough import one_in

from oco.compiler.problem.canonical import Canonical
from oco.evaluation.comparators import ComparatorBudget, ComparatorStatus, conic_comparators
from oco.evaluation.comparators import composite as composite_module
from oco.evaluation.comparators import dynamic as dynamic_module
from oco.evaluation.comparators import static as static_module
from oco.evaluation.comparators.compare import compare, compare_prefixes
from oco.evaluation.comparators.functions import RoundArrays
from oco.evaluation.comparators.kkt import WIDE, Newton
from oco.evaluation.comparators.of_expressions import implicit
from oco.evaluation.comparators.sampled import estimate_of
from oco.evaluation.comparators.sums import PrefixSums
from oco.evaluation.data import Data, load_data


def test_what_takes_longer_than_the_budget_is_not_computed() -> None:
    p = problem("decision x[3] in box(0, 1)\nstream c[3] ~ uniform(0, 1)\nminimize c @ x\n", 1000)
    found = compare(p, load_data(p), "dynamic", ComparatorBudget(seconds=0.0))
    assert found.status is ComparatorStatus.NOT_COMPUTED and found.losses is None and "0 s" in found.words


def test_rounds_that_would_take_too_long_are_left_with_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """One round tells that the budget will not do; what it costs, and no loss being negative, bounds the whole from below."""
    p = problem(
        "decision X[3, 2] in nuclear_ball(1)\nstream A[3, 2] ~ uniform(0.5, 2)\nminimize sum_squares(X - A)\n", 6
    )
    data = load_data(p)
    whole = compare(p, data, "dynamic")
    monkeypatch.setattr(dynamic_module, "PATIENCE", 0.0)
    monkeypatch.setattr(dynamic_module, "HOPELESS", 1e-9)
    found = compare(p, data, "dynamic")
    assert whole.status is ComparatorStatus.CERTIFIED
    assert found.status is ComparatorStatus.NOT_COMPUTED and "all 6 rounds would take about" in found.words
    assert 0 < found.bound < whole.value and "it costs at least" in found.words


def test_rounds_at_equal_distances_estimate_what_all_would_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """The total of `min c @ x` over the box is the sum of the negative entries of c, which grow with the round."""
    p = problem("decision x[20] in box(0, 1)\nstream c[20] in [-2, 2]\nminimize c @ x\n", 4000)
    rng = np.random.default_rng(0)
    c = rng.uniform(-1, 1, (4000, 20)) * np.linspace(0, 2, 4000)[:, None]
    monkeypatch.setattr(dynamic_module, "HOPELESS", 1e-9)
    monkeypatch.setattr(dynamic_module, "_rounds_at_once", lambda *_: 400)
    found = compare(p, load_data(p, {"c": c}), "dynamic")
    losses = np.minimum(c, 0).sum(axis=1)
    assert found.status is ComparatorStatus.NOT_COMPUTED and found.estimate is not None
    assert found.estimate.count == 400 and "400 rounds at equal distances suggest" in found.words
    assert found.estimate.total == pytest.approx(10 * losses[::10].sum(), rel=1e-5)
    assert abs(found.estimate.total - losses.sum()) <= found.estimate.within < 0.1 * abs(losses.sum())


def test_intervals_of_estimates_hold_the_total_as_often_as_they_say() -> None:
    """Of 2,000 samples without replacement of 50 of 200 losses some 95% do."""
    rng = np.random.default_rng(1)
    losses = rng.normal(3, 1, 200)
    samples = [estimate_of(rng.permutation(losses)[:50], 200) for _ in range(2000)]
    held = np.mean([abs(e.total - losses.sum()) <= e.within for e in samples])
    assert 0.93 < held < 0.96
    whole = estimate_of(losses, 200)
    assert whole.total == pytest.approx(losses.sum()) and whole.within == 0


def test_chunks_of_rounds_in_threads_give_the_bits_of_those_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decisions, losses and bounds; chunks that a round ends in the middle of, with rounds that nothing satisfies."""
    p = problem(
        "decision x[300] in box(0, 1)\nstream c[300] ~ uniform(-1, 1)\nstream b ~ uniform(-20, 280)\n"
        "minimize c @ x\nsubject to\n    need: b - 60 * sum(log(1 + x)) / 50 <= 0 each round\n",
        450,
    )
    data = load_data(p, seed=4)
    sizes: list[int] = []

    def one_after_another(work, chunks, at_once):  # type: ignore[no-untyped-def]
        for streams, numbers in chunks:
            sizes.append(len(numbers))
            yield work(streams, numbers)

    together = compare(p, data, "dynamic")
    monkeypatch.setattr(dynamic_module, "_in_order", one_after_another)
    alone = compare(p, data, "dynamic")
    assert len(sizes) > 4 and together.status is alone.status and together.bound == alone.bound
    assert np.array_equal(together.losses, alone.losses) and np.array_equal(together.decision["x"], alone.decision["x"])
    assert np.array_equal(together.impossible, alone.impossible) and 0 < len(alone.impossible) < 450


def test_results_of_chunks_come_in_their_order_and_no_more_are_begun_than_wanted() -> None:
    begun: list[int] = []

    def work(k: int) -> int:
        begun.append(k)
        sleep(0.02 / (1 + k))
        return k

    assert list(dynamic_module._in_order(work, iter([(k,) for k in range(9)]), 2)) == [*range(9)]
    begun.clear()
    results = dynamic_module._in_order(work, iter([(k,) for k in range(9)]), 2)
    assert [next(results), next(results)] == [0, 1]
    results.close()
    assert sorted(begun) == [0, 1, 2]


def test_what_is_too_wide_costs_no_less_than_its_losses_can_be() -> None:
    p = problem("decision X[30, 20] in nuclear_ball(1)\nstream a in [0, 1]\nminimize 2 + (X[0, 0] - a) ** 2\n", 5)
    found = compare(p, load_data(p, {"a": np.ones(5)}), "static", ComparatorBudget(memory=1 << 20))
    assert found.status is ComparatorStatus.NOT_COMPUTED and found.bound == 10


LARGE = """decision x[4] in box(-1, 1)
stream c[4] ~ uniform(-1, 1)
minimize c @ x + sum_squares(x - 0.3)
subject to
    each: c @ x <= 1.1         each round
    mean: sum(c * x) <= 0.1    on average
"""


def test_data_that_does_not_fit_gives_an_interval() -> None:
    """The parts' best decisions bound from below, their mean is a decision: the whole program's value lies between."""
    p = problem(LARGE, 3000)
    data = load_data(p, seed=1)
    whole = compare(p, data, "static")
    found = compare(p, data, "static", ComparatorBudget(memory=data.nbytes // 2))
    assert whole.status is ComparatorStatus.CERTIFIED and found.status is ComparatorStatus.INTERVAL
    assert found.bound < whole.bound and whole.value < found.value
    expected = (
        8 * 4 * (1 / 3) / 4
    )  # 8 parts, 4 entries: a part gains the square of its mean of c over 4, a round's worth of variance
    assert found.gap < 2 * expected and np.all(found.violation <= 1e-5)
    assert compare(p, data, "dynamic", ComparatorBudget(memory=1000)).status is ComparatorStatus.CERTIFIED
    late = compare(p, data, "static", ComparatorBudget(seconds=0.0, memory=data.nbytes // 2))
    assert late.status is ComparatorStatus.NOT_COMPUTED and "GiB" in late.words


ADDED = {
    "a matrix": (
        "decision X[3, 2] in nuclear_ball(1)\nstream A[3, 2] in [-1, 2]\nstream b in [0, 1]\n"
        "minimize (X[2, 1] - b) ** 2 + A[0, 0] * X[0, 1]\nsubject to\n    side: sum(A * X) <= 0.1    on average\n"
    ),
    "two decisions": (
        "decision x[2] in box(-1, 2)\ndecision w[3] in simplex(2)\nstream a[2] in [-2, 2]\nstream c[3] in [0, 1]\n"
        "minimize sum_squares(x - a) / t + c @ w\nsubject to\n    link: exp(x[0]) + w[0] <= 2    each round\n"
    ),
} | {name: MODELS[name] for name in ("the same on average", "equalities on average", "a known law on average")}


@pytest.mark.parametrize("body", ADDED.values(), ids=ADDED.keys())
def test_sums_over_data_that_does_not_fit_are_as_good_as_all_of_it(body: str) -> None:
    """Ends lie within parts of 1/8 of the rounds, where they meet, and several in one."""
    p, ends = problem(body, 160), np.array([3, 20, 21, 35, 40, 117, 160])
    data = drawn(p, 160)
    little = ComparatorBudget(memory=data.nbytes // 2)
    whole, found = compare(p, data, "static"), compare(p, data, "static", little)
    assert "sums over parts" in found.method and found.status is whole.status is ComparatorStatus.CERTIFIED
    check_certificate(found)
    size = float(np.abs(whole.losses).sum())
    assert found.value == pytest.approx(whole.value, rel=1e-6, abs=1e-6 * size)
    np.testing.assert_allclose(found.violation, whole.violation, atol=1e-5)
    together, streamed = compare_prefixes(p, data, ends), compare_prefixes(p, data, ends, little)
    assert "sums over parts" in streamed.method and streamed.status == together.status
    np.testing.assert_allclose(streamed.value, together.value, rtol=1e-5, atol=3e-6 * size)
    assert np.all(streamed.bound <= together.value + 1e-6 * size)
    assert streamed.decision.keys() == together.decision.keys()


def test_prefixes_of_data_that_does_not_fit_say_why_there_are_none() -> None:
    p = problem(LARGE, 3000)
    data = load_data(p, seed=1)
    found = compare_prefixes(p, data, np.array([10, 3000]), ComparatorBudget(memory=data.nbytes // 2))
    assert set(found.status) == {ComparatorStatus.NOT_COMPUTED} and "cannot be added up" in found.why
    p = problem(ADDED["a matrix"], 160)
    late = ComparatorBudget(seconds=0.0, memory=1000)
    assert "longer than 0 s" in compare(p, drawn(p, 160), "static", late).words
    assert "longer than 0 s" in compare_prefixes(p, drawn(p, 160), np.array([160]), late).why


@pytest.mark.parametrize("body", MODELS.values(), ids=MODELS.keys())
def test_the_best_of_the_first_rounds_is_the_same_side_by_side_and_alone(body: str) -> None:
    p = problem(body, 40)
    data = drawn(p, 40)
    ends = np.array([1, 2, 3, 7, 19, 40])
    found = compare_prefixes(p, data, ends)
    for end, value, bound, status in zip(ends, found.value, found.bound, found.status):
        alone = compare(p, data.first(int(end)), "static")
        size = max(1.0, float(np.abs(alone.losses).sum()))
        assert value == pytest.approx(alone.value, rel=3e-6, abs=3e-6 * size)
        assert status is alone.status and bound <= value + 1e-9 * size


def test_prefixes_that_nothing_satisfies_have_the_least_violating_decision() -> None:
    p = problem(
        "decision x in box(0, 10)\nstream a in [-10, 10]\nminimize (x - 3) ** 2\nsubject to\n    above: a >= x    each round\n",
        4,
    )
    data = load_data(p, {"a": np.array([5.0, 6.0, -2.0, 1.0])})
    found = compare_prefixes(p, data, np.array([1, 2, 3, 4]))
    assert found.status == (ComparatorStatus.CERTIFIED,) * 2 + (ComparatorStatus.LEAST_VIOLATING,) * 2
    np.testing.assert_allclose(found.decision["x"], [3.0, 3.0, 0.0, 0.0], atol=1e-3)


LIMITS = (
    "decision x[3] in box(0, 5)\nstream A[3, 3] in [-2, 2]\nstream b[3] in [-2, 2]\nminimize sum_squares(x - 2)\n"
    "subject to\n    limits: A @ x <= b    each round\n"
)


def test_limits_come_in_entry_by_entry_as_prefixes_break_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few are taken at first and at a time, so that it takes several passes, and all members have different ones."""
    monkeypatch.setattr(static_module, "FIRST", 4)
    monkeypatch.setattr(static_module, "MORE", 3)
    p, rng, ends = problem(LIMITS, 120), np.random.default_rng(5), np.array([1, 4, 30, 70, 120])
    A = rng.uniform(-0.3, 1, (120, 3, 3))
    data = load_data(p, {"A": A, "b": A @ np.full(3, 0.1) + rng.uniform(0.0, 1, (120, 3))})
    found = compare_prefixes(p, data, ends)
    assert set(found.status) == {ComparatorStatus.CERTIFIED}
    for end, value in zip(ends, found.value):
        assert value == pytest.approx(reference(p, data, list(range(end)), averages=True), rel=1e-5)


def test_entries_of_limits_that_cannot_hold_together_are_named_by_their_rounds() -> None:
    """x0 >= 2 is the second entry of round 2, x0 <= 1 the third of round 5: half way both miss by a half."""
    A, b = np.random.default_rng(1).uniform(-1, 0, (6, 3, 3)), np.full((6, 3), 1.0)
    A[1, 1], b[1, 1], A[4, 2], b[4, 2] = [-1, 0, 0], -2.0, [1, 0, 0], 1.0
    p = problem(LIMITS, 6)
    found = compare(p, load_data(p, {"A": A, "b": b}), "static")
    assert found.status is ComparatorStatus.LEAST_VIOLATING and found.impossible.tolist() == [2, 5]
    np.testing.assert_allclose(found.decision["x"], [1.5, 2.0, 2.0], atol=1e-4)
    several = compare_prefixes(p, load_data(p, {"A": A, "b": b}), np.array([1, 4, 5, 6]))
    assert several.status == (ComparatorStatus.CERTIFIED,) * 2 + (ComparatorStatus.LEAST_VIOLATING,) * 2


KINKED = {
    "absolute values": "decision x[3] in ball(3)\nstream a[3] in [-1, 1]\nstream y in [-2, 2]\nminimize abs(a @ x - y) + 0.1 * norm1(x)\n",
    "hinges": "decision x[3] in ball(3)\nstream a[3] in [-1, 1]\nstream y in [-2, 2]\nminimize hinge(y * (a @ x)) + norm_inf(x)\n",
    "a maximum": "decision x in box(0, 9)\nstream d in [0, 9]\nminimize max([2 * (d - x), x - d])\n",
    "limits with kinks": (
        "decision x[2] in box(-3, 3)\nstream a[2] in [-1, 1]\nminimize sum_squares(x - 3 * a) - sum(x)\n"
        "subject to\n    near: norm2(x - a) <= 1.9    each round\n    mean: maximum(x[0], a[0]) + pos(x[1]) <= 0.6    on average\n"
    ),
}


def _all_rounds(p: Canonical, data: Data) -> RoundArrays:
    return RoundArrays.of(p, data.read(0, data.rounds), np.arange(data.rounds) + 1)


@pytest.mark.parametrize("body", one_in(2, KINKED.values()), ids=KINKED.keys())
def test_many_kinks_of_pieces_and_lengths_are_one_sparse_program(body: str) -> None:
    p = problem(body, 60)
    data = drawn(p, 60)
    ends = [7, 30, 60]
    several = compare_prefixes(p, data, np.array(ends))
    for end, value, bound, status in zip(ends, several.value, several.bound, several.status):
        found = compare(p, data.first(end), "static")
        if found.status is ComparatorStatus.LEAST_VIOLATING:
            assert status is ComparatorStatus.LEAST_VIOLATING
            continue
        exact = reference(p, data, list(range(end)), averages=True)
        check_certificate(found)
        assert "sparse" in found.method and status is ComparatorStatus.CERTIFIED
        assert found.value == pytest.approx(exact, rel=1e-6, abs=1e-6) == value
        assert bound <= exact + 1e-6 and np.all(found.violation <= 1e-6)
        assert all(b.domain.contains(found.decision[b.name], 1e-7) for b in p.blocks)


@pytest.mark.parametrize("body", [KINKED[name] for name in ("absolute values", "hinges", "a maximum")])
def test_kinks_too_many_for_one_sparse_program_are_solved_by_first_order(
    body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    p = problem(body, 60)
    data = drawn(p, 60)
    monkeypatch.setattr(conic_comparators, "SPARSE", 1.0)
    found, exact = compare(p, data, "static"), reference(p, data, list(range(60)), averages=True)
    assert found.status is ComparatorStatus.CERTIFIED and "Lagrangian" in found.method
    assert found.value == pytest.approx(exact, rel=1e-6) and found.bound <= exact + 1e-6 * abs(exact)
    several = compare_prefixes(p, data, np.array([30, 60]))
    assert several.status == (ComparatorStatus.CERTIFIED,) * 2 and several.value[1] == pytest.approx(exact, rel=1e-6)


def test_limits_with_kinks_that_cannot_hold_are_broken_least() -> None:
    """|x - p| <= 0.1 for p = 0 in three rounds and p = 1 in one: every x breaks two by 0.4 or more, x = 0.5 by that."""
    body = "decision x in box(-3, 3)\nstream p in [0, 1]\nminimize (x - 2) ** 2\nsubject to\n    near: abs(x - p) <= 0.1   each round\n"
    p = problem(body, 4)
    data = load_data(p, {"p": np.array([0.0, 0.0, 1.0, 0.0])})
    found = compare(p, data, "static")
    assert (
        found.status is ComparatorStatus.LEAST_VIOLATING
        and "cannot hold together" in found.why
        and 3 in found.impossible
    )
    x = found.decision["x"].item()
    assert x == pytest.approx(0.5, abs=1e-4) and found.violation.max() == pytest.approx(0.4, abs=1e-4)
    several = compare_prefixes(p, data, np.array([2, 4]))
    assert several.status == (ComparatorStatus.CERTIFIED, ComparatorStatus.LEAST_VIOLATING)
    assert several.value[0] == pytest.approx(2 * 1.9**2, rel=1e-6)
    assert several.value[1] == pytest.approx(4 * 1.5**2, abs=4 * 2 * 1.5 * 1e-4)


def test_kinks_beside_a_logarithm_are_one_program_or_go_along_slopes(monkeypatch: pytest.MonkeyPatch) -> None:
    p = problem("decision x[2] in box(0, 3)\nstream a[2] in [-1, 1]\nminimize sum(abs(x - a)) - sum(log(1 + x))\n", 60)
    data = drawn(p, 60)
    found, exact = compare(p, data, "static"), reference(p, data, list(range(60)), averages=True)
    check_certificate(found)
    assert "sparse" in found.method and found.value == pytest.approx(exact, rel=1e-7)
    monkeypatch.setattr(conic_comparators, "SPARSE", 1.0)
    rough = compare(p, data, "static")
    assert rough.bound <= exact + 1e-5 and exact <= rough.value + 1e-5 and rough.gap <= 0.02 * abs(exact)


def test_what_was_reached_within_the_budget_is_an_interval() -> None:
    p = problem(MODELS["logistic"], 40)
    data = drawn(p, 40)
    best, cut = compare(p, data, "static"), compare(p, data, "static", ComparatorBudget(seconds=0.0))
    assert best.status is ComparatorStatus.CERTIFIED and cut.status is ComparatorStatus.INTERVAL
    assert cut.bound < best.bound and best.value < cut.value


def test_what_does_not_hold_yet_within_the_budget_is_not_called_impossible() -> None:
    p = problem(MODELS["equalities on average"], 40)
    data = drawn(p, 40)
    cut = compare(p, data, "static", ComparatorBudget(seconds=0.0))
    assert cut.status is ComparatorStatus.NOT_COMPUTED and "budget of time" in cut.words
    assert cut.bound <= compare(p, data, "static").value


@pytest.mark.parametrize("pairs", [5, 1 << 16])
def test_sums_over_first_rounds_are_those_of_the_rounds_one_by_one(pairs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions of affine forms add up their rounds for all prefixes together; the rounds' own jets and Hessians say what comes out."""
    monkeypatch.setattr(composite_module, "PAIRS", pairs)
    p = problem(
        "decision x[6] in ball(2)\nstream A[2, 6] in [-1, 1]\nstream y[2] in [-1, 1]\n"
        "minimize sum(exp(A @ x - y)) + logistic(y @ (A @ x))\n",
        30,
    )
    data = drawn(p, 30)
    rounds = RoundArrays.of(p, data.read(0, 30), np.arange(30) + 1)
    f, ends, points = (
        implicit(rounds, p.objective),
        np.array([1, 2, 9, 10, 30]),
        np.random.default_rng(3).normal(size=(5, 6)),
    )
    assert isinstance(f, composite_module.Composite)
    values, slopes = f.jet_upto(points, ends)
    starts, weights = np.array([0, 1, 0, 5, 12]), np.arange(1.0, 6.0)[:, None]
    bends = f.hessian_between(points, weights, starts, ends)
    for b, (start, end) in enumerate(zip(starts, ends)):
        each = f.jet(np.repeat(points[b : b + 1], end, axis=0), np.arange(end))
        np.testing.assert_allclose(values[b], each[0].sum(axis=0), rtol=1e-12)
        np.testing.assert_allclose(slopes[b], each[1].sum(axis=0), rtol=1e-11, atol=1e-12)
        rows = np.arange(start, end)
        own = f.hessian(
            np.repeat(points[b : b + 1], len(rows), axis=0), np.repeat(weights[b : b + 1], len(rows), axis=0), rows
        )
        np.testing.assert_allclose(bends[b], own.sum(axis=0), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("loss", ["sum(exp(A @ x - y))", "sum(exp(0.3 * x)) * y[0]"])
def test_sums_over_first_rounds_at_one_point_are_exact(loss: str) -> None:
    p = problem(f"decision x[6] in ball(2)\nstream A[2, 6] in [-1, 1]\nstream y[2] in [0, 1]\nminimize {loss}\n", 30)
    rounds = RoundArrays.of(p, drawn(p, 30).read(0, 30), np.arange(30) + 1)
    each, ends, weights = implicit(rounds, p.objective), np.array([1, 2, 9, 10, 30]), np.arange(1.0, 6.0)
    several, members = PrefixSums(each, ends, weights), np.array([1, 2, 4])
    x = np.repeat(np.random.default_rng(3).normal(size=(1, 6)), 3, axis=0)
    values, slopes = several.jet(x, members)
    bends = several.hessian(x, np.full((3, 1), 2.0), members)
    for k, member in enumerate(members):
        rows, weight = np.arange(ends[member]), weights[member]
        own = each.jet(x[:1], rows)
        np.testing.assert_allclose(values[k], weight * own[0].sum(axis=0), rtol=1e-12)
        np.testing.assert_allclose(slopes[k], weight * own[1].sum(axis=0), rtol=1e-11)
        bend = each.hessian(np.repeat(x[:1], len(rows), axis=0), np.full((len(rows), 1), 2 * weight), rows)
        np.testing.assert_allclose(bends[k], bend.sum(axis=0), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("size", [5, WIDE, WIDE + 7])
def test_newton_systems_are_solved_whatever_their_size(size: int) -> None:
    rng = np.random.default_rng(size)
    half = rng.normal(size=(3, size, size))
    hessian, diagonal = half @ half.transpose(0, 2, 1), 10.0 ** rng.uniform(-6, 6, (3, size))
    jacobian, ratio, matrix = (
        rng.normal(size=(3, 4, size)),
        10.0 ** rng.uniform(-3, 3, (3, 4)),
        rng.normal(size=(3, 2, size)),
    )
    a, b, c = rng.normal(size=(3, size)), rng.normal(size=(3, 4)), rng.normal(size=(3, 2))
    dx, dlam, dnu = Newton(hessian, diagonal, jacobian, ratio, matrix).solve(a, b, c)
    bend = np.einsum("bij,bj->bi", hessian, dx) + diagonal * dx
    pull = np.einsum("bmn,bm->bn", jacobian, dlam) + np.einsum("bkn,bk->bn", matrix, dnu)
    np.testing.assert_allclose(bend + pull, a, atol=1e-8)
    np.testing.assert_allclose(np.einsum("bmn,bn->bm", jacobian, dx) - ratio * dlam, b, atol=1e-8)
    np.testing.assert_allclose(np.einsum("bkn,bn->bk", matrix, dx), c, atol=1e-8)
