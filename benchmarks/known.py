"""Microseconds a round of known constraints: NumPy and C beside a hand-written step in NumPy, CVXPY, and the same set as a fixed polytope.

python benchmarks/known.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np

import oco

Array = np.ndarray[Any, Any]
T, N, ROWS = 300, 10, 4
RNG = np.random.default_rng(0)
A = RNG.normal(size=(ROWS, N))
A /= np.linalg.norm(A, axis=1, keepdims=True)
PRICE = np.clip(0.5 * RNG.normal(size=(T, N)) + 0.7 * np.sin(np.arange(T) / 30)[:, None], -1, 1)
HEAD = f"horizon T = {T}\nstream price[{N}] in [-1, 1]\n"
LOSS = "minimize price @ x\n"
ROWED = f"""\
model rows
{HEAD}param A[{ROWS}, {N}]
decision x[{N}] in box(-1, 1)
context b[{ROWS}] in [0, 1]
{LOSS}subject to
    rows: A @ x <= b  each round
"""
FIXED = f"model fixed\n{HEAD}param G[{2 * N + ROWS}, {N}]\nparam h[{2 * N + ROWS}]\ndecision x[{N}] in polytope(G, h)\n{LOSS}"
MOVES = f"""\
model moves
{HEAD}decision x[{N}] in ball(1)
{LOSS}subject to
    moves: norm2(x - prev(x)) <= 0.05  each round
"""


def seconds(step: Callable[[], Any], repeats: int = 3) -> float:
    """Least processor time of a few repeats: what else runs on the machine counts for nothing."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        step()
        times.append(time.process_time() - start)
    return min(times)


def learner_time(text: str, params: dict[str, Array], data: dict[str, Array], backend: str) -> float:
    """Seconds of T rounds of gradient descent with steps 1 / sqrt(t)."""
    plan = oco.compile(oco.parse(text, params), algorithm="ogd", settings={"eta": "1 / sqrt(t)"})
    plan.run(data, backend=backend)
    return seconds(lambda: plan.run(data, backend=backend))


def by_hand_rows() -> None:
    """Dykstra's method on the box and the rows, until nothing moves."""
    x, b = np.zeros(N), np.full(ROWS, 0.3)
    for t in range(T):
        y = np.clip(x - PRICE[t] / np.sqrt(t + 1.0), -1, 1)
        x, kept = y.copy(), np.zeros((ROWS + 1, N))
        for _ in range(1000):
            before = x
            for k in range(ROWS):
                v = x + kept[k]
                x = v - max(A[k] @ v - b[k], 0.0) * A[k]
                kept[k] = v - x
            v = x + kept[ROWS]
            x = np.clip(v, -1, 1)
            kept[ROWS] = v - x
            if np.abs(x - before).max() < 1e-12:
                break


def by_hand_moves() -> None:
    """Multiplier of the move by bisection, with the ball's projection in closed form."""
    x = np.zeros(N)
    for t in range(T):
        v, last, lo, hi = x - PRICE[t] / np.sqrt(t + 1.0), x, 0.0, 1e6
        for _ in range(60):
            lam = 0.5 * (lo + hi)
            u = (v + lam * last) / (1 + lam)
            x = u / max(1.0, float(np.linalg.norm(u)))
            lo, hi = (lam, hi) if np.linalg.norm(x - last) > 0.05 else (lo, lam)


def with_cvxpy(rules: Callable[[Any, Any], list[Any]]) -> Callable[[], None]:
    """Step of a parametrized problem, solved by Clarabel each round."""
    x, v, last = cp.Variable(N), cp.Parameter(N), cp.Parameter(N)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x - v)), rules(x, last))

    def run() -> None:
        now = np.zeros(N)
        for t in range(T):
            v.value, last.value = now - PRICE[t] / np.sqrt(t + 1.0), now
            problem.solve(solver="CLARABEL")
            now = np.asarray(x.value)

    return run


def main() -> None:
    """Print the table."""
    b = np.full(ROWS, 0.3)
    G = np.vstack([np.eye(N), -np.eye(N), A])
    h = np.concatenate([np.ones(2 * N), b])
    data = {"price": PRICE, "b": np.tile(b, (T, 1))}
    rows = {
        f"{ROWS} rows over a box of {N}": [
            *(learner_time(ROWED, {"A": A}, data, backend) for backend in ("numpy", "c")),
            seconds(by_hand_rows, 1),
            seconds(with_cvxpy(lambda x, last: [x >= -1, x <= 1, A @ x <= 0.3]), 1),
            *(learner_time(FIXED, {"G": G, "h": h}, {"price": PRICE}, backend) for backend in ("numpy", "c")),
        ],
        f"length of moves in a ball of {N}": [
            *(learner_time(MOVES, {}, {"price": PRICE}, backend) for backend in ("numpy", "c")),
            seconds(by_hand_moves, 1),
            seconds(with_cvxpy(lambda x, last: [cp.norm(x) <= 1, cp.norm(x - last) <= 0.05]), 1),
        ],
    }
    print(
        "| known constraints | NumPy | C | NumPy by hand | CVXPY, Clarabel | fixed polytope, NumPy | fixed polytope, C |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, times in rows.items():
        cells = [f"{1e6 * s / T:,.3g} us" for s in times] + [""] * (6 - len(times))
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
