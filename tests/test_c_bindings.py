"""Files beside an emitted C learner: codes in words, the build for CMake, bindings for Python and Rust; each built and run."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_c99 import STRICT, needs_compiler

import oco

TEXT = """
model desk
horizon T = 50
decision x[3] in box(0, 1)
decision y in box(0, 2)
stream price[2, 3] in [-1, 1]
stream type in [0, 4]
stream place in 0..2
minimize sum(price @ x) + x[place] + square(y - type)
subject to
    cap: sum(x) + y <= 2 + type  each round
"""
CONTEXT = TEXT.replace("stream type", "context type").replace("2 + type", "2 - 0 * type")
ROUNDS = 12


@cache
def plan_of(text: str) -> Any:
    return oco.compile(oco.parse(text), settings="paper")


def data() -> list[dict[str, Any]]:
    rng = np.random.default_rng(5)
    return [
        {"price": rng.uniform(-1, 1, (2, 3)), "type": float(rng.uniform(0, 4)), "place": int(rng.integers(3))}
        for _ in range(ROUNDS)
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("desk")
    plan_of(TEXT).write(path, backend="c")
    return path


def built(folder: Path) -> Path:
    """Shared library of the source, under the flags that the project holds its C to."""
    target = folder / "libdesk.so"
    command = ["cc", *STRICT, "-O1", "-shared", "-fPIC", "desk.c", "-o", str(target), "-lm"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return target


def binding(folder: Path) -> Any:
    spec = importlib.util.spec_from_file_location("desk_binding", folder / "desk.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@needs_compiler
def test_python_binding_decides_as_the_learner(folder: Path) -> None:
    built(folder)
    desk, ours = binding(folder).Learner(), plan_of(TEXT).learner(backend="c")
    assert desk.version.startswith("desk, ")
    for k, row in enumerate(data()):
        decision, own = desk.decide(), ours.decide()
        np.testing.assert_array_equal(decision["x"], own["x"])
        assert decision["y"] == own["y"]
        loss, g, h = desk.measure(decision, **row)
        desk.observe(**row)
        feedback = ours.observe(**row)
        assert loss == feedback.loss and g == list(feedback.constraints) and h == []
        if k == ROUNDS // 2:
            state, other = desk.save(), binding(folder).Learner()
            other.load(state)
            assert other.decide() == desk.decide() and other.save() == state
    with pytest.raises(ValueError, match="no whole state"):
        desk.load(state[:-1])


@needs_compiler
def test_codes_name_the_entry_and_change_nothing(folder: Path) -> None:
    built(folder)
    module = binding(folder)
    desk, good = module.Learner(), data()[0]
    header, before = (folder / "desk.h").read_text(), desk.save()
    codes = {name: int(code) for name, code in re.findall(r"(desk_(?:ok|wrong\w*|overflow\w*)) = (-?\d+)", header)}
    assert codes["desk_ok"] == 0 and codes["desk_overflow_decision"] == -1
    prices = np.array(good["price"])
    for i, j in np.ndindex(2, 3):
        wrong = prices.copy()
        wrong[i, j] = np.nan
        with pytest.raises(module.LearnerError, match=re.escape(f"price[{i}, {j}] is not finite")) as caught:
            desk.observe(**good | {"price": wrong})
        assert caught.value.code == codes["desk_wrong_price"] + 3 * i + j and desk.save() == before
    first = next(code for name, code in codes.items() if name.startswith("desk_wrong_type"))
    with pytest.raises(module.LearnerError, match=r"^type is not finite, or out of its bounds") as caught:
        desk.observe(**good | {"type": 9.0})
    assert caught.value.code == first
    names = {name: desk.error(code) for name, code in codes.items() if name.startswith("desk_overflow_")}
    assert all(text.endswith(("be finite", "after the round")) for text in names.values()) and len(names) > 2
    assert desk.error(0) == "done" and "no code" in desk.error(10**15) and "no code" in desk.error(-(10**15))
    with pytest.raises(module.LearnerError, match="price has 6 entries, not 5"):
        desk.observe(**good | {"price": [0.0] * 5})


@needs_compiler
def test_contexts_go_in_before_the_decision(tmp_path: Path) -> None:
    plan_of(CONTEXT).write(tmp_path, backend="c")
    built(tmp_path)
    desk, ours = binding(tmp_path).Learner(), plan_of(CONTEXT).learner(backend="c")
    for row in data():
        assert desk.decide(type=row["type"])["y"] == ours.decide(type=row["type"])["y"]
        desk.observe(**row)
        ours.observe(**{name: value for name, value in row.items() if name != "type"})


@needs_compiler
def test_the_struct_has_the_size_that_the_header_states(folder: Path) -> None:
    built(folder)
    stated = int(re.search(r"A learner: ([\d,]+) bytes", (folder / "desk.h").read_text())[1].replace(",", ""))  # type: ignore[index]
    assert binding(folder).Learner()._function("sizeof")() == stated


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_the_stack_is_within_what_the_header_states(folder: Path, level: str, tmp_path: Path) -> None:
    """gcc's own figures of each function, along the deepest chain of calls: no more than stated, and not a fourth of it."""
    subprocess.run(
        ["gcc", "-std=c99", level, "-fno-inline", "-fstack-usage", "-c", "desk.c", "-o", str(tmp_path / "desk.o")],
        cwd=folder,
        check=True,
    )
    usage = {}
    for line in next(tmp_path.glob("*.su")).read_text().splitlines():
        place, size, _ = line.split("\t")
        usage[place.split(":")[-1]] = int(size)
    stated = int(
        re.search(r"at most\n \* ([\d,]+) bytes of stack", (folder / "desk.h").read_text())[1].replace(",", "")
    )  # type: ignore[index]
    source = (folder / "desk.c").read_text()
    bodies = dict(re.findall(r"^[\w ]+?\*?(\w+)\([^;{]*\) \{\n(.*?)^\}", source, re.MULTILINE | re.DOTALL))

    def deepest(name: str) -> int:
        called = set(re.findall(r"\b(\w+)\(", bodies.get(name, ""))) & usage.keys() - {name}
        return usage.get(name, 0) + max(map(deepest, called), default=0)

    taken = max(deepest(f"desk_{name}") for name in ("decide", "observe"))
    assert stated / 4 <= taken <= stated if level == "-O0" else taken <= stated


