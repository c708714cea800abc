"""Pages of the theory, one an algorithm: rule, theorems, constants, a measured run, errata of the paper."""

from __future__ import annotations

import inspect
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import oco
from benchmarks.guarantees.shapes import SHAPES, texts
from oco.compiler.algorithms import ALGORITHMS, LEFT_OUT, Algorithm
from oco.compiler.theory.guarantees import Bound, Guarantee, rate_symbols
from oco.compiler.theory.settings import parse_formula
from oco.compiler.theory.theorems import Theorem
from website.plots import inline, is_broken

ROUNDS = 500
"""Rounds of the run that a page shows: enough to see the shape of a curve, a second or two of work for each algorithm."""
MOST_LINES = 100
"""Lines of a rule that a page shows."""
ERRATA = Path(__file__).parent.parent / "docs" / "errata.md"
Model = tuple[str, str, Any]
"""Shape of model, its text, and the plan of an algorithm on it."""


def page_of(algorithm: Algorithm) -> str:
    """Page of an algorithm in Markdown."""
    plan = _model_for(algorithm)
    parts = [
        f"# {algorithm.name}",
        f"**{algorithm.title[0].upper()}{algorithm.title[1:]}.** {algorithm.cite}. A round costs {algorithm.cost}.",
        "Shipped to compare with: chosen only for a number that says something, or where nothing else applies."
        if algorithm.baseline
        else "",
        *_derivation(algorithm),
        *_rule(algorithm, plan),
        *_theorems(algorithm),
    ]
    if plan is not None and plan[2].guarantee is not None:
        parts += [*_constants(plan[2].guarantee), *_run(algorithm, plan)]
    parts += _errata(algorithm)
    return "\n\n".join(part for part in parts if part) + "\n"


def index() -> str:
    """Page that lists the algorithms with their theorems' rates."""
    rows = [f"| [`{a.name}`]({a.name}.md) | {a.title} | {a.cite} | {_promises(a)} |" for a in ALGORITHMS]
    table = ["| algorithm | what it is | paper | promises |", "| --- | --- | --- | --- |", *rows]
    missing = "\n".join(f"* `{name}`: {reason}" for name, reason in LEFT_OUT.items())
    return "\n\n".join(
        (
            "# The theory",
            "One page an algorithm: the rule as it is compiled for a small model, the hypotheses and the rates of its theorems, their "
            "constants as formulas and numbers, a run beside the promise, and where its paper is wrong or silent ([errata](../errata.md)). "
            "`oco algorithms` prints the table, and `oco explain` which hypotheses a model of yours meets.",
            "\n".join(table),
            "## Left out",
            "A rule that no source confirms is not guessed:",
            missing,
        )
    )


def _model_for(algorithm: Algorithm) -> Model | None:
    """First of the small models of `benchmarks/guarantees` on which a theorem of the algorithm speaks, or on which it is at home."""
    for shape in SHAPES:
        for text in texts(shape, ROUNDS):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    plan = oco.compile(oco.parse(text), algorithm.name, settings="paper")
            except oco.OcoError:
                continue
            winner = plan.choice.winner
            if plan.guarantee is not None or (not algorithm.promises and winner is not None and not winner.objections):
                return shape, text, plan
    return None


def _derivation(algorithm: Algorithm) -> list[str]:
    """Rule, theorem and proof as the head of the algorithm's module states them, and its rule where it stands in the same module."""
    module = _module_of(algorithm)
    doc = inspect.getdoc(module)
    if not doc or sum(_module_of(a) is module for a in ALGORITHMS) > 2:
        return []
    own = inspect.getdoc(algorithm.rule) if inspect.getmodule(algorithm.rule) is module else ""
    return ["## In the paper's symbols", _prose(doc), _prose(own or "")]


def _module_of(algorithm: Algorithm) -> ModuleType:
    """Module in which an algorithm is made; others import it."""
    package = "oco.compiler.algorithms."
    modules = [m for name, m in sys.modules.items() if name.startswith(package)]
    owners = [m for m in modules if any(value is algorithm for value in vars(m).values())]
    return next(m for m in owners if f'name="{algorithm.name}"' in inspect.getsource(m))


