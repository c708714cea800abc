"""Reference pages: the Python interface with executed examples, and the grammar of the language."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from oco.dsl.atoms import ATOMS
from oco.dsl.build import call
from oco.dsl.distributions import DISTRIBUTIONS
from oco.dsl.domains import DOMAINS
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Kind, Name
from oco.dsl.text.words import CONTEXTUAL_WORDS, STATEMENT_WORDS
from oco.reference import reference

ROOT = Path(__file__).parent.parent
EXAMPLES = Path(__file__).parent / "examples_of_api.md"
GRAMMAR = ROOT / "grammar" / "oco.lark"


def examples() -> dict[str, str]:
    """Examples of the interface by name, written in `examples_of_api.md`, and made of the tables for words of the language."""
    parts = EXAMPLES.read_text(encoding="utf-8").split("\n## ")[1:]
    return {part.partition("\n")[0].strip("` "): part.partition("\n")[2].strip() for part in parts}


def interface() -> str:
    """Page of the interface, an executed example below each name."""
    written = examples()
    parts = re.split(r"(?m)^(?=### `|## )", reference())
    head = parts[0].replace(
        "Written by `make stubs` from the docstrings. ", "Made of the docstrings; each example was run for this page. "
    )
    first = "<!-- run python\nimport numpy as np\nimport oco\nfrom oco.dsl.evaluate import evaluate\n-->\n"
    return "".join([head, first, *(_with_example(part, written) for part in parts[1:])])


def names_of(page: str) -> list[str]:
    """Names that have a section on the page of the interface."""
    return re.findall(r"(?m)^### `(\w+)", page)


def _with_example(part: str, written: dict[str, str]) -> str:
    match = re.match(r"### `(\w+)", part)
    if match is None:
        return part
    example = written.get(match[1]) or _of_word(match[1])
    heading, _, body = part.partition("\n")
    return f"{heading} {{ data-toc-label='{match[1]}' }}\n{body.rstrip()}\n\n{example}\n\n"


CALLS = {
    "ahead": "ahead(f)",
    "diag": "diag(x)",
    "dot": "dot(x, x)",
    "ewma": "ewma(s, 0.1)",
    "eye": "eye(2)",
    "huber": "huber(x, M=1)",
    "kl_div": "kl_div(x, 1)",
    "last": "last(s)",
    "maximum": "maximum(x, 1)",
    "minimum": "minimum(x, 1)",
    "nuclear_norm": "nuclear_norm(oco.diag(x))",
    "ones": "ones(3)",
    "outer": "outer(x, x)",
    "power": "power(x, 3)",
    "quad_form": "quad_form(x, np.eye(3))",
    "range": "range(0, 3)",
    "rel_entr": "rel_entr(x, 1)",
    "repeat": "repeat([1, 2], 2)",
    "season": "season(s, 24)",
    "sigma_max": "sigma_max(oco.diag(x))",
    "trace": "trace(oco.diag(x))",
    "zeros": "zeros(3)",
}
"""Calls of the functions of the language that take more than one array; of the others it is `NAME(x)`."""
PREDICTING = ("ahead", "ewma", "last", "season")
"""Statistics of earlier rounds, and entries of forecasts, which stand in predictions."""


def _of_word(name: str) -> str:
    """Example of a word of the language: a distribution draws, a function has a value. Those of domains are in `examples_of_api.md`."""
    if name in DISTRIBUTIONS:
        return _of_distribution(name)
    if name not in ATOMS and name not in (*PREDICTING, "prev"):
        return ""
    head = 'm = oco.Model("words", horizon=9)\nx = m.decision("x", 3, domain=oco.box(0.5, 2))\n'
    call_ = f"oco.{CALLS.get(name, f'{name}(x)')}"
    if name in PREDICTING:
        context = 'f = m.context("f", 24, bounds=(0, 1))\n' if name == "ahead" else ""
        last = f'{context}s = m.stream("s", bounds=(0, 1))\nm.predict(s, {call_})\nm.minimize(s * oco.sum(x))\nprint(m.to_oco())'
    elif name == "prev":
        last = "m.minimize(oco.sum(x) + oco.norm1(x - oco.prev(x)))\nprint(m.to_oco())"
    else:
        last = f"term = {call_}\nprint(term, term.shape)\nevaluate(term.expr, {{'x': np.array([0.5, 1.0, 2.0])}})"
    return f"```python\n{head}{last}\n```"


def _of_distribution(name: str) -> str:
    words = {
        "shape": "3",
        "mean": "4",
        "lo": "0",
        "hi": "2",
        "sd": "1",
        "p": "0.5",
        "n": "10",
        "a": "2",
        "b": "3",
        "mu": "0",
    }
    words |= {"sigma": "0.5", "v": "7"}
    signature = DISTRIBUTIONS[name].signature
    given = (
        "[0.2, 0.3, 0.5]" if name == "categorical" else ", ".join(_argument(a, words) for a in _arguments(signature))
    )
    return f"""```python
m = oco.Model("draws", horizon=4)
s = m.stream("s", dist=oco.{name}({given}))
x = m.decision("x", domain=oco.box(0, 1))
m.minimize(s * x)
oco.compile(m, "hedged").run(rounds=4, seed=1).data.array("s")
```"""


def _arguments(signature: str) -> list[str]:
    return [a.strip() for a in signature.partition("(")[2].rstrip(")").split(",")]


def _argument(argument: str, words: dict[str, str]) -> str:
    name, equal, _ = (part.strip() for part in argument.partition("="))
    return f"{name}={words[name]}" if equal else words[name]


def grammar() -> str:
    """Page of the grammar: each statement with its rule, then expressions, then the list of words."""
    text = GRAMMAR.read_text(encoding="utf-8")
    rules = text[text.index("?statement") : text.index("%declare")].strip()
    statements, _, expressions = rules.partition("// Expressions, loosest first.")
    reserved = ", ".join(f"`{word}`" for word in STATEMENT_WORDS)
    others = ", ".join(f"`{word}`" for word in CONTEXTUAL_WORDS)
    rows = [f"| `{name}` | {row.doc.replace('|', chr(92) + '|')} |" for name, row in DOMAINS.items()]
    return "\n".join(
        [
            "# Grammar",
            "",
            "The grammar that the parser is made of, LALR(1), a statement at a time. Terminals are words in capitals: `MODEL` is the word "
            "`model`. What each statement means stands in [the language](language.md).",
            "",
            "## Statements",
            "",
            f"```text\n{statements.strip()}\n```",
            "",
            "## Expressions",
            "",
            "From the loosest to the tightest.",
            "",
            f"```text\n{expressions.strip()}\n```",
            "",
            "## Words",
            "",
            f"Reserved, since they begin statements: {reserved}.",
            "",
            f"With a meaning where a statement expects them, and names elsewhere: {others}.",
            "",
            "## Functions and their curvature",
            "",
            "Value at 0.5 where one number is taken, and curvature over the range [0.25, 0.75].",
            "",
            *_functions(),
            "",
            "## Domains",
            "",
            "| domain | the decisions x in it |",
            "| --- | --- |",
            *rows,
            "",
        ]
    )


def _functions() -> list[str]:
    """Rows of the functions that take one number."""
    from oco.dsl.intervals import Interval

    rows = ["| function | value | at 0.5 | curvature | monotone |", "| --- | --- | --- | --- | --- |"]
    x = Name("x", Kind.DECISION, shape=())
    within = Interval(np.float64(0.25), np.float64(0.75), ())
    for name, atom in ATOMS.items():
        if atom.operator or name.startswith("_") or atom.arity[0] != 1 or atom.vjp is None:
            continue
        try:
            made = call(name, x)
            value = float(evaluate(made, {"x": np.float64(0.5)}))
            curvature, monotone = atom.curvature(made, (within,), (True,)), atom.monotone(made, within)[0]
        except Exception:  # it takes arrays alone
            continue
        doc = atom.doc.replace("|", "\\|")
        rows.append(f"| `{name}` | {doc} | {value:.6g} | {curvature} | {monotone} |")
    return rows
