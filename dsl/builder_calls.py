"""Calls of the builder with arguments that its methods do not take: each meets the line to write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, Signature, isfunction, signature
from typing import Any, TypeVar

from oco.dsl.caller import caller_span
from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.suggest import did_you_mean

Kind = TypeVar("Kind", bound=type)
_IN_DOMAIN = 'bounds of a decision are its domain: `m.decision("x", 3, domain=oco.box(0, 10))`'
_AS_BOUNDS = 'bounds are a pair: `m.stream("p", 3, bounds=(0, 1))`'
_OF_ZERO_AND_ONE = 'decisions of 0 and 1 are drawn: `m.decision("x", 3, domain=oco.box(0, 1).rounded())`; others are numbers between bounds'
_IN_RUN = "data of the rounds are given to the run: `oco.compile(m).run(data)`"
_CONSTRAINTS = 'constraints are added one by one: `m.subject_to(x <= 1, name="cap", each_round=True)`'
OF_DECISION: Mapping[str, str] = {
    **dict.fromkeys(("nonneg", "nonpos", "pos", "neg", "bounds", "lb", "ub", "lower", "upper"), _IN_DOMAIN),
    **dict.fromkeys(("integer", "boolean", "binary"), _OF_ZERO_AND_ONE),
}
OF_METHODS: Mapping[str, Mapping[str, str]] = {
    "decision": OF_DECISION,
    "stream": {
        **dict.fromkeys(("nonneg", "lb", "ub", "lower", "upper"), _AS_BOUNDS),
        "data": _IN_RUN,
        "value": _IN_RUN,
    },
    "param": {"nonneg": "bounds are a pair: `bounds=(0, 10)`", "data": 'write `m.param("A", A)`'},
    "minimize": {"constraints": _CONSTRAINTS, "": _CONSTRAINTS},
    "maximize": {"constraints": _CONSTRAINTS, "": _CONSTRAINTS},
    "subject_to": {"": "several constraints are a list: `m.subject_to([x <= 1, y <= 2], each_round=True)`"},
    "Model": {"": 'write `oco.Model("shop", horizon=1000)`'},
}
"""Line to write for a keyword that users of other modelers give, by method; "" for too many arguments or too few."""


def arguments_checked(kind: Kind) -> Kind:
    """Class whose public methods raise OCO640 at the caller's line for arguments that they do not take or lack."""
    for name, method in dict(vars(kind)).items():
        if isfunction(method) and (name == "__init__" or not name.startswith("_")):
            setattr(kind, name, _checked(method, "Model" if name == "__init__" else name))
    return kind


def _checked(method: Callable[..., Any], called: str) -> Callable[..., Any]:
    taken = signature(method)

    @wraps(method)
    def call(*arguments: Any, **options: Any) -> Any:
        try:
            return method(*arguments, **options)
        except TypeError:
            error = _misfit(called, taken, arguments, options)
            if error is None:
                raise
            raise error from None

    return call


def _misfit(called: str, taken: Signature, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> OcoError | None:
    """Error for arguments that a signature does not take; None where it takes them."""
    try:
        taken.bind(*arguments, **options)
    except TypeError as error:
        known = OF_METHODS.get(called, {})
        own = [name for name in taken.parameters if name != "self"]
        unknown = next((name for name in options if name not in own), None)
        usual = known.get("") or f"it takes {', '.join(own) or 'nothing'}"
        if unknown is not None:
            hint = known.get(unknown) or did_you_mean(unknown, own, usual)
            return fail("OCO640", f"`{called}` takes no argument `{unknown}`", caller_span(), hint)
        positional = [p for p in taken.parameters.values() if p.kind is not Parameter.KEYWORD_ONLY][1:]
        if len(arguments) - 1 > len(positional):
            words = f"`{called}` takes at most {len(positional)} in order; here are {len(arguments) - 1}"
            return fail("OCO640", words, caller_span(), usual)
        return fail("OCO640", f"`{called}`: {error}", caller_span(), usual)
    return None
