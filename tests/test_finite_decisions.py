"""Settings that overflow with the model's own ranges: refused when compiling, and no decision at run time is anything but finite."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from functools import cache
from importlib.util import find_spec

import numpy as np
import pytest
from thorough import turns

import oco
from oco.compiler.selection.plan import compile_plan
from oco.dsl.diagnostics import OcoError
from oco.plan import Plan

MODEL = """\
model steep
horizon T = 1000
decision x[3] in {domain}
stream c[3] in [-{size}, {size}]
minimize c @ x
{constraints}
using {algorithm}
"""
CAP = "subject to\n    cap: x[0] + x[1] - 0.5 * abs(c[2]) / {size} - 0.5 <= 0  each round"
STEEP = {
    "oeg": {"domain": "simplex", "size": "1e200", "constraints": "", "algorithm": "oeg with eta = 1e250"},
    "coldq-expert": {
        "domain": "ball(1)",
        "size": "1e200",
        "constraints": CAP.format(size="1e200"),
        "algorithm": "coldq-expert with kappa = 1e200, epsilon = 1e100",
    },
}
BACKENDS = ["numpy", *(["c"] if shutil.which("cc") else []), *(["jax"] if find_spec("jax") else [])]
QUIET, LOUD = np.zeros(3), np.array([1e200, -1e200, 1e200])


@cache
def unrehearsed(name: str) -> Plan:
    """The plan as a saved state makes it again: without the rounds that `oco.compile` plays. A plan is a value, which tests share."""
    return Plan.of(compile_plan(oco.parse(MODEL.format(**STEEP[name]))))


def until_it_overflows(observe) -> tuple[int, Exception]:
    rng = np.random.default_rng(0)
    for t in range(1, 200):
        try:
            observe(QUIET if t <= 2 else 1e200 * rng.choice([-1.0, 1.0], 3))
        except (OcoError, OverflowError) as error:
            return t, error
    raise AssertionError("nothing overflowed")


@pytest.mark.parametrize("name", STEEP)
def test_settings_that_overflow_are_refused_when_compiling(name):
    with pytest.raises(OcoError) as caught:
        oco.compile(oco.parse(MODEL.format(**STEEP[name])))
    assert caught.value.code == "OCO714" and name in caught.value.message
    modest = {
        **STEEP[name],
        "size": "1",
        "constraints": STEEP[name]["constraints"].replace("1e200", "1"),
        "algorithm": name,
    }
    assert oco.compile(oco.parse(MODEL.format(**modest))).algorithm == name


LARGE = "model large\nhorizon T = 100\ndecision x[3] in box(-1e200, 1e200)\nstream c[3] in [-1, 1]\nminimize c @ x\nusing ogd\n"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("backend", BACKENDS)
def test_large_and_lost_numbers_give_no_warnings_of_numpy(backend, tmp_path):
    """Decisions whose squares overflow, and rounds that overflow: an answer or an error, and nothing on stderr, journals included."""
    with oco.open(oco.compile(oco.parse(LARGE)), tmp_path, start=[1e200, -1e200, 0], backend=backend) as learner:
        for _ in range(3):
            assert np.abs(learner.decide()).max() == 1e200
            learner.observe(c=[-1, 1, 0])
    steep = unrehearsed("oeg").learner(backend=backend)
    assert until_it_overflows(lambda c: (steep.decide(), steep.observe(c=c)))[1].code == "OCO859"


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", STEEP)
def test_a_round_that_overflows_is_an_error_and_changes_nothing(name, backend):
    learner = unrehearsed(name).learner(backend=backend)
    kept = []

    def observe(c):
        kept[:] = [learner.round, learner.decide(), repr(learner.state())]
        assert np.isfinite(kept[1]).all()
        learner.observe(c=c)

    t, error = until_it_overflows(observe)
    assert error.code == "OCO859" and f"round {t}" in error.message
    assert learner.round == t == kept[0] and repr(learner.state()) == kept[2]
    assert np.array_equal(learner.decide(), kept[1])
    learner.observe(c=QUIET)  # and it goes on
    assert learner.round == t + 1 and np.isfinite(learner.decide()).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_learner_of_a_fleet_goes_on_when_one_overflows(backend):
    fleet = unrehearsed("oeg").fleet(11, backend=backend)
    fleet.decide()
    fleet.observe(c=np.zeros((11, 3)))
    before, decided = {n: v.copy() for n, v in fleet.values.items()}, fleet.decide()
    data = np.zeros((11, 3))
    data[9] = LOUD
    with pytest.raises(OcoError) as caught:
        for _ in range(20):
            before, decided = {n: v.copy() for n, v in fleet.values.items()}, fleet.decide()
            fleet.observe(c=data)
    assert caught.value.code == "OCO859" and f"round {fleet.round}" in caught.value.message
    assert "learner 9" in caught.value.message and "overflows" in caught.value.message
    assert all(np.array_equal(v, fleet.values[n]) for n, v in before.items())
    assert np.array_equal(decided, fleet.decide()) and np.isfinite(decided).all()


@pytest.mark.parametrize(("culprit", "backend"), turns([0, 7, 8, 10], BACKENDS))
def test_the_learner_that_overflows_is_named(backend, culprit):
    """Wherever it stands in its block, and whichever round it is; those before and behind it go through."""
    fleet = unrehearsed("coldq-expert").fleet(11, backend=backend)

    def observe(c):
        data = np.zeros((11, 3))
        data[culprit] = c
        fleet.decide()
        fleet.observe(c=data)

    t, error = until_it_overflows(observe)
    assert error.code == "OCO859" and f"round {t}" in error.message and fleet.round == t
    assert re.search(rf"learner {culprit}\b", error.message) and not re.search(r"learners? \d+ to", error.message)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_run_ends_where_a_round_overflows(backend):
    c = np.zeros((200, 3))
    c[100:] = LOUD
    with pytest.raises(OcoError) as caught:
        unrehearsed("oeg").run({"c": c}, backend=backend)
    assert caught.value.code == "OCO859" and "round 10" in caught.value.message


def test_the_emitted_module_says_so_too(tmp_path):
    unrehearsed("oeg").write(tmp_path / "steep.py", backend="numpy")
    code = """
import steep, numpy as np
learner = steep.Learner()
for t in range(1, 30):
    x, before = learner.decide(), learner.state()
    assert np.isfinite(x).all()
    try:
        learner.observe(c=np.array([1e200, -1e200, 1e200]))
    except OverflowError as error:
        assert f"round {t}" in str(error) and learner.round == t and learner.state() == before
        break
else:
    raise AssertionError("nothing overflowed")
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
