"""Microseconds a round of the examples about what is known before a decision: NumPy and C, beside rules written by hand and CVXPY.

python benchmarks/known_examples.py

By hand: a step along the gradient, and the nearest point that the round allows, with NumPy alone; where the example leaves something to be
learned, a multiplier or a margin. With CVXPY that point is a parametrized problem, solved by Clarabel. The decisions are not those of the
algorithm that the example compiles to, and the round is the same work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np

import oco
from benchmarks.known import seconds
from oco.cli.options import data_of
from oco.cli.stated import stated_options

EXAMPLES = Path(__file__).parent.parent / "examples"
Array = np.ndarray[Any, Any]
Row = Mapping[str, Any]
T, SOLVED = 200, 60
"""Rounds that are timed, and those that CVXPY solves."""
HALVINGS = 60
USING = {"battery": "ogd", "warehouse": "ogd"}
"""Algorithms of examples whose default values what is left in stores, which no rule by hand here does."""


@dataclass
class Allowed:
    """Set of a round: lower <= x <= upper, with a sum between two bounds, and moves from `last` of `reach` in the norm of one."""

    lower: Array
    upper: Array
    least: float = -np.inf
    most: float = np.inf
    last: Array = field(default_factory=lambda: np.zeros(1))
    reach: float = np.inf

    def nearest(self, v: Array) -> Array:
        """Nearest point to v, by bisection of the multiplier of the sum, within one of that of the moves."""
        x = self._summed(v, 0.0)
        if np.abs(x - self.last).sum() <= self.reach:
            return x
        low, high = 0.0, float(np.abs(v - self.last).max()) + 1.0
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            x = self._summed(v, middle)
            low, high = (middle, high) if np.abs(x - self.last).sum() > self.reach else (low, middle)
        return x

    def _summed(self, v: Array, price: float) -> Array:
        x = self._at(v, price)
        total = x.sum()
        if self.least <= total <= self.most:
            return x
        wanted = self.least if total < self.least else self.most
        width = float((self.upper - self.lower).max() + np.abs(v).max() + np.abs(self.last).max()) + price + 1.0
        low, high = -width, width
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            x = self._at(v + middle, price)
            low, high = (middle, high) if x.sum() < wanted else (low, middle)
        return x

    def _at(self, v: Array, price: float) -> Array:
        if price:
            moved = v - self.last
            v = self.last + np.sign(moved) * np.maximum(np.abs(moved) - price, 0.0)
        return np.clip(v, self.lower, self.upper)


class ByHand:
    """Rule of an example: `allowed` says what a round allows, `slope` where the loss falls, `after` what the round leaves to the next."""

    def __init__(self, params: Mapping[str, Array], size: int) -> None:
        self.params, self.x, self.t = params, np.zeros(size), 0
        self.begin()

    def begin(self) -> None:
        """Set what the first round finds."""

    def allowed(self, row: Row) -> Allowed:
        """Set of this round."""
        raise NotImplementedError

    def slope(self, row: Row) -> Array:
        """Gradient at the decision."""
        raise NotImplementedError

    def after(self, row: Row) -> None:
        """Go on to the next round."""


class Dispatch(ByHand):
    def begin(self) -> None:
        self.x = np.full(10, 150.0)

    def allowed(self, row: Row) -> Allowed:
        load = float(row["load"])
        return Allowed(np.maximum(self.x - 40, 0), np.minimum(self.x + 40, 300), load, load)

    def slope(self, row: Row) -> Array:
        return np.asarray(row["price"])


class Charging(ByHand):
    def begin(self) -> None:
        self.due = np.zeros(3)

    def allowed(self, row: Row) -> Allowed:
        power = self.params["power"]
        left = power * self.params["hours_left"][:, self.t % 24]
        return Allowed(np.maximum(self.due - left, 0), np.minimum(power, self.due))

    def slope(self, row: Row) -> Array:
        return np.full(3, float(row["price"]) - 25)

    def after(self, row: Row) -> None:
        self.due = self.due - self.x + self.params["comes"][:, self.t % 24]


class Battery(ByHand):
    def begin(self) -> None:
        self.stored = np.full(10, 50.0)

    def allowed(self, row: Row) -> Allowed:
        kept = 0.995 * self.stored
        return Allowed(np.maximum(-25, -kept), np.minimum(25, 100 - kept))

    def slope(self, row: Row) -> Array:
        return np.asarray(row["price"]) - 27 + 0.4 * self.x

    def after(self, row: Row) -> None:
        self.stored = 0.995 * self.stored + self.x


class Warehouse(ByHand):
    def begin(self) -> None:
        self.stock = np.full(4, 15.0)

    def allowed(self, row: Row) -> Allowed:
        return Allowed(np.zeros(4), np.minimum(40, 60 - self.stock), most=float(row["dock"]))

    def slope(self, row: Row) -> Array:
        return np.asarray(row["cost"]) + 0.1 - 9 * (row["demand"] > self.stock + self.x)

    def after(self, row: Row) -> None:
        self.stock = np.clip(self.stock + self.x - row["demand"], 0, 60)


class Pacing(ByHand):
    def begin(self) -> None:
        self.price = 0.0

    def allowed(self, row: Row) -> Allowed:
        return Allowed(np.zeros(3), np.ones(3))

    def slope(self, row: Row) -> Array:
        return np.asarray(self.params["traffic"][self.t % 24] * (self.price * row["cost"] - row["value"]))

    def after(self, row: Row) -> None:
        spent = self.params["traffic"][self.t % 24] * (row["cost"] @ self.x) - 2000 / 672
        self.price = max(self.price + 0.01 * float(spent), 0.0)


class Caching(ByHand):
    def begin(self) -> None:
        self.x = np.full(12, 0.25)

    def allowed(self, row: Row) -> Allowed:
        return Allowed(np.zeros(12), np.ones(12), 3.0, 3.0, self.x, 0.8)

    def slope(self, row: Row) -> Array:
        evening = self.params["night"][self.t % 24]
        return -row["noise"] * np.asarray(evening * self.params["by_night"] + (1 - evening) * self.params["by_day"])


class Staffing(ByHand):
    def begin(self) -> None:
        self.margin = 0.0

    def allowed(self, row: Row) -> Allowed:
        return Allowed(np.zeros(3), np.full(3, 80.0), least=min(float(row["forecast"]) + self.margin, 240.0))

    def slope(self, row: Row) -> Array:
        return np.asarray(row["wage"])

    def after(self, row: Row) -> None:
        broken = self.x.sum() < row["forecast"] + row["surprise"]
        self.margin += 2.0 * (float(broken) - 0.05)


RULES: dict[str, type[ByHand]] = {
    "dispatch": Dispatch,
    "charging": Charging,
    "battery": Battery,
    "warehouse": Warehouse,
    "pacing": Pacing,
    "caching": Caching,
    "staffing": Staffing,
}


def play(rule: ByHand, rows: list[Row], nearest: Callable[[Allowed, Array], Array]) -> None:
    """Play rounds by hand: what the round allows is known before the decision, the slope after it."""
    v = rule.x
    for row in rows:
        rule.x = nearest(rule.allowed(row), v)
        v = rule.x - rule.slope(row) / np.sqrt(rule.t + 1.0)
        rule.after(row)
        rule.t += 1


def with_cvxpy(size: int, moves: bool) -> Callable[[Allowed, Array], Array]:
    """Nearest point as a parametrized problem."""
    x, v, lower, upper, last = cp.Variable(size), *(cp.Parameter(size) for _ in range(4))
    least, most, reach = cp.Parameter(), cp.Parameter(), cp.Parameter(nonneg=True)
    rules = [x >= lower, x <= upper, cp.sum(x) >= least, cp.sum(x) <= most]
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x - v)), rules + ([cp.norm1(x - last) <= reach] if moves else []))

    def nearest(own: Allowed, point: Array) -> Array:
        v.value, lower.value, upper.value = point, own.lower, np.maximum(own.upper, own.lower)  # but for rounding
        least.value, most.value = max(own.least, -1e6), min(own.most, 1e6)
        if moves:
            last.value, reach.value = own.last, own.reach
        problem.solve(solver="CLARABEL")
        assert x.value is not None, problem.status
        return np.asarray(x.value)

    return nearest


def in_c(plan: Any, rows: list[Row]) -> float:
    """Seconds a round of the function of the written C that plays many rounds."""
    learner = plan.learner(backend="c")
    first = tuple(learner.values.values())
    inputs = [np.stack([row[f.name] for row in rows]) for f in plan.program.revealed]
    native, count = learner.compiled.native, len(rows)
    assert native.run(first, inputs, (), count, ["decisions"]).rounds == count
    return seconds(lambda: native.run(first, inputs, (), count, ["decisions"]), 10) / count


def times(name: str) -> tuple[str, list[float]]:
    """Algorithm of an example, and seconds a round of NumPy, C, the rule by hand and CVXPY."""
    path = EXAMPLES / f"{name}.oco"
    stated, model = stated_options(path), oco.load(path)
    data = data_of(model, stated.data, mapping=stated.mapping, rounds=T)
    plan, rows = oco.compile(model, USING.get(name)), list(data)
    params = {p.name: np.asarray(p.data) for p in plan.model.params}
    size = int(plan.program.decision[0].type.shape[0])
    plan.run(data, backend="numpy")
    results = [seconds(lambda: plan.run(data, backend="numpy")) / T, in_c(plan, rows)]
    results.append(seconds(lambda: play(RULES[name](params, size), rows, Allowed.nearest)) / T)
    solver = with_cvxpy(size, name == "caching")
    results.append(seconds(lambda: play(RULES[name](params, size), rows[:SOLVED], solver), 1) / SOLVED)
    return plan.algorithm, results


def main() -> None:
    """Print the table: times, and how many times those by hand and with CVXPY are as long as C's."""
    print("| example | algorithm | NumPy | C | NumPy by hand | CVXPY, Clarabel | by hand / C | CVXPY / C |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in RULES:
        algorithm, (numpy, c, hand, solver) = times(name)
        cells = [f"{1e6 * s:,.3g} us" for s in (numpy, c, hand, solver)] + [f"{s / c:,.3g}" for s in (hand, solver)]
        print(f"| {name} | `{algorithm}` | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
