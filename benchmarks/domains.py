"""Operations of each domain, and the cost of a call as it grows: the tables of docs/domains.md.

    OPENBLAS_NUM_THREADS=1 python benchmarks/domains.py --write

Both the emitted NumPy module and the generated C are timed, less what an update costs that does nothing. Beside them stand other libraries
(`pip install copt scikit-learn pyproximal POT`; SciPy and Clarabel are there) for what they have, where they are installed.
"""

from __future__ import annotations

import argparse
import importlib
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from oco.backends.contract import Contract
from oco.backends.registry import backend
from oco.compiler.domains import Domain, cut, domain
from oco.compiler.ir.build import trace_program
from oco.compiler.ir.passes import optimize
from oco.compiler.ir.program import DType, Field, Program, Type
from oco.compiler.ir.trace import Tracer

PAGE = Path(__file__).parents[1] / "docs" / "domains.md"
SIZES = [10**k for k in range(1, 7)]
OPERATIONS = ("project", "lmo", "bregman_step")
LONGEST = 0.4
"""Seconds of a call after which larger sizes of the same row are left out."""
TARGETS = {"numpy": "NumPy", "c": "C"}

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


@dataclass(frozen=True)
class Rival:
    """Projection of another library on a set: `make(module, n)` gives the call for n entries."""

    set: str
    operation: str
    library: str
    module: str
    make: Callable[[Any, int], Callable[[np.ndarray], Any]]


def nuclear(module: Any, n: int) -> Callable[[np.ndarray], Any]:
    ball = module.NuclearBall((square(n), square(n)), 1.0)
    return lambda v: ball.prox(v[: square(n) ** 2], 1.0)


def assignment(module: Any, n: int) -> Callable[[np.ndarray], Any]:
    shape = (square(n), square(n))
    return lambda v: module.linear_sum_assignment(v[: shape[0] ** 2].reshape(shape))


def highs(module: Any, n: int) -> Callable[[np.ndarray], Any]:
    sides = few(polytope, n).halfspaces()
    assert sides is not None
    return lambda c: module.linprog(c, sides.A, sides.b, bounds=(None, None), method="highs")


def clarabel(module: Any, n: int) -> Callable[[np.ndarray], Any]:
    """The projection on the polytope to 1e-10, its matrices prepared."""
    from scipy.sparse import csc_matrix, eye

    sides = few(polytope, n).halfspaces()
    assert sides is not None
    settings = module.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    P, A, b, cones = eye(n, format="csc"), csc_matrix(sides.A), sides.b, [module.NonnegativeConeT(len(sides.b))]
    return lambda v: module.DefaultSolver(P, -v, A, b, cones, settings).solve()


def few(make: Callable[[int], Domain], n: int) -> Domain:
    if n > 100:
        raise ValueError("for few entries only")
    return make(n)


RIVALS = [
    Rival("simplex", "project", "copt", "copt.constraint", lambda m, n: lambda v: m.SimplexConstraint(1).prox(v, 1.0)),
    Rival("simplex", "project", "pyproximal", "pyproximal", lambda m, n: lambda v: m.Simplex(n, 1.0).prox(v, 1.0)),
    Rival("simplex", "project", "POT", "ot.utils", lambda m, n: m.proj_simplex),
    Rival("l1_ball", "project", "copt", "copt.constraint", lambda m, n: lambda v: m.L1Ball(1).prox(v, 1.0)),
    Rival("l1_ball", "project", "pyproximal", "pyproximal", lambda m, n: lambda v: m.L1Ball(n, 1.0).prox(v, 1.0)),
    Rival("ball", "project", "pyproximal", "pyproximal", lambda m, n: lambda v: m.EuclideanBall(0.0, 1.0).prox(v, 1.0)),
    Rival("nuclear_ball, n entries", "project", "pyproximal", "pyproximal", nuclear),
    Rival("birkhoff, n entries", "lmo", "SciPy (linear_sum_assignment)", "scipy.optimize", assignment),
    Rival("polytope, 2n + 10 rows", "lmo", "SciPy (HiGHS)", "scipy.optimize", highs),
    Rival("polytope, 2n + 10 rows", "project", "Clarabel", "clarabel", clarabel),
]


