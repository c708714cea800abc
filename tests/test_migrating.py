"""States and journals carried to plans whose horizon, settings or bounds changed, and what is kept of the guarantee."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oco
from oco.cli import main
from oco.dsl.diagnostics import OcoError

MODEL = """
model desk
horizon T = {horizon}
decision x[3] in box(0, {top})
stream c[3] in [-{reach}, {reach}]
minimize c @ x + sum_squares(x)
{using}
"""
FREE = "using ogd with eta = 0.1"
FIXED = "subject to\n    side: sum(x) <= 2 each round\nusing coldq"


@cache
def plan_of(using: str, horizon: int = 40, top: float = 1, reach: float = 1) -> Any:
    return oco.compile(oco.parse(MODEL.format(horizon=horizon, top=top, reach=reach, using=using)), settings="paper")


def data(rounds: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(1).uniform(-1, 1, (rounds, 3))


def played(learner: Any, rows: Any) -> list[np.ndarray[Any, Any]]:
    decided = []
    for row in rows:
        decided.append(learner.decide())
        learner.observe(c=row)
    return decided


def test_the_same_rule_takes_the_whole_state() -> None:
    """Wider bounds and a longer horizon change nothing of the rule: the run goes on, and is all of the new plan."""
    rows = data(30)
    before = plan_of(FREE).learner(backend="numpy")
    played(before, rows[:10])
    result = oco.migrate(before.state(), plan_of(FREE, horizon=99, reach=5))
    assert result.whole and result.played == 10 and result.learner.round == 11
    assert result.kept.endswith("covers all rounds, those that were played included")
    assert result.learner.contract.horizon == 99 and str(result) == result.learner.warnings[-1]
    np.testing.assert_array_equal(played(result.learner, rows[10:]), played(before, rows[10:]))
    narrow = oco.migrate(before, plan_of(FREE, reach=0.5))
    assert narrow.whole and "if those played lay within its bounds of c, which are narrower" in narrow.kept


@pytest.mark.parametrize("changed", [{"horizon": 80}, {"top": 0.7}, {"using": FIXED + " with alpha = 3"}])
def test_another_rule_begins_at_the_decision_reached(changed: dict[str, Any]) -> None:
    before, plan = plan_of(FIXED).learner(backend="numpy"), plan_of(**{"using": FIXED, **changed})
    played(before, data(15))
    reached = before.decide()
    result = oco.migrate(before, plan)
    top = changed.get("top", 1)
    np.testing.assert_allclose(result.learner.decide(), np.minimum(reached, top), rtol=0, atol=1e-12)
    assert not result.whole and (result.played, result.learner.round) == (15, 1)
    again = oco.restore(result.learner.state())
    np.testing.assert_array_equal(played(again, data(9)), played(result.learner, data(9)))


def test_the_sum_of_both_bounds_holds() -> None:
    """Over the rounds of both plans, against the best fixed decision of all of them, which a closed form gives."""
    before, plan = plan_of(FIXED, horizon=30).learner(backend="numpy"), plan_of(FIXED, horizon=60)
    rows = np.sign(data(85))
    lost = sum(before.observe(c=row).loss for row in rows[:25] if before.decide() is not None)
    result = oco.migrate(before, plan)
    lost += sum(result.learner.observe(c=row).loss for row in rows[25:] if result.learner.decide() is not None)
    slopes = rows.sum(axis=0)
    best = np.clip(-slopes / (2 * len(rows)), 0, 1)
    assert best.sum() <= 2  # it is within the constraint, so that it is the best fixed decision
    first, second = map(float, re.search(r"is at most ([\d.e+]+) \+ ([\d.e+]+), the sum", result.kept).groups())  # type: ignore[union-attr]
    old = plan_of(FIXED, horizon=30).guarantee.regret_bound.number(25, 30)
    assert (first, second) == pytest.approx((old, plan.guarantee.regret()), rel=1e-5)
    assert lost - (slopes @ best + len(rows) * best @ best) <= first + second


def test_a_learner_past_its_horizon_is_carried_with_the_bounds_of_its_epochs() -> None:
    before = plan_of(FIXED, horizon=4).learner(backend="numpy")
    played(before, data(9))
    result = oco.migrate(before.state(), plan_of(FIXED, horizon=50))
    bound = plan_of(FIXED, horizon=4).continued().guarantee.regret_bound.number(9, 9)
    assert result.played == 9 and f"at most {bound:.6g} +" in result.kept


BATTERY = """
model battery
horizon T = {horizon}
decision charge in box(-5, 5)
stream price in [0, 10]
state stored = stored + charge in [0, 40] start 20
minimize price * charge + 0.1 * square(charge)
subject to
    room: stored + charge <= 40 each round
    kept: stored + charge >= 0 each round
"""


def test_values_that_a_round_leaves_to_the_next_are_carried() -> None:
    plans = [oco.compile(oco.parse(BATTERY.format(horizon=T)), settings="paper") for T in (30, 70)]
    before = plans[0].learner(backend="numpy")
    for price in (1.0, 2.0, 3.0):
        before.decide()
        before.observe(price=price)
    result = oco.migrate(before, plans[1])
    own = dict(plans[1].program.previous).values()
    assert list(own) and all(np.array_equal(result.learner.values[name], before.values[name]) for name in own)


def test_journals_are_carried_and_stay_as_they_are(tmp_path: Path) -> None:
    plan, rows = plan_of(FREE), data(20)
    with oco.open(plan, tmp_path / "journal", snapshot_every=5) as learner:
        played(learner, rows[:13])
        expected = learner.decide()
    result = oco.migrate(tmp_path / "journal", plan_of(FREE, horizon=77))
    assert result.whole and result.played == 13
    np.testing.assert_array_equal(result.learner.decide(), expected)
    with oco.open(plan, tmp_path / "journal") as learner:
        assert learner.round == 14


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("decision x[3]", "decision x[4]", r"the decision x is of shape \(3,\) in the state, and of shape \(4,\)"),
        ("minimize c @ x", "stream d in [0, 1]\nminimize d + c @ x", "the input d is absent in the state"),
    ],
)
def test_other_decisions_or_streams_are_refused(old: str, new: str, words: str) -> None:
    before = plan_of(FREE).learner(backend="numpy")
    text = (
        MODEL.format(horizon=40, top=1, reach=1, using=FREE)
        .replace(old, new)
        .replace("c[3]", "c[4]" if "4" in new else "c[3]")
    )
    with pytest.raises(OcoError, match=words) as caught:
        oco.migrate(before, oco.compile(oco.parse(text), settings="paper"))
    assert caught.value.code == "OCO862"


def test_the_command_writes_the_new_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    learner = plan_of(FREE).learner(backend="numpy")
    played(learner, data(7))
    learner.save("old.state")
    Path("desk.oco").write_text(MODEL.format(horizon=60, top=1, reach=1, using=FREE))
    assert main(["migrate", "old.state", "desk.oco", "-o", "new.state", "--settings", "paper"]) == 0
    assert "covers all rounds" in " ".join(capsys.readouterr().out.split())
    assert oco.restore("new.state").round == 8
    assert main(["migrate", "old.state", "desk.oco", "-o", "old.state", "--force"]) == 1
    capsys.readouterr()
    assert main(["migrate", "old.state", "desk.oco", "-o", "new.state", "--force", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["played"], shown["file"]) == (7, "new.state")
