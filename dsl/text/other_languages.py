"""Words of papers and of other modelling languages in statements, and what is written here in their place."""

from __future__ import annotations

import re
from collections.abc import Sequence

from oco.dsl.diagnostics import Diagnostic
from oco.dsl.text.tokens import Token

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
    if any(word in text for word in CHANCES):
        numbers = [float(n) for n in re.findall(r"\d*\.?\d+", text)]
        share = next((100 * p for p in numbers if 0 < p < 1), next((p for p in numbers if 1 <= p <= 100), 95))
        return f"write `in {share:g}% of rounds`, a share that is kept on every sequence"
    words = "each round" if any(word in text for word in EACH_WORDS) else "on average"
    return f"did you mean `{'in total' if 'total' in text else words}`?"
