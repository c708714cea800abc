"""Engines of streams, and fleets on clusters (OCO877 to OCO882)."""

from __future__ import annotations

from oco.dsl.codes.base import Code, Stage

CLUSTERS: dict[str, Code] = {
    "OCO877": Code(
        "no such engine of streams",
        "`oco emit` writes a job for Apache Flink (`flink`) or for Quix Streams over Kafka (`quix`).",
        "oco emit spark model.oco",
        "Name an engine that the message lists; `oco pipe` has the same events and answers for any other.",
        Stage.COMMAND,
    ),
    "OCO878": Code(
        "keys of a batch that are not those of the fleet",
        "A fleet by key begins with its keys, no two the same. A batch has one row for each of them, in any order; so has every round of "
        "files that are divided by key.",
        "oco.ClusterFleet(plan, ['a', 'a'])",
        "Give a row for each key of `fleet.keys`, with the last known values for those that have none.",
        Stage.RUN,
    ),
    "OCO879": Code(
        "a round that is not the fleet's",
        "All learners of a fleet are in one round, and take the rounds in order, each once.",
        "oco.ClusterFleet(plan, ['a']).observe(pyarrow.table({'key': ['a'], 'round': [7], 'price': [1.0]}))",
        "Give the batch of the round that `fleet.round` says; leave the column `round` out where batches come in order anyway.",
        Stage.RUN,
    ),
    "OCO880": Code(
        "a file of a fleet that is not there",
        "Workers of a fleet read and write snapshots, and files of rounds by shard, at a place that all of them reach. `fleet.json` there "
        "names the last snapshot.",
        "oco.ClusterFleet.restore('empty')",
        "Give the folder or the address that the fleet was begun with: ClusterFleet(..., snapshots=PLACE).",
        Stage.RUN,
    ),
    "OCO881": Code(
        "workers that are lost, or have no room",
        "A worker died with the shards in its memory. With snapshots others take them over, from the last one and the batches since; where "
        "none is left, or all die again, the fleet cannot go on. A fleet has no more workers than the cluster has processors free "
        "for them, when it begins and in `rebalance`: the others would be waited for without end.",
        "oco.ClusterFleet(plan, keys, engine='ray')  # and a node dies",
        "Give the cluster more memory, or the fleet a place for snapshots; `ClusterFleet.restore` goes on from the last one. Name no more "
        "workers than the message says, or give the cluster more processors.",
        Stage.RUN,
    ),
    "OCO882": Code(
        "a plan that a fleet by key cannot have",
        "The learners of a fleet by key take each round at once. Where feedback is delayed, each learner has open rounds of its own.",
        "oco.ClusterFleet(oco.compile(oco.load('late.oco')), ['a'])",
        "Serve learners one by one: `oco serve`, `oco pipe`, or a job of `oco emit`.",
        Stage.RUN,
    ),
}
