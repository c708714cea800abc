"""Fleets that are saved to files: what is read back goes on bit for bit, and what is damaged is refused."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from driving import example
from test_c99 import needs_compiler
from test_past_horizon import T, plan_for
from thorough import thorough

import oco
from oco.plan import Plan

SAVED = (T - 1, T, 3 * T + 2)
BY_TURNS = ((3, T - 1), (40, T))
"""Learners of a fleet, and rounds before it is saved."""
KINDS = [thorough("numpy", 3), ("numpy", 40), pytest.param("c", 11, marks=needs_compiler)]
DRAWING = """
model drawing
horizon T = 50
decision x[3] in ball(1)
stream c[3] in [-1, 1]
minimize c @ x
feedback bandit
"""
DELAYED = """
model late
horizon T = 60
decision x[3] in box(0, 1)
stream c[3] in [-1, 1]
minimize c @ x + sum_squares(x)
subject to
    side: sum(x) <= 2 each round
feedback full delayed 2
"""


def data_of(fleet: Any, round: int) -> dict[str, Any]:
    """Streams of a round for all learners, within the bounds of the models here."""
    rng = np.random.default_rng(round)
    fields = getattr(fleet, "members", [fleet])[0]._inputs
    return {n: rng.uniform(-0.5, 0.5, (fleet.size, *made.shape)) for n, made in fields.items()}


def same(one: Any, other: Any, rounds: range) -> None:
    for k in rounds:
        np.testing.assert_array_equal(one.decide(), other.decide())
        given = data_of(one, k)
        np.testing.assert_array_equal(one.observe(**given).loss, other.observe(**given).loss)
    assert one.round == other.round


@pytest.mark.parametrize(
    "backend, size, saved",
    [
        *(("numpy", *case) for case in BY_TURNS),
        *(thorough("numpy", *case) for case in product((3, 40), SAVED) if case not in BY_TURNS),
        pytest.param("c", 11, 3 * T + 2, marks=needs_compiler),
        *(pytest.param("c", 11, saved, marks=[needs_compiler, pytest.mark.thorough]) for saved in SAVED[:2]),
    ],
)
def test_fleets_go_on_bit_for_bit(backend: str, size: int, saved: int, tmp_path: Path) -> None:
    fleet = plan_for(f"= {T}").fleet(size, backend=backend)
    for k in range(saved):
        fleet.decide()
        fleet.observe(**data_of(fleet, k))
    fleet.save(tmp_path / "fleet.npz")
    again = oco.restore_fleet(tmp_path / "fleet.npz")
    assert type(again) is type(fleet) and again.compiled.backend == backend
    same(again, fleet, range(saved, saved + 4))
    assert [p.name for p in tmp_path.iterdir()] == ["fleet.npz"]


@pytest.mark.parametrize("backend, size", KINDS)
def test_draws_go_on_and_a_decided_round_is_observed(backend: str, size: int, tmp_path: Path) -> None:
    fleet = oco.compile(oco.parse(DRAWING)).fleet(size, backend=backend)
    assert fleet.compiled.program.draws
    for k in range(3):
        fleet.decide()
        fleet.observe(**data_of(fleet, k))
    fleet.save(tmp_path / "undecided")
    decided = fleet.decide()
    fleet.save(tmp_path / "decided")
    early, late = (oco.restore_fleet(tmp_path / name) for name in ("undecided", "decided"))
    np.testing.assert_array_equal(early.decide(), decided)
    for one in (early, late, fleet):
        one.observe(**data_of(fleet, 3))
    np.testing.assert_array_equal(early.decide(), fleet.decide())
    same(early, late, range(4, 8))


@pytest.mark.parametrize("backend, size", KINDS)
def test_fleets_in_turn_keep_their_open_rounds(backend: str, size: int, tmp_path: Path) -> None:
    fleet = oco.compile(oco.parse(DELAYED), backend=backend).fleet(size, backend=backend)
    for k in range(7):
        fleet.decide()
        if k > 1:
            fleet.observe(**data_of(fleet, k))
    assert len(fleet.pending) == 2
    fleet.save(tmp_path / "fleet")
    again = oco.restore_fleet(tmp_path / "fleet")
    assert again.pending == fleet.pending
    same(again, fleet, range(7, 12))


@needs_compiler
def test_a_state_of_one_backend_goes_on_in_another(tmp_path: Path) -> None:
    plan = example("tracking", "coldq")
    ours, fleet = plan.fleet(40, backend="numpy"), plan.fleet(40, backend="c")
    for one in (ours, fleet):
        one.decide()
        one.observe(**data_of(one, 0) | {"b": np.full((40, 2), 0.5), "A": np.full((40, 2, 10), 0.3)})
    fleet.save(tmp_path / "fleet")
    again = oco.restore_fleet(tmp_path / "fleet", backend="numpy")
    np.testing.assert_allclose(again.decide(), ours.decide(), rtol=0, atol=1e-12)


def test_what_is_no_saved_fleet_is_refused(tmp_path: Path) -> None:
    fleet = plan_for("= 6").fleet(3, backend="numpy")
    fleet.save(tmp_path / "fleet")
    whole = (tmp_path / "fleet").read_bytes()
    damaged = tmp_path / "damaged"
    for place in (20, len(whole) // 3, len(whole) // 2, len(whole) - 30):
        for changed in (whole[:place], whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :]):
            damaged.write_bytes(changed)
            try:  # a changed time of the archive, say, changes nothing
                assert np.array_equal(oco.restore_fleet(damaged).decide(), fleet.decide()), place
            except oco.OcoError as error:
                assert error.code in ("OCO850", "OCO851"), place
    damaged.write_bytes(whole[: len(whole) // 2])
    plan_for("= 6").learner(backend="numpy").save(tmp_path / "learner")
    for path in (damaged, tmp_path / "learner", tmp_path / "absent"):
        with pytest.raises(oco.OcoError) as caught:
            oco.restore_fleet(path)
        assert caught.value.code == "OCO850"
    with pytest.raises(oco.OcoError) as caught:
        fleet.save(tmp_path / "no" / "folder")
    assert caught.value.code == "OCO903"


def test_a_state_of_another_plan_is_refused(tmp_path: Path) -> None:
    plan, other = plan_for("= 6"), plan_for("= 7")
    saved = plan.fleet(3, backend="numpy")._saved()
    assert isinstance(plan, Plan)
    with pytest.raises(oco.OcoError) as caught:
        other.fleet(3, backend="numpy")._restore(saved)
    assert caught.value.code == "OCO851"