def _prose(doc: str) -> str:
    """Docstring in Markdown: indented lines are formulas, the others are text whose signs mean nothing."""
    parts = []
    for part in doc.split("\n\n"):
        if part.startswith("    "):
            parts.append("```text\n" + inspect.cleandoc(part) + "\n```")
        elif "\n    " in part and not part.startswith("*"):
            lines = part.splitlines()
            first = next(i for i, line in enumerate(lines) if line.startswith("    "))
            parts += [
                _marked(" ".join(lines[:first])),
                "```text\n" + inspect.cleandoc("\n".join(lines[first:])) + "\n```",
            ]
        else:
            parts.append("\n".join(_marked(line) for line in part.splitlines()))
    return "\n\n".join(parts)


def _marked(text: str) -> str:
    """Line with the signs of Markdown escaped outside of spans of code; the star of a list stays, a sum that goes on is no list."""
    star = "* " if text.startswith("* ") else ""
    pieces = re.split(r"(`[^`]*`)", text.removeprefix(star))
    escaped = star + "".join(p if p.startswith("`") else _escaped(p) for p in pieces)
    return re.sub(r"^( *)([+-]) ", r"\1\\\2 ", escaped)


def _escaped(text: str) -> str:
    return re.sub(r"([*_\[\]\\|])", r"\\\1", text).replace("<", "&lt;")


def _rule(algorithm: Algorithm, model: Model | None) -> list[str]:
    """Model and the functions of the learner that is written for it."""
    if model is None:
        return []
    _, text, plan = model
    source = plan.source("numpy").split("# The rule ---")[1].split("\n# What goes in and out")[0]
    functions = re.findall(r"^def (?:init|decide|update|prepare)\(.*?(?=^def |\Z)", source, re.MULTILINE | re.DOTALL)
    symbols = [f"| `{name}` | {meaning} |" for name, meaning in algorithm.symbols.items()]
    table = ["| variable | what it is |", "| --- | --- |", *symbols] if symbols else []
    departures = [f"* {d}" for d in algorithm.departures]
    return [
        "## The rule",
        "As it is written for the model below: `decide` gives the decision of a round, `update` learns from what came.",
        f"```oco\n{text.strip()}\n```",
        f"```python\n{_first_lines(''.join(functions))}\n```",
        "\n".join(table),
        "It departs from the paper:\n\n" + "\n".join(departures) if departures else "",
    ]


def _first_lines(code: str) -> str:
    """Code, cut where it is longer than two screens."""
    lines = code.rstrip().splitlines()
    cut = [f"    # {len(lines) - MOST_LINES} lines more: `oco compile` writes all"] if len(lines) > MOST_LINES else []
    return "\n".join([*lines[:MOST_LINES], *cut])


def _theorems(algorithm: Algorithm) -> list[str]:
    parts = ["## Theorems"]
    if algorithm.requirements:
        parts.append("The rule itself needs:\n\n" + "\n".join(f"* {h.words}" for h in algorithm.requirements))
    for theorem in algorithm.theorems:
        words = "\n".join(f"* {_marked(h.words)}" for h in theorem.hypotheses)
        mean = " in expectation" if theorem.expected else ""
        says = (
            f"Promises{mean} {_rates(theorem)}, where" if algorithm.promises else "Promises nothing, and asks for this:"
        )
        parts += [f"### {theorem.name}", says, words]
    return parts


def _promises(algorithm: Algorithm) -> str:
    return "; ".join(_rates(t) for t in algorithm.theorems) if algorithm.promises else "nothing"


def _rates(theorem: Theorem) -> str:
    return ", ".join(f"{measure} O({rate.replace('**', '^')})" for measure, rate in theorem.rates.items()).replace(
        "*", " "
    )


