"""What a person hears of a long run: a line now and then on stderr, nothing with --json, nothing in calls of the library."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from comparator_cases import problem

from oco.backends.choose import duration
from oco.cli import main
from oco.cli.progress import Pace, reporting, working
from oco.evaluation.comparators import ComparatorBudget, dynamic
from oco.evaluation.comparators.compare import compare
from oco.evaluation.data import load_data

EXAMPLES = Path(__file__).parent.parent / "examples"


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_lines_come_after_ten_seconds_and_then_ever_fewer(monkeypatch: Any, capsys: Any) -> None:
    clock = Clock()
    monkeypatch.setattr("oco.cli.progress.perf_counter", clock)
    said = []
    with reporting("coldq", 10_000, "rounds") as show:
        for done in range(1, 10_001):
            clock.now += 1.0
            show(done, f"loss {done}")
            if text := capsys.readouterr().err:
                said.append((done, text))
    assert said[0] == (10, "coldq: 10 of 10,000 rounds in 10 s, about 2.77 h to go; loss 10\n")
    gaps = [b[0] - a[0] for a, b in pairwise(said)]
    assert min(gaps) == 10 and gaps == sorted(gaps) and 500 < gaps[-1] < 1100 and len(said) < 70


def test_what_is_left_of_runs_is_told_by_what_runs_took(monkeypatch: Any) -> None:
    """Ten runs of 30 s, two at once, after a start of 12 s, the first of each worker 6 s longer for its libraries."""
    clock = Clock()
    monkeypatch.setattr("oco.cli.progress.perf_counter", clock)
    pace, told_then = Pace(width=2), []
    assert pace.left(10) is None
    for wave in range(1, 6):
        clock.now = 18 + 30.0 * wave
        for run in range(2):
            pace.took(36.0 if wave == 1 else 30.0)
            told_then.append(pace.left(10 - 2 * wave + 1 - run))
    assert told_then == [162, 144, 105, 90, 75, 60, 45, 30, 30, 30]


def test_more_runs_at_once_than_were_known_of_are_seen(monkeypatch: Any) -> None:
    clock = Clock()
    monkeypatch.setattr("oco.cli.progress.perf_counter", clock)
    pace = Pace(width=1)
    clock.now = 20.0
    for _ in range(8):
        pace.took(10.0)
    assert pace.left(16) == pytest.approx(20.0)


def test_a_start_before_the_first_round_is_not_counted(monkeypatch: Any, capsys: Any) -> None:
    clock = Clock()
    monkeypatch.setattr("oco.cli.progress.perf_counter", clock)
    with reporting("coldq", 101, "rounds") as show:
        clock.now = 60.0  # a compilation
        for done in range(1, 12):
            show(done, "")
            clock.now += 1.0
    said = capsys.readouterr().err.splitlines()
    assert "to go" not in said[0] and "1 of 101 rounds in 60 s" in said[0]
    assert said[1].startswith("coldq: 11 of 101 rounds in 70 s, about 1.5 min to go")


PLAIN = ("--backend", "numpy", "--algorithms", "coldq", "--settings", "paper", "--baselines", "none")


@pytest.mark.parametrize(("options", "lines"), [((), True), (("--json",), False)])
def test_a_run_tells_how_far_it_is(monkeypatch: Any, capsys: Any, options: tuple[str, ...], lines: bool) -> None:
    monkeypatch.setattr("oco.cli.progress.FIRST_LINE", 0.0)
    call = ["run", str(EXAMPLES / "tracking.oco"), "--rounds", "400", *PLAIN, *options]
    assert main(call) == 0
    said = capsys.readouterr()
    assert (" of 400 rounds in " in said.err) == lines
    if options:
        assert json.loads(said.out)["runs"] and not said.err


def test_times_in_words() -> None:
    assert [duration(s) for s in (0.744, 59, 89, 150, 6000)] == ["0.74 s", "59 s", "89 s", "2.5 min", "1.67 h"]


@pytest.mark.parametrize(("silent", "least"), [(False, 3), (True, 0)])
def test_work_without_a_known_end_tells_its_time(monkeypatch: Any, capsys: Any, silent: bool, least: int) -> None:
    monkeypatch.setattr("oco.cli.progress.FIRST_LINE", 0.05)
    with working("checking [m].oco", silent):
        sleep(0.5)
    lines = capsys.readouterr().err.splitlines()
    assert least <= len(lines) <= 10 * least
    assert all(line.startswith("checking [m].oco: 0.") and line.endswith(" s so far") for line in lines)


def test_work_with_rounds_tells_how_many_are_done(monkeypatch: Any) -> None:
    clock = Clock()
    monkeypatch.setattr("oco.cli.progress.perf_counter", clock)
    with working("comparing", silent=True) as solved:
        solved(100, 4000)
        assert solved.words == ", 100 of 4,000 rounds"
        clock.now = 9.0
        solved(1000, 4000)
        assert solved.words == ", 1,000 of 4,000 rounds, about 30 s to go"
        solved(4000, 4000)
        assert solved.words == ""


@pytest.mark.parametrize(
    "body",
    [
        "decision x[3] in box(0, 1)\nstream c[3] ~ uniform(0, 1)\nminimize c @ x\n",
        "decision X[3, 2] in nuclear_ball(1)\nstream A[3, 2] ~ uniform(0.5, 2)\nminimize sum_squares(X - A)\n",
    ],
)
def test_best_decisions_of_rounds_are_counted(monkeypatch: Any, body: str) -> None:
    """By chunks, and where projections are all that is known of the set one by one."""
    counts: list[tuple[int, int]] = []
    p = problem(body, 40)
    monkeypatch.setattr(dynamic, "_rounds_at_once", lambda *_: 16)
    budget = ComparatorBudget(progress=lambda *done: counts.append(done))
    assert compare(p, load_data(p), "dynamic", budget).losses is not None
    assert counts == sorted(counts) and counts[-1] == (40, 40) and len(counts) > 3
    assert budget == ComparatorBudget()


def test_short_work_tells_nothing(capsys: Any) -> None:
    with working("checking m.oco"):
        pass
    assert capsys.readouterr() == ("", "")


PATIENT = """
import sys, time
import oco
from oco.cli import main
def check(*args, **options):
    time.sleep(60)
oco.check = check
sys.exit(main(["check", sys.argv[1]]))
"""
"""A check that takes a minute."""


@pytest.mark.skipif(sys.platform == "win32", reason="terminals of Unix")
def test_a_terminal_shows_the_work_after_a_second_and_ctrl_c_ends_it() -> None:
    import pty

    master, terminal = pty.openpty()
    command = [sys.executable, "-c", PATIENT, str(EXAMPLES / "tracking.oco")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=terminal, env=os.environ | {"TERM": "xterm"}) as run:
        os.close(terminal)
        shown = b""
        while b"Ctrl-C stops it" not in shown:
            shown += os.read(master, 4096)
        run.send_signal(signal.SIGINT)
        with suppress(OSError):  # what a terminal gives whose other end is closed
            while more := os.read(master, 4096):
                shown += more
        status, output = run.wait(), run.stdout.read()
    os.close(master)
    assert status == 1 and output == b"" and b"checking" in shown
    assert shown.endswith(b"oco: interrupted\r\n") and b"Traceback" not in shown
