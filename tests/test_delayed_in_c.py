"""Delayed feedback in written C: a ring of learners in one struct, through its bindings, beside the learner of this package."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_c99 import STRICT, needs_compiler
from test_c_bindings import binding
from test_delayed import DELAY, SERVED, TEXT, interleaved, plan_of, rounds
from test_delayed_everywhere import play, served

import oco

CASES = {"late": (TEXT, DELAY, ()), "served": (SERVED, 2, ("load",))}


@pytest.fixture(scope="module", params=CASES)
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Name of a case, and the folder of its files with the library, compiled under the flags that the project holds its C to."""
    name, folder = request.param, tmp_path_factory.mktemp(request.param)
    plan_of(CASES[name][0]).write(folder, backend="c")
    (folder / "desk.py").write_text((folder / f"{name}.py").read_text())  # the name that `binding` reads
    command = ["cc", *STRICT, "-O1", "-shared", "-fPIC", f"{name}.c", "-o", f"lib{name}.so", "-lm"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return name, folder


class Arrays:
    """Binding whose decisions are arrays, and whose inputs have the contexts of their rounds."""

    def __init__(self, learner: Any, data: list[dict[str, Any]]) -> None:
        self.learner, self.data = learner, data
        self.skip = learner.skip

    @property
    def pending(self) -> tuple[int, ...]:
        return tuple(self.learner.pending)

    def decide(self, **context: Any) -> Any:
        return np.array(self.learner.decide(**context)["x"])

    def observe(self, round: int, **_: Any) -> None:
        self.learner.observe(round=round, **self.data[round - 1])


@needs_compiler
def test_it_decides_as_learners_in_turn_whatever_the_order(built: tuple[str, Path]) -> None:
    name, folder = built
    text, delay, known = CASES[name]
    data = served(31) if known else [{"a": row} for row in rounds(31)]
    learner, module = plan_of(text).learner(backend="c"), binding(folder)
    ring = Arrays(module.Learner(), data)
    for part in (data[:11], data):
        own = play(plan_of(text).learner(backend="c"), part, known, delay, 9)
        np.testing.assert_allclose(play(Arrays(module.Learner(), data), part, known, delay, 9), own, rtol=0, atol=1e-13)
    play(learner, data[:11], known, delay, 9)
    play(ring, data[:11], known, delay, 9)
    state, other = ring.learner.save(), module.Learner()
    other.load(state)
    assert other.save() == state and ring.pending == learner.pending == other.pending
    for wrong in (state[:-1], bytes(len(state)), state[:40] + b"\x07" + state[41:]):
        with pytest.raises(module.LearnerError):
            other.load(wrong)
    assert other.save() == state


@needs_compiler
def test_late_early_and_repeated_rounds_have_codes(built: tuple[str, Path]) -> None:
    name, folder = built
    _, delay, known = CASES[name]
    module, header = binding(folder), (folder / f"{name}.h").read_text()
    row = served(32)[0] if known else {"a": [0.25, 0.5]}
    context = {n: row[n] for n in known}
    codes = {c: int(n) for c, n in re.findall(rf"{name}_(feedback_missing|round_unknown|round_over) = (-\d+)", header)}
    learner = module.Learner()
    before = learner.save()
    calls = [(lambda: learner.observe(**row), "round_unknown"), (lambda: learner.skip(7), "round_unknown")]
    for call, code in calls:
        with pytest.raises(module.LearnerError) as caught:
            call()
        assert caught.value.code == codes[code] and learner.save() == before
    for _ in range(delay + 1):
        learner.decide(**context)
    learner.observe(round=2, **row)
    learner.skip()
    learner.decide(**context)
    assert learner.pending == (*range(3, delay + 2), delay + 2)
    for call, code, words in (
        (lambda: learner.observe(round=1, **row), "round_over", "observed or skipped"),
        (lambda: learner.observe(round=2, **row), "round_over", "is over"),
        (lambda: learner.observe(round=99, **row), "round_unknown", "not decided"),
        (lambda: [learner.decide(**context) for _ in range(2)], "feedback_missing", "observe or skip"),
    ):
        with pytest.raises(module.LearnerError, match=words) as caught:
            call()
        assert caught.value.code == codes[code]
    with pytest.raises(module.LearnerError, match="is not finite") as caught:
        learner.observe(round=3, **{n: np.full(np.shape(v), np.nan) if n not in known else v for n, v in row.items()})
    assert caught.value.code > 0 and 3 in learner.pending


@needs_compiler
def test_the_header_states_size_and_stack_and_the_example_runs(built: tuple[str, Path]) -> None:
    name, folder = built
    header = (folder / f"{name}.h").read_text()
    stated = int(re.search(r"A learner: ([\d,]+) bytes", header)[1].replace(",", ""))  # type: ignore[index]
    assert binding(folder).Learner()._function("sizeof")() == stated
    assert f"{name}_observe_round(" in header and f"{name}_skip(" in header and "in any order" in header
    command = ["cc", *STRICT, f"{name}.c", f"{name}_example.c", "-o", "example", "-lm"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    shown = subprocess.run([folder / "example"], capture_output=True, text=True, check=True).stdout
    assert len(shown.splitlines()) == 3


@needs_compiler
def test_whole_horizons_are_played_in_one_call(built: tuple[str, Path]) -> None:
    name, folder = built
    if name != "late":
        return
    a, learner = rounds(33), binding(folder).Learner()

    class Record(ctypes.Structure):
        _fields_ = [("decisions", ctypes.c_void_p), ("loss", ctypes.c_void_p), ("rest", ctypes.c_void_p * 20)]

    x, loss = np.empty_like(a), np.empty(len(a))
    record = Record(x.ctypes.data, loss.ctypes.data)
    count = learner._function("run")(
        learner._memory, ctypes.c_int64(len(a)), ctypes.c_void_p(a.ctypes.data), ctypes.byref(record)
    )
    assert count == len(a) and learner.pending == ()
    np.testing.assert_allclose(x, interleaved(TEXT, a), rtol=0, atol=1e-13)
    np.testing.assert_allclose(loss, np.sum((x - a) ** 2, axis=1), rtol=1e-13)


MAIN = """
use late::Learner;

fn main() {
    let mut learner = Learner::new();
    let mut x = [0.0; 2];
    for _ in 0..4 { learner.decide(&mut x).unwrap(); }
    println!("{}", learner.decide(&mut x).unwrap_err());
    learner.observe_round(2, &[0.5, -0.25]).unwrap();
    learner.skip(1).unwrap();
    println!("{:?}", learner.pending());
    println!("{}", learner.observe_round(2, &[0.0, 0.0]).unwrap_err());
    learner.decide(&mut x).unwrap();
    learner.decide(&mut x).unwrap();
    println!("{:?} {:?}", x[0], x[1]);
}
"""


@needs_compiler
@pytest.mark.skipif(shutil.which("cargo") is None, reason="no Rust")
def test_the_rust_binding_takes_turns(built: tuple[str, Path], tmp_path: Path) -> None:
    name, folder = built
    if name != "late":
        return
    shutil.copytree(folder, tmp_path / "crate")
    (tmp_path / "crate" / "examples").mkdir()
    (tmp_path / "crate" / "examples" / "play.rs").write_text(MAIN)
    command = ["cargo", "run", "--quiet", "--offline", "--example", "play"]
    done = subprocess.run(command, cwd=tmp_path / "crate", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first, pending, again, x = done.stdout.splitlines()
    assert "observe or skip" in first and pending == "[3, 4]" and "is over" in again
    ours = plan_of(TEXT).learner(backend="c")
    for _ in range(4):
        ours.decide()
    ours.observe(round=2, a=[0.5, -0.25])
    ours.skip(round=1)
    ours.decide()
    assert x == " ".join(repr(float(v)) for v in ours.decide())


def test_feedback_at_once_has_no_rounds(tmp_path: Path) -> None:
    plan = oco.compile(oco.parse(TEXT.replace("feedback full delayed 3\n", "")))
    header = next(text for name, text in plan.files("c").items() if name.endswith(".h"))
    assert "observe_round" not in header and "skip" not in header
