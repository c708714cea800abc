"""The command line: what it prints where, what it writes, and its exit status."""

import json
import math
import os
import re
import runpy
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from thorough import corners, one_in

from oco import load_trace
from oco.cli import main
from oco.cli.app import COMMANDS

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
NYISO = EXAMPLES / "data" / "nyiso_2017-05.csv"
ALL = sorted(p.stem for p in EXAMPLES.glob("*.oco"))
EXPLAINED = ("datacenter", "pacing")
DRAWN = """model drawn
horizon T = 60
decision x[2] in box(-1, 1)
stream a[2] ~ uniform(-1, 1)
minimize sum_squares(x - a)
subject to
    cap: sum(x) <= 1 each round
using coldq with alpha = 2, epsilon = 1, gamma = 1
"""
"""Small model whose rounds are drawn, for what commands do with files."""

SHIFT = """model shift
horizon T = 1000
decision x[2] in box(0, 1)
stream price[2] in [-1, 1]
stream need ~ uniform(0.2, 1)
minimize price @ x
subject to
    cover: sum(x) >= need each round
using coldq
"""
"""Model of which data give some streams."""


@pytest.fixture
def drawn(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "drawn.oco"
    path.write_text(DRAWN)
    return path


@pytest.fixture
def oco(tmp_path, monkeypatch, capsys):
    """Runs `oco ...` in an empty folder: (status, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def run(*args):
        status = main([str(a) for a in args])
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


def test_the_script_is_installed_and_gives_its_status(tmp_path):
    words = [sys.executable, "-m", "oco", "check", "nowhere.oco"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert done.returncode == 1 and not done.stdout
    assert "OCO901" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("chosen", [None, "2"])
def test_a_command_has_one_thread_of_linear_algebra_unless_the_user_says_otherwise(chosen):
    """In the OpenBLAS of NumPy, which is loaded after the command begins; a machine of one core has no more."""
    code = """if True:
        import ctypes, os, pathlib, sys
        from oco.cli import main
        sys.argv = ["oco", "--version"]
        main()
        import numpy
        files = pathlib.Path(numpy.__file__).parent.with_name("numpy.libs").glob("*openblas*")
        counts = [getattr(ctypes.CDLL(str(p)), "scipy_openblas_get_num_threads64_", lambda: 0)() for p in files]
        print(os.environ["OPENBLAS_NUM_THREADS"], *counts)
    """
    environment = {k: v for k, v in os.environ.items() if k not in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")}
    environment |= {} if chosen is None else {"OPENBLAS_NUM_THREADS": chosen}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=60)
    named, *counts = done.stdout.splitlines()[-1].split()
    assert named == (chosen or "1") and {int(c) for c in counts} <= {0, 1, min(int(named), os.cpu_count() or 1)}, done
    assert chosen is not None or {int(c) for c in counts} <= {0, 1}


def test_a_tuned_run_is_of_the_rounds_that_the_search_did_not_see(oco, tmp_path):
    model = "model m\nhorizon T = 80\ndecision x[2] in box(-1, 1)\nstream p[2] in [-1, 1]\nminimize p @ x\nusing ogd\n"
    (tmp_path / "m.oco").write_text(model)
    rows = "\n".join(f"{math.sin(k):.6f},{math.cos(k):.6f}" for k in range(80))
    (tmp_path / "p.csv").write_text(f"p[0],p[1]\n{rows}\n")
    status, out, err = oco("run", "m.oco", "--data", "p.csv", "--settings", "tuned")
    assert status == 0, err
    assert "tuned on rounds 1 to 48 of the data; the run is rounds 49 to 80" in err
    assert "in 32 rounds" in out


@pytest.mark.parametrize("command", ["check", "explain", "compile", "tune", "data", "run"])
def test_what_is_missing_is_treated_alike_by_all_that_take_data(oco, tmp_path, command):
    model = "model m\nhorizon T = 5\ndecision x[2] in box(-1, 1)\nstream p[2] in [-1, 1]\nminimize p @ x\nusing ogd\n"
    (tmp_path / "m.oco").write_text(model)
    rows = "\n".join(f"{math.sin(k):.6f},{math.cos(k):.6f}" for k in range(49))
    (tmp_path / "p.csv").write_text(f"p[0],p[1]\n0.1,0.2\n,0.3\n{rows}\n")
    words = (command, "m.oco", "--data", "p.csv")
    status, _, err = oco(*words)
    assert status == 1 and "OCO827" in err and "line 3" in err and "--on-missing hold" in err
    for how, said in (
        ("hold", "missing values that hold the last one before: `p[0]` 1"),
        ("skip", "1 of 51 rounds left out"),
    ):
        status, out, err = oco(*words, "--on-missing", how, *(["--force"] if command == "compile" else []))
        assert status == 0, err
        assert said in out + err
    status, _, err = oco(*words, "--on-missing", "drop")
    assert status == 1 and "OCO826" in err and "`drop`" in err


def test_run_on_real_prices_prints_the_plan_and_the_measures_and_writes_them(oco, tmp_path, undrawn):
    status, out, err = oco(
        "run", EXAMPLES / "job_scheduling.oco", "--data", NYISO, "--rounds", "24", "--out", "results", "--details"
    )
    assert status == 0, err
    for words in (
        "loss.convex",
        "hedged",
        "guarantee",
        "static regret",
        "dynamic regret",
        "hard violation",
        "rounds a second",
    ):
        assert words in out
    assert "drawn from the model's distribution" in err and "NORTH" in err
    assert "\x1b[" not in out + err, "colour only on a terminal"
    written = {p.name for p in (tmp_path / "results").iterdir()}
    assert {"trace.nc", "regret.png", "violation.png", "summary.json"} <= written
    summary = json.loads((tmp_path / "results" / "summary.json").read_text())
    assert summary["version"] == 1 and summary["runs"][0]["rounds"] == 24


def test_a_price_outside_its_bounds_is_an_error_that_names_the_place(oco):
    zones = ("CAPITL", "CENTRL", "DUNWOD", "GENESE", "HUD_VL", "LONGIL", "MHK_VL", "MILLWD", "NYC")
    columns = ",".join([f"price.{z}" for z in zones] + ["NORTH"])
    status, out, err = oco("run", EXAMPLES / "job_scheduling.oco", "--data", NYISO, "--map", f"price={columns}")
    assert status == 1 and not out
    assert "NORTH" in err and "-1051" in err and re.search(r"OCO8\d\d", err)


@pytest.mark.parametrize("name", one_in(3, ALL))
def test_every_example_checks_and_is_formatted(oco, name):
    path = EXAMPLES / f"{name}.oco"
    status, out, err = oco("check", path)
    assert status == 0 and "loss.convex" in out, err
    status, out, err = oco("fmt", "--check", path)
    assert status == 0, err


@pytest.mark.parametrize("name", corners(ALL, EXPLAINED))
def test_every_example_is_explained(oco, name):
    status, out, err = oco("explain", EXAMPLES / f"{name}.oco")
    assert status == 0 and "coldq" in out and "mirror-descent" in out, err


def test_facts_as_json_have_a_version(oco):
    status, out, err = oco("check", EXAMPLES / "tracking.oco", "--json")
    assert status == 0 and json.loads(out)["version"] == 1, err


def test_explain_as_json_has_a_verdict_for_every_algorithm(oco):
    _, listed, _ = oco("algorithms", "--json")
    _, out, _ = oco("explain", EXAMPLES / "datacenter.oco", "--json")
    verdicts = json.loads(out)["verdicts"]
    assert {v["algorithm"] for v in verdicts} == {a["name"] for a in json.loads(listed)["algorithms"]}
    assert all(v["reasons"] for v in verdicts)


def test_compile_writes_a_module_once_and_again_only_with_force(oco, tmp_path, drawn):
    assert oco("compile", drawn)[0] == 0
    text = (tmp_path / "drawn_numpy/drawn_learner.py").read_text()
    assert "import oco" not in text and "class Learner" in text
    status, _, err = oco("compile", drawn)
    assert status == 1 and "OCO905" in err
    assert oco("compile", drawn, "--force")[0] == 0
    assert (tmp_path / "drawn_numpy/drawn_learner.py").read_text() == text


def test_backends_that_are_not_there_are_refused_in_a_sentence(oco, tmp_path, drawn):
    status, out, err = oco("compile", drawn, "--backend", "fortran")
    assert status == 1 and not out and "backend" in err
    assert not list(tmp_path.iterdir())


def test_new_makes_a_model_that_checks_and_runs(oco):
    assert oco("new", "shop")[0] == 0
    assert oco("check", "shop.oco")[0] == 0
    assert oco("fmt", "--check", "shop.oco")[0] == 0
    status, out, _ = oco("run", "shop.oco", "--rounds", "20")
    assert status == 0 and "best fixed decision" in out


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_shows_no_types_of_python(oco, command):
    status, out, _ = oco(*command.split(), "-h")
    assert status == 0 and "Usage: oco" in out and "<" not in out


def test_help_explains_codes(oco):
    status, out, _ = oco("help", "OCO203")
    assert status == 0 and "Example" in out
    status, out, _ = oco("help")
    assert status == 0 and "OCO203" in out
    status, _, err = oco("help", "OCO204x")
    assert status == 1 and "OCO907" in err


def test_wrong_models_are_said_on_stderr_with_status_one(oco, tmp_path):
    (tmp_path / "wrong.oco").write_text("model wrong\nhorizon T = 10\ndecision x in box(0, 1)\nminimize y + z\n")
    status, out, err = oco("check", "wrong.oco")
    assert status == 1 and not out
    assert "wrong.oco:4:10" in err and "2 errors" in err and "Traceback" not in err


@pytest.mark.parametrize(
    "words", [["nonsense"], ["check"], ["run", "x.oco", "--rounds", "0"], ["check", "x.oco", "--param", "n"]]
)
def test_misuse_ends_with_status_two(oco, words):
    status, _, err = oco(*words)
    assert status == 2 and err


def test_fmt_formats_in_place_and_says_so(oco, tmp_path):
    path = tmp_path / "m.oco"
    path.write_text("model m\nhorizon T=10\ndecision x in box(0,1)\nminimize x**2 # a comment\n")
    status, _, err = oco("fmt", "--check", "m.oco")
    assert status == 1 and "would change" in err
    assert oco("fmt", "m.oco")[0] == 0
    assert "horizon T = 10" in path.read_text() and "# a comment" in path.read_text()
    assert oco("fmt", "--check", "m.oco")[0] == 0


def test_a_folder_that_cannot_be_written_ends_a_run_before_its_first_round(oco, tmp_path, drawn):
    (tmp_path / "taken").write_text("")
    status, out, err = oco("run", drawn, "--rounds", "5", "--out", tmp_path / "taken")
    assert status == 1 and not out and "OCO903" in err


def test_an_interrupted_command_says_so_in_a_sentence(oco, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    def interrupted_in_a_class(*_):
        """Python wraps what `__set_name__` raises in an error of its own."""
        type("Owner", (), {"field": type("Field", (), {"__set_name__": interrupted})()})

    for raised in (interrupted, interrupted_in_a_class):
        monkeypatch.setattr("oco.load", raised)
        assert oco("check", "m.oco") == (1, "", "oco: interrupted\n")


def test_run_writes_its_results_once_and_again_only_with_force(oco, tmp_path, drawn, undrawn):
    words = ("run", drawn, "--rounds", "5", "--out", "results")
    assert oco(*words)[0] == 0
    before = {p.name: p.read_bytes() for p in (tmp_path / "results").iterdir()}
    status, out, err = oco(*words, "--seed", "1")
    assert status == 1 and not out and "OCO905" in err and "trace.nc is there already, and 9 more" in err
    assert {p.name: p.read_bytes() for p in (tmp_path / "results").iterdir()} == before
    assert oco(*words, "--seed", "1", "--force")[0] == 0
    assert (tmp_path / "results" / "trace.nc").read_bytes() != before["trace.nc"]


def test_a_table_of_runs_goes_on_in_its_own_folder_and_in_no_other(oco, drawn, undrawn):
    table = ("run", drawn, "--rounds", "5", "--seeds", "2", "--engine", "here", "--out", "results")
    table += ("--comparators", "none", "--baselines", "none")
    assert oco(*table)[0] == 0 and oco(*table)[0] == 0
    other = [w if w != "5" else "6" for w in table]
    status, out, err = oco(*other)
    assert status == 1 and not out and "OCO905" in err and "sweep.nc" in err
    assert oco(*other, "--force")[0] == 0


INPUTS = {
    "m.oco": ("compile", "m.oco", "-o", "m.oco"),
    "./m.oco": ("compile", "m.oco", "-o", "./m.oco"),
    "link.py": ("compile", "m.oco", "-o", "link.py"),
    "hard.py": ("compile", "m.oco", "-o", "hard.py"),
    "w.json": ("compile", "m.oco", "-o", "w.json"),
    "s.csv": ("compile", "m.oco", "--data", "s.csv", "-o", "s.csv"),
    "out/summary.json": ("run", "m.oco", "--rounds", "3", "--out", "out"),
}


@pytest.mark.parametrize(
    ("name", "force"),
    corners(product(INPUTS, [True, False]), [*product(INPUTS, [True]), ("m.oco", False), ("out/summary.json", False)]),
)
def test_what_a_command_reads_is_never_replaced(oco, tmp_path, name, force):
    """The model, the data, the files that the model names: under their names, through links, and with --force too."""
    (tmp_path / "out").mkdir()
    weights = "out/summary.json" if name.startswith("out") else "w.json"
    (tmp_path / weights).write_text("[1, 2]")
    text = f"""model m
horizon T = 3
param w[2] = file("{weights}")
decision x[2] in box(0, 1)
stream s[2] ~ uniform(0, 1)
minimize s @ (w * x)
using ogd
"""
    (tmp_path / "m.oco").write_text(text)
    (tmp_path / "s.csv").write_text("s[0],s[1]\n0.1,0.2\n0.3,0.4\n0.5,0.6\n")
    (tmp_path / "link.py").symlink_to("m.oco")
    os.link(tmp_path / "m.oco", tmp_path / "hard.py")
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    status, out, err = oco(*INPUTS[name], *["--force"] * force)
    assert status == 1 and not out and "OCO910" in err
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before


def test_explain_tells_of_rows_that_follow_from_others(oco, tmp_path):
    text = "model m\nhorizon T = 100\ndecision x[3] in box(0, 1)\nstream c[3] in [-1, 1]\nminimize c @ x\nsubject to\n"
    (tmp_path / "m.oco").write_text(
        text + "    a: x[0] + x[1] == 1 on average\n    b: 2 * x[0] + 2 * x[1] == 2 on average\n"
    )
    status, _, err = oco("explain", tmp_path / "m.oco")
    assert status == 0 and "OCO601" in err


def test_what_is_compiled_for_data_decides_as_it_ran(oco, tmp_path, undrawn):
    """The module that `oco compile --data` writes, on the rounds that `oco run` measured, which it writes beside it: `need` is drawn."""
    model, data = tmp_path / "shift.oco", tmp_path / "days.csv"
    model.write_text(SHIFT)
    rows = "".join(f"{math.sin(k):.6f},{math.cos(k):.6f}\n" for k in range(48))
    data.write_text(f"price[0],price[1]\n{rows}")
    words = (
        "--data",
        data,
        "--out",
        tmp_path / "out",
        "--backend",
        "numpy",
        "--comparators",
        "none",
        "--baselines",
        "none",
    )
    assert oco("run", model, *words)[0] == 0
    status, out, err = oco("compile", model, "--data", data, "-o", tmp_path / "module.py")
    assert status == 0 and "planned for 48" in out + err and "module_rounds.csv" in out
    trace = load_trace(tmp_path / "out" / "trace.nc")
    namespace = runpy.run_path(str(tmp_path / "module.py"))
    learner = namespace["Learner"]()
    for t, streams in enumerate(namespace["rounds_of"](str(tmp_path / "module_rounds.csv"))):
        assert np.array_equal(learner.decide(), trace.decisions[t]), t
        learner.observe(**streams)
    assert t + 1 == trace.rounds


def test_data_that_a_module_can_read_are_not_written_again(oco, tmp_path):
    (tmp_path / "m.oco").write_text(
        "model m\nhorizon T = 3\ndecision x in box(0, 1)\nstream c in [-1, 1]\nminimize c * x\n"
    )
    (tmp_path / "c.csv").write_text("c\n0.5\n-1\n0.25\n")
    (tmp_path / "gaps.csv").write_text("c\n0.5\nnan\n0.25\n")
    status, out, _ = oco("compile", tmp_path / "m.oco", "--data", tmp_path / "c.csv", "-o", tmp_path / "whole.py")
    assert status == 0 and "c.csv" in out and not (tmp_path / "whole_rounds.csv").exists()
    words = ("--data", tmp_path / "gaps.csv", "--on-missing", "hold", "-o", tmp_path / "held.py")
    assert oco("compile", tmp_path / "m.oco", *words)[0] == 0
    assert (tmp_path / "held_rounds.csv").read_text().split() == ["c", "0.5", "0.5", "0.25"]
