"""What a call on each domain costs as it grows, in NumPy: writes the table of docs/domains.md.

    python benchmarks/domains.py > docs/domains-costs.md

Beside it stand copt, pyproximal and POT, for the sets that they have, where they are installed.
"""

from __future__ import annotations

import argparse
import importlib
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from oco.compiler.domains import Domain, cut, domain

SIZES = [10**k for k in range(1, 7)]
OPERATIONS = ("project", "lmo", "bregman_step")
LONGEST = 20.0
"""Seconds that one call may take; larger sizes of the same row are left out."""

Made = Callable[[int], Domain | None]


def square(n: int) -> int:
    return math.isqrt(n)


def layered_graph(edges: int) -> tuple[np.ndarray, int]:
    """A ladder of double steps from node 0 to the last node, with about `edges` edges."""
    steps = max(edges // 4, 1)
    rows = [(2 * k + a, 2 * k + 2 + b) for k in range(steps) for a in (0, 1) for b in (0, 1)]
    return np.array(rows), 2 * steps


SETS: dict[str, Made] = {
    "box": lambda n: domain("box", (n,), -1, 1),
    "ball": lambda n: domain("ball", (n,), 1),
    "simplex": lambda n: domain("simplex", (n,), 1),
    "l1_ball": lambda n: domain("l1_ball", (n,), 1),
    "nonneg_ball": lambda n: domain("nonneg_ball", (n,), 1),
    "budget": lambda n: domain("budget", (n,), 0, 1, n / 3),
    "capped_simplex": lambda n: domain("capped_simplex", (n,), 5 / n, 1),
    "box with sum(x) <= n / 3": lambda n: cut(domain("box", (n,), 0, 1), np.ones((1, n)), n / 3),
    "group_ball, groups of 10": lambda n: domain("group_ball", (n,), 1, np.arange(n) // 10),
    "ellipsoid": lambda n: domain("ellipsoid", (n,), np.diag(np.linspace(1, 9, n))) if n <= 1000 else None,
    "polytope, 2n + 10 rows": lambda n: polytope(n) if n <= 100 else None,
    "nuclear_ball, n entries": lambda n: domain("nuclear_ball", (square(n), square(n)), 1),
    "spectrahedron, n entries": lambda n: domain("spectrahedron", (square(n), square(n)), 1),
    "birkhoff, n entries": lambda n: domain("birkhoff", (square(n), square(n)), square(n)) if n <= 10**4 else None,
    "flow, n edges": lambda n: flow(n) if n <= 100 else None,
}


def polytope(n: int) -> Domain:
    rows = np.concatenate([np.eye(n), -np.eye(n), np.random.default_rng(9).standard_normal((10, n))])
    return domain("polytope", (n,), rows, np.ones(len(rows)))


def flow(n: int) -> Domain:
    edges, sink = layered_graph(n)
    return domain("flow", (len(edges),), edges, 0, sink)


def rival(module: str, make: Callable[[Any], Callable[[np.ndarray], Any]]) -> Callable[[np.ndarray], Any] | None:
    """The operation of another library; None where it is not installed or fails on a small example."""
    try:
        call = make(importlib.import_module(module))
        call(np.linspace(-1, 1, 10))
    except Exception as error:
        print(f"<!-- {module}: {type(error).__name__}: {error} -->")
        return None
    return call


RIVALS: dict[str, tuple[str, Callable[[Any], Callable[[np.ndarray], Any]]]] = {
    "simplex, copt": ("copt.constraint", lambda m: lambda v: m.SimplexConstraint(1).prox(v, 1.0)),
    "simplex, pyproximal": ("pyproximal", lambda m: lambda v: m.Simplex(len(v), 1.0, engine="numpy").prox(v, 1.0)),
    "simplex, POT": ("ot.utils", lambda m: lambda v: m.proj_simplex(v)),
    "l1_ball, copt": ("copt.constraint", lambda m: lambda v: m.L1Ball(1).prox(v, 1.0)),
    "l1_ball, pyproximal": ("pyproximal", lambda m: lambda v: m.L1Ball(len(v), 1.0).prox(v, 1.0)),
    "ball, pyproximal": ("pyproximal", lambda m: lambda v: m.EuclideanBall(0.0, 1.0).prox(v, 1.0)),
    "nuclear_ball, n entries, pyproximal": ("pyproximal", lambda m: lambda v: nuclear(m, v)),
}


def nuclear(module: Any, v: np.ndarray) -> Any:
    side = square(len(v))
    return module.NuclearBall((side, side), 1.0).prox(v[: side * side], 1.0)


def seconds(call: Callable[[], Any]) -> float:
    """Median time of a call, over enough calls for a tenth of a second (at least one after the first)."""
    start = time.perf_counter()
    call()
    once = time.perf_counter() - start
    times = []
    for _ in range(int(min(max(0.1 / max(once, 1e-7), 1), 500))):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def measured(calls: Iterator[tuple[int, Callable[[], Any]]]) -> dict[int, float]:
    """Times by size, up to the size whose call takes too long."""
    found: dict[int, float] = {}
    for n, call in calls:
        found[n] = seconds(call)
        if found[n] * 12 > LONGEST:
            break
    return found


def our_calls(make: Made, operation: str, sizes: list[int]) -> Iterator[tuple[int, Callable[[], Any]]]:
    rng = np.random.default_rng(0)
    for n in sizes:
        d = make(n)
        if d is None or operation in d.refusals or (operation == "bregman_step" and d.geometry == "euclidean"):
            return
        v = 3 * rng.standard_normal(d.shape)
        arguments = (d.centre(), v) if operation == "bregman_step" else (v,)
        yield n, lambda d=d, arguments=arguments: getattr(d, f"{operation}_array")(*arguments)


def their_calls(call: Callable[[np.ndarray], Any], sizes: list[int]) -> Iterator[tuple[int, Callable[[], Any]]]:
    rng = np.random.default_rng(0)
    for n in sizes:
        v = 3 * rng.standard_normal(n)
        yield n, lambda v=v: call(v)


def exponent(times: dict[int, float]) -> str:
    """Slope of log time against log n over the sizes whose call takes more than 0.2 ms; empty where there are not two."""
    long = {n: s for n, s in times.items() if s > 2e-4}
    if len(long) < 2:
        return ""
    return f"{np.polyfit(np.log(list(long)), np.log(list(long.values())), 1)[0]:.2f}"


def shown(s: float | None) -> str:
    if s is None:
        return ""
    return f"{s * 1e6:.0f} us" if s < 1e-3 else f"{s * 1e3:.2g} ms" if s < 0.1 else f"{s:.2g} s"


def line(name: str, operation: str, times: dict[int, float], sizes: list[int]) -> str:
    cells = [name, operation, *(shown(times.get(n)) for n in sizes), exponent(times)]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="greatest n")
    sizes = [n for n in SIZES if n <= parser.parse_args().largest]
    print("| set | operation | " + " | ".join(f"n = {n:.0e}".replace("e+0", "e") for n in sizes) + " | exponent |")
    print("|" + " --- |" * (len(sizes) + 3))
    for name, make in SETS.items():
        for operation in OPERATIONS:
            times = measured(our_calls(make, operation, sizes))
            if times:
                print(line(name, operation, times, sizes), flush=True)
    for name, (module, make_rival) in RIVALS.items():
        call = rival(module, make_rival)
        if call is not None:
            print(line(name, "project", measured(their_calls(call, sizes)), sizes), flush=True)


if __name__ == "__main__":
    main()
