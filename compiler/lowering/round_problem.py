"""View of the problem for an update rule: the round's loss, gradients and constraints as traced values, and settings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property, reduce

import numpy as np

from oco.compiler.ir.formulas import trace_formula
from oco.compiler.ir.program import DType
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.compiler.lowering.entry_functions import EntryFunctions
from oco.compiler.lowering.expressions import Lowering
from oco.compiler.lowering.kinked_functions import KinkedFunctions, nearest_of_kinks
from oco.compiler.lowering.numbered_round import NumberedRound
from oco.compiler.lowering.points import Block, Geometry, Point, Rows, Starts
from oco.compiler.lowering.significance import significant_entries
from oco.compiler.lowering.storage import sparse_gradient
from oco.compiler.lowering.trace_spec import Draw, Epoch, TraceSpec
from oco.compiler.lowering.units import Units
from oco.compiler.problem.calculus import vector_jacobian
from oco.compiler.problem.derivatives import derivatives, weights_of
from oco.compiler.problem.jacobians import jacobian
from oco.compiler.problem.kept_values import OWN_ROUND
from oco.compiler.problem.structure import is_affine
from oco.compiler.theory.settings import count
from oco.dsl import algebra
from oco.dsl.diagnostics import InternalError, fail
from oco.dsl.dims import known
from oco.dsl.expressions import Expr, Kind, Name, changes, names
from oco.dsl.statements import Feedback

FLOAT = DType.FLOAT

__all__ = ["Draw", "Epoch", "Problem", "TraceSpec"]


class Problem(NumberedRound):
    """The problem of one round, over a tracer.

    `seen` holds the round's feedback by field, empty before the first round; `drawn` its random arrays, in `decide` and `update`; `starts`
    where linear minimisations begin, by the place of the decision; `constants` the open symbols of the settings.
    """

    def __init__(
        self,
        tracer: Tracer,
        spec: TraceSpec,
        seen: Mapping[str, Value],
        round_: Value | None = None,
        drawn: Mapping[str, Value] | None = None,
        starts: Mapping[int, Value] | None = None,
        constants: Mapping[str, Value] | None = None,
    ) -> None:
        super().__init__(tracer, spec, round_)
        self.seen = seen
        self.drawn = drawn or {}
        self.constants = constants or {}
        self.domain = Geometry(tracer, spec.domains, Starts(tracer, starts or {}))
        self.structure = spec.structure
        self.units = Units(tracer, spec.scales, tuple(b.domain for b in spec.canonical.blocks))

    # The round and the settings.

    def centre(self) -> Point:
        """The middle of the domain."""
        why = "the middle of the domain"
        return Point(tuple(self.tracer.constant(d.centre(), "centre", why) for d in self.spec.domains))

    def setting(self, name: str, **more: Value) -> Value:
        """A setting at this round: a constant of the program, or a formula in t (and in `more`: the number m of an expert).

        Before the first round, where the state begins, it is that of round 1.
        """
        given = self.spec.settings[name]
        symbols = given.symbols
        values: dict[str, Value | float] = {**more, **{n: v for n, v in self.constants.items() if n in symbols}}
        if "T" in symbols:
            assert self.spec.horizon is not None or self.epoch is not None
            values["T"] = self.horizon
        if "t" in symbols:
            values["t"] = 1.0 if self.round is None else self.t
        why = f"{name} = {given.formula}; {given.why}"
        return self.tracer.name(name, trace_formula(self.tracer, given.formula, values, name, why))

    def word(self, name: str) -> str:
        """A setting that is one of a few words."""
        return str(self.spec.settings[name].formula)

    def count(self, name: str) -> Value | int:
        """An integer of at least one that a setting gives: known before the first round, or at the beginning of an epoch."""
        if self.epoch is None:
            return self.whole(name)
        return self.tracer.to_int(self.tracer.maximum(self.tracer.floor(self.setting(name) + 0.5), 1.0))

    def count_of(self, name: str) -> Value | float:
        """Count that a setting gives (`count`), as a float."""
        result = self.count(name)
        return float(result) if isinstance(result, int) else self.tracer.to_float(result)

    def whole(self, name: str) -> int:
        """Count that a setting gives before the first round."""
        if self.epoch is not None:
            raise InternalError(f"{name} gives a shape, and an epoch has none of its own")
        return count(self.spec.settings, name, self.spec.horizon or 1)

    def draw(self, name: str) -> Value:
        """A random array of this round."""
        return self.drawn[name]

    def drawn_point(self, name: str) -> Point:
        """The random arrays of this round that there is one of for each decision."""
        return Point(tuple(self.drawn[n] for n in self.spec.names(name)))

    def drawn_rows(self, name: str) -> Rows:
        """The random points of this round, a row each."""
        return Rows(tuple(self.drawn[n] for n in self.spec.names(name)))

    def no_gradient(self, x: Point) -> Point:
        """Zero, as a sum of gradients begins: of the shape of x, in the room that such a sum has."""
        t, low_rank_layouts = self.tracer, self.spec.low_rank_layouts or (None,) * len(x.blocks)
        zeros = (
            t.zeros(b.shape) if r is None else r.no_gradient(t, b.shape) for r, b in zip(low_rank_layouts, x.blocks)
        )
        return Point(tuple(zeros))

    def note(self, text: str) -> None:
        """A comment at the next equation."""
        self.tracer.note(text)

    # Sizes.

    @property
    def constraint_count(self) -> int:
        """Number of inequalities, counted by entries."""
        return sum(c.size for c in self.spec.canonical.inequalities)

    @property
    def equality_count(self) -> int:
        """Number of equalities that have a multiplier."""
        return len(self.spec.kept_equalities)

    # Losses and constraints at a decision.

    @property
    def full(self) -> bool:
        """True where the round reveals all streams."""
        return self.spec.feedback is Feedback.FULL

    @cached_property
    def constraints_known(self) -> bool:
        """True if the inequalities are known as functions: revealed in full, or the same in every round."""
        exprs = [c.expr for c in self.spec.canonical.inequalities]
        return self.full or not any(map(changes, exprs))

    def loss(self, x: Point) -> Value:
        """f_t(x)."""
        if not self.full:
            return self.units.of_loss(self.seen["loss"])
        return self.units.of_loss(self._shaped(self._lowering(x)(self.spec.canonical.objective), ()))

    def second_loss(self, x: Point) -> Value:
        """f_t(x) at the second point that a round is asked about."""
        return self.loss(x) if self.full else self.units.of_loss(self.seen["second_loss"])

    def gradient(self, x: Point) -> Point:
        """grad f_t(x)."""
        if not self.full:
            return self.units.of_gradient(Point(tuple(self._given("gradient"))))
        return self.units.of_gradient(self._points([derivatives(self.spec.canonical).loss], x))

    def constraints(self, x: Point) -> Value:
        """g_t(x), shape (N,), in the order of the text."""
        if not self.constraints_known:
            if "constraints" not in self.seen:
                raise fail(
                    "OCO705",
                    "the algorithm reads the constraints before the first round, and feedback shows them later",
                )
            return self.units.of_constraints(self.seen["constraints"])
        if not self.spec.canonical.inequalities:
            raise fail("OCO705", "the algorithm is for models with constraints, and this one has none")
        own = self.spec.canonical.families
        values = self._stacked(own.exprs, x)
        return self.units.of_constraints(values if own.back is None else values[own.back])

    def values(self, exprs: Sequence[Expr], x: Point) -> Value:
        """The entries of expressions in one vector, in the user's units."""
        return self._stacked(exprs, x)

    def slopes_of(self, exprs: Sequence[Expr], x: Point) -> Rows:
        """Gradients of the entries of expressions, a row each, in the user's units."""
        return self._rows(exprs, [jacobian(e, self.spec.decisions) for e in exprs], x)

    def linearized_constraints(self, x: Point, y: Point) -> Value:
        """g_t(x) + <grad g_t(x), y - x>, shape (N,): g_t(y) where all constraints are affine."""
        decisions = tuple(b.name for b in self.spec.canonical.blocks)
        if self.constraints_known and all(is_affine(e, decisions) for e in self.spec.canonical.families.exprs):
            return self.constraints(y)
        return self.constraints(x) + self.constraint_gradients(x).apply(y - x)

    def constraint_gradients(self, x: Point) -> Rows:
        """grad g_t^n(x), a row a constraint."""
        own = self.spec.canonical.families
        if not self.constraints_known:
            return self.units.of_rows(Rows(tuple(self._given("constraint_gradients"))))
        rows, back = self._rows(own.exprs, derivatives(self.spec.canonical).rows, x), own.back
        return self.units.of_rows(rows if back is None else rows.map(lambda m: m[back]))

    def constraint_combination(self, x: Point, weights: Value) -> Point:
        """sum_n weights_n grad g_t^n(x)."""
        if not self.constraints_known:
            return self.constraint_gradients(x).combine(weights)
        _, env = self._weights(self.spec.canonical.families.parts, self._of_families(weights, 1))
        return self._points(derivatives(self.spec.canonical).combination, x, env)

    def _of_families(self, weights: Value, power: int) -> Value:
        """Weights of the inequalities in the user's units, in the order of their families."""
        order, own = self.spec.canonical.families.order, self.units.of_weights(weights, power)
        return own if order is None else own[order]

    def worst_constraint(self, x: Point) -> tuple[Value, Point]:
        """max_n g_t^n(x), and a subgradient of it: the gradient of the first constraint that attains it. What is rounding counts as 0, as
        decisions often meet a constraint as an equality.
        """
        g = self.tracer.name("g", significant_entries(self.tracer, self.constraints(x)))
        first = self.tracer.argmax(g)
        chosen = self.tracer.to_float(self.tracer.iota(n=self.constraint_count) == first)
        return self.tracer.max(g), self.constraint_combination(x, chosen)

    def all_equalities(self, x: Point) -> Value:
        """h_t(x), shape (M,), in the order of the text."""
        if not self.full:
            return self.units.of_equalities(self.seen["equalities"])
        return self.units.of_equalities(self._stacked([c.expr for c in self.spec.canonical.equalities], x))

    def equalities(self, x: Point) -> Value:
        """The entries of h_t(x) that have a multiplier."""
        return self._kept(self.all_equalities(x))

    def equality_gradients(self, x: Point) -> Rows:
        """The rows of these entries. They are affine: the rows do not depend on x."""
        return Rows(tuple(self._kept(m) for m in self.all_equality_gradients(x).blocks))

    def all_equality_gradients(self, x: Point) -> Rows:
        """grad h_t^m, a row an equality, in the order of the text."""
        if not self.full:
            return self.units.of_equality_rows(Rows(tuple(self._given("equality_gradients"))))
        return self.units.of_equality_rows(self.slopes_of([c.expr for c in self.spec.canonical.equalities], x))

    def equality_combination(self, x: Point, weights: Value) -> Point:
        """sum_m weights_m grad h_t^m over these entries."""
        if not self.full:
            return self.equality_gradients(x).combine(weights)
        total = sum(c.size for c in self.spec.canonical.equalities)
        kept = np.array(self.spec.kept_equalities)
        spread = weights if len(kept) == total else self.tracer.scatter_add(weights, kept, shape=(total,))
        parts = [(c.expr, c.size) for c in self.spec.canonical.equalities]
        return self._combination(parts, x, self.units.of_equality_weights(spread))

    def _kept(self, entries: Value) -> Value:
        kept = np.array(self.spec.kept_equalities)
        return entries if len(kept) == entries.shape[0] else entries[kept]

    def curvature_of_combination(self, x: Point, weights: Value) -> Point:
        """The diagonal of the Hessian of sum_n weights_n g_t^n at x, for constraints that are separable."""
        _, env = self._weights(self.spec.canonical.families.parts, self._of_families(weights, 2))
        return self._points([derivatives(self.spec.canonical).curvature], x, env)

    def proximal_point(self, functions: EntryFunctions, y: Point, c: Point, scale: Value, weights: Value) -> Point:
        """argmin_x <c, x> + scale |x - y|^2 / 2 + sum_n weights_n g_t^n(x) over the whole space: y - (slope + pulls) / scale."""
        parts = [(e, k.size) for e, k in zip(functions.affine, self.spec.canonical.inequalities)]
        slope = self._tilted(c, parts, y, self.units.of_weights(weights, 1))
        symbols, env = self._weights(parts, self.units.of_weights(weights, 2))
        lower, result = self._lowering(y, env), list[Value]()
        word = self.tracer.word
        for b, at, tilt in zip(functions.blocks, y.blocks, slope.blocks, strict=True):
            result.append(word("proximal_center", at - word("affine_move", tilt / scale)))
            if b is None:
                continue
            shares = [vector_jacobian(e, w, (b.name.name,))[b.name.name] for w, (e, _) in zip(symbols, parts)]
            weight, a = lower(reduce(algebra.add, shares)), lower(b.slope)
            steep = a if self.units.radius == 1 else self.units.radius * a
            argument = word("argument", lower(b.argument) - steep * word("affine_move", tilt / scale))
            pull = word("pull", b.pull(self.tracer, argument, word("weight", weight * (a * a) / scale)))
            result[-1] = result[-1] - pull / (
                steep if b.never_flat else self.tracer.where(self.tracer.eq(a, 0.0), 1.0, steep)
            )
        return Point(tuple(result))

    def kinked_point(self, functions: KinkedFunctions, y: Point, c: Point, scale: Value, weights: Value) -> Point:
        """argmin_x <c, x> + scale |x - y|^2 / 2 + sum_n weights_n g_t^n(x) over the whole space, where constraints bend at kinks alone."""
        parts = [(e, k.size) for e, k in zip(functions.affine, self.spec.canonical.inequalities)]
        slope = self._tilted(c, parts, y, self.units.of_weights(weights, 1))
        _, env = self._weights(parts, self.units.of_weights(weights, 1))
        t, lower, result = self.tracer, self._lowering(y, env), list[Value]()
        for block, own, at, tilt in zip(functions.blocks, functions.jumps, y.blocks, slope.blocks, strict=True):
            places, jumps = list[Value](), list[Value]()
            for kink, jump in zip(block, own, strict=True):
                weight, a = lower(jump), lower(kink.slope)
                steep = self.units.radius * t.where(t.eq(a, 0.0), 1.0, a)
                places.append(t.word("kink", -lower(kink.argument) / steep))
                jumps.append(t.word("jump", weight * abs(a)))
                tilt = tilt + weight * t.minimum(a, 0.0)
            move = nearest_of_kinks(tilt, scale, places, jumps) if block else -tilt / scale
            result.append(at + t.word("move", move))
        return Point(tuple(result))

    def hessian_of_combination(self, x: Point, weights: Value) -> Value:
        """The Hessian of sum_n weights_n g_t^n at x, shape (d, d) over the flattened decisions."""
        _, env = self._weights(self.spec.canonical.families.parts, self._of_families(weights, 2))
        return self._matrix(derivatives(self.spec.canonical).hessian, self._lowering(x, env))

    def loss_hessian(self, x: Point) -> Value:
        """The Hessian of f_t at x, shape (d, d) over the flattened decisions."""
        return self.units.of_loss_hessian(
            self._matrix(derivatives(self.spec.canonical).loss_hessian, self._lowering(x))
        )

    def _matrix(self, slopes: Mapping[str, Mapping[str, Expr]], lower: Lowering) -> Value:
        """Second derivatives by pairs of decisions, as one matrix."""
        blocks, bands = self.spec.canonical.blocks, list[Value]()
        for b in blocks:
            row = [self._shaped(lower(slopes[b.name][o.name]), (*b.shape, *o.shape)) for o in blocks]
            row = [self.tracer.reshape(m, (math.prod(b.shape), math.prod(o.shape))) for m, o in zip(row, blocks)]
            bands.append(row[0] if len(row) == 1 else self.tracer.concat(*row, axis=1))
        return bands[0] if len(bands) == 1 else self.tracer.concat(*bands)

    # Lowering.

    def _lowering(self, x: Point, more: Mapping[str, Value] | None = None) -> Lowering:
        decided = self.units.outward(x)
        env = dict(zip(self.spec.decisions, decided.blocks, strict=True)) | dict(self.seen) | dict(more or {})
        if self.round is not None:
            env |= {"t": self.tracer.to_float(self.round), OWN_ROUND: self.tracer.to_float(self.round_of_turn)}
        return Lowering(self.tracer, env)

    def _points(self, parts: Sequence[Mapping[str, Expr]], x: Point, more: Mapping[str, Value] | None = None) -> Point:
        """The sum of points given by an expression for each decision."""
        lower = self._lowering(x, more)
        blocks = self.spec.canonical.blocks
        results = [Point(tuple(self._block(lower, k, part[b.name]) for k, b in enumerate(blocks))) for part in parts]
        return reduce(lambda a, b: a + b, results)

    def _block(self, lower: Lowering, k: int, slope: Expr) -> Block:
        """A derivative towards a decision: an array, or the list of the entries that it has."""
        shape = self.spec.canonical.blocks[k].shape
        if self.spec.low_rank_layouts and self.spec.low_rank_layouts[k] is not None:
            return sparse_gradient(self.tracer, lower, slope, shape)
        return self._shaped(lower(slope), shape)

    def _stacked(self, exprs: Sequence[Expr], x: Point) -> Value:
        """The entries of all expressions in one vector."""
        lower = self._lowering(x)
        parts = [self._vector(lower(e), known(e.shape)) for e in exprs]
        return parts[0] if len(parts) == 1 else self.tracer.concat(*parts)

    def _rows(self, exprs: Sequence[Expr], slopes: Sequence[Mapping[str, Expr]], x: Point) -> Rows:
        """The gradients of all entries of all expressions, a row each; `slopes` has their Jacobians."""
        lower = self._lowering(x)
        stacked: list[list[Value]] = [[] for _ in self.spec.canonical.blocks]
        for expr, result in zip(exprs, slopes, strict=True):
            shape = known(expr.shape)
            for rows, block in zip(stacked, self.spec.canonical.blocks):
                entries = self._shaped(lower(result[block.name]), (*shape, *block.shape))
                rows.append(self.tracer.reshape(entries, (math.prod(shape), *block.shape)))
        return Rows(tuple(rows[0] if len(rows) == 1 else self.tracer.concat(*rows) for rows in stacked))

    def _combination(self, parts: Sequence[tuple[Expr, int]], x: Point, weights: Value) -> Point:
        symbols, env = self._weights(parts, weights)
        return self._points([vector_jacobian(e, w, self.spec.decisions) for w, (e, _) in zip(symbols, parts)], x, env)

    def _tilted(self, c: Point, parts: Sequence[tuple[Expr, int]], x: Point, weights: Value) -> Point:
        """c + sum_n weights_n times the gradient of each part; c itself where no decision moves them."""
        moves = [n for e, _ in parts for n in names(e, Kind.DECISION) if n in self.spec.decisions]
        return c + self._combination(parts, x, weights) if moves else c

    def _weights(self, parts: Sequence[tuple[Expr, int]], weights: Value) -> tuple[Sequence[Name], dict[str, Value]]:
        """A name for the weights of each expression, and what it stands for."""
        symbols, env, start = weights_of([e for e, _ in parts]), dict[str, Value](), 0
        for symbol, (_, size) in zip(symbols, parts, strict=True):
            share = weights if len(parts) == 1 else weights[start : start + size]
            env[symbol.name] = self.tracer.reshape(share, known(symbol.shape))
            start += size
        return symbols, env

    def _given(self, what: str) -> list[Value]:
        blocks = self.spec.canonical.blocks
        return [self.seen[what if len(blocks) == 1 else f"{what}_{b.name}"] for b in blocks]

    def _vector(self, v: Value, shape: tuple[int, ...]) -> Value:
        return self.tracer.reshape(self._shaped(v, shape), (math.prod(shape),))

    def _shaped(self, v: Value, shape: tuple[int, ...]) -> Value:
        """A float of this shape: derivatives may be smaller where their entries do not differ."""
        value = v if v.dtype is FLOAT else self.tracer.to_float(v)
        return self.tracer.broadcast(value, shape)
