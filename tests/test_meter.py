"""Work that is counted: refused alike on every machine, whoever catches errors on the way, and never outside a check or a compile."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

import oco
from oco.cli import main
from oco.dsl.diagnostics import OcoError
from oco.dsl.meter import MOST, charge, metered
from oco.dsl.source import Source, Span

EXAMPLES = Path(__file__).parent.parent / "examples"
PLACE = Span(Source("m.oco", "model m"), 0, 5)


def test_steps_are_counted_and_refused_beyond_the_limit() -> None:
    charge(1e30)  # nothing counts here
    with metered(most=10) as meter:
        charge(4)
        charge(6)
    assert meter.taken == 10
    with pytest.raises(OcoError) as caught, metered(PLACE, most=10):
        charge(11)
    (said,) = caught.value.diagnostics
    assert (said.code, said.span) == ("OCO132", PLACE)
    assert said.hint


def test_within_a_meter_that_runs_there_is_one_count() -> None:
    with pytest.raises(OcoError), metered(most=10), metered(most=100):
        charge(11)
    with metered(most=100) as outer, metered(most=1):
        charge(11)
    assert outer.taken == 11


def test_whoever_catches_the_error_changes_nothing() -> None:
    with pytest.raises(OcoError, match="OCO132"), metered(most=10), contextlib.suppress(OcoError):
        charge(11)


def test_a_search_that_gave_up_for_lack_of_steps_is_no_other_error() -> None:
    with pytest.raises(OcoError, match="OCO132"), metered(most=10):
        try:
            charge(11)
        except OcoError as error:
            raise ValueError("no algorithm applies") from error


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.oco")), ids=lambda p: p.stem)
def test_examples_take_far_less_and_always_the_same(path: Path) -> None:
    if path.stem == "datacenter":
        pytest.skip("its params have no values")
    taken = []
    for _ in range(2):
        with metered(most=MOST) as meter:
            oco.check(oco.load(path))
        taken.append(meter.taken)
    assert 0 < taken[0] == taken[1] < MOST / 10


def test_an_effort_allows_more_and_less() -> None:
    model = oco.load(EXAMPLES / "job_scheduling.oco")
    for stage in (oco.check, oco.compile):
        with oco.effort(1e-4), pytest.raises(OcoError) as caught:
            stage(model)
        (said,) = caught.value.diagnostics
        assert said.code == "OCO132" and said.span == model.span and "--effort" in said.hint
        stage(model)
    terms = " + ".join(f"norm2(x - {k})" for k in range(400))
    text = f"model m\nhorizon T = 100\ndecision x[3] in box(0, 1)\nstream c in [0, 1]\nminimize c * ({terms})\n"
    with pytest.raises(OcoError, match="OCO132"):
        oco.check(oco.parse(text))
    with oco.effort(10):
        assert oco.check(oco.parse(text))["loss.convex"].value


@pytest.mark.parametrize("times", [0, -1, float("nan"), float("inf"), True, "4", None])
def test_an_effort_is_a_positive_number(times: object) -> None:
    with pytest.raises(OcoError, match="OCO526"), oco.effort(times):  # type: ignore[arg-type]
        pass


def test_the_command_takes_an_effort(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(EXAMPLES / "job_scheduling.oco")
    assert main(["--effort", "0.0001", "check", path]) == 1
    assert "OCO132" in capsys.readouterr().err
    assert main(["--effort", "2", "check", path]) == 0
    assert main(["--effort", "0", "check", path]) == 1
    assert "OCO526" in capsys.readouterr().err
