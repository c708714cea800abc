"""Sweeps: the same numbers wherever they run, resumed where they stopped, and one failure that stops nothing."""

from __future__ import annotations

import json
import multiprocessing
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from thorough import thorough

from oco.cli import main
from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.load import parse
from oco.evaluation.comparators import ComparatorBudget
from oco.evaluation.data import load_data
from oco.evaluation.engines import Processes, Ray, here
from oco.evaluation.numbers import number
from oco.evaluation.report.comparison import panels, tradeoff, write_comparison
from oco.evaluation.report.grids import grids
from oco.evaluation.sweep import Job, Outcome, Work, compared, jobs_of, sweep, to_dataset
from oco.pipeline import compile
from oco.sweeps import Runner, jobs_for
from oco.sweeps import sweep as sweep_model

TEXT = """model demo
horizon T = 30
decision x[2] in box(0, 2)
stream a[2] in [-1, 3]
stream b ~ uniform(1, 2)
minimize sum_squares(x - a)
subject to
    limit: sum(x) <= b    each round
"""
DATA = {"a": np.random.default_rng(0).uniform(-1, 3, (30, 2))}
GRID = {"epsilon": ["0.1", "0.5"]}


def numbers(outcomes: list[Outcome]) -> list[dict[str, float]]:
    return [{k: v for k, v in o.numbers.items() if k != "rounds_per_second"} for o in outcomes]


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    return sweep_model(parse(TEXT), DATA, ["coldq"], 3, GRID, engine=here)


def test_every_combination_is_run(outcomes: list[Outcome]) -> None:
    assert [(o.job.settings["epsilon"], o.job.seed) for o in outcomes] == [
        (e, s) for e in ("0.1", "0.5") for s in (0, 1, 2)
    ]
    assert not any(o.error for o in outcomes)
    assert len({o.job.key for o in outcomes}) == 6
    assert len(jobs_of(["a", "b"], range(3), {"x": ["1"], "y": ["2", "3"]})) == 12


def test_one_table_of_all_and_paired_differences(outcomes: list[Outcome]) -> None:
    table = to_dataset(outcomes)
    assert dict(table.sizes) == {"algorithm": 2, "seed": 3, "round": 30}
    first, second = table["loss"].to_numpy()
    rows = compared(table, ["loss", "hard_violation", "unheard"])
    assert [r.measure for r in rows] == ["loss", "loss", "hard_violation", "hard_violation"]
    assert rows[1].mean == pytest.approx(second.mean()) and rows[1].deviation == pytest.approx(second.std(ddof=1))
    assert rows[1].difference == pytest.approx((second - first).mean())
    assert rows[1].difference_deviation == pytest.approx((second - first).std(ddof=1))
    np.testing.assert_allclose(table["curve.loss"].to_numpy()[:, :, -1], table["loss"].to_numpy())


def test_the_tables_say_what_differences_are_from(outcomes: list[Outcome]) -> None:
    own, gaps = grids(compared(to_dataset(outcomes), ["loss", "hard_violation"]))
    loss = to_dataset(outcomes)["loss"].to_numpy()
    assert own.title == "mean ± deviation" and own.headings == ("", "loss", "hard violation, in scales", "runs")
    for row, losses in zip(own.rows, loss):
        assert row[1] == f"{number(losses.mean())}\n± {number(losses.std(ddof=1), 3)}" and row[3] == "3"
    assert gaps.title == f"difference to {outcomes[0].job.label} ± deviation, paired by seed"
    gap = loss[1] - loss[0]
    assert [r[:2] for r in gaps.rows] == [
        (outcomes[3].job.label, f"{number(gap.mean())}\n± {number(gap.std(ddof=1), 3)}")
    ]
    single = grids(compared(to_dataset(outcomes[:1])))
    assert [g.title for g in single] == ["mean"] and "±" not in str(single), "one run has no deviation"


