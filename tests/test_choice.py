"""The choice: what is chosen for the examples, and why each other algorithm is not; that what it says would help does help."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from thorough import one_in, turns

from oco.compiler.algorithms import ALGORITHMS
from oco.compiler.selection.choice import Choice
from oco.compiler.selection.explain import explain_text
from oco.compiler.selection.plan import compile_plan, explain_choice
from oco.compiler.selection.verdicts import Applicability
from oco.compiler.theory.schedule import Rounds
from oco.compiler.theory.settings import along
from oco.compiler.theory.theorems import Violation
from oco.dsl.diagnostics import OcoError
from oco.dsl.load import load, parse

EXAMPLES = Path(__file__).parent.parent / "examples"
CHOSEN = {
    "tracking": "coldq",
    "online_qp": "nested",
    "job_scheduling": "nested",
    "datacenter": "mirror-descent",
    "portfolio": "mirror-descent",
}

CAPPED = """
model m
horizon T = 200
decision x[2] in box(0, 1)
stream c[2] in [-1, 1]
stream w ~ uniform(0, 1)
minimize c @ x
subject to
    cap: w * sum(x) <= 0.5 {timing}
{rest}
"""
PLAIN = "model m\nhorizon T = 200\ndecision x[3] in {domain}\nstream c[3] in [-1, 1]\nminimize c @ x\n{rest}"


def capped(timing: str = "each round", rest: str = "") -> str:
    return CAPPED.format(timing=timing, rest=rest)


def plain(domain: str, rest: str = "") -> str:
    return PLAIN.format(domain=domain, rest=rest)


def explained(text: str) -> Choice:
    return explain_choice(parse(text))


def reasons(choice: Choice, name: str) -> str:
    return " ".join(next(v for v in choice.verdicts if v.name == name).reasons)


def applicability(choice: Choice, name: str) -> Applicability:
    return next(v for v in choice.verdicts if v.name == name).applicability


@pytest.mark.parametrize("name", CHOSEN)
def test_examples(name: str) -> None:
    plan = compile_plan(load(EXAMPLES / f"{name}.oco"))
    assert plan.algorithm == CHOSEN[name]
    assert plan.guarantee is not None
    refused = [v for v in plan.verdicts if v.applicability is Applicability.REFUSED]
    assert refused and all(v.reasons for v in refused)


@pytest.mark.parametrize("name", [p.stem for p in sorted(EXAMPLES.glob("*.oco"))])
def test_explanations(name: str, golden: Callable[[str], None]) -> None:
    golden(explain_text(explain_choice(load(EXAMPLES / f"{name}.oco"))))


def test_a_model_that_no_algorithm_takes_says_what_is_missing() -> None:
    """A stream without bounds: the sentence names the nearest algorithm and a change that helps."""
    with pytest.raises(OcoError) as caught:
        compile_plan(parse(plain("box(0, 1)", "feedback bandit").replace("in [-1, 1]", "")))
    assert caught.value.code == "OCO708"
    assert "bgd" in caught.value.message and "in [lo, hi]" in caught.value.diagnostics[0].hint


@pytest.mark.parametrize("rest", ("", "feedback bandit", "measure dynamic regret"))
def test_equalities_on_average_beside_what_has_no_multipliers_are_two_inequalities(rest: str) -> None:
    """An equality beside a constraint of each round, under bandit feedback, or with dynamic regret gets a learner."""
    timing = "on average" if rest else "each round"
    choice = explained(capped(timing, "    even: x[0] - x[1] == 0    on average\n" + rest))
    assert choice.winner is not None
    labels = choice.situation.canonical.constraint_labels
    assert {"even.above", "even.below"} <= set(labels) and not choice.situation.canonical.equalities


def test_hard_constraints_get_a_hard_bound_and_soft_ones_go_to_mirror_descent() -> None:
    hard, soft = explained(capped()), explained(capped("on average"))
    assert (
        hard.winner is not None and hard.winner.theorem is not None and hard.winner.theorem.violation is Violation.HARD
    )
    assert applicability(hard, "coldq") is not Applicability.REFUSED
    assert "soft violation only" in reasons(hard, "mirror-descent")
    assert soft.winner is not None and soft.winner.name == "mirror-descent"
    assert applicability(soft, "coldq") is Applicability.APPLICABLE
    assert "in every round, not only on average" in reasons(soft, "coldq")


def test_an_adversary_in_an_average_constraint_refuses_mirror_descent() -> None:
    text = capped("on average").replace("w ~ uniform(0, 1)", "w in [0, 1]")
    choice = explained(text)
    assert "an adversary" in reasons(choice, "mirror-descent")
    assert applicability(choice, "coldq") is not Applicability.REFUSED


def test_dynamic_regret_asks_for_a_dynamic_bound() -> None:
    choice = explained(capped("each round", "measure dynamic regret"))
    assert choice.winner is not None and choice.winner.name == "coldq"
    assert choice.winner.guarantee is not None and choice.winner.guarantee.regret_bound.measure == "dynamic regret"
    assert "it bounds static regret" in reasons(choice, "mirror-descent")
    box = explained(plain("box(0, 1)", "measure dynamic regret\nassume path_length <= 3\n"))
    assert box.winner is not None and box.winner.name == "ogd"


def test_without_constraints_the_better_number_wins() -> None:
    """On a simplex of many entries the weights of oeg win over projections; in a box only ogd applies."""
    simplex = explained(plain("simplex").replace("[3]", "[30]"))
    assert simplex.winner is not None and simplex.winner.name == "oeg"
    assert "its guarantee is weaker" in reasons(simplex, "ogd")
    box = explained(plain("box(0, 1)"))
    assert box.winner is not None and box.winner.name == "ogd"
    assert "simplex" in reasons(box, "oeg")


@pytest.mark.parametrize(
    ("text", "name", "old", "new"),
    [
        (capped(), "mirror-descent", "each round", "on average"),
        (plain("box(0, 1)"), "oeg", "box(0, 1)", "simplex"),
        (capped("each round", "feedback gradient"), "coldq", "feedback gradient", "feedback full"),
        (
            capped("on average").replace("w ~ uniform(0, 1)", "w in [0, 1]"),
            "mirror-descent",
            "in [0, 1]\nmin",
            "~ uniform(0, 1)\nmin",
        ),
        (capped("each round", "measure dynamic regret"), "mirror-descent", "measure dynamic regret", ""),
    ],
)
def test_the_mend_mends(text: str, name: str, old: str, new: str) -> None:
    """Making the change that a refusal names leaves one objection less, or none."""
    before = next(v for v in explained(text).verdicts if v.name == name)
    after = next(v for v in explained(text.replace(old, new)).verdicts if v.name == name)
    assert before.applicability is Applicability.REFUSED and before.fix
    assert after.applicability is not Applicability.REFUSED or set(after.reasons) != set(before.reasons)


def test_using_is_obeyed_with_a_warning_where_nothing_is_guaranteed() -> None:
    plan = compile_plan(parse(capped("each round", "using mirror-descent with V = 3")))
    assert plan.algorithm == "mirror-descent" and plan.guarantee is None
    assert [w.code for w in plan.warnings if w.code.startswith("OCO7")] == ["OCO704"]
    assert plan.settings["V"].value == 3 and plan.settings["V"].given
    assert plan.settings["alpha"].value == 200 and not plan.settings["alpha"].given


def test_the_caller_goes_before_the_model() -> None:
    model = parse(capped("each round", "using coldq with epsilon = 0.25"))
    assert compile_plan(model).settings["gamma"].value == 50
    assert compile_plan(model, settings={"epsilon": 0.1}).settings["gamma"].value == 20
    assert compile_plan(model, settings={"gamma": "T / 8"}).settings["gamma"].value == 25
    assert compile_plan(model, algorithm="mirror-descent").algorithm == "mirror-descent"


def test_settings_outside_the_theorem_are_warned_of() -> None:
    plan = compile_plan(parse(capped("each round", "using coldq with alpha = 1 / t, eta = 2")))
    said = [w.message for w in plan.warnings if w.code == "OCO707"]
    assert any("must not decrease" in m for m in said) and any("between 0 and 1" in m for m in said)


def test_formulas_use_facts_and_settings() -> None:
    plan = compile_plan(parse(capped()), settings={"alpha": "domain.diameter.l2 * sqrt(t) * 2**0.5"})
    np.testing.assert_allclose(
        along(plan.settings["alpha"].formula, Rounds.every(9), 200).last, 2 * np.sqrt(np.arange(1, 10))
    )
    plan = compile_plan(parse(capped()), algorithm="coldq", settings={"alpha": "exp(t**2 / T**2)"})
    np.testing.assert_allclose(
        along(plan.settings["alpha"].formula, Rounds.every(9), 200).last, np.exp((np.arange(1, 10) / 200) ** 2)
    )


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        ("9**9**9**9", "too large"),
        ("__import__('os')", "cannot be read"),
        ("t if t else 1", "cannot be read"),
        ("open(t)", "no function"),
        ("unknown * t", "no value"),
        ("1 / 0", "divides by zero"),
        ("9 ** 99999999", "too large"),
    ],
)
def test_formulas_are_read_and_never_run(formula: str, said: str) -> None:
    with pytest.raises(OcoError) as caught:
        compile_plan(parse(capped()), settings={"alpha": formula})
    assert caught.value.code == "OCO721"
    assert said in caught.value.message


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"algorithm": "coldqq"}, "OCO701"),
        ({"algorithm": "coldq", "settings": {"rho": 1}}, "OCO702"),
        ({"algorithm": "coldq", "settings": {"alpha": "1 / (t - 5)"}}, "OCO722"),
        ({"algorithm": "coldq", "settings": {"alpha": "2**(t**2)"}}, "OCO722"),
        ({"algorithm": "coldq", "settings": {"alpha": "exp(exp(t))"}}, "OCO722"),
        ({"settings": "optimal", "tradeoff": -1.0}, "OCO709"),
        ({"settings": "optimal", "tradeoff": 1e300}, "OCO709"),
        ({"settings": "fast"}, "OCO709"),
    ],
)
def test_what_a_plan_cannot_be_made_of(options: dict[str, object], code: str) -> None:
    with pytest.raises(OcoError) as caught:
        compile_plan(parse(capped()), **options)  # type: ignore[arg-type]
    assert caught.value.code == code


def test_json_says_what_the_table_says() -> None:
    plan = compile_plan(parse(capped()), algorithm="coldq")
    data = json.loads(plan.to_json())
    assert data["version"] == 1 and data["algorithm"] == "coldq" and data["horizon"] == 200
    assert [v["algorithm"] for v in data["verdicts"]] == [v.name for v in plan.verdicts]
    assert plan.guarantee is not None
    assert data["guarantee"]["bounds"][0]["number"] == pytest.approx(plan.guarantee.regret())
    assert data["settings"]["eta"] == {"formula": "1/T", "value": 0.005, "why": "1/T (Corollary 1)", "given": False}


@pytest.mark.parametrize(("feedback", "horizon"), turns(["", "feedback bandit\n"], ["T = 100", "T unknown"]))
@pytest.mark.parametrize("algorithm", one_in(2, [a.name for a in ALGORITHMS]))
def test_asking_for_an_algorithm_where_nothing_is_bounded_runs_or_says_why(algorithm, feedback, horizon):
    text = (
        f"model m\nhorizon {horizon}\ndecision x[3] in ball(1)\nstream a[3]\nstream c[3]\n"
        f"minimize sum_squares(x - a)\nsubject to\n    cap: c @ x <= 0.25  each round\n{feedback}"
    )
    try:
        plan = compile_plan(parse(text), algorithm=algorithm)
    except OcoError as error:
        assert error.code in ("OCO705", "OCO706")
    else:
        assert plan.guarantee is None
        assert plan.program.decide is not None


UNUSED = """
model unused
horizon T = 100
decision x[3] in box(0, 1)
stream c[3] in [-1, 1]
minimize c @ x
subject to
    side: sum(x) <= 2 each round
