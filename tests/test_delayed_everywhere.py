"""Delayed feedback in fleets, emitted modules, C files and carried states: the same rounds as learners in turn that know no delay."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from test_delayed import BACKENDS, DELAY, SERVED, TEXT, T, interleaved, plan_of, rounds

import oco
from oco.cli import main

BANDIT = TEXT.replace("feedback full delayed 3", "feedback two_point delayed 2")


@cache
def module_of(text: str) -> ModuleType:
    module = ModuleType("written")
    sys.modules["written"] = module
    exec(compile(plan_of(text).source("numpy"), "written.py", "exec"), module.__dict__)
    return module


def served(seed: int, rounds: int = 20, size: int | None = None) -> list[dict[str, Any]]:
    rng, n = np.random.default_rng(seed), () if size is None else (size,)
    draw = rng.uniform
    return [{"load": draw(1, 9, n), "price": draw(0, 5, (*n, 2)), "need": draw(0, 10, n)} for _ in range(rounds)]


def play(learner: Any, data: list[dict[str, Any]], known: tuple[str, ...], delay: int, seed: int) -> list[Any]:
    """Decisions of rounds whose feedback comes in any order, or never."""
    rng, decided = np.random.default_rng(seed), []
    for t, row in enumerate(data, 1):
        decided.append(learner.decide(**{name: row[name] for name in known}))
        for k in rng.permutation(learner.pending):
            if k == t - delay or rng.random() < 0.3:
                given = {name: value for name, value in data[k - 1].items() if name not in known}
                learner.skip(round=int(k)) if k % 5 == 0 else learner.observe(round=int(k), **given)
    return decided


@pytest.mark.parametrize("backend", BACKENDS)
def test_whole_runs_are_those_of_learners_in_turn(backend: str) -> None:
    a = rounds(21)
    for options in ({}, {"keep": 7}):
        trace = plan_of(TEXT).run({"a": a}, backend=backend, **options)
        expected = interleaved(TEXT, a)[:: options.get("keep", 1)]
        np.testing.assert_allclose(trace.decisions, expected, atol=1e-12)
    by_round = plan_of(TEXT).run(iter([{"a": row} for row in a]), backend=backend)
    whole = plan_of(TEXT).run({"a": a}, backend=backend)
    assert np.array_equal(by_round.decisions, whole.decisions) and by_round.loss.sum() == trace.loss.sum()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("text", [TEXT, SERVED], ids=["squares", "served"])
def test_fleets_are_learners_side_by_side(text: str, backend: str) -> None:
    size, delay, known = 3, (DELAY if text is TEXT else 2), () if text is TEXT else ("load",)
    a = np.random.default_rng(22).uniform(-1, 1, (20, size, 2))
    data = served(22, size=size) if known else [{"a": row} for row in a]
    fleet = plan_of(text).fleet(size, backend=backend)
    together = play(fleet, data, known, delay, 5)
    for k in range(size):
        alone = plan_of(text).learner(backend=backend)
        own = [{name: value[k] for name, value in row.items()} for row in data]
        np.testing.assert_allclose(play(alone, own, known, delay, 5), [x[k] for x in together], atol=1e-12)
    with pytest.raises(oco.OcoError, match="is over") as caught:
        fleet.observe(round=1, **{n: v for n, v in data[0].items() if n not in known})
    assert caught.value.code == "OCO869" and "DelayedFleet" in repr(fleet)


def test_fleets_have_second_points_conditions_and_rounds_left_out() -> None:
    plan = oco.compile(oco.parse(BANDIT))
    for backend in BACKENDS:
        fleet, alone = plan.fleet(2, seeds=[3, 4], backend=backend), plan.learner(seed=4, backend=backend)
        for _ in range(2):
            assert np.array_equal(fleet.decide()[1], alone.decide())
            assert np.array_equal(fleet.second_point()[1], alone.second_point())
    short = plan_of(TEXT.replace("feedback full delayed 3\n", ""))
    for backend in BACKENDS:
        fleet = short.fleet(2, backend=backend)
        x = fleet.decide()
        fleet.skip()
        assert np.array_equal(fleet.decide(), x)
        with pytest.raises(oco.OcoError) as caught:
            fleet.second_point()
        assert caught.value.code == "OCO841" and len(fleet.conditions) == 2


@pytest.mark.parametrize("text", [TEXT, SERVED], ids=["squares", "served"])
def test_a_written_module_takes_turns(text: str, tmp_path: Path) -> None:
    delay, known = (DELAY, ()) if text is TEXT else (2, ("load",))
    data = served(23) if known else [{"a": row} for row in rounds(23)]
    module = module_of(text)
    learner, other = module.Learner(), plan_of(text).learner(backend="numpy")
    half = len(data) // 2
    assert np.array_equal(play(learner, data[:half], known, delay, 6), play(other, data[:half], known, delay, 6))
    assert learner.pending == other.pending and learner.round == other.round == half + 1
    context = {name: data[half][name] for name in known}
    assert np.array_equal(learner.decide(**context), other.decide(**context))
    learner.save(str(tmp_path / "state"))
    learner = module.Learner.load(str(tmp_path / "state"))
    assert learner.pending == other.pending
    given = {name: value for name, value in data[learner.pending[0] - 1].items() if name not in known}
    assert learner.observe(**given).round == other.observe(**given).round
    for call, words in (
        (lambda: learner.observe(round=1, **given), "round 1 is over"),
        (lambda: learner.observe(round=99, **given), "round 99 is not decided yet"),
        (lambda: [learner.decide(**{n: data[0][n] for n in known}) for _ in range(9)], "needs the feedback of round"),
        (lambda: learner.skip(round="x"), "integer from 1"),
    ):
        with pytest.raises(module.RoundError, match=words):
            call()
    with pytest.raises(module.StateError):
        module.Learner.from_state(learner.state() | {"pending": [99]})


def test_a_written_module_plays_files_with_the_delay(tmp_path: Path) -> None:
    a = rounds(24)
    np.savetxt(tmp_path / "data.csv", a, delimiter=",", header="a[0],a[1]", comments="", fmt="%.17g")
    (tmp_path / "late.py").write_text(plan_of(TEXT).source("numpy"))
    command = [sys.executable, str(tmp_path / "late.py"), str(tmp_path / "data.csv")]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.startswith(f"late: {T} rounds, loss {np.sum((interleaved(TEXT, a) - a) ** 2):.6g} ")


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_state_with_open_rounds_goes_to_a_plan_of_the_same_rule(backend: str, tmp_path: Path) -> None:
    text = TEXT.replace("feedback", "using ogd with eta = 0.1\nfeedback")
    before, after = (oco.compile(oco.parse(text.replace("T = 41", f"T = {t}")), settings="paper") for t in (T, 80))
    a = rounds(25)
    learner = before.learner(backend=backend)
    data = [{"a": row} for row in a]
    play(learner, data[:9], (), DELAY, 7)
    learner.decide()
    journaled = oco.open(before, tmp_path, backend=backend)
    play(journaled, data[:9], (), DELAY, 7)
    journaled.decide()
    journaled.close()
    for source in (learner, learner.state(), tmp_path):
        result = oco.migrate(source, after)
        assert result.whole and result.played == 10 and result.learner.pending == learner.pending != ()
        again = oco.restore(json.loads(json.dumps(result.learner.state())))
        other = oco.restore(learner.state())
        for k in learner.pending:
            again.observe(round=k, a=a[k - 1])
            other.observe(round=k, a=a[k - 1])
        assert np.array_equal([again.decide() for _ in range(3)], [other.decide() for _ in range(3)])


def test_another_rule_begins_where_each_learner_is_and_with_no_round_open() -> None:
    learner, a = plan_of(TEXT).learner(backend="numpy"), rounds(26)
    play(learner, [{"a": row} for row in a[:12]], (), DELAY, 8)
    short = oco.compile(oco.parse(TEXT.replace("delayed 3", "delayed 1").replace("T = 41", "T = 30")))
    with pytest.raises(oco.OcoError, match="are open") as caught:
        oco.migrate(learner, short)
    assert caught.value.code == "OCO550" and "skip" in caught.value.hint
    while learner.pending:
        learner.observe(a=a[learner.pending[0] - 1])
    reached = [one.decide() for one in learner.learners]
    for plan in (short, plan_of(TEXT.replace("feedback full delayed 3\n", ""))):
        result = oco.migrate(learner, plan)
        assert not result.whole and result.learner.round == 1 and result.played == 12
        assert np.array_equal(result.learner.decide(), reached[0])
    assert np.array_equal([oco.migrate(learner, short).learner.learners[k].decide() for k in (0, 1)], reached[:2])


def test_what_a_run_suggests_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, undrawn: None) -> None:
    monkeypatch.chdir(tmp_path)
    Path("late.oco").write_text(TEXT)
    np.savetxt("late.csv", rounds(27), delimiter=",", header="a[0],a[1]", comments="")
    assert main(["run", "late.oco", "--data", "late.csv", "--comparators", "none"]) == 0
    suggested = [line for line in capsys.readouterr().out.replace("next", "    ").splitlines() if " oco " in line]
    assert len(suggested) >= 2
    for line in suggested:
        assert main(shlex.split(line)[1:]) == 0, line
    assert Path("late_numpy/late_learner.py").exists()
