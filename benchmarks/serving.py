"""Load of a service: rounds a second and times of calls with 1, 10 and 100 clients, on the disk of this machine.

    python -m benchmarks.serving [SECONDS] [FOLDER]

Each client has a key of its own and plays rounds one after another over a connection that stays open: decide, then observe. Rows
with a rate are of all clients together, each calling at steady moments. Their times count from when a call was due: where calls
one after another take longer than that, as those of one client that waits for a disk, they grow without end. A row takes SECONDS,
5 by default. FOLDER is where the store lies: in one of memory (/dev/shm) it shows what is left without the disk. Processor time
is the server's own, which says more than times on a machine that does other work.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import multiprocessing
import os
import sys
import tempfile
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import oco
from oco.backends.database import Durability
from oco.serving.admission import Admission
from oco.serving.running import run
from oco.serving.states import KeyedStates
from oco.serving.store import Store

MODEL = """\
model tracked
horizon T = 100000
decision x[4] in box(-1, 1)
stream goal[4] in [-1, 1]
stream limit in [0, 3]
minimize sum_squares(x - goal)
subject to
    cap: sum(x) - limit <= 0    each round
using coldq
"""
CLIENTS = (1, 10, 100)
RATE = 1000.0
"""Calls a second of all clients together in the rows with a rate."""


def serve(path: Path, port: Any, durability: Durability) -> None:
    """Serve the model until the process is ended."""
    store = Store(path, KeyedStates(oco.compile(oco.parse(MODEL))), durability=durability)
    run(store, "127.0.0.1", 0, Admission(), lambda text: setattr(port, "value", int(text.split(":")[3].split()[0])))


async def play(port: int, key: str, until: float, times: list[float], every: float = 0.0) -> int:
    """Rounds of one client until a moment, one call in so many seconds where given; the time of each call goes to `times`."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    rng, rounds = np.random.default_rng(list(key.encode())), 0
    due = time.perf_counter() + rng.uniform(0, every)
    while time.perf_counter() < until:
        rounds += 1
        goal, limit = rng.uniform(-1, 1, 4).tolist(), float(rng.uniform(0, 3))
        for action, body in (
            ("decide", {"round": rounds}),
            ("observe", {"round": rounds, "goal": goal, "limit": limit}),
        ):
            text = json.dumps(body)
            head = f"POST /learners/{key}/{action} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            if every:
                await asyncio.sleep(due - time.perf_counter())
            began = due if every else time.perf_counter()
            due += every
            writer.write(f"{head}Content-Length: {len(text)}\r\n\r\n{text}".encode())
            answer = (await reader.readuntil(b"\r\n\r\n")).lower()
            assert answer.startswith(b"http/1.1 200"), answer
            await reader.readexactly(int(answer.split(b"content-length:")[1].split()[0]))
            times.append(time.perf_counter() - began)
    writer.close()
    return rounds


async def measured(process: Any, port: int, clients: int, seconds: float, rate: float = 0.0) -> str:
    """Row of the table for so many clients, who send at a rate together where one is given."""
    times: list[float] = []
    began, used = time.perf_counter(), processor_seconds(process.pid)
    every, keys = clients / rate if rate else 0.0, [f"c{clients}-{rate:.0f}-{i}" for i in range(clients)]
    rounds = sum(await asyncio.gather(*(play(port, key, began + seconds, times, every) for key in keys)))
    spent, used = time.perf_counter() - began, processor_seconds(process.pid) - used
    p50, p99 = np.percentile(times, [50, 99]) * 1e3
    who = f"{clients}, {rate:,.0f} calls a second" if rate else f"{clients}"
    each = used / len(times) * 1e6
    return f"| {who} | {rounds / spent:,.0f} | {2 * rounds / spent:,.0f} | {p50:.1f} | {p99:.1f} | {each:.0f} |"


def processor_seconds(pid: int) -> float:
    """Processor time that a process has used (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Print the table."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
    folder = sys.argv[2] if len(sys.argv) > 2 else None
    print("| durability | clients | rounds a second | calls a second | p50, ms | p99, ms | server, us a call |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for durability in Durability:
        table(durability, seconds, folder)
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


def table(durability: Durability, seconds: float, folder: str | None) -> None:
    """Print the rows of a durability."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        context = multiprocessing.get_context("spawn")
        port = context.Value(ctypes.c_int64, 0, lock=False)
        process = context.Process(target=serve, args=(Path(place) / "learners.db", port, durability))
        process.start()
        while not port.value and process.is_alive():
            time.sleep(0.05)
        for clients, rate in product(CLIENTS, (0.0, RATE)):
            row = asyncio.run(measured(process, port.value, clients, seconds, rate))
            print(f"| {durability} {row}", flush=True)
        process.terminate()
        process.join()


if __name__ == "__main__":
    main()
