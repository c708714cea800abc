"""Calls with arguments that a function or method does not take: each meets the line to write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, Signature, isfunction, signature
from typing import Any, TypeVar, cast

from oco.dsl.caller import caller_span
from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.suggest import did_you_mean

Kind = TypeVar("Kind", bound=type)
Function = TypeVar("Function", bound=Callable[..., Any])
_IN_DOMAIN = 'bounds of a decision are its domain: `m.decision("x", 3, domain=oco.box(0, 10))`'
_AS_BOUNDS = 'bounds are a pair: `m.stream("p", 3, bounds=(0, 1))`'
_OF_ZERO_AND_ONE = 'decisions of 0 and 1 are drawn: `m.decision("x", 3, domain=oco.box(0, 1).rounded())`; others are numbers between bounds'
_IN_RUN = "data of the rounds are given to the run: `oco.compile(m).run(data)`"
_CONSTRAINTS = 'constraints are added one by one: `m.subject_to(x <= 1, name="cap", each_round=True)`'
OF_DECISION: Mapping[str, str] = {
    **dict.fromkeys(("nonneg", "nonpos", "pos", "neg", "bounds", "lb", "ub", "lower", "upper"), _IN_DOMAIN),
    **dict.fromkeys(("integer", "boolean", "binary"), _OF_ZERO_AND_ONE),
}
_BY_NAME = "data of the round are given by name: `learner.observe(price=p, demand=d)`"
_ROUNDS = "write `plan.run(data, rounds=5)`; a plan for another horizon is `plan.with_horizon(5)`"
_HORIZON = (
    'the horizon is part of the model, `oco.Model("shop", horizon=5)`; a plan for another one is `plan.with_horizon(5)`'
)
_SOLVERS = 'no solver is chosen: an algorithm is, `oco.compile(m, "coldq")`, and `backend` is what runs it'
CALLS: Mapping[str, Mapping[str, str]] = {
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
    "compile": {
        **dict.fromkeys(("horizon", "T", "rounds"), _HORIZON),
        **dict.fromkeys(("solver", "verbose"), _SOLVERS),
        "alpha": 'settings are formulas by name: `oco.compile(m, "coldq", settings={"alpha": "2 * sqrt(t)"})`',
    },
    "run": {
        **dict.fromkeys(("horizon", "T", "n_rounds"), _ROUNDS),
        "seeds": "one seed is a run: `plan.run(data, seed=4)`",
    },
    "decide": {
        "": "contexts are given by name: `learner.decide(load=5)`; data of the round come after it, by `learner.observe`"
    },
    "observe": {"": _BY_NAME},
}
"""Line to write for a keyword that users of other modelers give, by function or method; "" for too many arguments or too few."""

GATHERING = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


def arguments_checked(kind: Kind) -> Kind:
    """Class whose public methods raise OCO640 at the caller's line for arguments that they do not take or lack."""
    for name, method in dict(vars(kind)).items():
        if isfunction(method) and (name == "__init__" or not name.startswith("_")):
            setattr(kind, name, checked_call(method, "Model" if name == "__init__" else name))
    return kind


def checked_call(method: Function, called: str = "") -> Function:
    """Function or method that raises OCO640 at the caller's line for arguments that it does not take or lacks.

    called  its name in the message, by default its own
    """
    taken, known_as = signature(method), called or method.__name__

    @wraps(method)
    def call(*arguments: Any, **options: Any) -> Any:
        try:
            return method(*arguments, **options)
        except TypeError:
            error = _misfit(known_as, taken, arguments, options)
            if error is None:
                raise
            raise error from None

    return cast("Function", call)


def counted(count: int) -> str:
    """Words of a message: `is one`, `are 3`."""
    return "is one" if count == 1 else f"are {count}"


def _misfit(called: str, taken: Signature, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> OcoError | None:
    """Error for arguments that a signature does not take; None where it takes them."""
    try:
        taken.bind(*arguments, **options)
    except TypeError as error:
        known = CALLS.get(called, {})
        parameters = [p for name, p in taken.parameters.items() if name != "self" and p.kind not in GATHERING]
        own = [p.name for p in parameters if p.kind is not Parameter.POSITIONAL_ONLY]
        unknown = next((name for name in options if name not in own), None)
        usual = known.get("") or f"it takes {', '.join(own) or 'nothing'}"
        if unknown is not None:
            hint = known.get(unknown) or did_you_mean(unknown, own, usual)
            return fail("OCO640", f"`{called}` takes no argument `{unknown}`", caller_span(), hint)
        most = sum(p.kind is not Parameter.KEYWORD_ONLY for p in parameters)
        given = len(arguments) - ("self" in taken.parameters)
        if given > most:
            words = f"`{called}` takes {f'at most {most}' if most else 'no argument'} in order; here {counted(given)}"
            return fail("OCO640", words, caller_span(), usual)
        return fail("OCO640", f"`{called}`: {error}", caller_span(), usual)
    return None
