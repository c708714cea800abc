"""Measured facts: variations and path lengths against sums written out, contradictions that name their round, sample means."""

from __future__ import annotations

import math

import numpy as np
import pytest

from oco.compiler.prover.check import check
from oco.compiler.prover.types import Status
from oco.dsl.diagnostics import OcoError
from oco.dsl.load import parse

HEAD = "model m\nhorizon T = 200\n"
AFFINE = HEAD + (
    "decision x[3] in box(0, 2)\nstream c[3] in [-5, 5]\nstream d in [0, 4]\nminimize c @ x + d\n"
    "subject to\n    cap: c @ x <= d\n    row: x[0] - d * x[1] <= 1   each round\n"
)


def rounds(seed: int = 0, count: int = 200) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {"c": rng.uniform(-3, 3, size=(count, 3)), "d": rng.uniform(0, 4, size=count)}


def test_variation_of_the_gradient_of_a_linear_loss() -> None:
    data = rounds()
    fact = check(parse(AFFINE), data)["variation.gradient"]
    true = float(np.sum(np.diff(data["c"], axis=0) ** 2))
    assert fact.status is Status.MEASURED and true <= fact.value <= true * (1 + 1e-9)
    assert fact.why is not None and "200 rounds" in fact.why.claim


def test_variation_of_constraints_is_the_supremum_over_the_domain() -> None:
    data = rounds()
    fact = check(parse(AFFINE), data)["variation.constraint"]
    dc, dd = np.diff(data["c"], axis=0), np.diff(data["d"])
    total = 0.0
    for u, v in zip(dc, dd):
        corners = np.array(np.meshgrid([0, 2], [0, 2], [0, 2])).reshape(3, -1)
        total += max(math.hypot(u @ x - v, v * x[1]) for x in corners.T)
    assert total <= fact.value <= 1.3 * total


def test_what_does_not_change_has_no_variation() -> None:
    text = (
        HEAD
        + "decision x[2] in box(0, 1)\nstream c[2] in [-1, 1]\nminimize sum_squares(x) + c @ x\nsubject to\n    cap: sum(x) <= 1\n"
    )
    data = {"c": np.tile([0.5, -0.25], (50, 1))}
    facts = check(parse(text), data)
    assert (
        facts["variation.gradient"].value == 0 and facts["variation.constraint"].value == 0 and facts["V_g"].value == 0
    )


def test_path_length_and_its_exponent() -> None:
    best = {"x": np.cumsum(np.ones((200, 3)) * 0.005, axis=0)}
    facts = check(parse(AFFINE), rounds(), best)
    length = 199 * 0.005 * math.sqrt(3)
    assert facts["path_length"].value == pytest.approx(length, rel=1e-9)
    assert facts["V_x"].value == pytest.approx(math.log(length) / math.log(200), rel=1e-9)


def test_constants_over_the_range_of_the_data() -> None:
    data = rounds()
    facts = check(parse(AFFINE), data)
    assert facts["loss.lipschitz.l2"].value == pytest.approx(5 * math.sqrt(3))
    hull = np.abs(data["c"]).max(axis=0)
    assert facts["data.loss.lipschitz.l2"].value == pytest.approx(float(np.linalg.norm(hull)), rel=1e-9)
    assert facts["data.loss.lipschitz.l2"].status is Status.MEASURED


def test_an_unbounded_stream_has_measured_constants() -> None:
    text = HEAD + "decision x in box(-1, 1)\nstream z ~ normal(0, 1)\nminimize z * x\n"
    assert check(parse(text))["loss.lipschitz.l2"].status is Status.UNKNOWN
    fact = check(parse(text), {"z": np.linspace(-2, 3, 40)})["loss.lipschitz.l2"]
    assert fact.status is Status.MEASURED and fact.value == pytest.approx(3)


def test_a_value_outside_the_range_names_round_and_entry() -> None:
    data = rounds()
    data["c"][41, 2] = 7.5
    with pytest.raises(OcoError) as caught:
        check(parse(AFFINE), data)
    assert caught.value.code == "OCO621" and "round 42" in caught.value.message and "c[2]" in caught.value.message


def test_data_that_contradicts_an_assumption_names_the_round() -> None:
    text = HEAD + "decision x in box(-1, 1)\nstream z ~ normal(0, 1)\nminimize z * x\nassume loss.lipschitz.l2 <= 3\n"
    drawn = np.linspace(-2, 2, 40)
    drawn[17] = -3.5
    with pytest.raises(OcoError) as caught:
        check(parse(text), {"z": drawn})
    assert caught.value.code == "OCO622" and "round 18" in caught.value.message


def test_a_variation_larger_than_assumed_is_an_error() -> None:
    with pytest.raises(OcoError) as caught:
        check(parse(AFFINE + "assume variation.gradient <= 10\n"), rounds())
    assert caught.value.code == "OCO622"


def test_a_declared_bound_that_the_data_respects_stays() -> None:
    facts = check(parse(AFFINE + "assume variation.gradient <= 1e6\n"), rounds())
    assert facts["variation.gradient"].status is Status.DECLARED
    assert facts["data.variation.gradient"].status is Status.MEASURED


def test_wide_ranges_and_outliers_are_pointed_out() -> None:
    data = {
        "c": np.full((400, 3), 0.5) * np.random.default_rng(0).uniform(-1, 1, size=(400, 3)),
        "d": np.linspace(0, 4, 400),
    }
    data["c"][99, 1] = -4.9
    found = {w.code: w for w in check(parse(AFFINE), data).warnings}
    assert "round 100" in found["OCO607"].hint and "4.9" in found["OCO607"].hint
    data["c"][99, 1] = 0.1
    found = {w.code: w for w in check(parse(AFFINE), data).warnings}
    assert "OCO607" not in found and "`c`" in found["OCO606"].message


def test_a_margin_from_the_sample_mean_allows_for_chance() -> None:
    text = HEAD + "decision x in box(0, 1)\nstream s in [0, 1] iid\nminimize x\nsubject to\n    g: s - 0.5 * x <= 0.4\n"
    assert check(parse(text))["slater.margin"].status is not Status.PROVED
    sample = np.random.default_rng(1).beta(2, 2, size=4000)
    fact = check(parse(text), {"s": sample})["slater.margin"]
    chance = 1.5 * math.sqrt(math.log(1 / 0.05) / (2 * 4000))
    assert fact.status is Status.MEASURED
    assert fact.value == pytest.approx(0.9 - float(sample.mean()) - chance, abs=1e-6)
    assert fact.why is not None and "95% confidence" in fact.why.claim
    assert check(parse(text), {"s": sample[:3]})["slater.margin"].status is not Status.MEASURED


def test_a_broken_assumption_names_the_round() -> None:
    text = (
        "model m\nhorizon T = 6\ndecision x[2] in box(0, 1)\nstream c[2] in [-9, 9]\nminimize c @ x\n"
        "subject to\n    caps: c * x <= 4   each round\n"
    )
    c = np.array([[1, 1], [1, 1], [1, 1], [7, 1], [1, 1], [1, 1]], dtype=float)
    for assumption, words in (
        ("constraints.caps.lipschitz.l2 <= 5", "round 4 of the data reaches 7"),
        ("loss.bound <= 6", "round 4 of the data reaches 8"),
        ("variation.gradient <= 10", "passed in round 4"),
    ):
        with pytest.raises(OcoError) as error:
            check(parse(f"{text}assume {assumption}\n"), {"c": c})
        assert error.value.code == "OCO622" and words in error.value.message
