"""Wang, Yan & Liu 2025, section 6 and appendix L: COLDQ beside RECOO, with the parameters of Tables 3 to 6.

Algorithm 1 of Yi et al. 2021 and 2023 is left out: the library has no rule that it could not confirm from a source.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

import oco
from benchmarks.papers.experiment import EXAMPLES, HERE, Experiment
from benchmarks.papers.figures import draw, panels
from benchmarks.papers.nyiso import five_minutes
from benchmarks.papers.report import Claim, Report, number, spread
from benchmarks.papers.runs import STAY, Array, Contender, Runs, best_fixed, ending, play

SOURCE = "Wang, Yan & Liu 2025, doubly-bounded queue for constrained online learning"
COLDQ = Contender("COLDQ", "coldq", {"alpha": "sqrt(t)"})
"""Tables 3 to 6; eta = 1/T, gamma = T/2 are the theorem's own."""
OPEN = (
    "The paper does not give x_1; here it is 0. Algorithm 1 of Yi et al., which it also shows, is not in the library: no source that"
    " states the rule could be read."
)
SEEDS = range(10)
DRAWS = range(40)
"""Seeds of section 6.2, whose loss hangs on its draw of A and b."""


def recoo(scale: float, gamma: float, label: str = "RECOO") -> Contender:
    """RECOO with alpha_t = scale sqrt(t), gamma_t = gamma t^0.51, eta_t = sqrt(t)."""
    return Contender(label, "recoo", {"alpha": f"{scale} * sqrt(t)", "gamma": f"{gamma} * t**0.51", "eta": "sqrt(t)"})


def rows(runs: Sequence[Runs], best: Array | None) -> list[list[str]]:
    """Accumulated loss and hard violation of each contender, and what its theorem promises."""
    found = []
    for r in runs:
        regret, violation = r.regret_bound(), r.violation_bound()
        bounds = [number(None if b is None else float(b[-1])) for b in (regret, violation)]
        found.append([r.label, spread(*ending(r.loss)), spread(*ending(r.hard)), *bounds])
    if best is not None:
        found.append(["best fixed decision", spread(*ending(best)), "0", "-", "-"])
    return found


COLUMNS = ("", "accumulated loss", "hard violation", "regret promised", "violation promised")


def saved(lower: Runs, higher: Runs) -> float:
    """The share of the hard violation that the first contender does without."""
    return 1 - ending(lower.hard)[0] / ending(higher.hard)[0]


def loss_gap(a: Runs, b: Runs) -> float:
    """Excess of the first loss over the second, as a share of the second."""
    return (ending(a.loss)[0] - ending(b.loss)[0]) / abs(ending(b.loss)[0])


def tracking(minutes: float) -> Report:
    """Section 6.1: a drifting least-squares target under two affine constraints that change each round."""
    model = oco.load(EXAMPLES / "tracking.oco")
    contenders = (COLDQ, recoo(0.5, 1), recoo(1, 1, "RECOO with COLDQ's alpha"), STAY)
    runs = play(model, contenders, SEEDS, start=np.zeros(10))
    coldq, guo, same, stay = runs
    best = best_fixed(coldq)
    figure, (left, right) = panels(2)
    dynamic = np.cumsum(coldq.traces[0].comparator("dynamic").losses)
    bound = coldq.regret_bound()
    losses = {r.label: r.loss for r in runs} | {"best fixed decision": best}
    promised = None if bound is None else dynamic + bound
    draw(left, "accumulated loss", losses, ("guarantee of COLDQ", promised))
    violations = {r.label: r.hard for r in runs}
    draw(right, "hard constraint violation", violations, ("guarantee of COLDQ", coldq.violation_bound()))
    share, gap = saved(coldq, guo), loss_gap(coldq, guo)
    queue = saved(coldq, same)
    claims = (
        Claim(
            "COLDQ achieves over 40% lower constraint violation than RECOO (Figure 1).",
            share > 0.40,
            f"It is {share:.1%} lower: {number(ending(coldq.hard)[0])} against {number(ending(guo.hard)[0])}.",
        ),
        Claim(
            "It does so without sacrificing the accumulated loss.",
            gap <= 0.01,
            f"Its loss is {gap:+.1%} of RECOO's: {number(ending(coldq.loss)[0])} against {number(ending(guo.loss)[0])}.",
        ),
    )
    notes = (
        "The gain is the step size of Table 3, not the queue: RECOO with COLDQ's alpha_t = sqrt(t) violates by"
        f" {number(ending(same.hard)[0])}"
        f" and loses {number(ending(same.loss)[0])}; COLDQ is {queue:.1%} below it (erratum 19).",
        f"Standing still at x_1 = 0 never violates and loses {number(ending(stay.loss)[0])},"
        f" {loss_gap(stay, coldq):.1%} more than COLDQ. It is also all but the best fixed decision, because some rounds have"
        " limits near 0.",
        "The guarantee of COLDQ is one of dynamic regret here (the model says so); both its numbers are vacuous at T = 5000.",
    )
    setup = (
        "T = 5000, ten seeds, fresh noise each round; parameters of Table 3. The data is drawn by the model itself"
        " (`examples/tracking.oco`)."
        f" {OPEN} The paper does not give T; the figure's axis says 5000.",
    )
    return Report(
        "coldq-tracking",
        "COLDQ on time-varying constraints",
        f"{SOURCE}, section 6.1",
        setup,
        COLUMNS,
        rows(runs, best),
        claims,
        figure,
        notes,
    )


