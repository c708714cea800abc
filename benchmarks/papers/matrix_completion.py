"""Lee, Ho-Nguyen & Lee 2023, section 7: a 50 x 50 matrix from 100 entries a round, with every oracle and with PDMFW."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

import oco
from benchmarks.papers.experiment import EXAMPLES, Experiment
from benchmarks.papers.figures import panels
from benchmarks.papers.report import FOLDER, Claim, Report, number
from benchmarks.papers.runs import Array, Contender
from oco.backends.identity import learner_hash
from oco.dsl.writing import write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZE, OBSERVED, INSTANCES = 50, 100, 30
HORIZONS = (10, 30, 100, 300, 1000)
CONTENDERS = (
    *(Contender(o.upper(), "projection-free", {"oracle": o}) for o in ("ocg", "orgfw", "ospf", "sftrl")),
    Contender("PDMFW", "meta-frank-wolfe"),
)
Key = tuple[str, int, int, str]
COLUMNS = ("contender", "T", "seed", "plan", "loss", "sum of g")


def instance(seed: int) -> Array:
    """M with nuclear norm 1: the paper says no more."""
    M = np.random.default_rng([seed, 0]).normal(size=(SIZE, SIZE))
    return M / np.linalg.norm(M, "nuc")


def observations(M: Array, rounds: int, seed: int) -> Mapping[str, Array]:
    """Distinct entries each round; G is drawn by the model."""
    rng = np.random.default_rng([seed, 1])
    entries = np.array([rng.choice(SIZE * SIZE, OBSERVED, replace=False) for _ in range(rounds)])
    row, col = np.divmod(entries, SIZE)
    return {"row": row, "col": col, "rating": M[row, col]}


class Finished:
    """The instances that are done, in the file: loss and sum of g by contender, T and seed, for a plan that is still the same."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = list(csv.DictReader(path.open(encoding="utf-8"))) if path.exists() else []
        self.found = {
            (r["contender"], int(r["T"]), int(r["seed"]), r["plan"]): (float(r["loss"]), float(r["sum of g"]))
            for r in lines
        }

    def add(self, key: Key, measured: tuple[float, float]) -> None:
        self.found[key] = measured
        out = io.StringIO()
        table = csv.writer(out, lineterminator="\n")
        table.writerow(COLUMNS)
        order = [c.label for c in CONTENDERS]
        table.writerows(
            (*k, *v) for k, v in sorted(self.found.items(), key=lambda e: (order.index(e[0][0]), *e[0][1:]))
        )
        write_text(self.path, out.getvalue())

    def drop_others(self, plans: Collection[str]) -> None:
        """Forget the instances of plans that are no longer what is compiled."""
        self.found = {key: v for key, v in self.found.items() if key[3] in plans}

    def of(self, contender: str, rounds: int, plan: str) -> Array:
        """Loss and sum of g, (instances, 2)."""
        rows = (v for (c, T, _, p), v in self.found.items() if (c, T, p) == (contender, rounds, plan))
        return np.array(list(rows)).reshape(-1, 2)


def played(minutes: float) -> tuple[dict[str, list[Array]], dict[str, list[float | None]]]:
    """Loss and sum of g (instances, 2) of each contender at each horizon, and the regret that its theorem promises there.

    Seed by seed, until all are done or the minutes are over, so that all have as many. M satisfies the constraint in the mean and has
    the loss 0, so that the loss is the regret. NumPy takes two thirds of the time of C here: a round is one or more singular value
    decompositions of 50 x 50 matrices, which are LAPACK's there.
    """
    model = oco.load(EXAMPLES / "matrix_completion.oco")
    cells = [(rounds, c) for rounds in HORIZONS for c in CONTENDERS]
    plans = {(c.label, rounds): oco.compile(model, c.algorithm, c.settings).with_horizon(rounds) for rounds, c in cells}
    names = {cell: learner_hash(plan.program, plan.contract)[:12] for cell, plan in plans.items()}
    done = Finished(FOLDER / "matrix-completion.csv")
    done.drop_others(names.values())
    until = perf_counter() + 60 * minutes
    for seed in range(INSTANCES):
        M = instance(seed)
        for (label, rounds), plan in plans.items():
            key = label, rounds, seed, names[label, rounds]
            if key in done.found or perf_counter() > until:
                continue
            trace = plan.run(observations(M, rounds, seed), seed=seed, keep="last", backend="numpy")
            done.add(key, (float(trace.loss.sum()), float(trace.constraints.sum())))
        print(f"instance {seed + 1} of {INSTANCES}: {len(done.found)} runs", flush=True)
    found = {c.label: [done.of(c.label, T, names[c.label, T]) for T in HORIZONS] for c in CONTENDERS}
    guarantees = {cell: plan.guarantee for cell, plan in plans.items()}
    promised = {
        c.label: [None if (g := guarantees[c.label, T]) is None else g.regret() for T in HORIZONS] for c in CONTENDERS
    }
    return found, promised


