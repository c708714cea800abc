"""The round `t` and the horizon `T` in expressions: indices, remainders, and the same values in every backend."""

from __future__ import annotations

import numpy as np
import pytest

import oco
from oco.compiler.problem.canonical import canonical
from oco.compiler.prover.check import check
from oco.dsl.diagnostics import OcoError
from oco.dsl.evaluate import evaluate
from oco.dsl.model import Model
from oco.evaluation.comparators.compare import compare
from oco.evaluation.data import load_data

HEAD = "model m\nhorizon T {T}\nparam profile[4] = [1.0, 3.0, 2.0, 0.5]\ndecision x[2] in box(0, 3)\nstream c[2] in [-1, 1]\n"


def model(loss: str, cap: str = "9", T: str = "= 12") -> Model:
    return oco.parse(HEAD.format(T=T) + f"minimize {loss}\nsubject to\n    cap: sum(x) <= {cap} each round\n")


def refused(*args: str) -> OcoError:
    with pytest.raises(OcoError) as caught:
        check(model(*args))
    return caught.value


@pytest.mark.parametrize("t", range(1, 13))
def test_values_are_those_of_python(t: int) -> None:
    m = model("profile[(t - 1) % 4] * x[0] + x[1] * t / T")
    x = np.array([0.7, 0.2])
    expected = [1.0, 3.0, 2.0, 0.5][(t - 1) % 4] * 0.7 + 0.2 * t / 12
    assert evaluate(canonical(m).objective, {"x": x}, t) == pytest.approx(expected, rel=1e-15)


def test_the_horizon_is_that_of_the_data() -> None:
    m = model("c @ x", "6 / T")
    assert check(m)["constraints.cap.bound"].value == pytest.approx(6 - 0.5)
    plan = oco.compile(m, data={"c": np.zeros((30, 2))})
    assert plan.facts["constraints.cap.bound"].value == pytest.approx(6 - 0.2)


def test_an_unknown_horizon_has_no_value() -> None:
    error = refused("c @ x", "6 / T", "unknown")
    assert error.code == "OCO212" and "unknown" in error.message


@pytest.mark.parametrize(
    ("loss", "word"),
    [
        ("profile[t] * x[0]", "outside 0..3"),
        ("profile[t - 1] * x[0]", "(t - 1) % 4"),
        ("profile[T % 5] * x[0]", ""),
        ("x[t - 1]", "of this round"),
    ],
)
def test_every_round_has_its_entry(loss: str, word: str) -> None:
    if not word:
        check(model(loss))
        return
    error = refused(loss)
    assert error.code == "OCO312" and word in str(error)
    assert refused(loss, "9", "unknown").code == "OCO312"


def test_an_index_by_the_round_is_for_horizons_that_it_covers() -> None:
    m = model("profile[t - 1] * x[0]", T="= 4")
    check(m)
    with pytest.raises(OcoError, match="OCO312"):
        oco.compile(m, data={"c": np.zeros((5, 2))})


@pytest.mark.parametrize("bad", ["c[0] % 2", "x[0] % 2", "1 % 0.5"])
def test_remainders_are_of_whole_numbers(bad: str) -> None:
    with pytest.raises(OcoError, match="OCO326"):
        model(f"{bad} * x[0]")


def test_a_remainder_by_zero_is_refused() -> None:
    assert refused("(t % 0) * x[0]").code == "OCO504"


@pytest.mark.parametrize(
    "loss", ["profile[(t - 1) % 4] * c @ x", "c @ x * (1 + t % 7) / T", "sum_squares(x - profile[t % 4])"]
)
def test_backends_decide_alike_beyond_the_horizon_too(loss: str) -> None:
    m = model(loss, "1 + profile[(t + 1) % 4]")
    plan = oco.compile(m)
    rng = np.random.default_rng(0)
    learners = [plan.learner(backend=b) for b in ("numpy", "c")]
    for _ in range(20):
        values = {"c": rng.uniform(-1, 1, 2)}
        a, b = (np.asarray(o.decide()) for o in learners)
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)
        for o in learners:
            o.decide()
            o.observe(**values)


def test_after_the_horizon_the_last_entry_stays() -> None:
    m = model("sum_squares(x - profile[t - 1])", T="= 4")
    plan = oco.compile(m, algorithm="coldq")
    for backend in ("numpy", "c"):
        learner = plan.learner(backend=backend)
        for _ in range(400):
            learner.decide()
            learner.observe(c=[0.0, 0.0])
        np.testing.assert_allclose(learner.decide(), 0.5, atol=0.1)


def test_builder_writes_what_the_text_says() -> None:
    m = oco.Model("m", horizon=12)
    profile = m.param("profile", 4, value=[1.0, 3.0, 2.0, 0.5])
    x = m.decision("x", 2, domain=oco.box(0, 3))
    m.stream("c", 2, bounds=(-1, 1))
    m.minimize(profile[(m.t - 1) % 4] * x[0] + x[1] * m.t / m.T)
    text = m.build().to_oco()
    assert "profile[(t - 1) % 4] * x[0] + x[1] * t / T" in text
    assert oco.parse(text).objective == m.build().objective


@pytest.mark.parametrize(
    ("loss", "T"), [("profile[(t - 1) % 4] * x[0] - x[1]", "= 12"), ("profile[t - 1] * (c @ x)", "= 4")]
)
def test_comparators_take_entries_by_the_round(loss: str, T: str) -> None:
    """Beside the sum of the rounds' losses over the corners of the box, where linear losses are least."""
    problem, rounds = canonical(model(loss, T=T)), int(T[2:])
    c = np.random.default_rng(3).uniform(-1, 1, (rounds, 2))
    corners = [np.array([a, b]) for a in (0.0, 3.0) for b in (0.0, 3.0)]
    by_round = [[evaluate(problem.objective, {"x": x, "c": c[t]}, t + 1) for x in corners] for t in range(rounds)]
    data = load_data(problem, {"c": c})
    assert compare(problem, data, "static").value == pytest.approx(np.min(np.sum(by_round, axis=0)), abs=1e-6)
    assert compare(problem, data, "dynamic").value == pytest.approx(np.sum(np.min(by_round, axis=1)), abs=1e-6)
