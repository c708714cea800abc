"""Files of strangers: commands in child processes that limits of the operating system end."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from hostile import CASES
from thorough import corners

import oco
from oco.cli import main
from oco.dsl.diagnostics import OcoError

MODEL = """model m
horizon T = 100
decision x[2] in box(0, 1)
stream c[2] ~ uniform(0, 1)
minimize c @ x
using ogd
"""
LESS = ("--comparators", "none", "--baselines", "none")
SLOW = ("root_of_quotients", "root_of_squares_over", "traces_of_ramps")
"""Hostile files that take seconds to reason about."""


def cli(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "oco", *map(str, words)], capture_output=True, text=True, timeout=120)


def test_a_command_gives_what_it_gives_without_limits(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "m.oco"
    model.write_text(MODEL)
    for words in (("check", model), ("run", model, "--rounds", 20, "--json", *LESS), ("check", tmp_path / "none.oco")):
        limited, status, free = cli("--untrusted", *words), main([str(word) for word in words]), capfd.readouterr()
        assert (limited.returncode, limited.stderr) == (status, free.err)
        if "--json" not in words:  # a run tells how long it took
            assert limited.stdout == free.out


def test_plans_come_back_as_data_and_modules_as_files(tmp_path: Path) -> None:
    limits, model = oco.untrusted(seconds=60), tmp_path / "m.oco"
    model.write_text(MODEL)
    report = limits.check(model)
    assert report["model"] and report["facts"]
    plan = limits.compile(model, tmp_path / "learner.py")
    assert plan["algorithm"] == "ogd"
    assert (tmp_path / "learner.py").read_text().startswith('"""')


def test_what_a_model_is_refused_for_comes_back_in_words() -> None:
    with pytest.raises(OcoError) as caught:
        oco.untrusted(seconds=60).check("nothing.oco")
    assert caught.value.code == "OCO136" and "OCO901" in caught.value.message


@pytest.mark.parametrize("name", corners(SLOW, SLOW[:1]))
def test_hostile_files_end_with_the_clock(name: str, tmp_path: Path) -> None:
    """Nothing is left running, and nothing half-written."""
    model, target = tmp_path / "m.oco", tmp_path / "learner.py"
    model.write_text(CASES[name])
    began = time.monotonic()
    with pytest.raises(OcoError) as caught:
        oco.untrusted(seconds=0.7).compile(model, target)
    assert caught.value.code == "OCO136" and caught.value.hint
    assert time.monotonic() - began < 10 and [p.name for p in tmp_path.iterdir()] == ["m.oco"]


def test_memory_ends(tmp_path: Path) -> None:
    """An array of 800 MB in a process of 600."""
    model = tmp_path / "m.oco"
    model.write_text(
        "model m\nparam A[10000, 10000] = ones(10000, 10000)\ndecision x in box(0, 1)\nminimize A[0, 0] * x\n"
    )
    ended = cli("--untrusted", "--memory", 600, "check", model)
    assert ended.returncode != 0 and "error OCO" in ended.stderr and "Traceback" not in ended.stderr


def test_files_that_are_written_have_a_size() -> None:
    code = (
        "import sys; from oco.cli.child import child; sys.argv; import resource; child(['9', str(2**31), '--version'])"
    )
    code += "; print(resource.getrlimit(resource.RLIMIT_FSIZE)[0], resource.getrlimit(resource.RLIMIT_CORE)[1])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.split()[-2:] == [str(2**30), "0"]


@pytest.mark.parametrize(
    "limits", [{"seconds": 0}, {"seconds": -1}, {"memory": 0}, {"seconds": float("inf")}, {"memory": "1"}]
)
def test_limits_are_positive_numbers(limits: dict[str, float]) -> None:
    with pytest.raises(OcoError) as caught:
        oco.untrusted(**limits)  # type: ignore[arg-type]
    assert caught.value.code == "OCO134"
