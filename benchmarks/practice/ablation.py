"""Parts of the construction `hedged`, and the construction without one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from oco.compiler.algorithms import (
    dual_prices,
    experts,
    hedged,
    hedged_rule,
    loss_steps,
    predictions,
    profiles,
    weighting,
)

Place = tuple[Any, str, Callable[[Any], Any]]
"""Module or class, name of a constant or function in it, and what stands there without the part."""


def _experts(keep: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> Callable[[Any], Any]:
    return lambda places: lambda *args: keep(places(*args))


def _equal(weights: Callable[..., Any]) -> Callable[..., Any]:
    """Equal weights in the place of those by losses."""
    return lambda p, L, *more: p.tracer.full(1.0 / L.shape[0], (L.shape[0],))


def _none(experts_of: Callable[..., Any]) -> Callable[..., Any]:
    """No experts in the place of some."""
    return lambda *args: ()


def _declared(begun: Callable[..., Any]) -> Callable[..., Any]:
    """First state in which the squared slopes of all rounds are at their declared bound, 1 in units of the rule."""

    def of(rule: Any, p: Any, start: Any) -> Any:
        state = begun(rule, p, start)
        return {**state, "S": p.tracer.full(float(p.spec.canonical.horizon), state["S"].shape)}

    return of


PARTS: Mapping[str, tuple[Place, ...]] = {
    "without the gradient rules but the theorem's own": ((experts, "GRADIENTS", lambda g: ((1.0, 1.0),)),),
    "without margins": (
        (experts, "SOLVED", lambda s: tuple(dict.fromkeys((i, c, experts.NO_MARGIN) for i, c, _ in s))),
        (experts, "FOLLOWING", lambda quantiles: (experts.NO_MARGIN,)),
    ),
    "with one prediction, of one average": (
        (experts, "SOLVED", lambda s: tuple((0, c, q) for i, c, q in s if i == 0)),
    ),
    "without last values": ((experts, "SOLVED", lambda s: tuple(x for x in s if x[0] != predictions.LAST)),),
    "without seasons": ((profiles, "longest_season", lambda f: lambda canonical: 1),),
    "without days of weeks": ((profiles, "day_of", lambda f: lambda season: 0),),
    "without the stated distribution": ((experts, "places", _experts(lambda p: (p[0], p[1], (), *p[3:]))),),
    "without regression on contexts": ((experts, "places", _experts(lambda p: (*p[:4], (), *p[5:]))),),
    "without forecasts": ((experts, "places", _experts(lambda p: (*p[:5], ()))),),
    "without quantiles of the errors": ((experts, "places", _experts(lambda p: (*p[:3], (), *p[4:]))),),
    "without sampled losses": ((experts, "sampled", _none), (hedged_rule, "sampled", _none)),
    "without points of the loss alone": tuple((m, "beside", _none) for m in (experts, hedged_rule, loss_steps)),
    "without a reserve of budgets": ((dual_prices, "RESERVE", lambda r: 0.0),),
    "without rehearsal": (
        (hedged_rule, "rehearsed", lambda f: lambda canonical: {}),
        (hedged, "rehearsed", lambda f: lambda canonical: {}),
    ),
    "with steps of the declared bounds": ((hedged_rule.Hedged, "begun", _declared),),
    "with equal weights": ((weighting, "weights", _equal),),
    "without forgetting": ((weighting, "KEPT", lambda kept: (1.0, 1.0)),),
}
"""Parts that are left out, by name."""


@contextmanager
def without(part: str) -> Iterator[None]:
    """Context in which programs are made without a part."""
    before = [(module, name, getattr(module, name)) for module, name, _ in PARTS[part]]
    try:
        for module, name, change in PARTS[part]:
            setattr(module, name, change(getattr(module, name)))
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)
