"""Shards of a fleet by worker: which has which, so that all have about as many."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def placed(homes: Mapping[int, int], shards: Iterable[int], workers: Iterable[int]) -> dict[int, int]:
    """Worker of each shard: that of `homes`, and for other shards the one that has fewest then."""
    held = dict.fromkeys(sorted(workers), 0)
    for worker in homes.values():
        held[worker] += 1
    result = dict(homes)
    for shard in shards:
        if shard not in result:
            result[shard] = min(held, key=held.__getitem__)
            held[result[shard]] += 1
    return result


def moved(homes: Mapping[int, int], workers: Iterable[int]) -> list[int]:
    """Shards that leave their workers so that these, once the shards are `placed`, differ by one shard at most: as few as that takes.

    Those of workers that are not among `workers` all leave.
    """
    held: dict[int, list[int]] = {worker: [] for worker in sorted(workers)}
    leaving: list[int] = []
    for shard, worker in sorted(homes.items()):
        held.get(worker, leaving).append(shard)
    own = sorted(held.values(), key=len, reverse=True)
    share, more = divmod(len(homes), len(own))
    for k, shards in enumerate(own):
        leaving += shards[share + (k < more) :]
    return sorted(leaving)
