"""Model files whose domains take much: polyhedra and other sets of many entries, with rows of few and of many numbers, near the limits.

Rows are written out or made by formulas, which state large matrices in a line.
"""

from __future__ import annotations

import random

BASES = {
    "polytope": "polytope({A}, {b})",
    "polytope_bounded": "polytope({A}, {b}) with x >= -10, x <= 10",
    "polytope_cut": "polytope({A}, {b}) with sum(x) <= 0.5",
    "polytope_flat": "polytope({A}, {b}) with sum(x) == 0",
    "box": "box(-1, 1) with {A} @ x <= {b}",
    "box_equal": "box(-1, 1) with {A} @ x == 0",
    "simplex": "simplex with {A} @ x <= {b}",
    "capped": "capped_simplex(0.9) with {A} @ x <= {b}",
    "budget": "budget(0, 1, 1) with {A} @ x <= {b}",
    "ball": "ball(1) with {A} @ x <= {b}",
    "l1_ball": "l1_ball(2) with {A} @ x <= {b}",
    "nonneg_ball": "nonneg_ball(1) with {A} @ x <= {b}",
    "group_ball": "group_ball(2, 0..{last}) with {A} @ x <= {b}",
    "ellipsoid": "ellipsoid({n} * eye({n}) + outer(ones({n}), ones({n})), 0.1 * ones({n}))",
    "ellipsoid_cut": "ellipsoid({n} * eye({n}) + outer(ones({n}), ones({n}))) with {A} @ x <= {b}",
    "differences": "box(-9, 9) with x[0:{last}] - x[1:{n}] <= 1, x[1:{n}] - x[0:{last}] <= {b}",
    "flow": "flow(E, 0, {sink})",
    "flow_cut": "flow(E, 0, {sink}) with x[0] <= 0.5",
    "birkhoff_cut": "birkhoff({n}) with X[0, 0] <= 0.5",
    "birkhoff_capped": "birkhoff({n}) with X <= 0.7",
    "nuclear_cut": "nuclear_ball(2) with X <= 0.7",
    "spectrahedron_cut": "spectrahedron(2) with X <= 0.7",
}
"""A domain of x with n entries, or of X with n rows and columns."""

SIDES = ("1", "0.5", "1e-9", "1e9", "0", "-1")
ENTRIES = (2, 3, 4, 6, 10, 20, 40, 60, 100, 200, 300, 500, 1000, 2000)
ROWS = (0.5, 1, 2, 3, 8, 40, 300, 3000)
"""Rows for each entry."""
COPIES = (1, 1, 1, 2, 5, 30, 100)


def domain_model(rng: random.Random, most: int) -> tuple[str, str]:
    """Parts of a file, and its text of fewer than `most` bytes: fewer rows where there would be more."""
    base, kind = rng.choice(sorted(BASES)), rng.choice(("numbers", "sparse", "formula", "formula"))
    n, rows, b, copies = rng.choice(ENTRIES), rng.choice(ROWS), rng.choice(SIDES[:2] * 3 + SIDES), rng.choice(COPIES)
    if "{A}" not in BASES[base]:
        kind, rows = "-", 0.0
    while True:
        m = max(1, int(rows * n))
        m = min(m, (2_000_000 if kind == "formula" else most) // n)
        text = _written(random.Random(n * m), base, kind, n, m, b, copies)
        if len(text.encode()) < most:
            return f"{base}/{kind}/{b} x {copies}/domain/{n}/{m}", text
        rows, n, copies = rows * 0.8, n if rows > 1 else n * 4 // 5, max(1, copies // 2)


def _written(rng: random.Random, base: str, kind: str, n: int, m: int, b: str, copies: int) -> str:
    matrix, params, A = "X" in BASES[base], "", "A"
    if kind == "formula":
        # A quadratic map folds the ramp over and over: rows without a pattern out of a few lines.
        params = f"param A0[{m}, {n}] = (outer(1..{m}, 0.7549 * ones({n})) + outer(ones({m}), 0.5698 * (1..{n}))) / {m + n}\n"
        fold = "{}"
        for _ in range(6):
            fold = fold.format("1 - 2 * square({})")
        params += "".join(f"param A{k + 1}[{m}, {n}] = {fold.format(f'A{k}')}\n" for k in range(3))
        A = "A3"
    elif kind != "-":
        numbers = (-4, -3, -2, -1, 0, 1, 2, 3, 4) if kind == "numbers" else (-1, 1, *(0,) * min(n, 30))
        params = f"param A[{m}, {n}] = {[[rng.choice(numbers) for _ in range(n)] for _ in range(m)]}\n"
    if base.startswith("flow"):
        params = f"param E[{n}, 2] = {[[k // 2, k // 2 + 1 + (k % 7 == 6)] for k in range(n)]}\n"
    name, shape = ("X", f"{n}, {n}") if matrix else ("x", f"{n}")
    domain = BASES[base].format(A=A, b=b, n=n, last=n - 1, sink=(n - 1) // 2 + 1)
    others = "".join(
        f"decision {name}{k}[{shape}] in {domain.replace(f'{name} ', f'{name}{k} ').replace(f'{name}[', f'{name}{k}[')}\n"
        for k in range(1, copies if "sum" not in domain else 1)
    )
    cost = "c @ X[0, :]" if matrix else "c @ x"
    return (
        f"model m\nhorizon T = 100\n{params}decision {name}[{shape}] in {domain}\n{others}"
        f"stream c[{n}] in [-1, 1]\nminimize {cost}\n"
    )
