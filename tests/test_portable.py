"""Objects in other processes and copies, schemas of a learner's calls, rows of tables as data, tables of runs."""

from __future__ import annotations

import copy
import json
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pytest

import oco
from oco.backends.c99.build import stepper

TEXT = """model shop
horizon T = 20
decision x[3] in box(0, 2)
context need in [0, 4]
stream price[3] in [1, 5]
stream jobs ~ poisson(3) in [0, 9]
minimize price @ x
subject to
    served: need - sum(x) <= 0 each round
    busy: jobs - 2 * sum(x) <= 0 on average
"""
MODEL = oco.parse(TEXT)
ROWS = np.random.default_rng(0)
DATA = {"need": ROWS.uniform(0, 4, 20), "price": ROWS.uniform(1, 5, (20, 3)), "jobs": ROWS.integers(0, 9, 20)}


@pytest.fixture(scope="module")
def plan() -> Any:
    return oco.compile(MODEL, "coldq", backend="numpy")


def played(learner: Any, rounds: range) -> list[Any]:
    decisions = []
    for t in rounds:
        decisions.append(learner.decide(need=DATA["need"][t]))
        learner.observe(price=DATA["price"][t], jobs=DATA["jobs"][t])
    return decisions


WAYS = {"pickle": lambda thing: pickle.loads(pickle.dumps(thing)), "copy": copy.copy, "deepcopy": copy.deepcopy}


@pytest.mark.parametrize("way", WAYS)
def test_plans_models_and_facts_come_back_equal(plan: Any, way: str) -> None:
    again = WAYS[way](plan)
    assert again.recipe == plan.recipe and again.source("numpy") == plan.source("numpy")
    assert WAYS[way](MODEL) == MODEL
    facts = oco.check(MODEL)
    assert str(WAYS[way](facts)) == str(facts)


@pytest.mark.parametrize("way", WAYS)
def test_learners_go_on_bit_for_bit_and_apart(plan: Any, way: str) -> None:
    learner = plan.learner()
    played(learner, range(7))
    other = WAYS[way](learner)
    assert other.round == 8
    alone = played(other, range(7, 20))
    assert learner.round == 8
    assert all(np.array_equal(a, b) for a, b in zip(alone, played(learner, range(7, 20)), strict=True))


@pytest.mark.parametrize("way", WAYS)
def test_traces_and_feedback_keep_their_numbers(plan: Any, way: str) -> None:
    trace = plan.run(DATA)
    again = WAYS[way](trace)
    for name in ("loss", "constraints", "duals", "decisions"):
        assert np.array_equal(getattr(again, name), getattr(trace, name)), name
    assert again.regret("static")[-1] == trace.regret("static")[-1] and str(again.summary()) == str(trace.summary())
    learner = plan.learner()
    learner.decide(need=1.0)
    feedback = learner.observe(price=[1, 2, 3], jobs=2)
    kept = WAYS[way](feedback)
    assert kept.loss == feedback.loss and np.array_equal(kept.violation, feedback.violation)


@pytest.mark.skipif(stepper() is None, reason="no C compiler")
@pytest.mark.parametrize("way", WAYS)
def test_feedback_of_compiled_learners_is_carried_and_shown_as_any(way: str) -> None:
    text = "model a\nhorizon T = 9\ndecision x[2] in box(0, 1)\nstream c[2] in [0, 1]\nminimize c @ x\n"
    text += "subject to\n    g: c @ x <= 0.1 each round\n"
    results = []
    for backend in ("c", "numpy"):
        learner = oco.compile(oco.parse(text), "coldq", settings="paper", backend=backend).learner()
        for _ in range(3):
            learner.decide()
            feedback = learner.observe(c=np.array([0.5, 0.25]))
        kept = WAYS[way](feedback)
        assert (kept.round, kept.loss) == (feedback.round, feedback.loss)
        assert np.array_equal(kept.constraints, feedback.constraints) and kept.equalities.shape == (0,)
        assert repr(kept) == repr(feedback)
        results.append(repr(kept))
    assert results[0] == results[1]


def last_decision(plan: Any) -> list[float]:
    return [float(v) for v in played(plan.learner(), range(20))[-1]]


def test_plans_go_to_the_processes_of_a_pool(plan: Any) -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(last_decision, plan).result(120) == last_decision(plan)


def test_plans_and_learners_go_to_the_workers_of_joblib(plan: Any) -> None:
    joblib = pytest.importorskip("joblib")
    learner = plan.learner()
    decisions = joblib.Parallel(2)(joblib.delayed(last_decision)(p) for p in (plan, plan))
    assert decisions == [last_decision(plan)] * 2
    assert (
        joblib.Parallel(2)([joblib.delayed(played)(learner, range(3))])[0][-1].tolist()
        == played(learner, range(3))[-1].tolist()
    )


def test_facts_of_data_do_not_travel() -> None:
    with pytest.raises(TypeError, match="as_data"):
        pickle.dumps(oco.check(MODEL, data=DATA))


