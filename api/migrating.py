"""Learners carried to another plan of their model: other horizon, settings or bounds, and what that keeps of the guarantee."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from oco.backends.base import Compiled
from oco.backends.delayed import DelayedLearner
from oco.backends.factors import names_of, points_of
from oco.backends.identity import model_hash, plan_hash
from oco.backends.journal import FILE, Journal
from oco.backends.learner import Learner
from oco.backends.opening import FIRST_TURN, open_journal
from oco.backends.python.state_file import pack
from oco.backends.registry import make_learner, restored, usable
from oco.backends.saved import read_saved
from oco.compiler.ir.program import Field, Program
from oco.compiler.selection.alert import is_same_rule
from oco.dsl.diagnostics import fail
from oco.dsl.records import dataclass
from oco.plan import Plan, restored_learner


@dataclass(frozen=True, eq=False)
class Migration:
    """Result of `oco.migrate`.

    learner  of the new plan, in the round after those that were played
    whole    True where the state is one of the new plan: the same rule with the same numbers
    played   rounds before
    kept     sentences on what is kept of the guarantee
    """

    learner: Learner
    whole: bool
    played: int
    kept: str

    def __str__(self) -> str:
        return self.kept


def migrated(source: Any, plan: Plan, backend: str | None = None) -> Migration:
    """`oco.migrate`, for a state, a file of one, a journal's folder or a learner."""
    old = _learner(source)
    learner, whole = carried(old, plan, backend)
    played = _rounds(old)
    if whole:
        return _noted(Migration(learner, True, played, _of_whole(old, plan, played)))
    return _noted(Migration(learner, False, played, _of_parts(old, plan, played)))


def carried(old: Learner, plan: Plan, backend: str | None = None) -> tuple[Learner, bool]:
    """Learner of a plan that goes on where another is, and True where its state is one of the plan. Raises OCO550, OCO862."""
    turns = _turns(old)
    before, after = turns[0].compiled.program, plan.program
    _check_interface(before, after)
    name = backend or usable(old.compiled.backend)
    compiled = plan.compiled(plan.backend_for(plan.horizon, name).name)
    if is_same_rule(before, after) and old.contract.delay == plan.contract.delay:
        return restored(_as_of(old.state(), plan), compiled, plan.contract), True
    if isinstance(old, DelayedLearner) and old.pending:
        message = f"rounds {', '.join(map(str, old.pending))} are open, and the new plan knows nothing of what was decided in them"
        raise fail(
            "OCO550", message, hint="give their feedback to the old learner, or `skip` them, before it is carried"
        )
    begun = [_begun(turns[i % len(turns)], plan, compiled) for i in range(plan.contract.delay + 1)]
    return (cast(Learner, DelayedLearner.deciding(begun, plan.contract)) if plan.contract.delay else begun[0]), False


def beginning(old: Learner, plan: Plan) -> str:
    """Words for the decision at which a plan begins where its rule is another."""
    return "its own first decision" if _start(_turns(old)[0], plan) is None else "the decision reached"


def _turns(old: Learner) -> Sequence[Learner]:
    """Learners that take turns: the one alone where feedback is not delayed."""
    return old.learners if isinstance(old, DelayedLearner) else (old,)


def _begun(old: Learner, plan: Plan, compiled: Compiled) -> Learner:
    """Learner of a plan, one of those in turn where its feedback comes later, at the decision that another reached, with its random
    generator.
    """
    contract = plan.contract.of_one_turn
    options: dict[str, Any] = {"start": _start(old, plan), "on_out_of_bounds": old.on_out_of_bounds}
    learner = make_learner(compiled, contract, **options)
    kept = {own for _, own in compiled.program.previous} & {own for _, own in old.compiled.program.previous}
    state = learner.state() | {"random": old._random.bit_generator.state, "warnings": list(old.warnings)}
    state["values"] = state["values"] | {field: pack(old.values[field]) for field in kept}
    return restored(state, compiled, contract)


def _noted(result: Migration) -> Migration:
    result.learner.warn(result.kept)
    return result


def _learner(source: Any) -> Any:
    """Learner that is carried, from any of its forms."""
    if isinstance(source, Learner | DelayedLearner):
        return cast(Learner, source)
    if isinstance(source, Mapping):
        return restored_learner(source)
    folder = Path(os.fsdecode(source))
    journal = next((place for place in (folder, folder / FIRST_TURN) if (place / FILE).exists()), None)
    return restored_learner(read_saved(folder)) if journal is None else _of_journal(folder, journal)


