"""The tools when the world is against them: two at once, a full disk, a folder that cannot be written, no compiler, an interruption."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_c99 import needs_compiler
from thorough import thorough

from oco.backends.c99.build import compiler
from oco.cli import main
from oco.dsl.diagnostics import OcoError
from oco.dsl.writing import write_files

MODEL = "model small\nhorizon T = 50\ndecision x[3] in box(0, 1)\nstream c[3] ~ uniform(0, 1)\nminimize c @ x\nusing ogd with eta = 0.1\n"
RUN = """
import sys
from oco.cli import main
class Announced:
    def find_spec(self, name, *_):
        if name == "oco.cli.app":
            print(self.ready, end="", file=sys.stderr, flush=True)
begun = Announced()
begun.ready = sys.argv.pop()
sys.meta_path.insert(0, begun)
sys.exit(main())
"""
ENVIRONMENT = os.environ | {"OPENBLAS_NUM_THREADS": "1"}


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "small.oco"
    path.write_text(MODEL)
    return path


def oco(*args, before="", ready="", **options):
    """The command in a process of its own; `before` is run in it first, and `ready` is said when it begins to load what it works with."""
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


@pytest.mark.parametrize("backend", [thorough("numpy"), "c"])
def test_two_compile_the_same_model_at_once(model, backend, tmp_path):
    """Either way the result is whole, and what one alone writes."""
    target = tmp_path / ("learner.py" if backend == "numpy" else "code")
    both = [oco("compile", model, "-o", target, "--backend", backend, "--force") for _ in range(2)]
    codes = [ended(p) for p in both]
    assert [c for c, _, _ in codes] == [0, 0], codes
    one = tmp_path / ("one.py" if backend == "numpy" else "one")
    assert main(["compile", str(model), "-o", str(one), "--backend", backend]) == 0
    if backend == "numpy":
        assert (tmp_path / "learner.py").read_text() == (tmp_path / "one.py").read_text()
    else:
        for path in (tmp_path / "one").iterdir():
            assert (tmp_path / "code" / path.name).read_text() == path.read_text()
    assert not [n for n in left(tmp_path) if n.endswith(".part")]


FULL = """
import resource, signal, sys
sys.dont_write_bytecode = True  # else half of a module's bytecode stays in this tree
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
import oco, oco.plan, oco.compiler.selection.plan, oco.backends.python.module, oco.evaluation.run
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
"""


@pytest.mark.parametrize(
    "args",
    [thorough(("compile", "-o", "learner.py")), ("compile", "--backend", "c", "-o", "code"), ("run", "--journal", "j")],
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
def test_a_folder_that_cannot_be_written(model, args, tmp_path, monkeypatch, capsys):
    """/proc takes no files, even from root, who may write anywhere else."""
    before = left(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main([args[0], str(model), *args[1:]]) == 1
    a_sentence(capsys.readouterr().err)
    assert left(tmp_path) == before


@pytest.fixture
def other_compilers():
    """Forgets the compiler before and after, which a process looks for once."""
    compiler.cache_clear()
    yield
    compiler.cache_clear()


def test_a_compiler_that_is_missing_or_broken(model, tmp_path, monkeypatch, capsys, other_compilers):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for command in ("no-such-compiler", "false", "/dev/null"):
        monkeypatch.setenv("CC", command)
        compiler.cache_clear()
        assert main(["run", str(model), "--backend", "c"]) == 1
        a_sentence(capsys.readouterr().err)
    assert not [n for n in left(tmp_path) if n.endswith(".so")]


@pytest.mark.parametrize(
    "args", [("compile", "-o", "learner.py"), thorough(("run", "--out", "out")), thorough(("check",))]
)
def test_an_interruption_at_any_time(model, args, tmp_path):
    """SIGINT at random moments of the work: the exit status is 1, one sentence is said, and no file is half there."""
    rng, codes = random.Random(args[0]), []
    whole = None
    while len(codes) < 4 or (1 not in codes and len(codes) < 40):
        force = ["--force"] if args[0] == "compile" else []
        process = oco(args[0], model, *args[1:], *force, cwd=tmp_path, ready="ready\n")
        process.stderr.readline()
        time.sleep(rng.uniform(0, 0.3) * 0.9 ** len(codes))
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


def test_an_interruption_after_the_work_changes_nothing(model):
    code = f"""
import signal, sys
from oco.cli import main
sys.argv = ["oco", "fmt", {str(model)!r}]
status = main()
signal.raise_signal(signal.SIGINT)
sys.exit(status)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr


QUICK = """
from oco.backends.c99 import build
build.FLAGS = tuple("-O0" if flag == "-O3" else flag for flag in build.FLAGS)
"""


@needs_compiler
def test_a_cache_that_is_damaged_full_or_nowhere(model, tmp_path):
    """Compiled learners are kept in a cache: a half of one is built again, and where none can be kept that is said."""
    cache = tmp_path / "cache"
    go = f"import os; os.environ.update(XDG_CACHE_HOME={str(cache)!r})\n{QUICK}"
    run = ("run", model, "--backend", "c", "--json")
    code, first, err = ended(oco(*run, before=go, cwd=tmp_path))
    assert code == 0, err
    for half in cache.rglob("*.so"):
        half.write_bytes(half.read_bytes()[: 20 if "small" in half.name else 0])
    code, again, err = ended(oco(*run, before=go, cwd=tmp_path))
    assert code == 0 and json.loads(again)["runs"][0]["loss"] == json.loads(first)["runs"][0]["loss"], err
    shutil.rmtree(cache)
    nowhere = "os.environ.pop('XDG_CACHE_HOME'); os.environ['HOME'] = '/proc'\n"
    for before in (go + FULL, go + nowhere):
        code, _, err = ended(oco(*run, before=before, cwd=tmp_path))
        assert code == 1 and "OCO999" not in err, err
        a_sentence(err)
    assert not [n for n in left(tmp_path) if n.endswith(".so")]


def test_files_that_belong_together_change_together(tmp_path, monkeypatch):
    """Three files of C: where the second cannot be written, or an interruption comes, all are as before."""
    header, source = tmp_path / "a.h", tmp_path / "a.c"
    write_files({header: "old header", source: "old source"})
    (tmp_path / "folder.c").mkdir()
    for other in (tmp_path / "folder.c", tmp_path / "a\0b", header / "x.c"):
        with pytest.raises(OcoError) as caught:
            write_files({header: "new header", tmp_path / "new.h": "new", other: "new source"})
        assert caught.value.code == "OCO903"
    monkeypatch.setattr(Path, "write_bytes", interrupted_at(2, Path.write_bytes))
    with pytest.raises(KeyboardInterrupt):
        write_files({header: "new header", source: "new source"})
    assert header.read_text() == "old header" and source.read_text() == "old source"
    assert left(tmp_path) == {"a.h", "a.c"}


def interrupted_at(count, function):
    """The function, interrupted at its call of this number."""
    calls = []

    def wrapped(*args, **options):
        calls.append(args)
        if len(calls) == count:
            raise KeyboardInterrupt
        return function(*args, **options)

    return wrapped


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
