"""The top singular pair from a warm start at a residual of 1e-3: `python benchmarks/singular_pairs.py`.

Full decomposition, ARPACK, the generated C and NumPy, and C written by hand, on the same matrices in one run; medians, less what a call of
a generated program costs that does nothing.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from scipy.sparse.linalg import svds

from oco.backends.contract import Contract
from oco.backends.registry import backend
from oco.compiler.domains.spectral import top_singular_pair
from oco.compiler.ir.build import trace_program
from oco.compiler.ir.passes import optimize
from oco.compiler.ir.program import DType, Field, Program, Type
from oco.compiler.ir.trace import Tracer

RESIDUAL = 1e-3
REFERENCE = Path(__file__).parent / "speed" / "reference" / "top_pair.c"
FLOAT = DType.FLOAT


def program(m: int, n: int) -> Program:
    """A learner whose update finds the pair of the matrix that it is shown, from the last one."""
    t = Tracer("pair")

    def update(state: Mapping[str, Any], seen: Mapping[str, Any], drawn: Mapping[str, Any]) -> Mapping[str, Any]:
        c = seen["c"]
        u, v = top_singular_pair(t, c, state["v"], RESIDUAL)
        return {"u": u, "v": v}

    made = trace_program(
        t,
        decision=[Field("x", Type(FLOAT, (1,)))],
        feedback=[Field("c", Type(FLOAT, (m, n)))],
        init=lambda start: {"u": t.zeros((m,)), "v": t.ones((n,))},
        decide=lambda state, drawn: {"x": t.zeros((1,))},
        update=update,
    )
    return optimize(made)


def reference(m: int, n: int) -> Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """The C written by hand, compiled with the flags of the generated code."""
    library = Path(tempfile.mkdtemp()) / "top_pair.so"
    subprocess.run(
        ["cc", "-std=c99", "-O3", "-march=native", "-fPIC", "-shared", "-o", library, REFERENCE, "-lm"], check=True
    )
    call = ctypes.CDLL(str(library)).top_pair
    call.restype, work = ctypes.c_double, np.zeros(61 * (m + n + 64) + 200)

    def run(a: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        u, v = np.empty(m), start.copy()
        matrix, *vectors = (ctypes.c_void_p(x.ctypes.data) for x in (a, u, v, work))
        call(matrix, m, n, ctypes.c_double(RESIDUAL), *vectors)
        return u, v

    return run


def medians(calls: Mapping[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Milliseconds of processor time of each, called in turn, so that what else the machine does falls on all alike."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            began = process_time()
            call()
            times[name].append(process_time() - began)
    return {name: 1e3 * float(np.median(took)) for name, took in times.items()}


def residual(a: np.ndarray, u: np.ndarray, v: np.ndarray) -> float:
    sigma = float(u @ a @ v)
    return float(np.linalg.norm(a.T @ u - sigma * v)) / sigma


def bare_call(m: int, n: int, target: str, a: np.ndarray, start: np.ndarray) -> float:
    """Cost of a call of a generated program that does nothing: reading its arguments and handing out the state."""
    t = Tracer("bare")
    made = trace_program(
        t,
        decision=[Field("x", Type(FLOAT, (1,)))],
        feedback=[Field("c", Type(FLOAT, (m, n)))],
        init=lambda first: {"u": t.zeros((m,)), "v": t.ones((n,))},
        decide=lambda state, drawn: {"x": t.zeros((1,))},
        update=lambda state, seen, drawn: {"u": state["u"], "v": state["v"]},
    )
    compiled = backend(target).compile(optimize(made), Contract("", "", None, {"x": np.zeros(1)}))
    return medians({target: lambda: compiled.update(1, np.zeros(m), start, a)}, 50)[target]


def compare(name: str, a: np.ndarray, start: np.ndarray) -> None:
    m, n = a.shape
    made = program(m, n)
    empty = Contract("", "", None, {"x": np.zeros(1)})
    compiled = {target: backend(target).compile(made, empty) for target in ("c", "numpy")}
    by_hand = reference(m, n)

    def generated(target: str) -> tuple[np.ndarray, np.ndarray]:
        found: tuple[np.ndarray, np.ndarray] = compiled[target].update(1, np.zeros(m), start, a)[1:3]
        return found

    ways: dict[str, Callable[[], Any]] = {
        "by hand": lambda: by_hand(a, start),
        "C": lambda: generated("c"),
        "NumPy": lambda: generated("numpy"),
        "ARPACK": lambda: svds(a, 1, tol=RESIDUAL),
        "full": lambda: np.linalg.svd(a, full_matrices=False),
    }
    for pair in (by_hand(a, start), generated("c"), generated("numpy")):
        assert residual(a, *pair) <= 1.1 * RESIDUAL
    ours = ("by hand", "C", "NumPy")
    took = medians({way: ways[way] for way in ours}, 100)
    took |= medians({"ARPACK": ways["ARPACK"]}, 15) | medians({"full": ways["full"]}, 3)
    took |= {way: took[way] - bare_call(m, n, way.lower(), a, start) for way in ("C", "NumPy")}
    shares = f"{took['C'] / took['by hand']:.2f} | {took['NumPy'] / took['by hand']:.2f}"
    print(f"| {name} | {' | '.join(f'{v:.3g} ms' for v in took.values())} | {shares} |", flush=True)


def main() -> None:
    rng = np.random.default_rng(0)
    print("| matrix | C by hand | generated C | NumPy | ARPACK | full SVD | C / by hand | NumPy / by hand |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for m, n in ((50, 50), (943, 1682)):
        flat = rng.standard_normal((m, n))
        u, v = rng.standard_normal(m) / np.sqrt(m), rng.standard_normal(n) / np.sqrt(n)
        dominant = np.array(0.3 * flat / np.sqrt(n) + 5 * np.outer(u, v))
        for name, a in (("one dominant direction", dominant), ("flat spectrum", flat)):
            away = 0.02 if a is dominant else 0.5
            start = np.linalg.svd(a)[2][0] + away * rng.standard_normal(n) / np.sqrt(n)
            compare(f"{m} x {n}, {name}", np.ascontiguousarray(a), start)


if __name__ == "__main__":
    main()
