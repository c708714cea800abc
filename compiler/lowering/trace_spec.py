"""Specification of a trace: the problem with its settings, and the random arrays that the rule draws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property, lru_cache

from oco.compiler.domains import Domain
from oco.compiler.ir.program import DType, Field, Type
from oco.compiler.ir.value import Value
from oco.compiler.lowering.entry_functions import EntryFunctions, nonlinear_terms
from oco.compiler.lowering.kinked_functions import KinkedFunctions, kinked_functions
from oco.compiler.lowering.storage import LowRankLayout
from oco.compiler.problem.canonical import Canonical
from oco.compiler.problem.structure import Structure
from oco.compiler.theory.scales import Scales
from oco.compiler.theory.settings import Setting
from oco.compiler.theory.theorems import Restart
from oco.dsl.records import dataclass
from oco.dsl.statements import Feedback

FLOAT = DType.FLOAT


@dataclass(frozen=True)
class Draw:
    """A random array of each round: `distribution` is "uniform" on [0, 1) or "normal".

    Without a shape there is one array a decision, of its shape; with `rows`, that many points in one array a decision.
    """

    name: str
    distribution: str
    doc: str = ""
    shape: tuple[int, ...] | None = None
    rows: int | None = None


@dataclass(frozen=True)
class Turn:
    """Turn of one of `count` learners that learn together: the number of the round among those of all, its own number of it, and how many
    rounds all of them observed.
    """

    count: int
    number: Value
    own: Value | None
    observed: Value


@dataclass(frozen=True, eq=False)
class TraceSpec:
    """Specification of a trace, fixed while a rule is traced: the problem, its structure, the settings, the horizon.

    `scales` are the units of the problem that the rule sees (None: the user's); `canonical` is in the user's. `rooms` says which decisions
    are kept as factors (empty: none). `restarts`: the rounds of the first epoch of a restarted method, and where its epochs begin. `open`:
    symbols in the settings whose numbers are given with the first decision, so that one program serves many of them. `certify`: kind of
    regret that the state keeps the sums of a certificate for, "" for none. `anytime`: settings go on with the rounds after the horizon.
    `watch`: the state keeps what tells whether one decision satisfied all rounds. `seasons`: rounds of the seasons of streams whose own is
    not that of the setting. `pending`: rounds may wait in the state until the sums of a certificate take many of them at once.
    `open_streams`: rounds reveal their streams, whatever the model's feedback.
    """

    canonical: Canonical
    settings: Mapping[str, Setting]
    structure: Structure
    horizon: int | None
    dependent_rows: frozenset[str] = frozenset()
    draws: tuple[Draw, ...] = ()
    scales: Scales | None = None
    low_rank_layouts: tuple[LowRankLayout | None, ...] = ()
    restarts: tuple[int, Restart] | None = None
    open: tuple[str, ...] = ()
    certify: str = ""
    anytime: bool = False
    watch: bool = False
    seasons: Mapping[str, int] = field(default_factory=dict)
    pending: bool = True
    open_streams: bool = False

    @property
    def feedback(self) -> Feedback:
        """Information that a round reveals to the rule."""
        return Feedback.FULL if self.open_streams else self.canonical.feedback

    @cached_property
    def domains(self) -> tuple[Domain, ...]:
        """The sets that the rule's decisions lie in."""
        own = tuple(b.domain for b in self.canonical.blocks)
        return own if self.scales is None else self.scales.domains(own)

    @property
    def decisions(self) -> tuple[str, ...]:
        """Names of the decisions in the order of the model."""
        return tuple(b.name for b in self.canonical.blocks)

    @cached_property
    def kept_equalities(self) -> tuple[int, ...]:
        """The entries of the equalities that have a multiplier: all but the dependent ones."""
        return tuple(i for i, name in enumerate(self.canonical.equality_labels) if name not in self.dependent_rows)

    @property
    def entry_functions(self) -> EntryFunctions | KinkedFunctions | None:
        """Functions of single entries through which the inequalities bend, or their kinks; None where they have neither form."""
        return _entry_functions(self.canonical)

    def fields(self) -> tuple[Field, ...]:
        """Arguments of `update` in each round: the streams, or the contexts and the values that the feedback reveals."""
        c = self.canonical
        kinds = {s.name: Type(DType.INT if s.integer else FLOAT, s.shape) for s in c.streams}
        words = {
            s.name: f"the decision {s.stream.previous} of the round before"
            if s.stream.previous
            else "what the round before left"
            for s in c.carried
        }
        streams = [Field(name, kind, words.get(name, "")) for name, kind in kinds.items()]
        if self.feedback is Feedback.FULL:
            return tuple(streams)
        n, m = sum(g.size for g in c.inequalities), sum(h.size for h in c.equalities)
        results = [f for f in streams if f.name in c.context]
        results += [Field("loss", Type(FLOAT), "the loss at the decision")]
        results += [Field("constraints", Type(FLOAT, (n,)), "the values of g at the decision")] if n else []
        results += [Field("equalities", Type(FLOAT, (m,)), "the values of h at the decision")] if m else []
        if self.feedback is Feedback.TWO_POINT:
            results.insert(len(c.context) + 1, Field("second_loss", Type(FLOAT), "the loss at the second point"))
        if self.feedback.gives_values_alone:
            return tuple(results)
        for b in c.blocks:
            end = "" if len(c.blocks) == 1 else f"_{b.name}"
            results += [Field(f"gradient{end}", Type(FLOAT, b.shape), "the gradient of the loss")]
            results += [Field(f"constraint_gradients{end}", Type(FLOAT, (n, *b.shape)))] if n else []
            results += [Field(f"equality_gradients{end}", Type(FLOAT, (m, *b.shape)))] if m else []
        return tuple(results)

    def names(self, symbol: str) -> tuple[str, ...]:
        """The fields of a point: the symbol itself where there is one decision."""
        return (symbol,) if len(self.decisions) == 1 else tuple(f"{symbol}_{d}" for d in self.decisions)

    def drawn(self) -> dict[Field, str]:
        """The random arrays of a round, each with its distribution."""
        results: dict[Field, str] = {}
        for draw in self.draws:
            if draw.shape is not None:
                results[Field(draw.name, Type(FLOAT, draw.shape), draw.doc)] = draw.distribution
                continue
            for name, block in zip(self.names(draw.name), self.canonical.blocks, strict=True):
                shape = block.shape if draw.rows is None else (draw.rows, *block.shape)
                results[Field(name, Type(FLOAT, shape), draw.doc)] = draw.distribution
        return results


@lru_cache(maxsize=16)
def _entry_functions(problem: Canonical) -> EntryFunctions | KinkedFunctions | None:
    """Functions of single entries of a problem: its step is taken at several points, and in specifications beside each other."""
    exprs, decisions = [c.expr for c in problem.inequalities], tuple(b.name for b in problem.blocks)
    return nonlinear_terms(exprs, decisions) or kinked_functions(exprs, decisions)


@dataclass(frozen=True)
class Epoch:
    """A stretch of `length` rounds that a restarted method takes for the whole; the first one has `first` rounds, then they double."""

    length: Value
    first: int
