"""State of a learner as JSON values, and back: everything that is read is checked before it is used."""

from __future__ import annotations

import binascii
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import numpy as np

from oco.backends.contract import Contract
from oco.backends.identity import model_hash, plan_hash, resolved_of
from oco.backends.out_of_bounds import CHOICES
from oco.backends.past_horizon import LastRound
from oco.backends.python.state_file import StateError, check_round, entry_of, pack, read_state, unpack
from oco.compiler.ir.program import Field, Program
from oco.compiler.ir.verifier import KINDS
from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.writing import reason_of

if TYPE_CHECKING:
    from oco.backends.learner import Learner

UNREADABLE = (KeyError, TypeError, ValueError, OverflowError, AttributeError, binascii.Error)
"""Exceptions from reading JSON values of the wrong kind."""
_SAME_PLAN = (
    "compile the model as it was then: the same text, params, horizon, algorithm and settings; or carry the state to the new plan "
    "with `oco.migrate`"
)


def learner_state(learner: Learner) -> dict[str, Any]:
    """JSON values from which a learner continues bit for bit."""
    program = learner.compiled.program
    values = {f.name: pack(v) for f, v in zip(program.state, learner.unprepared)}
    return plan_state(learner) | {"values": values} | rest_of_state(learner)


def plan_state(learner: Learner) -> dict[str, Any]:
    """Part of a state that names the plan: it changes where the learner goes on beyond its horizon, and in no other round."""
    program, contract = learner.compiled.program, learner.contract
    return {
        "model": program.name,
        "backend": learner.compiled.backend,
        "model_hash": model_hash(contract),
        "plan_hash": plan_hash(program, contract),
        "recipe": dict(contract.recipe),
    }


def rest_of_state(learner: Learner) -> dict[str, Any]:
    """Part of a state beside its plan and the algorithm's values: random numbers, warnings, the round that is open."""
    drawn, draws = learner.drawn, learner._draws
    return (
        {
            "random": learner._random.bit_generator.state,
            "drawn": [pack(a) for a in drawn] if drawn else None,
            "draws": None if draws is None else {n: pack(a) for n, a in draws.items()},
            "on_out_of_bounds": learner.on_out_of_bounds,
            "warnings": list(learner.warnings),
        }
        | _round_state(learner)
        | _last_state(learner)
    )


def learner_of_bytes(saved: bytes, learner: Learner) -> Learner:
    """New learner, after it took the values of `Learner.value_bytes`. Raises OCO850 where they are damaged or another plan's."""
    if learner.contract.delay or learner.compiled.program.draws:
        message = "this learner has open rounds or random numbers, of which the bytes say nothing"
        raise fail("OCO850", message, hint="use `learner.state()`, which has all of it")
    if not learner.load_bytes(saved):
        raise fail("OCO850", "the bytes are damaged, or of another plan", hint="give the plan that wrote them, in C")
    return learner


def restore_into(learner: Learner, state: Mapping[str, Any]) -> None:
    """Set a new learner to a saved state. Raises OCO850, OCO851."""
    program = learner.compiled.program
    with _whole_state():
        check_identity(state, program, learner.contract)
        learner._state = _all([state["values"][f.name] for f in program.state], program.state)
        restore_rest(learner, state)


def restore_rest(learner: Learner, state: Mapping[str, Any]) -> None:
    """Set what `rest_of_state` gave, in a learner that has its values. Raises OCO850."""
    program = learner.compiled.program
    with _whole_state():
        check_round(learner.round)
        learner._random.bit_generator.state = state["random"]
        drawn, draws = state["drawn"], state["draws"]
        learner._drawn = None if drawn is None else (learner.round, _all(drawn, program.draws))
        learner._draws = None if draws is None else {str(n): np.asarray(unpack(a), float) for n, a in draws.items()}
        learner.on_out_of_bounds = CHOICES[CHOICES.index(state["on_out_of_bounds"])]
        learner.warnings = [str(w) for w in state["warnings"]]
        learner._last = _last_round(state["last"], program) if "last" in state else None
        learner.skipped = max(0, int(state.get("skipped", 0)))
        learner._answered = learner.round if state.get("decided") is True else 0
        if learner._answered or state.get("context"):
            learner.learn_context({str(n): unpack(v) for n, v in state.get("context", {}).items()})


