"""The screen at the end of `oco run`: its size, and its numbers against those of the trace."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from thorough import corners

import oco
from oco.cli import main
from oco.evaluation.baselines.held import held_lines
from oco.evaluation.baselines.rules import RuleChoice, beside
from oco.evaluation.cost import Trade
from oco.evaluation.report.run_page import report
from oco.evaluation.report.run_table import FOUR, MeasureTable, measure_table
from oco.evaluation.report.verdict import LINES, WIDTH, compared, verdict
from oco.evaluation.summary import summarize

EXAMPLES = Path(__file__).parent.parent / "examples"
SHORT = ("--rounds", "24", "--budget", "1s")
KEPT = ("blind_pricing", "depots")
"""Examples with states, values alone, and several decisions; other tests of this file run `tracking`."""
LARGE = {"ratings": ("--comparators", "none", "--baselines", "none")}
TIGHT = """model tight
horizon T = 6
decision x[2] in box(0, 4)
stream c[2] in [-1, 1]
stream need in [0, 9]
minimize c @ x
subject to
    served: need - sum(x) <= 0 each round
"""


@cache
def tight() -> oco.Plan:
    return oco.compile(oco.parse(TIGHT), "coldq")


@pytest.mark.parametrize("name", corners(sorted(p.stem for p in EXAMPLES.glob("*.oco")), KEPT))
def test_every_example_runs_by_itself_and_ends_on_one_screen(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["run", str(EXAMPLES / f"{name}.oco"), *SHORT, *LARGE.get(name, ())]) == 0
    text = capsys.readouterr().out
    lines = text.rstrip("\n").split("\n")
    assert len(lines) <= LINES and max(map(len, lines)) <= WIDTH, text
    assert re.match(f"{name} (lost|earned) ", lines[0]) and "24 rounds" in lines[0]
    for heading in (
        "data ",
        "algorithm ",
        "  +measured +certified +guaranteed( +best rule)?$",  # rules of large decisions may have no time
        "loss ",
        "static regret ",
        "guarantee ",
        "next ",
    ):
        assert re.search(rf"^({heading})", text, re.MULTILINE), heading
    assert not re.search(r"\d[eE][+]?\d", text.split("guarantee")[0]), "numbers in one notation"


def test_numbers_of_the_screen_are_those_of_the_trace() -> None:
    plan = tight()
    rng = np.random.default_rng(0)
    need = np.array([1.0, 2.0, 9.0, 1.0, 9.0, 1.0])
    data = {"c": rng.uniform(-1, 1, (6, 2)), "need": need}
    trace = plan.run(data)
    run = summarize(trace)
    text = verdict(trace, run, "six rounds", "an algorithm", ["oco help"])
    broken = int((trace.constraints[:, 0] > 1e-9).sum())
    assert f"kept in {6 - broken} of 6 rounds" in text
    first, held = np.asarray(trace.decisions[0]), held_lines(trace)[0]
    assert held is not None and held.loss == pytest.approx(float((data["c"] @ first).sum()))
    assert held.violation == pytest.approx(np.maximum(need - first.sum(), 0).sum())
    assert summarize(trace).to_json()["held"]["loss"] == held.loss


def test_what_is_maximized_is_earned() -> None:
    model = oco.parse("model m\nhorizon T = 4\ndecision x in box(0, 1)\nstream c in [0, 1]\nmaximize c * x\n")
    trace = oco.compile(model, "ogd").run({"c": np.ones(4)})
    first = verdict(trace, summarize(trace), "four rounds", "an algorithm", []).split("\n")[0]
    earned = -float(trace.loss.sum())
    assert (
        0 < earned < 4
        and first
        == f"m earned {earned:.6g} in 4 rounds: {100 * (1 - earned / 4):.2g}% less than the best fixed decision."
    )


@pytest.mark.parametrize(
    ("own", "other", "words"),
    [
        (90.0, 100.0, "10% less than"),
        (103.1, 100.0, "3.1% more than"),
        (100.0, 100.0, "as much as"),
        (-5.0, 10.0, "15 less than"),
        (5.0, 0.0, "5 more than"),
        (-110.0, -100.0, "10% less than"),
    ],
)
def test_losses_are_compared_by_share_where_a_share_says_something(own: float, other: float, words: str) -> None:
    assert compared(own, other) == words


def test_details_and_json_have_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.oco").write_text(TIGHT)
    assert main(["run", "m.oco", "--data", "drawn", "--details", "--algorithms", "coldq"]) == 0
    out = capsys.readouterr().out
    assert "loss.lipschitz" in out and "setting" in out and "rounds a second" in out
    plan = out.split("\nalgorithm", 1)[1]
    assert "guaranteed" in out and max(map(len, plan.split("\n"))) <= WIDTH
    assert main(["run", "m.oco", "--data", "drawn", "--json", "--algorithms", "coldq"]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert run["held"]["name"] == "first decision held"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("# run: --data ../m.csv", "OCO802"),
        ("# run: --data none.csv", "OCO801"),
        ("# run: --out results", "OCO912"),
        ("# run: --rounds 0", "OCO912"),
        ("# run: --data 'm.csv", "OCO912"),
    ],
)
def test_wrong_run_lines_are_shown_in_place(
    line: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.oco").write_text(f"{line}\n{TIGHT}")
    assert main(["run", "m.oco"]) == 1
    err = capsys.readouterr().err
    assert code in err and "m.oco:1:1" in err


def test_the_run_line_gives_way_to_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.oco").write_text(f"# run: --data m.csv --rounds 2\n{TIGHT}using coldq\n")
    (tmp_path / "m.csv").write_text("c[0],c[1],need\n" + "0.5,-0.5,1\n" * 3)
    (tmp_path / "other.csv").write_text("c[0],c[1],need\n" + "0.5,-0.5,1\n" * 4)
    assert main(["run", "m.oco"]) == 0
    assert "2 rounds of m.csv" in capsys.readouterr().out
    assert main(["run", "m.oco", "--data", "other.csv"]) == 0
    assert "4 rounds of other.csv" in capsys.readouterr().out
    assert main(["data", "m.oco"]) == 0
    assert "m.csv: 3 rounds" in capsys.readouterr().out


def test_rounds_with_states_are_each_best_without_foresight() -> None:
    """Emptying the store is the best of each round, and not of both: what is kept for a better price is no part of the comparison."""
    model = oco.parse(
        "model shop\nhorizon T = 2\ndecision sell in box(0, 1)\nstate kept = kept - sell in [0, 1] start 1\nstream price in [0, 9]\n"
        "maximize price * sell\nsubject to\n    there: sell <= kept each round\n"
    )
    trace = oco.compile(model, settings="paper").run({"price": np.array([1.0, 9.0])})
    text = verdict(trace, summarize(trace), "two rounds", "an algorithm", [])
    assert "best of each round: from the states that came, without foresight" in text.split("\n")


def test_the_same_four_columns_on_the_screen_the_page_and_in_notebooks(undrawn: None) -> None:
    """Each number of the table against the trace and the rules, wherever it is shown."""
    plan = tight()
    rng = np.random.default_rng(0)
    trace = plan.run({"c": rng.uniform(-1, 1, (6, 2)), "need": np.array([1.0, 2.0, 7.0, 1.0, 7.0, 1.0])})
    rules = beside(RuleChoice.SOME, trace.problem, trace.data, Trade.at_price(trace.problem, 1.0))
    run = summarize(trace, beside=rules, certify=True)
    table, best = measure_table(run), rules.played[0]
    loss, static = trace.loss.sum(), trace.comparator("static").value
    assert static is not None and table.columns[:4] == ("measured", "certified", "guaranteed", "best rule")
    assert table["loss"][0] == loss and table["loss"][3] == pytest.approx(best.loss.sum())
    measured, certified, promised, of_rule = table["static regret"][:4]
    assert measured == pytest.approx(loss - static) and of_rule == pytest.approx(best.loss.sum() - static)
    assert certified == trace.certificate().bound and certified >= measured
    assert promised == trace.promise.at_end("regret") and table.words["violation, summed", "guaranteed"] == "vacuous"
    assert table["violation, summed"][0] == pytest.approx(np.maximum(trace.constraints, 0).sum())
    broken = int((trace.constraints > 1e-9).sum())
    assert table["rounds broken"][0] == broken and f"{broken} (" in table.words["rounds broken", "measured"]
    lines = [line.split("  ") for line in verdict(trace, run, "six rounds", "an algorithm", []).split("\n")]
    screen = {name: [c.strip() for c in cells if c.strip()] for name, *cells in lines}
    page = report(trace, beside=rules)
    for name, *cells in table.only(FOUR).cells():
        assert [c for c in cells if c] == screen[name]
        row = next(part for part in page.split("<tr>") if f">{name}</td>" in part)
        assert all(f">{c}</td>" in row for c in cells if "e-" not in c), row
    assert all(trace.summary()[name][0] == values[0] for name, values in table.rows.items())


def test_a_soft_guarantee_stands_beside_the_soft_violation() -> None:
    """What a theorem says of sums that may cancel is not set beside what each round was broken by."""
    trace = tight().run({"c": np.zeros((6, 2)), "need": np.full(6, 1.0)})
    run = summarize(trace)
    own = replace(run, totals=tuple(replace(t, guarantee=7.0, vacuous=False) for t in run.totals if t.kind == "soft"))
    table = measure_table(own)
    assert table["violation, summed"][2] is None
    assert table["soft violation, summed"][:3] == (run.totals[1].papers, None, 7.0)
    hard = replace(run, totals=tuple(replace(t, guarantee=7.0, vacuous=False) for t in run.totals if t.kind == "hard"))
    assert measure_table(hard)["violation, summed"][2] == 7.0


def test_tables_of_long_numbers_fit_the_screen() -> None:
    numbers = (-1_002_474_312_328.5, 3_328_156_020_032.1, 2_474_312_328_156.7, -156_020_032_991.3)
    table = MeasureTable("m", FOUR, {"loss": (123_456_789_012.5, *numbers[1:]), "static regret": numbers})
    wide, narrow = table.lines(), table.lines(60)
    assert max(map(len, wide)) > 60 >= max(map(len, narrow))
    assert [float(c) for c in narrow[2].split()[2:]] == pytest.approx(numbers, rel=1e-3)


def test_the_run_line_says_what_is_done_where_a_value_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.csv").write_text("c[0],c[1],need\n0.5,-0.5,1\n,-0.5,1\n0.5,-0.5,1\n")
    for way, status, rounds in (("hold", 0, "3 rounds"), ("skip", 0, "2 rounds"), ("error", 1, "OCO827")):
        (tmp_path / "m.oco").write_text(f"# run: --data m.csv --on-missing {way}\n{TIGHT}")
        assert main(["data", "m.oco"]) == status
        shown = capsys.readouterr()
        assert rounds in shown.out + shown.err
    assert main(["data", "m.oco", "--on-missing", "hold"]) == 0
    (tmp_path / "m.oco").write_text(f"# run: --data m.csv --on-missing hold\n{TIGHT}")
    for command in ("data", "run"):
        assert main([command, "m.oco", "--on-missing", "error"]) == 1
        assert "OCO827" in capsys.readouterr().err
