"""As many findings as mistakes: seeded files with two, three or five independent ones, of every kind, report each once and nothing else."""

from __future__ import annotations

import random
import re

import pytest
from thorough import thorough

from oco.dsl.diagnostics import OcoError
from oco.dsl.load import parse

# Each line of the model, and lines with one mistake to put in its place.
LINES: list[tuple[str, list[str]]] = [
    ("model many", ["modle many", "model", "model 2many", "model many models"]),
    ("horizon T = 100", ["horizon N = 100", "horizon T = 0", "horizon T = [1, 2]", "horizon T = rounds", "horizon T == 5"]),
    ("param n = 4", ["param n = 4.5.6", "parameter n = 4", "param n == 4", "param n = 1e999", "param n = (4", "param n = m"]),
    ("param A[2, n] = ones(2, n)", ["param A[2, n = ones(2, n)", "param A[2, n] = one(2, n)", "param A[2, n] = ones(2, n) x"]),
    ("param limit[2] = [1, 2]", ["param limit[2] = [1 2]", "param limit[2] = [1, 2, 3]", "param limit[2] = [1, [2]]"]),
    (
        "decision x[n] in box(0, 1)",
        ["decision x[n] box(0, 1)", "decision x[n] in bax(0, 1)", "decision x[n] in box(2, 1)", "decision x[n] in [0, 1, 2]"],
    ),
    ("decision y[3] in simplex", ["decision y[3] in simplex(-1)", "decision y[3] in ball", "decision y[3] in simplex simplex"]),
    (
        "stream price[n] in [-1, 1]",
        ["stream price[n] in -1, 1", "strem price[n] in [-1, 1]", "stream price[n] in [1, -1]", "stream price[n] in [−1, 1]"],
    ),
    (
        "stream jobs ~ poisson(3) in [0, 9]",
        ["stream jobs ~ poison(3) in [0, 9]", "stream jobs ~ poisson(-3) in [0, 9]", "stream jobs poisson(3)", "stream jobs ~ poisson()"],
    ),
    ("stream kind in 0..n-1", ["stream kind in 0..n-", "stream kind in 0..k-1", "stream kind in 0.5..n-1", "stream kind in 0...n"]),
    ("let cost = price @ x", ["let cost = price @ xx", "let cost = price @ x)", "cost = price @ x", "let cost = prev @ x"]),
    ("let spread = sum_squares(y)", ["let spread = sum_square(y)", "let spread = sum_squares(y, y)", "let spread = y ^ 2"]),
    ("minimize cost + spread", ["minimze cost + spread", "minimize cost + + spread", "minimize cost + spraed", "minimise cost + spread"]),
    ("subject to", ["subject", "subject to:", "subjet to"]),
    (
        "    cap: A @ x <= limit  each round",
        ["    cap: A @ x < limit", "    A @ x <= limit", "    cap: A @ y <= limit", "    cap: A @ x - limit"],
    ),
    (
        "    serve: jobs - sum(x) <= 2",
        ["    serve: 0 <= jobs - sum(x) <= 2", "    serve: jobs <= 2", "    serve: jobs - sum(x) <= 2 every round"],
    ),
    (
        "    pick: price[kind] * x[0] <= 1",
        ["    pick: price[kind * x[0] <= 1", "    pick: price[kind] * x[7] <= 1", "    param: x[0] <= 1"],
    ),
    ("measure dynamic regret", ["measure dynamics regret", "measure dynamic"]),
    ("feedback bandit", ["feedback bandits", "feedbak bandit", "feedback"]),
    ("assume slater.margin >= 0.5", ["assume slater.margn >= 0.5", "assume slater.margin <= 0.5", "assume slater.margin"]),
    ("using coldq with epsilon = 0.5", ["using coldqq with epsilon = 0.5", "using coldq with eps = 0.5", "using coldq with epsilon"]),
]  # fmt: skip


def mistakes(lines: list[str]) -> list[int | None]:
    """The line of each finding."""
    try:
        parse("\n".join(lines) + "\n")
    except OcoError as error:
        return [e.span.line if e.span is not None else None for e in error.errors]
    return []


def test_the_model_has_no_mistake() -> None:
    assert mistakes([line for line, _ in LINES]) == []


@pytest.mark.parametrize("at", range(len(LINES)), ids=[line.strip() for line, _ in LINES])
def test_one_mistake_gives_one_finding_on_its_line(at: int) -> None:
    for wrong in LINES[at][1]:
        text = [wrong if i == at else line for i, (line, _) in enumerate(LINES)]
        assert mistakes(text) == [at + 1], wrong


DECLARED = {
    match[1]: i
    for i, (line, _) in enumerate(LINES)
    if (match := re.match(r"(?:param|decision|stream|let) (\w+)", line))
}


def needs(text: str) -> set[int]:
    """The lines whose declarations a line needs, directly or not."""
    direct = {
        DECLARED[word] for word in re.findall(r"\w+", text) if word in DECLARED and LINES[DECLARED[word]][0] != text
    }
    return direct.union(*(needs(LINES[i][0]) for i in direct)) if direct else direct


@pytest.mark.parametrize("count", [*map(thorough, (2, 3)), 5])
def test_so_many_mistakes_so_many_findings(count: int) -> None:
    """Mistakes are independent when none is about what another line was to declare."""
    rng = random.Random(count)
    for _ in range(80):
        chosen: dict[int, str] = {}
        while len(chosen) < count:
            at = rng.randrange(len(LINES))
            wrong = rng.choice(LINES[at][1])
            apart = not (needs(wrong) | needs(LINES[at][0])) & chosen.keys() and all(
                at not in needs(w) for w in chosen.values()
            )
            chosen |= {at: wrong} if apart and at not in chosen else {}
        text = [chosen.get(i, line) for i, (line, _) in enumerate(LINES)]
        assert mistakes(text) == [i + 1 for i in sorted(chosen)], "\n".join(text)


def test_a_mistake_in_every_line_without_needs_is_found() -> None:
    first = [wrong[0] if not needs(line) - {at} else line for at, (line, wrong) in enumerate(LINES)]
    assert mistakes(first) == [i + 1 for i, (line, _) in enumerate(LINES) if first[i] != line]


def test_the_search_ends_at_a_hundred_mistakes() -> None:
    with pytest.raises(OcoError) as caught:
        parse("model m\n" + "".join(f"let a{k} = b{k}\n" for k in range(500)))
    assert len(caught.value.diagnostics) == 100
    assert "ended at 100" in str(caught.value)