def seconds(call: Callable[[], Any]) -> float:
    """Median time of a call, over enough calls for a twentieth of a second (at least one after the first)."""
    start = time.perf_counter()
    call()
    once = time.perf_counter() - start
    times = []
    for _ in range(int(min(max(0.05 / max(once, 1e-7), 1), 500))):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def measured(calls: Iterator[tuple[int, Callable[[], Any], Callable[[], Any]]]) -> dict[int, float]:
    """Times by size less those of the second call, up to the size whose call takes too long."""
    found: dict[int, float] = {}
    for n, call, bare in calls:
        found[n] = seconds(call) - seconds(bare)
        if found[n] > LONGEST:
            break
    return found


def program(d: Domain, operation: str) -> Program:
    """A learner whose update applies the operation to what it is shown; "nothing" hands that back."""
    t, point = Tracer("benchmark"), Type(DType.FLOAT, d.shape)
    apply: Mapping[str, Callable[[Any, Any], Any]] = {
        "project": lambda v, x: d.project(t, v),
        "lmo": lambda v, x: d.lmo(t, v),
        "bregman_step": lambda v, x: d.bregman_step(t, x, v),
        "nothing": lambda v, x: v,
    }
    made = trace_program(
        t,
        decision=[Field("x", Type(DType.FLOAT, (1,)))],
        feedback=[Field("v", point), Field("start", point)],
        init=lambda first: {"found": t.zeros(d.shape)},
        decide=lambda state, drawn: {"x": t.zeros((1,))},
        update=lambda state, seen, drawn: {"found": apply[operation](seen["v"], seen["start"])},
    )
    return optimize(made)


def offers(d: Domain | None, operation: str) -> bool:
    return d is not None and operation not in d.refusals and (operation != "bregman_step" or d.geometry != "euclidean")


def our_calls(
    make: Made, operation: str, target: str, sizes: list[int]
) -> Iterator[tuple[int, Callable[[], Any], Callable[[], Any]]]:
    for n in sizes:
        d = make(n)
        if d is None or not offers(d, operation):
            return
        v = 3 * np.random.default_rng(0).standard_normal(d.shape)
        empty = Contract("", "", None, {"x": np.zeros(1)})
        ours, bare = (backend(target).compile(program(d, name), empty).update for name in (operation, "nothing"))
        arguments = (1, np.zeros(d.shape), v, d.centre())
        yield n, lambda ours=ours, a=arguments: ours(*a), lambda bare=bare, a=arguments: bare(*a)


def their_calls(rival: Rival, sizes: list[int]) -> Iterator[tuple[int, Callable[[], Any], Callable[[], Any]]]:
    """Nothing where the library is not installed; up to the size that it fails at."""
    for n in sizes:
        v = 3 * np.random.default_rng(0).standard_normal(n)
        try:
            call = rival.make(importlib.import_module(rival.module), n)
            call(v)
        except Exception as error:
            print(f"{rival.set}, {rival.library}, n = {n}: {type(error).__name__}: {error}")
            return
        yield n, lambda v=v, call=call: call(v), lambda: None


def exponent(times: dict[int, float]) -> str:
    """Slope of log time against log n over the sizes whose call takes more than 0.2 ms; empty where there are not two."""
    long = {n: s for n, s in times.items() if s > 2e-4}
    if len(long) < 2:
        return ""
    return f"{np.polyfit(np.log(list(long)), np.log(list(long.values())), 1)[0]:.2f}"


def shown(s: float | None) -> str:
    if s is None:
        return ""
    if s < 1e-7:
        return "< 0.1 us"
    if s < 1e-5:
        return f"{s * 1e6:.2g} us"
    return f"{s * 1e6:.0f} us" if s < 1e-3 else f"{s * 1e3:.2g} ms" if s < 0.1 else f"{s:.2g} s"


