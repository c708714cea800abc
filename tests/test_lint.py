"""Rules of lint: each warns of its mistake, is quiet once it is repaired, and quiet where there is none."""

from __future__ import annotations

import re
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest

from oco.cli.files import templates
from oco.compiler.problem.canonical import canonical
from oco.compiler.prover.context import ProofContext
from oco.compiler.prover.mixed_units import mixed_units
from oco.dsl.codes import CODES, Stage
from oco.dsl.lint.text_rules import TEXT_RULES, lint_text
from oco.dsl.load import parse
from oco.dsl.source import Source
from oco.linting import RULES, ModelText, Reads, lint

ROOT = Path(__file__).parent.parent
HEAD = "model m\nhorizon T = 1000\ndecision x[3] in box(0, 1)\nstream c[3] in [-1, 1]\n"
NAMED = (
    'model m\nhorizon T = 1000\nindex zone = [B, "NEW YORK", A]\ndecision x[zone] in box(0, 1)\nstream c[zone] in [-1, 1]\n'
    "minimize c @ x\nsubject to\n"
)
CHEAP = frozenset(code for code, reads in RULES.items() if reads is not Reads.PLAN)


def codes(text: str, wanted: frozenset[str] = CHEAP, data: dict[str, np.ndarray] | None = None) -> list[str]:
    """Codes of the warnings about a text."""
    return [d.code for d in lint(ModelText(Source("m.oco", text), {}), wanted, data)]


def test_the_table_has_every_code_of_lint() -> None:
    assert {c for c, row in CODES.items() if row.stage is Stage.LINT} <= RULES.keys() <= CODES.keys()
    assert {c for c, reads in RULES.items() if reads is Reads.TEXT} == TEXT_RULES.keys()


def test_the_page_lists_every_rule_with_what_it_reads() -> None:
    page = (ROOT / "docs/lint.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (OCO\d{3}) \| .* \| (\w+) \|", page, re.MULTILINE)
    assert dict(rows) == {code: str(reads).split()[-1] for code, reads in RULES.items()}


def test_the_page_calls_every_rule_by_its_title() -> None:
    """More may follow behind the title."""
    page = (ROOT / "docs/lint.md").read_text(encoding="utf-8")
    words = dict(re.findall(r"^\| (OCO\d{3}) \| (.*?) \|", page, re.MULTILINE))
    others = {
        code: CODES[code].title for code in RULES if not re.match(rf"{re.escape(CODES[code].title)}\b", words[code])
    }
    assert not others


@pytest.mark.parametrize("code", [c for c, row in CODES.items() if row.stage is Stage.LINT])
def test_example_provokes_its_code_and_no_other(code: str) -> None:
    assert set(codes(CODES[code].example, frozenset(RULES) if code == "OCO635" else CHEAP)) == {code}


