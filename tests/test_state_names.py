"""State variables: the parts of a composed algorithm may not share a name, since one would take the other's value."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
from driving import plan_of
from sources import parsed
from test_architecture import MODULES, ROOT

from oco.compiler.algorithms import dual_prices
from oco.compiler.lowering.rule import joined
from oco.dsl.diagnostics import InternalError

FIRST_STATES = re.compile("init|begun|start|.*_at_start")
"""Names of the functions that make the state before the first round."""
MODEL = """\
model m
horizon T = 20
decision x[2] in box(0, 1)
stream a[2] in [0, 1]
minimize a @ x
subject to
    cap: sum(x) >= 1 each round
    mean: a @ x <= 0.7 on average
"""


def test_parts_join_where_names_differ() -> None:
    assert joined({"a": 1}, {}, {"b": 2}) == {"a": 1, "b": 2}
    with pytest.raises(InternalError, match="`b`"):
        joined({"a": 1, "b": 2}, {"c": 3}, {"b": 2})


@pytest.mark.parametrize("name", ["margin", "S", "x"])
def test_a_name_of_two_parts_is_an_error_at_construction(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`hedged` with prices that are kept under the name of its margins, its slopes or its decisions."""
    assert plan_of(MODEL, "hedged").traced.state
    plan = plan_of(MODEL.replace("model m", f"model with_{name}"), "hedged")
    monkeypatch.setattr(dual_prices, "USED", name)
    with pytest.raises(InternalError, match=f"a state variable `{name}` each"):
        _ = plan.traced


def merges(text: str) -> Iterator[str]:
    """Functions that make a first state and merge values by name otherwise than by `joined`."""
    for function in (
        n for n in ast.walk(parsed(text)) if isinstance(n, ast.FunctionDef) and FIRST_STATES.fullmatch(n.name)
    ):
        parts = list(ast.walk(function))
        spread = any(isinstance(n, ast.Dict) and None in n.keys for n in parts)
        if spread or any(isinstance(n, ast.BinOp | ast.AugAssign) and isinstance(n.op, ast.BitOr) for n in parts):
            yield function.name


def test_first_states_are_joined() -> None:
    paths = [p for p in MODULES if p.relative_to(ROOT).parts[0] == "compiler"]
    assert not {f"{p.relative_to(ROOT)} {name}" for p in paths for name in merges(p.read_text())}


def test_merges_are_seen() -> None:
    text = """
def init(self):
    return {"x": 1, **self.part.init()}
def begun(self):
    return self.first | self.second
def update(self):
    return {**self.first, "x": 2}
"""
    assert list(merges(text)) == ["init", "begun"]
