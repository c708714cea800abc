"""Warnings of the checker and of plans: each is given where it should be, and silenced by a comment on the line that it is about."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oco
from oco.dsl.diagnostics import Diagnostic

HEAD = "model m\nhorizon T = 10\ndecision x[3] in box(0, 1)\n"
STREAM = "stream c[3] in [-1, 1]"
WIDE = np.random.default_rng(0).uniform(-0.01, 0.01, size=(400, 3))
SPIKE = np.where(np.arange(400)[:, None] == 200, 0.9, WIDE)

CASES: dict[str, tuple[str, str, Any]] = {
    # code: the model, the line that the warning is about, data
    "OCO601": (
        HEAD + STREAM + "\nminimize c @ x\nsubject to\n    one: sum(x) == 1\n    two: 2 * sum(x) == 2\n",
        "two:",
        None,
    ),
    "OCO602": (HEAD + STREAM + "\nminimize -abs(x[0])\nsubject to\n    cap: c @ x <= 9\n", "minimize", None),
    "OCO603": (HEAD + STREAM + "\nstream d in [0, 1]\nminimize c @ x\n", "stream d", None),
    "OCO604": (HEAD + STREAM + "\nminimize c @ x\nsubject to\n    cap: sum(x) <= 9\n", "cap:", None),
    "OCO605": (
        HEAD + STREAM + "\nminimize c @ x\nsubject to\n    low: sum(x) <= 0.5\n    high: sum(x) >= 1\n",
        "low:",
        None,
    ),
    "OCO606": (HEAD + STREAM + "\nminimize c @ x\n", "stream c", WIDE),
    "OCO607": (HEAD + STREAM + "\nminimize c @ x\n", "stream c", SPIKE),
    "OCO611": (HEAD + STREAM + "\nminimize c @ x\nsubject to\n    cap: sum(x) <= 2\n", "cap:", None),
    "OCO613": (HEAD + STREAM + "\nminimize c @ x + exp(exp(1000 * x[0]))\n", "minimize", None),
    "OCO610": (HEAD + STREAM + "\nminimize c @ x\nassume loss.bound <= 100\n", "assume", None),
}
FIXED = HEAD + STREAM + "\nminimize c @ x\nsubject to\n    cap: sum(x) <= 2   each round\n"


def warned(text: str, data: Any) -> list[Diagnostic]:
    facts = oco.check(oco.parse(text), data=None if data is None else {"c": data})
    _ = facts["slater.margin"]  # warnings of facts that need a solver come with them
    return list(facts.warnings)


def allowing(text: str, line: str, code: str) -> str:
    """The text with the comment at the end of the line that holds `line`."""
    return "\n".join(f"{row}  # allow {code}" if line in row else row for row in text.split("\n"))


@pytest.mark.parametrize("code", CASES)
def test_a_warning_is_given_and_can_be_silenced(code: str) -> None:
    text, line, data = CASES[code]
    found = warned(text, data)
    assert code in [d.code for d in found]
    d = next(d for d in found if d.code == code)
    assert d.span is not None and line in d.span.source.line(d.span.line) and d.message and d.hint
    assert code not in [d.code for d in warned(allowing(text, line, code), data)]


SHORT = (
    "model m\nhorizon T = 3\ndecision x[3] in box(0, 1)\nstream c[3] in [-1, 1]\nminimize c @ x\n"
    "subject to\n    cap: c @ x <= 0.5   each round\n"
)


def plan_warnings(text: str) -> dict[str, Diagnostic]:
    return {d.code: d for d in oco.compile(oco.parse(text), algorithm="coldq").warnings}


def test_a_guarantee_that_says_nothing_names_the_horizon_from_which_it_does() -> None:
    found = plan_warnings(SHORT)
    assert {"OCO608", "OCO609"} <= set(found)
    assert "3 rounds of at most" in found["OCO608"].message and "from T = " in found["OCO609"].hint
    longer = int(found["OCO609"].hint.rpartition(" ")[2])
    assert not {"OCO608", "OCO609"} & set(plan_warnings(SHORT.replace("T = 3", f"T = {longer}")))


def test_warnings_of_a_plan_can_be_silenced() -> None:
    quiet = SHORT.replace("T = 3", "T = 3  # allow OCO608, OCO609")
    assert not {"OCO608", "OCO609"} & set(plan_warnings(quiet))


def test_a_fixed_constraint_is_written_out_as_a_part_of_the_domain() -> None:
    """What the hint says to write, written there, is heard no more; nor is it where the algorithm keeps to the constraint."""
    found = plan_warnings(FIXED)["OCO612"]
    assert "write `with sum(x) <= 2` behind the domain of `x`" in found.hint and "write `using hedged`" in found.hint
    head, _, _ = FIXED.partition("subject to")
    cut = "\n".join(f"{line} with sum(x) <= 2" if line.startswith("decision x") else line for line in head.split("\n"))
    others = (
        oco.compile(oco.parse(t)).warnings for t in (cut, FIXED + "using hedged\n", allowing(FIXED, "cap:", "OCO612"))
    )
    assert cut != head and not any(w.code == "OCO612" for warnings in others for w in warnings)
