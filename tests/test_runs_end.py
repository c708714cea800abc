"""Limits of wall time of tuning and of comparators: what is done in any case, and what is said to be left out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from driving import situation

from oco.cli import main
from oco.compiler.problem.canonical import canonical
from oco.compiler.theory.theorems import Free
from oco.dsl.load import parse
from oco.evaluation import tuning
from oco.evaluation.comparators.base import ComparatorBudget, ComparatorStatus
from oco.evaluation.comparators.compare import compare
from oco.evaluation.data import Data, load_data

MODEL = """model m
horizon T = 60
decision x[3] in box(0, 1)
stream c[3] ~ uniform(-1, 1)
minimize c @ x
subject to
    total: sum(x) <= 2 each round
"""
FREE = (Free("a", 0.1, 10.0), Free("b", 0.1, 10.0))


class Counted:
    """Plan whose trials fail at once, so that they cost infinity; it counts them by the length of their runs."""

    def __init__(self) -> None:
        self.trials: list[int] = []

    def trial(self, rounds: int, runs: int) -> tuning.Run:
        def run(numbers: Mapping[str, float], data: Data, seed: int) -> tuning.Trace:
            self.trials.append(rounds)
            raise tuning.fail("OCO710", "no result")

        return run


def searched(seconds: float) -> tuple[Counted, tuning.Tuning]:
    plan, data = Counted(), load_data(canonical(parse(MODEL)), None, rounds=60)
    starts = {"paper": {"a": 1.0, "b": 1.0}, "optimal": {"a": 2.0, "b": 1.0}}
    space = {"rule": tuning.SearchSpace(plan, FREE, starts)}
    return plan, tuning.tune(space, data, situation(MODEL), seconds=seconds)


def test_a_search_without_time_tries_the_starts_and_says_what_it_left_out() -> None:
    plan, result = searched(0.0)
    assert {t.name for t in result.tried} == {"paper", "optimal"}
    assert len(plan.trials) == 4, "each start on the searched part and on the part held out"
    assert result.cut > 0 and f"{result.cut} trials were left out" in str(result)


def test_a_search_with_time_leaves_nothing_out() -> None:
    plan, result = searched(math.inf)
    assert result.cut == 0 and "left out" not in str(result)
    assert len(result.tried) >= tuning.CANDIDATES and len(plan.trials) > len(result.tried)


@pytest.mark.parametrize("run, seconds", [(0.1, 5.0), (12.0, 12.0), (1000.0, 30.0)])
def test_comparators_take_about_as_long_as_the_run(run: float, seconds: float) -> None:
    assert ComparatorBudget(memory=7).like(run) == ComparatorBudget(seconds, 7)


def test_a_comparator_that_is_not_wanted_is_not_computed() -> None:
    problem = canonical(parse(MODEL))
    data = load_data(problem, None, rounds=20)
    for kind in ("static", "dynamic"):
        result = compare(problem, data, kind, ComparatorBudget(wanted=False))
        assert result.status is ComparatorStatus.NOT_COMPUTED and "not asked for" in result.words
        assert np.isfinite(compare(problem, data, kind).value)


def test_runs_without_comparators_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.oco").write_text(MODEL)

    def said(kind: str, status: int = 0) -> str:
        assert main(["run", "m.oco", "--rounds", "20", "--comparators", kind]) == status
        result = capsys.readouterr()
        return " ".join((result.out + result.err).split())

    none = said("none")
    assert none.count("regret: not asked for") == 2 and "costs at least" not in none
    assert "certified" in said("exact")
    assert "fast, exact, none" in said("some", 2)