WATTS = (
    "model m\nhorizon T = 9\ndecision w in box(0, 5e7)\nstream mw in [1, 50]\nminimize w\n"
    "subject to\n    d: w >= mw   each round\n"
)
REPAIRED = {
    "a param that sizes a decision": (
        "OCO630",
        HEAD + "param n = 3\nminimize c @ x\n",
        HEAD + "param n = 3\nminimize n * c @ x\n",
    ),
    "a let": ("OCO630", HEAD + "let cost = c @ x\nminimize c @ x\n", HEAD + "let cost = c @ x\nminimize cost\n"),
    "an index": (
        "OCO630",
        HEAD + "index zone = [A, B]\nminimize c @ x\n",
        HEAD + "index zone = [A, B]\nparam w[zone] = [1, 2]\nminimize c @ x + w[0] * x[0]\n",
    ),
    "squares": (
        "OCO631",
        HEAD + "minimize c @ x + x[0]**2 + x[1]**2 + x[2]**2\n",
        HEAD + "minimize c @ x + sum_squares(x)\n",
    ),
    "terms that are taken away": (
        "OCO631",
        HEAD + "minimize c @ x - x[0] - x[1] - x[2]\n",
        HEAD + "minimize c @ x - sum(x)\n",
    ),
    "rows of a matrix": (
        "OCO632",
        HEAD
        + "param A[3, 3] = eye(3)\nminimize c @ x\nsubject to\n"
        + "".join(f"    r{i}: A[{i}] @ x <= 1 + c[{i}]   each round\n" for i in range(3)),
        HEAD + "param A[3, 3] = eye(3)\nminimize c @ x\nsubject to\n    r: A @ x <= 1 + c   each round\n",
    ),
    "entries by name": (
        "OCO632",
        NAMED
        + "".join(f"    r{i}: c[{n}] * x[{n}] <= 0.5   each round\n" for i, n in enumerate(("B", '"NEW YORK"', "A"))),
        NAMED + "    r: c * x <= 0.5   each round\n",
    ),
    "terms by name": (
        "OCO631",
        NAMED.replace(
            "minimize c @ x\nsubject to\n", 'minimize c[B] * x[B] + c["NEW YORK"] * x["NEW YORK"] + c[A] * x[A]\n'
        ),
        NAMED.replace("subject to\n", ""),
    ),
    "numbers of their own": (
        "OCO632",
        HEAD
        + "minimize c @ x\nsubject to\n"
        + "".join(f"    r{i}: c[{i}] * x[{i}] <= 0.{i + 1}   each round\n" for i in range(3)),
        HEAD + "minimize c @ x\nsubject to\n    r: c * x <= [0.1, 0.2, 0.3]   each round\n",
    ),
    "a copied line": (
        "OCO633",
        HEAD
        + "minimize c @ x\nsubject to\n    a: c[0] * x[0] <= 0.5   each round\n    b: c[0] * x[0] <= 0.5   each round\n",
        HEAD
        + "minimize c @ x\nsubject to\n    a: c[0] * x[0] <= 0.5   each round\n    b: c[1] * x[1] <= 0.5   each round\n",
    ),
    "watts and megawatts": ("OCO634", WATTS, WATTS.replace("w >=", "1e-6 * w >=")),
}


@pytest.mark.parametrize("case", REPAIRED)
def test_a_rule_warns_of_the_mistake_and_not_of_the_repaired_model(case: str) -> None:
    code, wrong, right = REPAIRED[case]
    assert codes(wrong) == [code]
    assert codes(right) == []


QUIET = {
    "a horizon of params": "model m\nparam days = 3\nhorizon T = 24 * days\ndecision x in box(0, 1)\nstream c in [-1, 1]\nminimize c * x\n",
    "a domain, a cut and a distribution of params": "model m\nhorizon T = 99\nparam lo = 0\nparam most = 2\nparam rate = 3\n"
    "decision x[3] in box(lo, 1) with sum(x) <= most\nstream c ~ poisson(rate) in [0, 9]\nminimize c * sum(x)\n",
    "a family": HEAD.replace("x[3]", "x[zone]")
    .replace("c[3]", "c[zone]")
    .replace("decision", "index zone = [A, B, C]\ndecision")
    + "minimize c @ x\nsubject to\n    cap[z in zone]: x[z] * c[z] <= 0.5   each round\n",
    "two terms": HEAD + "minimize c[0] * x[0] + c[1] * x[1]\n",
    "names in another order": NAMED
    + "".join(f"    r{i}: c[{n}] * x[{n}] <= 0.5   each round\n" for i, n in enumerate(("A", "B", '"NEW YORK"'))),
    "entries in other places": HEAD + "minimize c[0] * x[1] + c[1] * x[2] + c[2] * x[0]\n",
    "another function of each entry": HEAD + "minimize abs(x[0] - c[0]) + x[1]**2 + pos(x[2]) + c[1]\n",
    "functions of two entries": HEAD + "minimize norm2([x[0], c[0]]) + norm2([x[1], c[1]]) + norm2([x[2], c[2]])\n",
    "another time": HEAD
    + "minimize c @ x\nsubject to\n    a: c @ x <= 0.5   each round\n    b: c @ x <= 0.5   on average\n",
    "a small regularizer": HEAD + "minimize c @ x + 1e-8 * norm1(x)\n",
    "a large penalty": HEAD + "minimize c @ x + 1e7 * pos(sum(x) - c[0] - 1)\n",
    "a number that keeps a logarithm defined": HEAD + "minimize c @ x - log(1e-9 + x[0])\n",
    "a steep function": HEAD + "minimize c @ x + exp(16 * x[0])\n",
    "a power": "model m\nhorizon T = 99\ndecision x[2] in box(0, 1e4)\nstream c[2] in [0, 1e4]\nstream p in [1, 2]\n"
    "minimize sum_squares(x - c) + p * sum(x)\n",
    "a stream that is predicted": HEAD + "predict c = mean(c, 24)\nminimize c @ x\n",
}


