"""What a person hears of a long run: a line now and then on stderr, nothing with --json, nothing in calls of the library."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from oco.backends.worth import duration
from oco.cli import main
from oco.cli.progress import told

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
    with told("coldq", 10_000, "rounds") as show:
        for done in range(1, 10_001):
            clock.now += 1.0
            show(done, f"loss {done}")
            if text := capsys.readouterr().err:
                said.append((done, text))
    assert said[0] == (10, "coldq: 10 of 10,000 rounds in 10 s, about 2.77 h to go; loss 10\n")
    gaps = [b[0] - a[0] for a, b in pairwise(said)]
    assert min(gaps) == 10 and gaps == sorted(gaps) and 500 < gaps[-1] < 1100 and len(said) < 70


@pytest.mark.parametrize(("options", "lines"), [((), True), (("--json",), False)])
def test_a_run_tells_how_far_it_is(monkeypatch: Any, capsys: Any, options: tuple[str, ...], lines: bool) -> None:
    monkeypatch.setattr("oco.cli.progress.FIRST_LINE", 0.0)
    call = ["run", str(EXAMPLES / "tracking.oco"), "--rounds", "400", "--backend", "numpy", *options]
    assert main(call) == 0
    said = capsys.readouterr()
    assert (" of 400 rounds in " in said.err) == lines
    if options:
        assert json.loads(said.out)["runs"] and not said.err


def test_times_in_words() -> None:
    assert [duration(s) for s in (0.744, 59, 89, 150, 6000)] == ["0.74 s", "59 s", "89 s", "2.5 min", "1.67 h"]
