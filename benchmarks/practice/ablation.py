"""Parts of the construction `hedged`, and the construction without one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from oco.compiler.algorithms import hedged, hedged_rule

Place = tuple[Any, str, Callable[[Any], Any]]
"""Module, name of a constant or function in it, and what stands there without the part."""


def _experts(keep: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> Callable[[Any], Any]:
    return lambda places: lambda *args: keep(places(*args))


PARTS: Mapping[str, tuple[Place, ...]] = {
    "without the gradient rules but the theorem's own": ((hedged_rule, "GRADIENTS", lambda g: ((1.0, 1.0),)),),
    "without margins": (
        (hedged_rule, "SOLVED", lambda s: tuple(dict.fromkeys((i, c, hedged_rule.NO_MARGIN) for i, c, _ in s))),
        (hedged_rule, "FOLLOWING", lambda f: tuple(dict.fromkeys((c, hedged_rule.NO_MARGIN) for c, _ in f))),
    ),
    "with one prediction, the last one": (
        (hedged_rule, "SOLVED", lambda s: tuple((0, c, q) for i, c, q in s if i == 0)),
    ),
    "with one reach": ((hedged_rule, "SOLVED", lambda s: tuple(x for x in s if x[1] == max(c for _, c, _ in s))),),
    "without seasons": ((hedged, "longest_season", lambda f: lambda canonical: 1),),
    "without the stated distribution": ((hedged_rule, "places", _experts(lambda p: (p[0], p[1], (), *p[3:]))),),
    "without regression on contexts": ((hedged_rule, "places", _experts(lambda p: (*p[:3], (), *p[4:]))),),
    "without forgetting": ((hedged_rule, "KEPT", lambda kept: (1.0,)),),
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