@contextmanager
def _whole_state() -> Iterator[None]:
    """Context in which JSON values of the wrong kind raise OCO850."""
    try:
        yield
    except OcoError:
        raise
    except UNREADABLE as error:
        raise fail("OCO850", f"the saved state is not whole: {type(error).__name__}: {error}") from None


def _round_state(learner: Learner) -> dict[str, Any]:
    """Contexts of a round that is decided and not over, whether it is, and the number of rounds that were left out."""
    known, skipped = learner.contexts.of(learner.round), learner.skipped
    own: dict[str, Any] = {"context": {n: pack(v) for n, v in known.items()}} if known else {}
    own |= {"decided": True} if learner._answered == learner.round else {}
    return own | ({"skipped": skipped} if skipped else {})


def _last_state(learner: Learner) -> dict[str, Any]:
    """Last round of the horizon, from which the next epoch begins, where it is over and none has begun."""
    last = learner._last
    parts = {} if last is None else {"state": last.state, "inputs": last.inputs, "draws": last.draws}
    return {"last": {name: [pack(v) for v in values] for name, values in parts.items()}} if parts else {}


def _last_round(last: Mapping[str, Any], program: Program) -> LastRound:
    parts = {"state": program.state, "inputs": program.feedback, "draws": program.draws}
    return LastRound(*(_all(last[name], fields) for name, fields in parts.items()))


def check_identity(state: Mapping[str, Any], program: Program, contract: Contract) -> None:
    """Check that model, algorithm and settings agree. A setting that did not exist when the state was saved is ignored."""
    recipe, own = state["recipe"], contract.recipe
    if state["model_hash"] != model_hash(contract):
        raise other_model("the saved state belongs", recipe, contract)
    saved, ours = resolved_of(recipe), resolved_of(own)
    differences = {"algorithm": (recipe.get("algorithm"), own.get("algorithm"))}
    differences |= {name: (saved[name], ours[name]) for name in ours if name in saved}
    for name, (its, here) in differences.items():
        if its != here:
            message = f"its {name} is {_readable(str(its))}, here it is {_readable(str(here))}"
            raise fail("OCO851", f"the saved state belongs to another plan of its model: {message}", hint=_SAME_PLAN)
    if state["plan_hash"] != plan_hash(program, contract, saved):
        raise fail("OCO851", "the saved state belongs to another plan than the one that its model gives now")


def other_model(what: str, recipe: Mapping[str, Any], contract: Contract, hint: str = _SAME_PLAN) -> OcoError:
    """Error that something belongs to another model, with the first line in which the models differ."""
    theirs, ours = (str(r.get("model", "")).splitlines() for r in (recipe, contract.recipe))
    pairs = [(a, b) for a, b in zip_longest(theirs, ours, fillvalue="") if a != b]
    message = f": `{_short(pairs[0][0])}` there is `{_short(pairs[0][1])}` here" if pairs else ""
    return fail("OCO851", f"{what} to another model, called {str(recipe.get('name', ''))!r}{message}", hint=hint)


def _short(line: str) -> str:
    return shorten(line.strip(), 80, placeholder=" ...")


def _readable(setting: str) -> str:
    """Number kept to the last bit, in readable form; a formula unchanged."""
    return f"{float.fromhex(setting):.17g}" if "0x" in setting else setting


def _all(packed: Sequence[Any], fields: Sequence[Field]) -> tuple[Any, ...]:
    """Arrays, checked for the program's kinds and shapes."""
    kinds = [np.dtype(KINDS[f.type.dtype]).kind for f in fields]
    return tuple(entry_of(f.name, a, f.type.shape, kind) for a, f, kind in zip(packed, fields, kinds, strict=True))


def read_saved(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Content of a file that `Learner.save` wrote: its `recipe` makes the plan again. Raises OCO850."""
    try:
        return read_state(path)
    except StateError as error:
        raise fail("OCO850", str(error), hint="give a file that `learner.save` wrote, as it was written") from None
    except (OSError, ValueError) as error:
        hint = "give the path of a file that `learner.save` wrote"
        raise fail("OCO850", f"{os.fspath(path)!r} cannot be read: {reason_of(error)}", hint=hint) from None
