"""Edits of lint: the model after them has equal values, facts and decisions, and needs no more of them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oco
from oco.cli import main
from oco.compiler.problem.canonical import canonical
from oco.dsl.evaluate import Evaluation
from oco.dsl.source import Source
from oco.linting import ModelText, lint, repaired

HEAD = "model m\nhorizon T = 1000\ndecision x[4] in box(0, 1)\nstream c[4] in [-1, 1]\nstream d in [0, 1]\n"
STYLE = frozenset({"OCO630", "OCO631"})

EDITS = {
    "product": ("minimize c[0] * x[0] + c[1] * x[1] + c[2] * x[2] + c[3] * x[3]", "minimize c @ x"),
    "part": ("minimize x[1] + x[2] + x[3] + d * x[0]", "minimize sum(x[1:4]) + d * x[0]"),
    "offset": (
        "minimize c[0] * x[1] + c[1] * x[2] + c[2] * x[3] + c[3] * x[0]",
        "minimize c[0:3] @ x[1:4] + c[3] * x[0]",
    ),
    "weights": ("minimize 3 * x[0] + 0.5 * x[1] + -2 * x[2] + c @ x", "minimize [3, 0.5, -2] @ x[0:3] + c @ x"),
    "squares": (
        "minimize (x[0] - c[0])**2 + (x[1] - c[1])**2 + (x[2] - c[2])**2 + (x[3] - c[3])**2",
        "minimize sum((x - c)**2)",
    ),
    "in a function": ("minimize c @ x + abs(d - (x[0] + x[1] + x[2] + x[3]))", "minimize c @ x + abs(d - (sum(x)))"),
    "taken away": ("minimize c @ x - c[0] * x[0] - c[1] * x[1] - c[2] * x[2]", "minimize c @ x - c[0:3] @ x[0:3]"),
    "one factor for all": ("minimize d * x[0] + d * x[1] + d * x[2] + d * x[3]", "minimize sum(d * x)"),
    "two runs": (
        "minimize x[0] + x[1] + x[2] + c[1] * x[1] + c[2] * x[2] + c[3] * x[3]",
        "minimize sum(x[0:3]) + c[1:4] @ x[1:4]",
    ),
    "products of products": (
        "minimize d * c[0] * x[0] + d * c[1] * x[1] + d * c[2] * x[2] + d * c[3] * x[3]",
        "minimize d * c @ x",
    ),
    "sum in sum": (
        "minimize (c[0] + c[1] + c[2]) * x[0] + (c[0] + c[1] + c[2]) * x[1] + (c[0] + c[1] + c[2]) * x[2]",
        "minimize sum((sum(c[0:3])) * x[0:3])",
    ),
    "over lines": ("minimize c @ x + (x[0] +\n    x[1] +\n    x[2])", "minimize c @ x + (sum(x[0:3]))"),
    "names": (
        "param k = 2   # of nothing\nlet both = k * d\nlet cost = c @ x\n# The cost.\nminimize cost",
        "let cost = c @ x\n# The cost.\nminimize cost",
    ),
    "rows": (
        "param A[2, 4] = [[1, 2, 3, 4],\n    [0, 1, 0, 1]]\nindex z = [N, S]\nminimize c @ x",
        "minimize c @ x",
    ),
    "matrix": (
        "param A[3, 4] = [[1, 2, 3, 4], [0, 1, 0, 1], [1, 1, 1, 1]]\nminimize c @ x + A[0] @ x + A[1] @ x + A[2] @ x",
        "param A[3, 4] = [[1, 2, 3, 4], [0, 1, 0, 1], [1, 1, 1, 1]]\nminimize c @ x + sum(A @ x)",
    ),
}


def written(text: str) -> ModelText:
    return ModelText(Source("m.oco", text), {})


def losses(text: str) -> np.ndarray:
    """Values of the objective at seeded decisions and streams."""
    rng, f = np.random.default_rng(3), Evaluation(canonical(oco.parse(text)).objective)
    places = [
        {"x": rng.uniform(0, 1, 4), "c": rng.uniform(-1, 1, 4), "d": np.asarray(rng.uniform())} for _ in range(20)
    ]
    return np.array([float(f(place, 1.0)) for place in places])


def fact_values(text: str) -> dict[str, tuple[Any, str]]:
    facts = oco.check(oco.parse(text))
    return {key: (facts[key].value, str(facts[key].status)) for key in facts if key != "slater.point"}


def decisions(text: str) -> np.ndarray:
    """Decisions of online gradient descent over seeded rounds."""
    rng, learner = np.random.default_rng(4), oco.compile(oco.parse(text), "ogd").learner()
    rounds = []
    for _ in range(12):
        rounds.append(np.asarray(learner.decide()))
        learner.observe(c=rng.uniform(-1, 1, 4), d=rng.uniform())
    return np.array(rounds)


@pytest.mark.parametrize("case", EDITS)
def test_an_edit_changes_no_value_and_no_fact(case: str) -> None:
    before, after = (HEAD + part + "\n" for part in EDITS[case])
    result, count = repaired(written(before), STYLE)
    assert result.source.text == after and count >= 1
    assert not [d for d in lint(result, STYLE) if d.fixes], "nothing is left to edit"
    np.testing.assert_allclose(losses(after), losses(before), rtol=1e-12, atol=1e-12)
    old, new = fact_values(before), fact_values(after)
    assert old.keys() == new.keys()
    for key, (value, status) in old.items():
        assert new[key][1] == status, key
        if isinstance(value, float):
            assert new[key][0] == pytest.approx(value, rel=1e-9), key
        elif not isinstance(value, np.ndarray):
            assert new[key][0] == value, key


@pytest.mark.parametrize("case", ["product", "squares", "names"])
def test_an_edit_changes_no_decision(case: str) -> None:
    before, after = (HEAD + part + "\n" for part in EDITS[case])
    np.testing.assert_allclose(decisions(after), decisions(before), rtol=1e-12, atol=1e-14)


def test_drawn_sums_keep_their_values() -> None:
    """Sums of entries of a drawn run, coefficient and sign, beside other terms and within brackets."""
    rng, edited = np.random.default_rng(5), 0
    kinds = (
        "x[{i}]",
        "c[{i}] * x[{j}]",
        "x[{i}] * {w}",
        "(x[{i}] - c[{j}])**2",
        "d * abs(x[{j}])",
        "x[{i}] / 4",
        "{w}",
    )
    for _ in range(60):
        terms = []
        for _ in range(rng.integers(1, 4)):
            kind, start, shift = kinds[rng.integers(len(kinds))], rng.integers(0, 2), rng.integers(0, 2)
            sign = str(rng.choice(["+", "-"]))
            for k in range(rng.integers(1, 4)):
                i = int(start + k)
                terms.append(f"{sign} " + kind.format(i=i, j=(i + shift) % 4, w=int(rng.integers(1, 9))))
        text = HEAD + "minimize c @ x + 3 * (x[3] " + " ".join(terms) + ")\n"
        result, count = repaired(written(text), STYLE)
        edited += count
        np.testing.assert_allclose(losses(result.source.text), losses(text), rtol=1e-12, atol=1e-12, err_msg=text)
    assert edited >= 20


@pytest.mark.parametrize(
    "line",
    [
        "param k in [0, 1]\nminimize c @ x",  # its value comes from outside
        "minimize c @ x + (x[0] + x[1]) + x[2]",  # an edit would cut the bracket apart
        "minimize c @ x + (x[0] +  # first\n    x[1] + x[2])",  # it would drop the comment
    ],
)
def test_what_an_edit_would_spoil_stays(line: str) -> None:
    result, count = repaired(written(HEAD + line + "\n"), STYLE)
    assert (result.source.text, count) == (HEAD + line + "\n", 0)


UNUSED = HEAD + "param k = 2\nminimize c @ x\n"


def test_the_command_edits_files_and_counts(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    first, second = tmp_path / "a.oco", tmp_path / "b.oco"
    first.write_text(UNUSED)
    second.write_text(UNUSED.replace("param k = 2\n", "").replace("stream d in [0, 1]\n", ""))
    words = [str(first), str(second), "--ignore", "OCO635"]
    assert main(["lint", *words]) == 1
    err = " ".join(capfd.readouterr().err.split())
    assert "OCO630" in err and "2 warnings; --fix edits 1 of them." in err
    assert main(["lint", *words, "--select", "OCO630,oco631", "--fix"]) == 0
    assert "1 fixed" in capfd.readouterr().err and first.read_text() == UNUSED.replace("param k = 2\n", "")
    assert main(["lint", *words]) == 1 and main(["lint", *words, "--ignore", "OCO603"]) == 0


def test_the_command_gives_json(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    right, wrong = tmp_path / "a.oco", tmp_path / "b.oco"
    right.write_text(UNUSED)
    wrong.write_text("model m\n")
    assert main(["lint", str(right), str(wrong), "--select", "OCO630", "--json"]) == 1
    value = json.loads(capfd.readouterr().out)
    assert value.keys() == {"version", "diagnostics", "fixed"} and value["version"] == 1 and value["fixed"] == {}
    warning, *errors = value["diagnostics"]
    assert warning.keys() == {"code", "severity", "message", "span", "hint", "note", "fixes"}
    assert (warning["code"], warning["severity"], warning["span"]["line"]) == ("OCO630", "warning", 6)
    assert [(f["text"], f["span"]["line"], f["span"]["end_line"]) for f in warning["fixes"]] == [("", 6, 7)]
    assert errors and {e["severity"] for e in errors} == {"error"}
    assert main(["lint", str(right), "--select", "OCO630", "--fix", "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == {"version": 1, "diagnostics": [], "fixed": {str(right): 1}}


def test_the_command_reads_standard_input(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO(UNUSED))
    assert main(["lint", "-", "--fix", "--select", "OCO630"]) == 0
    assert capfd.readouterr().out == UNUSED.replace("param k = 2\n", "")
    assert main(["lint", "-", "--fix", "--json"]) == 2


def test_the_example_of_the_page_is_silent() -> None:
    page = (Path(__file__).parent.parent / "docs/lint.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"^```oco\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert not lint(written(text)) and [
        d.code for d in lint(written(text.replace("# oco: ignore OCO631", "")), STYLE)
    ] == ["OCO631"]


def test_codes_that_lint_never_gives_are_refused(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "m.oco", "--select", "OCO613,OCO361"]) == 1
    err = capfd.readouterr().err
    assert "OCO907" in err and "did you mean OCO631?" in err