def costs(sizes: list[int]) -> Iterator[str]:
    """The table of times, a line at a time."""
    yield "| set | operation | by | " + " | ".join(f"n = {n:.0e}".replace("e+0", "e") for n in sizes) + " | exponent |"
    yield "|" + " --- |" * (len(sizes) + 4)
    for name, make in SETS.items():
        for operation in OPERATIONS:
            rows = [(word, our_calls(make, operation, target, sizes)) for target, word in TARGETS.items()]
            others = [r for r in RIVALS if (r.set, r.operation) == (name, operation)]
            rows += [(r.library, their_calls(r, sizes)) for r in others]
            for word, calls in rows:
                times = measured(calls)
                if times:
                    cells = [name, operation, word, *(shown(times.get(n)) for n in sizes), exponent(times)]
                    yield "| " + " | ".join(cells) + " |"


LARGE: dict[str, Callable[[], Domain]] = {
    "birkhoff, 201 x 201": lambda: domain("birkhoff", (201, 201), 201),
    "polytope of 401 entries": lambda: domain(
        "polytope", (401,), np.concatenate([-np.eye(401), np.ones((1, 401))]), np.eye(402)[-1]
    ),
    "nuclear_ball, 2000 x 2000": lambda: domain("nuclear_ball", (2000, 2000), 1),
    "spectrahedron, 2000 x 2000": lambda: domain("spectrahedron", (2000, 2000), 1),
    "box of 100 with two rows": lambda: cut(domain("box", (100,), 0, 1), np.eye(2, 100) + 1, 9),
    "ball of 100 with a row": lambda: cut(domain("ball", (100,), 1), np.ones((1, 100)), 0.5),
    "spectrahedron, 6 x 6, with a row": lambda: cut(domain("spectrahedron", (6, 6), 1), np.eye(1, 36), 0.5),
}
"""Sets that refuse or advise against something, or that are made of others."""


def offered() -> Iterator[str]:
    """The table of what each set offers, a line at a time."""
    yield "| set | project | lmo | bregman_step | Jacobian of the projection | bounds only |"
    yield "|" + " --- |" * 6
    reasons: dict[str, int] = {}
    chosen = {**{name: lambda make=make: make(100) for name, make in SETS.items()}, **LARGE}
    for name, build in chosen.items():
        d = build()
        cells = [_offer(d, operation, reasons) for operation in (*OPERATIONS, "project_jacobian")]
        yield f"| {name} | {' | '.join(cells)} | {', '.join(sorted(d.bounds_only))} |"
    yield ""
    for why, number in reasons.items():
        yield f"{number}. {why}."


def _offer(d: Domain, operation: str, reasons: dict[str, int]) -> str:
    """Yes, or slow with the number of the reason; for a Bregman step the mirror map."""
    why = d.expensive.get(operation)
    word = d.geometry if operation == "bregman_step" else "yes"
    if not why:
        return word
    number = reasons.setdefault(why, len(reasons) + 1)
    return f"slow ({number})"


def put_between(text: str, mark: str, lines: list[str]) -> str:
    """The page with other lines between `<!-- mark -->` and `<!-- end of mark -->`."""
    table = "\n".join(lines)
    found, count = re.subn(
        rf"(<!-- {mark} -->\n).*?(\n<!-- end of {mark} -->)", lambda m: f"{m[1]}\n{table}\n{m[2]}", text, flags=re.S
    )
    if count != 1:
        raise ValueError(f"{PAGE} has no place for {mark}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="greatest n")
    parser.add_argument("--write", action="store_true", help="write the tables into docs/domains.md")
    o = parser.parse_args()
    tables: dict[str, list[str]] = {"operations": [], "costs": []}
    for name, lines in (("operations", offered()), ("costs", costs([n for n in SIZES if n <= o.largest]))):
        for line in lines:
            print(line, flush=True)
            tables[name].append(line)
    if o.write:
        text = PAGE.read_text(encoding="utf-8")
        for name, found in tables.items():
            text = put_between(text, name, found)
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
