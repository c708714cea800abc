"""What notebooks show: balanced LaTeX and HTML that says the numbers, cells in the language, and notebooks that run."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from thorough import thorough

import oco
from oco.dsl.text.latex import expression_latex
from oco.evaluation.report.trace import Trace

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
SMALL = """model small
horizon T = 30
decision x[2] in box(0, 1)
stream c[2] ~ uniform(-1, 1)
minimize c @ x + 0.5 * sum_squares(x)
subject to
    limit_1: x[0] + x[1] <= 1.5    each round
"""


@pytest.fixture(scope="module")
def trace() -> Trace:
    return oco.compile(oco.parse(SMALL)).run(seed=1)


def balanced(text: str) -> None:
    """Braces pair, so do left and right, and every environment that begins ends."""
    plain = re.sub(r"\\[{}]", "", text)
    depth = 0
    for character in plain:
        depth += (character == "{") - (character == "}")
        assert depth >= 0, text
    assert depth == 0, text
    assert len(re.findall(r"\\left(?![a-z])", text)) == len(re.findall(r"\\right(?![a-z])", text))
    assert re.findall(r"\\begin\{(\w+)\}", text) == re.findall(r"\\end\{(\w+)\}", text)[::-1]
    assert text.startswith("$$") and text.endswith("$$")


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag not in ("br", "meta", "wbr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def text_of(page: str) -> str:
    reader = Tags()
    reader.feed(page)
    assert not reader.open and "<script" not in page
    return reader.text


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.oco")), ids=lambda p: p.stem)
def test_models_show_themselves(path: Path) -> None:
    model = oco.load(path)
    balanced(model._repr_latex_())
    shown = text_of(model._repr_html_())
    assert f"model {model.name}" in shown and ("minimize" if model.gain is None else "maximize") in shown


def test_a_model_shows_its_predictions_and_its_feedback() -> None:
    text = SMALL + "\npredict c = last(c)\nfeedback gradient delayed 3\n"
    shown = oco.parse(text)._repr_latex_()
    assert r"\text{predicted} \quad & \hat{c}_{t} = " in shown
    assert r"\text{feedback} \quad & \text{gradient}\text{, } 3 \text{ rounds later}" in shown
    assert "feedback" not in oco.parse(SMALL)._repr_latex_()
    balanced(shown)


def test_a_model_is_its_text_in_a_shell() -> None:
    pretty = pytest.importorskip("IPython.lib.pretty")
    model = oco.parse(SMALL)
    assert oco.parse(pretty.pretty(model)) == model


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("c @ x", r"c_{t}^\top x"),
        ("sum(c * x)", r"\textstyle\sum\left(c_{t} \odot x\right)"),
        ("sum_squares(x - c) / 2", r"\frac{\left\lVert x - c_{t} \right\rVert_2^2}{2}"),
        ("(x[0] + 1) ** 2", r"\left(x\left[0\right] + 1\right)^{2}"),
        ("1e-7 * abs(x[1])", r"1 \cdot 10^{-7}\, \left\lvert x\left[1\right] \right\rvert"),
        ("-log(1 + x[0])", r"-\log\left(1 + x\left[0\right]\right)"),
    ],
)
def test_expressions_as_mathematics(text: str, latex: str) -> None:
    model = oco.parse(f"model m\nhorizon T = 5\ndecision x[2] in box(0, 1)\nstream c[2] in [0, 1]\nminimize {text}\n")
    assert model.objective is not None and expression_latex(model.objective) == latex


def test_plans_explanations_facts_and_traces_show_themselves(trace: Trace) -> None:
    plan = oco.compile(oco.parse(SMALL))
    explanation = plan.explain()
    for thing in (plan, explanation, trace, plan.facts, plan.facts["loss.lipschitz.l2"]):
        balanced(thing._repr_latex_())
        text_of(thing._repr_html_())
    shown = text_of(plan._repr_html_())
    assert plan.algorithm in shown and all(name in shown for name in plan.settings)
    assert all(v.name in text_of(explanation._repr_html_()) for v in plan.verdicts)
    assert "`" in explanation and "`" not in explanation._repr_html_() and "<code>" in explanation._repr_html_()
    assert "loss.lipschitz.l2" in text_of(plan.facts._repr_html_())
    assert r"\text{loss.lipschitz.l2} & 2.82843 & \text{proved}" in plan.facts._repr_latex_()
    trace.regret()
    assert f"{trace.regret()[-1]:.6g}" in trace._repr_latex_() and r"limit\_1" in trace._repr_latex_()
    assert isinstance(explanation, str) and explanation.startswith("small")


def test_a_builder_shows_what_it_has() -> None:
    m = oco.Model("m", horizon=10)
    assert m._repr_html_() is None
    x = m.decision("x", 2, domain=oco.box(0, 1))
    m.minimize(oco.sum(x))
    assert "minimize" in text_of(m._repr_html_() or "")


def test_a_page_of_pictures_is_an_image(trace: Trace) -> None:
    assert trace.plot()._repr_png_().startswith(b"\x89PNG")


def test_cells_in_the_language(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interactive = pytest.importorskip("IPython.core.interactiveshell")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    shell = interactive.InteractiveShell()
    assert shell.run_cell("%load_ext oco").success
    done = shell.run_cell("%%oco small\n" + SMALL)
    assert done.success and done.result == oco.parse(SMALL) and shell.user_ns["small"] == done.result
    wrong = shell.run_cell("%%oco small\n" + SMALL.replace("c @ x", "c @ z")).error_in_exec
    assert isinstance(wrong, oco.OcoError) and wrong.span is not None
    assert wrong.span.line == 6, "lines count from the first of the cell"
    shown = "\n".join(wrong._render_traceback_())
    assert "cell small" in shown and "^" in shown and "Traceback" not in shown
    assert isinstance(shell.run_cell("small").error_in_exec, NameError), (
        "an earlier version does not stand for the cell"
    )
    shell.user_ns["small"] = 5
    assert not shell.run_cell("%%oco small\nmodel").success and shell.user_ns["small"] == 5, "what no cell made stays"
    bare = SMALL.replace(SMALL[SMALL.index("model") :].splitlines()[0] + "\n", "")
    assert "model" not in bare and shell.run_cell("%%oco named\n" + bare).result.name == "named"
    lost = shell.run_cell("%%oco named\n" + bare.replace("c @ x", "c @ z")).error_in_exec
    assert isinstance(lost, oco.OcoError) and lost.span is not None and lost.span.line == 5
    for line in ("%%oco", "%%oco 1st", "%%oco for"):
        unnamed = shell.run_cell(f"{line}\n{SMALL}").error_in_exec
        assert isinstance(unnamed, oco.OcoError) and unnamed.code == "OCO906"


def test_cells_of_the_first_notebook_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One after the other, and what each gives is shown; those that raise say that they do."""
    nbformat, interactive = pytest.importorskip("nbformat"), pytest.importorskip("IPython.core.interactiveshell")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.chdir(EXAMPLES)
    shell, seen = interactive.InteractiveShell(), []
    for cell in nbformat.read(EXAMPLES / "first_steps.ipynb", as_version=4).cells:
        if cell.cell_type == "code":
            seen.append(shell.run_cell(cell.source).success)
            assert seen[-1] is ("raises-exception" not in cell.metadata.get("tags", ())), cell.source
    assert len(seen) > 10


