"""Model files at random: sentences of the grammar, and files of the corpus with pieces exchanged, doubled and lost."""

from __future__ import annotations

import random
import re
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent

NUMBERS = (
    "0",
    "1",
    "-1",
    "2",
    "0.5",
    "1e-300",
    "1e300",
    "5e-324",
    "1.7976931348623157e308",
    "9223372036854775807",
    "1e999",
    "3..",
    "0x1",
)
NAMES = (
    "x",
    "y",
    "c",
    "d",
    "k",
    "A",
    "t",
    "T",
    "loss",
    "price",
    "mean",
    "sum",
    "round",
    "import",
    "np",
    "self",
    "__class__",
    "π",
    "",
)
_ATOMS = """
    sum mean max min abs pos neg square sqrt exp log log1p logistic huber entr kl_div rel_entr norm1 norm2 norm_inf
    sum_squares quad_form log_sum_exp inv_pos power maximum minimum trace diag outer dot hinge nuclear_norm sigma_max
    nothing
"""
ATOMS = _ATOMS.split()
DOMAINS = """box(0, 1)|box(-1, 1)|ball(1)|l1_ball(2)|simplex|simplex(3)|nonneg_ball(1)|polytope(A, b)|ellipsoid(A, c)|nuclear_ball(1)
    spectrahedron(1)|birkhoff(2)|budget(0, 1, 2)|box(1, 0)|ball(-1)|box(c, 1)|box(0, 1e308)""".replace(
    "\n    ", "|"
).split("|")
FAMILIES = """uniform(0, 1)|normal(0, 1)|poisson(3)|exponential(1)|pareto(3, mean = 2)|bernoulli(0.5)|binomial(4, 0.5)
    gamma(2, mean = 1)|beta(1, 2)|lognormal(0, 1)|categorical([0.5, 0.5])|constant(1)|uniform(1, 0)|normal(0, -1)
    poisson(1e300)""".replace("\n    ", "|").split("|")
SHAPES = ("", "[2]", "[3]", "[2, 2]", "[1]", "[0]", "[k]", "[-1]", "[99999999999]", "[2, 3, 4]")
BOUNDS = (
    "in [0, 1]",
    "in [-1, 1]",
    "in 0..2",
    "in [-1e308, 1e308]",
    "in [1, 0]",
    "iid",
    "in [0, 1] iid",
    "",
    "in [0, c]",
    "in 0..",
)
_ALGORITHMS = """
    coldq mirror-descent projection-free ogd oeg ofw dpp pfs yu-neely recoo nested nothing
"""
ALGORITHMS = _ALGORITHMS.split()
KEYS = (
    "loss.lipschitz.l2",
    "slater.margin",
    "path_length",
    "constraints.g.bound",
    "loss.convex",
    "domain.radius",
    "nothing.at.all",
)


def expression(rng: random.Random, depth: int) -> str:
    """An expression over the names above."""
    inner = lambda: expression(rng, depth - 1)  # noqa: E731
    if depth <= 0 or rng.random() < 0.2:
        return rng.choice((rng.choice(NUMBERS), rng.choice(NAMES[:6]), "c @ x", "x[0]", "sum(x)", "t"))
    kind = rng.randrange(9)
    if kind < 3:
        return f"{inner()} {rng.choice(('+', '-', '*', '/', '**', '@', '+', '*'))} {inner()}"
    if kind < 6:
        arguments = ", ".join(inner() for _ in range(rng.choice((1, 1, 1, 2, 3))))
        return f"{rng.choice(ATOMS)}({arguments}{rng.choice(('', '', '', ', axis = 0', ', 2'))})"
    return (
        f"({inner()})",
        f"-{inner()}",
        f"{inner()}[{rng.choice(('0', '1', ':', '0:2', '-1', 'k', '0, 1', '[0, 1]', '99', '1:0', ''))}]",
    )[kind - 6]


