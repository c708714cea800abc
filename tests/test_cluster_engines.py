"""Fleets by key on Ray, where it is installed (`make engines`): actors are killed, and every bit stays."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from survival import DRAWING, plan_of
from test_cluster import KEYS, batch_of, by_key, plain_rounds

import oco
from oco.dsl.diagnostics import OcoError
from oco.evaluation.engines import Ray

TABLE = "model m\nhorizon T = 40\ndecision x[2] in box(-1, 1)\nstream a[2] in [-1, 1]\nminimize sum_squares(x - a)\n"


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    """Cluster of two processors on this machine, which all tests share."""
    module = pytest.importorskip("ray")
    with Ray(workers=2).connected():
        yield module


def test_killed_actors_are_replaced_bit_for_bit(ray, tmp_path):
    """One actor is killed, and then the other: the shards go to the one that is left, and then to a new one."""
    plan, wanted = plan_of(DRAWING), plain_rounds(plan_of(DRAWING), 12)
    with oco.ClusterFleet(
        plan, KEYS, engine="ray", workers=2, snapshots=str(tmp_path / "s"), every=3, backend="c"
    ) as fleet:
        for t, (decided, seen) in enumerate(wanted, 1):
            assert by_key(fleet.decide(), plan) == decided
            for worker in {4: [0], 8: [1]}.get(t, []):
                ray.kill(fleet.workers.actors[worker])
            assert by_key(fleet.observe(batch_of(plan, t)), plan) == seen
        assert fleet.round == 13
    again = oco.ClusterFleet.restore(str(tmp_path / "s"))
    assert again.round == 13


def test_batches_are_arrow_tables(ray):
    """A number beside each key, as text: no two columns are mixed up on their way."""
    plan = plan_of(TABLE.replace("a[2]", "a").replace("x[2]", "x").replace("sum_squares(x - a)", "square(x - a)"))
    values = np.linspace(-0.9, 0.9, len(KEYS))
    with oco.ClusterFleet(plan, KEYS, engine="ray", workers=2) as fleet:
        fleet.decide()
        fleet.observe(pa.table({"key": KEYS, "a": values}))
        moved = dict(zip(fleet.decide()["key"].to_pylist(), fleet.decide()["x"].to_pylist()))
    assert [np.sign(moved[key]) for key in KEYS] == np.sign(values).tolist()


def test_a_fleet_larger_than_the_cluster_is_refused_at_once(ray):
    """The cluster has two processors, which the fleets before have just given back."""
    plan = plan_of(TABLE)
    before = perf_counter()
    with pytest.raises(OcoError, match="room for 2 workers of this fleet, not for 3") as refused:
        oco.ClusterFleet(plan, KEYS, engine="ray", workers=3)
    assert refused.value.code == "OCO881" and perf_counter() - before < 30
    for _ in range(3):
        with oco.ClusterFleet(plan, KEYS, engine="ray", workers=2) as fleet:
            assert len(fleet.alive) == 2
