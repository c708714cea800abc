"""Distances between interpreter, NumPy and C: every algorithm on every domain that it takes, and IR passes left out.

`python benchmarks/agreement.py [ROUNDS] [--log FILE] > docs/agreement.md` plays ROUNDS rounds of each (10^4), and fewer where a backend
would take longer than its seconds; the tables say how many. Differences are those of each entry of the decisions, as
shares of its width over the domain.
What is in the log is not played again: a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import oco
from oco.backends.c99.backend import CBackend
from oco.backends.python.backend import NumpyBackend
from oco.compiler.ir.interpret import interpret
from oco.compiler.ir.passes import CALLS, LOOPS, PASSES, optimize
from oco.compiler.selection.choice import Applicability
from oco.compiler.selection.plan import explain_choice
from oco.dsl.diagnostics import OcoError
from oco.dsl.model import Model
from oco.dsl.statements import Feedback
from oco.plan import Plan

HERE = Path(__file__).parent
SAME = 1e-9
MATRIX_ROUNDS = 10
"""Rounds of a decision of a million entries; of small ones as many as are asked for."""
MOVED = 1e-15
"""The share by which a start is moved to tell whether a path is chaotic."""
Array = np.ndarray[Any, Any]
DOMAINS = {
    "box": ("[5]", "box(-1, 2)"),
    "uneven box": ("[4]", "box([-0.001, -1, -100, 0], [0.001, 2, 100, 100000])"),
    "ball": ("[4]", "ball(2)"),
    "nonneg_ball": ("[5]", "nonneg_ball(3)"),
    "l1_ball": ("[5]", "l1_ball(2)"),
    "simplex": ("[6]", "simplex(2)"),
    "capped_simplex": ("[9]", "capped_simplex(0.4, 1)"),
    "budget": ("[5]", "budget(0, 2, 3)"),
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
    ("on average", "", MEAN),
    ("fixed", "", BENT),
    ("free", " + 0.5 * sum_squares(x)", ""),
)


@dataclass(frozen=True)
class Row:
    """An algorithm on a model: rounds compared and greatest differences, of NumPy and of the interpreter from C.

    without   greatest difference of C, then of NumPy, with a pass left out, and the pass
    alike     rounds in which C and NumPy are the same to SAME, and in which NumPy is, to itself with its start moved by MOVED
    """

    algorithm: str
    model: str
    rounds: tuple[int, int]
    apart: tuple[float, float]
    without: tuple[tuple[float, str], ...] = ()
    alike: tuple[int, int] | None = None

    @property
    def chaotic(self) -> bool:
        return self.alike is not None and self.alike[1] < self.rounds[0]


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
    normal = {name for name, distribution in plan.distributions.items() if distribution == "normal"}
    draws = [
        rng.normal(size=(count, *f.type.shape)) if f.name in normal else rng.random((count, *f.type.shape))
        for f in plan.program.draws
    ]
    return inputs, draws


Step = Callable[[str, Sequence[Any]], Sequence[Any]]


def path_of(step: Step, start: Sequence[Any], inputs: Sequence[Array], draws: Sequence[Array], seconds: float) -> Array:
    """The decisions round by round, as many as there is time for."""
    state = step("init", start)
    found: list[Array] = []
    ends = time.process_time() + seconds
    for t in range(len(inputs[0])):
        drawn = [d[t] for d in draws]
        found.append(np.concatenate([np.ravel(d) for d in step("decide", [*state, *drawn])]))
        state = step("update", [*state, *(v[t] for v in inputs), *drawn])
        if time.process_time() > ends:
            break
    return np.array(found)


def widths_of(plan: Plan) -> Array:
    """The width of each entry over its domain, shape (n,); that of an entry which cannot move is its size."""
    bounds = [(np.ravel(b.domain.lower), np.ravel(b.domain.upper)) for b in plan.canonical.blocks]
    lower, upper = (np.concatenate(parts) for parts in zip(*bounds))
    return np.where(upper > lower, upper - lower, np.maximum(np.abs(upper), 1e-300))


def apart(one: Array, other: Array, widths: Array) -> float:
    """Greatest difference of an entry, as a share of its width."""
    both = min(len(one), len(other))
    return float((np.abs(one[:both] - other[:both]) / widths).max())


def stepping(made: Any) -> Step:
    return lambda function, args: getattr(made, function)(*args)


def alike(one: Array, other: Array, widths: Array) -> int:
    """Rounds until two paths are apart."""
    both = min(len(one), len(other))
    far = (np.abs(one[:both] - other[:both]) / widths).max(axis=1) > SAME
    return int(np.argmax(far)) if far.any() else both


def compared(name: str, plan: Plan, rounds: int, passes: bool, seconds: float) -> Row:
    inputs, draws = rounds_of(plan, rounds)
    widths = widths_of(plan)
    compiled, start = plan.compiled("numpy"), [plan.contract.start[f.name] for f in plan.program.decision]

    def in_c(program: Any, skip: tuple[str, ...] = ()) -> Array:
        native = CBackend(skip=skip).compile(program, plan.contract)
        return native.run(native.init(*start), inputs, draws, rounds, ["decisions"]).kept["decisions"]

    def interpreted(function: str, args: Sequence[Any]) -> Sequence[Any]:
        return interpret(plan.program, function, args)

    c = in_c(plan.program)
    with np.errstate(all="ignore"):
        numpy = path_of(stepping(compiled), start, inputs, draws, seconds)
        meaning = path_of(interpreted, start, inputs, draws, seconds / 6)
        found = Row(
            plan.algorithm, name, (len(numpy), len(meaning)), (apart(c, numpy, widths), apart(c, meaning, widths))
        )
        if found.apart[0] > SAME:
            moved = [np.asarray(v) * (1 + MOVED) + MOVED for v in start]
            again = path_of(stepping(compiled), moved, inputs, draws, 2 * seconds)
            found = replace(found, alike=(alike(c, numpy, widths), alike(numpy, again, widths)))
    if not passes:
        return found
    left_out = [(apart(c, in_c(optimize(plan.traced, (p,))), widths), p) for p in PASSES]
    left_out += [(apart(c, in_c(optimize(plan.traced, tuple(PASSES))), widths), "any")]
    left_out += [(apart(c, in_c(plan.program, (p,)), widths), p) for p in LOOPS]
    few = [a[:1000] for a in inputs], [a[:1000] for a in draws]
    with np.errstate(all="ignore"):
        paths = {
            p: path_of(stepping(NumpyBackend(skip=(p,)).compile(plan.program)), start, *few, seconds) for p in CALLS
        }
    return replace(
        found, without=(max(left_out), max((apart(numpy[:1000], path, widths), p) for p, path in paths.items()))
    )


def rows(rounds: int, only: str, seconds: float, known: Sequence[Row]) -> Iterator[Row]:
    """Each algorithm on each domain and example once, with the passes left out on its first; what is known already is not played."""
    seen, of_known = set[tuple[str, str]](), {(r.algorithm, r.model): r for r in known}
    for name, made in models():
        if only not in name:
            continue
        try:
            model = made()
            algorithms = [
                v.name for v in explain_choice(model).verdicts if v.applicability is not Applicability.REFUSED
            ]
        except OcoError as error:
            print(f"{name}: {error}", file=sys.stderr, flush=True)
            continue
        for algorithm in algorithms:
            place = algorithm, name.split(", ")[0]
            if place in seen:
                continue
            if (row := of_known.get((algorithm, name))) is not None:
                seen.add(place)
                yield row
                continue
            try:
                plan = oco.compile(model, algorithm=algorithm, settings="paper")
                plan = plan if plan.horizon is None else plan.with_horizon(rounds)
                few = max(MATRIX_ROUNDS, 10**6 // plan.canonical.size)
                first = "example" not in name and not any(s[0] == algorithm for s in seen if s[1] in DOMAINS)
                yield compared(name, plan, min(rounds, few), first, seconds)
                seen.add(place)
            except OcoError as error:
                print(f"{algorithm} on {name}: {error}", file=sys.stderr, flush=True)


def chosen_rows(rounds: int, seconds: float) -> Iterator[Row]:
    """Each example with the algorithm that is chosen for it, but for those that decide with values known before, or with their decision
    of the round before.
    """
    for path in sorted((HERE.parent / "examples").glob("*.oco")):
        try:
            plan = oco.compile(oco.load(path), settings="paper")
            if plan.program.previous or plan.program.prepare is not None:
                continue
            plan = plan if plan.horizon is None else plan.with_horizon(rounds)
            few = max(MATRIX_ROUNDS, 10**7 // plan.canonical.size)
            yield compared(path.stem, plan, min(rounds, few), False, seconds)
        except OcoError as error:
            print(f"{path.stem}: {error}", file=sys.stderr, flush=True)


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


def read(log: Path | None) -> list[Row]:
    """The rows of a log."""
    if log is None or not log.exists():
        return []
    found = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    tuples = ({k: tuple(map(_tuple, v)) if isinstance(v, list) else v for k, v in row.items()} for row in found)
    return [Row(**row) for row in tuples]


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


PAGE = """# How far the backends are apart

