"""Processes that have the shards of a fleet: this one, or actors on a Ray cluster."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from time import monotonic, sleep
from typing import Any, Protocol

from oco.dsl.diagnostics import fail
from oco.evaluation.engines import Ray
from oco.fleets.shard import Holder

SECONDS_TO_FREE = 2.0
"""Seconds in which a cluster counts the processors of actors that have ended as free: its nodes report ten times a second."""


class Lost(Exception):
    """Loss of a process, with all that it had in memory."""


class Workers(Protocol):
    """Processes by number."""

    def start(self, worker: int, recipe: Mapping[str, Any], backend: str | None) -> None:
        """Start a process without shards, in the place of one that was lost if there was one."""

    def stop(self, worker: int) -> None:
        """End a process, with the shards that it has."""

    def room(self, wanted: int) -> int:
        """Number of further processes that can start now, at most `wanted`."""
        ...

    def send(self, worker: int, method: str, *args: Any) -> Any:
        """Ask a process for a call of a method of `Holder`; the promise of its result."""

    def result(self, promise: Any) -> Any:
        """Result of a call. Raises Lost where its process is gone."""

    def keep(self, value: Any) -> Any:
        """Value that several calls take, where all processes reach it."""

    def close(self) -> None:
        """End all processes."""


class Here:
    """Shards in this process; calls are done when they are sent."""

    def __init__(self) -> None:
        self.holders: dict[int, Holder] = {}

    def start(self, worker: int, recipe: Mapping[str, Any], backend: str | None) -> None:
        """Make a holder without shards."""
        self.holders[worker] = Holder(recipe, backend)

    def stop(self, worker: int) -> None:
        """Let go of a holder."""
        self.holders.pop(worker, None)

    def room(self, wanted: int) -> int:
        """All that are wanted."""
        return wanted

    def send(self, worker: int, method: str, *args: Any) -> Any:
        """Result of the call, or Lost."""
        holder = self.holders.get(worker)
        return Lost(f"worker {worker}") if holder is None else getattr(holder, method)(*args)

    def result(self, promise: Any) -> Any:
        """Result of a call. Raises Lost."""
        if isinstance(promise, Lost):
            raise promise
        return promise

    def keep(self, value: Any) -> Any:
        """Value unchanged."""
        return value

    def close(self) -> None:
        """Let go of all shards."""
        self.holders.clear()


class RayWorkers:
    """Actors on a Ray cluster, each with a processor of its own. Raises OCO909 where Ray is missing or does not answer."""

    def __init__(self, address: str | None, workers: int) -> None:
        self._stack = ExitStack()
        self._ray = self._stack.enter_context(cluster(address, workers).connected())
        self._made = self._ray.remote(Holder).options(num_cpus=1, scheduling_strategy="SPREAD")
        self.actors: dict[int, Any] = {}

    def start(self, worker: int, recipe: Mapping[str, Any], backend: str | None) -> None:
        """Start an actor where the cluster has room."""
        self.actors[worker] = self._made.remote(recipe, backend)

    def stop(self, worker: int) -> None:
        """End an actor."""
        self._ray.kill(self.actors.pop(worker))

    def room(self, wanted: int) -> int:
        """Number of free processors of the cluster, at most `wanted`. Those of actors that have just ended are waited for."""
        until = monotonic() + SECONDS_TO_FREE
        while (free := _processors(self._ray.available_resources())) < wanted and monotonic() < until:
            if _processors(self._ray.cluster_resources()) < wanted:
                break
            sleep(0.05)
        return min(wanted, free)

    def send(self, worker: int, method: str, *args: Any) -> Any:
        """Reference to the result of the call."""
        return getattr(self.actors[worker], method).remote(*args)

    def result(self, promise: Any) -> Any:
        """Result of a call. Raises Lost where the actor or its node died."""
        try:
            return self._ray.get(promise)
        except (self._ray.exceptions.RayActorError, self._ray.exceptions.ObjectLostError) as error:
            raise Lost(str(error).strip().partition("\n")[0]) from None

    def keep(self, value: Any) -> Any:
        """Reference to a value in the object store of the cluster."""
        return self._ray.put(value)

    def close(self) -> None:
        """End the actors, and a cluster that was started here."""
        for actor in self.actors.values():
            self._ray.kill(actor)
        self.actors.clear()
        self._stack.close()


def see_room(workers: Workers, have: int, count: int, hint: str) -> None:
    """See that a fleet that has so many workers can have `count`: one that gets no processor never answers. Raises OCO881."""
    if have + (room := workers.room(count - have)) < count:
        message = f"the cluster has room for {have + room} workers of this fleet, not for {count}"
        raise fail("OCO881", message, hint=hint)


def _processors(resources: Mapping[str, float]) -> int:
    return int(resources.get("CPU", 0))


def cluster(address: str | None, workers: int) -> Ray:
    """Cluster at an address; without one that which this process is connected to, or one of so many workers here. Raises OCO909."""
    try:
        import ray
    except ImportError:
        raise fail("OCO909", "ray is not installed") from None
    return Ray(address) if address or ray.is_initialized() else Ray(workers=workers)
