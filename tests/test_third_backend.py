"""A backend that is added by one folder and one row runs everything, under its own name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import oco
from oco.backends import BACKENDS
from oco.backends.capabilities import Registered, Speed
from oco.backends.choose import choose_backend
from oco.backends.registry import backend, usable
from oco.cli import main

PLACE = "toy_backend.backend:ToyBackend"
MODEL = """model walk
horizon T = 30
decision x[3] in box(-1, 1)
stream a[3] ~ uniform(-1, 1)
minimize sum_squares(x - a)
subject to
    cap: sum(x) <= 0.5 each round
"""


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The row that registers it."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    monkeypatch.setitem(BACKENDS, "toy", Registered(PLACE, "Toy"))


@pytest.fixture
def plan() -> oco.Plan:
    return oco.compile(oco.parse(MODEL), "coldq", "paper", backend="toy")


def test_every_backend_has_the_name_of_its_row() -> None:
    assert {name: backend(name).name for name in BACKENDS} == {name: name for name in BACKENDS}


def test_decisions_are_those_of_the_meaning_of_programs(plan: oco.Plan) -> None:
    ours, theirs = plan.run(seed=3), plan.run(seed=3, backend="numpy")
    np.testing.assert_allclose(ours.decisions, theirs.decisions, rtol=0, atol=1e-9)
    np.testing.assert_allclose(ours.loss, theirs.loss, rtol=0, atol=1e-9)
    assert (plan.replay(ours).decisions == ours.decisions).all()


def test_learners_fleets_traces_and_states_show_its_name(plan: oco.Plan, tmp_path: Path) -> None:
    learner, fleet, trace = plan.learner(), plan.fleet(2), plan.run()
    assert repr(learner) == "Learner(walk, backend='toy', round=1)"
    assert repr(fleet) == "Fleet(walk, 2 learners, backend='toy', round=1)"
    assert trace.backend == "toy" and "backend='toy'" in repr(trace)
    trace.save(tmp_path / "trace.nc")
    assert oco.load_trace(tmp_path / "trace.nc").backend == "toy"
    for _ in range(3):
        learner.decide()
        learner.observe(a=np.full(3, 0.25))
    assert learner.state()["backend"] == "toy"
    learner.save(tmp_path / "state")
    again = oco.restore(tmp_path / "state")
    assert again.compiled.backend == "toy" and again.state() == learner.state()
    assert (again.decide() == learner.decide()).all()


def test_a_fleet_decides_as_its_learners(plan: oco.Plan) -> None:
    fleet, learners = plan.fleet(2), [plan.learner(), plan.learner()]
    for k in range(4):
        data = np.array([[0.5, -0.1 * k, 0.3], [-0.5, 0.2, 0.1 * k]])
        assert (fleet.decide() == np.stack([one.decide() for one in learners])).all()
        fleet.observe(a=data)
        for one, row in zip(learners, data):
            one.decide()
            one.observe(a=row)


def test_a_state_of_a_backend_that_is_not_here_needs_no_name(plan: oco.Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    state = plan.learner().state()
    monkeypatch.delitem(BACKENDS, "toy")
    assert usable("toy") is None and usable(["toy"]) is None and usable("numpy") == "numpy"
    assert oco.restore(state).compiled.backend in BACKENDS


def test_a_journal_is_of_its_backend(plan: oco.Plan, tmp_path: Path) -> None:
    with oco.open(plan, tmp_path / "journal") as learner:
        learner.decide()
        learner.observe(a=np.zeros(3))
    with oco.open(oco.compile(oco.parse(MODEL), "coldq", "paper"), tmp_path / "journal") as learner:
        assert learner.compiled.backend == "toy" and learner.round == 2
    with pytest.raises(oco.OcoError, match="begun with the backend 'toy', this is 'numpy'"):
        oco.open(plan, tmp_path / "journal", backend="numpy")


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "walk.oco").write_text(MODEL)
    yield tmp_path


def test_the_command_line_speaks_of_it(there: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "walk.oco", "--backend", "toy", "--algorithm", "coldq", "--settings", "paper"]) == 0
    said = capsys.readouterr().out
    assert "walk.ir" in said and "equations in plain text. Read them: less walk.ir" in said and "NumPy" not in said
    assert (there / "walk.ir").read_text() == oco.compile(oco.parse(MODEL), "coldq", "paper", backend="toy").source()
    played = ["run", "walk.oco", "--algorithms", "coldq", "--settings", "paper", "--rounds", "5", "--baselines", "none"]
    assert main([*played, "--journal", "kept", "--backend", "toy"]) == 0
    assert main([*played, "--journal", "kept", "--backend", "numpy"]) == 1
    assert "begun with the backend 'toy'" in capsys.readouterr().err
    assert main(["compile", "walk.oco", "--backend", "cobol"]) == 1
    assert '"toy"' in capsys.readouterr().err


def test_a_backend_that_writes_no_files_says_so(
    there: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(BACKENDS, "toy", Registered(PLACE, "Toy", standalone=False))
    assert main(["compile", "walk.oco", "--backend", "toy", "--json"]) == 1
    (error,) = json.loads(capsys.readouterr().out)["diagnostics"]
    assert error["code"] == "OCO734" and '"numpy", "c"' in error["hint"] and not (there / "walk.ir").exists()


def test_one_without_a_speed_is_never_chosen_and_a_quick_one_is(
    plan: oco.Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert {choose_backend(plan.program, rounds).name for rounds in (None, 1, 10**5, 10**7)} <= {"numpy", "c"}
    monkeypatch.setitem(BACKENDS, "toy", Registered(PLACE, "Toy", Speed(a_round=1e-9)))
    few, many = choose_backend(plan.program, None), choose_backend(plan.program, 10)
    assert few.name == "numpy" and many.name == "toy"
    assert many.why.startswith("it runs in Toy: 10 rounds would take NumPy about ") and "a Toy compiler" in many.why
    monkeypatch.setitem(BACKENDS, "toy", Registered(PLACE, "Toy", Speed(operation=1.0)))
    slow = choose_backend(plan.program, 10).why
    assert slow.startswith("it runs in NumPy: 10 rounds") and "C would save" in slow