`python benchmarks/agreement.py > docs/agreement.md` wrote this page. It plays each algorithm on each domain, on random models and on
each example: {rounds} rounds in C and in NumPy, as far as {seconds:g} seconds of NumPy go, and a sixth of that in the interpreter. All
of it takes long; with `--log FILE` a run that was stopped goes on where it was. A difference is the greatest one of any entry of any
decision, as a share of the width of that entry over its domain. On its first domain each algorithm is also played with each pass of the
IR left out in turn, in C and (1000 rounds) in NumPy; the greatest difference is shown, and the pass. Where the order of sums is the
same the bits are the same; inner products add up in the order of NumPy's library.
"""
CHAOS = """Where NumPy is not even the same as itself when its start is moved by a share of {moved:g}, no two backends can agree for long:
the path is chaotic. Such rows are not in the tables above. They say for how many rounds two paths are the same to {same:g}.

| algorithm | model | rounds | C and NumPy the same | NumPy and itself moved the same |
| --- | --- | --- | --- | --- |"""


def page(found: Sequence[Row], rounds: int, seconds: float) -> Iterator[str]:
    """The text and the tables."""
    yield PAGE.format(rounds=rounds, seconds=seconds)
    steady = [r for r in found if not r.chaotic]
    yield from table(steady, "algorithm", lambda r: r.algorithm)
    yield ""
    yield from table(steady, "domain or example", lambda r: r.model.split(", ")[0].split(" ")[0])
    yield ""
    yield from table(steady, "kind of model", lambda r: r.model.split(", ")[1])
    if wild := [r for r in found if r.chaotic]:
        yield "\n" + CHAOS.format(moved=MOVED, same=SAME)
        for r in wild:
            yield f"| {r.algorithm} | {r.model.split(', ')[0]} | {r.rounds[0]} | {r.alike[0]} | {r.alike[1]} |"


def section(found: Iterable[Row]) -> Iterator[str]:
    """The table of the examples."""
    yield "| example | algorithm | rounds | NumPy and C | rounds | interpreter and C | the same to 1e-9 | NumPy moved the same |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for r in found:
        (numpy, interpreter), (far, meant), (alike, moved) = r.rounds, r.apart, r.alike or ("", "")
        yield f"| {r.model} | {r.algorithm} | {numpy} | {far:.0e} | {interpreter} | {meant:.0e} | {alike} | {moved} |"


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("rounds", type=int, nargs="?", default=10_000)
    given.add_argument("--only", default="", help="models whose name has this text")
    given.add_argument("--seconds", type=float, default=3.0, help="processor time for the rounds of a row in NumPy")
    given.add_argument("--log", type=Path, help="rows played so far; more are added")
    given.add_argument("--chosen", action="store_true", help="the table of examples with the chosen algorithm alone")
    wanted = given.parse_args()
    warnings.simplefilter("ignore")
    if wanted.chosen:
        for line in section(chosen_rows(wanted.rounds, wanted.seconds)):
            print(line, flush=True)
        return
    known, found = read(wanted.log), list[Row]()
    for row in rows(wanted.rounds, wanted.only, wanted.seconds, known):
        found.append(row)
        if row in known:
            continue
        print(row, file=sys.stderr, flush=True)
        if wanted.log is not None:
            with wanted.log.open("a", encoding="utf-8") as log:
                log.write(json.dumps(asdict(row)) + "\n")
    print("\n".join(page(found, wanted.rounds, wanted.seconds)))


if __name__ == "__main__":
    main()
