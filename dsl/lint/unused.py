"""Names that are declared and never used."""

from __future__ import annotations

from collections.abc import Iterator

from oco.dsl.diagnostics import Diagnostic, Fix, Severity
from oco.dsl.lint.context import LintContext
from oco.dsl.text import syntax


def unused_names(context: LintContext) -> Iterator[Diagnostic]:
    """Warn of params, indexes and lets that nothing uses. A param without a value stays: its value comes from outside, and with it
    the name.
    """
    for s in context.file.statements:
        match s:
            case syntax.ParamStatement():
                kind = "param"
            case syntax.IndexStatement():
                kind = "index"
            case syntax.LetStatement():
                kind = "let"
            case _:
                continue
        if s.name.name in context.used:
            continue
        from_outside = isinstance(s, syntax.ParamStatement) and s.value is None
        fixes = () if from_outside else (Fix(context.lines(s.span), ""),)
        message = f"the {kind} `{s.name.name}` is never used"
        yield Diagnostic("OCO630", message, s.name.span, "use it or leave it out", Severity.WARNING, fixes=fixes)
