"""Delayed feedback of rules that weigh experts: learners in turn that learn together, in every backend, in any order of the feedback."""

from __future__ import annotations

import ctypes
import json
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from test_c99 import STRICT, needs_compiler
from test_c_bindings import binding
from test_delayed_everywhere import play

import oco

BACKENDS = ("numpy", "c")
TEXT = """\
model stock
horizon T = 60
decision x[2] in box(0, 9)
stream demand[2] in [0, 9]
stream room in [4, 16]
minimize sum(x) - 3 * sum(minimum(x, demand))
subject to
    fits: sum(x) <= room  each round, penalty 4
using hedged with season = 4
feedback full delayed 3
"""
KNOWN = TEXT.replace("stream room", "context room")


@cache
def plan_of(text: str) -> Any:
    return oco.compile(oco.parse(text))


def rows(seed: int, count: int = 30, size: int | None = None) -> list[dict[str, Any]]:
    """Rounds with a season of four and noise."""
    rng, n = np.random.default_rng(seed), () if size is None else (size,)
    level = np.array([[2.0, 7.0], [6.0, 3.0], [4.0, 4.0], [8.0, 1.0]])
    return [
        {"demand": np.clip(level[t % 4] + rng.normal(0, 0.5, (*n, 2)), 0, 9), "room": rng.uniform(9, 12, n)}
        for t in range(count)
    ]


def table(data: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: np.array([row[name] for row in data]) for name in data[0]}


@pytest.mark.parametrize("text", [TEXT, KNOWN], ids=["streams", "context"])
def test_backends_and_whole_runs_agree(text: str) -> None:
    data = rows(1)
    x = {b: plan_of(text).run(table(data), backend=b).decisions for b in BACKENDS}
    np.testing.assert_allclose(x["c"], x["numpy"], atol=1e-9)
