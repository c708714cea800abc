"""Random models for tests of soundness: sums of terms of every structure, over random domains."""

from __future__ import annotations

import numpy as np

DOMAINS = (
    "box({lo}, {hi})",
    "ball({r})",
    "simplex",
    "l1_ball({r})",
    "nonneg_ball({r})",
    "simplex(2)",
)
TERMS = (
    "c @ x",
    "q * sum(x)",
    "{w} * x[0]",
    "sum_squares(x)",
    "sum_squares(x - c)",
    "{w} * sum_squares(H @ x - d)",
    "sum(a * square(x))",
    "sum(exp({u} * x))",
    "sum(logistic(c * x))",
    "sum(abs(x - c))",
    "norm2(x - a)",
    "norm_inf(x)",
    "max(x)",
    "max(H @ x)",
    "sum(huber(x, 0.5))",
    "log_sum_exp(c * x)",
    "square(c @ x)",
    "a @ abs(x)",
    "-sum(log(x + 3.5))",
    "sum(inv_pos(x + 4))",
    "sum(sqrt(x + 4))",
    "x[0] * x[1]",
    "sum(c * square(x))",
    "quad_form(x, P)",
    "maximum(x[0], x[1] - q)",
    "hinge(c @ x)",
    "q * sum(a)",
    "x @ (P @ x) + c @ x",
    "sum(kl_div(x + 4, a + 1))",
    "power(sum(a * x) + 9, 1.5)",
)


def random_model(seed: int) -> str:
    """The text of a model with two to four terms; it need not be convex."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 5))
    lo = float(rng.choice([-2, -1, 0, 0.5]))
    numbers = {"lo": lo, "hi": lo + float(rng.choice([0.5, 1, 3])), "r": float(rng.choice([0.5, 1, 2]))}
    domain = str(rng.choice(DOMAINS)).format(**numbers)
    chosen = rng.choice(len(TERMS), size=int(rng.integers(1, 4)), replace=False)
    terms = [TERMS[k].format(w=round(float(rng.normal()), 2), u=round(float(rng.uniform(-1, 1)), 2)) for k in chosen]
    matrix = rng.normal(size=(n, n)).round(2)
    return (
        f"model random\nhorizon T = 100\nparam P[{n}, {n}] = {(matrix @ matrix.T).round(3).tolist()}\ndecision x[{n}] in {domain}\n"
        f"stream c[{n}] in [-1, 2]\nstream a[{n}] in [0, 1]\nstream q in [-1, 1]\nstream H[2, {n}] in [-1, 1]\nstream d[2] in [-1, 3]\n"
        f"minimize {' + '.join(terms)}\n"
    )
