"""Assumptions: checks of the facts that they are about."""

from __future__ import annotations

from collections.abc import Mapping

from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.expressions import Expr
from oco.dsl.fact_keys import of_the_whole
from oco.dsl.statements import Assumption
from oco.dsl.suggest import did_you_mean


def _text(value: Expr) -> str:
    return value.span.text if value.span is not None and value.span.text else "..."


def wrong_key(assumption: Assumption, relations: Mapping[str, str]) -> OcoError | None:
    """Error for an assumption about no fact, or on its useless side; None for a good one. `relations` has the side of each fact."""
    key = of_the_whole(assumption.key)
    if key not in relations:
        parts = key.split(".")
        labels = sorted({k.split(".")[1] for k in relations if k.startswith("constraints.")})
        if parts[0] == "constraints" and len(parts) > 2 and parts[1] not in labels:
            hint = did_you_mean(
                parts[1],
                labels,
                f"the constraints are {', '.join(labels)}" if labels else "this model has no constraints",
            )
            return fail("OCO651", f"there is no constraint `{parts[1]}`", assumption.span, hint)
        candidates = (k for k in relations if not k.startswith("constraints.") or k.split(".")[1] in parts)
        hint = did_you_mean(key, candidates, "`oco help OCO651` lists the facts")
        return fail("OCO651", f"there is no fact `{assumption.key}`", assumption.span, hint)
    wanted = relations[key]
    if wanted and wanted != assumption.relation:
        side = "an upper" if wanted == "<=" else "a lower"
        return fail(
            "OCO653",
            f"only {side} bound on `{key}` is of use",
            assumption.span,
            f"write `assume {assumption.key} {wanted} {_text(assumption.value)}`",
        )
    return None
