"""How far interpreter, NumPy and C are apart: every algorithm on every domain that it takes, and IR passes left out.

`python benchmarks/agreement.py [ROUNDS] [--only TEXT] > docs/agreement.md` plays ROUNDS rounds of each (10^4), and fewer where a backend
would take longer than SECONDS; the tables say how many. Differences are those of the decisions, as shares of the greatest entry of any.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import oco
from oco.backends.c99.backend import CBackend
from oco.backends.python.backend import NumpyBackend
from oco.compiler.choice import Standing
from oco.compiler.ir.interpret import interpret
from oco.compiler.ir.passes import CALLS, LOOPS, PASSES, optimize
from oco.compiler.plan import explain_choice
from oco.dsl.diagnostics import OcoError
from oco.dsl.model import Feedback, Model
from oco.plan import Plan

HERE = Path(__file__).parent
SECONDS = {"numpy": 10.0, "interpreter": 1.5}
Array = np.ndarray[Any, Any]
DOMAINS = {
    "box": ("[5]", "box(-1, 2)"),
    "ball": ("[4]", "ball(2)"),
    "nonneg_ball": ("[5]", "nonneg_ball(3)"),
    "l1_ball": ("[5]", "l1_ball(2)"),
    "simplex": ("[6]", "simplex(2)"),
    "capped_simplex": ("[9]", "capped_simplex(0.4, 1)"),
    "budget": ("[5]", "budget(0, 2, 5)"),
    "group_ball": ("[6]", "group_ball(2, [0, 2, 0, 1, 1, 2])"),
    "ellipsoid": ("[3]", "ellipsoid([[2, 0.5, 0.2], [0.5, 1, 0], [0.2, 0, 3]], [1, -2, 0.5])"),
    "polytope": ("[2]", "polytope([[1, 1], [-1, 0], [0, -1], [1, -1]], [2, 1, 0.5, 1])"),
    "flow": ("[8]", "flow([[0, 1], [0, 2], [1, 2], [1, 3], [2, 3], [2, 4], [3, 4], [4, 5]], 0, 4)"),
    "birkhoff": ("[3, 3]", "birkhoff(3)"),
    "nuclear_ball": ("[3, 4]", "nuclear_ball(2)"),
    "spectrahedron": ("[3, 3]", "spectrahedron(2)"),
}
FREE = (
    "model {name}\nhorizon T = {T}\ndecision x{shape} in {domain}\nstream a{shape} in [-2, 2]\nstream q in [0, 1]\n"
    "minimize sum(a * x){more}\n"
)
EACH = "subject to\n    cap: sum(c * x) <= {limit} each round\n    low: x[{first}] <= q + {limit} each round\n"
MEAN = "subject to\n    cap: sum(c * x) <= {limit} on average\n"
BENT = "subject to\n    cap: sum_squares(x) + x[{first}] <= {limit} on average\n"


KINDS = (
    ("each round", "", EACH),
    ("fixed", "", BENT),
    ("free", " + 0.5 * sum_squares(x)", ""),
    ("on average", "", MEAN),
)


@dataclass(frozen=True)
class Row:
    """An algorithm on a model: rounds compared and greatest differences; `without`: C, then NumPy, with a pass left out, and its name."""

    algorithm: str
    model: str
    rounds: tuple[int, int]
    apart: tuple[float, float]
    without: tuple[tuple[float, str], ...] = ()


def models() -> Iterator[tuple[str, Callable[[], Model]]]:
    """Models with constraints of every kind for every domain, random ones, and the examples: "domain, kind"."""
    for kind, more, rest in KINDS:
        for name, (shape, domain) in DOMAINS.items():
            first = ", ".join("0" for _ in shape.split(","))
            given = {"shape": shape, "domain": domain, "T": 10_000, "first": first, "limit": 3}
            head, tail = FREE.format(name="world", more=more, **given).split("minimize")
            stream = f"stream c{shape} in [0, 1]\n" if "c *" in rest else ""
            yield f"{name}, {kind}", partial(oco.parse, head + stream + "minimize" + tail + rest.format(**given))
    sys.path.insert(0, str(HERE.parent / "tests"))
    from facts_random import random_model

    for seed in range(12):
        yield f"random {seed}, random", lambda seed=seed: oco.parse(random_model(seed))
    for path in sorted((HERE.parent / "examples").glob("*.oco")):
        yield f"{path.stem}, example", partial(oco.load, path)


def rounds_of(plan: Plan, count: int) -> tuple[list[Array], list[Array]]:
    """Made-up rounds within the bounds, and the algorithm's random arrays, in the order of the program."""
    rng, problem = np.random.default_rng(0), plan.canonical
    if problem.feedback is Feedback.FULL:
        of = {s.name: s for s in problem.streams}

        def drawn(name: str) -> Array:
            s = of[name]
            if s.integer:
                return rng.integers(s.lower, s.upper, (count, *s.shape), endpoint=True)
            return rng.uniform(s.lower, s.upper, (count, *s.shape))

        inputs = [drawn(f.name) for f in plan.program.feedback]
    else:
        inputs = [rng.uniform(-1, 1, (count, *f.type.shape)) for f in plan.program.feedback]
    normal = {name for name, law in plan.laws.items() if law == "normal"}
    draws = [
        rng.normal(size=(count, *f.type.shape)) if f.name in normal else rng.random((count, *f.type.shape))
        for f in plan.program.draws
    ]
    return inputs, draws