def accepts(schema: dict[str, Any], value: Any) -> bool:
    """The few words of JSON schemas that are used here."""
    if schema["type"] == "object":
        known = set(value) <= set(schema["properties"]) and set(schema["required"]) <= set(value)
        return known and all(accepts(schema["properties"][n], v) for n, v in value.items())
    if schema["type"] == "array":
        return len(value) == schema["minItems"] == schema["maxItems"] and all(
            accepts(schema["items"], v) for v in value
        )
    whole = schema["type"] != "integer" or float(value).is_integer()
    return whole and schema.get("minimum", -np.inf) <= value <= schema.get("maximum", np.inf)


def test_schemas_accept_what_the_learner_takes(plan: Any) -> None:
    learner = plan.learner()
    schema = json.loads(json.dumps(learner.schema()))
    assert accepts(schema["decide"], {"need": 3.5}) and not accepts(schema["decide"], {"need": 9})
    right = {"price": [1, 2, 3], "jobs": 4}
    assert accepts(schema["observe"], right)
    for wrong in (
        {"price": [1, 2], "jobs": 4},
        {"price": [1, 2, 9], "jobs": 4},
        {"jobs": 4},
    ):
        assert not accepts(schema["observe"], wrong)
        learner.decide(need=1)
        with pytest.raises(oco.OcoError):
            learner.observe(wrong)
    assert accepts(schema["decision"], learner.decide().tolist())


class Row(NamedTuple):
    price: list[float]
    jobs: int


FLAT = {"time": "12:00", "price[0]": 1.5, "price[1]": 2.5, "price[2]": 3.5, "jobs": 4}
OF_ROWS = {
    "dict": {"price": [1.5, 2.5, 3.5], "jobs": 4},
    "named tuple": Row([1.5, 2.5, 3.5], 4),
    "series": pd.Series(FLAT),
    "polars row": pl.DataFrame([FLAT]).row(0, named=True),
    "polars table": pl.DataFrame([FLAT]),
    "polars table of lists": pl.DataFrame({"price": [[1.5, 2.5, 3.5]], "jobs": [4]}),
    "pandas table": pd.DataFrame([FLAT]),
    "pandas table of lists": pd.DataFrame({"price": [[1.5, 2.5, 3.5]], "jobs": [4]}),
    "arrow table": pl.DataFrame([FLAT]).to_arrow(),
    "zones": {"price.a": 1.5, "price.b": 2.5, "price.c": 3.5, "jobs": 4},
}


@pytest.mark.parametrize("kind", OF_ROWS)
def test_rows_are_observed_as_arguments_are(plan: Any, kind: str) -> None:
    learner = plan.learner()
    learner.decide(need=2)
    feedback = learner.observe(OF_ROWS[kind])
    assert feedback.values["price"].tolist() == [1.5, 2.5, 3.5] and feedback.values["jobs"] == 4


def test_other_things_are_no_rows(plan: Any) -> None:
    learner = plan.learner()
    learner.decide(need=2)
    with pytest.raises(oco.OcoError, match="a row is not of type SimpleNamespace"):
        learner.observe(SimpleNamespace(price=[1, 2, 3]))
    for table in (pd.DataFrame([FLAT, FLAT]), pl.DataFrame([FLAT, FLAT])):
        with pytest.raises(oco.OcoError, match="a round is one row, and this DataFrame has 2"):
            learner.observe(table)
    with pytest.raises(oco.OcoError, match="a round is one row, and this DataFrame has 0"):
        learner.observe(pd.DataFrame([FLAT]).iloc[:0])
    with pytest.raises(oco.OcoError, match="there is no `prize`"):
        learner.observe({"prize": [1, 2, 3], "jobs": 4})
    assert learner.round == 1


def test_a_plan_of_another_algorithm_is_asked_for_by_its_name(plan: Any) -> None:
    assert plan.only("recoo").algorithm == "recoo"
    with pytest.raises(oco.OcoError, match="did you mean `recoo`") as error:
        plan.only("reco")
    assert error.value.code == "OCO701"


def test_dir_lists_what_users_need(plan: Any) -> None:
    learner = plan.learner()
    for thing, names in (
        (plan, {"run", "learner", "explain", "write"}),
        (learner, {"decide", "observe", "schema", "save"}),
    ):
        assert names <= set(dir(thing)) and all(hasattr(type(thing), n) or hasattr(thing, n) for n in dir(thing))
        assert not [n for n in dir(thing) if n.startswith("_")]


def test_tables_of_runs(plan: Any) -> None:
    trace, other = plan.run(DATA), oco.compile(MODEL, "recoo", backend="numpy").run(DATA)
    table = trace.summary()
    assert table["loss"][0] == trace.loss.sum() and "static regret" in str(table) and "<table" in table._repr_html_()
    assert table.to_dataframe().loc["static regret", "measured"] == pytest.approx(trace.regret("static")[-1])
    both = trace.compare(other)
    assert both.columns == ("coldq", "recoo", "difference")
    assert both["loss"][2] == pytest.approx(other.loss.sum() - trace.loss.sum())
    assert json.loads(json.dumps(both.to_json()))["loss"]["coldq"] == trace.loss.sum()
    with pytest.raises(oco.OcoError, match="another number of rounds"):
        trace.compare(plan.run({n: a[:5] for n, a in DATA.items()}))