@pytest.mark.parametrize("case", QUIET)
def test_no_rule_warns_without_a_mistake(case: str) -> None:
    assert codes(QUIET[case]) == []


def test_every_part_of_a_model_uses_names() -> None:
    """A param in each place where a statement may have one."""
    text = (
        "model m\nparam a = 2\nparam b = 3\nparam d = 0.5\nparam e = 1\nparam f = 4\nparam g = 0.1\nparam h = 7\nparam k = 5\n"
        "horizon T = 10 * a\nparam w[b] = ones(b)\ndecision x[3] in box(0, e)\ncontext load in [0, f]\n"
        "state s = s + x[0] - g in [-50, 50] start d\nstream c[3] in [-1, 1]\nminimize w @ x + c @ x\nsubject to\n"
        "    cap: sum(x) + s <= load + h   each round, penalty k\n"
    )
    assert "OCO630" not in codes(text)
    for name in "abdefghk":
        assert "OCO630" in codes(
            text.replace(f"param {name} =", f"param spare_{name} = 1\nparam {name} ="), frozenset({"OCO630"})
        )


def test_comments_silence_a_line_or_the_whole_text() -> None:
    text = CODES["OCO633"].example
    assert codes(text) == ["OCO633"]
    line = text.rstrip("\n")
    for comment in (
        "# oco: ignore OCO633",
        "# allow OCO633",
        "# oco: ignore OCO604, OCO633",
        "# twice. oco: ignore OCO633",
    ):
        assert codes(f"{line}  {comment}\n") == []
    assert codes(f"{line}  # oco: ignore OCO604\n") == ["OCO633"]
    assert codes(f"# A copy.\n# oco: ignore OCO633\n\n{text}") == []
    assert codes(f"{text}# oco: ignore OCO633\n") == ["OCO633"], (
        "a comment below the first statement is for its line alone"
    )
    spread = HEAD + "minimize sum(c[0] * x[0] +  # oco: ignore OCO631\n    c[1] * x[1] +\n    c[2] * x[2])\n"
    assert codes(spread) == [] and codes(spread.replace("# oco: ignore OCO631", "")) == ["OCO631"]


def test_a_constraint_that_the_domain_implies_says_nothing_more() -> None:
    """At its limit for some decision, and never beyond."""
    text = HEAD + "minimize c @ x\nsubject to\n    cap: x <= 1   each round\n"
    assert codes(text) == ["OCO604"] and codes(text.replace("<= 1 ", "<= 0.9 ")) == []


def test_warnings_of_the_checker_are_among_them() -> None:
    text = HEAD + "stream d in [0, 1]\nminimize c @ x\nsubject to\n    cap: c @ x <= 9   each round\n"
    assert codes(text) == ["OCO603", "OCO604"]
    narrow = np.random.default_rng(0).uniform(-0.01, 0.01, size=(60, 3))
    assert codes(HEAD + "minimize c @ x\n", data={"c": narrow}) == ["OCO606"]


