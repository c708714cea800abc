"""An algorithm on a model where its theorem applies: what a sequence costs it, over what is promised."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from driving import Array, Run, situation
from law_worlds import compiled, draws_of, plan_where_it_holds, theorem_of

from benchmarks.guarantees.shapes import SHAPES, texts
from oco.compiler.algorithms.wang_yan_liu2025 import comparator_remarks
from oco.compiler.problem.canonical import Canonical, canonical
from oco.compiler.selection.plan import Plan
from oco.compiler.theory.guarantees import Guarantee
from oco.compiler.theory.theorems import Violation
from oco.dsl.evaluate import Evaluation
from oco.dsl.expressions import Expr
from oco.dsl.load import parse
from oco.dsl.statements import Feedback, Measure
from oco.evaluation.batch import RoundArray, Value, evaluate_rounds, values_of
from oco.evaluation.comparators.compare import compare
from oco.evaluation.data import Data

ROUNDS = 64
Streams = Mapping[str, Array]


@dataclass(frozen=True)
class Share:
    """Regret and violation over what is promised, and their standard errors (0 where a single run is measured); None: no promise."""

    regret: float | None
    violation: float | None
    regret_error: float = 0.0
    violation_error: float = 0.0


@dataclass(frozen=True, eq=False)
class Case:
    """An algorithm on a shape where its theorem applies; `plan` has the theorem's settings, `judge` the problem of the comparator."""

    algorithm: str
    shape: str
    plan: Plan
    judge: Canonical

    @property
    def rounds(self) -> int:
        assert self.plan.canonical.horizon is not None
        return self.plan.canonical.horizon

    @cached_property
    def free(self) -> bool:
        """True where an adversary may choose streams: none of them is drawn from a distribution."""
        return not any(s.stochastic for s in self.plan.canonical.streams)

    @property
    def averaged(self) -> bool:
        """True where the theorem bounds a mean over draws, of streams or of the algorithm."""
        return theorem_of(self.plan).expected and (not self.free or bool(self.plan.program.draws))

    @cached_property
    def functions(self) -> tuple[Evaluation, tuple[Evaluation, ...]]:
        p = self.plan.canonical
        return Evaluation(p.objective), tuple(Evaluation(c.expr) for c in p.constraints)

    def random(self, rng: np.random.Generator, rounds: int | None = None) -> Streams:
        """Draws of the streams' distributions; else vertices of their ranges."""
        n = rounds or self.rounds
        drawn = {}
        for s in self.plan.canonical.streams:
            if s.distribution is not None:
                drawn[s.name] = np.asarray(s.distribution.sample(rng, n)).reshape(n, *s.shape)
            else:
                drawn[s.name] = np.where(rng.random((n, *s.shape)) < 0.5, s.lower, s.upper)
        return drawn

    def play(self, streams: Streams, seed: int) -> tuple[Array, Array, Array]:
        """Losses (T,), values of the inequalities (T, N) and of the equalities (T, M)."""
        if self.plan.canonical.feedback.gives_values_alone or self.plan.program.prepare is not None:
            rows = list(self.stepped(streams, seed))
            kept = {n: np.array([row[i] for row in rows]) for i, n in enumerate(("loss", "constraints"))}
            return kept["loss"], kept["constraints"], np.zeros((self.rounds, 0))
        functions, program = compiled(self.plan), self.plan.program
        assert functions.run is not None
        state = functions.init(*(b.domain.centre() for b in self.plan.canonical.blocks))
        inputs = [streams[f.name] for f in program.feedback]
        names = ["loss", "constraints", "equalities"][: 3 if self.plan.canonical.equalities else 2]
        kept = functions.run(state, inputs, draws_of(self.plan, self.rounds, seed), self.rounds, names).kept
        return kept["loss"], kept["constraints"], kept.get("equalities", np.zeros((self.rounds, 0)))

    def started(self, seed: int) -> Run:
        draws = draws_of(self.plan, self.rounds, seed)
        return Run(self.plan, draws={f.name: d for f, d in zip(self.plan.program.draws, draws)})

    def at(self, decisions: Sequence[Array], values: Mapping[str, Array], t: int) -> tuple[float, Array]:
        """Loss and values of the constraints (N + M,) in round t."""
        env = {**{b.name: x for b, x in zip(self.plan.canonical.blocks, decisions)}, **values}
        loss, constraints = self.functions
        return float(loss(env, t)), np.concatenate([np.zeros(0), *(np.ravel(g(env, t)) for g in constraints)])

    def losses(self, decisions: Sequence[Value], values: Mapping[str, Value], t: int, count: int) -> Array:
        """Losses in round t of so many choices of decisions or of streams, shape (count,)."""
        return self._choices(self.plan.canonical.objective, decisions, values, t, count)

    def constraints(self, decisions: Sequence[Value], values: Mapping[str, Value], t: int, count: int) -> Array:
        """Values of the constraints in round t of so many choices, shape (count, N + M)."""
        exprs = [c.expr for c in self.plan.canonical.constraints]
        rows = [self._choices(e, decisions, values, t, count).reshape(count, -1) for e in exprs]
        return np.concatenate([np.zeros((count, 0)), *rows], axis=1)

    def _choices(
        self, expr: Expr, decisions: Sequence[Value], values: Mapping[str, Value], t: int, count: int
    ) -> Array:
        env = {**{b.name: x for b, x in zip(self.plan.canonical.blocks, decisions)}, **values}
        return values_of(evaluate_rounds(expr, env, count, np.full(count, float(t))), count)

    def asked(self, run: Run, choices: Sequence[Mapping[str, Array]]) -> Sequence[Value]:
        """Decisions that a round would have with these values of its streams: one for all where it does not wait for them."""
        if self.plan.program.prepare is None:
            return run.decisions
        return [RoundArray(np.array(block)) for block in zip(*(run.asked(v) for v in choices))]

    def feed(self, run: Run, values: Mapping[str, Array], loss: float, constraints: Array, t: int) -> None:
        feedback = self.plan.canonical.feedback
        seen = {"loss": loss, "constraints": constraints} if feedback.gives_values_alone else values
        if feedback is Feedback.TWO_POINT:
            seen = {**seen, "second_loss": self.at(run.second, values, t)[0]}
        run.play(seen)

    def stepped(self, streams: Streams, seed: int) -> Iterator[tuple[float, Array]]:
        run = self.started(seed)
        for t in range(self.rounds):
            values = {n: v[t] for n, v in streams.items()}
            loss, g = self.at(run.decided(values), values, t + 1)
            self.feed(run, values, loss, g, t + 1)
            yield loss, g

    @property
    def promise(self) -> Guarantee:
        assert self.plan.guarantee is not None
        return self.plan.guarantee

    def measured(self, streams: Streams, seed: int) -> tuple[float, float, float]:
        """Regret against the comparator that the theorem names, violation as it counts it, and that of equalities on average."""
        loss, g, h = self.play(streams, seed)
        kind = "dynamic" if self.judge.measure is Measure.DYNAMIC else "static"
        least = compare(self.judge, Data(self.judge, self.rounds, streams), kind)
        assert np.isfinite(least.bound), least.words
        hard = theorem_of(self.plan).violation is Violation.HARD
        broken = np.maximum(g, 0).sum() if hard else np.maximum(g.sum(axis=0), 0).sum()
        return float(loss.sum()) - least.bound, float(broken), float(np.abs(h.sum(axis=0)).sum())

    def share(self, runs: Sequence[tuple[Streams, int]]) -> Share:
        """Mean over runs, over what is promised; the violation is the worse of inequalities and equalities."""
        values = np.array([self.measured(*run) for run in runs])
        error = values.std(axis=0, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.zeros(3)
        T, p, problem = self.rounds, self.promise, self.plan.canonical
        equal = p.equality_bound.number(T) if p.equality_bound is not None and problem.equalities else None
        promised = p.regret(T), p.violation(T) if problem.inequalities else None, equal
        regret, *broken = ((over(m, b), over(e, b) or 0.0) for m, e, b in zip(values.mean(axis=0), error, promised))
        violation = max(((v, e) for v, e in broken if v is not None), default=(None, 0.0))
        return Share(regret[0], violation[0], regret[1], violation[1])


def together(choices: Sequence[Mapping[str, Array]]) -> dict[str, RoundArray]:
    """Values of streams with the choice first."""
    return {name: RoundArray(np.array([c[name] for c in choices])) for name in choices[0]}


def over(measured: float, promised: float | None) -> float | None:
    if promised is None:
        return None
    return float(measured / promised) if promised > 0 else np.inf if measured > 1e-9 else 0.0


def case(algorithm: str, shape: str, rounds: int = ROUNDS, settings: Mapping[str, str] | None = None) -> Case | None:
    """The first model of the shape where a theorem of the algorithm applies; None where there is none."""
    for text in texts(shape, rounds):
        plan = plan_where_it_holds(text, algorithm, settings)
        if plan is None or plan.guarantee is None or plan.guarantee.regret(rounds) is None:
            continue
        if plan.choice.situation.given_up:  # a weaker promise than the model asks for
            continue
        mentioned = set(comparator_remarks(situation(text))) & set(plan.guarantee.remarks)
        strict = theorem_of(plan).violation is Violation.HARD or bool(mentioned)
        judge = text.replace("on average", "each round") if strict else text
        return Case(algorithm, shape, plan, canonical(parse(judge)))
    return None


def cases(algorithm: str, rounds: int = ROUNDS) -> Iterator[Case]:
    yield from (c for shape in SHAPES if (c := case(algorithm, shape, rounds)) is not None)
