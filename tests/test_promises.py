"""Promises in Lean: what is true is accepted, no changed statement is, and the bounds hold on runs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from thorough import corners, thorough
from typer.testing import CliRunner

import oco
from oco.cli.app import app_for
from oco.compiler.promises.checking import verify_promise, verify_statements
from oco.compiler.promises.lean_terms import NotRead, formula_value
from oco.compiler.promises.making import above, promise_of_plan, root_above
from oco.compiler.promises.promise import LeanPromise
from oco.compiler.promises.reading import read_promise
from oco.compiler.promises.rendering import render
from oco.compiler.promises.steps import ArithmeticRule
from oco.dsl.diagnostics import OcoError

HEAD = "model m\nhorizon T = 400\n"
MODELS = {
    "ogd": HEAD + "decision x[3] in box(0, 1)\nstream a[3] in [-1, 2]\nminimize a @ x\nusing ogd\n",
    "curved": HEAD + "decision x[2] in box(-1, 2)\nstream a[2] in [-0.3, 1]\nstream w in [0, 2]\n"
    "minimize w * square(x[0] - a[0]) + (x[1] * a[1]) / (1 + w)\nusing ogd\n",
    "strong": HEAD + "decision x[2] in box(-1, 1)\nstream a[2] in [-1, 1]\nminimize sum_squares(x - a)\nusing ogd\n",
    "tracking": HEAD
    + "decision x[2] in box(-1, 1)\nstream a[2] in [-1, 1]\nstream b in [0, 1]\nminimize sum_squares(x - a)\n"
    "subject to\n    cap: sum(x) <= b each round\nusing nested\n",
    "oeg": HEAD + "decision x[5] in simplex\nstream a[5] in [0, 0.7]\nminimize a @ x\nusing oeg\n",
    "nested": HEAD
    + "decision x[2] in box(0, 2)\ndecision y in box(-1, 1)\nstream a[2] in [-1, 2]\nstream b[2] in [0.5, 2]\n"
    "minimize a @ x + y\nsubject to\n    need: x[0] + 2 * x[1] >= b[0] + square(b[1]) / 4 each round\n"
    "    curve: square(y) + x[0] <= 2.5 + b[1] each round\n    still: x[0] - x[1] <= 1 each round\nusing nested\n",
}


@cache
def plan_of(name: str) -> Any:
    return oco.compile(oco.parse(MODELS[name]))


@cache
def promise_of(name: str) -> LeanPromise:
    return promise_of_plan(plan_of(name))


def refusal(check: Callable[..., Any], *args: Any) -> str:
    """Message of OCO871; "" where nothing is refused."""
    try:
        check(*args)
    except OcoError as error:
        assert error.code == "OCO871", error
        return error.message
    return ""


@pytest.mark.parametrize("name", MODELS)
def test_a_true_promise_is_accepted(name: str) -> None:
    """The file says what the plan does, with a bound that is at most 10% above the guarantee in doubles, and never below its formula."""
    promise, plan = promise_of(name), plan_of(name)
    text = plan.lean()
    assert verify_promise(text) == read_promise(text) == promise
    assert float(promise.regret) >= plan.guarantee.regret() * (1 - 1e-9)
    if name != "curved":
        assert float(promise.regret) <= 1.1 * plan.guarantee.regret()
    assert "sorry" not in text and "native_decide" not in text
    assert text.count("namespace") == text.count("end Promise") == 1


@pytest.mark.parametrize("name", corners(MODELS, [name for name in MODELS if name != "nested"]))
def test_the_bounds_hold_on_runs(name: str) -> None:
    """Regret and violation of random and of alternating data, and every gradient within its slopes."""
    promise, plan = promise_of(name), plan_of(name)
    vectors, rng = dict(promise.vectors), np.random.default_rng(0)
    for kind in range(3):
        data = {}
        for s in plan.canonical.streams:
            u = rng.random((400, *s.shape))
            u = (
                u
                if kind == 0
                else np.round(u)
                if kind == 1
                else np.broadcast_to((np.arange(400) % 2).reshape(-1, *(1,) * len(s.shape)), u.shape)
            )
            data[s.name] = s.lower + (s.upper - s.lower) * u
        trace = plan.run(data, backend="numpy")
        assert trace.regret("static")[-1] <= float(promise.regret)
        if promise.constraint_steps:
            broken = np.maximum(trace.constraints, 0).sum(axis=0)
            assert (broken <= np.array([float(v) for v in promise.violation]) + 1e-9).all()
    assert len(vectors["slope"]) == plan.canonical.size


def test_intervals_enclose_the_computation() -> None:
    """Steps at random decisions and data, in fractions."""
    rng = np.random.default_rng(1)
    for name in MODELS:
        promise = promise_of(name)
        vectors = dict(promise.vectors)
        for _ in range(30):
            draw = {
                rule: [
                    low + (high - low) * Fraction(int(rng.integers(0, 9)), 8)
                    for low, high in zip(vectors[a], vectors[b])
                ]
                for rule, a, b in (
                    (ArithmeticRule.DECISION, "lower", "upper"),
                    (ArithmeticRule.STREAM, "least", "most"),
                )
            }
            values: list[Fraction] = []
            for step, (low, high) in zip(promise.steps, promise.bounds):
                own = (
                    [values[k] for k in step.args]
                    if step.rule not in draw and step.rule is not ArithmeticRule.NUMBER
                    else []
                )
                match step.rule:
                    case ArithmeticRule.DECISION | ArithmeticRule.STREAM:
                        value = draw[step.rule][step.args[0]]
                    case ArithmeticRule.NUMBER:
                        value = step.value
                    case ArithmeticRule.NEG:
                        value = -own[0]
                    case ArithmeticRule.INV:
                        value = 1 / own[0]
                    case _:
                        value = {"add": own[0] + own[1], "sub": own[0] - own[1], "mul": own[0] * own[1]}[
                            step.rule.value
                        ]
                assert low <= value <= high
                values.append(value)


def changed_number(text: str, rng: np.random.Generator) -> str:
    """Text with another numeral in one place: of the model, the data, a statement, a lemma or a proof."""
    places = list(re.finditer(r"\d+", text))
    at = places[int(rng.integers(len(places)))]
    other = str(int(at[0]) + int(rng.choice([-1, 1, 2, 10]))).replace("-", "") or "7"
    return text[: at.start()] + (other if other != at[0] else "7" + other) + text[at.end() :]


def changed_statement(promise: LeanPromise, rng: np.random.Generator) -> LeanPromise:
    """Promise with one false or unfounded fact, as one writes it who knows the format."""
    factor = Fraction(int(rng.choice([-3, -1, 1, 2, 7])), int(rng.choice([2, 3, 1000, 10**9])))

    def moved(v: Fraction) -> Fraction:
        return v + factor * (1 + abs(v))

    kind = int(rng.integers(7))
    if kind == 0:
        k = int(rng.integers(len(promise.numbers)))
        pairs = [(n, moved(v) if j == k else v) for j, (n, v) in enumerate(promise.numbers)]
        return replace(promise, numbers=tuple(pairs))
    if kind == 1:
        k = int(rng.integers(len(promise.vectors)))
        name, values = promise.vectors[k]
        at = int(rng.integers(len(values)))
        row = (name, tuple(moved(v) if j == at else v for j, v in enumerate(values)))
        return replace(promise, vectors=(*promise.vectors[:k], row, *promise.vectors[k + 1 :]))
    if kind == 2:
        k, side = int(rng.integers(len(promise.bounds))), int(rng.integers(2))
        ends = list(promise.bounds[k])
        ends[side] = moved(ends[side])
        return replace(promise, bounds=(*promise.bounds[:k], (ends[0], ends[1]), *promise.bounds[k + 1 :]))
    if kind == 3:
        own = [
            k
            for k, s in enumerate(promise.steps)
            if s.rule in (ArithmeticRule.ADD, ArithmeticRule.SUB, ArithmeticRule.MUL)
        ]
        if own:
            k = int(rng.choice(own))
            rules = [
                r
                for r in (ArithmeticRule.ADD, ArithmeticRule.SUB, ArithmeticRule.MUL)
                if r is not promise.steps[k].rule
            ]
            step = replace(promise.steps[k], rule=rules[int(rng.integers(2))])
            return replace(promise, steps=(*promise.steps[:k], step, *promise.steps[k + 1 :]))
    if kind == 4 and promise.at_point:
        at = int(rng.integers(len(promise.at_point)))
        k, (low, high) = promise.at_point[at]
        row_at = (k, (low, moved(high)))
        return replace(promise, at_point=(*promise.at_point[:at], row_at, *promise.at_point[at + 1 :]))
    if kind == 5:
        k = int(rng.integers(len(promise.inequalities)))
        row_of = promise.inequalities[k]
        other = (
            replace(row_of, left=row_of.right, right=row_of.left) if rng.random() < 0.5 else replace(row_of, left="0")
        )
        other = other if other != row_of else replace(row_of, right="R")
        return replace(promise, inequalities=(*promise.inequalities[:k], other, *promise.inequalities[k + 1 :]))
    counts = [(n, v + int(rng.integers(1, 50)) if n == "T" else v) for n, v in promise.counts]
    return replace(promise, counts=tuple(counts))


@pytest.mark.parametrize("mutations", [120, thorough(1000)])
def test_mutations_are_refused(mutations: int) -> None:
    """Numerals of the file changed, and facts and constants changed by one who writes the rest of the file anew: none is accepted."""
    rng, names = np.random.default_rng(0), list(MODELS)
    refused = by_arithmetic = by_file = forged = 0
    texts = {name: render(promise_of(name)) for name in names}
    for k in range(mutations):
        name = names[k % len(names)]
        if k % 2:
            changed = changed_statement(promise_of(name), rng)
            forged += 1
            by_arithmetic += bool(refusal(verify_statements, changed))
            text = render(changed)
        else:
            text = changed_number(texts[name], rng)
        assert text != texts[name]
        if why := refusal(verify_promise, text, promise_of(name)):
            refused += 1
            by_file += "the plan gives" not in why
    assert refused == mutations
    assert by_file >= 0.99 * mutations, (
        "without the plan, a step is accepted that is so near that ten digits of the bound are the same"
    )
    assert by_arithmetic >= 0.6 * forged, "most are false, the others true and weaker than what the model gives"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda m: m.replace("using ogd", "using ofw"), "OCO870"),
        (lambda m: m.replace("horizon T = 400", "horizon T unknown"), "OCO870"),
        (lambda m: m.replace("box(0, 1)", "ball(3)").replace("x[3] in", "x[3] in"), "OCO870"),
        (lambda m: m.replace("a @ x", "a @ x + norm1(x)"), "OCO870"),
        (lambda m: m.replace("a @ x", "sum(exp(x))"), "OCO870"),
    ],
)
def test_what_is_outside_of_the_family_says_so(change: Callable[[str], str], why: str) -> None:
    with pytest.raises(OcoError) as error:
        oco.compile(oco.parse(change(MODELS["ogd"]))).lean()
    assert error.value.code == why and error.value.message


def test_the_lemmas_hold_in_numbers() -> None:
    """Inequalities that the Lean files prove, at many points: a slip in a statement would show."""
    rng = np.random.default_rng(2)
    z, rho = rng.uniform(-1, 1, 10**5), rng.uniform(0, 1, 10**5)
    z = z * rho
    assert (np.exp(z) <= 1 + z + (0.5 + 2 * rho / 9) * z**2 + 1e-15).all()
    A, a = rng.exponential(1, 10**5), rng.exponential(1, 10**5)
    assert (a / np.sqrt(A + a) <= 2 * (np.sqrt(A + a) - np.sqrt(A)) + 1e-12).all()
    b = rng.normal(size=(1000, 20))
    phi = rng.normal(size=1000) - b.max(axis=1)
    first, best = phi + b[:, 0], np.maximum.accumulate(b, axis=1)
    total = np.maximum(first, 0) + sum(np.maximum(b[:, t] - best[:, t - 1], 0) for t in range(1, 20))
    assert (total <= np.maximum(first, 0) + best[:, -1] - b[:, 0] + 1e-12).all()


def test_formulas() -> None:
    numbers, vectors = {"R": Fraction(3), "L": Fraction(2)}, {"b": (Fraction(1), Fraction(2))}
    for text, value in (
        ("2 * (R : ℝ) ^ 2 - 1 / 2", Fraction(35, 2)),
        ("∑ i, (b i - 1) ^ 2", Fraction(1)),
        ("-R * (1 + 1)", Fraction(-6)),
        ("∑ k ∈ range 3, L ^ k / (Nat.factorial k : ℝ)", Fraction(5)),
    ):
        assert formula_value(text, numbers, vectors) == value
    assert formula_value("b i", numbers, vectors, {"i": 1}) == 2
    for wrong in ("R +", "x", "R / (R - R)", "(R", "b i", "R ^ R", "1 $ 2", "R R"):
        with pytest.raises(NotRead):
            formula_value(wrong, numbers, vectors)


def test_numbers_are_rounded_upwards() -> None:
    rng = np.random.default_rng(3)
    for _ in range(300):
        value = Fraction(float(rng.exponential() * 10.0 ** rng.integers(-8, 9)))
        root = root_above(value)
        assert root**2 >= value and float(root) == pytest.approx(math.sqrt(value), rel=1e-8)
        assert value <= above(value) <= value * (1 + Fraction(1, 10**8))
    assert root_above(Fraction(49, 4)) == Fraction(7, 2) and above(Fraction(0)) == root_above(Fraction(0)) == 0


def test_commands(tmp_path: Any) -> None:
    """`oco prove` writes a file that `oco verify-promise` accepts; a changed one ends with status 1."""
    model, lean = tmp_path / "m.oco", tmp_path / "out.lean"
    model.write_text(MODELS["nested"])
    words = ["prove", str(model), "--lean", str(lean)]
    result = CliRunner().invoke(app_for(words), words)
    assert result.exit_code == 0 and "regret at most" in result.output
    check = ["verify-promise", str(lean)]
    assert "verified" in CliRunner().invoke(app_for(check), check).output
    lean.write_text(lean.read_text().replace("def R : ℝ := ", "def R : ℝ := 1"))
    assert CliRunner().invoke(app_for(check), check).exit_code != 0
    assert CliRunner().invoke(app_for(words), words).exit_code != 0, "the file is there already"
