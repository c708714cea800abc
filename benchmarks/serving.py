"""Load of a service: rounds a second and times of calls with 1, 10 and 100 clients, on the disk of this machine.

    python benchmarks/serving.py [SECONDS]

Each client has a key of its own and plays rounds one after another over a connection that stays open: decide, then observe.
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
from pathlib import Path
from typing import Any

import numpy as np

import oco
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


def serve(path: Path, port: Any) -> None:
    """Serve the model until the process is ended."""
    store = Store(path, KeyedStates(oco.compile(oco.parse(MODEL))))
    run(store, "127.0.0.1", 0, Admission(), lambda text: setattr(port, "value", int(text.split(":")[3].split()[0])))


async def play(port: int, key: str, until: float, times: list[float]) -> int:
    """Rounds of one client until a moment; the time of each call goes to `times`."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    rng, rounds = np.random.default_rng(len(key)), 0
    while time.perf_counter() < until:
        rounds += 1
        goal, limit = rng.uniform(-1, 1, 4).tolist(), float(rng.uniform(0, 3))
        for action, body in (
            ("decide", {"round": rounds}),
            ("observe", {"round": rounds, "goal": goal, "limit": limit}),
        ):
            text = json.dumps(body)
            head = f"POST /learners/{key}/{action} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            began = time.perf_counter()
            writer.write(f"{head}Content-Length: {len(text)}\r\n\r\n{text}".encode())
            answer = (await reader.readuntil(b"\r\n\r\n")).lower()
            assert answer.startswith(b"http/1.1 200"), answer
            await reader.readexactly(int(answer.split(b"content-length:")[1].split()[0]))
            times.append(time.perf_counter() - began)
    writer.close()
    return rounds


async def measured(port: int, clients: int, seconds: float) -> str:
    """Row of the table for so many clients."""
    times: list[float] = []
    began = time.perf_counter()
    rounds = sum(await asyncio.gather(*(play(port, f"c{clients}-{i}", began + seconds, times) for i in range(clients))))
    spent = time.perf_counter() - began
    p50, p99 = np.percentile(times, [50, 99]) * 1e3
    return f"| {clients} | {rounds / spent:,.0f} | {2 * rounds / spent:,.0f} | {p50:.1f} | {p99:.1f} |"


def main() -> None:
    """Print the table."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
    with tempfile.TemporaryDirectory() as folder:
        context = multiprocessing.get_context("spawn")
        port = context.Value(ctypes.c_int64, 0, lock=False)
        process = context.Process(target=serve, args=(Path(folder) / "learners.db", port))
        process.start()
        while not port.value and process.is_alive():
            time.sleep(0.05)
        print("| clients | rounds a second | calls a second | p50, ms | p99, ms |\n| --- | --- | --- | --- | --- |")
        for clients in CLIENTS:
            print(asyncio.run(measured(port.value, clients, seconds)), flush=True)
        print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        process.terminate()
        process.join()


if __name__ == "__main__":
    main()
