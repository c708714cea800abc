"""Assumptions and warnings: what a declaration changes, what it contradicts, what is pointed out and how that is silenced."""

from __future__ import annotations

import sys

import pytest

from oco.compiler.prover.check import check
from oco.compiler.prover.facts import Facts
from oco.compiler.prover.types import Status
from oco.dsl.diagnostics import OcoError
from oco.dsl.load import parse

MODEL = (
    "model m\nhorizon T = 100\ndecision x[2] in box(-1, 1)\nstream c[2] in [-2, 3]\nminimize c @ x + sum_squares(x)\n"
    "subject to\n    cap: sum(x) <= 1.5\n"
)


def facts_of(text: str) -> Facts:
    return check(parse(text))


def test_a_declaration_that_says_more_stands() -> None:
    facts = facts_of(MODEL + "assume path_length <= 40\n")
    assert facts["path_length"].status is Status.DECLARED and facts["path_length"].value == 40
    assert facts.value("path_length") == 40


def test_a_declaration_that_says_less_changes_nothing() -> None:
    facts = facts_of(MODEL + "assume loss.lipschitz.l2 <= 100\n")
    assert facts["loss.lipschitz.l2"].status is Status.PROVED and facts["loss.lipschitz.l2"].value < 8
    assert "OCO610" in [w.code for w in facts.warnings]


@pytest.mark.parametrize(
    "assumption",
    (
        "constraints.cap.bound <= 1",
        "domain.radius <= 1",
        "constraints.cap.lipschitz.l2 <= 1",
        "loss.strong_convexity.l2 >= 5",
        "loss.lipschitz.l2 <= -1",
        "loss.bound <= -1.7976931348623157e308",
        "path_length <= -1",
    ),
)
def test_a_declaration_that_is_reached_or_passed_is_an_error(assumption: str) -> None:
    with pytest.raises(OcoError) as caught:
        facts_of(MODEL + f"assume {assumption}\n")
    assert caught.value.code == "OCO620" and caught.value.span is not None
    assert caught.value.span.text in assumption


def test_what_may_be_negative_may_be_assumed_so() -> None:
    unbounded = "model m\nhorizon T = 9\ndecision x in box(-1, 1)\nstream z ~ normal(0, 1)\nminimize z * x\n"
    assert facts_of(unbounded + "assume loss.upper <= -0.5\n")["loss.upper"].value == -0.5


def test_an_assumption_may_say_more_of_the_streams_than_their_ranges() -> None:
    assert facts_of(MODEL + "assume loss.lipschitz.l2 <= 3\n")["loss.lipschitz.l2"].status is Status.DECLARED
    unbounded = "model m\nhorizon T = 9\ndecision x in box(-1, 1)\nstream z ~ normal(0, 1)\nminimize z * x\n"
    fact = facts_of(unbounded + "assume loss.lipschitz.l2 <= 3\n")["loss.lipschitz.l2"]
    assert fact.status is Status.DECLARED and fact.value == 3


def test_a_margin_that_is_refuted_cannot_be_assumed() -> None:
    text = MODEL + "    e: x[0] == x[1]\nassume slater.margin >= 0.5\n"
    with pytest.raises(OcoError) as caught:
        _ = facts_of(text)["slater.margin"]
    assert caught.value.code == "OCO620"


def test_values_of_assumptions_are_worked_out() -> None:
    facts = facts_of(MODEL.replace("decision", "param k = 3\ndecision") + "assume variation.gradient <= 4 * k\n")
    assert facts["variation.gradient"].value == 12


def test_an_unused_stream_and_a_slack_constraint_that_is_fixed_are_pointed_out() -> None:
    text = MODEL.replace("minimize", "stream d in [0, 1]\nminimize").replace("<= 1.5", "<= 3")
    assert [w.code for w in facts_of(text).warnings] == ["OCO603", "OCO604"]


def test_a_comment_silences_the_warnings_of_its_line() -> None:
    text = MODEL.replace("minimize", "stream d in [0, 1]   # allow OCO603\nminimize").replace(
        "<= 1.5", "<= 3   # allow OCO604, OCO603, OCO611"
    )
    assert facts_of(text).warnings == ()
    other = MODEL.replace("minimize", "stream d in [0, 1]   # allow OCO604\nminimize")
    assert [w.code for w in facts_of(other).warnings] == ["OCO603", "OCO611"]


def test_facts_are_a_mapping_of_the_whole_catalogue() -> None:
    facts = facts_of(MODEL)
    assert len(facts) == len(list(facts)) == len(set(facts))
    assert facts["path_length"].status is Status.UNKNOWN and facts.value("path_length", 7) == 7
    assert all(facts[key].key == key for key in facts)
    with pytest.raises(KeyError):
        _ = facts["loss.colour"]


def test_no_solver_is_loaded_for_facts_that_need_none() -> None:
    import subprocess

    code = (
        "import sys; from oco.dsl.load import parse; from oco.compiler.prover.check import check;"
        f"facts = check(parse({MODEL!r})); facts['loss.lipschitz.l2'];"
        "print([m for m in ('cvxpy', 'scipy', 'sympy', 'pandas') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_facts_are_values_that_reading_does_not_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is proved by `check`: no key that is read, no text and no copy runs a search."""
    facts = facts_of(MODEL)
    monkeypatch.setattr(
        "oco.compiler.prover.feasibility.feasible.Feasibility.find", lambda self: pytest.fail("searched")
    )
    monkeypatch.setattr("oco.compiler.prover.context.ProofContext.__init__", lambda *_: pytest.fail("a new proof"))
    assert facts["slater.margin"].known and isinstance(facts.warnings, tuple) and "slater.margin" in str(facts)
    assert list(facts) == list(facts.items_by_key) and len(facts) == len(facts.items_by_key)


def test_an_assumption_of_what_is_proved_exactly_is_no_contradiction() -> None:
    facts = facts_of(
        "model m\nhorizon T = 9\ndecision x[2] in box(-2, 1)\nminimize sum_squares(x)\nassume loss.strong_convexity.l2 >= 2\n"
    )
    assert [w.code for w in facts.warnings] == ["OCO610"]
    with pytest.raises(OcoError) as error:
        facts_of(
            "model m\nhorizon T = 9\ndecision x[2] in box(-2, 1)\nminimize sum_squares(x)\nassume loss.strong_convexity.l2 >= 2.1\n"
        )
    assert error.value.code == "OCO620"


def test_no_solver_is_loaded_for_rows_that_an_index_of_the_round_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    text = (
        "model m\nhorizon T = 100\nparam most[2] = [1, 3]\ndecision x[2] in box(0, 1)\nstream d[2] in [0, 4]\nminimize sum(x)\n"
        "subject to\n    cap: d - x <= most[(t - 1) % 2] each round\n"
    )
    assert not facts_of(text)["feasible.common"].known
    monkeypatch.setattr("oco.compiler.prover.feasibility.solver.indexed_by_data", lambda expr: False)
    with pytest.raises(ImportError):
        facts_of(text)