def needs(most: float) -> str:
    return (
        "model m\nhorizon T = 60\ndecision x[3] in box(0, 10)\nstream price[3] in [1, 5]\nstream need in [0, 18]\n"
        f"minimize price @ x\nsubject to\n    serve: sum(x) >= need   each round\n    room: sum(x) <= {most} + 0 * need   each round\n"
    )


@pytest.mark.parametrize(("most", "warned"), [(25, True), (17, False)])
def test_a_constraint_far_from_its_limit_changes_no_best_decision(most: float, warned: bool) -> None:
    """CVXPY gives the least cost with the constraint and without it, of one decision for all rounds and of one for each round."""
    rng = np.random.default_rng(1)
    price, need = rng.uniform(1, 5, (60, 3)), rng.uniform(2, 17, 60)
    assert codes(needs(most), frozenset({"OCO636"}), {"price": price, "need": need}) == ["OCO636"] * warned
    fixed, each = cp.Variable(3, nonneg=True), cp.Variable((60, 3), nonneg=True)
    for x, load in ((fixed, cp.sum(fixed)), (each, cp.sum(each, axis=1))):
        cost = cp.sum(cp.multiply(price, x)) if x is each else price.sum(axis=0) @ x
        served = [load >= need, x <= 10]
        least = cp.Problem(cp.Minimize(cost), served).solve()
        assert cp.Problem(cp.Minimize(cost), [*served, load <= most]).solve() == pytest.approx(least, rel=1e-6)
        spare = most - float(np.max(load.value))
        assert not warned or spare > 0.01 * most


def test_few_rounds_of_data_say_nothing() -> None:
    data = {"price": np.ones((5, 3)), "need": np.ones(5)}
    assert codes(needs(25), frozenset({"OCO636"}), data) == []


def test_a_short_horizon_names_one_at_which_something_is_guaranteed() -> None:
    text, wanted = CODES["OCO635"].example, frozenset({"OCO635"})
    (warning,) = lint(ModelText(Source("m.oco", text), {}), wanted)
    longer = int(warning.message.rpartition(" ")[2])
    assert codes(text.replace("T = 3", f"T = {longer}"), wanted) == []


RIGHT = {
    ("benchmarks/corpus/models/pricing_with_fairness.oco", "OCO631"): "three prices of either group, of six",
}
"""Warnings of models that are kept as they are, since figures of theirs are published."""


def test_models_of_the_project_are_free_of_lint() -> None:
    """Rules on the text and on ranges, over every example, template and model of the corpus."""
    files = [*ROOT.glob("examples/*.oco"), *ROOT.glob("benchmarks/corpus/models/*.oco")]
    texts = {str(f.relative_to(ROOT)): (f.read_text(encoding="utf-8"), f.parent) for f in files}
    texts |= {f"template {name}": (text.replace("{name}", "m"), ROOT) for name, text in templates().items()}
    assert len(texts) > 80
    warned = set()
    for name, (text, folder) in texts.items():
        model = parse(text, name=name, folder=folder)
        warnings = [*lint_text(Source(name, text), model), *mixed_units(ProofContext(canonical(model)))]
        warned |= {(name, d.code) for d in warnings}
    assert warned == RIGHT.keys()


def test_a_new_model_is_free_of_all_lint() -> None:
    assert codes(templates()["pacing"].replace("{name}", "m"), frozenset(RULES)) == []


def test_a_context_that_predicts_what_moves_a_state_is_used() -> None:
    text = """\
model bikes
horizon T = 40
decision move in box(-5, 5)
context weather in [0, 2]
stream taken in [0, 8]
state bikes = bikes + move - taken in [0, 20] start 10
minimize 0.2 * abs(move) + 3 * pos(taken - bikes - move)
"""
    assert "OCO603" not in codes(text)
