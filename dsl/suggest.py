"""Nearest correct word for a misspelt one."""

from __future__ import annotations

from collections.abc import Iterable

LEAST_RATIO = 0.7  # likeness of two words from which one is suggested for the other
LONGEST = 80  # characters of a word that is compared with others
MOST_MATCHED = 20_000
"""Limit on pairs of letters that one search compares, a few milliseconds; past it only one slip or a common beginning counts as near."""


def nearest(word: str, candidates: Iterable[str], least: float = LEAST_RATIO) -> str | None:
    """Candidate that `word` most likely stands for, or None when none is as near as `least` (0 to 1).

    Letter case counts little: `Price` is nearest to `price`. Among equally near candidates the first one given is
    taken.
    """
    if not word or len(word) > LONGEST:
        return None
    best, best_ratio = None, 0.0
    left = MOST_MATCHED
    for candidate in candidates:
        ratio = _closeness(word, candidate)
        could = 1.8 * min(len(word), len(candidate)) / (len(word) + len(candidate))
        if ratio == 0 and could > best_ratio and could >= least and left > 0:
            left -= len(word) * len(candidate)
            ratio = _similarity(word, candidate)
        if ratio > best_ratio:
            best, best_ratio = candidate, ratio
    return best if best_ratio >= least else None


def _closeness(a: str, b: str) -> float:
    """Closeness of words that differ in case, by one slip, or where one begins the other; 0 for others."""
    if a == b:
        return 1.0
    if abs(len(a) - len(b)) > 1 and a[:1].lower() != b[:1].lower():
        return 0.0
    a, b = a.lower(), b.lower()
    if a == b:
        return 0.99
    if is_one_slip(a, b) and min(len(a), len(b)) > 1:
        return 0.95
    if min(len(a), len(b)) > 3 and (a.startswith(b) or b.startswith(a)):
        return 0.8
    return 0.0


def _similarity(a: str, b: str) -> float:
    """Share of matching letters, between 0 and 1: twice the matching letters over all letters."""
    from difflib import SequenceMatcher

    return 0.9 * SequenceMatcher(None, a.lower(), b.lower(), autojunk=False).ratio()


def is_one_slip(a: str, b: str) -> bool:
    """True where one letter was added, left out, changed, or swapped with its neighbour."""
    if abs(len(a) - len(b)) > 1 or a == b:
        return False
    same = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    x, y = a[same:], b[same:]
    return x[1:] == y[1:] or x[1:] == y or x == y[1:] or (len(x) > 1 and x[:2] == y[1::-1] and x[2:] == y[2:])


def did_you_mean(word: str, candidates: Iterable[str], otherwise: str = "") -> str:
    """Hint "did you mean `price`?" where a candidate is near, else `otherwise`."""
    match = nearest(word, candidates)
    return f"did you mean `{match}`?" if match else otherwise


def listed(names: Iterable[str], last: str = "and") -> str:
    """List in words: `a`, `b` and `c`."""
    quoted = [f"`{name}`" for name in names]
    return f"{', '.join(quoted[:-1])} {last} {quoted[-1]}" if len(quoted) > 1 else "".join(quoted)