def drawn(
    found: Mapping[str, list[Array]], promised: Mapping[str, list[float | None]], still: Sequence[float]
) -> Figure:
    """Regret with its guarantees, and sums of the constraint: means with one standard deviation."""
    figure, (left, right) = panels(2)
    for label, levels in found.items():
        for axes, column in ((left, 0), (right, 1)):
            means, deviations = [v[:, column].mean() for v in levels], [v[:, column].std() for v in levels]
            axes.errorbar(HORIZONS, means, deviations, label=label, capsize=2)
    for k, bounds in enumerate(promised.values()):
        curve = [np.nan if b is None else b for b in bounds]
        left.plot(HORIZONS, curve, ":", color=f"C{k}", label="guarantees, in the same colors" if k == 0 else None)
    left.plot(HORIZONS, still, "--", color="black", label="stay at x_1 = 0")
    right.axhline(0, linestyle="--", color="black", label="stay at x_1 = 0; best fixed decision")
    left.set(title="regret against the best fixed decision", xlabel="T", xscale="log", yscale="log")
    right.set(title="sum of the constraint", xlabel="T", xscale="log")
    for axes in (left, right):
        axes.grid(alpha=0.3)
    left.legend(fontsize=7, loc="upper left", ncols=2)
    right.legend(fontsize=7, loc="lower left", ncols=2)
    left.set_ylim(1e-3, 1e14)
    return figure


def experiment(minutes: float) -> Report:
    found, promised = played(minutes)
    still = [float(np.mean([applicability(seed, rounds) for seed in range(INSTANCES)])) for rounds in HORIZONS]
    rows = []
    for n, levels in found.items():
        cells = (f"{number(v[:, 0].mean())} / {number(v[:, 1].mean())} ({len(v)})" for v in levels)
        rows.append([n, *cells, number(promised[n][-1])])
    rows.append(["stay at x_1 = 0", *(f"{number(v)} / 0 ({INSTANCES})" for v in still), "-"])
    rows.append(["best fixed decision", *("0 / 0" for _ in HORIZONS), "-"])
    return Report(
        "matrix-completion",
        "Matrix completion without projections",
        "Lee, Ho-Nguyen & Lee 2023, projection-free online convex optimization with stochastic constraints, section 7",
        (
            f"(m, n, k, b) = (50, 50, 5, 100), T in {HORIZONS}, x_1 = 0; beta = 0 and the theorems' constants. Cells: regret / sum"
            f" of g (instances, {INSTANCES} in the paper). Finished instances are kept in `matrix-completion.csv`, and the command goes"
            " on from there. M has independent normal entries, scaled to nuclear norm 1; it is the best fixed decision, with the"
            " loss 0. The paper's text calls SFTPL what its Table 2 calls SFTRL.",
        ),
        ("", *(f"T = {t}" for t in HORIZONS), "regret promised at T = 1000"),
        rows,
        claims(found, still),
        drawn(found, promised, still),
        (
            "The constraint has mean zero at every X and is drawn after X is chosen: the sum of g has mean zero for every"
            ' algorithm whatever it does, and "X = 0 for ever" is hard to beat (erratum 11).',
            "With the theorems' constants the multiplier hardly acts.",
        ),
    )


def applicability(seed: int, rounds: int) -> float:
    """The loss of X = 0."""
    return float((observations(instance(seed), rounds, seed)["rating"] ** 2).sum() / 2)


def claims(found: Mapping[str, list[Array]], still: list[float]) -> tuple[Claim, ...]:
    exponents = {}
    for label, levels in found.items():
        regret = [v[:, 0].mean() for v in levels]
        exponents[label] = float(np.polyfit(np.log(HORIZONS[2:]), np.log(regret[2:]), 1)[0])
    last = {n: float(v[-1][:, 0].mean()) for n, v in found.items()}
    slack = {n: largest_sample(levels) for n, levels in found.items()}
    lowest = sorted(last, key=lambda n: last[n])
    told = ", ".join(f"{n} T^{e:.2f}" for n, e in exponents.items())
    return (
        Claim(
            "Each algorithm exhibits a sublinear growth in regret.",
            max(exponents.values()) < 0.97,
            f"From T = 100: {told}.",
        ),
        Claim(
            "OCG achieves lower regret than the others, with SFTPL.",
            "OCG" in lowest[:2],
            f"In order at T = 1000: {', '.join(f'{n} {number(last[n])}' for n in lowest)}.",
        ),
        Claim(
            "Constraint violations are centred around 0.",
            all(abs(v.mean()) <= 3 * v.std(ddof=1) / np.sqrt(len(v)) for _, v in slack.values()),
            f"{', '.join(f'{n} {v.mean():.3g} ± {v.std(ddof=1):.2g} (T = {t})' for n, (t, v) in slack.items())}. Standing still"
            " at X = 0 has the"
            f" regret {number(still[-1])} and none.",
        ),
    )


def largest_sample(levels: list[Array]) -> tuple[int, Array]:
    """The largest T with at least eight instances, and the sums of g there."""
    enough = [k for k, v in enumerate(levels) if len(v) >= 8] or [0]
    return HORIZONS[enough[-1]], levels[enough[-1]][:, 1]


EXPERIMENTS = (Experiment("matrix-completion", "Lee, Ho-Nguyen & Lee 7: all oracles and PDMFW", experiment),)
