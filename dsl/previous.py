"""Previous decisions: `prev(x)` stands in expressions as a name that is known before the decision, as a context is."""

from __future__ import annotations

from oco.dsl.diagnostics import fail
from oco.dsl.expressions import Expr, Kind, Name
from oco.dsl.source import Span

WORD = "prev"


def previous(x: Expr, span: Span | None) -> Name:
    """Name `prev(x)` of a decision x. Raises OCO217 for anything else."""
    if not isinstance(x, Name) or x.kind is not Kind.DECISION:
        raise fail(
            "OCO217", "`prev` takes the name of a decision", span, "write `prev(x)`, or `prev(x)[0]` for an entry"
        )
    return Name(f"{WORD}({x.name})", Kind.STREAM, shape=x.shape, span=span)


def decision_of(name: str) -> str:
    """Name x of a decision for the name `prev(x)`; "" for any other."""
    return name[len(WORD) + 1 : -1] if name.startswith(f"{WORD}(") else ""
