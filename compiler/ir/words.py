"""Words for values that nobody named, made of the operation and of what it works on: `total_price`, `capped_x`.

Such a value is temporary (`is_temporary`): a short expression stands where it is used, and a longer one under its word.
"""

from __future__ import annotations

import re
from functools import lru_cache

from oco.compiler.ir.names import KEPT, is_temporary

PREFIX = "v_"
"""Beginning of the hint of a temporary value that has a word."""
LONGEST = 28  # letters of a word of two parts, so that a line holds several
_VERSION = re.compile(r"_\d+$")
ONE = {
    "abs": "size",
    "argmax": "place_of_largest",
    "argmin": "place_of_least",
    "argsort": "order",
    "cumsum": "running",
    "eigh": "spectrum",
    "exp": "exp",
    "expm1": "expm1",
    "floor": "floor",
    "isfinite": "finite",
    "log": "log",
    "log1p": "log1p",
    "max": "largest",
    "min": "least",
    "neg": "minus",
    "not": "not",
    "sign": "sign",
    "sort": "sorted",
    "sqrt": "root",
    "sum": "total",
    "svd": "spectrum",
}
"""Words of operations on one value, before what it is called."""
TWO = {
    "and": ("both", "and"),
    "or": ("either", "or"),
    "add": ("shifted", "plus"),
    "div": ("divided", "over"),
    "eq": ("met", "is"),
    "gather": ("picked", "at"),
    "le": ("atmost", "atmost"),
    "lt": ("below", "below"),
    "matmul": ("product", "on"),
    "maximum": ("floored", "or"),
    "minimum": ("capped", "upto"),
    "mul": ("scaled", "times"),
    "outer": ("outer", "by"),
    "pow": ("power", "to"),
    "solve": ("solution", "for"),
    "sub": ("offset", "minus"),
}
"""Words of operations on two values: before one where the other is a number or has no word, else between both."""
LIKE = {
    "broadcast": "spread",
    "concat": "joined",
    "diag": "diagonal",
    "entries": "entry",
    "full": "spread",
    "put": "changed",
    "reshape": "shaped",
    "slice": "part",
    "stack": "stacked",
    "to_float": "number",
    "to_int": "whole",
    "transpose": "turned",
    "where": "chosen",
}
"""Operations that keep the word of a temporary value that they work on; before that of another."""


def soft(word: str) -> str:
    """Hint of a temporary value with this word."""
    return word if is_temporary(word) else f"{PREFIX}{word}"


@lru_cache(maxsize=KEPT)
def word_in(hint: str) -> str:
    """Word in a hint or a name, without its number; none in that of a value without."""
    word = _VERSION.sub("", hint)
    if is_temporary(hint):
        word = word[len(PREFIX) :]
    return "" if word.isdigit() else word


@lru_cache(maxsize=KEPT)
def word_of(op: str, hints: tuple[str, ...]) -> str:
    """Hint of the result of an operation on operands of these hints, `v` for a number: a word, or none where they have none."""
    pairs = [(word, is_temporary(h)) for h in hints if (word := word_in(h))]
    pairs = pairs[1:] if op == "where" and len(pairs) > 1 else pairs
    if not pairs:
        return "v"
    named = [(root_of(word) if derived else word, derived) for word, derived in pairs]
    first = named[0][0]
    others = [n for n, derived in named[1:] if n != first and not derived]
    if op in LIKE:
        return soft(pairs[0][0] if pairs[0][1] and op != "where" else f"{LIKE[op]}_{first}")
    if op in TWO:
        alone, between = TWO[op]
        both = f"{first}_{between}_{others[0]}" if others and not named[0][1] else ""
        return soft(both if both and len(both) <= LONGEST else f"{alone}_{first}")
    return soft(f"{ONE[op]}_{first}") if op in ONE else "v"


_VERBS = tuple(f"{w}_" for w in (*ONE.values(), *LIKE.values(), *(alone for alone, _ in TWO.values())))
_BETWEEN = tuple(f"_{between}_" for _, between in TWO.values())


@lru_cache(maxsize=1024)
def root_of(word: str) -> str:
    """Name that a word is made of: `x` of `scaled_x` and of `x_minus_y`."""
    while word.startswith(_VERBS):
        word = next(word[len(v) :] for v in _VERBS if word.startswith(v))
    return next((word.partition(b)[0] for b in _BETWEEN if b in word), word)
