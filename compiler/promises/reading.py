"""Promises from the text of their Lean files."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

from oco.compiler.promises.promise import LeanPromise, RationalInequality
from oco.compiler.promises.rendering import OPERATIONS, render
from oco.compiler.promises.steps import ArithmeticRule, Bounds, ProgramStep
from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.limits import MOST_TEXT_BYTES

NUMBER = r"-?\d+(?: / \d+)?"
HEAD = re.compile(
    r"/-\nThe promise of the theorem `(\w+)` for this model, [^\n]*:\n\n(.*?)\n-/\nimport Mathlib\n", re.DOTALL
)
COUNT = re.compile(r"^abbrev (\w+) : ℕ := (\d+)$", re.MULTILINE)
VECTOR = re.compile(r"^def (\w+) : (?:Fin \w+ → ℝ|Decision) := !₂?\[([^\]]*)\]$", re.MULTILINE)
CONSTANT = re.compile(rf"^def (\w+) : ℝ := ({NUMBER})$", re.MULTILINE)
STEP = re.compile(r"^def v(\d+) \(x : Decision\) \(s : Data\) : ℝ := (.*)$", re.MULTILINE)
INTERVAL = re.compile(
    rf"^theorem ([bp])(\d+) [^\n]* ∈ Set\.Icc \(({NUMBER}) : ℝ\) \(({NUMBER}) : ℝ\) := by$", re.MULTILINE
)
PLACES = re.compile(r"^def (gradient|excessOf) \(x : Decision\) \(s : Data\) : [^\n]* := !\[([^\]]*)\]$", re.MULTILINE)
INEQUALITY = re.compile(r"^theorem (\w+) : (?:∀ [ik], )?([^\n]*?) ([≤<]) ([^\n]*) := by$", re.MULTILINE)
ENDS = ("/-! ## The memory of constraints", "/-! ## The promise")
"""Headings of what follows the data."""
TERMS = {
    rule: re.compile(re.escape(form).replace(r"\{\}", r"(\d+)").replace(r"\{}", r"(\d+)"))
    for rule, form in OPERATIONS.items()
}


def refused(why: str) -> OcoError:
    """OCO871 with the reason."""
    return fail("OCO871", f"the promise is refused: {why}")


def read_text(path: Path) -> str:
    """Text of a file. Raises OCO871 where it cannot be read."""
    try:
        if path.stat().st_size > MOST_TEXT_BYTES:
            raise refused(f"{path} is too large")
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise refused(f"{path} cannot be read ({error})") from None


def read_promise(text: str) -> LeanPromise:
    """Promise that a file holds. Raises OCO871 where a line is not as promises are written.

    The lemmas and the proofs are compared with those that this package writes: of a promise that is read, `render` gives the same text.
    """
    head = HEAD.match(text)
    if head is None:
        raise refused("it does not begin with the model that it is of")
    try:
        promise = _promise(head[1], head[2], text[head.end() :])
        again = render(promise)
    except (ValueError, ZeroDivisionError, KeyError, IndexError) as error:
        raise refused(f"a line is not as promises are written ({error})") from None
    if again != text:
        lines = zip(again.splitlines(), text.splitlines())
        at = next((k for k, (a, b) in enumerate(lines, 1) if a != b), min(again.count("\n"), text.count("\n")) + 1)
        raise refused(f"line {at} is not as promises are written")
    return promise


def _promise(theorem: str, model: str, text: str) -> LeanPromise:
    data = text[text.index("/-! ## The model -/") : min(k for mark in ENDS if (k := text.find(mark)) >= 0)]
    steps = [_step(int(k), at, term) for at, (k, term) in enumerate(STEP.findall(data))]
    ends = {(letter, int(k)): (_fraction(low), _fraction(high)) for letter, k, low, high in INTERVAL.findall(data)}
    places = {name: _places(entries) for name, entries in PLACES.findall(data)}
    at_point: list[tuple[int, Bounds]] = [(k, b) for (letter, k), b in ends.items() if letter == "p"]
    return LeanPromise(
        theorem,
        model,
        tuple((name, int(value)) for name, value in COUNT.findall(data)),
        tuple((name, _vector(entries)) for name, entries in VECTOR.findall(data)),
        tuple((name, _fraction(value)) for name, value in CONSTANT.findall(data)),
        tuple(steps),
        tuple(ends["b", k] for k in range(len(steps))),
        places["gradient"],
        places.get("excessOf", ()),
        tuple(at_point),
        tuple(
            RationalInequality(name, _bare(left), sign, right) for name, left, sign, right in INEQUALITY.findall(data)
        ),
    )


def _bare(text: str) -> str:
    """Number without its type, as `inequality_text` writes it."""
    return text.removeprefix("(").removesuffix(" : ℝ)") if re.fullmatch(r"\(\d+ : ℝ\)", text) else text


def _fraction(text: str) -> Fraction:
    return Fraction(text.replace(" ", ""))


def _vector(text: str) -> tuple[Fraction, ...]:
    return tuple(_fraction(entry) for entry in text.split(", ")) if text else ()


def _places(text: str) -> tuple[int, ...]:
    entries = [re.fullmatch(r"v(\d+) x s", entry) for entry in text.split(", ")] if text else []
    if not all(entries):
        raise ValueError("a vector of other entries than steps")
    return tuple(int(e[1]) for e in entries if e)


def _step(k: int, at: int, term: str) -> ProgramStep:
    """Step from its term; its arguments come before it."""
    if k != at:
        raise ValueError("steps out of order")
    for rule, pattern in TERMS.items():
        if match := pattern.fullmatch(term):
            args = tuple(map(int, match.groups()))
            if rule not in (ArithmeticRule.DECISION, ArithmeticRule.STREAM) and max(args) >= k:
                raise ValueError("a step that rests on a later one")
            return ProgramStep(rule, args)
    return ProgramStep(ArithmeticRule.NUMBER, (), _fraction(term))