def _of_journal(folder: Path, first: Path) -> Learner:
    """Learner after the last round of a journal, which stays as it is; `first` is that of the first learner in turn."""
    journal = Journal(first)
    try:
        state = journal.state(first=False)
    finally:
        journal.close()
    plan = Plan.from_recipe(state.get("recipe"), usable(state.get("backend")))
    with open_journal(lambda name: plan.learner(backend=name), folder, turns=plan.contract.delay + 1) as learner:
        result = learner.state()
    return restored_learner(result)


def _rounds(old: Learner) -> int:
    return old.round - 1


def _check_interface(before: Program, after: Program) -> None:
    """Check that both take the same inputs and give the same decisions. Raises OCO862."""
    for what, old, new in (
        ("decision", before.decision, after.decision),
        ("input", before.feedback, after.feedback),
    ):
        theirs, ours = _kinds(old), _kinds(new)
        if wrong := sorted(name for name in theirs.keys() | ours.keys() if theirs.get(name) != ours.get(name)):
            there, here = (kinds.get(wrong[0], "absent") for kinds in (theirs, ours))
            raise fail("OCO862", f"the {what} {wrong[0]} is {there} in the state, and {here} in the plan")


def _kinds(fields: tuple[Field, ...]) -> dict[str, str]:
    return {f.name: f"of shape {f.type.shape}" for f in fields}


def _as_of(state: Mapping[str, Any], plan: Plan) -> dict[str, Any]:
    """State with the identity of another plan."""
    contract = plan.contract
    own = {"model_hash": model_hash(contract), "recipe": dict(contract.recipe)}
    one = own | {"plan_hash": plan_hash(plan.program, contract.of_one_turn)}
    if not contract.delay:
        return {**state, **one}
    return {**state, **own, "learners": [{**each, **one} for each in state["learners"]]}


def _start(old: Learner, plan: Plan) -> dict[str, Any] | None:
    """Decision reached, moved into the domains of the plan; None where it waits for a context, is kept as factors, or where the
    guarantee is from the plan's own first decision.
    """
    if plan.contract.from_centre or old.contexts.awaited or plan.program.factored:
        return None
    reached = points_of(old.compiled.program, old.decisions())
    results = {}
    for name, value in zip(names_of(plan.program), reached, strict=True):
        domain, point = plan.contract.domains[name], np.asarray(value, dtype=np.float64)
        results[name] = point if domain.contains(point) else domain.project_array(point)
    return results


# What is kept.


def _of_whole(old: Learner, plan: Plan, played: int) -> str:
    """Sentence for a state that is one of the new plan."""
    return f"the state is one of the new plan, which goes on in round {played + 1}: {covered(old, plan)}"


def covered(old: Learner, plan: Plan) -> str:
    """Sentence on the rounds that the guarantee of a plan covers where it goes on with a state."""
    if narrower := _narrower(old, plan):
        return (
            f"its guarantee covers all rounds if those played lay within its bounds of {narrower}, which are narrower"
        )
    return "its guarantee covers all rounds, those that were played included"


def _narrower(old: Learner, plan: Plan) -> str:
    """Streams whose bounds in the new plan leave out some of what they could be before."""
    results = []
    for name, now in plan.contract.ranges.items():
        then = old.contract.ranges.get(name)
        if then is None or np.any(np.asarray(now.lower) > then.lower) or np.any(np.asarray(now.upper) < then.upper):
            results.append(name)
    return ", ".join(results)


def _of_parts(old: Learner, plan: Plan, played: int) -> str:
    """Sentence for a new plan that begins at a decision after the old learner's rounds."""
    begun = f"the new plan begins at {beginning(old, plan)} and counts its rounds from 1; {played} were played before"
    bound = plan.guarantee.regret() if plan.guarantee is not None else None
    before = _bound_so_far(old, played)
    if bound is None or before is None or plan.guarantee is None:
        return f"{begun}: over all rounds the regret is at most the sum of what both plans promise for their own rounds"
    total = f"{before:.6g} + {bound:.6g}"
    measure, T = plan.guarantee.regret_bound.measure, plan.guarantee.horizon
    sums = f"the {measure} is at most {total}, the sum of both bounds"
    return f"{begun}: over those and the {T} of the new plan {sums}, against decisions that both models allow"


def _bound_so_far(old: Learner, played: int) -> float | None:
    """Bound of the regret of the rounds played, with the settings of the old plan; None where it has no number."""
    if played == 0:
        return 0.0
    plan = Plan.from_recipe(dict(old.contract.recipe))
    after = plan.continued() if old.contract.recipe.get("after") is not None else plan
    guarantee = None if after is None else after.guarantee
    ended = plan.horizon is not None and after is plan and played > plan.horizon and not plan.anytime
    if guarantee is None or ended:
        return None
    return guarantee.regret_bound.number(played, guarantee.horizon or played)
