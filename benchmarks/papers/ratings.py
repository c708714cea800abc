"""Wang, Wan & Zhang 2025: matrix completion on MovieLens-100k with full information and on FilmTrust with bandit feedback.

The data is read by path and never shipped. All methods play the same rounds, as many as the minutes hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

import oco
from benchmarks.papers.experiment import EXAMPLES, HERE, Experiment, shared
from benchmarks.papers.figures import draw, panels
from benchmarks.papers.fixed_matrix import Fixed, best_fixed
from benchmarks.papers.report import Claim, Report, number
from benchmarks.papers.runs import Array, Contender
from oco.compiler.problem.canonical import canonical
from oco.evaluation.data import load_data

SOURCE = "Wang, Wan & Zhang 2025, projection-free constrained online convex optimization"
PILOT = 8  # rounds at least, to tell how long one takes
PILOT_SHARE, HINDSIGHT_SHARE = 0.05, 0.15  # of the minutes
DRAWING = 0.01  # seconds that a round takes beside what is timed


def movielens() -> Array:
    """(user, item, rating), from 0, shape (100000, 3)."""
    found = np.loadtxt(shared("movielens100k/u.data"), usecols=(0, 1, 2))
    return found - np.array([1, 1, 0])


def filmtrust() -> Array:
    found = np.loadtxt(shared("filmtrust/ratings.txt"))
    return found - np.array([1, 1, 0])


def rounds_of(ratings: Array, count: int) -> Mapping[str, Array]:
    """The first ratings in a random order, a round each. P is drawn by the model, round by round."""
    user, item, rating = ratings[np.random.default_rng(0).permutation(len(ratings))[:count]].T
    return {"user": user.astype(np.int64), "item": item.astype(np.int64), "rating": rating}


@dataclass(frozen=True, eq=False)
class Played:
    """Loss and violation of a method, (rounds,) each; the bounds that its theorem gives after each round; seconds a round."""

    loss: Array
    violation: Array
    seconds: float = 0.0
    regret_bound: Array | None = None
    violation_bound: Array | None = None


def played(plan: oco.Plan, ratings: Array, rounds: int) -> Played:
    """The first ratings, in as many rounds."""
    trace = plan.run(rounds_of(ratings, rounds), seed=0, keep="last")
    broken = any(w.code == "OCO707" for w in plan.choice.warnings)  # the theorem does not hold with the given settings
    promised = None if broken else plan.with_horizon(rounds).guarantee
    bounds = (None, None) if promised is None else (promised.regret_curve(rounds), promised.violation_curve(rounds))
    return Played(trace.loss, np.maximum(trace.constraints[:, 0], 0), trace.seconds / rounds, *bounds)


def pace(plan: oco.Plan, ratings: Array, seconds: float) -> float:
    """Seconds a round: of ever more rounds, until they last so long."""
    rounds = PILOT
    while True:
        found = played(plan, ratings, rounds).seconds
        if found * rounds >= seconds or rounds == len(ratings):
            return found
        rounds = min(len(ratings), rounds * max(2, int(seconds / (found * rounds) / 2)))


def compare(model: oco.Model, ratings: Array, contenders: Sequence[Contender], minutes: float) -> dict[str, Played]:
    """Results of each in the same number of rounds, as many as the minutes hold."""
    began = perf_counter()
    plans = {c.label: oco.compile(model, c.algorithm, c.settings) for c in contenders}
    pilot = PILOT_SHARE * 60 * minutes / len(plans)
    paces = [pace(plan, ratings, pilot) for plan in plans.values()]
    left = (1 - HINDSIGHT_SHARE) * 60 * minutes - (perf_counter() - began)
    rounds = min(len(ratings), max(PILOT, int(left / (sum(paces) + DRAWING * len(plans)))))
    found = {}
    for label, plan in plans.items():
        found[label] = played(plan, ratings, rounds)
        print(f"{label}: {rounds} rounds, {1e3 * found[label].seconds:.1f} ms each", flush=True)
    return found


def page(
    name: str,
    title: str,
    setup: str,
    found: Mapping[str, Played],
    claims: Sequence[Claim],
    ratings: Array,
    best: Fixed,
) -> Report:
    """Regret against the best fixed decision (the loss, where there is none) and violation, cumulative, beside the guarantees."""
    first = next(iter(found.values()))
    rounds = len(first.loss)
    still = Played(rounds_of(ratings, rounds)["rating"] ** 2 / 2, np.zeros(rounds))
    fixed = {} if best.losses is None else {"best fixed decision": Played(best.losses, np.zeros(rounds))}
    every = {**found, "stay at x_1": still, **fixed}
    base, word = (0.0, "loss") if best.losses is None else (np.cumsum(best.losses), "regret")
    figure, (left, right) = panels(2)
    losses = {n: (np.cumsum(v.loss) - base)[None] for n, v in every.items() if n not in fixed}
    draw(left, f"cumulative {word}", losses, (f"regret promised of {next(iter(found))}", first.regret_bound))
    broken = {n: np.cumsum(v.violation)[None] for n, v in every.items()}
    draw(right, "cumulative violation", broken, (f"promised of {next(iter(found))}", first.violation_bound))
    rows = [[n, *cells(v, best)] for n, v in every.items()]
    columns = (
        "",
        "loss",
        "regret",
        "regret promised",
        "violation",
        "violation promised",
        "loss a round, last 100",
        "a round",
    )
    notes = (
        f"{rounds} of {len(ratings)} ratings; one seed, where the paper has ten and all ratings.",
        hindsight(best),
        "Every guarantee is vacuous at these horizons: it allows more than any sequence of decisions can lose.",
    )
    return Report(name, title, f"{SOURCE}, experiments", (setup,), columns, rows, claims, figure, notes)


def cells(v: Played, best: Fixed) -> list[str]:
    """A row of the table."""
    ends = [None if b is None else float(b[-1]) for b in (v.regret_bound, v.violation_bound)]
    regret = None if best.upper is None else float(v.loss.sum()) - best.upper
    took = f"{1e3 * v.seconds:.1f} ms" if v.seconds else "-"
    numbers = (float(v.loss.sum()), regret, ends[0], float(v.violation.sum()), ends[1], float(v.loss[-100:].mean()))
    return [*map(number, numbers), took]


def hindsight(best: Fixed) -> str:
    """Known values of the best fixed decision."""
    least = f"The best fixed decision loses at least {number(best.lower)}"
    if best.upper is None:
        return f"{least}; a feasible one was not computed: {best.said}."
    return f"{least} and at most {number(best.upper)} ({best.said})."


def in_hindsight(model: oco.Model, ratings: Array, found: Mapping[str, Played], minutes: float) -> Fixed:
    """The best fixed decision for the rounds that were played, within its share of the minutes."""
    rounds, problem = len(next(iter(found.values())).loss), canonical(model)
    (block,) = problem.blocks
    data = load_data(problem, rounds_of(ratings, rounds), seed=0)
    m, n = block.shape
    return best_fixed(data, (m, n), block.domain.radius, HINDSIGHT_SHARE * 60 * minutes)


def total(found: Mapping[str, Played], label: str) -> tuple[float, float]:
    return float(found[label].loss.sum()), float(found[label].violation.sum())


def full_information(minutes: float) -> Report:
    model, ratings = oco.load(EXAMPLES / "ratings.oco"), movielens()
    contenders = (
        Contender("OFW-TVC", "ofw-tvc"),
        Contender("OFW-TVC, G = 5", "ofw-tvc", {"G": 5, "guess": "1e-12"}),
        Contender("SCOFW-TVC, alpha_f = 1", "scofw-tvc", {"alpha_f": 1}),
        Contender("OPDP (ocg)", "projection-free", {"oracle": "ocg"}),
    )
    found = compare(model, ratings, contenders, minutes)
    names = [c.label for c in contenders]
    ofw, _, strong, opdp = (total(found, n) for n in names)
    claims = (
        Claim(
            "OFW-TVC outperforms its competitors significantly in both metrics.",
            ofw[0] < 0.9 * opdp[0] and ofw[1] < 0.9 * opdp[1],
            f"Loss {number(ofw[0])} against {number(opdp[0])}, violation {number(ofw[1])} against {number(opdp[1])} of OPDP.",
        ),
        Claim(
            "SCOFW-TVC yields the lowest loss, with a slight compromise on the violation.",
            strong[0] <= min(total(found, n)[0] for n in names),
            f"Loss {number(strong[0])}, violation {number(strong[1])}. The loss of one entry is not strongly convex in X:"
            " alpha_f = 1 is the"
            " paper's word for it, and nothing is guaranteed.",
        ),
    )
    setup = (
        f"MovieLens-100k (943 x 1682), nuclear ball of radius 10,000, {minutes:g} minutes in all, as many rounds for"
        " each method as they hold; x_1 = 0. LPM of"
        " Garber & Kretzu is not in the library: no source that states its rule could be read. The paper picks the best of eleven"
        " magnitudes for every parameter; here stand the theorem's settings, and"
        " beside them G = 5, the size of the gradients that are met, where the worst case is 10005."
    )
    best = in_hindsight(model, ratings, found, minutes)
    return page("movielens", "Matrix completion on MovieLens-100k", setup, found, claims, ratings, best)


def bandit(minutes: float) -> Report:
    model, ratings = oco.load(HERE / "filmtrust.oco"), filmtrust()
    contenders = (
        Contender("BFW-TVC", "bfw-tvc"),
        Contender("SCBFW-TVC, alpha_f = 1", "scbfw-tvc", {"alpha_f": 1}),
    )
    found = compare(model, ratings, contenders, minutes)
    rounds = len(next(iter(found.values())).loss)
    still = float((rounds_of(ratings, rounds)["rating"] ** 2).sum() / 2)
    both = [total(found, c.label) for c in contenders]
    claims = (
        Claim(
            "The bandit methods consistently outperform others.",
            all(loss < still for loss, _ in both),
            f"Their competitor LBPM is not in the library; X = 0 for ever loses {number(still)} and never violates, they lose"
            f" {number(both[0][0])} and {number(both[1][0])} and violate by {number(both[0][1])} and {number(both[1][1])}.",
        ),
    )
    setup = (
        f"FilmTrust (1508 x 2071), bandit feedback, nuclear ball of radius 10,000, {minutes:g} minutes in all, as many rounds"
        " for each method as they hold; y_1 = 0; the theorems' settings."
    )
    best = in_hindsight(model, ratings, found, minutes)
    title = "Matrix completion on FilmTrust with bandit feedback"
    return page("filmtrust", title, setup, found, claims, ratings, best)


EXPERIMENTS = (
    Experiment("movielens", "Wang, Wan & Zhang: MovieLens-100k, full information", full_information),
    Experiment("filmtrust", "Wang, Wan & Zhang: FilmTrust, bandit feedback", bandit),
)
