"""Every command, learner, file and picture once, with the versions of the libraries that are installed: `python tests/smoke.py`.

`python tests/smoke.py WORDS` takes the steps with such a word in their names. `python tests/smoke.py --constraints oldest` prints the
lower bounds of pyproject.toml as constraints for pip; with `newest` it prints none.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
EXTRAS = ("all",)
"""Extras that this script needs; a compiler of `c` is used where the system has none."""
COMPILER = any(map(shutil.which, ("cc", "gcc", "clang"))) or find_spec("ziglang") is not None
BOUND = re.compile(r"([A-Za-z0-9_-]+)(?:\[[a-z,]+\])?>=([0-9.]+)")
STEPS: list[Callable[[], None]] = []


def constraints() -> list[str]:
    """`numpy==1.26` for `numpy>=1.26` in pyproject.toml, extras included."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    stated = [
        *project["dependencies"],
        *(line for lines in project["optional-dependencies"].values() for line in lines),
    ]
    return [f"{match[1]}=={match[2]}" for match in map(BOUND.fullmatch, stated) if match]


def step(function: Callable[[], None]) -> Callable[[], None]:
    STEPS.append(function)
    return function


def oco(*words: object, status: int = 0) -> str:
    """Output of the command on both streams; it must end with this status and without a traceback."""
    command = [sys.executable, "-m", "oco", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    said = done.stdout + done.stderr
    assert done.returncode == status and "Traceback" not in said, (
        f"oco {' '.join(command[3:])}: {done.returncode}\n{said}"
    )
    return said


def has(said: str, *words: str) -> None:
    """Fail where a word is missing in what was printed."""
    missing = [word for word in words if word not in said]
    assert not missing, f"no {missing} in:\n{said}"


def example(name: str) -> str:
    """A copy of an example in this folder."""
    shutil.copy(ROOT / "examples" / f"{name}.oco", f"{name}.oco")
    return f"{name}.oco"


@step
def version_and_help() -> None:
    has(oco("--version"), f"oco {metadata.version('ocolang')}")
    script = shutil.which("oco", path=os.path.dirname(sys.executable)) or "oco"
    done = subprocess.run([script, "--version"], capture_output=True, text=True)
    assert done.stdout.startswith("oco "), done
    has(oco("--help"), "check", "explain", "compile", "--effort")
    for command in ("check", "explain", "compile", "run", "data", "tune", "lint", "fmt", "new", "help", "algorithms"):
        has(oco(command, "--help"), "Usage: oco", command)
    has(oco("help", "OCO201"), "Example")
    has(oco("help"), "OCO101", "OCO999")
    has(oco("help", "check"), "--verify")
    has(oco("algorithms"), "coldq", "needs:")
    assert json.loads(oco("algorithms", "--json"))["version"] == 1


@step
def misuse_is_status_two_and_mistakes_status_one() -> None:
    has(oco("check", status=2), "MODEL.oco")
    has(oco("chek", "first.oco", status=2), "chek")
    has(oco("run", "first.oco", "--rounds", "none", status=2), "--rounds")
    has(oco("--effort", "-1", "check", "first.oco", status=1), "OCO526")
    has(oco("check", "nowhere.oco", status=1), "OCO901")
    Path("wrong.oco").write_text("model wrong\nhorizon T = 5\ndecision x in box(0, 1)\nminimize y\n")
    has(oco("check", "wrong.oco", status=1), "wrong.oco:4", "OCO201")


@step
def new_check_explain_and_format() -> None:
    has(oco("new", "first"), "first.oco written")
    has(oco("check", "first.oco"), "loss.convex", "proved")
    assert json.loads(oco("check", "first.oco", "--json"))["version"] == 1
    has(oco("check", "first.oco", "--why", "loss.convex"), "loss.convex")
    has(oco("check", "first.oco", "--verify"), "unbroken")
    has(oco("explain", "first.oco"), "chosen", "refused")
    has(oco("explain", "first.oco", "--frontier"), "regret")
    assert json.loads(oco("explain", "first.oco", "--json"))["verdicts"]
    Path("loose.oco").write_text(Path("first.oco").read_text().replace(" = ", "   ="))
    has(oco("fmt", "--check", "loose.oco", status=1), "would change")
    oco("fmt", "loose.oco")
    oco("fmt", "--check", "loose.oco")
    for name in ("portfolio", "tracking"):
        has(oco("check", example(name)), "loss.convex")


ROUNDS = 48


def rounds() -> dict[str, Any]:
    """Data of `shop.oco`, written as every kind of file."""
    import numpy as np

    Path("shop.oco").write_text(
        f"""model shop
horizon T = {ROUNDS}
param w[3] = file("w.json")
decision x[3] in box(0, 1)
stream price[3] in [0, 10]
stream jobs ~ poisson(5) in [0, 20]
minimize price @ (w * x) + sum_squares(x)
subject to
    service: jobs <= 50 * sum(x)    each round
"""
    )
    Path("w.json").write_text("[1, 2.5, 3]")
    rng = np.random.default_rng(0)
    return {"price": rng.uniform(0, 10, (ROUNDS, 3)), "jobs": rng.integers(0, 20, ROUNDS)}


@step
def data_of_every_kind() -> None:
    import numpy as np
    import pyarrow
    from pyarrow import feather, parquet

    data = rounds()
    columns = {f"price[{k}]": data["price"][:, k] for k in range(3)} | {"jobs": data["jobs"]}
    table = pyarrow.table({"time": [f"2020-{k % 12 + 1:02}-{k // 12 + 1:02}" for k in range(ROUNDS)], **columns})
    parquet.write_table(pyarrow.table({"w": [1.0, 2.5, 3.0]}), "w.parquet")
    Path("other.oco").write_text(Path("shop.oco").read_text().replace("w.json", "w.parquet"))
    assert oco("check", "other.oco") == oco("check", "shop.oco")
    parquet.write_table(table, "shop.parquet")
    feather.write_feather(table, "shop.feather", compression="zstd")
    lists = pyarrow.table({"price": data["price"].tolist(), "jobs": data["jobs"]})
    with pyarrow.ipc.new_stream("shop.arrow", lists.schema) as writer:
        writer.write_table(lists)
    np.savez_compressed("shop.npz", **data)
    cells = [",".join(columns), *(",".join(map(repr, map(float, row))) for row in zip(*columns.values()))]
    Path("shop.csv").write_text("\n".join(cells) + "\n")
    said = [oco("data", "shop.oco", "--data", f"shop.{kind}") for kind in ("csv", "npz", "parquet", "feather", "arrow")]
    for one in said:
        has(one, f"{ROUNDS} rounds", "price: price", "Nothing is wrong with it.")
    losses = {
        kind: json.loads(_json("run", "shop.oco", "--data", f"shop.{kind}")) for kind in ("csv", "parquet", "arrow")
    }
    assert len({run["runs"][0]["loss"] for run in losses.values()}) == 1, losses


def _json(*words: object) -> str:
    """The JSON document that a command prints, without what it says on stderr."""
    command = [sys.executable, "-m", "oco", *map(str, words), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@step
def run_with_results_tables_and_replay() -> None:
    said = oco("run", "shop.oco", "--data", "shop.csv", "--out", "results", "--journal", "journal")
    has(said, "best fixed decision", "best of each round", "violation", "guarantee", "open results/report.html")
    written = {path.name for path in Path("results").iterdir()}
    assert {"trace.nc", "report.html", "summary.json", "regret.png", "violation.png", "decisions.png"} <= written, (
        written
    )
    assert (
        Path("results/regret.png").read_bytes().startswith(b"\x89PNG")
        and "<svg" in Path("results/report.html").read_text()
    )
    has(oco("run", "shop.oco", "--data", "shop.csv", "--out", "results", status=1), "OCO905")
    has(oco("run", "--replay", "results/trace.nc"), "the same bit for bit")
    table = ("run", "shop.oco", "--data", "shop.csv", "--seeds", "2", "--algorithms", "coldq,ogd", "--out", "table")
    has(oco(*table, "--grid", "epsilon=0.1,0.5"), "coldq", "written to table/")
    assert {"sweep.nc", "comparison.png", "report.html"} <= {path.name for path in Path("table").iterdir()}


@step
def tune_and_compile() -> None:
    has(oco("tune", "shop.oco", "--data", "shop.csv"), "Chosen:")
    has(oco("compile", "shop.oco", "-o", "shop_learner.py"), "NumPy alone")
    done = subprocess.run([sys.executable, "shop_learner.py", "shop.csv"], capture_output=True, text=True)
    assert done.returncode == 0 and f"{ROUNDS} rounds" in done.stdout, done
    has(oco("compile", "shop.oco", "--backend", "c", "-o", "shop_c"), "C99")
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    words = [compiler] if compiler else [sys.executable, "-m", "ziglang", "cc"]
    if COMPILER:
        sources = sorted(map(str, Path("shop_c").glob("*.c")))
        subprocess.run([*words, "-std=c99", *sources, "-lm", "-o", "shop_c/a.out"], check=True)
        assert subprocess.run(["shop_c/a.out"], capture_output=True).returncode == 0


@step
def learners_states_and_journals() -> None:
    import numpy as np

    import oco as library

    data, plan = rounds(), library.compile(library.load("shop.oco"))
    decided = {}
    for backend in ("numpy", "c") if COMPILER else ("numpy",):
        learner = plan.learner(backend=backend)
        for k in range(ROUNDS):
            decided[backend, k] = learner.decide()
            learner.observe(price=data["price"][k], jobs=data["jobs"][k])
        learner.save(f"{backend}.state")
        assert (library.restore(f"{backend}.state").decide() == learner.decide()).all()
        assert np.allclose(decided[backend, ROUNDS - 1], decided["numpy", ROUNDS - 1], atol=1e-12)
        with library.open(plan, f"{backend}_journal", backend=backend) as kept:
            kept.decide()
            kept.observe(price=data["price"][0], jobs=data["jobs"][0])
    fleet = plan.fleet(3)
    fleet.decide()
    has(plan._repr_html_(), "<table")
    has(plan._repr_latex_(), "$")


@step
def traces_saved_and_loaded() -> None:
    import numpy as np
    import pyarrow.parquet

    import oco as library

    data, plan = rounds(), library.compile(library.load("shop.oco"))
    trace = plan.run(data)
    for kind in ("nc", "zarr", "parquet"):
        trace.save(f"trace.{kind}")
    for kind in ("nc", "zarr"):
        again = library.load_trace(f"trace.{kind}")
        assert (again.loss == trace.loss).all() and again.labels == trace.labels, kind
        assert again.regret("static") is not None
    assert np.allclose(pyarrow.parquet.read_table("trace.parquet")["loss"].to_numpy(), trace.loss)
    assert trace.to_dataset().sizes["round"] == ROUNDS
    trace.plot().savefig("trace.png")
    trace.plot(panels="regret").savefig("regret.svg")


@step
def plots_onto_axes_of_others() -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    import oco as library

    trace = library.compile(library.load("shop.oco")).run(rounds())
    figure, axes = pyplot.subplots(1, 2)
    assert trace.plot(panels=["regret", "violation"], axes=axes) is figure


@step
def notebook_cells() -> None:
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "oco")
    shell.run_cell_magic("oco", "cell", Path(example("tracking")).read_text())
    assert "cell" in shell.user_ns


@step
def models_built_in_python() -> None:
    import oco as library

    text = Path(example("tracking")).read_text()
    model = library.parse(text)
    assert library.check(model)["loss.convex"]
    facts = library.check(library.load(example("portfolio")))
    assert facts["loss.convex"]
    # A matrix, kept as factors, and a comparator that takes a solver.
    spectral = """model spectral
horizon T = 20
decision X[3, 3] in spectrahedron(3)
stream C[3, 3] ~ uniform(-1, 1)
minimize sum(C * X)
"""
    trace = library.compile(library.parse(spectral)).run(rounds=20)
    assert trace.regret("static") is not None


def main() -> int:
    """Run all steps in a folder of their own; 1 where one failed."""
    names = ("numpy", "scipy", "cvxpy", "typer", "click", "matplotlib", "xarray", "h5netcdf", "zarr", "pyarrow")
    there = [f"{name} {metadata.version(name)}" for name in names if find_spec(name) is not None]
    wanted = sys.argv[1:]
    print(f"Python {sys.version.split()[0]}, {', '.join(there)}; {'a' if COMPILER else 'no'} C compiler")
    failed = 0
    with tempfile.TemporaryDirectory(prefix="oco-smoke-") as folder:
        os.chdir(folder)
        os.environ["XDG_CACHE_HOME"] = os.path.join(folder, "cache")
        for one in STEPS:
            if wanted and not any(word in one.__name__ for word in wanted):
                continue
            begin, said = time.monotonic(), "ok"
            try:
                one()
            except Exception as error:
                failed, said = failed + 1, f"FAILED: {type(error).__name__}: {str(error)[-3000:]}"
            print(f"{one.__name__.replace('_', ' ')}: {said} ({time.monotonic() - begin:.1f} s)", flush=True)
        os.chdir(ROOT)
    return int(failed > 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--constraints"]:
        print("\n".join(constraints() if sys.argv[2:] == ["oldest"] else []))
    else:
        sys.exit(main())
