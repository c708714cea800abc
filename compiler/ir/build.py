"""A program out of Python functions in the paper's notation: init, decide, update, measure, slopes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from oco.compiler.ir.program import ROUND as ROUND_NAME
from oco.compiler.ir.program import DType, Field, Function, Program, Type
from oco.compiler.ir.rename import without_clashes
from oco.compiler.ir.rewrite import map_functions
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Liftable, Value
from oco.compiler.ir.verifier import check
from oco.dsl.diagnostics import InternalError

Named = Mapping[str, Value]
ROUND = Field(ROUND_NAME, Type(DType.INT), "the round that decide answers now, from 1")


def trace_program(
    t: Tracer,
    *,
    doc: str = "",
    decision: Sequence[Field],
    factored: Sequence[str] = (),
    feedback: Sequence[Field] = (),
    draws: Sequence[Field] = (),
    init: Callable[[Named], Mapping[str, Liftable]],
    decide: Callable[[Named, Named], Mapping[str, Liftable]],
    update: Callable[[Named, Named, Named], Mapping[str, Liftable]],
    measure: Measure | None = None,
    slopes: Measure | None = None,
    state_docs: Mapping[str, str] | None = None,
    labels: Sequence[str] = (),
) -> Program:
    """The program whose state is what `init` names.

    init(start decisions) -> state; decide(state, draws) -> decisions; update(state, feedback, draws) -> state, each by name.
    The state's `round` is added here: it begins at 1 and update raises it by one. measure(round, decisions, feedback) -> loss,
    inequalities (N,), equalities (M,); slopes, of the same, -> norms of the gradients of loss and inequalities. Each function gets its
    values by field name and may use the tracer `t` freely.
    """
    docs = state_docs or {}
    state: list[Field] = [ROUND]

    def traced_init(start: Named) -> Mapping[str, Liftable]:
        made = {"round": t.lift(1), **{name: t.lift(v) for name, v in init(start).items()}}
        state[1:] = [Field(n, v.type, docs.get(n, "")) for n, v in made.items() if n != "round"]
        return made

    def traced_update(now: Named, seen: Named, drawn: Named) -> Mapping[str, Liftable]:
        return {"round": now["round"] + 1, **update(now, seen, drawn)}

    entries, after = _Entries(t), "The state after this round."
    init_function = entries.function("init", "The first state.", traced_init, [decision], lambda: state)
    decide_function = entries.function(
        "decide", "The decision of this round.", decide, [state, draws], lambda: decision
    )
    update_function = entries.function("update", after, traced_update, [state, feedback, draws], lambda: state)
    measured = None if measure is None else _traced(entries, MEASURE, measure, decision, feedback)
    sloped = None if slopes is None else _traced(entries, SLOPES, slopes, decision, feedback)
    program = Program(
        name=t.title,
        doc=doc,
        constants=tuple(t.constants),
        state=tuple(state),
        decision=tuple(decision),
        factored=tuple(factored),
        feedback=tuple(feedback),
        draws=tuple(draws),
        functions=tuple(t.functions),
        init=init_function,
        decide=decide_function,
        update=update_function,
        measure=measured,
        slopes=sloped,
        labels=tuple(labels),
    )
    return check(_without_clashes(program))


def with_prepare(
    t: Tracer, program: Program, prepare: Callable[[Named, Named], Mapping[str, Liftable]] | None
) -> Program:
    """Program whose decision hangs on its context; prepare(state, context) -> state, by name."""
    if prepare is None:
        return program
    doc = "The state once the context of this round is known."
    function = _Entries(t).function("prepare", doc, prepare, [program.state, program.known], lambda: program.state)
    named = replace(program, constants=tuple(t.constants), functions=tuple(t.functions), prepare=function)
    return check(_without_clashes(named), before=program)


def with_certificate(
    t: Tracer, program: Program, certificate: Callable[[Named], Mapping[str, Liftable]] | None
) -> Program:
    """Program whose state keeps the sums of a certificate; certificate(state) -> `CERTIFIED`, and what else it bounds."""
    if certificate is None:
        return program
    doc = "Lower bound of the loss of every fixed decision in the rounds so far, with what proves it."
    results = list[Field]()

    def by_name(state: Named) -> Mapping[str, Liftable]:
        made = certificate(state)
        results[:] = [Field(n, Type(DType.FLOAT)) for n in made]
        return made

    function = _Entries(t).function("certificate", doc, by_name, [program.state], lambda: results)
    named = replace(program, constants=tuple(t.constants), functions=tuple(t.functions), certificate=function)
    return check(_without_clashes(named), before=program)


CERTIFIED = ("least", "most", "rounding", "at", "multipliers", "loss", "broken")
"""Results of the entry `certificate`: a lower and an upper bound of what fixed decisions lose, its rounding, what proves it, the sum of the
losses, and the number of rounds in which each constraint was broken."""
OF_EACH_ROUND, BEST_EXPERT = "dynamic", "best_expert"
"""Further results, where they are kept: upper bounds of the regret to the best decision of each round, -inf where some round allows none,
and to the best expert."""
Measure = Callable[[Value, Named, Named], tuple[Liftable, ...]]
MEASURE = "measure", "Loss, constraint values and equality values of this round.", ("loss", "constraints", "equalities")
SLOPES = "slopes", "Norms of the gradients of this round's loss and constraints.", ("loss_slope", "constraint_slopes")


def _traced(
    entries: _Entries,
    entry: tuple[str, str, tuple[str, ...]],
    measure: Measure,
    decision: Sequence[Field],
    feedback: Sequence[Field],
) -> Function:
    """Function of the program that measures a round, such as its loss; its results have fixed names."""
    name, words, names = entry

    def by_name(now: Named, decisions: Named, seen: Named) -> Mapping[str, Liftable]:
        return dict(zip(names, measure(now["round"], decisions, seen), strict=True))

    results = [Field(n, Type(DType.FLOAT)) for n in names]
    return entries.function(name, words, by_name, [[ROUND], decision, feedback], lambda: results)


class _Entries:
    """Traces an entry function whose parameters and results are fields."""

    def __init__(self, t: Tracer) -> None:
        self.t = t

    def function(
        self,
        name: str,
        doc: str,
        fn: Callable[..., Mapping[str, Liftable]],
        groups: Sequence[Sequence[Field]],
        results: Callable[[], Sequence[Field]],
    ) -> Function:
        fields = [f for group in groups for f in group]

        def flat(*values: Value) -> list[Value]:
            left = iter(values)
            given = [{f.name: next(left) for f in group} for group in groups]
            result = fn(*given)
            wanted = [f.name for f in results()]
            if set(result) != set(wanted):
                raise InternalError(f"{name} gives {sorted(result)}, not {sorted(wanted)}")
            return [self._named(result[n], f"{n}_next" if name in ("update", "prepare") else n) for n in wanted]

        function = self.t.function(name, flat, [(f.name, f.type) for f in fields], doc)
        return replace(function, result_names=tuple(f.name for f in results()))

    def _named(self, value: Liftable, name: str) -> Value:
        """A result under the name of its field, unless the rule named it."""
        lifted = self.t.lift(value)
        return lifted if self.t.is_named(lifted) or name == "round_next" else self.t.name(name, lifted)


def _without_clashes(program: Program) -> Program:
    """Local names that meet no global name, also none that came after them."""
    taken = {g.var.name for g in program.constants} | {f.name for f in program.functions}
    return map_functions(program, lambda f: without_clashes(f, taken))
