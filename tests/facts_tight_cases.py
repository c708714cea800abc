"""Functions with the true suprema of |f|, |grad f|_2 and |grad f|_inf: in closed form, or by hand at the corner that decides."""

from __future__ import annotations

import math
from dataclasses import dataclass

HEAD = "model m\nhorizon T = 100\n"


@dataclass(frozen=True)
class Case:
    """`kind` is what makes a tight bound possible; the numbers are sup |f|, sup |grad f|_2, sup |grad f|_inf (None: not stated)."""

    name: str
    kind: str
    text: str
    bound: float | None = None
    l2: float | None = None
    l1: float | None = None

    @property
    def model(self) -> str:
        return HEAD + self.text

    @property
    def stated(self) -> dict[str, float]:
        found = {"bound": self.bound, "lipschitz.l2": self.l2, "lipschitz.l1": self.l1}
        return {k: v for k, v in found.items() if v is not None}


R3 = math.sqrt(3)
CASES: tuple[Case, ...] = (
    Case(
        "affine, box",
        "affine",
        "decision x[4] in box(-1, 2)\nstream c[4] in [-3, 1]\nminimize c @ x - 2 * x[0] + 1\n",
        bound=5 * 2 + 3 * 3 * 2 - 1,
        l2=math.sqrt(25 + 27),
        l1=5,
    ),
    Case(
        "affine, box, a shared stream",
        "affine",
        "param s[4] = [1, -1, 1, -1]\ndecision x[4] in box(0, 1)\nstream q in [-1, 3]\nminimize q * (s @ x) - q\n",
        bound=9,  # q = 3, x = (0, 1, 0, 1)
        l2=6,
        l1=3,
    ),
    Case(
        "affine, ball",
        "affine",
        "decision x[4] in ball(2)\nstream c[4] in [-3, 1]\nminimize c @ x - 2 * x[0] + 1\n",
        bound=1 + 2 * math.sqrt(25 + 27),
        l2=math.sqrt(25 + 27),
        l1=5,
    ),
    Case(
        "affine, simplex",
        "affine",
        "decision x[4] in simplex\nstream c[4] in [-3, 1]\nminimize c @ x - 2 * x[0] + 1\n",
        bound=4,  # x = e_0, c_0 = -3
        l2=math.sqrt(25 + 27),
        l1=5,
    ),
    Case(
        "affine, l1 ball",
        "affine",
        "decision x[4] in l1_ball(2)\nstream c[4] in [-3, 1]\nminimize c @ x - 2 * x[0] + 1\n",
        bound=11,
        l2=math.sqrt(25 + 27),
        l1=5,
    ),
    Case(
        "prices by region",
        "affine",
        "param region[6] in 0..2 = repeat(0..2, 2)\ndecision x[6] in box(0, 10)\nstream price[3] in [-1, 3]\n"
        "minimize sum(price[region] * x)\n",
        bound=180,
        l2=3 * math.sqrt(6),
        l1=3,
    ),
    Case(
        "online_qp",
        "separable",
        "decision x[2] in box(0, 1)\nstream theta[2] in [-5, 5]\nminimize sum_squares(x - theta) + 20 * theta @ x\n",
        bound=232,  # theta = 5, x = 1
        l2=92 * math.sqrt(2),
        l1=92,
    ),
    Case(
        "online_qp with 40 entries",
        "separable",
        "decision x[40] in box(0, 1)\nstream theta[40] in [-5, 5]\nminimize sum_squares(x - theta) + 20 * theta @ x\n",
        bound=116 * 40,
        l2=92 * math.sqrt(40),
        l1=92,
    ),
    Case(
        "separable, one shared stream",
        "separable",
        "decision x[6] in box(0, 3)\nstream s in [0, 1]\nminimize sum(s * square(x) - 2 * x)\n",
        bound=36,  # s = 0, x = 3
        l2=4 * math.sqrt(6),
        l1=4,
    ),
    Case(
        "service",
        "monotone",
        "decision x[10] in box(0, 100)\nstream jobs in [0, 50]\nminimize jobs - 4 * sum(log(1 + 4 * x))\n",
        bound=40 * math.log(401),
        l2=16 * math.sqrt(10),
        l1=16,
    ),
    Case(
        "exponential less root",
        "monotone",
        "decision x[4] in box(0, 2)\nstream a[4] in [0.1, 1]\nminimize sum(exp(a * x)) - sum(sqrt(a + x))\n",
        bound=4 * (math.exp(2) - R3),
        l2=2 * (math.exp(2) - 1 / (2 * R3)),
        l1=math.exp(2) - 1 / (2 * R3),
    ),
    Case(
        "distance, ball",
        "quadratic",
        "decision p[3] in ball(1)\nstream a[3] in [-1, 1]\nminimize sum_squares(p - a)\n",
        bound=(1 + R3) ** 2,
        l2=2 * (1 + R3),
        l1=4,
    ),
    Case(
        "distance, simplex",
        "quadratic",
        "decision x[3] in simplex\nstream a[3] in [-1, 1]\nminimize sum_squares(x - a)\n",
        bound=6,
        l2=2 * math.sqrt(6),
        l1=4,
    ),
    Case(
        "distance and product, simplex of 10",
        "quadratic",
        "decision x[10] in simplex\nstream a[10] in [-5, 5]\nminimize sum_squares(x - a) + 20 * a @ x\n",
        bound=36 + 225 + 100 - 20,  # x = e_0, a = 5: 16 + 9 * 25 + 100
        l2=math.sqrt(92**2 + 9 * 90**2),
        l1=92,
    ),
    Case(
        "a form with a linear term, ball",
        "quadratic",
        "param P[2, 2] = [[3, 0], [0, 1]]\ndecision x[2] in ball(2)\nstream q in [-1, 1]\n"
        "minimize quad_form(x, P) + 8 * q * x[0]\n",
        bound=28,  # x = (2, 0), q = 1
        l2=20,
        l1=20,
    ),
    Case(
        "least squares with random rows",
        "composition",
        "decision x[10] in box(0, 5)\nstream H[4, 10] in [-1, 1]\nstream noise[4] in [-6, 6]\n"
        "minimize 0.5 * sum_squares(H @ x - H @ ones(10) - noise)\n",
        bound=0.5 * 4 * 46**2,
        l2=4 * 46 * math.sqrt(10),
        l1=4 * 46,
    ),
    Case(
        "log-optimal portfolio",
        "composition",
        "decision w[30] in simplex\nstream r[30] in [0.5, 2]\nminimize -log(r @ w)\n",
        bound=math.log(2),
        l2=math.sqrt(1 + 29 * 16),  # w = e_0, r = (0.5, 2, 2, ...)
        l1=4,
    ),
    Case(
        "completion by gathered entries",
        "composition",
        "decision X[5, 6] in nuclear_ball(3)\nstream i[7] in 0..4\nstream j[7] in 0..5\nstream r[7] in [-1, 1]\n"
        "minimize 0.5 * sum_squares(X[i, j] - r)\n",
        bound=0.5 * 7 * 16,
        l2=28,
        l1=28,
    ),
    Case(
        "soft maximum of products",
        "vertices",
        "decision x[2] in box(0, 1)\nstream a[2] in [0, 2]\nminimize log_sum_exp(a * x) - a @ x\n",
        bound=abs(math.log(2 * math.exp(2)) - 4),
        l1=2 / (1 + math.exp(-2)),
    ),
    Case(
        "exponential of a product, square of a difference",
        "vertices",
        "decision x[2] in box(-1, 1)\nstream a in [-1, 1]\nminimize exp(x[0] + a * x[1]) + square(x[0] - x[1])\n",
        bound=math.exp(2) + 4,  # x = (1, -1), a = -1
        l2=math.hypot(math.exp(2) + 4, math.exp(2) + 4),
        l1=math.exp(2) + 4,
    ),
    Case(
        "largest of two rows",
        "vertices",
        "decision x[3] in box(-1, 1)\nstream c[3] in [-1, 2]\nminimize max([c @ x, x[0] - x[1], 0.5])\n",
        bound=6,
        l2=math.sqrt(12),
        l1=2,
    ),
)
