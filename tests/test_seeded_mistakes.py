"""Several independent mistakes in one model: each is reported, once, and nothing that follows from them."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest
from thorough import thorough

from oco.dsl.diagnostics import OcoError
from oco.dsl.load import parse

GOOD = """\
model plant

param n = 4
param zone[n] in 0..1 = [0, 0, 1, 1]
param cost[2] = [1.5, 2.5]
param mix[n, n] = eye(n)

horizon T = 500

decision x[n] in box(0, 10)
decision y[2] in simplex

stream price[2] in [-5, 5]
stream load ~ poisson(30) in [0, 80]
stream noise[n] ~ normal(0, 1) in [-4, 4]
stream usage[n] in [0, 3] iid mean = 1

let bill = price[zone] * x
let mixed = mix @ x

minimize sum(bill) + cost @ y + sum_squares(mixed - noise)

subject to
    served: load - sum(x) <= 0                     each round
    shared: usage @ x <= 20                        on average
    evened: x[0] - x[1] == 0                       on average
    capped: norm2(x) <= 12                         each round

measure dynamic regret
feedback full
assume path_length <= 40
using coldq with epsilon = 0.25, alpha = sqrt(t)
"""

MISTAKES: dict[str, tuple[str, str, str]] = {
    "statement misspelt": ("param cost[2]", "parm cost[2]", "OCO108"),
    "shape of a value": ("= [1.5, 2.5]", "= [1.5, 2.5, 3.5]", "OCO321"),
    "entry outside its range": ("= [0, 0, 1, 1]", "= [0, 0, 1, 2]", "OCO806"),
    "unknown function in a value": ("= eye(n)", "= identity(n)", "OCO202"),
    "horizon not whole": ("horizon T = 500", "horizon T = 0.5", "OCO323"),
    "unknown domain": ("in box(0, 10)", "in bax(0, 10)", "OCO401"),
    "empty box": ("in box(0, 10)", "in box(10, 0)", "OCO410"),
    "missing argument": ("in box(0, 10)", "in box(0)", "OCO403"),
    "unclosed bracket": ("decision y[2] in simplex", "decision y[2 in simplex", "OCO105"),
    "radius not positive": ("in simplex", "in ball(0)", "OCO411"),
    "range reversed": ("price[2] in [-5, 5]", "price[2] in [5, -5]", "OCO424"),
    "declared twice": ("let mixed = mix @ x", "let mixed = mix @ x\nlet mixed = mix @ x", "OCO203"),
    "reserved label": ("    capped:", "    loss:", "OCO205"),
    "unknown distribution": ("~ poisson(30)", "~ poison(30)", "OCO402"),
    "parameter out of range": ("~ poisson(30)", "~ poisson(-30)", "OCO423"),
    "missing parameter": ("~ normal(0, 1)", "~ normal(0)", "OCO421"),
    "mean outside the range": ("mean = 1", "mean = 7", "OCO428"),
    "undeclared name in an abbreviation": ("price[zone] * x", "prize[zone] * x", "OCO201"),
    "shapes of a product": ("= mix @ x", "= mix @ y", "OCO302"),
    "dangling operator": (
        "minimize sum(bill) + cost @ y + sum_squares(mixed - noise)",
        "minimize sum(bill) +",
        "OCO100",
    ),
    "unknown function": ("sum_squares(mixed", "sum_square(mixed", "OCO202"),
    "strict comparison": ("sum(x) <= 0 ", "sum(x) < 0  ", "OCO113"),
    "shapes of a constraint": ("usage @ x <= 20", "usage * x <= price", "OCO301"),
    "index past the end": ("x[0] - x[1]", "x[0] - x[4]", "OCO312"),
    "label used twice": ("    capped:", "    shared:", "OCO209"),
    "constraint without decision": ("norm2(x) <= 12 ", "cost <= 12     ", "OCO520"),
    "unknown fact": ("assume path_length", "assume path_lenght", "OCO651"),
    "bound of no use": ("path_length <= 40", "path_length >= 40", "OCO653"),
    "unknown algorithm": ("using coldq", "using coldk", "OCO701"),
    "unknown setting": ("epsilon = 0.25", "epsilom = 0.25", "OCO702"),
}


def line_of(mistake: str) -> int:
    return GOOD[: GOOD.index(MISTAKES[mistake][0])].count("\n")


def seeded(mistakes: tuple[str, ...]) -> str:
    text = GOOD
    for mistake in mistakes:
        before, after, _ = MISTAKES[mistake]
        assert text.count(before) == 1, mistake
        text = text.replace(before, after)
    return text


def combinations(size: int, count: int) -> list[tuple[str, ...]]:
    """Mistakes on different lines, drawn with a fixed seed."""
    draw = random.Random(size)
    chosen: set[tuple[str, ...]] = set()
    while len(chosen) < count:
        some = tuple(sorted(draw.sample(list(MISTAKES), size)))
        if len({line_of(m) for m in some}) == size:
            chosen.add(some)
    return sorted(chosen)


def codes_of(text: str) -> list[str]:
    with pytest.raises(OcoError) as caught:
        parse(text)
    return [d.code for d in caught.value.diagnostics]


def test_the_good_model_is_good() -> None:
    assert parse(GOOD).name == "plant"


@pytest.mark.parametrize("mistake", MISTAKES)
def test_one_mistake_gives_its_code_alone(mistake: str) -> None:
    assert codes_of(seeded((mistake,))) == [MISTAKES[mistake][2]]


@pytest.mark.parametrize("count", [20, thorough(60)])
@pytest.mark.parametrize("size", [2, 3, 5])
def test_as_many_errors_as_mistakes(size: int, count: int) -> None:
    for mistakes in combinations(size, count):
        assert Counter(codes_of(seeded(mistakes))) == Counter(MISTAKES[m][2] for m in mistakes), mistakes


def test_errors_come_in_the_order_of_the_text() -> None:
    for mistakes in combinations(5, 20):
        with pytest.raises(OcoError) as caught:
            parse(seeded(mistakes))
        lines = [d.span.line for d in caught.value.diagnostics if d.span is not None]
        assert lines == sorted(lines)
        assert len(lines) == 5


def test_every_mistake_takes_part() -> None:
    drawn = {m for size in (2, 3, 5) for mistakes in combinations(size, 60) for m in mistakes}
    assert drawn == set(MISTAKES)
    assert len(list(itertools.chain(MISTAKES))) >= 25
