"""Progress bars of runs in notebooks."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import oco
from oco import notebook_bar as bars
from oco.notebook_bar import NotebookBar, notebook_bar

MODEL = "model barred\nhorizon T = 300\ndecision x in box(0, 1)\nstream c in [-1, 1]\nminimize c * x\nusing ogd\n"


class Handle:
    """Display that keeps what it shows."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def show(self, text: str) -> Handle:
        self.texts.append(text)
        return self

    def update(self, text: Any) -> None:
        self.texts.append(str(text))


def test_a_bar_comes_after_a_while_and_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    handle, clock = Handle(), [0.0]
    monkeypatch.setattr(bars, "perf_counter", lambda: clock[0])
    bar = NotebookBar("barred", 300, handle.show)
    for rounds, seconds in ((10, 0.5), (50, 2.0), (51, 2.1), (100, 4.0)):
        clock[0] = seconds
        bar(rounds, 1234.5, 0.25)
    bar.close()
    first, second, last = handle.texts
    assert (
        'value="50" max="300"' in first and "round 50 of 300, about 10 s to go; loss 1,234.5, violation 0.25" in first
    )
    assert 'value="100"' in second and "about 8 s to go" in second and last == ""


def test_a_bar_without_an_end_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    handle = Handle()
    monkeypatch.setattr(bars, "AFTER", 0.0)
    NotebookBar("barred", None, handle.show)(7, 1.0, 0.0)
    assert handle.texts[0].startswith("<progress style") and "barred: round 7; loss" in handle.texts[0]


def test_runs_show_it_in_notebooks_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, data = oco.compile(oco.parse(MODEL), backend="numpy"), {"c": np.ones(300)}
    assert notebook_bar("barred", 300) is None
    handle, package, display = Handle(), ModuleType("IPython"), ModuleType("IPython.display")
    package.get_ipython = lambda: SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    display.HTML, display.display = str, lambda text, display_id: handle.show(text)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr(bars, "AFTER", 0.0)
    monkeypatch.setattr(bars, "EVERY", 0.0)
    plan.run(data)
    assert len(handle.texts) > 2 and "barred: round 300 of 300" in handle.texts[-2] and handle.texts[-1] == ""
    shown = len(handle.texts)
    plan.run(data, progress=lambda rounds, loss, violation: None)
    assert len(handle.texts) == shown
