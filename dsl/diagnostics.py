"""Diagnostics: the problem, its place, its reason, and a way out. Rendering lives here; the codes in `codes`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from traceback import format_exception, walk_tb
from typing import Any

from oco.dsl.records import dataclass
from oco.dsl.source import Span

MOST_MISTAKES = 100
"""Limit on the mistakes reported for a text: each needs a search for its line, its place and the nearest correct word."""

BUG = "OCO999"
"""Code of what never should happen, whatever the input is."""

MEANT = "did you mean `"
"""Beginning of a hint that names the word to write in place of the one that the span holds."""

LONGEST_LINE = 160
"""Largest number of characters shown of a line."""


class Severity(StrEnum):
    """Severity of a diagnostic."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Fix:
    """Edit that corrects a mistake: `text` takes the place of the characters of `span`."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Problem with its code. `code` is stable (`oco help CODE` explains it); `note` is the evidence.

    `hint` is the nearest correct alternative, or a general remedy for this code. `fixes` are the edits that, made together, follow the
    hint: where none are given and it names a word, that word in place of a misspelt one.
    """

    code: str
    message: str
    span: Span | None = None
    hint: str = ""
    severity: Severity = Severity.ERROR
    note: str = ""
    fixes: tuple[Fix, ...] = ()

    def __post_init__(self) -> None:
        from oco.dsl.codes import CODES

        if not self.hint and self.code in CODES:
            object.__setattr__(self, "hint", CODES[self.code].remedy)
        if not self.fixes:
            object.__setattr__(self, "fixes", _nearest_word(self.span, self.hint))

    def as_data(self) -> dict[str, Any]:
        """Diagnostic as JSON values: code, severity, message, span, hint, note, and fixes as edits of spans."""
        return {
            "code": self.code,
            "severity": str(self.severity),
            "message": self.message,
            "span": None if self.span is None else self.span.as_data(),
            "hint": self.hint,
            "note": self.note,
            "fixes": [{"span": fix.span.as_data(), "text": fix.text} for fix in self.fixes],
        }

    def render(self) -> str:
        """Text `file:line:column: error OCO203: message`, then the line, a caret under the part, the hint."""
        head = f"{self.severity} {self.code}: {self.message}"
        rows = [head]
        if self.span is not None:
            line, column = self.span.source.position(self.span.start)
            shown, before = _excerpt(self.span.source.line(line), column - 1)
            width = max(1, min(self.span.end - self.span.start, len(shown) - before))
            margin = f"{line:>5} | "
            rows = [f"{self.span.source.name}:{line}:{column}: {head}", margin + shown]
            rows.append(" " * (len(margin) - 2) + "| " + " " * before + "^" * width)
        if self.hint:
            rows.append(f"  hint: {self.hint}")
        if self.note:
            rows.append(f"  note: {self.note}")
        return "\n".join(rows)


def _nearest_word(span: Span | None, hint: str) -> tuple[Fix, ...]:
    """Edit that writes the word which a hint names in place of the one that the span holds; none where there is no such word."""
    if span is None or not hint.startswith(MEANT):
        return ()
    word = hint[len(MEANT) :].split("`")[0]
    return (Fix(span, word),) if span.text.replace("-", "_").isidentifier() else ()


