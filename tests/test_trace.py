"""Runs and their traces: what is recorded, how it is measured, and what a file keeps of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oco
from oco.cli import main
from oco.compiler.selection.plan import compile_plan
from oco.dsl.diagnostics import OcoError
from oco.dsl.load import load, parse
from oco.dsl.model import Model
from oco.evaluation import measures
from oco.evaluation.comparators import ComparatorStatus
from oco.evaluation.load import load_trace
from oco.evaluation.replay import difference
from oco.evaluation.report.trace import Trace
from oco.evaluation.storage import manifest
from oco.evaluation.summary import summarize
from oco.plan import Plan

ROOT = Path(__file__).parent.parent
TEXT = """model demo
horizon T = 40
decision x[3] in box(0, 2)
stream a[3] in [-1, 3]
stream b ~ uniform(1, 2)
minimize sum_squares(x - a)
subject to
    limit: sum(x) <= b    each round
"""


def plan_of(model: Model) -> Plan:
    return Plan.of(compile_plan(model))


@pytest.fixture(scope="module")
def plan() -> Plan:
    return Plan.of(compile_plan(parse(TEXT), "coldq"))


def targets(rounds: int = 40) -> np.ndarray:
    return np.random.default_rng(0).uniform(-1, 3, (rounds, 3))


@pytest.fixture(scope="module")
def trace(plan: Plan) -> Trace:
    return plan.run({"a": targets()}, seed=3)


def test_the_record_is_what_the_learner_did(plan: Plan, trace: Trace) -> None:
    learner, data = plan.learner(), trace.data
    for t in range(40):
        x = learner.decide()
        np.testing.assert_array_equal(trace.decisions[t], x)
        a, b = data.array("a")[t], data.array("b")[t]
        learner.observe(a=a, b=b)
        assert trace.loss[t] == pytest.approx(((x - a) ** 2).sum(), rel=1e-12)
        assert trace.constraints[t, 0] == pytest.approx(x.sum() - b, rel=1e-12, abs=1e-12)
        np.testing.assert_array_equal(trace.duals[t], np.ravel(learner.values["Q"]))
    assert trace.rounds == 40 and trace.labels == ("limit",) and not trace.warnings
    np.testing.assert_array_equal(trace.kept, np.arange(1, 41))


def test_regret_is_against_the_comparators_losses(trace: Trace) -> None:
    a = trace.data.array("a")
    static = trace.comparator("static")
    np.testing.assert_allclose(static.losses, ((static.decision["x"] - a) ** 2).sum(axis=1))
    np.testing.assert_allclose(trace.regret("static"), np.cumsum(trace.loss - static.losses))
    dynamic = trace.comparator("dynamic")
    np.testing.assert_allclose(trace.regret("dynamic")[-1], trace.loss.sum() - dynamic.value)
    assert dynamic.value <= static.value
    assert trace.comparator("static") is static
    assert static.status is ComparatorStatus.CERTIFIED


def test_regret_against_the_best_of_the_rounds_so_far(trace: Trace) -> None:
    found = trace.regret("static", prefix=True)
    assert found[-1] == pytest.approx(trace.regret("static")[-1], abs=1e-6)
    known = np.flatnonzero(~np.isnan(found))
    assert known[0] == 0 and len(known) > 15
    whole = trace.regret("static")
    assert np.all(found[known] >= whole[known] - 1e-6), (
        "the best of the first rounds is no worse in them than any other decision"
    )
    np.testing.assert_array_equal(trace.regret("dynamic", prefix=True), trace.regret("dynamic"))


def test_violation_is_cumulative_and_per_constraint(trace: Trace) -> None:
    g = trace.constraints
    hard, soft = trace.violation("hard"), trace.violation("soft")
    for t in (0, 7, 39):
        np.testing.assert_allclose(hard[t], np.maximum(g[: t + 1], 0).sum(axis=0))
        np.testing.assert_allclose(soft[t], np.maximum(g[: t + 1].sum(axis=0), 0))
    np.testing.assert_allclose(trace.violation("hard", total="papers"), hard.sum(axis=1))
    scale = 2 * 3 - 1  # the largest of |sum x - b| over the box and [1, 2]
    np.testing.assert_allclose(trace.violation("hard", total="scaled"), hard.sum(axis=1) / scale, rtol=1e-9)


@pytest.mark.parametrize(
    "ask", [lambda t: t.regret("best"), lambda t: t.violation("harder"), lambda t: t.comparator("fixed")]
)
def test_words_that_mean_nothing_are_refused(trace: Trace, ask: Any) -> None:
    with pytest.raises(OcoError) as caught:
        ask(trace)
    assert caught.value.code == "OCO831"


def test_totals_drop_constraints_without_a_scale() -> None:
    v = np.array([[1.0, 5.0], [2.0, 7.0]])
    np.testing.assert_allclose(measures.total(v, "scaled", np.array([2.0, 0.0])), [0.5, 1.0])
    np.testing.assert_allclose(measures.total(v, "papers", None), [6.0, 9.0])


@pytest.mark.parametrize("shape", [(1, 2), (255, 2), (1000, 3), (1000, 1), (70, 700), (5, 0)])
def test_the_largest_over_rounds_is_that_of_each_column(shape: tuple[int, int]) -> None:
    values = np.random.default_rng(0).normal(size=shape)
    for function, plain in ((np.maximum, max), (np.minimum, min)):
        assert measures.over_rounds(function, values).tolist() == [plain(column) for column in values.T.tolist()]
    values[: shape[0] // 2] = np.nan
    assert np.array_equal(measures.over_rounds(np.fmax, values), np.nanmax(values, axis=0))
    assert np.isnan(measures.over_rounds(np.maximum, values)).all() == (shape[0] > 1)


def test_exponents_are_fitted_where_a_power_describes_the_curve() -> None:
    t = np.arange(1, 10_001)
    assert measures.fitted_exponent(3.0 * t**0.5) == pytest.approx(0.5)
    assert measures.fitted_exponent(7.0 + 0 * t) == pytest.approx(0.0)
    assert measures.fitted_exponent(np.where(t > 5000, 1.0, -1.0)) is None
    assert measures.fitted_exponent(t[:5] * 1.0) is None


def test_data_of_another_length_run_the_plan_as_it_is_with_a_note(plan: Plan) -> None:
    short = plan.run({"a": targets(25)})
    assert short.rounds == 25 and short.problem.horizon == 40
    assert any("25 rounds" in note and "40" in note for note in short.notes)
    assert str(plan.settings["eta"].formula) == short.promise.settings["eta"]
    fewer = plan.run({"a": targets()}, rounds=10)
    assert np.array_equal(fewer.decisions, short.decisions[:10])


def test_an_iterator_keeps_the_horizon_and_is_compared_all_the_same(plan: Plan, trace: Trace) -> None:
    b = trace.data.array("b")
    found = plan.run(({"a": a, "b": v} for a, v in zip(targets(), b)))
    np.testing.assert_array_equal(found.decisions, trace.decisions)
    assert found.regret("static")[-1] == pytest.approx(trace.regret("static")[-1], abs=1e-6)
    part = plan.run(({"a": a, "b": v} for a, v in zip(targets(), b)), rounds=7)
    assert part.rounds == 7 and part.problem.horizon == 40
    with pytest.raises(OcoError):
        plan.run(iter([]))


def test_the_seed_decides_what_is_drawn(plan: Plan, trace: Trace) -> None:
    again = plan.run({"a": targets()}, seed=3)
    np.testing.assert_array_equal(again.decisions, trace.decisions)
    np.testing.assert_array_equal(again.loss, trace.loss)
    assert np.any(plan.run({"a": targets()}, seed=4).decisions != trace.decisions)


def test_a_start_and_progress(plan: Plan) -> None:
    seen: list[tuple[int, float, float]] = []
    found = plan.run({"a": targets()}, start=np.array([0.1, 0.2, 0.3]), progress=lambda *now: seen.append(now))
    np.testing.assert_array_equal(found.decisions[0], [0.1, 0.2, 0.3])
    assert seen[-1][0] == 40 and seen[-1][1] == pytest.approx(found.loss.sum())
    assert seen[-1][2] == pytest.approx(found.violation("hard")[-1].sum())


@pytest.mark.parametrize(
    ("keep", "kept"),
    [("all", range(1, 41)), ("last", [40]), (15, [1, 16, 31]), (["x"], range(1, 41)), ("x", range(1, 41))],
)
def test_what_is_kept_of_the_decisions(plan: Plan, trace: Trace, keep: Any, kept: Any) -> None:
    found = plan.run({"a": targets()}, seed=3, keep=keep)
    assert found.kept.tolist() == list(kept)
    np.testing.assert_array_equal(found.decisions, trace.decisions[np.array(list(kept)) - 1])
    assert len(found.loss) == 40


def test_decisions_that_would_fill_the_memory_are_thinned(monkeypatch: pytest.MonkeyPatch, plan: Plan) -> None:
    monkeypatch.setattr("oco.evaluation.recorder.DECISION_BYTES", 3 * 8 * 10)
    found = plan.run({"a": targets()})
    assert found.kept.tolist() == list(range(1, 41, 4)) and any("every 4th" in note for note in found.notes)


@pytest.mark.parametrize("keep", ["first", ["y"], [], 0, -3, 1.5, True])
def test_what_cannot_be_kept(plan: Plan, keep: Any) -> None:
    with pytest.raises(OcoError) as caught:
        plan.run({"a": targets()}, keep=keep)
    assert caught.value.code == "OCO831"


# ---- datasets and files


def test_the_dataset_has_named_dimensions(trace: Trace) -> None:
    dataset = trace.to_dataset()
    assert dataset["constraints"].dims == ("round", "constraint")
    assert dataset["decision.x"].dims == ("kept", "x_0")
    assert dataset["round"].values[0] == 1 and list(dataset["constraint"].values) == ["limit"]
    np.testing.assert_array_equal(dataset["loss"].values, trace.loss)


def test_a_file_reads_back_bit_for_bit(trace: Trace, tmp_path: Path) -> None:
    expected = trace.regret("dynamic")
    trace.save(tmp_path / "run.nc")
    again = oco.load_trace(tmp_path / "run.nc")
    for name in ("loss", "constraints", "duals", "decisions"):
        np.testing.assert_array_equal(getattr(again, name), getattr(trace, name))
    np.testing.assert_array_equal(again.regret("dynamic"), expected)
    assert again.problem.model == trace.problem.model and again.promise.algorithm == trace.promise.algorithm
    np.testing.assert_array_equal(again.promise.curves["regret"], trace.promise.curves["regret"])
    assert summarize(again) == summarize(trace)


@pytest.mark.parametrize("name", ["run.nc", "run.zarr"])
def test_a_replay_is_the_same_bit_for_bit(
    trace: Trace, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if name.endswith("zarr"):
        pytest.importorskip("zarr")
    trace.save(tmp_path / name)
    trace.save(tmp_path / name)
    assert [p.name for p in tmp_path.iterdir()] == [name], "written over what was there, and nothing is left beside it"
    assert main(["run", "--replay", str(tmp_path / name)]) == 0 and "bit for bit" in capsys.readouterr().out
    told = manifest(load_trace(tmp_path / name))
    assert told == manifest(trace) | {"notes": told["notes"]}
    assert told["facts"]["loss.convex"] == {"value": True, "status": "proved"}
    off = replace(trace.record, loss=trace.loss + np.eye(40)[6] * 1e-13)
    assert difference(trace, Trace(trace.problem, trace.data, off, trace.promise)) == "the loss of round 7 differs"


def test_a_changed_file_is_refused(trace: Trace, tmp_path: Path) -> None:
    import h5py

    trace.save(tmp_path / "run.nc")
    with h5py.File(tmp_path / "run.nc", "a") as file:
        told = json.loads(file.attrs["manifest"])
        file.attrs["manifest"] = json.dumps(told | {"model": told["model"].replace("40", "41")})
    with pytest.raises(OcoError) as caught:
        load_trace(tmp_path / "run.nc")
    assert caught.value.code == "OCO833" and "hash" in str(caught.value)


def test_a_file_that_cannot_be_written_leaves_what_was_there(trace: Trace, tmp_path: Path, monkeypatch: Any) -> None:
    trace.save(tmp_path / "run.nc")
    before = (tmp_path / "run.nc").read_bytes()

    def full(trace: Trace, path: Path) -> None:
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("oco.evaluation.storage._write_netcdf", full)
    with pytest.raises(OcoError) as caught:
        trace.save(tmp_path / "run.nc")
    assert caught.value.code == "OCO903" and (tmp_path / "run.nc").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["run.nc"]


def test_a_file_can_be_run_again(tmp_path: Path) -> None:
    """Data from files, params, drawn streams and a start: all of it is in the trace's own file."""
    prices = {"price": np.random.default_rng(0).uniform(-50, 200, (20, 5))}
    first = plan_of(load(ROOT / "examples" / "datacenter.oco")).run(prices, seed=7, start=np.full(50, 3.0))
    first.save(tmp_path / "run.nc")
    loaded = load_trace(tmp_path / "run.nc")
    again = Plan.from_recipe(loaded.origin.recipe).replay(loaded)
    np.testing.assert_array_equal(again.decisions, first.decisions)
    np.testing.assert_array_equal(again.loss, first.loss)
    np.testing.assert_array_equal(again.duals, first.duals)


