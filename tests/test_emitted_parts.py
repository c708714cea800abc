"""Emitted modules hold the parts that their model needs: branches are cut without a change of meaning, and nothing is missing."""

from __future__ import annotations

import ast
import builtins
from pathlib import Path
from typing import Any

import pytest

import oco
from oco.backends.python.specialized import reads, specialized

EXAMPLES = Path(__file__).parent.parent / "examples"
HEAD = "model m\nhorizon T = 50\n"
BOX, LOSS = "decision x[2] in box(0, 1)\n", "minimize a @ x\n"
MODELS = {
    "plain": HEAD + BOX + "stream a[2] in [-1, 1]\n" + LOSS,
    "context": HEAD + BOX + "context room in [1, 2]\nstream a[2] in [-1, 1]\n" + LOSS,
    "late": HEAD + BOX + "stream a[2] in [-1, 1]\n" + LOSS + "feedback full delayed 2\n",
    "names": HEAD + "index zone = [NYC, WEST]\ndecision x[zone] in box(0, 1)\nstream a[zone] in [-1, 1]\n" + LOSS,
    "integers": HEAD + BOX + "stream k in 0..3\nstream a[2] in [-1, 1]\nminimize a @ x + k * sum(x)\n",
    "two points": HEAD + BOX + "stream a[2] in [-1, 1]\n" + LOSS + "feedback two_point\n",
    "previous": HEAD + BOX + "stream a[2] in [-1, 1]\nminimize a @ x + sum_squares(x - prev(x))\n",
}
MARKS = {
    "context": "_learn_context",
    "late": "RoundError",
    "names": "named_columns",
    "integers": "which is not an integer",
    "two points": "second_point",
    "previous": "PREVIOUS = {\n",
    "certificate": "what proves it",
}
"""Words of the part that a feature needs."""


def text_of(model: str, **options: Any) -> str:
    return oco.compile(oco.parse(model), settings="paper", **options).source("numpy")


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    made = {name: text_of(model) for name, model in MODELS.items()}
    return {**made, "certificate": text_of(MODELS["plain"], certify="static")}


def test_each_part_stands_where_its_feature_does(texts: dict[str, str]) -> None:
    for feature, mark in MARKS.items():
        assert {name for name, text in texts.items() if mark in text} == {feature}, feature


def test_a_learner_beside_its_rule_is_that_of_every_model_with_its_features() -> None:
    other = "stream cost[3] in [0, 9]\nminimize cost @ u + sum_squares(u)\n"
    models = MODELS["plain"], "model n\nhorizon T = 70\ndecision u[3] in simplex\n" + other
    parts = [oco.compile(oco.parse(model), settings="paper").files_at("parts", "numpy") for model in models]
    (_, one), (_, two) = (files.values() for files in parts)
    assert [path.name for path in parts[1]] == ["n_rule.py", "n_learner.py"]
    assert one == two.replace("n_rule", "m_rule").replace("n: ", "m: ", 1)


def test_every_name_that_is_read_is_there(texts: dict[str, str]) -> None:
    for name, text in texts.items():
        tree = ast.parse(text)
        nodes = list(ast.walk(tree))
        known = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        known |= {a.arg for a in nodes if isinstance(a, ast.arg)} | {*dir(builtins), "__name__"}
        known |= {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef | ast.ExceptHandler) and n.name}
        known |= {a.asname or a.name for n in nodes if isinstance(n, ast.Import | ast.ImportFrom) for a in n.names}
        read = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        assert read <= known, (name, read - known)
        imported = {
            a.asname or a.name for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom) for a in n.names
        }
        assert imported <= reads(tree).keys() | {"np", "annotations"}, (name, imported)


def test_parts_that_every_module_has_are_short() -> None:
    """Text from the learner on of two examples, whatever their rule; a fifth of it reads files of data."""
    for name in ("job_scheduling", "tracking"):
        text = oco.compile(oco.load(EXAMPLES / f"{name}.oco"), settings="paper").source("numpy")
        assert len(text) - text.index("# The learner ---") < 17_500, name


SOURCE = """
def root(a: int = 1, /, *rest: str, key: float = 2.0, **more: str) -> list[int]:
    if KNOWN and a > 1:
        results: list[int] = [1]
    elif OFF or a == 1:
        results = [2 if KNOWN else 3, 4 if OFF else 5]
    elif KNOWN:
        results = [6]
    else:
        results = [7]
    if OFF:
        results += hidden()
    if not OFF:
        # kept without its condition
        for k in rest:
            results.append(len(k))
    return results + list(map(int, more.values())) + [int(key)]


def hidden() -> list[int]:
    return deeper() + hidden()


def deeper() -> list[int]:
    return [8]
"""


@pytest.mark.parametrize("on", [True, False])
def test_a_text_with_its_branches_cut_means_the_same(on: bool) -> None:
    known = {"KNOWN": on, "OFF": not on}
    text = SOURCE.replace("root", "Learner")
    short = specialized(text, known)
    full, cut = dict[str, Any](known), dict[str, Any]()
    exec(text.replace(" + hidden()", ""), full)  # without the call of itself, which never ends
    exec(short.replace(" + hidden()", ""), cut)
    assert not {"KNOWN", "OFF", "int]", "elif KNOWN"} & {*short.split()} and " -> " not in short
    assert ("hidden" in short) == ("deeper" in short) == (not on)
    for a in (0, 1, 2):
        assert cut["Learner"](a, "ab", key=4.5, z="9") == full["Learner"](a, "ab", key=4.5, z="9")
