"""The report of a run: whole, well formed, dependent on nothing, and true to the trace."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from test_plots import made, many

from oco.compiler.prover.check import check
from oco.evaluation.numbers import number
from oco.evaluation.report import html
from oco.evaluation.report.run_page import report, write_report
from oco.evaluation.report.trace import Trace
from oco.evaluation.summary import summarize

VOID = {"meta", "br", "img", "link", "hr", "path", "use", "rect"}


class Balanced(HTMLParser):
    """Collects what is opened and not closed, and the texts."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]}"
            self.open.pop()

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def read(page: str) -> Balanced:
    found = Balanced()
    found.feed(page)
    assert not found.open
    return found


@pytest.fixture(scope="module")
def trace() -> Trace:
    return made(200, rates={"regret": "sqrt(T)"})


@pytest.fixture(scope="module")
def text(trace: Trace) -> str:
    """Page of the trace: pictures take a second."""
    return report(trace, check(trace.problem.model), "chosen because <it> is")


def test_the_page_is_well_formed_and_says_the_numbers(trace: Trace, text: str) -> None:
    page = read(text)
    shown = " ".join(page.texts)
    for words in (
        number(float(trace.regret("static")[-1])),
        number(float(trace.loss.sum())),
        "first",
        "second",
        "O(sqrt(T))",
    ):
        assert words in shown
    assert "chosen because <it> is" in shown and "constraints.first.bound" in shown
    assert page.seen.count("svg") == 7 and page.seen.count("details") > 10


def test_the_page_needs_nothing_from_elsewhere(text: str) -> None:
    links = re.findall(r'(?:src|href)="([^"]*)"', text)
    assert all(link.startswith("#") for link in links)
    assert "<script" not in text and "@import" not in text and "url(http" not in text


def test_pictures_take_the_colours_of_the_page(text: str) -> None:
    assert "prefers-color-scheme: dark" in text and "currentColor" in text and "var(--grid)" in text
    assert "#1a2b3c" not in text and "#d4e5f6" not in text


def test_what_comes_from_data_is_escaped(trace: Trace, undrawn: None) -> None:
    noted = Trace(
        trace.problem, trace.data, trace.record, trace.promise, notes=("columns not used: <script>alert(1)</script>",)
    )
    text = report(noted)
    assert "<script>" not in text and "&lt;script&gt;" in text


def test_the_same_page_is_written_whole(trace: Trace, tmp_path: Path, undrawn: None) -> None:
    facts, reason = check(trace.problem.model), "chosen because <it> is"
    write_report(trace, tmp_path / "report.html", facts, reason)
    text = report(trace, facts, reason)
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == text and text.endswith("</html>\n")


def test_a_trace_shows_itself_in_a_notebook_without_solving_anything(trace: Trace) -> None:
    fresh = Trace(trace.problem, trace.data, trace.record, trace.promise)
    text = fresh._repr_html_()
    read(text)
    assert not fresh.known_comparators and "first" in text
    fresh.regret("static")
    assert number(float(fresh.regret("static")[-1])) in fresh._repr_html_()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "not known"),
        (0.0, "0"),
        (1234.5678, "1,234.57"),
        (25221735.1, "25,221,735"),
        (1.5e12, "1.5e+12"),
        (2e-7, "2e-07"),
        (-3.25, "-3.25"),
    ],
)
def test_numbers_as_a_person_reads_them(value: float | None, words: str) -> None:
    assert number(value) == words
    assert value is None or np.isclose(float(words.replace(",", "")), value, rtol=1e-3)


def test_settings_are_given_as_formulas_and_as_numbers(undrawn: None) -> None:
    trace = made()
    told = {"eta": "1/T", "gamma": "0.5", "alpha": "sqrt(t)"}
    trace.promise = replace(trace.promise, settings=told, values={"eta": 1 / 300, "gamma": 0.5})
    rows = re.findall(r"<tr>(.*?)</tr>", report(trace))
    cells = {row[0]: row[1:] for row in (re.findall(r"<td[^>]*>([^<]*)</td>", r) for r in rows) if row}
    assert cells["eta"] == ["1/T", "0.00333333"]
    assert cells["gamma"] == ["", "0.5"]
    assert cells["alpha"] == ["sqrt(t)", "–"]


def test_of_many_constraints_those_that_are_broken_stand_first(undrawn: None) -> None:
    """The others are folded, and each constraint's facts together."""
    run = many(20, 2)
    shown, others = summarize(run).most_violated()
    assert [v.rounds for v in shown] == [20, 20] and len(others) == 28
    shown, others = summarize(many(20, 30)).most_violated()
    assert len(shown) == 12 and min(v.hard for v in shown) >= max(v.hard for v in others)
    text = report(run, check(run.problem.model))
    read(text)
    folded = "<summary>the other 28 constraints, none of them broken</summary>"
    assert folded in text and text.index("regions[1]") < text.index(folded) < text.index("regions[2]")
    assert sum(line.count("<details><summary>constraints.") for line in text.splitlines()) >= 30
    assert "all 30 constraints, none of them broken" in report(many(20, 0))


def test_one_round_is_said_so(undrawn: None) -> None:
    text = report(many(1, 1))
    assert "1 round, total loss" in text and "1 rounds" not in text.replace("1 rounds a second", "")


def test_a_small_number_stays_on_one_line() -> None:
    cells = html.table(("", "a"), [("x<y", "to within -1.5e-05, or 3e-10"), ("e-3", "1e5")])
    assert "<span>-1.5e-05</span>, or <span>3e-10</span>" in cells and cells.count("<span>") == 2 and "x&lt;y" in cells
