"""Models that `oco new` writes: each is formatted, checks and runs as it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from thorough import corners

from oco.cli import main
from oco.cli.files import templates


def test_there_is_one_for_each_problem() -> None:
    assert {
        "arms",
        "pacing",
        "inventory",
        "dispatch",
        "portfolio",
        "regression",
        "routing",
        "staffing",
        "storage",
    } <= set(templates())


@pytest.mark.parametrize("problem", templates())
def test_each_is_formatted_and_checks(problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "mine", "--template", problem]) == 0
    assert main(["fmt", "--check", "mine.oco"]) == 0
    assert main(["check", "mine.oco"]) == 0


@pytest.mark.parametrize("problem", corners(templates(), ("dispatch", "pacing")))
def test_each_runs(
    problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "mine", "--template", problem]) == 0
    assert main(["run", "mine.oco", "--rounds", "20", "--budget", "1s"]) == 0
    out = capsys.readouterr().out
    assert out.split("\n")[1].startswith(("mine lost ", "mine earned "))
    promised = " ".join(out[out.index("\nguarantee ") : out.index("\nnext ")].split())
    assert re.search("the first decision held|any decisions|gives a rate|none:", promised), promised


def test_list_names_them_in_lines_that_fit(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "--list"]) == 0
    out = capsys.readouterr().out
    assert all(f"\n{problem} " in f"\n{out}" for problem in templates()) and max(map(len, out.split("\n"))) <= 80


def test_wrong_names_end_with_status_two(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "m", "--template", "bakery"]) == 2
    assert main(["new"]) == 2