def _constants(guarantee: Guarantee) -> list[str]:
    """Bounds as formulas with their quantities, for the model above."""
    parts = [
        "## Constants",
        f"For the model above, T = {ROUNDS}, with the paper's settings: {guarantee.theorem}. A number is *vacuous* where no decisions "
        "could do worse.",
    ]
    for bound in guarantee.bounds:
        number = bound.number(ROUNDS)
        shown = "" if number is None else f" ≤ {number:,.6g}"
        vacuous = " (vacuous)" if bound.vacuous(ROUNDS) else ""
        parts.append(f"**{bound.measure[0].upper()}{bound.measure[1:]}**{shown}{vacuous}")
        parts.append(_formula(bound))
        symbols = {s.name for s in _expression(bound).free_symbols} if bound.formula else set()
        used = [q for q in bound.quantities if q.name in symbols]
        if used:
            rows = [f"| `{q.name}` | {_marked(q.meaning)} |" for q in used]
            parts.append("\n".join(["| in it | is |", "| --- | --- |", *rows]))
        if bound.note:
            parts.append(_marked(bound.note[0].upper() + bound.note[1:]) + ".")
    if guarantee.provisos:
        parts.append("It is about:\n\n" + "\n".join(f"* {_marked(p)}" for p in guarantee.provisos))
    return parts


def _expression(bound: Bound) -> Any:
    """Formula over the names of the quantities, or the rate where none is known, as SymPy has it."""
    import sympy

    known = sympy.sympify(bound.expression if bound.formula else parse_formula(bound.rate, rate_symbols()))
    names = {q.latex: q.name for q in bound.quantities}
    return known.xreplace({s: sympy.Symbol(names.get(s.name, s.name), positive=True) for s in known.free_symbols})


def _formula(bound: Bound) -> str:
    """Formula as MathML, which browsers set without a script; its rate where no formula is known."""
    import sympy

    text, expression = bound.formula or bound.rate, _expression(bound)
    try:
        shown = sympy.mathml(expression, printer="presentation", mul_symbol="dot")
    except Exception:  # a formula that SymPy cannot set stands as it is written
        return f"```text\n{text}\n```"
    order = "" if bound.formula else "<mi>O</mi>"
    return f'<div class="formula"><math display="block" alttext="{escape(text)}">{order}{shown}</math></div>'


def data_of(plan: Any, rng: np.random.Generator) -> Mapping[str, np.ndarray[Any, Any]]:
    """Rounds in which each entry of what has no distribution is one end of its range or the other, by a fair coin."""
    drawn = {}
    for s in plan.canonical.streams:
        if s.distribution is None:
            ends = rng.random((ROUNDS, *s.shape)) < 0.5
            drawn[s.name] = np.where(ends, np.broadcast_to(s.lower, s.shape), np.broadcast_to(s.upper, s.shape))
    return drawn


def _run(algorithm: Algorithm, model: Model) -> list[str]:
    """Plot of the regret and the violation of a run beside their bounds."""
    shape, _, plan = model
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trace = plan.run(data_of(plan, np.random.default_rng(0)) or None, rounds=ROUNDS, seed=0)
        broken, constrained = is_broken(trace), bool(trace.labels or trace.equality_labels)
        drawn = inline(trace, ["regret", *(["violation"] if broken else [])])
    kept = " No constraint was broken." if constrained and not broken else ""
    return [
        "## A run",
        f"{ROUNDS} rounds of the model above ({shape}), each entry of the streams at one end of its range or the other by a fair coin, "
        "or drawn where the model states a distribution. A bound far above the curve is written below it." + kept,
        drawn,
    ]


def _errata(algorithm: Algorithm) -> list[str]:
    """Section of `docs/errata.md` that names the algorithm in its heading's first line."""
    for heading, body in errata():
        if f"`{algorithm.name}`" in body.split("\n\n")[1]:
            return ["## Errata and silences of the paper", f"*{heading}.*", "\n\n".join(body.split("\n\n")[2:]).strip()]
    return ["## Errata and silences of the paper", "None are known."]


def errata() -> Iterator[tuple[str, str]]:
    """Sections of the errata: heading, and text with a first paragraph that names the algorithms."""
    for part in ERRATA.read_text(encoding="utf-8").split("\n## ")[1:]:
        heading, _, body = part.partition("\n")
        yield heading, f"\n{body}"