def targets(seed: int) -> Mapping[str, Array]:
    """theta of section 6.2: a growing noise, a sign that turns four times, and +-1 in a random order."""
    rng, t = np.random.default_rng(seed), np.arange(1, 5001)
    growing = rng.uniform(-1, 1, (5000, 2)) * (t**0.1)[:, None]
    below = (t <= 1500) | ((t >= 2000) & (t <= 3500)) | (t >= 4000)
    turning = rng.uniform(0, 1, (5000, 2)) * np.where(below, -1.0, 1.0)[:, None]
    signs = np.where(rng.permutation(t) % 2, -1.0, 1.0)[:, None]
    return {"theta": growing + turning + signs}


def resources(seed: int) -> Mapping[str, Array]:
    """A and b of section 6.2."""
    rng = np.random.default_rng([seed, 2])
    return {"A": rng.uniform(0.1, 0.5, (3, 2)), "b": rng.uniform(0, 0.3, 3)}


def fixed_constraints(
    name: str, title: str, path: Path, guo: Contender, table: int, more: Sequence[Contender] = ()
) -> Report:
    """Section 6.2: two decisions under three affine constraints that do not change, drawn with each seed."""
    drawn = functools.cache(lambda seed: oco.load(path, params=resources(seed)))
    runs = play(drawn, (COLDQ, guo, STAY, *more), DRAWS, targets, np.zeros(2))
    coldq, other, stay = runs[:3]
    best = best_fixed(coldq)
    one = play(oco.load(path), (COLDQ, guo), SEEDS, targets, np.zeros(2))
    figure, (left, right) = panels(2)
    bound = coldq.regret_bound()
    losses = {r.label: r.loss for r in runs} | {"best fixed decision": best}
    draw(left, "accumulated loss", losses, ("guarantee of COLDQ", None if bound is None else best.mean(axis=0) + bound))
    violations = {r.label: r.hard for r in runs}
    draw(right, "hard constraint violation", violations, ("guarantee of COLDQ", coldq.violation_bound()))
    claim = Claim(
        "COLDQ demonstrates significant reductions in the hard constraint violation compared to RECOO.",
        ending(coldq.hard)[0] < 0.5 * ending(other.hard)[0],
        f"{number(ending(coldq.hard)[0])} against {number(ending(other.hard)[0])}, at the losses {number(ending(coldq.loss)[0])} and"
        f" {number(ending(other.loss)[0])}.",
    )
    fixed = ", ".join(f"{r.label} {spread(*ending(r.loss))} and {spread(*ending(r.hard))}" for r in one)
    notes = (
        f"The loss hangs on the draw of A and b. With those that stand in the model, ten seeds: {fixed} (loss and violation).",
        f"Standing still at x_1 = 0 loses {number(ending(stay.loss)[0])} and never violates.",
        "The queue of COLDQ begins at T/2 = 2500, so that its constraints are hard: projected gradient descent onto them makes the"
        " same decisions. RECOO violates in the first rounds alone, where its weight is still small.",
    )
    setup = (
        f"T = 5000, {len(DRAWS)} seeds; parameters of Table {table}. A ~ U(0.1, 0.5) and b ~ U(0, 0.3) are drawn with each seed,"
        f" as theta is; the paper does not say whether its figure has one draw or a mean. {OPEN}",
    )
    return Report(name, title, f"{SOURCE}, section 6.2", setup, COLUMNS, rows(runs, best), (claim,), figure, notes)


