"""Qiu & Wei 2020 has no experiment: here is one where V_*(T) goes from 0 to the order of T, and the regret should follow its root."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

import oco
from benchmarks.papers.experiment import HERE, Experiment
from benchmarks.papers.figures import panels
from benchmarks.papers.report import Claim, Report, number
from benchmarks.papers.runs import STAY, Array, Contender, ending, play

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROUNDS, SEEDS = 4096, range(10)
COINS = (0, 1, 4, 16, 64, 256, 1024, 2048)
DIRECTION = np.array([1.0, -0.6, 0.4, -0.8, 0.2]) / 2


def costs_of(coins: int, seed: int, rounds: int = ROUNDS) -> Array:
    """c_t, (T, 5): in the first rounds the sign of the direction is a fair coin, the game of the lower bound; then that of their sum."""
    signs = np.ones(rounds)
    signs[:coins] = np.random.default_rng([seed, coins]).choice([-1.0, 1.0], coins)
    signs[coins:] = np.sign(signs[:coins].sum()) or 1.0
    return signs[:, None] * DIRECTION


def variation(costs: Array) -> float:
    """V_*(T) without its first term: the gradients differ by c_t - c_{t-1} everywhere."""
    return float((np.diff(costs, axis=0) ** 2).sum())


def regrets(
    model: oco.Model, coins: int, rounds: int = ROUNDS
) -> tuple[float, Mapping[str, tuple[float, float]], float | None]:
    """The mean V_*, regret and violation of each contender, and the regret that mirror-prox promises."""
    costs = [costs_of(coins, seed, rounds) for seed in SEEDS]
    known = float(np.mean([variation(c) for c in costs]))
    contenders = (
        Contender("mirror-prox", "mirror-prox", {"V": known}),
        Contender("mirror-descent", "mirror-descent"),
        Contender("COLDQ", "coldq", {"alpha": "sqrt(t)"}),
        STAY,
    )
    runs = play(model, contenders, SEEDS, lambda seed: {"c": costs[seed]})
    best = np.array([t.comparator("static").value for t in runs[0].traces])
    found = {r.label: (float((r.loss[:, -1] - best).mean()), ending(r.soft)[0]) for r in runs}
    bound = runs[0].regret_bound()
    return known, found, None if bound is None else float(bound[-1])


@dataclass(frozen=True)
class Levels:
    """V_*, the measures of `regrets` and what is promised at each level of variation; `longer` at the first for four times the rounds."""

    V: Array
    tables: Sequence[Mapping[str, tuple[float, float]]]
    bounds: Sequence[float | None]
    longer: Mapping[str, tuple[float, float]]

    @classmethod
    def played(cls, model: oco.Model) -> Levels:
        V, tables, bounds = zip(*(regrets(model, n) for n in COINS))
        return cls(np.array(V), tables, bounds, regrets(model, 0, 4 * ROUNDS)[1])

    @cached_property
    def curves(self) -> Mapping[str, Array]:
        """The regret of each contender over the levels."""
        return {label: np.array([t[label][0] for t in self.tables]) for label in self.tables[0]}

    def figure(self) -> Figure:
        figure, (left, right) = panels(2)
        for label, curve in self.curves.items():
            left.plot(self.V + 1, np.maximum(curve, 0.01), "o--" if label == STAY.label else "o-", label=label)
            right.plot(self.V + 1, np.maximum([t[label][1] for t in self.tables], 1e-3), "o-", label=label)
        left.plot(self.V + 1, [b or np.nan for b in self.bounds], ":", color="black", label="guarantee of mirror-prox")
        root = self.curves["mirror-prox"][0] + np.sqrt(self.V)
        left.plot(self.V + 1, root, color="grey", linewidth=0.8, label="regret at V = 0, plus sqrt(V)")
        for axes, title in ((left, "static regret after 4096 rounds"), (right, "soft violation, 0 drawn as 0.001")):
            axes.set(title=title, xlabel="1 + V_*(T)", xscale="log", yscale="log")
            axes.grid(alpha=0.3)
            axes.legend(fontsize=8)
        return figure

    def rows(self) -> list[list[str]]:
        cells = ([f"{number(t[label][0])} / {number(t[label][1])}" for label in self.curves] for t in self.tables)
        return [[number(v), *c, number(b)] for v, c, b in zip(self.V, cells, self.bounds)]

    def claims(self) -> tuple[Claim, ...]:
        moving, longer = self.V >= 1, self.longer
        slopes = {label: slope(self.V[moving], curve[moving]) for label, curve in self.curves.items()}
        prox, descent, queue = (self.curves[n][0] for n in ("mirror-prox", "mirror-descent", "COLDQ"))
        broken = [t["mirror-prox"][1] for t in self.tables]
        return (
            Claim(
                "Regret O(max(sqrt(V_*), L_f)) (Theorem 4.1).",
                slopes["mirror-prox"] <= 0.55,
                f"It grows as V_*^{slopes['mirror-prox']:.2f}; that of mirror-descent as V_*^{slopes['mirror-descent']:.2f},"
                f" of COLDQ as V_*^{slopes['COLDQ']:.2f}.",
            ),
            Claim(
                "With a loss that never changes the regret is O(1).",
                longer["mirror-prox"][0] <= 1.1 * max(prox, 1.0),
                f"{number(prox)} after {ROUNDS} rounds and {number(longer['mirror-prox'][0])} after {4 * ROUNDS}, against"
                f" {number(descent)} and {number(longer['mirror-descent'][0])} of mirror-descent, {number(queue)} and"
                f" {number(longer['COLDQ'][0])} of COLDQ.",
            ),
            Claim(
                "Soft violation O(1) (Theorem 4.2).",
                longer["mirror-prox"][1] <= 1.1 * max(broken),
                f"At most {number(max(broken))} for any V_*; with V_* = 0 it is {number(broken[0])} after"
                f" {ROUNDS} rounds and {number(longer['mirror-prox'][1])} after {4 * ROUNDS}.",
            ),
        )


def experiment(minutes: float) -> Report:
    levels = Levels.played(oco.load(HERE / "gradual.oco"))
    return Report(
        "gradual-variation",
        "Gradual variation",
        "Qiu & Wei 2020, gradual variation analysis for online optimization with constraints (no experiment in the paper)",
        (
            f"T = {ROUNDS}, ten seeds. The loss is c_t @ x + |x|^2/200 on the unit ball of five dimensions, under sum(x) >= 1/2."
            f" In the first n = {', '.join(map(str, COINS))} rounds the sign of c_t is a fair coin, then it is that of their"
            " sum: V_*(T) grows from 0 to the order of T, and the best fixed decision gains what the coins left. V_* is"
            " measured, averaged over the seeds and given to mirror-prox as its setting V; mirror-descent and COLDQ have the"
            " papers' settings. Cells: static regret / soft violation.",
        ),
        ("V_*(T)", *levels.curves, "mirror-prox promises"),
        levels.rows(),
        levels.claims(),
        levels.figure(),
        (
            "The guarantee grows again towards V_* = 0: its settings divide by max(V_*, L_f^2), and L_f = 0.01 is small beside"
            " the loss (erratum 3).",
            "With a large V_* mirror-prox is the slowest to reach the optimum: alpha is 2/rho (1/eta + gamma^2 H^2), and"
            " H^2 = 5 here.",
        ),
    )


def slope(V: Array, regret: Array) -> float:
    """The exponent of V in the regret, by least squares on logarithms; a regret below one counts as one."""
    return float(np.polyfit(np.log(V), np.log(np.maximum(regret, 1.0)), 1)[0])


EXPERIMENTS = (
    Experiment("gradual-variation", "Qiu & Wei: regret follows the root of the gradient variation", experiment),
)
