"""Build of the playground: `python -m website.playground.build` writes `build/playground`, a folder for any server of static files.

Node.js with npm bundles the editor and the plots, zig compiles the learners for WebAssembly (`pip install 'ocolang[c]'`). The page
takes Python for changed models from `--pyodide`, an address or a folder beside the page; only the button that asks for it loads it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path

from website.examples import ROOT, names
from website.playground.plays import play_of, playable

OUT = ROOT / "build" / "playground"
PAGE = Path(__file__).parent / "page"
PYODIDE = "https://cdn.jsdelivr.net/pyodide/v314.0.7/full/"
"""Distribution of Python for browsers with NumPy, SciPy, Clarabel and CVXPY, in the version that the page was written for."""


def build(out: Path, pyodide: str, chosen: Iterable[str] | None = None) -> list[str]:
    """Write the page with the chosen examples, by default all that can be played; returns their names."""
    shutil.rmtree(out, ignore_errors=True)
    (out / "examples").mkdir(parents=True)
    plans = playable(chosen or names())
    for name, plan in plans.items():
        plan.write(out / "examples" / name, target="wasm")
        values = json.dumps(play_of(name, plan), separators=(",", ":"))
        (out / "examples" / f"{name}.json").write_text(values, encoding="utf-8")
    bundle(out)
    shutil.copy(PAGE.parent / "live.py", out)
    wheel = packaged(out)
    (out / "settings.json").write_text(
        json.dumps({"examples": list(plans), "pyodide": pyodide, "wheel": wheel}, indent=2) + "\n", encoding="utf-8"
    )
    return list(plans)


def bundle(out: Path) -> None:
    """Page, its style, and its scripts with all that they import in one file each."""
    shutil.copy(PAGE / "index.html", out)
    quiet = ["--ignore-scripts", "--no-package-lock", "--silent", "--no-audit", "--no-fund"]
    subprocess.run(["npm", "install", *quiet], cwd=PAGE, check=True)
    subprocess.run(["node", "build.mjs", str(out.resolve())], cwd=PAGE, check=True)
    (out / "playground.css").replace(out / "playground.bundled.css")
    shutil.copy(PAGE / "playground.css", out)


def packaged(out: Path) -> str:
    """Name of the wheel of this package, written beside the page."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(out), str(ROOT)]
    shutil.rmtree(ROOT / "build" / "lib", ignore_errors=True)  # files of an earlier build would get into the wheel
    subprocess.run(command, check=True)
    return next(out.glob("ocolang-*.whl")).name


def main() -> None:
    """Build as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=OUT, help="folder to write, made anew")
    parser.add_argument("--pyodide", default=PYODIDE, help="address or folder of Pyodide")
    parser.add_argument("examples", nargs="*", help="names of examples; all that can be played by default")
    given = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = build(given.out, given.pyodide, given.examples)
    print(f"{given.out}: {len(made)} examples ({', '.join(made)}). Look at it: python -m http.server -d {given.out}")


if __name__ == "__main__":
    main()
