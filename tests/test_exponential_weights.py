"""Exponential weights live in log space or are shifted: however long losses have one sign, however large the steps, in NumPy and in C."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from survival import plan_of
from thorough import thorough, turns

from oco.backends.learner import Learner
from oco.plan import Plan

MODEL = """\
model weights
horizon T {horizon}
decision x[{shape}] in {domain}
stream c[{shape}] in [-1, 1]
stream need in [0, 1]
minimize sum(c * x)
{constraints}
using {using}
"""
CAP = "subject to\n    cap: {entry} - need - 0.5 <= 0  each round"
BACKENDS = ["numpy", pytest.param("c", marks=pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler"))]


def plan(using: str, domain: str = "simplex", horizon: str = "= 1000", constraints: str = "") -> Plan:
    shape, entry = ("3, 3", "x[0, 0] + x[1, 1]") if domain.startswith("spectra") else ("3", "x[0] + x[1]")
    text = {"domain": domain, "shape": shape, "using": using, "horizon": horizon}
    return plan_of(MODEL.format(**text, constraints=constraints.format(entry=entry)))


def losses(made: Plan, c: list[float]) -> np.ndarray:
    return np.diag(c) if made.canonical.blocks[0].shape == (3, 3) else np.array(c)


def decided(made: Plan, learner: Learner) -> np.ndarray:
    """The decision, which is in the domain, from a state of finite numbers; of a matrix its diagonal."""
    x = learner.decide()
    assert made.canonical.blocks[0].domain.contains(x, tolerance=1e-8), x
    assert all(np.isfinite(v).all() for v in learner.values.values())
    return np.diagonal(x) if x.ndim == 2 else x


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("domain", "eta"), turns(["simplex", "budget(0, 1, 1)", "simplex(5)", "spectrahedron(1)"], ["1", "1e12"])
)
def test_mirror_steps_reach_one_vertex_and_leave_it_again(backend: str, domain: str, eta: str) -> None:
    """600 rounds of one sign, then as long a time of the other: each best vertex is found, and the first one is not kept for ever."""
    made = plan(f"oeg with eta = {eta}", domain)
    learner = made.learner(backend=backend)
    for c, best in (([1.0, -1.0, 0.5], 1), ([-1.0, 1.0, 0.5], 0)):
        for _ in range(600):
            learner.decide()
            learner.observe(c=losses(made, c), need=0.0)
        x = decided(made, learner)
        assert int(np.argmax(x)) == best and x[best] == pytest.approx(x.sum(), rel=1e-9)


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_a_million_rounds_of_one_sign() -> None:
    made = plan("oeg with eta = 1")
    learner, rounds = made.learner(backend="c"), 1_000_000
    streams = {"c": np.tile([1.0, -1.0, 0.5], (rounds, 1)), "need": np.zeros(rounds)}
    recorded = learner.advance([streams[f.name] for f in made.program.feedback], rounds, ["decisions"])
    assert np.isfinite(recorded.kept["decisions"]).all()
    np.testing.assert_allclose(decided(made, learner), [0, 1, 0], atol=1e-12)


@pytest.mark.parametrize(("kappa", "horizon", "backend"), turns(["1", "1e12"], ["= 1000", "unknown"], BACKENDS))
def test_weights_of_experts(backend: str, horizon: str, kappa: str) -> None:
    """With a horizon that is unknown some experts are not there yet: however well they would have done, they have no weight."""
    made = plan(f"coldq-expert with kappa = {kappa}", horizon=horizon, constraints=CAP)
    learner = made.learner(backend=backend)
    for t in range(200):
        sign = 1.0 if t % 7 < 5 or t > 150 else -1.0
        learner.decide()
        learner.observe(c=sign * np.array([1.0, -1.0, 0.5]), need=1.0)
        decided(made, learner)
        assert learner.values["w"].sum() == pytest.approx(1.0)


BROKEN = "subject to\n    cap: sum(x) - need - 0.5 <= 0  each round"
QUEUES = {
    "sinha-vaze": ("sinha-vaze with rate = 1, beta = 1", lambda s, W: W),
    "ofw-tvc": ("ofw-tvc with rate = 1e3", lambda s, Q: s["rate"].value * s["beta"].value * Q),
    "ofw-tvc, small guess": (
        "ofw-tvc with rate = 1e3, guess = 1e-200",
        lambda s, Q: s["rate"].value * s["beta"].value * Q,
    ),
}


@pytest.mark.parametrize(("name", "backend"), turns([*QUEUES], BACKENDS))
def test_exponentials_of_queues(name: str, backend: str) -> None:
    """A constraint that is broken in every round makes the queue grow past what exp of it could be."""
    using, exponent = QUEUES[name]
    made = plan(using, constraints=BROKEN, horizon="= 4000")
    learner = made.learner(backend=backend)
    for _ in range(3000):
        learner.decide()
        learner.observe(c=np.array([-1.0, -1.0, 1.0]), need=0.0)
    decided(made, learner)
    assert exponent(made.settings, float(learner.values.get("Q", learner.values.get("W")))) > np.log(
        np.finfo(float).max
    )


def log_weights(z: np.ndarray) -> np.ndarray:
    """Normalized weights in log space: no weight is ever too small to be kept."""
    top = z.max()
    return np.asarray(z - top - np.log(np.exp(z - top).sum()))


@pytest.mark.parametrize(("bad", "backend"), turns([300, 10_000], BACKENDS))
def test_a_vertex_comes_back_no_later_than_in_exact_log_space(backend: str, bad: int) -> None:
    """Many rounds of loss, then the best. Weights are kept from 1e-300 on: the same numbers above it, an earlier return below it."""
    made, eta = plan("oeg with eta = 1"), 1.0
    learner, exact, back, exact_back = made.learner(backend=backend), np.zeros(3), None, None
    for t in range(2 * bad + 10):
        c = np.array([1.0, 0.0, 0.5]) if t < bad else np.array([-1.0, 0.0, 0.5])
        x, log_x = learner.decide(), log_weights(exact)
        assert np.isfinite(x).all() and x.sum() == pytest.approx(1.0)
        if bad == 300:
            np.testing.assert_allclose(np.log(x), log_x, rtol=1e-9, atol=1e-9)
        if t > bad:
            back = t - bad if back is None and x[0] > 0.6 else back
            exact_back = t - bad if exact_back is None and log_x[0] > np.log(0.6) else exact_back
        exact = exact - eta * c
        learner.observe(c=c, need=0.0)
    assert exact_back is not None and back is not None and back <= exact_back and exact_back == bad + 1
    assert back == exact_back if bad == 300 else abs(back - np.log(1e300)) < 3


@pytest.mark.parametrize("backend", [thorough("numpy"), *BACKENDS[1:]])
@pytest.mark.parametrize("kappa", [thorough("100"), "1e3"])
def test_no_expert_is_dead_for_ever(backend: str, kappa: str) -> None:
    """Of COLDQ's experts: the recursion of the weights in exact log space, with the learner's own experts and its floor of 1e-300."""
    made = plan(f"coldq-expert with kappa = {kappa}", constraints=CAP)
    learner, returned = made.learner(backend=backend), 0.0
    for t in range(1500):
        c = np.array([1.0, -1.0, 0.5]) * (1.0 if (t // 250) % 2 else -1.0)
        values = learner.values
        experts, w = values["x"], values["w"]
        loss = experts @ c - w @ experts @ c
        learner.decide()
        learner.observe(c=c, need=1.0)
        z = log_weights(np.maximum(np.log(np.maximum(w, 1e-320)), np.log(1e-300)) - float(kappa) * loss)
        np.testing.assert_allclose(learner.values["w"], np.exp(z), rtol=1e-7, atol=1e-290)
        if t == 750:  # the one that does best loses all its weight
            best = int(np.argmax(w))
            values["w"] = np.roll(np.eye(len(w))[best], 1)
            learner._state = tuple(values.values())
        returned = max(returned, float(w[best])) if t > 760 else 0.0
    assert returned > 0.5
