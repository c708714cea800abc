"""From a rule and its problem to a Program: the rule is traced once, with state variables named by the paper's symbols."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from oco.compiler.algorithms.base import Algorithm, State
from oco.compiler.ir.build import Named, trace_program
from oco.compiler.ir.program import DType, Field, Program, Type
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Liftable, Value
from oco.compiler.points import Point, Rows, Structured
from oco.compiler.problem import Problem, Task


def assemble(algorithm: Algorithm, task: Task, doc: str) -> Program:
    """The learner as data: init, decide, update and measure over arrays."""
    t = Tracer(task.canonical.name)
    rule = algorithm.rule()
    layout = _Layout(task)

    def init(start: Named) -> Mapping[str, Liftable]:
        p = Problem(t, task, {})
        return layout.flat(rule.init(p, p.units.inward(Point(tuple(start[d] for d in task.decisions)))))

    def decide(state: Named, drawn: Named) -> Mapping[str, Liftable]:
        p = Problem(t, task, {}, state["round"], drawn)
        decided = p.units.outward(rule.decide(p, layout.state(state)))
        return dict(zip(task.decisions, decided.blocks, strict=True))

    def update(state: Named, seen: Named, drawn: Named) -> Mapping[str, Liftable]:
        p = Problem(t, task, seen, state["round"], drawn)
        return layout.flat(rule.update(p, layout.state(state)))

    def measure(now: Value, decisions: Named, seen: Named) -> tuple[Liftable, Liftable, Liftable]:
        p = Problem(t, replace(task, scales=None), seen, now)
        x = Point(tuple(decisions[d] for d in task.decisions))
        empty = t.zeros((0,))
        g = p.constraints(x) if p.constraint_count else empty
        return p.loss(x), g, p.all_equalities(x) if task.canonical.equalities else empty

    return trace_program(
        t,
        doc=doc,
        decision=tuple(Field(b.name, Type(DType.FLOAT, b.shape), f"in {b.domain}") for b in task.canonical.blocks),
        feedback=task.fields(),
        draws=tuple(task.drawn()),
        init=init,
        decide=decide,
        update=update,
        measure=measure,
        state_docs=layout.docs(algorithm.symbols),
        labels=task.canonical.constraint_labels,
    )


class _Layout:
    """State variables as fields: a point is one array a decision, under the symbol itself where there is one decision."""

    def __init__(self, task: Task) -> None:
        self.fields = task.names
        self.kinds: dict[str, type[Point] | type[Rows]] = {}

    def flat(self, state: State) -> dict[str, Value]:
        found: dict[str, Value] = {}
        for symbol, value in state.items():
            if isinstance(value, Point | Rows):
                self.kinds[symbol] = type(value)
                found |= dict(zip(self.fields(symbol), value.blocks, strict=True))
            else:
                found[symbol] = value
        return found

    def state(self, fields: Named) -> State:
        """The rule's state from its fields; `init` was traced before, so it is known which symbols are points."""
        found: dict[str, Structured] = {s: k(tuple(fields[f] for f in self.fields(s))) for s, k in self.kinds.items()}
        used = {f for s in self.kinds for f in self.fields(s)}
        return found | {name: v for name, v in fields.items() if name not in used and name != "round"}

    def docs(self, symbols: Mapping[str, str]) -> dict[str, str]:
        return dict(symbols) | {f: words for s, words in symbols.items() for f in self.fields(s)}
