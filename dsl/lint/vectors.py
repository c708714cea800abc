"""Sums and constraints that are written out entry by entry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from oco.dsl.atoms import ATOMS, forms
from oco.dsl.diagnostics import Diagnostic, Fix, Severity
from oco.dsl.lint.context import LintContext
from oco.dsl.lint.patterns import NoVectorError, Pattern, VectorForm, pattern, runs
from oco.dsl.source import Span
from oco.dsl.text import syntax


def sums_of_entries(context: LintContext) -> Iterator[Diagnostic]:
    """Warn of sums whose terms differ in an index alone, with the vector form as the fix."""
    for terms in _sums(context, context.file):
        for start, stop in runs(terms):
            run = tuple(p for p in terms[start:stop] if p is not None)
            whole = run[0].roots[0].span.to(run[-1].roots[0].span)
            try:
                text = _summed(VectorForm(context, run))
            except NoVectorError:
                continue
            if "#" in whole.text or not _closed(whole.text):
                continue
            message = f"{len(run)} terms differ in the index alone"
            hint = f"write `{text}`"
            yield Diagnostic("OCO631", message, whole, hint, Severity.WARNING, fixes=(Fix(whole, text),))


def repeated_constraints(context: LintContext) -> Iterator[Diagnostic]:
    """Warn of constraints that differ in an index alone, with the vector constraint as the way out."""
    written = [s for s in context.file.statements if isinstance(s, syntax.ConstraintStatement)]
    patterns = [None if s.family is not None else _of_constraint(context, s) for s in written]
    for start, stop in runs(patterns):
        run = tuple(p for p in patterns[start:stop] if p is not None)
        form, first = VectorForm(context, run), written[start]
        try:
            left, right = form.text(first.left), form.text(first.right)
        except NoVectorError:
            continue
        labels = ", ".join(f"`{s.label.name}`" for s in written[start : stop - 1])
        message = f"{labels} and `{written[stop - 1].label.name}` differ in the index alone"
        after = Span(first.span.source, first.right.span.end, first.span.end).text
        hint = f"write `{first.label.name}: {left} {first.relation} {right}{after}`"
        yield Diagnostic("OCO632", message, first.label.span, hint, Severity.WARNING)


def equal_constraints(context: LintContext) -> Iterator[Diagnostic]:
    """Warn of a constraint that another one repeats."""
    seen: dict[Any, str] = {}
    for s in context.file.statements:
        if not isinstance(s, syntax.ConstraintStatement):
            continue
        p = _of_constraint(context, s)
        first = seen.setdefault((p.form, p.values), s.label.name)
        if first != s.label.name:
            message = f"`{s.label.name}` repeats `{first}`"
            yield Diagnostic("OCO633", message, s.label.span, "leave one out, or correct it", Severity.WARNING)


def _of_constraint(context: LintContext, s: syntax.ConstraintStatement) -> Pattern:
    family = None if s.family is None else tuple(name.name for name in s.family)
    roots = (s.left, s.right) if s.penalty is None else (s.left, s.right, s.penalty)
    return pattern(context, *roots, beside=(s.relation, s.timing, s.percent, family))


def _sums(context: LintContext, root: Any) -> Iterator[list[Pattern | None]]:
    """Terms of each sum of a tree, from the left; those that are added and those that are taken away have other patterns."""
    stack: list[Any] = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, syntax.Call):
            first, links = syntax.sum_of(node)
            if links:
                signs = [True, *(ATOMS[link.name].form is forms.SUM for link in links)]
                terms = [first, *(link.args[1] for link in links)]
                yield [pattern(context, term, beside=(plus,)) for term, plus in zip(terms, signs)]
                stack += terms
                continue
        if isinstance(node, syntax.Node | syntax.SourceFile):
            stack += [getattr(node, part.name) for part in fields(node) if part.name not in ("span", "source")]
        elif isinstance(node, tuple):
            stack += node


def _summed(form: VectorForm) -> str:
    """Sum of the entries of a vector form; of a product of two vectors, `a @ x`."""
    (root,) = form.run[0].roots
    whole = form.text(root)
    if isinstance(root, syntax.Call) and ATOMS[root.name].form is forms.TIMES and all(map(form.is_vector, root.args)):
        left, right = map(form.text, root.args)
        return f"{left} @ {right}"
    return f"sum({whole})"


def _closed(text: str) -> bool:
    """True where every bracket that a text opens is closed in it, and none else."""
    depth = 0
    for sign in text:
        depth += (sign in "([") - (sign in ")]")
        if depth < 0:
            return False
    return depth == 0
