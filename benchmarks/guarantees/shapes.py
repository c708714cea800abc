"""Shapes of model on which guarantees are attacked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

SHAPES: Mapping[str, str] = {
    "box, linear, moving": """decision x[3] in box(-1, 1)
stream c[3] in [-1, 1]
stream b in [0, 0.5]
minimize c @ x
subject to
    cap: [1.0, 0.5, -0.5] @ x <= b WHEN
""",
    "simplex, linear": """decision x[3] in simplex
stream c[3] in [-1, 1]
minimize c @ x
subject to
    cap: [1.0, 0.5, -0.5] @ x <= 0.25 WHEN
""",
    "ball, quadratic, moving": """decision x[3] in ball(1)
stream c[3] in [-1, 1]
stream b in [0, 0.5]
minimize sum_squares(x - c)
subject to
    cap: [1.0, 0.5, -0.5] @ x <= b WHEN
""",
    "two decisions": """decision x[2] in box(0, 1)
decision y[2] in simplex
stream c[2] in [-1, 1]
stream w[2] in [0, 1]
minimize c @ x + w @ y
subject to
    cap: sum(x) + y[0] <= 1.5 WHEN
""",
    "nuclear ball": """decision X[2, 3] in nuclear_ball(1)
stream c[2, 3] in [-1, 1]
minimize sum(c * X)
subject to
    cap: X[0, 0] <= 0.25 WHEN
""",
    "box with cuts, quadratic": """decision x[3] in box(0, 1) with sum(x) <= 1.5
stream c[3] in [0, 1]
minimize sum_squares(x - c)
subject to
    cap: x[0] <= 0.5 WHEN
""",
    "independent rounds": """decision x[3] in box(-1, 1)
stream c[3] ~ uniform(-1, 1)
stream s ~ uniform(0.5, 1.5)
minimize c @ x
subject to
    cap: s * ([1.0, 0.5, -0.5] @ x) <= 0.25 WHEN
""",
    "equality": """decision x[3] in box(-1, 1)
stream c[3] in [-1, 1]
minimize c @ x
subject to
    sum: [1.0, 0.5, -0.5] @ x == 0.25 WHEN
""",
    "moving comparator": """decision x[3] in ball(1)
stream c[3] in [-1, 1]
minimize sum_squares(x - c)
measure dynamic regret
subject to
    cap: x[0] <= 0.25 WHEN
""",
    "box, predicted": """decision x[3] in box(-1, 1)
stream c[3] in [-1, 1]
predict c = last(c)
minimize sum_squares(x - c)
""",
    "budget, known": """decision x[3] in box(0, 1)
context c[3] in [-1, 1]
context fee[3] in [0, 1]
minimize c @ x
measure dynamic regret
subject to
    spend: fee @ x <= 0.3 * T  in total
""",
    "ball, two points": """decision x[2] in ball(1)
stream a[2] in [-1, 1]
feedback two_point
minimize sum_squares(x - a)
""",
    "arms": """decision x[3] in simplex rounded
stream c[3] in [-1, 1]
feedback bandit
minimize c @ x
""",
    "bandit, ball, quadratic": """decision x[2] in ball(1)
stream a[2] in [-1, 1]
feedback bandit
minimize sum_squares(x - a)
subject to
    cap: x[0] + 0.5 * a[0] <= 0.5 WHEN
""",
}
"""Models without their first two lines; WHEN is what the theorem lets a constraint be, and where it knows none they are left out."""


def texts(shape: str, rounds: int) -> Iterator[str]:
    """Models of a shape: constraints in each round, on average, and none."""
    whole = f"model attacked\nhorizon T = {rounds}\n{SHAPES[shape]}"
    yield whole.replace("WHEN", "each round")
    yield whole.replace("WHEN", "on average")
    if shape not in ("equality", "budget, known"):
        yield whole.split("subject to")[0]
