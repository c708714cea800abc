"""Seconds that `check` and `compile` take for models of the sizes that people have: `python -m benchmarks.sizes [NAME ...]`.

Each model is checked and compiled in a process of its own, from the import of `oco` to the text of the learner; `--larger`
takes models ten times as large, `--limit` ends a process after so many seconds.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Mapping
from time import perf_counter, process_time

import numpy as np

import oco

LIMIT = 300.0  # seconds after which a process is ended


def loop(n: int) -> oco.Model:
    """Family of n named constraints, written in a loop, on a vector of 300 entries."""
    m = oco.Model("loop", horizon=1000)
    x = m.decision("x", 300, domain=oco.box(0, 10))
    cost = m.stream("cost", 300, bounds=(0, 5))
    need = m.stream("need", n, bounds=(0, 1))
    m.minimize(cost @ x)
    for i in range(n):
        m.subject_to(need[i] - x[i % 300] <= 0, name=f"need{i}", each_round=True)
    return m


def rows(n: int) -> oco.Model:
    """Vector constraint of n rows with a fixed matrix."""
    m = oco.Model("rows", horizon=1000)
    a = m.param("a", value=np.random.default_rng(0).uniform(0, 1, (n, 20)))
    x = m.decision("x", 20, domain=oco.box(0, 1))
    cost = m.stream("cost", 20, bounds=(-1, 1))
    limit = m.stream("limit", n, bounds=(1, 10))
    m.minimize(cost @ x)
    m.subject_to(a @ x <= limit, name="rows", each_round=True)
    return m


def large_box(n: int) -> oco.Model:
    """Box of n entries with one constraint on their sum."""
    m = oco.Model("large_box", horizon=1000)
    x = m.decision("x", n, domain=oco.box(0, 1))
    cost = m.stream("cost", n, bounds=(-1, 1))
    need = m.stream("need", bounds=(0, n / 4))
    m.minimize(cost @ x)
    m.subject_to(need - oco.sum(x) <= 0, name="need", each_round=True)
    return m


def large_simplex(n: int) -> oco.Model:
    """Simplex of n entries with one constraint."""
    m = oco.Model("large_simplex", horizon=1000)
    x = m.decision("x", n, domain=oco.simplex())
    gain = m.stream("gain", n, bounds=(0, 1))
    risk = m.stream("risk", n, bounds=(0, np.linspace(0.2, 1, n)))
    m.minimize(-gain @ x)
    m.subject_to(risk @ x <= 0.5, name="risk", each_round=True)
    return m


def transport(n: int) -> oco.Model:
    """Shipments from n plants to n markets."""
    m = oco.Model("transport", horizon=1000)
    x = m.decision("x", (n, n), domain=oco.box(0, 10))
    cost = m.stream("cost", (n, n), bounds=(1, 5))
    demand = m.stream("demand", n, bounds=(0, 10))
    m.minimize(oco.sum(cost * x))
    m.subject_to(oco.sum(x, axis=0) >= demand, name="demand", each_round=True)
    m.subject_to(oco.sum(x, axis=1) <= 100, name="supply", each_round=True)
    return m


def signals(n: int) -> oco.Model:
    """Shares of green time of n crossings with 4 phases each; queues that must drain on average."""
    m = oco.Model("signals", horizon=1000)
    green = m.decision("green", (n, 4), domain=oco.box(0, 1))
    arrivals = m.stream("arrivals", (n, 4), bounds=(0, 0.5))
    m.minimize(oco.sum(oco.square(green - arrivals)))
    m.subject_to(oco.sum(green, axis=1) <= 1, name="cycle", each_round=True)
    m.subject_to(arrivals - green <= 0, name="drain")
    return m


def balancing(n: int) -> oco.Model:
    """Jobs of 10 types on n servers, with a capacity of each server that varies."""
    m = oco.Model("balancing", horizon=1000)
    x = m.decision("x", (10, n), domain=oco.box(0, 1))
    jobs = m.stream("jobs", 10, bounds=(0, n / 20))
    slow = m.stream("slow", n, bounds=(0.1, 1))
    m.minimize(oco.sum(slow * oco.square(oco.sum(x, axis=0))))
    m.subject_to(oco.sum(x, axis=1) >= jobs, name="served", each_round=True)
    m.subject_to(oco.sum(x, axis=0) <= 5, name="capacity", each_round=True)
    return m


MODELS: Mapping[str, tuple[Callable[[int], oco.Model], int, int]] = {
    "loop": (loop, 300, 3_000),
    "rows": (rows, 5_000, 50_000),
    "box": (large_box, 100_000, 1_000_000),
    "simplex": (large_simplex, 100_000, 1_000_000),
    "transport": (transport, 40, 126),  # entries are the square
    "signals": (signals, 50, 500),
    "balancing-20": (balancing, 20, 200),
    "balancing-50": (balancing, 50, 500),
    "balancing-200": (balancing, 200, 2_000),
}
"""Model, size and larger size by name."""


def once(name: str, what: str, larger: bool) -> None:
    """Print the seconds of one step in this process, from the model on, and what came of it."""
    make, size, large = MODELS[name]
    began, work = perf_counter(), process_time()
    model = make(large if larger else size)
    built = perf_counter() - began
    if what == "check":
        facts = oco.check(model)
        words = f"feasible.common {facts['feasible.common'].status}"
    else:
        plan = oco.compile(model)
        words = f"{plan.algorithm}, {len(plan.source()):,} characters"
    seconds, work = perf_counter() - began, process_time() - work
    print(f"{seconds:7.2f} s ({work:.2f} of processor), {built:.2f} of them to build: {words}")


def child(name: str, what: str, larger: bool, limit: float) -> str:
    """Output of a step in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.sizes", name, "--step", what, *(["--larger"] if larger else [])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return f"over {limit:g} s"
    lines = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
    return lines[-1] if lines else f"status {done.returncode}"


def main() -> None:
    """Measure the models named, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sizes", description=__doc__)
    parser.add_argument("names", nargs="*", default=[], metavar="NAME", help=", ".join(MODELS))
    parser.add_argument("--larger", action="store_true", help="ten times as large")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds of a process")
    parser.add_argument("--step", choices=("check", "compile"), help="this step alone, in this process")
    o = parser.parse_args()
    for name in o.names or MODELS:
        if o.step:
            once(name, o.step, o.larger)
            continue
        size = MODELS[name][2 if o.larger else 1]
        for what in ("check", "compile"):
            print(f"{name:<14}{size:>10,}  {what:<8}{child(name, what, o.larger, o.limit)}", flush=True)


if __name__ == "__main__":
    main()
