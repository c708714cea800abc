"""`python tests/fuzz/large.py SECONDS [SEED]`: model files near the limits of size, each checked and compiled in a process of its own.

A file has many terms that are all different, in one place: the objective, constraints of each kind, lets, params, streams with laws.
A third of the files have one term, over a domain that takes much (`domains.py`).
Prints the slowest and the largest file of each kind, and writes down those that break what `SECURITY.md` promises.
"""

from __future__ import annotations

import hashlib
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from fuzz.domains import domain_model  # noqa: E402
from hostile import Ran, examined  # noqa: E402

Draw = Callable[[random.Random, int], tuple[str, str]]
"""Makes a file, told how many there are: what it is made of, and its text."""

FOUND = HERE / "found"
BYTES = 100_000

TERMS = {
    "affine": "{k} * {e}",
    "stream": "s{n} * {e}",
    "stream_square": "s{n} * square({e} - {k})",
    "square_stream": "square({e} - s{n})",
    "abs": "abs({e} - {k})",
    "pos": "pos({e} - {k})",
    "hinge": "hinge({k} * {e})",
    "max": "max([{e}, {k}, {f}])",
    "maximum": "maximum({e} - {k}, {f})",
    "neg_minimum": "-minimum({e}, {k})",
    "square": "square({e} - {k})",
    "product_of_squares": "square({e}) * square({f} - {k})",
    "power": "power({e} + {k}, 3)",
    "power_half": "-power({e} + {k}, 0.5)",
    "power_negative": "({e} + {k}) ** -2",
    "sqrt": "-sqrt({e} + {k})",
    "root": "sqrt(1 + square({e} - {k}))",
    "root_in_units": "sqrt(1 + square({e} - {k} / 1000))",
    "root_of_two": "sqrt(1 + square({e} - {k}) + square({f}))",
    "root_of_stream": "sqrt(1 + square({e} - {k} * c))",
    "exp": "exp({k} / 1000 * {e})",
    "log": "-log({e} + {k})",
    "log1p": "-log1p({e} + {k})",
    "logistic": "logistic({e} - {k})",
    "huber": "huber({e} - {k})",
    "huber_wide": "huber({e} - {f}, {k})",
    "entr": "-entr(abs({e}) + {k})",
    "kl_div": "kl_div({k}, {e} + 1)",
    "rel_entr": "rel_entr({e} + 1, {k})",
    "inv_pos": "inv_pos({e} + {k})",
    "div": "{k} / ({e} + {k})",
    "div_both": "square({e} + {k}) / ({f} + 2)",
    "norm1": "norm1(x - {k})",
    "norm2": "norm2(x - {k})",
    "norm_inf": "norm_inf(x - {k})",
    "log_sum_exp": "log_sum_exp(x - {k})",
    "sum_squares": "sum_squares(x - {k})",
    "quad_form": "quad_form(x - {k}, P)",
    "matmul": "(x - {k}) @ v",
    "quadratic": "(x - {k}) @ P @ (x - {k})",
    "sum": "sum(square(x - {k}) * v)",
    "mean": "mean(abs(x - {k}))",
    "sum_roots": "sum(sqrt(1 + square(x - {k})))",
    "repeat": "sum(abs(repeat({e}, 9) - {k}))",
    "nuclear_norm": "nuclear_norm(outer(x, v) - {k})",
    "sigma_max": "sigma_max(outer(x, v) - {k})",
    "trace": "trace(outer(x - {k}, v))",
    "diag": "sum(diag(outer(x, v) - {k}))",
    "not_convex": "{e} * {f} * {k}",
    "sine_like": "exp({e}) * square({f} - {k})",
    "softplus": "log(1 + exp({e} - {k}))",
    "quotient": "{e} / ({f} + {k})",
    "cube": "({e} - {k} / 100) ** 4",
    "deep": "sqrt(1 + square(log(1 + exp({e} - {k}))))",
    "of_round": "sqrt(t) * square({e} - {k})",
    "neg": "neg({e} - {k})",
    "dot": "dot(x - {k}, u)",
    "ramp": "sum(square(x - {k} * u))",
    "outer_of_ramp": "trace(outer(x - {k} * u, u))",
    "transposed": "sum((outer(x, u) - {k}).T)",
    "product_of_matrices": "sum(outer(u, v) @ (x - {k}))",
}
"""A term by its kind: {e} and {f} entries of the decision, {k} a number of its own, {n} that of its stream."""

AROUND = {
    "plain": "{}",
    "square": "square({})",
    "max": "max([{}, 1])",
    "exp": "exp(({}) / 1e6)",
    "root": "sqrt(1 + square({}))",
    "log": "log(1 + exp(({}) / 1000))",
    "scaled": "0.5 * ({})",
    "by_stream": "c * ({})",
    "negative": "-({})",
}

