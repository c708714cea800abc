"""Models that were once refused or broke: each compiles, and its facts agree with an independent computation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

import oco
from oco.compiler.prover.facts import Facts
from oco.dsl.diagnostics import OcoError

HEAD = "model m\nhorizon T = 1000\n"
LINEAR = HEAD + "decision x[3] in box(0, 1)\nstream c[3] in [-1, 1]\nminimize c @ x\n"


def facts_of(text: str) -> Facts:
    return oco.check(oco.parse(HEAD + text))


def number(facts: Facts, key: str) -> float:
    return float(facts[key].value)


def test_a_quadratic_form_whose_bound_is_attained_on_a_spectrahedron() -> None:
    """v @ z @ v over trace(z) = 20 is at most 20 |v|^2 = 400, so that the constraint is met with equality at the end."""
    facts = facts_of(
        "param v[20] = ones(20)\ndecision z[20, 20] in spectrahedron(20)\nstream c[20, 20] in [-1, 1]\n"
        "minimize sum(c * z)\nsubject to\n    k: v @ z @ v <= 400 each round\n"
    )
    assert facts["feasible.common"].value is True
    assert number(facts, "constraints.k.upper") == pytest.approx(0.0, abs=1e-9)


def test_a_quadratic_form_on_the_simplex_has_its_largest_value() -> None:
    """The sum of squares of a point of the simplex is at most 1, attained at a vertex."""
    facts = facts_of(
        "param M[16, 16] = eye(16)\ndecision z[16] in simplex\nstream c[16] in [-1, 1]\n"
        "minimize c @ z\nsubject to\n    k: quad_form(z, M) <= 1 each round\n"
    )
    assert facts["constraints.k.convex"].value is True and facts["feasible.common"].value is True
    assert number(facts, "constraints.k.upper") >= 0


def test_a_gram_matrix_that_is_singular_is_convex() -> None:
    facts = facts_of(
        "param A[2, 3] = [[1, 2, 3], [2, 4, 6]]\ndecision x[3] in box(0, 1)\nstream c[3] in [-1, 1]\n"
        "minimize c @ x + x.T @ (A.T @ A) @ x\n"
    )
    A = np.array([[1.0, 2, 3], [2, 4, 6]])
    assert facts["loss.convex"].value is True
    assert number(facts, "loss.smoothness.l2") == pytest.approx(2 * np.linalg.eigvalsh(A.T @ A)[-1], rel=1e-9)


@pytest.mark.parametrize("feedback", ["", "feedback bandit\n", "measure dynamic regret\n"])
def test_equalities_alone_are_constraints(feedback: str) -> None:
    plan = oco.compile(oco.parse(LINEAR + "subject to\n    e: sum(x) == 1\n" + feedback))
    assert any(v.guarantee is not None for v in plan.verdicts)
    assert not any("has no constraints" in r for v in plan.verdicts for r in v.reasons)


def test_smoothness_of_a_logistic_term_is_a_quarter_of_the_square() -> None:
    """The second derivative of log(1 + exp(u)) is at most 1/4, and |a|^2 at most 4."""
    facts = facts_of(
        "decision w[4] in ball(1)\nstream a[4] in [-1, 1]\nstream y in {-1, 1}\nminimize logistic(-y * (a @ w))\n"
    )
    assert number(facts, "loss.smoothness.l2") == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("atom", ["kl_div", "rel_entr"])
def test_divergences_on_a_cut_simplex_have_bounded_gradients(atom: str) -> None:
    plan = oco.compile(
        oco.parse(
            HEAD + "param q[4] = [0.1, 0.2, 0.3, 0.4]\ndecision w[4] in simplex with w >= 1e-3\n"
            f"stream c[4] in [-1, 1]\nminimize c @ w + sum({atom}(w, q))\n"
        )
    )
    q, shift = np.array([0.1, 0.2, 0.3, 0.4]), 0.0 if atom == "kl_div" else 1.0
    corners = np.full((4, 4), 1e-3) + np.eye(4) * (1 - 4e-3)
    steepest = max(float(np.linalg.norm(np.abs(np.log(w / q) + shift) + 1)) for w in corners)
    assert steepest * (1 - 1e-9) <= number(plan.facts, "loss.lipschitz.l2") <= 1.1 * steepest
    assert plan.guarantee is not None and plan.algorithm != "bgd"


def test_the_newsvendor_is_fulfilled_at_the_upper_corner() -> None:
    """At q = 10 every demand up to 10 is met in full."""
    facts = facts_of(
        "decision q[2] in box(0, 10)\nstream d[2] in [0, 10]\nminimize 2 * sum(q) - 5 * sum(minimum(q, d))\n"
        "subject to\n    fill: sum(d) - sum(minimum(q, d)) <= 0 each round\n"
    )
    assert facts["feasible.common"].value is True and facts["loss.convex"].value is True


CVAR = HEAD + (
    "decision w[3] in simplex\ndecision a in box(-1, 1)\nstream r[3] ~ normal(0.01, 0.1)\n"
    "minimize a + 20 * pos(-(r @ w) - a)\n"
)


def test_value_at_risk_under_a_stated_normal_distribution() -> None:
    """Returns without ends are taken to lie where they do with probability 0.999; others are played all the same."""
    plan = oco.compile(oco.parse(CVAR))
    (words,) = plan.guarantee.provisos
    assert "sequences for which `r` lies in" in words and words.endswith("with probability 0.999")
    T, n = plan.horizon, 3
    end = 0.01 + 0.1 * norm.ppf(1 - 1e-3 / (2 * T * n))
    assert f"{end:.6g}" in words
    returns = np.random.default_rng(0).normal(0.01, 0.1, (T, n))
    returns[5, 1] = 7.0
    trace = plan.run({"r": returns})
    assert trace.regret("static")[-1] <= plan.guarantee.regret()
    for other in (plan.with_horizon(T // 2), oco.restore(plan.learner().state()).contract):
        assert "with probability 0.999" in str(other.guarantee)
    assert oco.compile(oco.parse(CVAR.replace("0.1)\nmin", "0.1) in [-0.5, 0.5]\nmin"))).guarantee.provisos == ()


@pytest.mark.parametrize("text", ["x.T @ (x.T @ S)", "(x.T @ S) @ x", "x - (c - x) @ S"])
def test_brackets_are_kept_where_they_mean_something(text: str) -> None:
    """What a derivation prints reads back as the expression that it is about."""
    loss = text if "c -" not in text else f"sum_squares({text})"
    facts = facts_of(
        "param S[3, 3] = [[2, 0, 0], [0, 1, 0], [0, 0, 1]]\ndecision x[3] in box(0, 1)\nstream c[3] in [-1, 1]\n"
        f"minimize c @ x + {loss}\n"
    )
    assert text in str(facts["loss.convex"].why)


@pytest.mark.parametrize("feedback", ["", "feedback gradient\n", "feedback bandit\n"])
def test_ways_out_read_as_sentences(feedback: str) -> None:
    text = HEAD + "decision x[3] in box(0, 1)\nstream c[3]\nminimize c @ x\nsubject to\n    k: c @ x <= 1 each round\n"
    with pytest.raises(OcoError) as caught:
        oco.compile(oco.parse(text + feedback))
    for words in (caught.value.hint, str(caught.value)):
        assert "you if" not in words and "  would" not in words and "you ;" not in words