@needs_compiler
@pytest.mark.skipif(shutil.which("cmake") is None, reason="no CMake")
def test_cmake_builds_the_library_and_the_example(folder: Path, tmp_path: Path) -> None:
    for command in (
        ["cmake", "-S", str(folder), "-B", str(tmp_path), "-DBUILD_SHARED_LIBS=ON"],
        ["cmake", "--build", str(tmp_path)],
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    shown = subprocess.run([str(tmp_path / "desk_example")], capture_output=True, text=True, check=True).stdout
    assert shown.startswith("round 1: x begins with ") and len(shown.splitlines()) == 3
    assert binding(folder).Learner(str(next(tmp_path.glob("libdesk.*")))).decide()


MAIN = """
use desk::{version, Learner};

fn main() {
    println!("{}", version());
    let mut learner = Learner::new();
    let (mut x, mut y) = ([0.0; 3], 0.0);
ROUNDS
    let kept = learner.save();
    let wrong = learner.observe(&[0.0, 0.0, 0.0, 0.0, 7.0, 0.0], 1.0, 0).unwrap_err();
    println!("{}", wrong);
    assert_eq!(kept, learner.save());
    let mut other = Learner::new();
    other.load(&kept).unwrap();
    assert!(other.load(&kept[1..]).is_err());
    let mut y2 = 0.0;
    other.decide(&mut x, &mut y2).unwrap();
    learner.decide(&mut x, &mut y).unwrap();
    assert_eq!(y, y2);
}
"""


@needs_compiler
@pytest.mark.skipif(shutil.which("cargo") is None, reason="no Rust")
def test_cargo_builds_the_binding_and_it_decides_as_the_learner(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "crate")
    (tmp_path / "crate" / "examples").mkdir()
    ours, rounds, shown = plan_of(TEXT).learner(backend="c"), [], []
    for row in data()[:4]:
        shown.append(float(ours.decide()["y"]))
        ours.observe(**row)
        numbers = ", ".join(repr(float(v)) for v in row["price"].ravel())
        rounds.append("    learner.decide(&mut x, &mut y).unwrap();")
        rounds.append('    println!("{:?}", y);')
        rounds.append(f"    learner.observe(&[{numbers}], {row['type']!r}, {row['place']}).unwrap();")
    (tmp_path / "crate" / "examples" / "play.rs").write_text(MAIN.replace("ROUNDS", "\n".join(rounds)))
    done = subprocess.run(
        ["cargo", "run", "--quiet", "--offline", "--example", "play"],
        cwd=tmp_path / "crate",
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "warning" not in done.stderr, done.stderr
    first, *numbers, wrong = done.stdout.splitlines()
    np.testing.assert_allclose([float(v) for v in numbers], shown, rtol=1e-12, atol=1e-15)
    assert first.startswith("desk, ") and wrong.startswith("price[1, 1] is not finite")


def test_python_binding_without_a_library_says_how_to_build_it(tmp_path: Path) -> None:
    plan_of(TEXT).write(tmp_path, backend="c")
    done = subprocess.run(
        [sys.executable, "-c", "import desk; desk.Learner()"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 1 and "cmake -B build" in done.stderr
