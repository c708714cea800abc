"""Random models for comparators: every atom in the objective and in constraints, every domain, timing and kind of data, against CVXPY.

`python tests/comparator_random.py FIRST COUNT` runs more of them than the tests do and prints what does not hold.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np

from oco.compiler.problem.canonical import Canonical, canonical
from oco.compiler.problem.cvxpy_form import to_cvxpy
from oco.dsl.load import parse
from oco.dsl.statements import Timing
from oco.evaluation.comparators import Comparator, ComparatorStatus
from oco.evaluation.comparators.compare import compare, compare_prefixes
from oco.evaluation.data import Data, load_data

Array = np.ndarray[Any, Any]

STREAMS = {
    "a": ("a[{n}]", -1.0, 1.0),
    "p": ("p[{n}]", 0.2, 1.0),
    "B": ("B[2, {n}]", -1.0, 1.0),
    "s": ("s", 0.0, 1.0),
    "G": ("G[{shape}]", -1.0, 1.0),
    "k": ("k", 0, 1),
}
PARAMS = "param A[4, 3] = [[1, 1, 1], [-1, 0, 0], [0, -1, 0], [0, 0, -1]]\nparam P[3, 3] = [[2, 0.3, 0], [0.3, 1, 0.1], [0, 0.1, 0.5]]\n"
VECTORS = {
    "box(-1, 2)": False,
    "box(0, 2)": True,
    "ball(1.5)": False,
    "l1_ball(1.2)": False,
    "simplex": True,
    "simplex(2)": True,
    "nonneg_ball(1)": True,
    "capped_simplex(0.6)": True,
    "budget(0, 1, 1.5)": True,
    "ellipsoid(P, [1, 0, 0])": False,
    "polytope(A, [1, 0.5, 0.5, 0.5])": False,
    "group_ball(1, [0, 0, 1])": False,
}
MATRICES = {"nuclear_ball(1.5)": "2, 3", "spectrahedron(1)": "3, 3", "birkhoff(3)": "3, 3", "box(-1, 1)": "2, 2"}
"""Domains of vectors with three entries, and whether these are not negative; of matrices, with their shape."""

ANYWHERE = {
    "a @ x": "a",
    "dot(a, x) + s * x[0]": "as",
    "x[k] * s": "s",
    "sum_squares(x - a)": "",
    "sum(square(B @ x - s))": "",
    "mean(square(x)) + s": "s",
    "sum(abs(x - a))": "",
    "norm1(B @ x)": "",
    "norm2(x - a)": "",
    "norm2(B @ x - s)": "",
    "norm_inf(x + a)": "",
    "max(x - a)": "",
    "max(B @ x)": "",
    "-min(x + a)": "",
    "sum(pos(a - x))": "",
    "sum(neg(x + a))": "",
    "sum(hinge(a * x))": "",
    "sum(exp(a * x))": "",
    "exp(a @ x) - s": "s",
    "sum(logistic(a * x))": "",
    "logistic(a @ x)": "",
    "sum(huber(x - a))": "",
    "huber(a @ x, 0.5)": "",
    "log_sum_exp(B @ x)": "",
    "log_sum_exp(x + a)": "",
    "quad_form(x - a, P)": "",
    "sum(power(x - a, 4))": "",
    "sum((x - a) ** 2) / (1 + s)": "",
    "maximum(a @ x, s, 0.2)": "",
    "sum(maximum(x, a))": "",
    "-minimum(a @ x, s)": "",
    "(x[k] - s) ** 2": "",
    "abs(x[k] - s)": "",
    "(x[0] - s) ** 2 * t / 10": "",
    "sum_squares(x[0:2] - s)": "",
    "norm2(outer(x, ones(2)) @ B)": "",
}
NOT_NEGATIVE = {
    "-sum(log(x + 0.5))": "",
    "-log(p @ x + 0.1)": "",
    "-sum(sqrt(x + 0.1))": "",
    "sum(inv_pos(x + p))": "",
    "-sum(entr(x + 0.1))": "",
    "sum(kl_div(x + 0.1, p))": "",
    "sum(rel_entr(x + 0.1, p))": "",
    "-p @ log1p(x)": "p",
    "sum(power(x + 0.2, 1.5))": "",
    "sum(p / (x + 0.5))": "p",
    "-sum(power(x + 0.2, 0.5))": "",
    "s - sum(log(1 + 4 * x))": "s",
}
OF_MATRICES = {
    "sum(G * x)": "G",
    "sum_squares(x - G)": "",
    "nuclear_norm(x - G)": "",
    "sigma_max(x - G)": "",
    "sum(abs(x - G))": "",
    "(x[0, 1] - s) ** 2": "",
    "(x[k, 1] - s) ** 2": "",
    "norm2(x @ ones(COLUMNS))": "",
    "sum(exp(x)) + s": "s",
    "max(x - G)": "",
    "sum(logistic(G * x))": "",
}
"""Convex functions, and the streams in which they are affine."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """A model, its data, and for each constraint the streams that stand for their means where it binds on average."""

    text: str
    problem: Canonical
    data: Data
    means: dict[str, str]


def draw(seed: int) -> Drawn:
    """The model of a seed. Most have a decision that satisfies everything; some do not."""
    rng = np.random.default_rng(seed)
    matrix = bool(rng.random() < 0.2)
    domain = str(rng.choice(list(MATRICES if matrix else VECTORS)))
    shape = MATRICES.get(domain, "3")
    functions = OF_MATRICES if matrix else ANYWHERE | (NOT_NEGATIVE if VECTORS[domain] else {})
    names = [str(n) for n in rng.permutation(list(functions))]
    terms, others = names[: int(rng.integers(1, 3))], names[3 : 3 + int(rng.integers(0, 3))]
    rounds = int(rng.integers(1, 13))
    known = {n for n in STREAMS if n != "k" and rng.random() < 0.25}
    objective = " + ".join(f"{rng.uniform(0.3, 2):.2f} * ({t})" for t in terms)
    slack = 0.0 if rng.random() < 0.1 else -0.5 if rng.random() < 0.1 else 0.1
    lines = [f"    c{i}: {f} <= LEVEL{i}    {rng.choice(['each round', 'on average'])}\n" for i, f in enumerate(others)]
    if rng.random() < 0.2 and not matrix:
        lines.append(
            f"    e: {rng.choice(['a @ x', 'x[0] - 0.5 * x[1]', 's * x[0] + x[2]'])} == LEVELE    on average\n"
        )
    head = _head(domain, shape, known, "".join([objective, *lines]), rounds)
    text = f"{head}minimize {objective}\n" + ("subject to\n" + "".join(lines) if lines else "")
    text = text.replace("COLUMNS", shape.split(", ")[-1])
    start = text
    for i in range(len(others)):
        start = start.replace(f"LEVEL{i}", "1000")
    first = canonical(parse(start.replace("LEVELE", "0")))
    data = _data(first, rng, rounds, known, seed)
    levels = _levels(first, data, functions, others, known)
    for i, level in enumerate(levels):
        text = text.replace(f"LEVEL{i}", f"{level + slack:.4f}")
    text = text.replace("LEVELE", "0")
    problem = canonical(parse(text))
    means = {f"c{i}": "".join(set(functions[f]) & known) for i, f in enumerate(others)}
    means["e"] = "".join(set("as") & known)
    return Drawn(text, problem, _data(problem, np.random.default_rng(seed + 1), rounds, known, seed), means)


def _head(domain: str, shape: str, known: set[str], body: str, rounds: int) -> str:
    streams = ""
    for name, (form, low, high) in STREAMS.items():
        if any(token == name for token in _tokens(body)):
            declared = form.format(n=3, shape=shape)
            span = f"in {low}..{high}" if name == "k" else f"in [{low}, {high}]"
            streams += (
                f"stream {declared} ~ uniform({low}, {high})\n" if name in known else f"stream {declared} {span}\n"
            )
    entries = f"decision x[{shape}] in {domain}\n"
    return f"model m\nhorizon T = {rounds}\n{PARAMS}{entries}{streams}"


def _tokens(text: str) -> list[str]:
    return "".join(c if c.isalnum() or c == "_" else " " for c in text).split()


def _data(problem: Canonical, rng: np.random.Generator, rounds: int, known: set[str], seed: int) -> Data:
    arrays: dict[str, Array] = {}
    for s in problem.streams:
        if s.name == "k":
            arrays[s.name] = rng.integers(0, 2, rounds)
        elif s.name not in known:
            arrays[s.name] = rng.uniform(s.lower, s.upper, (rounds, *s.shape))
    return load_data(problem, arrays or None, seed=seed, rounds=rounds)


def _levels(p: Canonical, data: Data, functions: dict[str, str], others: list[str], known: set[str]) -> list[float]:
    """Upper bound of each constraint's function over the domain."""
    block = p.blocks[0]
    variable = cp.Variable(block.shape)
    rng = np.random.default_rng(data.seed)
    near = cp.Minimize(cp.sum_squares(variable - 0.5 * rng.normal(size=block.shape)))
    cp.Problem(near, block.domain.constraints(cp, variable)).solve(solver="CLARABEL")
    found = []
    for i in range(len(others)):
        parts = [c.expr for c in p.inequalities if c.label == f"c{i}"]
        values = [
            float(np.max(to_cvxpy(part, {block.name: variable}, _values(data, t), t + 1).value)) + 1000
            for part in parts
            for t in range(data.rounds)
        ]
        found.append(max(values))
    return found


