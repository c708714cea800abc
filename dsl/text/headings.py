"""Kind of the statement on a line, recognized by its first tokens, even where they are misspelt."""

from __future__ import annotations

from itertools import pairwise, takewhile
from typing import NamedTuple

from oco.dsl.diagnostics import Diagnostic
from oco.dsl.suggest import nearest
from oco.dsl.text import syntax
from oco.dsl.text.lines import RELATIONS
from oco.dsl.text.mistakes import later
from oco.dsl.text.other_languages import LOOP_WORDS
from oco.dsl.text.spacing import canonical
from oco.dsl.text.tokens import LATER_KINDS, NAME_KINDS, STATEMENT_KINDS, Token, label_end
from oco.dsl.text.words import STATEMENT_WORDS, SYNONYMS, shown

DECLARING = frozenset({"index", "param", "decision", "stream", "context", "state", "let", "model"})
LONGEST = 60  # characters of a line that a hint repeats
OPERAND_STARTS = NAME_KINDS | {"NUMBER", "TEXT", "MINUS", "LPAR", "ALGORITHM"}


class Heading(NamedTuple):
    """Heading of a line.

    word     begins the statement ("constraint" for a labelled one, "" when nothing is near)
    name     the name that it declares, if that can be seen
    problem  the mistake in the heading
    tokens   tokens to parse, None where parsing is of no use
    """

    word: str
    name: syntax.Identifier | None
    problem: Diagnostic | None
    tokens: list[Token] | None


def recognise(tokens: list[Token], under_subject_to: bool) -> Heading:
    """Heading of a line. `under_subject_to`: constraints were the last thing before it."""
    first = tokens[0]
    second = tokens[1].type if len(tokens) > 1 else ""
    compares = any(t.type in RELATIONS for t in tokens)
    if first.type in STATEMENT_KINDS:
        if second == "COLON" and under_subject_to and compares:
            message = f"`{first.text}` begins a statement, so it cannot be a label"
            return Heading("constraint", None, Diagnostic("OCO110", message, first.span, "choose another label"), None)
        return Heading(first.text, _declared(first.text, tokens), None, tokens)
    if first.type in LATER_KINDS:
        return Heading("", None, later(first), None)
    if first.type not in NAME_KINDS:
        return _without_word(tokens, under_subject_to, compares)
    if label_end(tokens) > 0:
        return Heading("constraint", syntax.Identifier(first.text, span=first.span), None, tokens)
    return _misspelt(tokens, under_subject_to, compares)


def _declared(word: str, tokens: list[Token]) -> syntax.Identifier | None:
    if word in DECLARING and len(tokens) > 1 and tokens[1].type in NAME_KINDS:
        return syntax.Identifier(tokens[1].text, span=tokens[1].span)
    return None


def _misspelt(tokens: list[Token], under_subject_to: bool, compares: bool) -> Heading:
    """Heading of a line that begins with a word which begins no statement."""
    first = tokens[0]
    second = tokens[1].type if len(tokens) > 1 else ""
    lowered = first.text.lower()
    if lowered == "s" and second == "DOT":
        hint = "write `subject to`, and the constraints below it"
        return Heading("subject", None, Diagnostic("OCO108", "`s.t.` begins no statement", first.span, hint), None)
    if lowered == "set" and second in NAME_KINDS:
        name = syntax.Identifier(tokens[1].text, span=tokens[1].span)
        size = tokens[1].text.lower()
        hint = f"shapes are numbers: write `param {size} = 24`, then `decision x[{size}] in ...`"
        return Heading("param", name, Diagnostic("OCO108", "`set` begins no statement", first.span, hint), None)
    if lowered == "where" and compares:
        hint = "write `subject to`, and each constraint below it with a label"
        return Heading("constraint", None, Diagnostic("OCO108", "`where` begins no statement", first.span, hint), None)
    if second == "EQUAL":
        name = syntax.Identifier(first.text, span=first.span)
        hint = f"write `let {first.text} = ...`"
        if lowered in ("t", "horizon"):
            hint = "write `horizon T = ...`"
        return Heading(
            "let", name, Diagnostic("OCO108", "a value is named by `let` or `param`", first.span, hint), None
        )
    word = nearest(first.text, STATEMENT_WORDS)
    if second in OPERAND_STARTS or (second == "" and word == "subject"):
        word = word or SYNONYMS.get(lowered)
    elif word is not None and compares and word != "assume":
        word = None
    if word is None or (compares and under_subject_to and word not in ("assume", "subject")):
        if compares or (under_subject_to and lowered not in LOOP_WORDS):
            return _without_label(tokens, under_subject_to)
        return _unknown(tokens)
    problem = Diagnostic("OCO108", f"`{first.text}` begins no statement", first.span, f"did you mean `{shown(word)}`?")
    if word == "subject":
        return Heading("subject", None, problem, None)
    right = [first._replace(type=word.upper()), *tokens[1:]]
    return Heading(word, _declared(word, tokens), problem, right)


def _without_word(tokens: list[Token], under_subject_to: bool, compares: bool) -> Heading:
    """Heading of a line that begins with a number, a sign or a bracket."""
    if compares or (under_subject_to and tokens[0].type in OPERAND_STARTS | {"LSQB"}):
        return _without_label(tokens, under_subject_to)
    return _unknown(tokens)


def _without_label(tokens: list[Token], under_subject_to: bool) -> Heading:
    first = tokens[0]
    if under_subject_to:
        text = canonical(first.span.to(tokens[-1].span).text)
        hint = f"write `cap: {text if len(text) <= LONGEST else '...'}`"
        if first.type == "COLON":
            hint = "write a name before the colon"
        elif first.type in NAME_KINDS and len(tokens) > 1 and tokens[1].type == "LSQB" and _has_colon(tokens):
            hint = f"a constraint of arrays holds for every entry: write `{first.text}: x <= 1`, without an index"
        elif first.type in NAME_KINDS and len(tokens) > 1 and tokens[1].type in OPERAND_STARTS - {"MINUS", "LPAR"}:
            hint = f"write `{_one_word(tokens) or first.text}: ...`"
        problem = Diagnostic("OCO109", "a constraint begins with a label", first.span, hint)
    else:
        problem = Diagnostic(
            "OCO109",
            "a constraint stands under `subject to`, with a label",
            first.span,
            "write `subject to` on the line before",
        )
    return Heading("constraint", None, problem, None)


def _one_word(tokens: list[Token]) -> str:
    """Label in one word for `never too much: ...`; "" where the line has no words before a colon."""
    words = [t.text for t in takewhile(lambda t: t.type != "COLON", tokens)]
    return "_".join(words) if len(words) < len(tokens) and all(map(str.isidentifier, words)) else ""


def _has_colon(tokens: list[Token]) -> bool:
    """True for `cap[h in hours]: ...`: a colon right behind the bracket."""
    return any(a.type == "RSQB" and b.type == "COLON" for a, b in pairwise(tokens))


def _unknown(tokens: list[Token]) -> Heading:
    if tokens[0].type == "SLASH":
        comment = Diagnostic("OCO108", "`/` begins no statement", tokens[0].span, "a comment starts with `#`")
        return Heading("", None, comment, None)
    *words, last = (f"`{shown(w)}`" for w in STATEMENT_WORDS)
    problem = Diagnostic(
        "OCO108",
        f"`{tokens[0].text}` begins no statement",
        tokens[0].span,
        f"a statement begins with {', '.join(words)} or {last}",
    )
    return Heading("", None, problem, None)