@pytest.mark.parametrize("name", [thorough("first_steps"), thorough("data_centre"), thorough("matrix_completion")])
def test_notebooks_run(name: str) -> None:
    """In a kernel of their own, as `jupyter execute` runs them."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    kept = nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)
    client = {"timeout": 120, "kernel_name": "python3", "resources": {"metadata": {"path": str(EXAMPLES)}}}
    nbclient.NotebookClient(nbformat.from_dict(kept), **client).execute()


@pytest.mark.parametrize("name", sorted(p.stem for p in EXAMPLES.glob("*.ipynb")))
def test_notebooks_are_kept_with_their_outputs(name: str) -> None:
    nbformat = pytest.importorskip("nbformat")
    code = [c for c in nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4).cells if c.cell_type == "code"]
    assert all(cell.outputs or cell.source.startswith(("%load_ext", "import")) for cell in code)


def test_a_shell_shows_what_a_person_reads():
    pretty = pytest.importorskip("IPython.lib.pretty").pretty
    model = oco.load(EXAMPLES / "portfolio.oco")
    facts, plan = oco.check(model), oco.compile(model)
    assert pretty(model) == model.to_oco().rstrip("\n") and pretty(plan.explain()) == plan.explain().rstrip("\n")
    assert pretty(facts).startswith("loss.convex") and pretty(facts["loss.bound"]).startswith("loss.bound: 0.693")
    assert [repr(v) for v in (model, facts, plan)] == [
        "<model portfolio>",
        "Facts(portfolio)",
        "Plan(portfolio, hedged)",
    ]
