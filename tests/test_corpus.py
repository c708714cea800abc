"""Models of many fields compile and run; `python -m benchmarks.corpus` does all of them."""

from __future__ import annotations

import pytest
from thorough import corners

from benchmarks.corpus.models import MODELS
from benchmarks.corpus.runs import result_of
from oco.compiler.prover.check import check
from oco.dsl.load import load

QUICK = (
    "caching",
    "ride_matching",
    "spam",
    "ratings",
    "calibration",
    "sensor_fusion",
    "pricing_with_fairness",
    "learning_rates",
)
SHORT = ("caching", "ride_matching", "calibration", "learning_rates")
"""Those of QUICK that take less than a second."""
LARGE = ("quality_control", "soil_mix", "transport")
"""Those whose facts take a second."""


def test_the_corpus_is_of_many_fields() -> None:
    assert len(MODELS) >= 60


@pytest.mark.parametrize("name", corners(MODELS, [name for name in [*MODELS][::3] if name not in LARGE]))
def test_every_loss_and_constraint_is_proved_convex(name: str) -> None:
    facts = check(load(MODELS[name]))
    assert all(facts[key].value for key in facts if key.endswith(".convex")), name


@pytest.mark.parametrize("name", corners(QUICK, SHORT))
def test_quick_ones_run_on_ordinary_and_extreme_rounds(name: str) -> None:
    result = result_of(MODELS[name])
    assert not result.refused and result.algorithm


def test_conditions_are_told_from_the_data() -> None:
    """No dispatch within the limit of carbon dioxide meets a load that is at its highest in every round."""
    result = result_of(MODELS["unit_dispatch"])
    assert result.ordinary != result.extreme == ("failed from round 1",)
