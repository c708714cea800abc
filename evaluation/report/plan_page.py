"""Plans and explanations in a notebook: HTML that needs no script or style sheet, and LaTeX for MathJax."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from oco.compiler.selection.choice import Choice
from oco.compiler.selection.explain import explain_text, formula_text
from oco.compiler.selection.verdicts import Applicability, Verdict
from oco.compiler.theory.guarantees import Bound, Guarantee, rate_symbols, vacuous_words
from oco.compiler.theory.settings import parse_formula
from oco.dsl.shown import shown_as_text
from oco.dsl.text.latex import escaped
from oco.dsl.text.notebook import marked

_CELL = "text-align:left;padding:2px 12px 2px 0;vertical-align:top"


class Explanation(str):
    """The text of `oco explain`, and a table of the algorithms where a notebook shows it."""

    choice: Choice

    @classmethod
    def of(cls, choice: Choice) -> Explanation:
        """Explanation of the verdict on each algorithm."""
        result = cls(explain_text(choice := choice.compared()))
        result.choice = choice
        return result

    _repr_pretty_ = shown_as_text

    def _repr_html_(self) -> str:
        rows = [_verdict_cells(v) for v in self.choice.verdicts]
        return _table(("", "algorithm", "because", "unless you"), rows)

    def _repr_latex_(self) -> str:
        rows = [
            rf"\text{{{v.applicability.value}}} & \text{{{escaped(v.name)}}} & {_rates(v)}"
            for v in self.choice.verdicts
        ]
        return "$$\\begin{array}{lll}\n" + " \\\\\n".join(rows) + "\n\\end{array}$$"


def _rates(v: Verdict) -> str:
    if v.guarantee is None:
        return ""
    return r",\ ".join(rf"\text{{{escaped(b.measure)}}}: O({_rate(b)})" for b in v.guarantee.bounds)


def _rate(bound: Bound) -> str:
    import sympy

    return str(sympy.latex(sympy.sympify(parse_formula(bound.rate, rate_symbols()))))


def _verdict_cells(v: Verdict) -> tuple[str, ...]:
    strong = v.applicability is Applicability.CHOSEN
    name = f"<b>{escape(v.name)}</b>" if strong else escape(v.name)
    about = f"{name}<br><small>{escape(v.algorithm.title)} ({escape(v.algorithm.cite)})</small>"
    return v.applicability.value, about, "<br>".join(map(marked, v.reasons)), marked(v.fix)


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Cells are HTML already."""
    head = "".join(f'<th style="{_CELL}">{escape(h)}</th>' for h in headings)
    body = "".join("<tr>" + "".join(f'<td style="{_CELL}">{c}</td>' for c in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def plan_html(winner: Verdict) -> str:
    """HTML of a plan: the chosen algorithm with reasons, its settings, and its guarantee in numbers."""
    head = f"<p><b>{escape(winner.name)}</b>: {escape(winner.algorithm.title)} ({escape(winner.algorithm.cite)})</p>"
    why = "".join(f"<p>{marked(reason)}</p>" for reason in winner.reasons)
    rows = [
        (
            f"<code>{escape(s.name)}</code>",
            f"<code>{escape(formula_text(s.formula))}</code>",
            _value(s.value),
            marked(s.why),
        )
        for s in winner.settings.values()
    ]
    table = _table(("setting", "formula", "value", "from"), rows) if rows else ""
    return (
        head + why + table + (_guarantee(winner.guarantee) if winner.guarantee is not None else "<p>No guarantee.</p>")
    )


def _value(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def _guarantee(guarantee: Guarantee) -> str:
    T = guarantee.horizon
    rows = []
    for bound in guarantee.bounds:
        number = None if T is None else bound.number(T)
        trivial = None if T is None else bound.trivial_total(T)
        size = "" if number is None else f"{number:.6g}"
        if T is not None and bound.vacuous(T):
            size = vacuous_words(f"{trivial:.6g}")
        rows.append((escape(bound.measure), size, _value(trivial), f"$O({_rate(bound)})$"))
    when = "for every T" if T is None else f"for T = {T:,}"
    conditions = "".join(f"<p>{marked(c)}</p>" for c in guarantee.provisos)
    head = ("measure", "at most", "whatever is decided", "rate")
    return f"<p>{escape(guarantee.theorem)}, {when}:</p>{_table(head, rows)}{conditions}"


def plan_latex(winner: Verdict) -> str:
    """The settings and the bounds as formulas."""
    import sympy

    lines = [rf"{_letter(s.name)} &= {sympy.latex(sympy.sympify(s.formula))}" for s in winner.settings.values()]
    bounds = (
        []
        if winner.guarantee is None
        else [rf"\text{{{escaped(b.measure)}}} &\le {b.latex}" for b in winner.guarantee.bounds]
    )
    return "$$\\begin{aligned}\n" + " \\\\\n".join((*lines, *bounds)) + "\n\\end{aligned}$$"


def _letter(name: str) -> str:
    import sympy

    return str(sympy.latex(sympy.Symbol(name)))