def _values(data: Data, t: int) -> dict[str, Array]:
    return {s.name: data.array(s.name)[t] for s in data.problem.streams}


def reference(drawn: Drawn, rounds: list[int], averages: bool) -> float | None:
    """The least sum of losses by CVXPY from the model as it is written; None where nothing satisfies the constraints."""
    p, data = drawn.problem, drawn.data
    variables = {b.name: cp.Variable(b.shape) for b in p.blocks}
    constraints = [c for b in p.blocks for c in b.domain.constraints(cp, variables[b.name])]
    loss: Any = 0
    sums: dict[str, Any] = {}
    for t in rounds:
        env = _values(data, t)
        loss = loss + to_cvxpy(p.objective, variables, env, t + 1)
        for c in (*p.inequalities, *p.equalities):
            equal = c in p.equalities
            mean = averages and (equal or c.timing is Timing.ON_AVERAGE)
            means = {
                s.name: np.broadcast_to(0.5 * (s.lower + s.upper), s.shape)
                for s in p.streams
                if mean and s.name in drawn.means[c.label]
            }
            g = to_cvxpy(c.expr, variables, env | means, t + 1)
            if mean:
                sums[c.label] = sums.get(c.label, 0) + g
            else:
                constraints.append(g == 0 if equal else g <= 0)
    equal_labels = {c.label for c in p.equalities}
    constraints += [s == 0 if label in equal_labels else s <= 0 for label, s in sums.items()]
    found = cp.Problem(cp.Minimize(loss), constraints)
    found.solve(solver="CLARABEL")
    if found.status in ("infeasible", "infeasible_inaccurate"):
        return None
    assert found.status in ("optimal", "optimal_inaccurate"), found.status
    return float(found.value)


