"""Habits of CVXPY and other modelers: each meets the line to write, with the caret in the user's file."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest

import oco
from oco.dsl.calls import checked_call
from oco.dsl.habits import Suggesting

TABLE = pd.DataFrame([[1.0, 2.0], [3.0, 4.0]])


def made() -> tuple[Any, Any, Any]:
    """A model with a decision x[2] and a stream p[2]."""
    m = oco.Model("habits", horizon=10)
    return m, m.decision("x", 2, domain=oco.box(0, 1)), m.stream("p", 2, bounds=(0, 1))


def truth(term: Any) -> None:
    if term > 0.5:
        raise AssertionError


def fixed(term: Any) -> None:
    term[0] = 1


CALLS: dict[str, tuple[Callable[[Any, Any, Any], Any], str, str]] = {
    "cp.sum": (lambda m, x, p: m.minimize(cp.sum(x)), "cp.sum(x)", "write `oco.sum(...)`"),
    "cp.norm": (lambda m, x, p: m.minimize(cp.norm(x, 2)), "cp.norm(x, 2)", "write `oco.norm2(...)`"),
    "cp.square": (lambda m, x, p: m.minimize(cp.square(x)), "cp.square(x)", "write `oco.square(...)`"),
    "cp.Variable": (lambda m, x, p: cp.Variable(2) + x, "cp.Variable(2) + x", "`m.decision`"),
    "oco.Variable": (lambda m, x, p: oco.Variable(3), "oco.Variable", "m.decision("),
    "oco.variable": (lambda m, x, p: oco.variable(3), "oco.variable", "m.decision("),
    "oco.Parameter": (lambda m, x, p: oco.Parameter(3), "oco.Parameter", "m.param("),
    "oco.Minimize": (lambda m, x, p: oco.Minimize(x), "oco.Minimize", "m.minimize(loss)"),
    "oco.Problem": (lambda m, x, p: oco.Problem(x), "oco.Problem", "oco.Model("),
    "oco.solve": (lambda m, x, p: oco.solve(m), "oco.solve", "oco.compile(m)"),
    "oco.sqare": (lambda m, x, p: oco.sqare(x), "oco.sqare", "did you mean `square`?"),
    "m.solve": (lambda m, x, p: m.solve(), "m.solve", "oco.compile(m)"),
    "m.constraint": (lambda m, x, p: m.constraint(x <= 1), "m.constraint", "m.subject_to("),
    "x.value": (lambda m, x, p: x.value, "x.value", "learner().decide()"),
    "if": (lambda m, x, p: truth(x[0]), "term > 0.5", "oco.maximum"),
    "and": (lambda m, x, p: m.subject_to(x <= 1 and p >= 0), "x <= 1", "two constraints"),
    "&": (lambda m, x, p: m.subject_to((x <= 1) & (p >= 0)), "x <= 1", "`&`"),
    "an entry set": (lambda m, x, p: fixed(x), "term[0]", "m.subject_to(x[0] == 1, each_round=True)"),
    "nonneg": (
        lambda m, x, p: m.decision("y", 3, nonneg=True),
        'm.decision("y", 3, nonneg=True)',
        "domain=oco.box(0, 10)",
    ),
    "boolean": (
        lambda m, x, p: m.decision("y", 3, boolean=True),
        'm.decision("y", 3, boolean=True)',
        "oco.box(0, 1).rounded()",
    ),
    "a domain of the stream": (
        lambda m, x, p: m.stream("q", 3, domain=oco.box(0, 1)),
        'm.stream("q", 3, domain=oco.box(0, 1))',
        "it takes name, shape, bounds",
    ),
    "a misspelt argument": (
        lambda m, x, p: m.stream("q", 3, bound=(0, 1)),
        'm.stream("q", 3, bound=(0, 1))',
        "did you mean `bounds`?",
    ),
    "data of a stream": (
        lambda m, x, p: m.stream("q", data=np.ones(9)),
        'm.stream("q", data=np.ones(9))',
        "oco.compile(m).run(data)",
    ),
    "constraints beside the loss": (
        lambda m, x, p: m.minimize(p @ x, [x <= 1]),
        "m.minimize(p @ x, [x <= 1])",
        "m.subject_to(x <= 1",
    ),
    "oco.Model()": (lambda m, x, p: oco.Model(), "oco.Model()", 'oco.Model("shop", horizon=1000)'),
    "an expression of cvxpy": (
        lambda m, x, p: m.minimize(cp.sum(cp.Variable(2))),
        "m.minimize(cp.sum(cp.Variable(2)))",
        "objects of cvxpy and of a model do not mix",
    ),
    "a missing number": (
        lambda m, x, p: m.param("A", [1, np.nan]),
        'm.param("A", [1, np.nan])',
        "fill what is missing",
    ),
    "the name of a file": (
        lambda m, x, p: m.param("A", "costs.csv"),
        'm.param("A", "costs.csv")',
        'oco.file("costs.csv")',
    ),
    "three bounds": (
        lambda m, x, p: m.stream("q", bounds=(0, 1, 2)),
        'm.stream("q", bounds=(0, 1, 2))',
        "write `bounds=(0, 1)`",
    ),
    "a generator as a distribution": (
        lambda m, x, p: m.stream("q", dist=np.random.default_rng(0)),
        'm.stream("q", dist=np.random.default_rng(0))',
        "oco.poisson(5)",
    ),
    "a name of an axis without names": (lambda m, x, p: x["NYC"], 'x["NYC"]', "count its entries from 0"),
    "table @ x": (lambda m, x, p: m.minimize(oco.sum(TABLE @ x)), "TABLE @ x", "table.to_numpy()"),
}

RUNNING: dict[str, tuple[Callable[[Any, Any, Any], Any], str, str]] = {
    "plan.solve": (lambda plan, learner, trace: plan.solve(), "plan.solve", "`plan.run(data)`"),
    "plan.decide": (lambda plan, learner, trace: plan.decide(), "plan.decide", "`learner = plan.learner()`"),
    "plan.learnr": (lambda plan, learner, trace: plan.learnr(), "plan.learnr", "did you mean `learner`?"),
    "horizon of a run": (
        lambda plan, learner, trace: plan.run(horizon=5),
        "plan.run(horizon=5)",
        "`plan.run(data, rounds=5)`",
    ),
    "horizon of a plan": (
        lambda plan, learner, trace: oco.compile(plan.model, horizon=5),
        "oco.compile(plan.model, horizon=5)",
        "`plan.with_horizon(5)`",
    ),
    "a solver": (
        lambda plan, learner, trace: oco.compile(plan.model, solver="SCS"),
        'oco.compile(plan.model, solver="SCS")',
        "an algorithm is",
    ),
    "a misspelt option": (
        lambda plan, learner, trace: plan.learner(sed=3),
        "plan.learner(sed=3)",
        "did you mean `seed`?",
    ),
    "learner.predict": (lambda plan, learner, trace: learner.predict(), "learner.predict", "learner.observe("),
    "data to decide": (
        lambda plan, learner, trace: learner.decide([1, 2]),
        "learner.decide([1, 2])",
        "contexts are given by name",
    ),
    "data in order": (
        lambda plan, learner, trace: learner.observe([1, 2], 3),
        "learner.observe([1, 2], 3)",
        "by name: `learner.observe(price=p, demand=d)`",
    ),
    "fleet.predict": (
        lambda plan, learner, trace: plan.fleet(2).predict(),
        "plan.fleet(2).predict",
        "learner.observe(",
    ),
    "trace.losses": (lambda plan, learner, trace: trace.losses, "trace.losses", "`trace.loss`"),
    "trace.to_csv": (lambda plan, learner, trace: trace.to_csv("a.csv"), "trace.to_csv", "`trace.to_dataframe()`"),
}


@pytest.fixture(scope="module")
def running() -> tuple[Any, Any, Any]:
    """A plan, a learner and a trace of it."""
    m, x, p = made()
    m.minimize(p @ x)
    plan = oco.compile(m, "ogd", "paper", backend="numpy")
    return plan, plan.learner(), plan.run({"p": np.ones((3, 2))})


@pytest.mark.parametrize("habit", RUNNING)
def test_plans_learners_and_runs_meet_the_line_to_write(habit: str, running: tuple[Any, Any, Any]) -> None:
    call, place, hint = RUNNING[habit]
    with pytest.raises(oco.OcoError) as caught:
        call(*running)
    error = caught.value
    assert error.span is not None and error.span.text == place and error.span.source.name == __file__
    assert hint in error.hint


def test_errors_within_a_call_and_within_a_property_stand(running: tuple[Any, Any, Any]) -> None:
    """A wrong argument is not told from a TypeError within, nor a missing name from an AttributeError within, by the type alone."""

    @checked_call
    def broken(x: int) -> Any:
        return len(x)  # type: ignore[arg-type]

    class Infeasibility(Suggesting):
        _known_as = "an object"

        @property
        def value(self) -> int:
            return self.absent  # type: ignore[attr-defined,no-any-return]

    with pytest.raises(TypeError, match="has no len"):
        broken(3)
    with pytest.raises(AttributeError, match="`absent`"):
        Infeasibility().value  # noqa: B018
    plan, learner, trace = running
    again = pickle.loads(pickle.dumps(trace))
    assert (copy.copy(again).loss == trace.loss).all() and copy.deepcopy(plan).horizon == plan.horizon
    names = ("Variable", "solve", "_repr_png_", "to_numpy")
    assert not any(hasattr(thing, name) for thing in (plan, learner, trace) for name in names)


@pytest.mark.parametrize("habit", CALLS)
def test_calls_meet_the_line_to_write(habit: str) -> None:
    call, place, hint = CALLS[habit]
    with pytest.raises(oco.OcoError) as caught:
        call(*made())
    error = caught.value
    assert error.span is not None and error.span.text == place and error.span.source.name == __file__
    assert hint in error.hint


def test_tables_times_decisions_are_arrays_times_decisions() -> None:
    m, x, _ = made()
    for wrong, right in (
        (TABLE * x, TABLE.to_numpy() * x),
        (TABLE[0] * x, TABLE[0].to_numpy() * x),
        (x * TABLE, x * TABLE.to_numpy()),
    ):
        assert repr(wrong) == repr(right)
    with pytest.raises(oco.OcoError) as caught:
        m.minimize(oco.sum(pd.DataFrame(np.ones((3, 3))) * x))
    assert caught.value.span is not None and caught.value.span.source.name == __file__


def test_spellings_that_work() -> None:
    m, x, p = made()
    m.maximize(x.sum() - p @ x)
    assert "maximize" in m.to_oco()
    assert np.array([x[0], x[1]], dtype=object).shape == (2,)


def test_names_that_are_not_there_are_absent_for_tools() -> None:
    m, x, _ = made()
    assert not any(
        hasattr(thing, name) for thing in (oco, m, x) for name in ("Variable", "solve", "_repr_png_", "to_numpy")
    )


MODELS = {
    "s.t.": ("minimize a * x\ns.t.\n    c: x <= 1 each round\n", "s", "write `subject to`"),
    "quotient": ("minimize a // x\n", "/", "a quotient is written `/`"),
    "comment": ("// a comment\nminimize a * x\n", "/", "a comment starts with `#`"),
    "set": ("set HOURS = 0..23\nminimize a * x\n", "set", "`param hours = 24`"),
    "family": (
        "minimize a * x\nsubject to\n    service[h in HOURS]: x[h] <= 1 each round\n",
        "HOURS",
        "`service: x <= 1`",
    ),
}
HEAD = "model m\nhorizon T = 10\ndecision x in box(0.5, 1)\nstream a in [0, 1]\n"


@pytest.mark.parametrize("habit", MODELS)
def test_texts_meet_the_line_to_write(habit: str) -> None:
    text, place, hint = MODELS[habit]
    with pytest.raises(oco.OcoError) as caught:
        oco.parse(HEAD + text)
    error = caught.value
    assert error.span is not None and error.span.text == place and hint in error.hint


def test_an_unknown_horizon_is_a_word_of_its_own() -> None:
    with pytest.raises(oco.OcoError, match="`unknown` is not declared") as caught:
        oco.parse("model m\nhorizon T = unknown\ndecision x in box(0, 1)\nstream a in [0, 1]\nminimize a * x\n")
    assert "`horizon T unknown`" in caught.value.hint
    assert oco.parse("model m\nhorizon T unknown\ndecision x in box(0, 1)\nstream a in [0, 1]\nminimize a * x\n")


def test_data_under_another_name_are_named() -> None:
    m, x, p = made()
    m.minimize(p @ x)
    learner = oco.compile(m).learner()
    learner.decide()
    with pytest.raises(oco.OcoError) as caught:
        learner.observe(price=[1, 1])
    assert "there is no `price`" in caught.value.message and caught.value.hint == "did you mean `p`?"


def test_a_stream_without_bounds_is_shown_where_it_is_declared() -> None:
    m = oco.Model("m", horizon=10)
    x = m.decision("x", 2, domain=oco.box(0, 1))
    p = m.stream("p", 2)
    m.minimize(p @ x)
    with pytest.raises(oco.OcoError) as caught:
        oco.compile(m)
    assert caught.value.span is not None and caught.value.span.text == 'm.stream("p", 2)'
    assert "bounds of `p`" in caught.value.hint


def test_messages_read_as_expected(golden: Callable[..., None]) -> None:
    """All of the messages above: what is printed for a call or a text."""
    parts = []
    for habit, (call, _, _) in CALLS.items():
        with pytest.raises(oco.OcoError) as caught:
            call(*made())
        parts.append(f"{habit}: {caught.value.message}\n  hint: {caught.value.hint}\n")
    for habit, (text, _, _) in MODELS.items():
        with pytest.raises(oco.OcoError) as caught:
            oco.parse(HEAD + text)
        parts.append(f"{habit}\n{caught.value}\n")
    golden("\n".join(parts))