"""


@pytest.mark.parametrize(
    ("algorithm", "settings", "said"),
    [
        ("coldq", {"mu": 2}, "the setting mu has no effect"),
        (None, {"theta": 0.1}, "the setting theta has no effect"),
        ("coldq", {"mu": 2, "alpha": "mu * t"}, ""),
        ("coldq", {"epsilon": 0.3}, ""),
        ("sinha-vaze", {"alpha_f": 2, "V": 3}, ""),
    ],
)
def test_settings_without_effect_are_named(algorithm: str | None, settings: dict[str, float | str], said: str) -> None:
    warnings = [w for w in compile_plan(parse(UNUSED), algorithm, settings).warnings if w.code == "OCO712"]
    assert [w.message[: len(said)] for w in warnings] == ([said] if said else [])
    assert all(w.hint for w in warnings)
    if algorithm == "coldq" and said:
        assert "Theorems 2 and 3 uses it, but the loss is not known to be strongly convex" in warnings[0].hint


@pytest.mark.parametrize("text", [UNUSED, UNUSED.replace("= 100", "unknown"), UNUSED.split("subject")[0]])
@pytest.mark.parametrize("change", [("c @ x", "c @ x"), ("c @ x", "t * sum(x)"), ("each round", "on average")])
def test_every_refusal_says_what_would_mend_it(text: str, change: tuple[str, str]) -> None:
    for verdict in explain_choice(parse(text.replace(*change))).verdicts:
        assert verdict.applicability is not Applicability.REFUSED or verdict.fix, verdict.reasons


def test_the_table_has_a_line_for_each_algorithm() -> None:
    """The sum is that of the verdict; what is refused has none and says why in the first words of its reason."""
    choice = explain_choice(load(EXAMPLES / "online_qp.oco"))
    lines = explain_text(choice).split("\n\n")[2].splitlines()[1:]
    starts = [line for line in lines if not line.startswith(" ")]
    assert [line.split()[0] for line in starts] == [v.name for v in choice.verdicts]
    for line, v in zip(starts, choice.verdicts):
        total = line.split()[1]
        assert (
            total == "-"
            if v.applicability is Applicability.REFUSED
            else float(total) == pytest.approx(v.score, rel=1e-4)
        )
        first = line[30:].split(" (and")[0].removeprefix("applies: ").removeprefix("chosen: ")
        assert v.reasons and first and first.split("; ")[-1] in v.reasons[0]


@pytest.mark.parametrize("name", ["projection-free", "meta-frank-wolfe", "mahdavi", "jenatton"])
def test_an_equality_on_average_is_mended_for_soft_methods_too(name: str) -> None:
    """Written as two inequalities on average it is in the way of none of them; `each round` would be."""
    text = (
        "model m\nhorizon T = 2000\ndecision x[2] in box(0, 1)\nstream p[2] iid in [-1, 1]\nminimize p @ x + sum_squares(x)\n"
        "subject to\n    even: x[0] == x[1] on average\n"
    )
    verdict = next(v for v in explain_choice(parse(text)).verdicts if v.name == name)
    assert verdict.applicability is Applicability.REFUSED and "two inequalities on average" in verdict.fix
    pair = "low: x[0] - x[1] <= 0 on average\n    high: x[1] - x[0] <= 0 on average"
    mended = explain_choice(parse(text.replace("even: x[0] == x[1] on average", pair)))
    assert next(v for v in mended.verdicts if v.name == name).applicability is not Applicability.REFUSED


LARGE_MATRIX = """model large
horizon T = 50
decision X[700, 700] in nuclear_ball(5)
stream row in 0..699
stream column in 0..699
stream rating in [-1, 1]
minimize 0.5 * (X[row, column] - rating) ** 2
"""


@pytest.mark.parametrize(
    "name, constraint", [("ogd", ""), ("sinha-vaze", "subject to\n    c: X[row, 0] <= 1 each round\n")]
)
def test_full_decompositions_of_large_matrices_are_for_those_who_ask(name: str, constraint: str) -> None:
    """No algorithm that projects is chosen; one that is asked for keeps its guarantee."""
    text = LARGE_MATRIX + constraint
    plan = compile_plan(parse(text))
    assert plan.algorithm in ("ofw", "ofw-tvc")
    refused = next(v for v in plan.choice.verdicts if v.name == name)
    assert "decompose a matrix of 700 x 700" in refused.reasons[0] and "by its name" in refused.fix
    asked = compile_plan(parse(text), name)
    assert asked.guarantee is not None and asked.guarantee.regret_bound is not None
