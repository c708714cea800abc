"""Words of papers and of other modelling languages in statements, and what is written here in their place."""

from __future__ import annotations

import re
from collections.abc import Sequence

from oco.dsl.diagnostics import Diagnostic
from oco.dsl.text.tokens import NAME_KINDS, Token

LOOP_WORDS = frozenset({"for", "forall", "if", "else", "and", "or", "not", "while"})
PACKAGES = ("np", "numpy", "cp", "cvxpy", "math", "oco", "pd")
INTEGERS = frozenset({"integer", "integers", "int", "binary", "bool", "boolean", "integral"})
EACH_WORDS = ("each", "every", "all", "always", "hard")
CHANCES = ("probability", "prob", "chance", "confidence")


def integers(tokens: Sequence[Token], position: int) -> Diagnostic | None:
    """Diagnostic of a decision whose entries are called integers; `position` is where reading stopped."""
    near = tokens[max(position - 1, 2) : position + 2]
    word = next((token for token in near if token.text.lower() in INTEGERS), None)
    if tokens[0].type != "DECISION" or word is None:
        return None
    hint = "decisions of 0 and 1 are `in {0, 1}`, or drawn: `in box(0, 1) rounded`; other entries are numbers between their bounds"
    return Diagnostic("OCO119", f"`{word.text}` is no word of a decision", word.span, hint)


def timing_hint(text: str) -> str:
    """Hint for words after a constraint that say when it holds, none of which is known."""
    if "%" in text or any(word in text for word in CHANCES):
        numbers = [float(n) for n in re.findall(r"\d*\.?\d+", text)]
        share = next((100 * p for p in numbers if 0 < p < 1), next((p for p in numbers if 1 <= p <= 100), 95))
        return f"write `in {share:g}% of rounds`, a share that is kept on every sequence"
    words = "each round" if any(word in text for word in EACH_WORDS) else "on average"
    return f"did you mean `{'in total' if 'total' in text else words}`?"


def loop_word(statement: str, word: Token) -> Diagnostic:
    """Diagnostic of a word of loops and conditions in an expression."""
    hint = "there are no loops and conditions; operations work on whole arrays: `sum(a * x)`"
    if word.text == "if":
        data = "what changes from round to round is a stream, as `least` in `sum(x) >= least`"
        hint = f"there are no conditions: operations work on whole arrays, and {data}"
    elif word.text == "forall":
        hint = "a constraint of arrays holds for every entry: `cap: x <= 1 each round`; one of an index is `cap[i in zone]: ...`"
    elif word.text == "and" and statement == "decision":
        hint = "comparisons narrow a domain: `in box(0, 1) with sum(x) <= 2`"
    return Diagnostic("OCO100", f"`{word.text}` means nothing here", word.span, hint)


def call_hint(tokens: Sequence[Token], position: int) -> str:
    """Hint for a bracket behind what is no function: `np.sum(x)` and `x.sum()` of Python, or a product."""
    written = "".join(token.text for token in tokens[max(position - 3, 0) : position])
    owner, dot, name = written.rpartition(".")
    base = re.split(r"\W", owner)[-1]
    if not dot or not base:
        return "a product is written with `*`"
    return f"functions stand alone: `{name}(...)`" if base in PACKAGES else f"write `{name}({base})`"


def sign_hint(tokens: Sequence[Token], position: int, expected: frozenset[str]) -> str:
    """Hint for a sign of another language where reading stopped; empty where it is none."""
    if position >= len(tokens):
        return ""
    at, before = tokens[position], tokens[max(position - 1, 0)]
    if at.type in ("COLON", "EQUAL") and position == 1:
        return f"leave the {'colon' if at.type == 'COLON' else '`=`'} out"
    if at.type == before.type and at.type in ("SLASH", "MINUS"):
        return "a comment starts with `#`" + (", and a quotient is written `/`" if at.type == "SLASH" else "")
    if before.type == "COMMA" and expected == {"PENALTY"}:
        return "leave the comma out: one stands before `penalty` alone"
    if at.type == "LBRACE" and before.type in NAME_KINDS:
        return "functions take whole arrays in ( ): `sum(a * x)`"
    return ""