def quadratic(minutes: float) -> Report:
    strong = Contender("COLDQ of Theorem 3, alpha = mu t", "coldq")
    title = "COLDQ on online quadratic programming"
    return fixed_constraints("coldq-qp", title, EXAMPLES / "online_qp.oco", recoo(1, 7), 4, [strong])


def linear(minutes: float) -> Report:
    return fixed_constraints("coldq-lp", "COLDQ on online linear programming", HERE / "online_lp.oco", recoo(1, 1), 5)


def averaged(curves: Array) -> Array:
    """Cumulative sums as means over the rounds so far."""
    return curves / np.arange(1, curves.shape[1] + 1)


def jobs(minutes: float) -> Report:
    """Section 6.3 and appendix L: power for 100 data centres at prices of ten zones."""
    model = oco.load(EXAMPLES / "job_scheduling.oco")
    prices = five_minutes(2880, 10)
    slower = Contender("COLDQ, alpha = 3 sqrt(t)", "coldq", {"alpha": "3 * sqrt(t)"})
    contenders = (COLDQ, recoo(0.7, 1), slower, STAY)
    runs = play(model, contenders, range(5), lambda seed: {"price": prices}, np.zeros(100))
    coldq, guo, slow, stay = runs
    best = best_fixed(coldq)
    figure, (left, right) = panels(2)
    costs = {r.label: averaged(r.loss) for r in runs} | {"best fixed decision": averaged(best)}
    bound = coldq.regret_bound()
    promised = None if bound is None else averaged((best.mean(axis=0) + bound)[None])[0]
    draw(left, "time-averaged energy cost ($ an hour)", costs, ("guarantee of COLDQ", promised))
    delayed = {r.label: averaged(r.hard) for r in runs}
    limit = coldq.violation_bound()
    at_most = None if limit is None else averaged(limit[None])[0]
    draw(right, "time-averaged delayed jobs", delayed, ("guarantee of COLDQ", at_most))
    left.set_ylim(0, 1.5 * max(c[:, -1].mean() for c in costs.values()))
    right.set_ylim(0, 60)
    gap = loss_gap(coldq, guo)
    claims = (
        Claim(
            "COLDQ demonstrates a significant reduction in the energy cost compared with RECOO.",
            gap < -0.05,
            f"Its cost is {gap:+.1%} of RECOO's: {number(ending(coldq.loss)[0] / 2880)} against"
            f" {number(ending(guo.loss)[0] / 2880)} a slot.",
        ),
        Claim(
            "It does so without compromising the service quality.",
            ending(coldq.hard)[0] <= 1.1 * ending(guo.hard)[0],
            f"Delayed jobs a slot: {number(ending(coldq.hard)[0] / 2880)} against {number(ending(guo.hard)[0] / 2880)}.",
        ),
    )
    notes = (
        "Table 6 is said to make both delay nearly the same number of jobs. With alpha_t = c sqrt(t) COLDQ delays fewest near c"
        " = 3, more than"
        f" RECOO does with Table 6: {number(ending(slow.hard)[0] / 2880)} a slot.",
        "alpha_t and gamma carry units (erratum 19): after a change of currency the same table means another algorithm.",
        f"Standing still at x_1 = 0 costs nothing and serves nobody: {number(ending(stay.hard)[0] / 2880)} delayed jobs a slot.",
    )
    setup = (
        "T = 2880 slots of five minutes from 1 May 2017, five seeds of the arrivals; parameters of Table 6. NYISO's hourly"
        " means of ten zones are"
        f" repeated for the twelve slots of each hour, because the five-minute series is not in the data. {OPEN}",
    )
    return Report(
        "coldq-jobs",
        "COLDQ on job scheduling",
        f"{SOURCE}, section 6.3 and appendix L",
        setup,
        COLUMNS,
        rows(runs, best),
        claims,
        figure,
        notes,
    )


EXPERIMENTS = (
    Experiment("coldq-tracking", "Wang, Yan & Liu 6.1: time-varying constraints", tracking),
    Experiment("coldq-qp", "Wang, Yan & Liu 6.2: online quadratic programming", quadratic),
    Experiment("coldq-lp", "Wang, Yan & Liu 6.2: online linear programming", linear),
    Experiment("coldq-jobs", "Wang, Yan & Liu 6.3: online job scheduling", jobs),
)
