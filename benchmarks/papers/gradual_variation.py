"""Qiu & Wei 2020 has no experiment: here is one where V_*(T) goes from 0 to the order of T, and the regret should follow its root."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import oco
from benchmarks.papers.experiment import HERE, Experiment
from benchmarks.papers.figures import panels
from benchmarks.papers.report import Claim, Report, number
from benchmarks.papers.runs import STAY, Array, Contender, ending, play

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


def experiment(minutes: float) -> Report:
    model = oco.load(HERE / "gradual.oco")
    levels, tables, bounds = zip(*(regrets(model, n) for n in COINS))
    V = np.array(levels)
    _, longer, _ = regrets(model, 0, 4 * ROUNDS)
    curves = {label: np.array([t[label][0] for t in tables]) for label in tables[0]}
    moving = V >= 1
    slopes = {label: slope(V[moving], curve[moving]) for label, curve in curves.items()}
    figure, (left, right) = panels(2)
    for label, curve in curves.items():
        left.plot(V + 1, np.maximum(curve, 0.01), "o--" if label == STAY.label else "o-", label=label)
        right.plot(V + 1, np.maximum([t[label][1] for t in tables], 1e-3), "o-", label=label)
    left.plot(V + 1, [b or np.nan for b in bounds], ":", color="black", label="guarantee of mirror-prox")
    left.plot(
        V + 1, curves["mirror-prox"][0] + np.sqrt(V), color="grey", linewidth=0.8, label="regret at V = 0, plus sqrt(V)"
    )
    for axes, title in ((left, "static regret after 4096 rounds"), (right, "soft violation, 0 drawn as 0.001")):
        axes.set(title=title, xlabel="1 + V_*(T)", xscale="log", yscale="log")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    rows = [
        [number(v), *(f"{number(t[label][0])} / {number(t[label][1])}" for label in curves), number(b)]
        for v, t, b in zip(V, tables, bounds)
    ]
    prox, descent, queue = (curves[n] for n in ("mirror-prox", "mirror-descent", "COLDQ"))
    claims = (
        Claim(
            "Regret O(max(sqrt(V_*), L_f)) (Theorem 4.1).",
            slopes["mirror-prox"] <= 0.55,
            f"It grows as V_*^{slopes['mirror-prox']:.2f}; that of mirror-descent as V_*^{slopes['mirror-descent']:.2f}, of COLDQ as"
            f" V_*^{slopes['COLDQ']:.2f}.",
        ),
        Claim(
            "With a loss that never changes the regret is O(1).",
            longer["mirror-prox"][0] <= 1.1 * max(prox[0], 1.0),
            f"{number(prox[0])} after {ROUNDS} rounds and {number(longer['mirror-prox'][0])} after {4 * ROUNDS}, against"
            f" {number(descent[0])} and"
            f" {number(longer['mirror-descent'][0])} of mirror-descent, {number(queue[0])} and {number(longer['COLDQ'][0])} of COLDQ.",
        ),
        Claim(
            "Soft violation O(1) (Theorem 4.2).",
            longer["mirror-prox"][1] <= 1.1 * max(t["mirror-prox"][1] for t in tables),
            f"At most {number(max(t['mirror-prox'][1] for t in tables))} for any V_*; with V_* = 0 it is"
            f" {number(tables[0]['mirror-prox'][1])} after"
            f" {ROUNDS} rounds and {number(longer['mirror-prox'][1])} after {4 * ROUNDS}.",
        ),
    )
    notes = (
        "The guarantee grows again towards V_* = 0: its settings divide by max(V_*, L_f^2), and L_f = 0.01 is small beside the"
        " loss (erratum 3).",
        "With a large V_* mirror-prox is the slowest to reach the optimum: alpha is 2/rho (1/eta + gamma^2 H^2), and H^2 = 5 here.",
    )
    return Report(
        "gradual-variation",
        "Gradual variation",
        "Qiu & Wei 2020, gradual variation analysis for online optimization with constraints (no experiment in the paper)",
        (
            f"T = {ROUNDS}, ten seeds. The loss is c_t @ x + |x|^2/200 on the unit ball of five dimensions, under sum(x) >= 1/2."
            " In the first"
            f" n = {', '.join(map(str, COINS))} rounds the sign of c_t is a fair coin, then it is that of their sum: V_*(T)"
            " grows from 0 to the order"
            " of T, and the best fixed decision gains what the coins left. V_* is measured, averaged over the seeds and given"
            " to mirror-prox as its setting V; mirror-descent and COLDQ have the papers'"
            " settings. Cells: static regret / soft violation.",
        ),
        ("V_*(T)", *curves, "mirror-prox promises"),
        rows,
        claims,
        figure,
        notes,
    )


def slope(V: Array, regret: Array) -> float:
    """The exponent of V in the regret, by least squares on logarithms; a regret below one counts as one."""
    return float(np.polyfit(np.log(V), np.log(np.maximum(regret, 1.0)), 1)[0])


EXPERIMENTS = (
    Experiment("gradual-variation", "Qiu & Wei: regret follows the root of the gradient variation", experiment),
)