def test_a_run_over_an_iterator_can_be_run_again(plan: Plan, trace: Trace) -> None:
    part = plan.run(({"a": a} for a in targets()), rounds=7, seed=2)
    again = plan.replay(part)
    assert again.rounds == 7 and again.problem.horizon == 40
    np.testing.assert_array_equal(again.decisions, part.decisions)


def test_a_table_for_other_tools(trace: Trace, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    trace.save(tmp_path / "run.parquet")
    frame = pandas.read_parquet(tmp_path / "run.parquet")
    pandas.testing.assert_frame_equal(trace.to_dataframe(), frame.set_index("round"))
    assert len(frame) == 40 and frame["round"].tolist() == list(range(1, 41))
    np.testing.assert_array_equal(frame["constraint.limit"], trace.constraints[:, 0])
    np.testing.assert_array_equal(frame["x[2]"], trace.decisions[:, 2])


@pytest.mark.parametrize("name", ["run.txt", "run"])
def test_other_kinds_of_file_are_refused(trace: Trace, tmp_path: Path, name: str) -> None:
    with pytest.raises(OcoError) as caught:
        trace.save(tmp_path / name)
    assert caught.value.code == "OCO833"


def test_a_file_that_is_no_trace(tmp_path: Path) -> None:
    (tmp_path / "x.nc").write_bytes(b"nothing")
    with pytest.raises(OcoError) as caught:
        load_trace(tmp_path / "x.nc")
    assert caught.value.code == "OCO833"


# ---- the summary


def test_the_summary_says_the_numbers_of_the_trace(trace: Trace) -> None:
    found = summarize(trace)
    assert found.loss == pytest.approx(trace.loss.sum()) and found.rounds == 40
    assert [r.kind for r in found.regret] == ["static", "dynamic"]
    assert found.regret[0].value == pytest.approx(trace.regret("static")[-1])
    assert found.violation[0].rounds == int((trace.constraints > 0).sum())
    assert found.violation[0].worst == pytest.approx(trace.constraints.max())
    assert {t.kind for t in found.totals} == {"hard", "soft"}
    assert found.to_json()["version"] == 1


def test_the_last_bits_of_a_sum_break_no_constraint(trace: Trace) -> None:
    g = np.zeros_like(trace.constraints)
    g[0], g[1:] = 0.5, 1e-16
    found = Trace(trace.problem, trace.data, replace(trace.record, constraints=g), trace.promise)
    assert summarize(found).violation[0].rounds == 1


def test_a_model_with_equalities_and_one_without_constraints() -> None:
    datacenter = plan_of(load(ROOT / "examples" / "datacenter.oco"))
    prices = np.random.default_rng(0).uniform(-50, 200, (30, 5))
    found = datacenter.run({"price": prices})
    assert found.equalities.shape == (30, 4) and found.equality_labels == tuple(f"pacing[{i}]" for i in range(4))
    np.testing.assert_allclose(found.equality_violation(), np.abs(np.cumsum(found.equalities, axis=0)))
    assert len(summarize(found).equality) == 4
    text = "model m\nhorizon T = 9\ndecision x in box(0, 1)\nstream c ~ uniform(-1, 1)\nminimize c * x\n"
    free = plan_of(parse(text)).run()
    assert free.constraints.shape == (9, 0) and summarize(free).totals == ()
    assert free.comparator("static").value == pytest.approx(min(0.0, float(free.data.array("c").sum())), abs=1e-7)


def test_a_trace_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(OcoError, match="there is no file"):
        load_trace(tmp_path / "none.nc")
