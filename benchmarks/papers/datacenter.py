"""Wei, Yu & Neely 2020, section 4: power for fifty servers, with jobs to serve and a budget to pace in the long run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

import oco
from benchmarks.papers.doubly_bounded import averaged
from benchmarks.papers.experiment import EXAMPLES, Experiment
from benchmarks.papers.figures import draw, panels
from benchmarks.papers.nyiso import five_minutes
from benchmarks.papers.report import Claim, Report, number, spread
from benchmarks.papers.runs import STAY, Array, Contender, Runs, best_fixed, ending, play

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROUNDS, SEEDS = 10_000, range(5)
ZONES = ("DUNWOD", "N.Y.C.", "LONGIL", "CAPITL", "WEST")
SHARES = np.array([0.05, 0.10, 0.25, 0.30, 0.30])  # of the load for each cluster; the last two share 0.60
MEMORY = 10  # slots over which the reactive rule averages the arrivals
OURS, REACTIVE, IDEAL = "mirror-descent", "reactive", "best fixed decision"
SETUP = (
    f"T = {ROUNDS} slots of five minutes from 1 May 2017, five seeds; V = sqrt(T), alpha = T. NYISO's hourly means of five zones"
    f" ({', '.join(ZONES)}; the paper names DUNWOD alone) are repeated for the twelve slots of each hour: 834 hours,"
    " where the paper has ten days of five-minute prices. mu_0 is not given; here it is the centre of the box, 15. Reac"
    " estimates the arrivals by the mean of the last ten slots and splits them by the pacing ratio, evenly within a cluster."
)


def reactive(streams: Mapping[str, Array]) -> Array:
    """Power of each server, (T, 50): the mean of the last ten slots' arrivals, split by the pacing ratio, evenly within a cluster.

    A server of a cluster with the share s of n jobs serves s n / 10 in the mean with 8 log(1 + 4 mu) = s n / 10.
    """
    arrivals = streams["jobs"]
    sums = np.concatenate([[0.0], np.cumsum(arrivals)])
    t = np.arange(len(arrivals))
    first = np.maximum(t - MEMORY, 0)
    expected = (sums[t] - sums[first]) / np.maximum(t - first, 1)
    each = expected[:, None] * SHARES / 10
    return np.repeat(np.clip(np.expm1(each / 8) / 4, 0, 30), 10, axis=1)


def measured(streams: Mapping[str, Array], mu: Array) -> tuple[Array, Array, Array]:
    """By hand: losses (T,), g (T,) and h (T, 4) of decisions (T, 50)."""
    group = np.loadtxt(EXAMPLES / "datacenter_groups.csv", delimiter=",")
    spent = streams["use"] * mu
    loss = (np.repeat(streams["price"], 10, axis=1) * mu).sum(axis=1)
    unserved = streams["jobs"] - (streams["speed"] * np.log1p(4 * mu)).sum(axis=1)
    pacing = spent @ group.T - spent.sum(axis=1, keepdims=True) * np.array([0.05, 0.10, 0.25, 0.60])
    return loss, unserved, pacing


def pacing(runs: Runs) -> Array:
    """The mean over the rows of |sum_t h_t|, (seeds, T)."""
    return np.array([np.abs(np.cumsum(t.equalities, axis=0)).mean(axis=1) for t in runs.traces])


@dataclass(frozen=True)
class Curves:
    """Cost, unserved load and imbalance of each contender, a slot on average over the slots so far: (seeds, T) by name."""

    cost: Mapping[str, Array]
    jobs: Mapping[str, Array]
    paced: Mapping[str, Array]

    @classmethod
    def of(cls, runs: Sequence[Runs], best: Array) -> Curves:
        streams = (t.data.read(0, t.rounds) for t in runs[0].traces)
        by_hand = [measured(s, reactive(s)) for s in streams]
        cost = {r.label: r.loss for r in runs} | {IDEAL: best}
        cost[REACTIVE] = np.array([np.cumsum(loss) for loss, _, _ in by_hand])
        jobs = {r.label: r.soft for r in runs}
        jobs[REACTIVE] = np.array([np.maximum(np.cumsum(g), 0) for _, g, _ in by_hand])
        paced = {r.label: pacing(r) for r in runs}
        paced[REACTIVE] = np.array([np.abs(np.cumsum(h, axis=0)).mean(axis=1) for _, _, h in by_hand])
        return cls(*({name: averaged(c) for name, c in curves.items()} for curves in (cost, jobs, paced)))

    def rows(self) -> list[list[str]]:
        kinds = self.cost, self.jobs, self.paced
        rows = [[name, *(spread(*ending(kind[name])) for kind in kinds)] for name in self.jobs]
        return [*rows, [IDEAL, spread(*ending(self.cost[IDEAL])), "0", "0"]]

    def figure(self, promised: Array) -> Figure:
        figure, (left, middle, right) = panels(3)
        draw(left, "average cost of power", self.cost, ("guarantee", promised))
        draw(middle, "average unserved jobs", self.jobs)
        draw(right, "average violation of the pacing rows", self.paced)
        middle.set_ylim(0, 400)
        right.set_ylim(0, 300)
        return figure

    def claims(self) -> tuple[Claim, ...]:
        (own, rule), ideal = self.ends(self.cost), ending(self.cost[IDEAL])[0]
        (unserved, missed), (off, late) = self.ends(self.jobs), self.ends(self.paced)
        return (
            Claim(
                "The algorithm spends about as much as the best fixed decision.",
                abs(own - ideal) <= 0.1 * abs(ideal),
                f"{number(own)} against {number(ideal)} a slot ({(own - ideal) / abs(ideal):+.1%}).",
            ),
            Claim(
                "That is better than Reac.",
                own < rule,
                f"Reac spends {number(rule)} ({(own - rule) / abs(rule):+.1%}).",
            ),
            Claim(
                "The average number of unserved jobs stays low.",
                unserved <= 0.02 * 1000,
                f"{number(unserved)} of 1000 a slot at the end; Reac leaves {number(missed)}.",
            ),
            Claim(
                "The budget is paced fast.",
                off <= 0.05 * 250,
                f"The rows are off by {number(off)} units a slot in the mean, Reac's by {number(late)}.",
            ),
        )

    def ends(self, curves: Mapping[str, Array]) -> tuple[float, float]:
        """Figures of the algorithm and of Reac, in the mean after the last slot."""
        return ending(curves[OURS])[0], ending(curves[REACTIVE])[0]


def experiment(minutes: float) -> Report:
    prices = five_minutes(ROUNDS, ZONES)
    contenders = (Contender(OURS, OURS), STAY)
    runs = play(oco.load(EXAMPLES / "datacenter.oco"), contenders, SEEDS, lambda seed: {"price": prices})
    one = runs[0].traces[0]
    loss, g, _ = measured(one.data.read(0, ROUNDS), one.decisions)
    assert np.allclose(loss, one.loss) and np.allclose(g, one.constraints[:, 0])
    best, bound = best_fixed(runs[0]), runs[0].regret_bound()
    assert bound is not None
    curves = Curves.of(runs, best)
    shares = ending(curves.cost[OURS])[0] / ending(curves.cost[IDEAL])[0], ending(curves.jobs[OURS])[0] / 1000
    return Report(
        "datacenter",
        "Mirror descent in a data centre",
        "Wei, Yu & Neely 2020, online primal-dual mirror descent under stochastic constraints, section 4",
        (SETUP,),
        ("", "cost a slot", "unserved jobs a slot", "pacing off, a slot"),
        curves.rows(),
        curves.claims(),
        curves.figure(averaged((best.mean(axis=0) + bound)[None])[0]),
        (
            f"The guarantee of the regret, {number(float(bound[-1]))}, is vacuous at T = {ROUNDS}; violations have a rate"
            " without a number, because the equalities leave no Slater point.",
            f"Cost and unserved jobs hang on one multiplier: the learner pays {shares[0]:.0%} of what the best fixed decision"
            f" pays and leaves {shares[1]:.0%} of the jobs. V = sqrt(T) and alpha = T have no units, and prices, jobs and"
            " powers have.",
            "The four pacing rows add up to zero; the compiler drops one (erratum 6a, OCO601).",
        ),
    )


EXPERIMENTS = (Experiment("datacenter", "Wei, Yu & Neely 4: jobs and a budget in a data centre", experiment),)
