"""Emitted C under other compilers and under sanitizers; and every algorithm in C on a model that takes it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from driving import example
from test_backends_agree import applicable, plan_with
from test_c99 import STRICT, contract, has_compiler, queue
from thorough import thorough

import oco
from oco.backends.c99.module import emit
from oco.backends.choose import choose_backend
from oco.backends.registry import make_learner
from oco.backends.round_work import work_of
from oco.compiler.ir.passes import LOOPS, lower

EXAMPLES = Path(__file__).parent.parent / "examples"
COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]
needs_clang = pytest.mark.skipif(shutil.which("clang") is None, reason="no clang")
pytestmark = pytest.mark.skipif(not has_compiler(), reason="no C compiler")

THREADS = r"""
#include "queue.h"
#include <pthread.h>

static void *play(void *memory) {
    queue *self = memory;
    const double price[3] = {1.0, 2.0, 0.5};
    double x[3];
    queue_init(self, NULL);
    for (int t = 0; t < 200; ++t) {
        queue_decide(self, x);
        if (queue_observe(self, price, 1.5) != 0) {
            return self;
        }
    }
    return NULL;
}

int main(void) {
    static queue first, second;
    pthread_t a, b;
    void *left = NULL, *right = NULL;
    pthread_create(&a, NULL, play, &first);
    pthread_create(&b, NULL, play, &second);
    pthread_join(a, &left);
    pthread_join(b, &right);
    return left || right || first.round != 201 || first.Q != second.Q;
}
"""


def written(folder, program, given=None):
    source = emit(program, given or contract(program))
    (folder / f"{source.name}.h").write_text(source.header)
    (folder / f"{source.name}.c").write_text(source.code)
    return source


@needs_clang
def test_two_learners_in_two_threads_share_nothing(tmp_path):
    written(tmp_path, queue())
    (tmp_path / "main.c").write_text(THREADS)
    flags = ["-O1", "-g", "-fsanitize=thread", "-pthread"]
    command = ["clang", *flags, "queue.c", "main.c", "-o", "main", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    done = subprocess.run([tmp_path / "main"], capture_output=True, text=True)
    assert done.returncode == 0 and "WARNING" not in done.stderr, done.stderr[:2000]


def cases(step):
    for name in ("tracking", "portfolio"):
        for algorithm in applicable(name)[::step]:
            yield plan_with(name, algorithm)


@pytest.mark.parametrize("step", [5, thorough(3)])
def test_no_warning_and_no_wrong_access(step, tmp_path):
    """Algorithms of two models, one in `step`: clean under strict warnings of each compiler; its example runs under sanitizers.

    Warnings come from what an optimizer follows; sanitizers watch every access only where none is optimized away.
    """
    seen = 0
    for k, plan in enumerate(cases(step)):
        folder = tmp_path / str(k)
        for path, text in plan.files("c").items():
            folder.mkdir(exist_ok=True)
            (folder / path).write_text(text)
        source = next(p for p in plan.files("c") if p.endswith(".c") and not p.endswith("_example.c"))
        tool = COMPILERS[k % len(COMPILERS)]
        watched = [
            "-fsanitize=address,undefined",
            "-fno-sanitize-recover=all",
            source.replace(".c", "_example.c"),
            "-lm",
        ]
        for flags in (["-O1", "-c", "-o", "checked.o"], ["-O0", *watched, "-o", "main"]):
            done = subprocess.run([tool, *STRICT, source, *flags], cwd=folder, capture_output=True, text=True)
            assert done.returncode == 0, f"{plan.algorithm}, {tool}: {done.stderr[:1500]}"
        ran = subprocess.run([folder / "main"], capture_output=True, text=True)
        assert ran.returncode == 0, f"{plan.algorithm}: {ran.stderr[:1500]}"
        seen += 1
    assert seen >= 5


def test_emitted_text_is_the_same_every_time_and_has_no_statics():
    plan = example("tracking", "coldq", "paper")
    again = oco.compile(oco.load(EXAMPLES / "tracking.oco"), algorithm="coldq", settings="paper")
    text = plan.source("c")
    assert text == again.source("c") and len(text.splitlines()) <= 700
    kept = [line for line in text.splitlines() if line.startswith("static") and "(" not in line]
    assert kept and all(line.startswith("static const") for line in kept)
    assert not any(word in text for word in ("malloc", "printf", "stdio", "__DATE__", "__TIME__"))


@pytest.mark.parametrize("name", LOOPS)
def test_passes_of_the_backend_can_be_left_out(name):
    plan = example("tracking", "coldq", "paper")
    few, all_of_them = lower(plan.program, skip={name}), lower(plan.program)
    from oco.backends.registry import backend

    rng = np.random.default_rng(0)
    learners = [make_learner(backend("c").compile(p, plan.contract), plan.contract) for p in (few, all_of_them)]
    for _ in range(200):
        streams = {
            s.name: rng.uniform(max(s.lower.min(), -1), min(s.upper.max(), 1), s.shape) for s in plan.canonical.streams
        }
        a, b = (learner.decide() for learner in learners)
        assert np.allclose(a, b, rtol=1e-12, atol=1e-12)
        for learner in learners:
            learner.decide()
            learner.observe(**streams)


INTERRUPTED = """
import signal, sys, threading, time
import numpy as np
import oco
from oco.backends.play import play