def test_differences_that_rounding_explains_are_zero(outcomes: list[Outcome]) -> None:
    """The same losses added in another order; regrets subtract a comparator that is nearly as large."""
    table = to_dataset(outcomes)[["loss", "static_regret"]].copy(deep=True)
    base, apart = np.array([2.4e6, 2.5e6, 2.7e6]), np.array([1.0, -1.0, 0.0])
    table["loss"].values[:] = [base, base + 5e-9 * apart]
    table["static_regret"].values[:] = [base - base[0], base - base[0] + 5e-9 * apart]
    assert [(r.difference, r.difference_deviation) for r in compared(table) if r.compared] == [(0, 0), (0, 0)]
    table["loss"].values[1] = base + 3 + 5e-9 * apart
    (row,) = [r for r in compared(table, ["loss"]) if r.compared]
    assert row.difference == pytest.approx(3, abs=1e-8) and row.difference_deviation == 0
    table["loss"].values[1] = base + 1e-3 * apart
    (row,) = [r for r in compared(table, ["loss"]) if r.compared]
    assert row.difference_deviation == pytest.approx(1e-3)


def test_seeds_change_what_is_drawn_and_not_what_was_given(outcomes: list[Outcome]) -> None:
    losses = [o.numbers["loss"] for o in outcomes[:3]]
    assert len(set(losses)) == 3
    alone = sweep_model(parse(TEXT), DATA, ["coldq"], [1], {"epsilon": ["0.1"]}, engine=here)
    assert numbers(alone) == numbers(outcomes[1:2])


def test_processes_give_the_same_numbers(outcomes: list[Outcome]) -> None:
    found = sweep_model(parse(TEXT), DATA, ["coldq"], 2, {"epsilon": ["0.5"]}, engine=Processes(1))
    assert numbers(found) == numbers(outcomes[3:5])


def test_a_ray_cluster_gives_the_same_numbers(outcomes: list[Outcome]) -> None:
    pytest.importorskip("ray")
    found = sweep_model(parse(TEXT), DATA, ["coldq"], 2, {"epsilon": ["0.5"]}, engine=Ray(workers=2))
    assert numbers(found) == numbers(outcomes[3:5])


def test_a_ray_cluster_that_is_there_is_taken_and_left(outcomes: list[Outcome]) -> None:
    """With two workers, and a run that fails among the others."""
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, log_to_driver=False)
    try:
        found = sweep_model(parse(TEXT), DATA, ["coldq", "mirror-prox"], 2, {"epsilon": ["0.5"]}, engine=Ray())
        assert numbers(found[:2]) == numbers(outcomes[3:5])
        assert all("OCO705" in o.error for o in found[2:])
        assert ray.is_initialized()
    finally:
        ray.shutdown()


def asked_for(ray: Any, address: str, monkeypatch: pytest.MonkeyPatch) -> OcoError:
    """The error of a table of runs on a cluster that does not answer."""
    monkeypatch.setitem(sys.modules, "ray", ray)
    with pytest.raises(OcoError) as caught:
        sweep_model(parse(TEXT), DATA, ["coldq"], 2, engine=Ray(address))
    assert caught.value.code == "OCO909" and "pip install ocolang[ray]" in caught.value.hint
    return caught.value


def test_a_cluster_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise ConnectionError("ray client connection timeout\nand more")

    assert "ray is not installed" in str(asked_for(None, "ray://nowhere:10001", monkeypatch))
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"ray://127.0.0.1:{server.getsockname()[1]}"
        silent = SimpleNamespace(init=refuse, is_initialized=lambda: False)
        said = str(asked_for(silent, address, monkeypatch))
    assert f"{address} does not answer (ConnectionError: ray client" in said and "and more" not in said


def test_ray_is_not_asked_where_nothing_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    unasked = SimpleNamespace(init=lambda **_: pytest.fail("Ray was asked"), is_initialized=lambda: False)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    for address in (f"ray://127.0.0.1:{port}", "ray://127.0.0.1:99999", "ray://"):
        assert f"{address} does not answer" in str(asked_for(unasked, address, monkeypatch))


