"""Models for tests of facts: every kind of structure that the bounds have a method for, and some that they have none for."""

from __future__ import annotations

HEAD = "model m\nhorizon T = 100\n"

GENERATED: tuple[str, ...] = tuple(
    HEAD + text.strip() + "\n"
    for text in (
        # affine, over each kind of simple domain
        "decision x[4] in box(-1, 2)\nstream c[4] in [-3, 1]\nminimize c @ x - 2 * x[0] + 1",
        "decision x[4] in simplex\nstream c[4] in [-3, 1]\nstream q in [0, 2]\nminimize c @ x - q * x[0] + q",
        "decision x[4] in ball(2)\nstream c[4] in [-3, 1]\nminimize c @ x - 2 * x[0] + 1",
        "decision x[4] in l1_ball(2)\nstream c[4] in [-3, 1]\nminimize c @ x - 2 * x[0] + 1",
        # quadratics
        "param P[3, 3] = [[2, 1, 0], [1, 3, 0.5], [0, 0.5, 1]]\ndecision x[3] in ball(1.5)\nstream c[3] in [-1, 2]\n"
        "minimize quad_form(x, P) + c @ x",
        "decision x[3] in simplex\nstream a[3] in [-1, 1]\nminimize sum_squares(x - a) + 4 * a @ x",
        "decision x[3] in ball(1)\nstream a[3] in [-1, 1]\nminimize sum_squares(x - a)",
        "decision x[5] in box(-1, 1)\nstream H[3, 5] in [-1, 1]\nstream y[3] in [-2, 2]\nminimize 0.5 * sum_squares(H @ x - y)",
        # entrywise
        "decision x[6] in box(0.5, 4)\nstream p[6] in [0, 2]\nminimize sum(p * x * log(x)) + sum(inv_pos(x))",
        "decision x[6] in box(0, 3)\nstream s in [0, 1]\nminimize sum(s * square(x) - x) + sum(logistic(x - s))",
        "decision x[6] in box(-2, 3)\nstream s[6] in [-1, 1]\nminimize sum(abs(x - s)) + sum(huber(x)) + norm_inf(x)",
        "decision x[4] in box(0, 2)\nstream a[4] in [0.1, 1]\nminimize sum(exp(a * x)) - sum(sqrt(a + x))",
        # few coordinates, nothing separable
        "decision x[2] in box(-1, 1)\nstream a in [-1, 1]\nminimize exp(x[0] + a * x[1]) + square(x[0] - x[1])",
        "decision x[2] in box(0, 1)\nstream a[2] in [0, 2]\nminimize log_sum_exp(a * x) + max(x) - a @ x",
        # several decisions, constraints with entries, products of ranges
        "decision x[3] in simplex\ndecision y[2] in box(-1, 1)\nstream c[3] in [0.5, 2]\nstream d[2] in [-1, 1]\n"
        "minimize -log(c @ x) + sum_squares(y - d)\nsubject to\n    tie: x[0:2] - y <= d   each round\n    cap: c @ x + norm2(y) <= 2",
        "param region[6] in 0..2 = repeat(0..2, 2)\ndecision x[6] in box(0, 10)\nstream price[3] in [-1, 3]\n"
        "minimize price[region] @ x + 0.1 * sum_squares(x)\nsubject to\n    serve: 8 - sum(log1p(x)) <= 0   each round",
        "decision X[3, 4] in nuclear_ball(2)\nstream i[5] in 0..2\nstream j[5] in 0..3\nstream r[5] in [-1, 1]\n"
        "minimize sum_squares(X[i, j] - r)\nsubject to\n    side: sum(X) <= 1",
        "decision x[3] in box(1, 2)\nstream c[3] in [1, 3]\nminimize sum(c / x) + square(c @ x) / (1 + sum(x))",
        "decision x[3] in box(0.1, 2)\nstream c[3] in [-1, 3]\nminimize sum(rel_entr(x, c + 2)) + t * sum(x) / 100",
        "decision x[4] in budget(0, 1, 2)\nstream c[4] in [-1, 3]\nminimize sum_squares(x) + c @ x - sum(entr(x + 0.1))",
    )
)
