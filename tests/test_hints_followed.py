"""Hints followed to the letter: the example of each code, changed as its hint says, compiles or lacks another thing that is named here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from thorough import corners

import oco
from oco.compiler.prover.check import check
from oco.dsl.codes import CODES, Stage
from oco.dsl.diagnostics import Diagnostic, OcoError, Severity
from oco.dsl.load import parse

# Code: what the hint has to say, what is changed in the example, into what, and the constraint that the hint leaves out.
EDITS: dict[str, tuple[str, str | None, str, *tuple[str, ...]]] = {
    "OCO100": ("`2 * x`", "2 x[0]", "2 * x[0]"),
    "OCO101": ("write `-`", "−", "-"),
    "OCO102": ("12, 0.5 and 1e-3", "1.2.3", "0.5"),
    "OCO103": ("between 1e-300 and 1e300", "1e999", "1e300"),
    "OCO104": ('end it with `"`', '"a.csv)', '"a.csv")'),
    "OCO105": ("add `)`", "sum(x", "sum(x)"),
    "OCO106": ("delete it", "sum(x))", "sum(x)"),
    "OCO107": ("name its parts with `let`", None, "let part = sum(x)\nminimize part"),
    "OCO108": ("`minimize`", "minimise", "minimize"),
    "OCO109": ("`cap: sum(x) >= 1`", "sum(x) >= 1", "cap: sum(x) >= 1"),
    "OCO110": ("`model_1`", "decision model", "decision model_1"),
    "OCO112": ("two constraints", "cap: 0.5 <= sum(x) <= 1", "low: 0.5 <= sum(x)\n    cap: sum(x) <= 1"),
    "OCO113": ("write `<=`", "< 1", "<= 1"),
    "OCO114": ("`==`", ") = 1", ") == 1"),
    "OCO115": ("`**`", "x ^ 2", "x ** 2"),
    "OCO117": ("`each round`", "every round", "each round"),
    "OCO118": ("`<= 0`, `>= 0` or `== 0`", "sum(x) - 1", "sum(x) - 1 <= 0"),
    "OCO119": ("`in box(0, 1)`", "x[2] box(0, 1)", "x[2] in box(0, 1)"),
    "OCO120": ("`[0, 1]`", "in 0..1", "in [0, 1]"),
    "OCO121": ("`.T`", "x.sum", "sum(x.T)"),
    "OCO122": ("`x[a:b]`", "x[0:2:1]", "x[0:2]"),
    "OCO123": ("`dynamic`", "dynamical", "dynamic"),
    "OCO124": ("keep one", " in [0, 2]", ""),
    "OCO125": ("put it first", "mean = 8, 3", "3, mean = 8"),
    "OCO127": ("delete the comma", "2, ]", "2]"),
    "OCO128": ("a line of its own", "example  horizon", "example\nhorizon"),
    "OCO130": ("sum(x)", None, "minimize sum(x)"),
    "OCO201": ("`param limit = ...`", "decision x", "param limit = 0.5\ndecision x"),
    "OCO202": ("norm2(x)", "norm(x)", "norm2(x)"),
    "OCO203": ("another name", "param c = 2", "param d = 2"),
    "OCO204": ("move its declaration up", "let double = 2 * c\n", ""),
    "OCO205": ("`loss_t`", "stream loss", "stream loss_t"),
    "OCO207": ("`horizon T = 5000`", "model m\n", "model m\nhorizon T = 5000\n"),
    "OCO209": ("another label", "    cap: x[0]", "    top: x[0]"),
    "OCO212": ("`horizon T = 1000`", "horizon T unknown", "horizon T = 1000"),
    "OCO213": (
        '`param data[...] = file("...")`',
        'param a[3] = 2 * file("a.csv")',
        'param data[3] = file("a.csv")\nparam a[3] = 2 * data',
    ),
    "OCO214": ("`subject to` above it", "cap:", "subject to\n    cap:"),
    "OCO217": ("`each round` behind", "on average", "each round"),
    "OCO219": ("predict a `stream`", "predict x", "predict c"),
    "OCO220": ("`last(c)`", "2 * c", "last(c)"),
    "OCO403": ("`lo` and `hi`", "box(1)", "box(0, 1)"),
    "OCO539": ("a linear loss", "sum_squares(x) + c @ x", "c @ x"),
    "OCO615": ("with room for all of it", "in [0, 50]", "in [0, 80]"),
    "OCO617": ("with fixed factors", " - 0.01 * stock * order", ""),
    "OCO616": ("predict the round alone", "ahead(next)", "next[0]"),
    "OCO717": ("`using optimistic`", "using ogd", "using optimistic"),
    "OCO540": ("without `delayed`", " delayed 3", ""),
    "OCO302": ("A.T", "x @ A", "x @ A.T"),
    "OCO303": ("norm2(x, axis = 0)", "norm2(x, 0)", "norm2(x, axis = 0)"),
    "OCO311": ("without a decimal point", "x[1.5]", "x[1]"),
    "OCO312": ("the last one is 2", "x[3]\n", "x[2]\n"),
    "OCO321": ("`a[2]`", "a[3]", "a[2]"),
    "OCO323": ("`horizon T unknown`", "horizon T = 0.5", "horizon T unknown"),
    "OCO324": ("sum(...)", "c * x", "sum(c * x)"),
    "OCO325": ("0:3", "0..2", "0:3"),
    "OCO326": ("`in 0..k-1`", "stream c in [-1, 1]", "stream c in 0..4"),
    "OCO327": ("`NYC`", "NYCC", "NYC"),
    "OCO551": ("(axis = 0)", "over = zone", "axis = 0"),
    "OCO401": ("box(lo, hi)", "cube(1)", "box(0, 1)"),
    "OCO402": ("normal(mean, sd)", "gaussian(0, 1)", "normal(0, 1)"),
    "OCO410": ("the lower bound first", "box(1, 0)", "box(0, 1)"),
    "OCO424": ("the lower end first", "[1, 0]", "[0, 1]"),
    "OCO425": ("in [lo, hi]", "in 0..5", "in [0, 5]"),
    "OCO528": ("`each round`", "in 100% of rounds", "each round"),
    "OCO750": ("below 0", "c[3] in [-1, 1]", "c[3] in [0, 1]"),
    "OCO427": ("leave out `iid`", "a iid ~", "a ~"),
    "OCO501": ("put a minus before it", "minimize log", "minimize -log"),
    "OCO503": ("state an inequality", "sum_squares(x) == 0.5", "sum_squares(x) <= 0.5"),
    "OCO504": ("`with x >= 1e-3`", "box(0, 1)", "box(0, 1) with x >= 1e-3"),
    "OCO419": ("ball(1)", "box(0, 1) with sum(square(x)) <= 1", "ball(1)"),
    "OCO520": ("`stream c[3] in [lo, hi]`", "in [-1, 1]", "in [-1, 1]", "cap"),
    "OCO527": ("a positive number", "penalty 0", "penalty 1"),
    "OCO605": ("relax low by 0.6698", "<= 0.1 ", "<= 0.1 + 0.67 "),
    "OCO610": ("leave it out", None, ""),
    "OCO611": ("`with sum(x) <= 2` behind the domain", "box(0, 1)", "box(0, 1) with sum(x) <= 2", "cap"),
    "OCO612": ("`with sum(x) <= 2` behind the domain", "box(0, 1)", "box(0, 1) with sum(x) <= 2", "cap"),
    "OCO614": ("`1e6 * x[0]` in place of `x[0]`", "[0, 0], [1e-5, 1e5]", "[0, 0], [10, 10]"),
    "OCO651": ("`slater.margin`", "slater.margn", "slater.margin"),
    "OCO652": ("keep one", "assume path_length <= 50\n", ""),
    "OCO653": ("`assume loss.bound <= 3`", "loss.bound >= 3", "loss.bound <= 3"),
    "OCO701": ("`coldq`", "using colq", "using coldq"),
    "OCO702": ("alpha, eta, gamma, epsilon", "step = 0.1", "epsilon = 0.1"),
    "OCO704": ("`stream c ... iid`", "[-1, 1]", "[-1, 1] iid"),
    "OCO705": ("`using ogd`", "using coldq", "using ogd"),
    "OCO706": ("using ogd with ... = ...", "using ogd", "using ogd with eta = 0.1"),
    "OCO708": ("`in [lo, hi]` behind its declaration", "stream c[2]", "stream c[2] in [-1, 1]"),
    "OCO715": ("give positive numbers", "alpha = -1", "alpha = 1"),
}
NEXT = {
    "OCO104": ("OCO801", "the file that the string names is not there"),
    "OCO110": ("OCO521", "the example's objective has no decision, whose name is the mistake"),
    "OCO213": ("OCO801", "the example's file is not there"),
}
"""Errors that a mended example has for another reason."""
WITHOUT = {
    "OCO111": "contexts and the previous decision have no words yet",
    "OCO216": "the value is given beside the model",
    "OCO301": "what fits depends on what is meant",
    "OCO304": "options are listed, of which none may be meant",
    "OCO305": "the axis is listed, and may be left out",
    "OCO308": "lengths that are meant are the writer's",
    "OCO307": "the number that is meant is the writer's",
    "OCO313": "the end that is meant is the writer's",
    "OCO314": "the indices that are meant are the writer's",
    "OCO417": "the edges that are meant are the writer's",
    "OCO418": "the bounds that are meant are the writer's",
    "OCO502": "a set that is not convex has no convex form",
    "OCO552": "the groups that are meant are the writer's",
    "OCO608": "a remark on the guarantee",
    "OCO609": "a remark on the guarantee",
    "OCO613": "the units that are meant are the writer's",
    "OCO712": "says what the setting belongs to",
    "OCO714": "the size that is meant is the writer's",
    "OCO721": "names are listed",
}
"""Hints that name no line to write, and why."""


def findings(text: str, folder: Path, stage: Stage) -> tuple[Diagnostic, ...]:
    """Errors and warnings of a model, as far as its stage goes."""
    try:
        model = parse(text, folder=folder)
        if stage is not Stage.COMPILE:
            return check(model).warnings
        return oco.compile(model, settings="paper").warnings
    except OcoError as error:
        return error.diagnostics


def hint_of(code: str, folder: Path) -> str:
    """Hint of the example of a code."""
    row = CODES[code]
    return next(d.hint for d in findings(row.example, folder, row.stage) if d.code == code)


def models() -> list[str]:
    """Codes whose example is a model."""
    return [
        c for c, r in CODES.items() if r.stage in (Stage.PARSE, Stage.CHECK, Stage.COMPILE) and "\nminimi" in r.example
    ]


@pytest.mark.parametrize("code", EDITS)
def test_the_example_changed_as_its_hint_says_has_a_learner(code: str, tmp_path: Path) -> None:
    """The hint says what is changed; then the model compiles, or lacks what `NEXT` says."""
    said, before, after, *left_out = EDITS[code]
    assert said in hint_of(code, tmp_path), hint_of(code, tmp_path)
    text = CODES[code].example
    before = text.splitlines()[-1] if before is None else before
    assert text.count(before) == 1, "the edit has one place"
    text = "".join(
        line for line in text.replace(before, after).splitlines(True) if line.split(":")[0].strip() not in left_out
    )
    text = text if ": " in text.partition("subject to")[2] else text.replace("subject to\n", "")
    compiled = findings(text, tmp_path, Stage.COMPILE)
    errors = [d for d in compiled if d.severity is Severity.ERROR]
    assert [d.code for d in errors] == ([NEXT[code][0]] if code in NEXT else []), errors
    stage = CODES[code].stage
    left = compiled if stage is Stage.COMPILE else findings(text, tmp_path, stage)
    assert code not in [d.code for d in left], left


@pytest.mark.parametrize("code", corners(models(), [c for c in models() if c not in EDITS | WITHOUT]))
def test_every_hint_that_names_a_line_is_followed(code: str, tmp_path: Path) -> None:
    hint = hint_of(code, tmp_path)
    names_a_line = bool(re.search(r"`[^`]*`|\bwrite\b|\badd\b", hint))
    assert not names_a_line or code in EDITS or code in WITHOUT, hint
