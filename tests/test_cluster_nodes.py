"""Fleets by key on a Ray cluster whose nodes go and come, where Ray is installed (`make engines`): every bit stays."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from survival import DRAWING, plan_of
from test_cluster import KEYS, batch_of, by_key, plain_rounds

import oco
from oco.dsl.diagnostics import OcoError


def test_a_node_that_comes_back_gets_its_share_again(tmp_path):
    """Nodes of a cluster in processes of this machine: one goes in a round, and another one comes in its place."""
    module = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    plan, wanted = plan_of(DRAWING), plain_rounds(plan_of(DRAWING), 12)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        node = cluster.add_node(num_cpus=1)
        module.init(address=cluster.address)
        options: dict[str, Any] = {"engine": "ray", "workers": 2, "snapshots": str(tmp_path / "s"), "every": 3}
        with oco.ClusterFleet(plan, KEYS, backend="c", **options) as fleet:
            for t, (decided, seen) in enumerate(wanted, 1):
                if t == 4:
                    cluster.remove_node(node)
                if t == 6:
                    with pytest.raises(OcoError, match="room for 1 workers"):
                        fleet.rebalance()
                if t == 8:
                    cluster.add_node(num_cpus=1)
                    fleet.rebalance()
                    assert len(fleet.alive) == 2 and sorted(Counter(fleet._homes.values()).values()) == [4, 4]
                assert by_key(fleet.decide(), plan) == decided
                assert by_key(fleet.observe(batch_of(plan, t)), plan) == seen
    finally:
        module.shutdown()
        cluster.shutdown()