Step = Callable[[str, Sequence[Any]], Sequence[Any]]


def path_of(step: Step, plan: Plan, inputs: Sequence[Array], draws: Sequence[Array], seconds: float) -> Array:
    """The decisions round by round, as many as there is time for."""
    state = step("init", [plan.contract.start[f.name] for f in plan.program.decision])
    found: list[Array] = []
    ends = time.process_time() + seconds
    for t in range(len(inputs[0])):
        drawn = [d[t] for d in draws]
        found.append(np.concatenate([np.ravel(d) for d in step("decide", [*state, *drawn])]))
        state = step("update", [*state, *(v[t] for v in inputs), *drawn])
        if time.process_time() > ends:
            break
    return np.array(found)


def apart(one: Array, other: Array) -> float:
    both = min(len(one), len(other))
    return float(np.abs(one[:both] - other[:both]).max() / max(np.abs(one).max(), 1e-300))


def stepping(made: Any) -> Step:
    return lambda function, args: getattr(made, function)(*args)


def compared(name: str, plan: Plan, rounds: int, passes: bool) -> Row:
    inputs, draws = rounds_of(plan, rounds)
    compiled, start = plan.compiled("numpy"), [plan.contract.start[f.name] for f in plan.program.decision]

    def in_c(program: Any, skip: tuple[str, ...] = ()) -> Array:
        native = CBackend(skip=skip).compile(program, plan.contract)
        return native.run(native.init(*start), inputs, draws, rounds, ["decisions"]).kept["decisions"]

    def interpreted(function: str, args: Sequence[Any]) -> Sequence[Any]:
        return interpret(plan.program, function, args)

    c = in_c(plan.program)
    with np.errstate(all="ignore"):
        numpy = path_of(stepping(compiled), plan, inputs, draws, SECONDS["numpy"])
        meaning = path_of(interpreted, plan, inputs, draws, SECONDS["interpreter"])
    found = Row(plan.algorithm, name, (len(numpy), len(meaning)), (apart(c, numpy), apart(c, meaning)))
    if not passes:
        return found
    left_out = [(apart(c, in_c(optimize(plan.traced, (p,)))), p) for p in PASSES]
    left_out += [(apart(c, in_c(optimize(plan.traced, tuple(PASSES)))), "any")]
    left_out += [(apart(c, in_c(plan.program, (p,))), p) for p in LOOPS]
    few = [a[:1000] for a in inputs], [a[:1000] for a in draws]
    paths = {p: path_of(stepping(NumpyBackend(skip=(p,)).compile(plan.program)), plan, *few, 9.0) for p in CALLS}
    return replace(found, without=(max(left_out), max((apart(numpy[:1000], path), p) for p, path in paths.items())))


def rows(rounds: int, only: str) -> Iterator[Row]:
    """Each algorithm on each domain and example once, with the passes left out on its first."""
    seen = set[tuple[str, str]]()
    for name, made in models():
        if only not in name:
            continue
        try:
            model = made()
            algorithms = [v.name for v in explain_choice(model).verdicts if v.standing is not Standing.REFUSED]
        except OcoError as error:
            print(f"{name}: {error}", file=sys.stderr, flush=True)
            continue
        for algorithm in algorithms:
            place = algorithm, name.split(", ")[0]
            if place in seen:
                continue
            try:
                plan = oco.compile(model, algorithm=algorithm, settings="paper")
                plan = plan if plan.horizon is None else plan.with_horizon(rounds)
                first = "example" not in name and not any(s[0] == algorithm for s in seen if s[1] in DOMAINS)
                yield compared(name, plan, min(rounds, 10**6 // plan.canonical.size), first)
                seen.add(place)
            except OcoError as error:
                print(f"{algorithm} on {name}: {error}", file=sys.stderr, flush=True)


def table(found: Sequence[Row], head: str, of: Callable[[Row], str]) -> Iterator[str]:
    """The worst of the rows that are alike in one respect."""
    yield f"| {head} | models | rounds | NumPy and C | rounds | interpreter and C | C without a pass | NumPy without a pass |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for key in dict.fromkeys(map(of, found)):
        alike = [r for r in found if of(r) == key]
        cells = [key, str(len(alike))]
        for k in range(2):
            cells += [_span([r.rounds[k] for r in alike]), f"{max(r.apart[k] for r in alike):.0e}"]
        cells += [_worst([r.without[k] for r in alike if r.without]) for k in range(2)]
        yield "| " + " | ".join(cells) + " |"


def _span(rounds: Sequence[int]) -> str:
    return f"{min(rounds)} to {max(rounds)}" if min(rounds) < max(rounds) else str(rounds[0])


def _worst(found: Sequence[tuple[float, str]]) -> str:
    difference, name = max(found, default=(0.0, ""))
    return f"{difference:.0e}" + (f" ({name})" if difference else "") if found else ""


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("rounds", type=int, nargs="?", default=10_000)
    given.add_argument("--only", default="")
    wanted = given.parse_args()
    warnings.simplefilter("ignore")
    found = list[Row]()
    for row in rows(wanted.rounds, wanted.only):
        print(row, file=sys.stderr, flush=True)
        found.append(row)
    print("\n".join(table(found, "algorithm", lambda r: r.algorithm)), end="\n\n")
    print("\n".join(table(found, "domain or example", lambda r: r.model.split(", ")[0].split(" ")[0])))


if __name__ == "__main__":
    main()
