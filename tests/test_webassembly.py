"""Learners in WebAssembly: run by Node.js through the ES module beside them, they decide as those of NumPy."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_c_bindings import CONTEXT, TEXT, data, plan_of

import oco
from oco.backends.c99 import webassembly
from oco.backends.c99.arithmetic import SINGLE
from oco.backends.c99.javascript import binding
from oco.backends.c99.module import emit
from oco.dsl.diagnostics import OcoError

CLIENT = Path(__file__).parent / "webassembly_client.mjs"
LATER = CONTEXT.replace("model desk", "model later").replace("minimize", "feedback full delayed 2\nminimize")
WITHOUT_NODE = shutil.which("node") is None
WITHOUT_ZIG = importlib.util.find_spec("ziglang") is None and shutil.which("zig") is None
needs_both = pytest.mark.skipif(WITHOUT_NODE or WITHOUT_ZIG, reason="Node.js and zig are needed (pip install ziglang)")


@cache
def rows() -> list[dict[str, Any]]:
    return [{name: np.asarray(value).tolist() for name, value in row.items()} for row in data() + data()[::-1]]


def in_node(plan: Any, folder: Path, **task: Any) -> dict[str, Any]:
    """What the client makes of a task with the module of a plan."""
    plan.write(folder, target="wasm", precision=task.pop("precision", None))
    module = next(folder.glob("*.mjs")).as_uri()
    text = json.dumps({"module": module, "rounds": rows(), "wrong": [], **task})
    done = subprocess.run(["node", str(CLIENT)], input=text, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def held_against_numpy(plan: Any, played: list[dict[str, Any]], tolerance: float) -> None:
    trace = plan.run(data=iter(rows()), backend="numpy")
    assert len(played) == len(rows())
    for t, made in enumerate(played):
        np.testing.assert_allclose(made["decision"]["x"], trace.decisions["x"][t], atol=tolerance)
        np.testing.assert_allclose(made["decision"]["y"], trace.decisions["y"][t], atol=tolerance)
        np.testing.assert_allclose(made["loss"], trace.loss[t], atol=10 * tolerance)
        np.testing.assert_allclose(made["constraints"], trace.constraints[t], atol=10 * tolerance)


@needs_both
def test_decides_as_numpy(tmp_path: Path) -> None:
    plan = oco.compile(oco.parse(TEXT), settings="paper", certify="static")
    good = rows()[0]
    wrong = [good | {"price": [[0, 0, 0], [0, None, 0]]}, good | {"type": 9}, good | {"place": 0.5}, {"type": 1}]
    wrong += [good | {"price": [0] * 5}, good | {"type": "1"}]
    result = in_node(plan, tmp_path, wrong=wrong, certificate=True, start={"x": [1, 0, 0], "y": 0.5})
    held_against_numpy(plan, result["played"], 1e-9)
    half = len(rows()) // 2
    assert result["again"] == result["played"][half:] and result["unchanged"] and result["alarm"] is None
    assert result["started"] == {"x": [1, 0, 0], "y": 0.5}
    learner = plan.learner(backend="numpy")
    for row in rows():
        learner.decide()
        learner.observe(**row)
    proof = learner.certificate()
    np.testing.assert_allclose(
        result["certificate"]["least"] - result["certificate"]["rounding"], proof.least, atol=1e-9
    )
    codes, texts = zip(*result["wrong"])
    assert codes[0] == 0 and texts[0] == "price holds null, not a number"
    assert codes[1] > 0 and texts[1] == "type is not finite, or out of its bounds"
    assert texts[2:4] == ("place holds integers, not 0.5", "nothing is given for price, place")
    assert texts[4:] == ("price has 6 entries, not 5", "type holds text, not a number")
    assert result["damaged"] == [1, "this is no whole state of this learner"]


@needs_both
def test_contexts_and_later_feedback(tmp_path: Path) -> None:
    plan = plan_of(LATER)
    result = in_node(plan, tmp_path, late=3)
    assert result["late"][:5] == [[1], [1, 2], [1, 2, 3], [2, 4], [4, 5]]
    assert result["certificate"][1].startswith("this learner keeps no sums of a certificate")


def test_missing_tools_are_errors_with_a_way_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plan = plan_of(TEXT)
    for options, hint in {
        ("riscv", None): "targets: wasm",
        ("wasm", "numpy"): "leave the backend out, or take c",
    }.items():
        target, backend = options
        with pytest.raises(OcoError, match="learners are not compiled for") as caught:
            plan.write(tmp_path, backend=backend, target=target)
        assert (caught.value.code, caught.value.hint) == ("OCO690", hint)
    with pytest.raises(OcoError, match="no numbers of precision 'float16'"):
        plan.write(tmp_path, target="wasm", precision="float16")
    failing = (sys.executable, "-c", "raise SystemExit('no space left')")
    monkeypatch.setattr(webassembly, "zig", lambda: failing)
    with pytest.raises(OcoError, match="no space left") as caught:
        plan.write(tmp_path, target="wasm")
    assert caught.value.code == "OCO692"
    monkeypatch.undo()
    monkeypatch.setattr(webassembly, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(OcoError, match="no compiler for WebAssembly") as caught:
        plan.write(tmp_path, target="wasm")
    assert caught.value.code == "OCO691" and "pip install ziglang" in caught.value.hint
    assert not list(tmp_path.iterdir())


def test_types_name_what_the_model_names() -> None:
    plan = plan_of(CONTEXT)
    texts = binding(emit(plan.program, plan.contract))
    types = texts["desk.d.mts"]
    before, revealed = (types.split(f"export interface {name} {{")[1].split("}")[0] for name in ("Before", "Round"))
    assert '"type": number' in before and "price" not in before
    assert '"price": Numbers; // 2 x 3' in revealed and '"place": number' in revealed
    assert "decide(given: Before): Decision" in types and 'start?: { "x"?: Numbers; "y"?: number }' in types
    assert json.loads(texts["package.json"])["exports"]["."]["types"] == "./desk.d.mts"
    assert "Float32Array" in binding(emit(plan.program, plan.contract, arithmetic=SINGLE))["desk.d.mts"]