PLACES = ("objective", "constraint", "constraints", "average", "equality", "lets", "nested", "vector", "both")

DOMAINS = {
    "box": ("x[{d}]", "box(0, 1)"),
    "wide": ("x[{d}]", "box(-1000, 1000)"),
    "number": ("x[1]", "box(0, 1)"),
    "ball": ("x[{d}]", "ball(2)"),
    "l1_ball": ("x[{d}]", "l1_ball(2)"),
    "simplex": ("x[{d}]", "simplex"),
    "nonneg_ball": ("x[{d}]", "nonneg_ball(2)"),
    "polytope": ("x[{d}]", "polytope(G, h)"),
    "ellipsoid": ("x[{d}]", "ellipsoid(P, v)"),
    "budget": ("x[{d}]", "budget(0, 1, 1)"),
    "capped_simplex": ("x[{d}]", "capped_simplex(1, 1)"),
    "group_ball": ("x[{d}]", "group_ball(2, 0..{last})"),
    "cut_box": ("x[{d}]", "box(0, 1) with sum(x) <= 2"),
    "cut_ball": ("x[{d}]", "ball(1) with x[0] <= 0.5"),
    "nuclear_ball": ("X[{r}, {r}]", "nuclear_ball(2)"),
    "spectrahedron": ("X[{r}, {r}]", "spectrahedron(1)"),
    "birkhoff": ("X[{r}, {r}]", "birkhoff({r})"),
    "flow": ("x[{d}]", "flow(edges, 0, {sink})"),
    "product": ("x[{d}]", "box(0, 1)\ndecision z[{d}] in ball(1)\ndecision y[{d}] in simplex"),
}

LAWS = (
    "in [0, 1]",
    "in [-{k}, {k}]",
    "in 0..{k}",
    "in [0, {k}] iid",
    "in [0, {k}] iid mean = 0.25",
    "~ uniform(0, {k})",
    "~ normal({k}, 1)",
    "~ normal(0, {k}) in [-1, 2]",
    "~ poisson({k})",
    "~ exponential({k})",
    "~ pareto(3, mean = {k})",
    "~ pareto(3, mean = {k}) in [0, 1000]",
    "~ bernoulli(1 / {k})",
    "~ binomial({k}, 0.5)",
    "~ gamma({k}, mean = 2)",
    "~ gamma({k}, mean = 2) in [0, 5]",
    "~ beta({k}, 2)",
    "~ lognormal(0, 1 / {k})",
    "~ lognormal(0, 1 / {k}) in [0, 2]",
    "~ categorical([0.5, 0.25, 0.25])",
    "~ constant({k})",
)

MEASURES = ("", "", "", "measure dynamic regret\n", "feedback gradient\n", "feedback two_point\n", "feedback bandit\n")

SIZES = (1, 2, 3, 7, 15, 40, 100, 250, 1000)
COUNTS = (30, 60, 120, 250, 400, 700, 1200, 3000)
HORIZONS = ("100", "1000", "1000000", "1000000000000", "unknown")


def model(rng: random.Random) -> tuple[str, str]:
    """Parts of a file, and its text: as many terms as were drawn, fewer where the file would be too long."""
    kind, around, place = rng.choice(sorted(TERMS)), rng.choice(sorted(AROUND)), rng.choice(PLACES)
    around = rng.choice(("plain", "plain", around))
    domain, law = rng.choice(("box", "box", rng.choice(sorted(DOMAINS)))), rng.choice(LAWS)
    size, count, horizon = rng.choice(SIZES), rng.choice(COUNTS), rng.choice(HORIZONS)
    step = rng.choice((1, 1, 7, 0.013))
    measure = rng.choice(MEASURES)
    name = f"{kind}/{around}/{place}/{domain}/{law if 's{n}' in TERMS[kind] else '-'}/{size}/{count}/{horizon}/{step}/{measure.strip()}"
    while True:
        text = written(kind, around, place, domain, law, size, count, horizon, step) + measure
        if len(text.encode()) < BYTES:
            return name, text
        count = count * 4 // 5


