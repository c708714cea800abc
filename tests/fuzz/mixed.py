"""`python tests/fuzz/mixed.py SECONDS [SEED]`: files near the limits of size that mix what `large.py` tries one by one.

Several decisions of unlike domains and sizes, streams of unlike shapes and laws, params worked out by formulas, terms of many kinds in one
expression, constraints of numbers and of vectors, assumptions, algorithms by name; and texts of many mistakes.
"""

from __future__ import annotations

import random
import sys

from large import BYTES, HORIZONS, LAWS, MEASURES, TERMS, main

SIZES = (2, 5, 20, 100, 1000, 20_000)
DOMAINS = (
    "box(0, 1)",
    "box(-1, 1) with sum({x}) <= 2",
    "ball(2)",
    "ball(1) with {x}[0] <= 0.5",
    "l1_ball(2)",
    "simplex",
    "simplex with {x}[0] <= 0.4",
    "nonneg_ball(2)",
    "budget(0, 1, 1)",
    "capped_simplex(1, 1)",
    "group_ball(2, 0..{last})",
    "ellipsoid(eye({d}) + 0.{k})",
)
FORMULAS = (
    "outer(1..{d}, 1..{d}) / {k}",
    "eye({d}) + {k}",
    "outer(ones({d}), 1..{d}) * {k}",
    "ones({d}, {d}) @ ones({d}, {d})",
)
CONSTRAINTS = (
    "norm2({x} - {k}) <= 1e6 each round",
    "{x} * {k} - c <= 1e3 each round",
    "square({x} - {k}) <= 1e9 on average",
    "P @ x <= 1e6 each round",
    "log_sum_exp({x} * {k}) + sum({x}) <= 1e4 on average",
    "sum({x}) * c == 0.{k} on average",
    "abs({x}[0] - c) <= {k} each round",
    "norm2({x} - {k}) <= 0.001 each round",
)
ALGORITHMS = (
    "coldq",
    "ogd",
    "dpp",
    "mahdavi",
    "mirror-descent",
    "projection-free",
    "bfw-tvc",
    "bgd",
    "response-surface",
    "two-point",
    "ofw-tvc",
    "recoo",
    "pfs",
    "nested",
)
MISTAKES = (
    "let a{k} = nothing{k}",
    "stream s{k} in [1, 0]",
    "param p{k}[{k}] = [1, 2]",
    "minimiz x",
    "let b{k} = sum(x",
    "$ {k}",
    "g{k}: x <= 1",
)


def model(rng: random.Random) -> tuple[str, str]:
    """Parts of a file, and its text, cut off where the next line would make it too long."""
    size, kinds, count = (
        rng.choice(SIZES),
        rng.sample(sorted(TERMS), rng.choice((2, 5, 20))),
        rng.choice((4, 20, 60, 150)),
    )
    decisions, constraints = rng.choice((1, 2, 5, 20, 60)), rng.choice((0, 1, 3, 10, 30))
    horizon, measure, formulas = rng.choice(HORIZONS), rng.choice(MEASURES), rng.choice((0, 0, 1, 50))
    wrong = rng.choice((0, 0, 0, 0, 2000))
    square = min(size, 300)  # vectors and matrices beside a large decision
    lines = [f"model m\nhorizon T {'unknown' if horizon == 'unknown' else '= ' + horizon}"]
    lines += [
        f"param v[{size}] = ones({size})\nparam u[{size}] = 1..{size}",
        f"param P[{square}, {size}] = ones({square}, {size})",
    ]
    lines += [
        f"param f{k}[{square}, {square}] = {rng.choice(FORMULAS).format(d=square, k=k + 1)}" for k in range(formulas)
    ]
    for k in range(decisions):
        name, d = ("x", size) if k == 0 else (f"y{k}", rng.choice(SIZES[:5]))
        lines += [f"decision {name}[{d}] in {rng.choice(DOMAINS).format(x=name, d=d, last=d - 1, k=k + 1)}"]
    lines += ["stream c in [0, 1]", *(f"stream s{n} {rng.choice(LAWS).format(k=n + 1)}" for n in range(min(count, 80)))]
    lines += [rng.choice(MISTAKES).format(k=k) for k in range(wrong)]
    terms = [
        TERMS[rng.choice(kinds)].format(
            e=f"x[{n % size}]", f=f"x[{(7 * n + 1) % size}]", k=f"{0.7 * n + 1:.6g}", n=n % min(count, 80)
        )
        for n in range(count)
    ]
    lines += [f"minimize {' + '.join([*terms, *(f'c * sum(y{k})' for k in range(1, decisions))])}"]
    lines += ["subject to"] if constraints else []
    for k in range(constraints):
        name = rng.choice(["x", *(f"y{j}" for j in range(1, decisions))])
        lines += [f"    g{k}: {rng.choice(CONSTRAINTS).format(x=name, k=k + 1)}"]
    lines += [measure.strip(), rng.choice(("", "assume slater.margin >= 0.01", "assume loss.bound <= 1e9"))]
    algorithm = rng.choice(("", "", f"using {rng.choice(ALGORITHMS)}"))
    text, room = "", BYTES - 100
    for line in (*lines, algorithm):
        text += f"{line}\n" if line and len(text) + len(line) < room else ""
    parts = (
        "+".join(kinds[:3]),
        decisions,
        constraints,
        size,
        count,
        horizon,
        measure.strip(),
        algorithm,
        formulas,
        wrong,
    )
    return "/".join(map(str, parts)), text


if __name__ == "__main__":
    sys.exit(main(lambda rng, drawn: model(rng)))
