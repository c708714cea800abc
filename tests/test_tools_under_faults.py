"""The tools when the world is against them: two at once, a full disk, a folder that cannot be written, no compiler, an interruption."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

MODEL = "model small\nhorizon T = 50\ndecision x[3] in box(0, 1)\nstream c[3] ~ uniform(0, 1)\nminimize c @ x\n"
RUN = "import sys; from oco.cli import main; sys.stderr.write(sys.argv.pop()); sys.stderr.flush(); sys.exit(main(sys.argv[1:]))"
ENVIRONMENT = os.environ | {"OPENBLAS_NUM_THREADS": "1"}


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "small.oco"
    path.write_text(MODEL)
    return path


def oco(*args, before="", ready="", **options):
    """The command in a process of its own; `before` is run in it first, and `ready` is said when the command begins."""
    command = [sys.executable, "-c", before + RUN, *map(str, args), ready]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT, **options
    )


def ended(process):
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def a_sentence(err):
    assert err.strip() and "Traceback" not in err, err


def left(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_two_compile_the_same_model_at_once(model, backend, tmp_path):
    """Either way the result is whole, and what one alone writes."""
    target = tmp_path / ("learner.py" if backend == "numpy" else "code")
    both = [oco("compile", model, "-o", target, "--backend", backend, "--force") for _ in range(2)]
    codes = [ended(p) for p in both]
    assert [c for c, _, _ in codes] == [0, 0], codes
    code, _, err = ended(
        oco("compile", model, "-o", tmp_path / ("one.py" if backend == "numpy" else "one"), "--backend", backend)
    )
    assert code == 0, err
    if backend == "numpy":
        assert (tmp_path / "learner.py").read_text() == (tmp_path / "one.py").read_text()
    else:
        for path in (tmp_path / "one").iterdir():
            assert (tmp_path / "code" / path.name).read_text() == path.read_text()
    assert not [n for n in left(tmp_path) if n.endswith(".part")]


FULL = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
import oco, oco.plan, oco.compiler.plan, oco.backends.python.module, oco.evaluation.run
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
"""


@pytest.mark.parametrize(
    "args", [("compile", "-o", "learner.py"), ("compile", "--backend", "c", "-o", "code"), ("run", "--journal", "j")]
)
def test_a_full_disk(model, args, tmp_path):
    """A limit on the size of files stands for it: the write fails in the middle."""
    before = left(tmp_path)
    code, _, err = ended(oco(args[0], model, *args[1:], before=FULL, cwd=tmp_path))
    assert code == 1, err
    a_sentence(err)
    assert not {n for n in left(tmp_path) - before if not n.startswith("j/")}


def test_an_old_file_outlives_a_full_disk(model, tmp_path):
    old = "# an old learner\n" * 10
    (tmp_path / "learner.py").write_text(old)
    code, _, err = ended(oco("compile", model, "-o", "learner.py", "--force", before=FULL, cwd=tmp_path))
    assert code == 1 and (tmp_path / "learner.py").read_text() == old
    a_sentence(err)


@pytest.mark.parametrize("args", [("compile", "-o", "/proc/learner.py"), ("compile", "--backend", "c", "-o", "/proc/code"),
                                  ("run", "--out", "/proc/out"), ("run", "--journal", "/proc/journal"), ("compile", "-o", "/dev/null/x.py"),
                                  ("compile", "-o", "small.oco/x.py", "--backend", "c")])  # fmt: skip
def test_a_folder_that_cannot_be_written(model, args, tmp_path):
    """/proc takes no files, even from root, who may write anywhere else."""
    before = left(tmp_path)
    code, _, err = ended(oco(args[0], model, *args[1:], cwd=tmp_path))
    assert code == 1, err
    a_sentence(err)
    assert left(tmp_path) == before


def test_a_compiler_that_is_missing_or_broken(model, tmp_path):
    for compiler in ("no-such-compiler", "false", "/dev/null"):
        before = f"import os; os.environ.update(CC={compiler!r}, XDG_CACHE_HOME={str(tmp_path / 'cache')!r})\n"
        code, _, err = ended(oco("run", model, "--backend", "c", before=before, cwd=tmp_path))
        assert code == 1, err
        a_sentence(err)
    assert not [n for n in left(tmp_path) if n.endswith(".so")]


@pytest.mark.parametrize("args", [("compile", "-o", "learner.py"), ("run", "--out", "out"), ("check",)])
def test_an_interruption_at_any_time(model, args, tmp_path):
    """SIGINT at random moments: the exit status is 1, one sentence is said, and no file is half there."""
    rng, codes = random.Random(args[0]), []
    whole = None
    for _ in range(4):
        force = ["--force"] if args[0] == "compile" else []
        process = oco(args[0], model, *args[1:], *force, cwd=tmp_path, ready="ready\n")
        process.stderr.readline()
        time.sleep(rng.uniform(0, 0.3))
        process.send_signal(signal.SIGINT)
        code, _, err = ended(process)
        codes.append(code)
        assert code in (0, 1), (code, err)
        if code:
            assert "Traceback" not in err and "interrupted" in err, err
        made = tmp_path / "learner.py"
        if made.exists():
            text = made.read_text()
            compile(text, "learner", "exec")
            whole = whole or text
            assert text == whole
        assert not [n for n in left(tmp_path) if n.endswith(".part")]
    assert 1 in codes


DROPPED = """
import signal, sys, time
import oco.cli.app
class Last:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
def work(**_):
    Last()
    time.sleep(20)
    sys.exit(0)
oco.cli.app.app_for = lambda words: work
"""


def test_an_interruption_that_python_drops_is_heard_all_the_same(tmp_path):
    """What comes within `__del__` or a callback of an import is "ignored" by Python, and the command would go on."""
    began = time.monotonic()
    code, _, err = ended(oco("check", "m.oco", before=DROPPED, cwd=tmp_path))
    assert code == 1 and "interrupted" in err and "Traceback" not in err, err
    assert time.monotonic() - began < 15


@pytest.mark.parametrize(
    ("report", "said"),
    [
        ("", "nothing was audited"),
        ('{"dependencies": [{"name": "a", "skip_reason": "not known"}]}', "knows none of 1 packages"),
        ('{"dependencies": [{"name": "a", "version": "1", "vulns": []}, {"name": "b", "skip_reason": "x"}]}', "1 of 2"),
        ('{"dependencies": [{"name": "a", "version": "1", "vulns": [{"id": "CVE-1"}]}]}', "audit: a 1: CVE-1"),
    ],
)
def test_an_audit_of_nothing_does_not_say_that_nothing_is_wrong(report, said, tmp_path):
    (tmp_path / "audit").write_text(report)
    script = Path(__file__).parent.parent / ".ci" / "audit.py"
    done = subprocess.run([sys.executable, script, tmp_path / "audit"], capture_output=True, text=True)
    assert done.returncode == 0 and said in done.stdout
    assert ("no known vulnerabilities" in done.stdout) == ("1 of 2" in said)
