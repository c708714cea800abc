"""Text that an editor shows over a word: a declaration with its facts, a function, an algorithm, a statement."""

from __future__ import annotations

from collections.abc import Iterator

from oco.dsl.fact_keys import catalogue, of_the_whole
from oco.dsl.source import Span
from oco.dsl.text import syntax
from oco.lsp.checked import Checked
from oco.lsp.document import Document, Occurrence
from oco.lsp.glossary import Word, algorithms, functions, statements

FIRST = ("convex", "structure", "lower", "upper", "lipschitz.l2", "smoothness.l2", "strong_convexity.l2")
"""Facts of a function that are shown, in this order."""
OF_DOMAIN = ("domain.diameter.l2", "domain.radius", "domain.projection", "domain.linear_minimisation")
BUILT_IN = {
    "t": "The round, from 1 on.",
    "T": "The horizon: the number of rounds.",
}


def hover(document: Document, checked: Checked, offset: int) -> tuple[Span, str] | None:
    """Part of the text that holds a character, and what is known of it, in Markdown; None where there is nothing to say."""
    token = document.token_at(offset)
    if token is None:
        return None
    key = _key_at(document, offset)
    if key is not None:
        return key[0], _of_key(document, checked, key[1])
    statement = document.statement_at(offset)
    algorithm = _algorithm_at(statement, offset)
    if algorithm is not None:
        return algorithm
    occurrence = document.at(offset)
    if occurrence is not None and (document.declaration(occurrence) is not None or occurrence.name in BUILT_IN):
        return occurrence.span, _of_name(document, checked, occurrence)
    if token.text in functions():
        return token.span, of_word(functions()[token.text])
    if token.text in statements() and statement is not None and token.start == statement.span.start:
        return token.span, _of_statement(statement, checked, token.text)
    return None


def _algorithm_at(statement: syntax.Statement | None, offset: int) -> tuple[Span, str] | None:
    """Algorithm of a `using` statement that holds a character."""
    if not isinstance(statement, syntax.UsingStatement) or statement.algorithm not in algorithms():
        return None
    start = statement.span.start + statement.span.text.index(statement.algorithm, len("using"))
    span = Span(statement.span.source, start, start + len(statement.algorithm))
    return (span, of_word(algorithms()[statement.algorithm])) if start <= offset <= span.end else None


def of_word(word: Word) -> str:
    """Form of a word of the language, and its meaning, in Markdown."""
    return f"```oco\n{word.form}\n```\n{word.text}".rstrip()


def _of_statement(statement: syntax.Statement, checked: Checked, word: str) -> str:
    lines = [of_word(statements()[word])]
    if isinstance(statement, syntax.MinimizeStatement):
        lines += _facts(checked, [f"loss.{key}" for key in FIRST])
    return "\n\n".join(lines)


def _of_name(document: Document, checked: Checked, occurrence: Occurrence) -> str:
    statement = document.statement_of(occurrence)
    if statement is None:
        return BUILT_IN[occurrence.name]
    lines = [f"```oco\n{statement.span.text}\n```"]
    shape = checked.shapes.get(occurrence.name)
    if shape is not None and occurrence.space == "name":
        known = checked.ranges.get(occurrence.name)
        lines.append((shape if shape == "a number" else f"shape {shape}") + (f", {known}" if known else ""))
    if isinstance(statement, syntax.ConstraintStatement):
        lines += _facts(checked, [f"constraints.{occurrence.name}.{key}" for key in FIRST])
    if isinstance(statement, syntax.DecisionStatement):
        lines += _facts(checked, OF_DOMAIN)
    return "\n\n".join(lines)


def _facts(checked: Checked, keys: list[str] | tuple[str, ...]) -> Iterator[str]:
    """Table of facts of which something is known, with the first line of the derivation of the first one."""
    known = [
        (key, checked.facts[key]) for key in keys if key in checked.facts and checked.facts[key].grade != "unknown"
    ]
    if known:
        rows = [f"| `{key}` | {_cell(fact.value)} | {fact.grade} |" for key, fact in known]
        yield "\n".join(["| fact | value | |", "| --- | --- | --- |", *rows])
    if known and known[0][1].why:
        yield known[0][1].why


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _key_at(document: Document, offset: int) -> tuple[Span, str] | None:
    """Key of a fact in `assume` that holds a character."""
    statement = document.statement_at(offset)
    if not isinstance(statement, syntax.AssumeStatement):
        return None
    text, start = statement.span.text, statement.span.start
    first = start + text.index(statement.key) if statement.key in text else start
    if not first <= offset <= first + len(statement.key) or document.at(offset) is not None:
        return None
    return Span(document.source, first, first + len(statement.key)), statement.key


def _of_key(document: Document, checked: Checked, key: str) -> str:
    labels = tuple(o.name for o in document.occurrences if o.space == "label" and o.declares)
    row = catalogue(labels).get(of_the_whole(key))
    lines = [f"`{key}`" if row is None else f"`{key}`: {row.words}"]
    return "\n\n".join([*lines, *_facts(checked, [key])])