def _excerpt(line: str, before: int) -> tuple[str, int]:
    """Printable part of a line, and its width before the caret; very long lines are cut on both sides."""
    shown = "".join(c if c.isprintable() else " " for c in line).rstrip()
    if len(shown) <= LONGEST_LINE:
        return shown, before
    start = max(0, before - LONGEST_LINE // 2)
    return shown[start : start + LONGEST_LINE], before - start


class OcoError(Exception):
    """Error for bad input of any kind. Carries one diagnostic or, in `errors`, several."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        if not diagnostics:
            raise InternalError("an OcoError without a diagnostic")
        super().__init__(*diagnostics)
        self.diagnostics = diagnostics

    @property
    def code(self) -> str:
        """Code of the first diagnostic."""
        return self.diagnostics[0].code

    @property
    def span(self) -> Span | None:
        """Span of the first diagnostic."""
        return self.diagnostics[0].span

    @property
    def message(self) -> str:
        """Message of the first diagnostic."""
        return self.diagnostics[0].message

    @property
    def hint(self) -> str:
        """Hint of the first diagnostic."""
        return self.diagnostics[0].hint

    @property
    def errors(self) -> tuple[OcoError, ...]:
        """Separate `OcoError` for each diagnostic."""
        return (self,) if len(self.diagnostics) == 1 else tuple(OcoError(d) for d in self.diagnostics)

    def __str__(self) -> str:
        return "\n\n".join(d.render() for d in self.diagnostics)

    def _render_traceback_(self) -> list[str]:
        """Lines that a notebook shows instead of a traceback: the input is wrong, not a line of the package. A bug has its own."""
        bug = self.__cause__ if self.code == BUG else None
        return [*([] if bug is None else "".join(format_exception(bug)).splitlines()), *str(self).splitlines()]


class InternalError(Exception):
    """Error for a bug of this package, never for a mistake of the user."""

    def __init__(self, what: str) -> None:
        super().__init__(f"internal error: {what}. This is a bug in oco; please report it with the model.")


LIMITS = (RecursionError, MemoryError, ArithmeticError)
"""Exceptions of Python and NumPy at the limits of numbers, memory or nesting (LinAlgError by name: NumPy may not be loaded)."""


@contextmanager
def contained(doing: str) -> Iterator[None]:
    """Let only OcoError out, broken pipes and interruptions: an internal limit as OCO133, any other exception as OCO999, a bug to report,
    with its cause and the line that raised it.

    doing  subject of the sentence: "reading this model", "`oco run`"
    """
    try:
        yield
    except (OcoError, BrokenPipeError):  # that nobody reads on is no bug
        raise
    except Exception as error:
        if isinstance(
            error.__cause__, KeyboardInterrupt
        ):  # of Ctrl-C while a class is made, Python makes the cause of another error
            raise KeyboardInterrupt from error
        raise unforeseen(error, doing) from error


def unforeseen(error: Exception, doing: str) -> OcoError:
    """Error for an exception that nothing foresaw: OCO133 where a limit of numbers, memory or nesting is met, else OCO999.

    doing  as for `contained`
    """
    kind = type(error).__name__
    if isinstance(error, LIMITS) or kind == "LinAlgError":
        return fail("OCO133", f"{doing} went beyond what can be worked with ({kind}: {error})")
    return OcoError(Diagnostic(BUG, f"{doing} failed inside oco ({kind}: {error})", note=_place(error)))


def _place(error: Exception) -> str:
    """Innermost line of this package in the traceback of an exception: `at oco.dsl.load:35, in parse`; "" where there is none."""
    own = [
        (frame.f_globals["__name__"], line, frame.f_code.co_name)
        for frame, line in walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__")).partition(".")[0] == "oco"
    ]
    return "at {}:{}, in {}".format(*own[-1]) if own else ""


def require(value: object, kinds: type | tuple[type, ...], what: str, hint: str = "") -> None:
    """Check the type of an argument. Raises OCO526."""
    if not isinstance(value, kinds):
        raise fail("OCO526", f"{what} is wanted; here it is a {type(value).__name__}", hint=hint)


def fail(code: str, message: str, span: Span | None = None, hint: str = "") -> OcoError:
    """Error with a single diagnostic: `raise fail("OCO301", ...)`."""
    return OcoError(Diagnostic(code, message, span, hint))


class Findings:
    """Collection of diagnostics, so that independent mistakes are reported together."""

    def __init__(self) -> None:
        self._items: dict[Diagnostic, None] = {}

    def __len__(self) -> int:
        return len(self._items)

    @property
    def full(self) -> bool:
        """True where the limit on diagnostics is reached."""
        return len(self._items) >= MOST_MISTAKES

    @property
    def items(self) -> list[Diagnostic]:
        """Distinct diagnostics in the order in which they came."""
        return list(self._items)

    def add(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Add diagnostics; repeated ones count once."""
        self._items.update(dict.fromkeys(diagnostics))

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Keep the diagnostics of an `OcoError` inside the block, and continue after it."""
        try:
            yield
        except OcoError as error:
            self.add(error.diagnostics)

    def raise_if_any(self) -> None:
        """Raise one `OcoError` with every diagnostic, in the order of the text."""
        errors = [d for d in self.items if d.severity is Severity.ERROR]
        if errors:
            errors.sort(key=lambda d: d.span.start if d.span else -1)
            if len(errors) > MOST_MISTAKES:
                errors = errors[:MOST_MISTAKES]
            if len(errors) == MOST_MISTAKES:
                errors[-1] = replace(errors[-1], note=f"the search ended at {MOST_MISTAKES} mistakes")
            raise OcoError(*errors)
