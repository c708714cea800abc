"""Warnings about a model that are found without a solver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from oco.compiler.problem.canonical import Canonical, Inequality
from oco.compiler.problem.stores import no_stores, stores
from oco.compiler.problem.stream_ranges import StreamRange
from oco.compiler.problem.structure import is_affine
from oco.compiler.prover.context import ProofContext
from oco.compiler.prover.phrasing import LONGEST, number
from oco.dsl.diagnostics import Diagnostic, Severity
from oco.dsl.expressions import Expr, Kind, changes, names
from oco.dsl.model import Model
from oco.dsl.statements import Feedback, Timing
from oco.dsl.text.printer import print_expr

EVEN = 1e9
"""Ratio of widths up to which the exact step is within 1e-7 of the narrowest width (`tests/test_uneven_boxes.py`)."""


def notices(setting: ProofContext) -> Iterator[Diagnostic]:
    """Warnings about the model: unused names, constraints that never bind or never change, uneven scales."""
    yield from _unused(setting.canonical)
    yield from _reached_late(setting.canonical)
    yield from _left_behind(setting.canonical)
    yield from _never_binding(setting)
    yield from _fixed(setting)
    yield from _uneven(setting.canonical)


def _used(canonical: Canonical) -> set[str]:
    """Streams and states that stand in the loss, in constraints or in predictions."""
    exprs = [canonical.played.objective, *(c.expr for c in canonical.constraints)]
    exprs += [c.moving for c in canonical.inequalities if c.moving is not None]
    exprs += [c.margin.measured for c in canonical.inequalities if c.margin is not None]
    exprs += [e for _, e in canonical.predictions]
    return {n for e in exprs for n in names(e, Kind.STREAM)} | set(canonical.lookahead.contexts)


def _unused(canonical: Canonical) -> Iterator[Diagnostic]:
    used = _used(canonical)
    states = {s.name: set(names(s.following, Kind.STREAM)) for s in canonical.streams if s.following is not None}
    for s in canonical.streams:
        if (
            s.name in states
            and not any(s.name in of for name, of in states.items() if name != s.name)
            and s.name not in used
        ):
            yield _unused_state(s)
    used |= set().union(*states.values())
    late = any(s.name in used and not s.stream.known for s in canonical.streams)
    regressed = canonical.feedback is Feedback.FULL and late  # experts do, on contexts
    for s in canonical.streams:
        if s.name not in used and not (s.stream.known and regressed):
            message = f"the {'context' if s.stream.known else 'stream'} `{s.name}` stands in no loss and no constraint"
            yield Diagnostic("OCO603", message, s.stream.span, "use it or leave it out", Severity.WARNING)


def _unused_state(s: StreamRange) -> Diagnostic:
    """Warning that no decision is judged by what it leaves in a state: where streams move that, its range is no constraint."""
    assert s.stream.following is not None
    low, following = number(float(s.lower.min())), print_expr(s.stream.following)
    keeps = f"`{s.name}_kept: {following} >= {low} each round`"
    hint = f"the range of `{s.name}` cuts it, at no cost: a constraint keeps it, {keeps} say, or a loss values it"
    return Diagnostic(
        "OCO603", f"the state `{s.name}` stands in no loss and no constraint", s.stream.span, hint, Severity.WARNING
    )


def _reached_late(canonical: Canonical) -> Iterator[Diagnostic]:
    """States that decisions reach through others alone, rounds later, and that are no stores with a pipeline: decisions only cost there."""
    made = {s.name: s for s in stores(canonical.learned)}
    on_the_way = {g.state.name for s in made.values() if s.pipeline is not None for g in s.pipeline.stages}
    following = {s.name: s.following for s in canonical.streams if s.following is not None}
    decided = {n for n, e in following.items() if any(names(e, Kind.DECISION))}
    for s in canonical.streams:
        if s.name not in following or s.name in decided | on_the_way:
            continue
        through = [n for n in names(following[s.name], Kind.STREAM) if n in decided]
        if s.name in made and (
            made[s.name].pipeline is not None or any(made[n].keep.any() for n in through if n in made)
        ):
            continue
        if through:
            message = f"decisions reach `{s.name}` through `{through[0]}` alone, rounds later, and nothing looks that far ahead"
            hint = (
                "let each state on the way hand on one entry, with room for all of it, and let the loss pay for what is missing once it "
                f"has come, `8 * pos(...)` of what is below the end of `{_keeps(s.name, following)}` (guide on delayed feedback)"
            )
            yield Diagnostic("OCO615", message, s.stream.span, hint, Severity.WARNING)


def _keeps(name: str, following: Mapping[str, Expr]) -> str:
    """The nearest state that keeps some of what comes to it, of a state and those that it is handed on to; the state where none does."""
    reached = [name]
    for n in reached:
        if n in names(following[n], Kind.STREAM):
            return n
        reached += [m for m, e in following.items() if n in names(e, Kind.STREAM) and m not in reached]
    return name


def _left_behind(canonical: Canonical) -> Iterator[Diagnostic]:
    """States that decisions move, that loss or constraints are on, and that are no stores: nothing values what a round leaves in them."""
    used = _used(canonical)
    for own in no_stores(canonical.learned):
        s = own.state
        if s.name not in used or s.stream.following is None or not any(names(s.stream.following, Kind.DECISION)):
            continue
        message = f"each round is decided as if it left nothing in `{s.name}`, which is no store: {own.reason}"
        hint = (
            "make what follows it a sum of levels, of decisions and of data, with fixed factors (those of levels may be tables by the "
            "round, those of decisions data of one sign), in a range that the loss or a constraint keeps (forms of stores, at `state` in "
            "the language reference); `# allow OCO617` where no round need care for it"
        )
        yield Diagnostic("OCO617", message, s.stream.span, hint, Severity.WARNING)


def _never_binding(setting: ProofContext) -> Iterator[Diagnostic]:
    ranges = {
        f"{s.name}.{end}" for s in setting.canonical.streams if s.following is not None for end in ("least", "most")
    }
    for c in setting.canonical.inequalities:
        if c.label != c.origin or c.moving is not None or c.label in ranges or (most := _largest(setting, c)) > 0:
            continue
        message = (
            f"`{c.label}` never binds: its left side stays {number(-most)} below its right side, whatever is decided"
        )
        if most == 0:
            message = (
                f"`{c.label}` says nothing more: it holds for every decision of the domain, whatever the streams are"
            )
        yield Diagnostic(
            "OCO604", message, c.span, "check the right side and the ranges of the streams", Severity.WARNING
        )


def _largest(setting: ProofContext, c: Inequality) -> float:
    """Upper bound on `g` of a constraint `g <= 0`, over domain and streams."""
    return setting.ranges(setting.simplify(c.expr)).greatest


def _fixed(setting: ProofContext) -> Iterator[Diagnostic]:
    """Constraints on average that no data enters, so that each round could keep to them, and that the domain does not imply."""
    for c in setting.canonical.inequalities:
        loose = c.timing is not Timing.EACH_ROUND and c.label == c.origin and c.moving is None
        if loose and not changes(c.expr) and _largest(setting, c) > 0:
            message = f"`{c.label}` is the same in every round and holds on average: a round may break it that another makes up for"
            cut = cut_of(c, setting.canonical.model)
            ways = f"write `each round` after `{c.label}`" + (f", or {cut}" if cut else "")
            yield Diagnostic("OCO611", message, c.span, ways, Severity.WARNING)


def _uneven(canonical: Canonical) -> Iterator[Diagnostic]:
    """Entries of so different widths that a step which sees them together knows the narrow ones to few digits."""
    widths = np.concatenate([np.ravel(b.domain.upper - b.domain.lower) for b in canonical.blocks])
    widths = widths[widths > 0]
    if canonical.inequalities and widths.size and widths.max() > EVEN * widths.min():
        message = (
            f"entries of the decision have widths from {number(widths.min())} to {number(widths.max())}: steps under constraints on both "
            "know the narrow ones to a few digits"
        )
        hint = "write the decision in units in which all entries are of like size: `1e6 * x[0]` in place of `x[0]`"
        yield Diagnostic("OCO614", message, canonical.model.decisions[0].span, hint, Severity.WARNING)


def cut_of(c: Inequality, model: Model) -> str:
    """Hint to make the constraint a part of the domain; empty where it cannot be one."""
    within = tuple(names(c.expr, Kind.DECISION))
    if len(within) != 1 or not is_affine(c.expr, within):
        return ""
    written = next(k for k in model.constraints if k.label == c.origin)
    sides = f"{print_expr(written.left)} {written.relation.value} {print_expr(written.right)}"
    cut = f"with {sides if len(sides) <= 2 * LONGEST else '...'}"
    return f"write `{cut}` behind the domain of `{within[0]}`, where it always holds, and leave `{c.label}` out"
