"""Stores whose feedback comes late: what is left in them is valued for the rounds that are decided after it."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from test_c99 import STRICT, needs_compiler
from test_c_bindings import binding
from thorough import thorough

import oco

DELAY, ROUNDS = 2, 360
BATTERY = f"""
model battery
horizon T = {ROUNDS}
decision charge in box(-10, 10)
stream price in [0, 100]
state level = level + charge in [0, 60] start 30
minimize price * charge
feedback full delayed {DELAY}
"""


SHOP = f"""
model shop
horizon T = {ROUNDS}
decision order in box(0, 60)
context fair in [0, 20]
stream sales in [0, 50]
state stock = 0.9 * stock + order - sales - fair in [0, 90] start 40
minimize 2 * order + 0.1 * pos(0.9 * stock + order - sales - fair) + 8 * pos(sales + fair - 0.9 * stock - order)
feedback full delayed {DELAY}
"""
DESCENDED = f"{SHOP}using ogd\n"
"""The same with a rule that is a thirtieth as long: what is expected of stores, and which orders are refused, hangs on no rule."""
CASES = pytest.mark.parametrize("text", [BATTERY, DESCENDED, thorough(SHOP)], ids=["battery", "descended shop", "shop"])


@cache
def plan_of(text: str) -> Any:
    return oco.compile(oco.parse(text))


def prices(noise: float = 0.0) -> np.ndarray:
    hours = np.arange(ROUNDS)
    return np.clip(
        50 + 30 * np.sin(2 * np.pi * hours / 24) + noise * np.random.default_rng(1).normal(size=ROUNDS), 0, 100
    )


def sold(rounds: int, size: tuple[int, ...] = ()) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(2)
    return {
        "sales": np.clip(rng.normal(20, 9, (rounds, *size)), 0, 50),
        "fair": rng.uniform(0, 9, (rounds, *size)),
    }


def data_of(text: str, rounds: int) -> dict[str, np.ndarray]:
    return {"price": prices(8.0)[:rounds]} if text == BATTERY else sold(rounds)


def played(
    learner: Any, data: dict[str, np.ndarray], path: Path | None = None, saved_at: int = 0, plan: Any = None
) -> list[Any]:
    """Decisions with feedback at random times, in order; a learner that is saved in between, or has a journal of a plan, goes on."""
    rng, decided, known = np.random.default_rng(3), [], {"fair"} & data.keys()
    for t in range(1, len(next(iter(data.values()))) + 1):
        decided.append(np.copy(learner.decide(**{n: data[n][t - 1] for n in known})))
        while learner.pending and (learner.pending[0] == t - DELAY or rng.random() < 0.3):
            k = learner.pending[0]
            learner.observe(round=k, **{n: values[k - 1] for n, values in data.items() if n not in known})
        if t == saved_at and plan is not None:
            learner.close()
            learner = oco.open(plan, path, backend="numpy")
        elif t == saved_at:
            learner.save(path)
            learner = oco.restore(path)
    return decided


def test_late_prices_earn_what_a_linear_program_does() -> None:
    price, last = prices(), ROUNDS // 2
    trace = plan_of(BATTERY).run({"price": price}, backend="c")
    x, level = np.ravel(trace.decisions), np.ravel(trace.data.array("level"))
    np.testing.assert_allclose(level, 30 + np.concatenate([[0.0], np.cumsum(x)[:-1]]), atol=1e-9)
    charge = cp.Variable(ROUNDS - last)
    inside = level[last] + cp.cumsum(charge)
    best = cp.Problem(
        cp.Minimize(price[last:] @ charge),
        [charge >= -10, charge <= 10, inside >= 0, inside <= 60, inside[-1] == level[-1] + x[-1]],
    ).solve()
    assert best - 1e-3 <= price[last:] @ x[last:] <= 0.95 * best < 0


@CASES
def test_backends_agree_on_late_stores_and_saved_states_go_on(text: str, tmp_path: Path) -> None:
    data, plan = data_of(text, 16), plan_of(text)
    numpy, c = (played(plan.learner(backend=b), data) for b in ("numpy", "c"))
    np.testing.assert_allclose(c, numpy, atol=1e-8)
    assert np.array_equal(numpy, played(plan.learner(backend="numpy"), data, tmp_path / "state.json", 9))
    assert np.array_equal(numpy, played(oco.open(plan, tmp_path, backend="numpy"), data, tmp_path, 9, plan))
    module = ModuleType("written")
    sys.modules["written"] = module
    exec(compile(plan.source("numpy"), "written.py", "exec"), module.__dict__)
    np.testing.assert_allclose(played(module.Learner(), data), numpy, atol=1e-12)


@CASES
@pytest.mark.parametrize("backend", [thorough("numpy"), "c"])
def test_fleets_of_late_stores_are_learners_side_by_side(text: str, backend: str) -> None:
    data = data_of(text, 20)
    together = played(plan_of(text).fleet(2, backend=backend), {n: np.stack([v, v[::-1]], 1) for n, v in data.items()})
    for k in range(2):
        own = {n: v[:: -1 if k else 1] for n, v in data.items()}
        alone = played(plan_of(text).learner(backend=backend), own)
        np.testing.assert_allclose([x[k] for x in together], alone, atol=1e-8)


def test_levels_are_expected_from_the_last_ones_that_are_known() -> None:
    data, learner, rng = sold(60), plan_of(DESCENDED).learner(backend="numpy"), np.random.default_rng(5)
    level, usual, over, decided, made = [40.0], 25.0, 0, list[float](), list[tuple[float, int, float]]()
    for t in range(60):
        decided.append(float(learner.decide(fair=data["fair"][t])))
        expected = level[over]
        for k in range(over, t):
            expected = np.clip(0.9 * expected + decided[k] - usual - data["fair"][k], 0, 90)
        made.append((expected, over, usual))
        own = learner.learners[t % (DELAY + 1)]
        assert own.value("kept_expected_stock") == pytest.approx(expected, abs=1e-9)
        while over <= t and (over == t - DELAY or rng.random() < 0.3):
            left = 0.9 * level[over] + decided[over] - data["sales"][over] - data["fair"][over]
            level.append(float(np.clip(left, 0, 90)))
            feedback = learner.observe(sales=data["sales"][over])
            paid = 2 * decided[over] + 0.1 * max(left, 0) + 8 * max(-left, 0)
            assert feedback.loss == pytest.approx(paid) and feedback.values["stock"] == pytest.approx(level[over])
            over += 1
            usual += max(0.08, 1 / over) * (data["sales"][over - 1] - usual)
    for t, (expected, known, mean) in enumerate(made[: len(level)]):
        assert abs(expected - level[t]) <= abs(data["sales"][known:t] - mean).sum() + 1e-9


def test_late_sales_cost_little_more_than_the_best_level_up_to_which_is_ordered() -> None:
    text, sales = (
        SHOP.replace("context fair in [0, 20]\n", "").replace(" - fair", "").replace(" + fair", ""),
        sold(ROUNDS),
    )
    trace = plan_of(text).run({"sales": sales["sales"]}, backend="c")

    # Rules that know the mean of the sales, and order up to a level of what is expected.
    up_to = np.arange(20.0, 70.0, 2.0)
    level, decided, paid = [np.full(len(up_to), 40.0)], list[np.ndarray](), 0.0
    for t, now in enumerate(sales["sales"]):
        expected = level[max(t - DELAY, 0)]
        for k in range(max(t - DELAY, 0), t):
            expected = np.clip(0.9 * expected + decided[k] - 20, 0, 90)
        decided.append(np.clip(up_to - 0.9 * expected, 0, 60))
        left = 0.9 * level[t] + decided[t] - now
        paid = paid + 2 * decided[t] + 0.1 * np.maximum(left, 0) + 8 * np.maximum(-left, 0)
        level.append(np.clip(left, 0, 90))
    assert trace.loss.sum() <= 1.1 * np.min(paid)


def test_it_is_said_on_what_decisions_rest() -> None:
    said = [any("what is expected of stock" in r for r in plan_of(text).canonical.remarks) for text in (BATTERY, SHOP)]
    assert said == [False, True]


def test_rounds_on_which_levels_hang_come_in_order_and_are_not_left_out() -> None:
    data = sold(8)
    for backend in ("numpy", "c"):
        learner = plan_of(DESCENDED).learner(backend=backend)
        for t in range(2):
            learner.decide(fair=data["fair"][t])
        before = learner.state()
        for wrong in (partial(learner.observe, round=2, sales=3.0), partial(learner.skip, round=1)):
            with pytest.raises(oco.OcoError, match="hang on the feedback of round 1") as caught:
                wrong()
            assert caught.value.code == "OCO869" and learner.state() == before
        with pytest.raises(oco.OcoError):
            learner.observe(round=1, sales=-3.0)
        assert learner.state() == before


@needs_compiler
def test_written_c_expects_the_same_levels_and_refuses_other_orders(tmp_path: Path) -> None:
    data, plan = sold(40), plan_of(DESCENDED)
    plan.write(tmp_path, backend="c")
    (tmp_path / "desk.py").write_text((tmp_path / "shop.py").read_text())  # the name that `binding` reads
    command = ["cc", *STRICT, "-O1", "-shared", "-fPIC", "shop.c", "-o", "libshop.so", "-lm"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    module, own = binding(tmp_path), plan.learner(backend="c")
    ring, two = module.Learner(), 2
    for t in range(40):
        now = {"fair": float(data["fair"][t])}
        order = float(own.decide(**now))
        assert float(ring.decide(**now)["order"]) == pytest.approx(order, abs=1e-12)
        if t == two - 1:
            for wrong in (partial(ring.observe, round=2, sales=3.0, **now), partial(ring.skip, 1)):
                with pytest.raises(module.LearnerError) as caught:
                    wrong()
                code = re.search(r"shop_round_too_early = (-\d+)", (tmp_path / "shop.h").read_text())
                assert code is not None and caught.value.code == int(code.group(1))
        if t >= DELAY:
            late = {name: float(values[t - DELAY]) for name, values in data.items()}
            ring.observe(round=t - DELAY + 1, **late)
            own.observe(sales=late["sales"])


def test_a_share_of_the_rounds_keeps_its_promise_beside_a_late_store() -> None:
    kept = "minimize 2 * order\nsubject to\n    kept: 0.9 * stock + order - sales >= 5  in 90% of rounds\n"
    text = re.sub("minimize.*\n", kept, SHOP.replace(" - fair in", " in").replace("context fair in [0, 20]\n", ""))
    sales = np.random.default_rng(4).permutation(sold(ROUNDS)["sales"])
    trace = plan_of(text).run({"sales": sales}, backend="c")
    stock, order = np.ravel(trace.data.array("stock")), np.ravel(trace.decisions)
    left = 0.9 * stock + order - sales
    np.testing.assert_allclose(stock[1:], np.clip(left[:-1], 0, 90), atol=1e-9)
    broken = np.cumsum(left < 5 - 1e-9)
    assert broken[-1] <= 0.1 * ROUNDS + (DELAY + 1) * 0.9 and stock.mean() < 45
    assert trace.violation()[-1] == pytest.approx(np.maximum(5 - left, 0).sum())
