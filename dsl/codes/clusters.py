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
}