def written(
    kind: str, around: str, place: str, domain: str, law: str, size: int, count: int, horizon: str, step: float
) -> str:
    """The text of a file."""
    declared, inside = DOMAINS[domain]
    matrix, size = "X[" in declared, 1 if domain == "number" else size
    side = max(2, round(size**0.5))
    size = side if matrix else min(size, 20) if domain == "polytope" else size
    sink = (size + 1) // 2  # two edges from each node to the next
    shown = declared.format(d=size, r=side), inside.format(d=size, r=side, last=max(1, size - 1), sink=sink)
    head = [f"model m\nhorizon T = {horizon}" if horizon != "unknown" else "model m\nhorizon T unknown"]
    head += [f"param v[{size}] = ones({size})\nparam u[{size}] = 1..{size}\nparam P[{size}, {size}] = eye({size})"]
    if domain == "polytope":
        rows = [[sign * (i == j) for j in range(size)] for i in range(size) for sign in (1, -1)]
        head += [f"param G[{2 * size}, {size}] = {rows}\nparam h[{2 * size}] = ones({2 * size})"]
    if domain == "flow":
        head += [f"param edges[{size}, 2] = {[[n // 2, n // 2 + 1] for n in range(size)]}"]
    head += [f"decision {shown[0]} in {shown[1]}", "stream c in [0, 1]"]
    head += ["let x = X[0, :]"] if matrix else []
    number = lambda n: f"{step * (n + 1):.6g}"  # noqa: E731
    terms = [
        TERMS[kind].format(e=f"x[{n % size}]", f=f"x[{(n * 7 + 1) % size}]", k=number(n), n=n) for n in range(count)
    ]
    if "s{n}" in TERMS[kind]:
        head += [f"stream s{n} {law.format(k=n + 1)}" for n in range(count)]
    return "\n".join([*head, *placed(terms, AROUND[around], place)]) + "\n"


def placed(terms: list[str], around: str, place: str) -> Iterator[str]:
    """The lines of the objective and of the constraints."""
    whole, simple = around.format(" + ".join(terms)), "minimize c * x[0]"
    match place:
        case "objective":
            yield f"minimize {whole}"
        case "constraint":
            yield f"{simple}\nsubject to\n    g: {whole} <= 1e9 each round"
        case "average":
            yield f"{simple}\nsubject to\n    g: {whole} <= 100 on average"
        case "equality":
            yield f"{simple}\nsubject to\n    g: {whole} == 1 on average"
        case "constraints" | "both":
            each = max(1, len(terms) // 30)
            parts = [around.format(" + ".join(terms[n : n + each])) for n in range(0, 30 * each, each) if terms[n:]]
            yield f"minimize {whole}" if place == "both" else simple
            yield "subject to"
            yield from (f"    g{n}: {p} <= 1e9 {('each round', 'on average')[n % 2]}" for n, p in enumerate(parts[:30]))
        case "lets":
            yield from (f"let a{n} = {around.format(term)}" for n, term in enumerate(terms))
            yield f"minimize {' + '.join(f'a{n}' for n in range(len(terms)))}"
        case "nested":
            half = len(terms) // 2
            first, second = " + ".join(terms[:half]), " + ".join(terms[half:])
            yield f"minimize {around.format(f'max([{first}, {second}])')}"
        case "vector":
            yield f"{simple}\nsubject to\n    g: [{', '.join(around.format(t) for t in terms)}] <= 1e9 each round"


def few(rng: random.Random, drawn: int) -> tuple[str, str]:
    """Every third file has a domain that takes much, the others many terms."""
    return domain_model(rng, BYTES) if drawn % 3 == 2 else model(rng)


def models(draw: Draw, rng: random.Random, end: float, texts: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Files until the end, kept in `texts`."""
    while time.monotonic() < end:
        name, text = draw(rng, len(texts))
        texts[name] = text
        yield name, text


def report(found: dict[str, Ran], texts: dict[str, str]) -> int:
    """Print the slowest file of each kind of term, place and domain; write down what breaks the promise."""
    for part, what in ((0, "term"), (2, "place"), (3, "domain")):
        worst: dict[str, tuple[float, str]] = {}
        for name, ran in found.items():
            key = name.split("/")[part]
            worst[key] = max(worst.get(key, (0.0, "")), (ran.seconds, name))
        print(f"\nslowest by {what}")
        for key, (seconds, name) in sorted(worst.items(), key=lambda kv: -kv[1][0]):
            print(f"{seconds:7.2f} s  {found[name].megabytes:4.0f} MB  {key:20s} {name}  {' '.join(found[name].said)}")
    broken = {n: r for n, r in found.items() if not r.is_contained}
    for name in broken:
        FOUND.mkdir(exist_ok=True)
        (FOUND / f"large_{hashlib.sha256(texts[name].encode()).hexdigest()[:12]}.oco").write_text(texts[name])
    print(f"\n{len(found)} files, {len(broken)} that end neither in a result, nor in a refusal, nor at the limits")
    return 1 if broken else 0


def main(draw: Draw = few) -> int:
    """Examine files that `draw` makes for as long as the command line says."""
    seconds, seed = float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    texts: dict[str, str] = {}
    found: dict[str, Ran] = {}
    for name, ran in examined(models(draw, random.Random(seed), time.monotonic() + seconds, texts)):
        found[name] = ran
        if not ran.is_contained:
            print(f"{ran.seconds:7.2f} s  {ran.megabytes:4.0f} MB  {name}  {' '.join(ran.said)}", flush=True)
    return report(found, texts)


if __name__ == "__main__":
    sys.exit(main())