def statement(rng: random.Random) -> str:
    """A line of a model."""
    name, shape = rng.choice(NAMES), rng.choice(SHAPES)
    return rng.choice(
        (
            lambda: (
                f"param {name}{shape} = {rng.choice(('1', 'ones', 'zeros', 'eye', '0..3', 'repeat(1, 3)', expression(rng, 2)))}"
            ),
            lambda: f"param {name}{shape}",
            lambda: f"decision {name}{shape} in {rng.choice(DOMAINS)}",
            lambda: f"stream {name}{shape} {rng.choice(BOUNDS)}",
            lambda: f"stream {name}{shape} ~ {rng.choice(FAMILIES)} {rng.choice(BOUNDS)}",
            lambda: f"let {name} = {expression(rng, 4)}",
            lambda: f"minimize {expression(rng, 5)}",
            lambda: (
                f"subject to\n    {name}: {expression(rng, 3)} {rng.choice(('<=', '>=', '==', '<', '<= 0 <='))} {expression(rng, 2)} "
                + rng.choice(("each round", "on average", "", "each"))
            ),
            lambda: f"measure {rng.choice(('static', 'dynamic', 'no'))} regret",
            lambda: f"feedback {rng.choice(('full', 'gradient', 'two_point', 'bandit', 'none'))}",
            lambda: f"assume {rng.choice(KEYS)} {rng.choice(('<=', '>='))} {expression(rng, 1)}",
            lambda: (
                f"using {rng.choice(ALGORITHMS)} with {rng.choice(('eta', 'alpha', 'V', 'nothing'))} = {expression(rng, 2)}"
            ),
            lambda: f"horizon T = {rng.choice(('10', '0', '-1', '1e9', 'unknown', '3.5', '9' * 30))}",
            lambda: f"model {name}",
        )
    )()


def sentence(rng: random.Random) -> str:
    """A model that is nearly right more often than not."""
    head = ["model m", "horizon T = 50", "decision x[2] in box(0, 1)", "stream c[2] in [0, 1]"]
    body = [statement(rng) for _ in range(rng.randrange(4))]
    body.append(f"minimize {rng.choice(('c @ x', 'sum_squares(x - c)', expression(rng, 4)))}")
    if rng.random() < 0.5:
        body.append(
            f"subject to\n    g: {expression(rng, 3)} <= {expression(rng, 1)} {rng.choice(('each round', 'on average'))}"
        )
    if rng.random() < 0.3:
        body.append(statement(rng))
    if rng.random() < 0.2:
        rng.shuffle(head)
        head.pop()
    return "\n".join([*head, *body]) + "\n"


def corpus() -> list[str]:
    """Models of the examples, the mistakes of `tests/bad`, and what was found by fuzzing."""
    paths = [*ROOT.glob("examples/*.oco"), *ROOT.glob("tests/bad/*.oco"), *(HERE / "corpus").glob("*")]
    return [p.read_text(encoding="utf-8", errors="replace") for p in sorted(paths)]


_PIECE = re.compile(r"\w+|\s+|\S")


def mutated(rng: random.Random, texts: list[str]) -> str:
    """A file with words exchanged for words of others, lines moved, and characters changed."""
    pieces = _PIECE.findall(rng.choice(texts))
    others = _PIECE.findall(rng.choice(texts))
    for _ in range(rng.choice((1, 1, 2, 4, 12))):
        at, kind = rng.randrange(len(pieces) + 1), rng.randrange(6)
        if kind == 0 and others:
            pieces[at : at + 1] = [rng.choice(others)]
        elif kind == 1:
            del pieces[at : at + rng.randrange(1, 6)]
        elif kind == 2:
            pieces[at:at] = pieces[at : at + rng.randrange(1, 30)] * rng.choice((1, 2, 30))
        elif kind == 3:
            pieces[at:at] = [
                rng.choice((*NUMBERS, *NAMES, *ATOMS, "(", ")", "[", "]", "\n", "@", "\0", "\u202e", "é", "''", '"'))
            ]
        elif kind == 4 and others:
            start = rng.randrange(len(others))
            pieces[at:at] = others[start : start + rng.randrange(1, 20)]
        else:
            pieces[at:at] = [
                chr(rng.choice((rng.randrange(128), rng.randrange(0xD800), rng.randrange(0xE000, 0x110000))))
            ]
    return "".join(pieces)[:20_000]
