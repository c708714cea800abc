"""Words that may come next at a place of a model file, and the arguments of the call that is being written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from oco.dsl.distributions import DISTRIBUTIONS
from oco.dsl.domains import DOMAINS
from oco.dsl.fact_keys import catalogue
from oco.dsl.records import dataclass
from oco.dsl.text import syntax
from oco.dsl.text.words import CONSTRAINT_FORM
from oco.lsp.document import Document
from oco.lsp.glossary import Word, algorithms, functions, statements

TIMINGS = ("each round", "on average", "in total", "in 95% of rounds")
FIXED = {
    r"feedback\s+\w*": ("full", "gradient", "two_point", "bandit"),
    r"feedback\s+\w+\s+\w*": ("delayed",),
    r"measure\s+\w*": ("static regret", "dynamic regret"),
    r"horizon\s+\w*": ("T = 1000", "T unknown"),
    r"subject\s+\w*": ("to",),
}
"""Words of statements that have no others, by what stands before them in the line."""


@dataclass(frozen=True)
class Proposal:
    """Word that may come next: what is written, what it is ("function", "name", "setting", ...), and its documentation."""

    text: str
    kind: str
    detail: str = ""
    documentation: str = ""


@dataclass(frozen=True)
class CallBegun:
    """Call in which a character stands: the function and the place of the argument, from 0."""

    word: Word
    argument: int


def completion(document: Document, offset: int) -> list[Proposal]:
    """Words that may come next where a character stands, those of the place first."""
    line = document.source.text[document.source.text.rfind("\n", 0, offset) + 1 : offset]
    if "#" in line or line.count('"') % 2:
        return []
    for before, words in FIXED.items():
        if re.fullmatch(before, line):
            return [Proposal(word, "keyword") for word in words]
    if re.fullmatch(r"\w*", line):
        begun = [Proposal(word.name, "keyword", word.form) for word in statements().values()]
        return [Proposal("subject to", "keyword", CONSTRAINT_FORM) if p.text == "subject" else p for p in begun]
    if re.fullmatch(r"decision\s+[\w\[\], ]+\sin\s+\w*", line):
        return [_proposal(functions()[name]) for name in DOMAINS]
    if re.fullmatch(r"(stream|context)\s.*~\s*\w*", line):
        return [_proposal(functions()[name]) for name in DISTRIBUTIONS]
    if re.fullmatch(r"using\s+[\w-]*", line):
        return [Proposal(w.name, "algorithm", w.text.split("\n")[0], w.text) for w in algorithms().values()]
    if match := re.fullmatch(r"using\s+([\w-]+)\s+with\s+(.*,\s*)?\w*", line):
        known = algorithms().get(match[1])
        return [
            Proposal(f"{name} = ", "setting", f"setting of {match[1]}") for name in (known.arguments if known else ())
        ]
    if re.fullmatch(r"assume\s+[\w.]*", line):
        labels = tuple(o.name for o in document.occurrences if o.space == "label" and o.declares)
        return [Proposal(row.key, "fact", row.words) for row in catalogue(labels).values()]
    if re.fullmatch(r"\s+\w+(\[[^\]]*\])?\s*:.*(<=|>=|==).*\s{1,}\w*", line):
        return [*(Proposal(words, "keyword") for words in TIMINGS), *_names(document), *map(_proposal, _atoms())]
    return [*_names(document), *map(_proposal, _atoms())]


def call_at(document: Document, offset: int) -> CallBegun | None:
    """Innermost call of a known function whose brackets are open where a character stands."""
    opened: list[tuple[str, int]] = []
    begin = document.source.text.rfind("\n", 0, offset) + 1
    statement = document.statement_at(offset)
    begin = min(begin, statement.span.start) if statement is not None else begin
    before = ""
    for token in document.tokens:
        if token.start < begin or token.start >= offset:
            continue
        if token.type in ("LPAR", "LSQB", "LBRACE"):
            opened.append((before if token.type == "LPAR" else "", 0))
        elif token.type in ("RPAR", "RSQB", "RBRACE") and opened:
            opened.pop()
        elif token.type == "COMMA" and opened:
            opened[-1] = (opened[-1][0], opened[-1][1] + 1)
        before = token.text
    for name, place in reversed(opened):
        if name in functions():
            return CallBegun(functions()[name], place)
    return None


def _atoms() -> Iterable[Word]:
    return [word for word in functions().values() if word.kind == "atom"]


def _names(document: Document) -> Iterator[Proposal]:
    for occurrence in document.occurrences:
        if occurrence.declares and occurrence.space == "name":
            statement = document.statement_of(occurrence)
            yield Proposal(occurrence.name, _kind(statement), statement.span.text.split("\n")[0] if statement else "")
    yield Proposal("t", "name", "the round, from 1 on")
    yield Proposal("T", "name", "the horizon")


def _kind(statement: syntax.Statement | None) -> str:
    return "constant" if isinstance(statement, syntax.ParamStatement | syntax.IndexStatement) else "name"


def _proposal(word: Word) -> Proposal:
    return Proposal(word.name, "function", word.form, word.text)