plan = oco.compile(oco.load(sys.argv[1]), algorithm="coldq", settings="paper")
learner = plan.learner(backend="c")
sizes = {s.name: s.shape for s in plan.canonical.streams}
halves = {n: np.full((0, *shape), 0.5) for n, shape in sizes.items()}
pressed, calls, at_work = [0.0], [], threading.Event()

def read(start, stop):
    calls.append(start)
    if len(calls) == 8:
        at_work.set()  # what follows is a long call of C
    for name, shape in sizes.items():
        if len(halves[name]) < stop - start:
            halves[name] = np.full((stop - start, *shape), 0.5)
    return {n: v[: stop - start] for n, v in halves.items()}

def press():
    at_work.wait()
    time.sleep(0.01)
    pressed[0] = time.process_time()
    signal.raise_signal(signal.SIGINT)

threading.Thread(target=press).start()
try:
    for _ in play(learner, read, 100_000_000):
        pass
    sys.exit("the interrupt was lost: all rounds were played")
except KeyboardInterrupt:
    heard, first = time.process_time() - pressed[0], learner.round
    learner.decide()
    learner.observe(**{n: v[0] for n, v in halves.items()})
    print(heard, first, learner.round)
"""


def test_an_interrupt_is_heard_and_leaves_a_whole_round():
    command = [sys.executable, "-c", INTERRUPTED, str(EXAMPLES / "tracking.oco")]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 0 and found.stdout, found.stderr
    heard, first, then = (float(word) for word in found.stdout.split())
    assert heard < 0.1 and first > 1 and then == first + 1


def test_the_default_backend_is_what_the_rounds_are_worth(monkeypatch):
    plan = example("tracking", "coldq", "paper")
    few, many = choose_backend(plan.program, 10), choose_backend(plan.program, 100_000)
    assert (few.name, many.name) == ("numpy", "c") and "in C" in many.why and "NumPy" in few.why
    assert choose_backend(plan.program, 10, "c").name == "c" and choose_backend(plan.program, 10, "c").notes == ()
    monkeypatch.setattr("oco.backends.c99.backend.has_compiler", lambda: False)
    without = choose_backend(plan.program, 100_000)
    assert without.name == "numpy" and "ziglang" in without.why


def test_the_turns_of_a_counted_loop_are_work():
    model = "model m\nhorizon T = 400\ndecision x[2] in box(0, 1)\nstream p[2] ~ uniform(0, 1)\nminimize p @ x\n"
    model += "subject to\n    c: 0.5 - sum(x) <= 0 on average\n"
    plan = oco.compile(oco.parse(model), algorithm="meta-frank-wolfe", settings="paper")
    assert work_of(plan.program).operations > 10 * 20  # K = sqrt(T) inner steps of more than ten operations each


@pytest.mark.parametrize(
    "model, algorithm, says",
    [
        ("blind_pricing", "bfw-tvc", "u: 3 numbers, standard normal"),
        ("portfolio", "meta-frank-wolfe", "30 numbers, uniform on [0, 1)"),
    ],
)
def test_what_the_caller_has_to_draw_is_said(model, algorithm, says):
    """A rule in C has no random numbers of its own: the header says which arrays it takes, and the example has such numbers."""
    plan = example(model, algorithm, "paper")
    files = plan.files("c")
    assert says in files[f"{model}.h"] and "The caller draws" in files[f"{model}.h"]
    (name,) = (f.name for f in plan.program.draws)
    written = re.search(rf"{name}_data\[\d+\] = \{{(.*?)\}};", files[f"{model}_example.c"], re.S)
    if written is not None:  # short enough to be written out
        assert max(abs(float(x)) for x in written[1].split(",") if x.strip()) <= (2.0 if "normal" in says else 1.0)
    drawing = example("tracking", "coldq", "paper").files("c")
    assert "The caller draws" not in drawing["tracking.h"]


LARGE_FRAME = """
model m
horizon T = 50
decision x in l1_ball(1)
decision y[1, 1] in l1_ball(1.57)
decision z[1] in flow([[0, 1]], 0, 1)
stream s[5, 5] in [0, 3]
minimize 0.1 * max(-minimum(exp(s), exp(0), x))
subject to
    floor: minimum(exp(s), exp(0), x) >= -0.739  each round
    cap: exp(x) <= 2.298  on average
"""
ROUNDS = """
import numpy as np, oco, sys
learner = oco.compile(oco.parse(sys.argv[1]), algorithm="nested", settings="paper").learner(backend="c")
for _ in range(3):
    learner.decide()
    learner.observe(s=np.ones((5, 5)))
"""


def test_large_frames_are_aligned_for_vector_moves():
    """GCC 12.2 with AVX puts the arrays of this learner's step where its own moves fault; a crash would end this process."""
    ran = subprocess.run([sys.executable, "-c", ROUNDS, LARGE_FRAME], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-2000:]
