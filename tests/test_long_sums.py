"""Sums of many terms: as text, in the builder, printed, proved and run, against Python and against the same sum over vectors."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import thorough

import oco
from oco.compiler.problem.calculus import gradient
from oco.compiler.problem.canonical import canonical
from oco.compiler.problem.vectorize import LikeTerms
from oco.dsl import limits
from oco.dsl.chains import PLAIN, balanced
from oco.dsl.diagnostics import OcoError
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Expr, Kind, Name, walk
from oco.dsl.load import parse
from oco.dsl.text import parser
from oco.dsl.text.latex import expression_latex
from oco.dsl.text.printer import print_expr, print_model


def model(loss: str, n: int, before: str = "") -> str:
    head = f"model m\nhorizon T = 50\n{before}decision x[{n}] in box(0, 1)\nstream c[{n}] in [-1, 2]\n"
    return f"{head}minimize {loss}\n"


def products(n: int) -> str:
    return " + ".join(f"x[{i}] * c[{i}]" for i in range(n))


def depth(expr: Expr) -> int:
    levels: dict[int, int] = {}
    for node in walk(expr):
        levels[id(node)] = 1 + max((levels[id(c)] for c in node.children), default=0)
    return levels[id(expr)]


def signed(terms: list[str], signs: list[bool]) -> str:
    rest = (f" {'-' if minus else '+'} {term}" for minus, term in zip(signs, terms[1:]))
    return "".join([terms[0], *rest])


# ---- as text


@pytest.mark.parametrize("n", [PLAIN, PLAIN + 1, 300, *map(thorough, (1000, 3000))])
def test_long_sums_are_read_printed_and_evaluated(n):
    read = parse(model(products(n), n))
    assert read.objective is not None
    assert depth(read.objective) <= (n + 2 if n <= PLAIN else 16)
    printed = print_model(read)
    assert f"minimize {products(n)}\n" in printed
    assert parse(printed) == read
    rng = np.random.default_rng(n)
    x, c = rng.uniform(size=n), rng.normal(size=n)
    assert evaluate(read.objective, {"x": x, "c": c}) == pytest.approx(x @ c, rel=1e-12)
    assert expression_latex(read.objective).count("\\left(") == 0


def nested(draw, deep: int) -> str:
    """A sum of integers and of sums in brackets."""
    count = draw(st.sampled_from([1, 2, 3, 5, 63, 64, 65, 66, 97, 128, 129]))
    term = st.integers(0, 99).map(lambda k: f"x[{k % 4}]" if k % 3 else str(k))
    terms = [draw(term) for _ in range(min(count, 8))]
    terms = [terms[(k * k) % len(terms)] for k in range(count)]
    if deep:
        for _ in range(draw(st.integers(0, 2))):
            terms[draw(st.integers(0, count - 1))] = f"({nested(draw, deep - 1)})"
    seed = draw(st.integers(0, 2**32 - 1))
    return signed(terms, list(np.random.default_rng(seed).random(count - 1) < 0.5))


@given(st.data())
@settings(max_examples=settings().max_examples // 2)
def test_signs_are_those_of_python(data):
    text = nested(data.draw, 2)
    read = parse(model(f"x[0] + {text}", 4))
    assert read.objective is not None
    x = np.array([3.0, -1.0, 0.5, 8.0])  # sums of these are exact
    expected = eval(f"x[0] + {text}", {"x": x})
    assert evaluate(read.objective, {"x": x}) == expected
    assert parse(print_model(read)) == read
    again = LikeTerms()(read.objective)
    assert evaluate(again, {"x": x}) == expected
    slope = gradient(again, ("x",))["x"]
    plain = np.array([evaluate(read.objective, {"x": x + e}) - expected for e in np.eye(4)])
    np.testing.assert_array_equal(np.broadcast_to(evaluate(slope, {"x": x}), 4), plain)


def test_a_long_sum_in_a_long_sum_is_read_back():
    """The inner one opens so that the whole could be one of a term more, whose halves would merge with the sum in brackets."""
    inner = " + ".join(["x[2]"] * 63)
    middle = " + ".join(["x[1]"] * 73 + [f"({inner})"] + ["x[1]"] * 23)
    for place in (0, 25, 26, 27, 96):
        terms = ["x[0]"] * 97
        terms[place] = f"({middle})"
        read = parse(model("x[3] + " + " + ".join(terms), 4))
        assert parse(print_model(read)) == read, place


def test_short_sums_stay_nested_to_the_left():
    text = " - ".join(["x[0]"] * PLAIN)
    read = parse(model(text, 1))
    assert read.objective is not None and depth(read.objective) == PLAIN + 1
    assert balanced(read.objective) is read.objective and LikeTerms()(read.objective) is read.objective


def test_mistakes_in_long_sums_are_told_at_their_place():
    terms = [f"x[{i}] * c[{i}]" for i in range(400)]
    terms[299] = "x[299] * y[299]"
    text = model(" + ".join(terms), 400)
    with pytest.raises(OcoError) as caught:
        parse(text)
    assert [e.code for e in caught.value.errors] == ["OCO201"]
    span = caught.value.errors[0].span
    assert span is not None and span.text == "y" and span.start == text.index("y[299]")
    terms[299] = "c[0:2]"
    text = model("x[0] + sum(c[0:3] + " + " + ".join(terms) + ")", 400)
    with pytest.raises(OcoError) as caught:
        parse(text)
    span = caught.value.errors[0].span
    assert caught.value.code == "OCO301" and span is not None and span.end == text.index("c[0:2]") + len("c[0:2]")


def test_too_many_terms_are_refused(monkeypatch):
    """Where so many terms would fill the memory; here the limit is set lower."""
    most = 1000
    for module in (limits, parser):
        monkeypatch.setattr(module, "MOST_PARTS", most)
    text = " + ".join(["x[0]"] * (most + 1))
    with pytest.raises(OcoError) as caught:
        parse(model(text, 1))
    assert caught.value.code == "OCO130"
    builder = oco.Model("m", horizon=5)
    x = builder.decision("x", domain=oco.box(0, 1))
    with pytest.raises(OcoError) as caught:
        builder.minimize(sum([x] * (most + 1)))
    assert caught.value.code == "OCO130"
    prefix, total = x, x
    for _ in range(250):  # sums that share their beginnings are as many terms as when they are written out
        prefix = prefix + x
        total = total + oco.square(prefix)
    with pytest.raises(OcoError) as caught:
        builder.minimize(total)
    assert caught.value.code == "OCO130"


# ---- in the builder


def test_the_builder_says_the_same():
    n = 300
    builder = oco.Model("m", horizon=50)
    x = builder.decision("x", n, domain=oco.box(0, 1))
    c = builder.stream("c", n, bounds=(-1, 2))
    total = x[0] * c[0]
    for i in range(1, n):
        total = total - x[i] * c[i] if i % 3 else total + x[i] * c[i]
    builder.minimize(total)
    builder.subject_to(sum(x[i] for i in range(n)) <= 7, name="cap")
    built = builder.build()
    assert parse(builder.to_oco()) == built
    rng = np.random.default_rng(0)
    at = {"x": rng.uniform(size=n), "c": rng.normal(size=n)}
    signs = np.where((np.arange(n) % 3 != 0) & (np.arange(n) > 0), -1.0, 1.0)
    assert built.objective is not None
    assert evaluate(built.objective, at) == pytest.approx((signs * at["x"]) @ at["c"], rel=1e-11)
    assert evaluate(built.constraints[0].left, at) == pytest.approx(at["x"].sum())


# ---- alike terms


def objective(loss: str, n: int, before: str = "") -> Expr:
    return canonical(parse(model(loss, n, before))).objective


def test_alike_terms_are_a_product_of_vectors():
    assert print_expr(objective(products(100), 100)) == "x @ c"
    assert print_expr(objective(products(100), 130)) == "x[0:100] @ c[0:100]"
    signs = signed([f"x[{i}] * c[{i}]" for i in range(100)], [i % 2 == 0 for i in range(99)])
    assert print_expr(objective(signs, 100)).count("@") == 2
    weighted = " + ".join(f"{i + 1} * x[{i}]" for i in range(100)) + " + x[0] * c[5] + exp(x[3])"
    found = objective(weighted, 100)
    at = {"x": np.linspace(0, 1, 100), "c": np.linspace(-1, 2, 100)}
    assert evaluate(found, at) == pytest.approx(np.arange(1, 101) @ at["x"] + np.exp(at["x"][3]))
    assert sum(1 for _ in walk(found)) < 20


LOSSES = [
    lambda i: f"exp(0.{i % 9 + 1} * x[{i % 40}])",
    lambda i: f"square(x[{i % 3}] - {i / 100})",
    lambda i: f"(x[{i % 40}] + c[{(7 * i) % 40}]) ** {2 + i % 2}",
    lambda i: f"logistic(c[{i % 40}] * x[{(i * i) % 40}]) / {i + 1}",
    lambda i: f"maximum(x[{i % 40}], c[1], {i % 2})",
    lambda i: f"x[{i % 40}] * x[{(i + 1) % 40}]",
    lambda i: f"abs(x[{i % 40}] - x[39])",
    lambda i: f"huber(x[{i % 40}], {1 + i % 2})",
    lambda i: f"sum(c) * x[{i % 40}]",
]


@given(st.lists(st.sampled_from(LOSSES), min_size=1, max_size=4), st.integers(65, 160), st.integers(0, 10**6))
@settings(max_examples=settings().max_examples // 4)
def test_terms_put_together_keep_value_and_gradient(kinds, count, seed):
    rng = np.random.default_rng(seed)
    terms = [kinds[i % len(kinds)](int(rng.integers(200))) for i in range(count)]
    read = parse(model(signed(terms, list(rng.random(count - 1) < 0.4)), 40))
    assert read.objective is not None
    found = LikeTerms()(read.objective)
    at = {"x": rng.uniform(0.1, 0.9, 40), "c": rng.normal(size=40)}
    size = float(evaluate(parse(model(" + ".join(f"abs({t})" for t in terms), 40)).objective, at))
    assert abs(evaluate(found, at) - evaluate(read.objective, at)) <= 1e-13 * (1 + size) * count
    slopes = [np.broadcast_to(evaluate(gradient(e, ("x",))["x"], at), 40) for e in (found, read.objective)]
    np.testing.assert_allclose(*slopes, rtol=1e-9, atol=1e-12 * (1 + size))


def test_gradients_of_long_sums_of_many_kinds():
    """Terms that stay apart: the shares of their gradients are one list of entries."""
    n = 300
    x = Name("x", Kind.DECISION, shape=(n,))
    text = " + ".join(("exp", "square", "logistic")[i % 3] + f"(x[{i}] * sum(c) * c[{i}])" for i in range(n))
    read = parse(model(text, n)).objective
    assert read is not None
    rng = np.random.default_rng(1)
    at = {x.name: rng.uniform(size=n), "c": rng.normal(size=n) / 10}
    slope = gradient(read, ("x",))["x"]
    assert depth(slope) < 60
    k, u = np.arange(n) % 3, at["x"] * at["c"].sum() * at["c"]
    derivative = np.select([k == 0, k == 1], [np.exp(u), 2 * u], 1 / (1 + np.exp(-u)))
    np.testing.assert_allclose(evaluate(slope, at), derivative * at["c"].sum() * at["c"], rtol=1e-12)


# ---- facts and programs


@pytest.mark.parametrize("n", [100, thorough(3000)])
def test_facts_are_those_of_the_vector_form(n):
    facts, vector = oco.check(parse(model(products(n), n))), oco.check(parse(model("x @ c", n)))
    assert list(facts) == list(vector)
    for key in facts:
        assert facts[key].status is vector[key].status, key
        assert repr(facts[key].value) == repr(vector[key].value), key


def test_long_sums_run_as_their_vector_form():
    n = 1000
    loss = " + ".join(f"c[{i}] * x[{i}]" for i in range(n))
    data = {"c": np.random.default_rng(3).uniform(-1, 2, (20, n))}
    long, short = (oco.compile(parse(model(text, n))) for text in (loss, "c @ x"))
    for backend in ("numpy", "c"):
        one, other = (plan.source(backend).splitlines() for plan in (long, short))
        differ = [a for a, b in zip(one, other, strict=True) if a != b]
        assert "minimize" in differ[0], "the model as it was written"
        assert 0 < len(differ[1:]) <= 2 and all(re.search("[0-9a-f]{16}", line) for line in differ[1:]), "its hash"
    losses = [plan.run(data, rounds=20).loss for plan in (long, short)]
    np.testing.assert_array_equal(*losses)


def test_terms_that_stay_apart_run_alike_on_both_backends():
    n = PLAIN + 2
    text = " + ".join(("exp", "square", "logistic")[i % 3] + f"(x[{i}] * sum(c) * c[{i}] / 100)" for i in range(n))
    # What is proved of curvature counts for nothing here, and takes most of the time.
    plan = oco.compile(parse(model(text, n) + "assume loss.lipschitz.l2 <= 1000\n"), "ogd", "paper", effort=1e-3)
    one, other = (plan.learner(backend=backend) for backend in ("numpy", "c"))
    for c in np.random.default_rng(4).uniform(-1, 2, (10, n)):
        np.testing.assert_allclose(one.decide(), other.decide(), rtol=1e-9, atol=1e-12)
        for learner in (one, other):
            learner.decide()
            learner.observe(c=c)
    assert np.ptp(one.decide()) > 0.0