def test_whatever_a_run_fails_of_the_others_go_on(outcomes: list[Outcome]) -> None:
    class Worker(Exception):
        """An error of a cluster, over the one that a worker raised."""

        cause = fail("OCO825", "there are no values", hint="give some")

    def execute(job: Job) -> Any:
        raise {0: KeyError("x"), 1: Worker("ray::called() (pid=7)"), 2: OSError(28, "No space left on device")}[
            job.seed
        ]

    errors = [o.error for o in here(Work(execute), [Job("coldq", seed) for seed in range(3)])]
    assert "OCO999: this run failed inside oco (KeyError: 'x')" in errors[0] and "at oco.evaluation.sweep:" in errors[0]
    assert errors[2] == "OSError: [Errno 28] No space left on device"
    assert "OCO825: there are no values" in errors[1] and "hint: give some" in errors[1]


def test_a_name_that_is_wrong_is_told_before_anything_runs() -> None:
    with pytest.raises(OcoError) as caught:
        sweep_model(
            parse(TEXT), DATA, ["coldq", "codlq"], 2, engine=lambda work, jobs: pytest.fail("nothing should run")
        )
    assert caught.value.code == "OCO701" and "coldq" in caught.value.hint


def test_an_interrupted_sweep_goes_on(tmp_path: Path, outcomes: list[Outcome]) -> None:
    ran: list[Job] = []

    def counted(work: Any, jobs: Any) -> Any:
        ran.extend(jobs)
        return here(work, jobs)

    part = sweep_model(parse(TEXT), DATA, ["coldq"], 2, GRID, folder=tmp_path, engine=counted)
    assert len(ran) == 4
    whole = sweep_model(parse(TEXT), DATA, ["coldq"], 3, GRID, folder=tmp_path, engine=counted)
    assert len(ran) == 6 and numbers(whole) == numbers(outcomes)
    assert numbers(part) == numbers([whole[0], whole[1], whole[3], whole[4]])
    broken = next(tmp_path.rglob(f"{whole[0].job.key}.json"))
    broken.write_text("{")
    sweep_model(parse(TEXT), DATA, ["coldq"], 3, GRID, folder=tmp_path, engine=counted)
    assert len(ran) == 7 and json.loads(broken.read_text())["numbers"]
    sweep_model(
        parse(TEXT), {"a": DATA["a"] + 0.01 * (DATA["a"] < 1)}, ["coldq"], 3, GRID, folder=tmp_path, engine=counted
    )
    assert len(ran) == 13, "outcomes of other data are not taken for these"


def test_processes_begin_no_more_runs_when_nobody_waits(tmp_path: Path) -> None:
    work: Any = subprocess.call
    jobs: Any = [["sh", "-c", f"sleep 0.1; touch {tmp_path / str(k)}"] for k in range(40)]
    outcomes: Any = Processes(1)(work, jobs)
    assert next(outcomes) == 0
    outcomes.close()
    assert 1 <= len(list(tmp_path.iterdir())) < 40


def test_a_run_that_nobody_waits_for_is_ended() -> None:
    """Without that, leaving would take the ten minutes of the second job."""
    work: Any = time.sleep
    jobs: Any = [0.0, 600.0]
    others = set(multiprocessing.active_children())
    outcomes: Any = Processes(1)(work, jobs)
    assert next(outcomes) is None
    begun = set(multiprocessing.active_children()) - others
    assert begun
    outcomes.close()
    for worker in begun:
        worker.join(30)
        assert worker.exitcode is not None


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="it asks Linux for the state of a process")
def test_no_worker_outlives_a_table_that_is_killed(tmp_path: Path) -> None:
    place = tmp_path / "worker"
    job = ["sh", "-c", f"echo $PPID > {place}.new; mv {place}.new {place}; sleep 20"]
    code = (
        f"import subprocess; from oco.evaluation.engines import Processes; [*Processes(1)(subprocess.call, [{job!r}])]"
    )
    table = subprocess.Popen([sys.executable, "-c", code])
    worker = int(_eventually(lambda: place.exists() and place.read_text()))
    table.kill()
    table.wait()
    assert _eventually(lambda: _state(worker) == "Z")