def fault(found: Comparator, value: float | None, tolerance: float = 2e-6) -> str:
    """Fault of a comparator whose least loss is `value`; "" where nothing is."""
    if value is None:
        fits = found.status in (ComparatorStatus.LEAST_VIOLATING, ComparatorStatus.NOT_COMPUTED)
        return "" if fits else f"nothing is feasible: {found.words}"
    scale = max(1.0, abs(value))
    if found.bound > value + tolerance * scale:
        return f"the bound {found.bound} is above {value}"
    if found.status is ComparatorStatus.LEAST_VIOLATING:
        return f"{value} is feasible: {found.words}"
    if found.status is ComparatorStatus.CERTIFIED and abs(found.value - value) > 5 * tolerance * scale:
        return f"{found.value} is not {value}"
    if found.status is ComparatorStatus.INTERVAL and found.value < value - 5 * tolerance * scale:
        return f"{value} is not in the interval: {found.words}"
    return ""


def checked(seed: int) -> tuple[list[str], list[str]]:
    """For the model of a seed: how each comparator ended, and what is wrong."""
    drawn = draw(seed)
    p, data = drawn.problem, drawn.data
    everything = list(range(data.rounds))
    static, dynamic = compare(p, data, "static"), compare(p, data, "dynamic")
    kinds, wrong = [f"static {static.status}", f"dynamic {dynamic.status}"], []
    if said := fault(static, reference(drawn, everything, averages=True)):
        wrong.append(f"static: {said}")
    rounds = [reference(drawn, [t], averages=False) for t in everything]
    feasible = None if None in rounds else float(sum(v for v in rounds if v is not None))
    if said := fault(dynamic, feasible):
        wrong.append(f"dynamic: {said}")
    ends = np.unique([1, (data.rounds + 1) // 2, data.rounds])
    several = compare_prefixes(p, data, ends)
    for k, end in enumerate(ends):
        one = Comparator("static", several.status[k], value=several.value[k], bound=several.bound[k], why=several.why)
        kinds.append(f"prefix {one.status}")
        if said := fault(one, reference(drawn, everything[:end], averages=True)):
            wrong.append(f"first {end}: {said}")
    return kinds, wrong


def main() -> None:
    first, count = int(sys.argv[1]), int(sys.argv[2])
    ends: Counter[str] = Counter()
    for seed in range(first, first + count):
        try:
            kinds, wrong = checked(seed)
        except Exception as error:  # a model that cannot be compared is a finding too
            kinds, wrong = ["error"], [f"{type(error).__name__}: {str(error)[:300]}"]
        ends.update(kinds)
        left = [k for k in kinds if "certified" not in k and "violating" not in k]
        if wrong or left:
            print(seed, wrong or left, flush=True)
    print(dict(ends))


if __name__ == "__main__":
    main()
