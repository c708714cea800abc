"""Playground: models examined in Python as a browser has it, series in Node.js, and the page itself in Chromium without a network."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from website.playground.live import examined, packed

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "website" / "playground" / "page"
NODE = shutil.which("node")
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
ZIG = importlib.util.find_spec("ziglang") is not None or shutil.which("zig") is not None
MODEL = """
model desk
horizon T = 40
decision x[2] in box(0, 1)
stream a[2] ~ uniform(0, 1)
stream b ~ uniform(0.2, 1)
minimize sum_squares(x - a)
subject to
    cap: sum(x) <= b each round
"""
IN_A_BROWSER = """
import sys

class Absent:
    gone = {"typer", "osqp", "scs", "highspy", "sparsediffpy", "matplotlib", "xarray", "pyarrow", "fcntl", "resource", "termios"}
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in self.gone:
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)

sys.meta_path.insert(0, Absent())
for name in Absent.gone:
    sys.modules.pop(name, None)
import subprocess, threading

def refused(*args, **options):
    raise OSError(138, "Not supported in browsers")

subprocess.Popen.__init__ = refused
threading.Thread.start = refused
exec(open(sys.argv[1], encoding="utf-8").read())
print(examined(sys.stdin.read()))
"""


def in_a_browser(text: str) -> dict[str, Any]:
    """Result of the page's Python with the packages that Pyodide has, without processes and threads."""
    live = ROOT / "website" / "playground" / "live.py"
    command = [sys.executable, "-c", IN_A_BROWSER, str(live)]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(json.loads(done.stdout))


def test_examined_as_in_a_browser() -> None:
    here, there = json.loads(examined(MODEL)), in_a_browser(MODEL)
    assert here == there
    assert "is convex" in there["facts"] and there["algorithm"] in there["plan"] and "error" not in there
    assert there["rounds"] == 40 and there["timings"] == ["each round"] and len(there["rules"]) == 2


def test_examined_with_mistakes() -> None:
    refused = json.loads(examined(MODEL.replace("sum(x)", "sum(z)")))
    assert (
        list(refused) == ["error"]
        and "`z`" in refused["error"]
        and refused["error"].startswith("line 9:14: error OCO201")
    )
    endless = json.loads(examined("model m\nhorizon T = 9\ndecision x in box(0, 1)\nstream a\nminimize square(x - a)"))
    assert "OCO708" in endless["error"] and list(endless) == ["facts", "error"] and "is convex" in endless["facts"]


SERIES = """
import { moved, summed, unpacked, violation, row, stacked } from "SERIES";
const { stream, low, high, g } = JSON.parse(process.argv[2]);
const array = unpacked(stream);
const after = moved(array, [unpacked(low), unpacked(high)], 0.25, 3);
const { total, broken } = violation(unpacked(g), ["each round", "on average"]);
const rows = stacked(Array.from({ length: array.shape[0] }, (_, t) => row(array, t)));
console.log(JSON.stringify({ moved: [...after.numbers], sums: [...summed(array.numbers)], total: [...total], broken,
                             same: rows.numbers.join() === array.numbers.join() }));
"""


@pytest.mark.skipif(NODE is None, reason="Node.js is needed")
def test_series_of_the_page(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    stream, g = rng.uniform(-1, 1, (9, 2)), rng.uniform(-1, 1, (9, 2))
    low, high = np.array([-1.0, -1.0]), np.array([1.0, np.inf])
    script = tmp_path / "series.mjs"
    script.write_text(SERIES.replace("SERIES", (PAGE / "series.mjs").as_uri()), encoding="utf-8")
    given = {name: packed(v) for name, v in {"stream": stream, "low": low, "high": high, "g": g}.items()}
    done = subprocess.run([str(NODE), str(script), json.dumps(given)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    expected = stream.copy()
    expected[2:, 0] = np.clip(stream[2:, 0] + 0.5, -1, 1)
    np.testing.assert_allclose(np.reshape(result["moved"], (9, 2)), expected)
    np.testing.assert_allclose(result["sums"], stream.ravel().cumsum())
    each, mean = np.maximum(g[:, 0], 0).cumsum(), np.maximum(g[:, 1].cumsum(), 0)
    np.testing.assert_allclose(result["total"], each + mean)
    assert result["broken"] == int((g[:, 0] > 0).sum()) and result["same"]


@pytest.mark.thorough
@pytest.mark.skipif(not (NODE and CHROMIUM and ZIG), reason="Node.js with npm, Chromium and zig are needed")
def test_page_without_a_network(tmp_path: Path) -> None:
    """Learners of the page decide as NumPy's did, moved data change later decisions alone, and changed models go to the page's Python."""
    from website.playground.build import build

    out = tmp_path / "page"
    examples = ["tracking", "online_qp", "charging"]
    assert build(out, "python/", examples) == examples
    client = Path(__file__).parent / "playground_client.mjs"
    modules = PAGE / "node_modules" / "playwright-core" / "index.mjs"
    command = [
        str(NODE),
        str(client),
        modules.as_uri(),
        str(CHROMIUM),
        str(out),
        json.dumps(json.loads(examined(MODEL))),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    seen = json.loads(done.stdout)
    assert seen["errors"] == []
    for name, apart in seen["apart"].items():
        assert apart < 1e-9, name
    assert seen["before"] == 0 and seen["after"] > 1e-3
    assert "pip install ocolang" in seen["unavailable"]
    assert seen["examined"].startswith("the learner") and "Checked" in seen["status"]
    assert seen["mistake"] == "OCO000 as the page shows it"
    assert seen["panels"] == ["facts", "plan", "run"]