def _eventually(found: Callable[[], Any]) -> Any:
    for _ in range(2400):
        if value := found():
            return value
        time.sleep(0.05)
    return None


def _state(process: int) -> str:
    """What Linux says of a process; "Z" where it has ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[2]
    except OSError:
        return "Z"


def test_an_interrupted_table_says_what_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo.oco").write_text(TEXT)
    np.savez(tmp_path / "a.npz", **DATA)

    def interrupted(work: Any, jobs: Any) -> Any:
        yield work(jobs[0])
        raise KeyboardInterrupt

    monkeypatch.setattr("oco.evaluation.engines.here", interrupted)
    words = ["run", "demo.oco", "--data", "a.npz", "--seeds", "3", "--engine", "here"]
    words += ["--algorithms", "coldq"]
    assert main([*words, "--out", "o"]) == 1
    assert "1 of 3 runs are kept in o/: the same command goes on" in capsys.readouterr().err
    assert main([*words, "--out", "o"]) == 1
    assert "2 of 3 runs are kept" in capsys.readouterr().err
    assert main(words) == 1
    assert "1 of 3 runs are lost; --out DIR keeps them" in capsys.readouterr().err


@pytest.mark.parametrize("tradeoff", [0.01, thorough(100.0)])
def test_what_is_chosen_for_a_table_is_what_is_chosen_for_a_run(tradeoff: float, tmp_path: Path) -> None:
    """By pilot runs on the data where guarantees say nothing, and under the same tradeoff; the table names it."""
    plan = compile(parse(TEXT), data=DATA, tradeoff=tradeoff)
    found = sweep_model(parse(TEXT), DATA, [None], 2, folder=tmp_path, engine=here, tradeoff=tradeoff)
    assert {o.job.algorithm for o in found} == {plan.algorithm}
    runs = [plan.run(load_data(plan.canonical, DATA, seed=seed), seed=seed) for seed in range(2)]
    assert [o.numbers["loss"] for o in found] == [trace.loss.sum() for trace in runs]
    assert [o.numbers["hard_violation.limit"] for o in found] == [trace.violation()[-1, 0] for trace in runs]


def test_outcomes_under_another_tradeoff_or_budget_are_others(tmp_path: Path) -> None:
    told: list[dict[str, Any]] = [
        {},
        {"tradeoff": 2.0},
        {"budget": ComparatorBudget(seconds=1.0)},
        {"backend": "numpy"},
        {},
    ]
    for others in told:
        sweep_model(parse(TEXT), DATA, ["ogd"], 1, folder=tmp_path, engine=here, **others)
    assert len(list(tmp_path.iterdir())) == 4


def test_an_algorithm_without_a_setting_of_the_grid_is_run_once() -> None:
    jobs = jobs_for(["coldq", "ogd"], range(2), GRID)
    assert [(j.algorithm, j.settings.get("epsilon")) for j in jobs if j.seed == 0] == [
        ("coldq", "0.1"),
        ("coldq", "0.5"),
        ("ogd", None),
    ]
    with pytest.raises(OcoError) as caught:
        jobs_for(["ogd"], range(2), {"epsilom": ["1"]})
    assert caught.value.code == "OCO702" and "epsilon" in str(caught.value)


def test_a_comparison_is_a_page_and_a_picture(tmp_path: Path, outcomes: list[Outcome]) -> None:
    """The trade-off has a marker for each way at its mean loss and violation, and the page says the means."""
    dataset = to_dataset(outcomes)
    ax = Figure().subplots()
    tradeoff(dataset, ax)
    centres = [line.get_xydata()[0] for line in ax.get_lines() if line.get_marker() in "os"]
    means = [(float(dataset["hard_violation"][k].mean()), float(dataset["loss"][k].mean())) for k in range(2)]
    np.testing.assert_allclose(centres, means)
    dataset = dataset[[name for name in dataset if "regret" not in str(name)]]
    write_comparison(dataset, compared(dataset), {"ogd, seed 1": "no <reason>"}, "demo", tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert (
        number(means[1][1]) in page
        and "no &lt;reason&gt;" in page
        and page.count("<svg") == 1 + len(panels(dataset)) > 2
    )
    assert {p.name for p in tmp_path.iterdir()} == {"report.html", "sweep.nc", "comparison.png"}


def test_equalities_are_measured_and_drawn_too() -> None:
    """They may be all that there is to violate."""
    text = "model m\nhorizon T = 8\ndecision x[2] in box(0, 2)\nstream a[2] in [-1, 3]\nminimize sum_squares(x - a)\n"
    text += "subject to\n    even: x[0] - 2 * x[1] == 0.5 on average\n"
    found = sweep_model(parse(text), {"a": DATA["a"][:8]}, ["mirror-descent"], 2, engine=here)
    plan = compile(parse(text), "mirror-descent")
    expected = plan.run({"a": DATA["a"][:8]}).equality_violation("scaled")
    assert [o.numbers["equality_violation"] for o in found] == [expected[-1]] * 2 and expected[-1] > 0
    dataset = to_dataset(found)
    np.testing.assert_array_equal(dataset["curve.equality_violation"].to_numpy()[0, 0], expected)
    assert "equality_violation" in [r.measure for r in compared(dataset)] and "equality_violation" in panels(dataset)
    ax = Figure().subplots()
    tradeoff(dataset, ax)
    assert "equality violation" in ax.get_xlabel()
    assert any(np.allclose(line.get_xydata(), [[expected[-1], found[0].numbers["loss"]]]) for line in ax.get_lines())


def test_one_failure_stops_nothing(outcomes: list[Outcome]) -> None:
    seen: list[Outcome] = []
    found = sweep_model(
        parse(TEXT), DATA, ["coldq", "mirror-prox"], [0], {"epsilon": ["0.1"]}, engine=here, progress=seen.append
    )
    assert [bool(o.error) for o in found] == [False, True] and len(seen) == 2
    assert "OCO705" in found[1].error
    table = to_dataset(found)
    assert np.isnan(table["loss"].to_numpy()[1, 0]) and np.isfinite(table["loss"].to_numpy()[0, 0])
    assert compared(table, ["loss"])[1].runs == 0


def test_nothing_to_do_is_no_error(tmp_path: Path) -> None:
    assert sweep([], Runner("", tmp_path, 0), here) == []


def test_the_command_line_prints_a_table_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], undrawn: None
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo.oco").write_text(TEXT)
    np.savez(tmp_path / "a.npz", **DATA)
    words = ["run", "demo.oco", "--data", "a.npz", "--seeds", "2", "--grid", "epsilon=0.1,0.5", "--rounds", "8"]
    words += ["--engine", "here", "--out", "o"]
    one = [*words, "--algorithms", "coldq"]
    assert main(one) == 0
    table = capsys.readouterr().out
    assert "epsilon = 0.5" in table and "dynamic regret" in table
    assert main(one) == 0 and capsys.readouterr().out == table
    assert len(list((tmp_path / "o" / "runs").rglob("*.json"))) == 4 and (tmp_path / "o" / "sweep.nc").exists()
    assert main([*words, "--algorithms", "coldq,mirror-prox"]) == 1
    assert "failed: mirror-prox, seeds 0, 1: " in capsys.readouterr().out
    assert main([*words[:-4], "--engine", "cloud"]) == 2
