"""Cost of learners by key in a store: events of `oco pipe`, and a store of many keys, on the disk of this machine.

    python benchmarks/keyed_store.py [KEYS] [FOLDER]

An event gives the data of a round and asks for the next decision. Processor time is that of this process; time on the wall has the disk.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from serving import MODEL

import oco
from oco.serving.calls import Action, Call, call_of
from oco.serving.states import KeyedStates
from oco.serving.store import Store, _checksum

BATCHES = (1, 100)
EVENTS = 2000


def rounds(store: Store, keys: list[str], count: int, batch: int) -> tuple[float, float, float]:
    """Microseconds of an event, of processor and wall, and the 99th percentile of a batch in milliseconds."""
    rng = np.random.default_rng(0)
    goals, limits = rng.uniform(-1, 1, (count, 4)).tolist(), rng.uniform(0, 3, count).tolist()
    events: list[list[Call]] = []
    for i in range(count):
        key, t = keys[i % len(keys)], i // len(keys) + 1
        data: dict[str, Any] = {"round": t, "goal": goals[i], "limit": limits[i]}
        events.append([call_of(key, Action.OBSERVE, data), Call(key, Action.DECIDE, t + 1)])
    for part in range(0, len(keys), 1000):
        store.apply([Call(key, Action.DECIDE, 1) for key in keys[part : part + 1000]])
    times: list[float] = []
    cpu, began = time.process_time(), time.perf_counter()
    for i in range(0, count, batch):
        start = time.perf_counter()
        answers = store.apply([call for event in events[i : i + batch] for call in event])
        times.append(time.perf_counter() - start)
        assert not any(isinstance(answer, oco.OcoError) for answer in answers)
    spent = time.process_time() - cpu, time.perf_counter() - began
    return spent[0] / count * 1e6, spent[1] / count * 1e6, float(np.percentile(times, 99)) * 1e3


def fill(store: Store, count: int) -> float:
    """Record learners of so many keys in their first round; seconds."""
    row, began = store.states.row(store.states.fresh("")), time.perf_counter()
    keys = (f"key-{i:07d}" for i in range(count))
    with store._whole():
        rows = ((key, 1, *row, _checksum(key, 1, row)) for key in keys)
        store._base.executemany("INSERT INTO learners VALUES (?, ?, ?, ?, ?)", rows)
    return time.perf_counter() - began


def main() -> None:
    """Print the tables."""
    count = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**6
    plan = oco.compile(oco.parse(MODEL))
    with tempfile.TemporaryDirectory(dir=sys.argv[2] if len(sys.argv) > 2 else None) as folder:
        print("| events in a batch | processor, us an event | wall, us an event | p99 of a batch, ms |")
        print("| --- | --- | --- | --- |")
        for batch in BATCHES:
            with Store(Path(folder) / f"{batch}.db", KeyedStates(plan)) as store:
                cpu, wall, p99 = rounds(store, [f"k{i}" for i in range(100)], EVENTS if batch > 1 else 300, batch)
            print(f"| {batch} | {cpu:.0f} | {wall:.0f} | {p99:.1f} |", flush=True)
        path = Path(folder) / "many.db"
        with Store(path, KeyedStates(plan)) as store:
            seconds = fill(store, count)
        size = path.stat().st_size
        print(f"\n{count:,} keys: {size / 2**20:,.0f} MiB, {size / count:.0f} bytes a key, recorded in {seconds:.0f} s")
        began = time.perf_counter()
        with Store(path, KeyedStates(plan)) as store:
            opened, numbers = time.perf_counter() - began, random.Random(0).sample(range(count), 2000)
            keys = [f"key-{i:07d}" for i in numbers]
            cpu, times = time.process_time(), []
            for key in keys[:300]:
                start = time.perf_counter()
                store.apply([Call(key, Action.DECIDE)])
                times.append(time.perf_counter() - start)
            single = (time.process_time() - cpu) / 300 * 1e6
            cpu, start = time.process_time(), time.perf_counter()
            for i in range(300, 2000, 100):
                store.apply([Call(key, Action.DECIDE) for key in keys[i : i + 100]])
            spent = (time.process_time() - cpu) / 1700 * 1e6, (time.perf_counter() - start) / 1700 * 1e6
        p50, p99 = np.percentile(times, [50, 99]) * 1e3
        print(f"opened in {opened:.2f} s")
        print(f"a decision of a key not in memory, alone: {p50:.1f} ms (p99 {p99:.1f}), {single:.0f} us of processor")
        print(f"the same in batches of 100: {spent[1]:.0f} us, {spent[0]:.0f} us of processor")
        print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
