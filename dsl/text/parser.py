"""Parsing of text into the syntax tree. Every statement is parsed alone: a mistake in one is reported and leaves the
others intact.
"""

from __future__ import annotations

from typing import Any, cast

from oco.dsl.chains import PLAIN, levels
from oco.dsl.diagnostics import MOST_MISTAKES, Diagnostic, OcoError
from oco.dsl.limits import DEEPEST, MOST_PARTS, TEXT_LIMIT, too_deep, too_long
from oco.dsl.source import Source
from oco.dsl.text import syntax
from oco.dsl.text.clauses import attribute
from oco.dsl.text.headings import DECLARING, Heading, recognise
from oco.dsl.text.lines import Line, split, unclosed
from oco.dsl.text.machine import END, Machine
from oco.dsl.text.mistakes import ParseFailure, explain
from oco.dsl.text.spacing import canonical
from oco.dsl.text.tables import tables
from oco.dsl.text.tokens import NAME_KINDS, Token, scan
from oco.dsl.text.tree import TreeBuilder


def parse_file(source: Source) -> tuple[syntax.SourceFile, list[Diagnostic]]:
    """Syntax tree and diagnostics of a text, at most one a statement.

    A statement that cannot be read becomes an `UnreadableStatement`, so that later stages know that it is missing.
    After `MOST_MISTAKES` diagnostics the rest of the text is left unread.
    """
    if len(source.text) > TEXT_LIMIT:
        message = f"the text has {len(source.text)} characters; at most {TEXT_LIMIT} are read"
        return syntax.SourceFile(source, ()), [
            Diagnostic("OCO129", message, None, "put large data in a file: `param A[m, n] = file(...)`")
        ]
    statements: list[syntax.Statement] = []
    findings: list[Diagnostic] = []
    under_subject_to = False
    broken_off: Heading | None = None
    for line in split(scan(source)):
        if len(findings) >= MOST_MISTAKES:
            break
        heading = recognise(line.tokens, under_subject_to)
        if broken_off is not None and heading.problem is not None and heading.word in ("", "constraint"):
            statements.append(_continuation(line, broken_off))
            broken_off = None
            continue
        under_subject_to = heading.word in ("subject", "constraint") or (under_subject_to and not heading.word)
        broken_off = None
        try:
            statements.append(_read(line, heading))
            findings += [heading.problem] if heading.problem is not None else []
        except OcoError as error:
            problem = heading.problem or error.diagnostics[0]
            broken_off = heading if problem.span is not None and problem.span.start == line.span.end else None
            findings.append(problem)
            statements.append(syntax.UnreadableStatement(heading.word, heading.name, span=line.span))
    return syntax.SourceFile(source, tuple(statements)), findings


def _continuation(line: Line, before: Heading) -> syntax.UnreadableStatement:
    """True for a line that begins no statement after a broken one: the rest of that one, reported already."""
    first = line.tokens[0]
    declares = before.word in DECLARING and before.name is None and first.type in NAME_KINDS
    name = syntax.Identifier(first.text, span=first.span) if declares else before.name
    return syntax.UnreadableStatement(before.word, name, span=line.span)


def parse_formula(text: str) -> syntax.Expression:
    """Formula in t, T and the keys of facts, as in `using coldq with alpha = FORMULA`. Keys of facts are identifiers."""
    source = Source("<formula>", text)
    lines = split(scan(source))
    tokens = [token for line in lines for token in line.tokens]
    for line in lines:
        if line.problem is not None:
            raise OcoError(line.problem)
    result = _run(tokens, "formula") if tokens else None
    if result is None:
        raise OcoError(Diagnostic("OCO100", "expected a formula"))
    return cast(syntax.Expression, result)


def formula_text(text: str) -> str:
    """Formula as `print_model` writes it. Raises OcoError where it cannot be read."""
    parse_formula(text)
    return canonical(text)


def _read(line: Line, heading: Heading) -> syntax.Statement:
    """Statement of a line, parsed by the kind of its heading."""
    if line.problem is not None and heading.problem is None:
        raise OcoError(line.problem)
    if heading.tokens is None or line.problem is not None:
        raise OcoError(heading.problem or unclosed(line.tokens[0]))
    statement: syntax.Statement = _run(heading.tokens, "statement")
    _refuse_facts(statement, heading.tokens)
    return statement


def _run(tokens: list[Token], start: str) -> Any:
    """Feed the tokens to the parser. A word that the parser does not expect as such is a name."""
    parser = Machine(tables(), TreeBuilder(), start)
    for fed, token in enumerate(tokens):
        if token.type in NAME_KINDS and not parser.fits(token.type):
            token = token._replace(type="NAME")
        if not parser.feed(token.type, token):
            raise OcoError(explain(ParseFailure(tokens, fed, parser.accepts())))
    if not parser.feed(END, None):
        raise OcoError(explain(ParseFailure(tokens, len(tokens), parser.accepts())))
    tree = parser.values[-1]
    _check_depth(tree, balances=start == "statement")
    return tree


def _check_depth(tree: syntax.Node, balances: bool) -> None:
    """Refuse an expression that nests too deep, without recursion.

    balances  True where long sums are balanced, as in statements; formulas keep theirs as written
    """
    stack: list[tuple[syntax.Node, int]] = [(tree, 0)]
    while stack:
        node, depth = stack.pop()
        if depth > DEEPEST:
            raise OcoError(too_deep(node.span))
        first, links = syntax.sum_of(node) if balances and isinstance(node, syntax.Call) else (node, [])
        if len(links) >= MOST_PARTS:
            raise OcoError(too_long(node.span))
        if len(links) >= PLAIN:
            depth += levels(len(links) + 1)
            stack += [(first, depth), *((link.args[1], depth) for link in links)]
        else:
            stack += [(part, depth + 1) for part in _parts(node)]


def _parts(node: syntax.Node) -> list[syntax.Node]:
    parts: list[syntax.Node] = []
    stack: list[Any] = list(vars(node).values())
    while stack:
        value = stack.pop()
        if isinstance(value, syntax.Node):
            parts.append(value)
        elif isinstance(value, tuple):
            stack.extend(value)
    return parts


def _refuse_facts(statement: syntax.Statement, tokens: list[Token]) -> None:
    """Refuse keys of facts outside the formulas of `using` and the left side of `assume`."""
    if isinstance(statement, syntax.UsingStatement):
        return
    first = 0
    if isinstance(statement, syntax.AssumeStatement):
        first = next((i for i, token in enumerate(tokens) if token.type in ("LE", "GE")), len(tokens))
    for dot, after in zip(tokens[first:], tokens[first + 1 :]):
        if dot.type == "DOT" and after.type != "T":
            raise attribute(after)
