"""Values for the params of an existing model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from oco.dsl import build
from oco.dsl.assembly import Assembly
from oco.dsl.diagnostics import Findings
from oco.dsl.expressions import Array, Call, Expr, File, Index, Kind, Name, rewrite
from oco.dsl.model import Model
from oco.dsl.predictions import prediction
from oco.dsl.scope import Scope
from oco.dsl.statements import Distribution, DomainSpec, Param


def bind(model: Model, params: Mapping[str, Any]) -> Model:
    """Model with these values of its params, all shapes and ranges checked again.

    Raises OcoError for a value that does not fit, or whose name is no param of the model.
    """
    binder = _Binder(model, params)
    binder.run()
    return binder.assembly.finish()


class _Binder:
    """Rebuilds the parts of a model in a scope that holds the given values."""

    def __init__(self, model: Model, params: Mapping[str, Any]) -> None:
        self.model = model
        self.scope = Scope(model.folder, params)
        self.assembly = Assembly(self.scope, model.name, model.span)
        self.assembly.chosen_measure, self.assembly.chosen_feedback = model.measure, model.feedback
        self.assembly.chosen_algorithm = model.using
        self.assembly.assumptions = list(model.assumptions)

    def run(self) -> None:
        findings = Findings()
        for error in self.assembly.values_without_param([p.name for p in self.model.params]):
            findings.add(error.diagnostics)
        for param in self.model.params:
            with findings.guard():
                self._param(param)
        findings.raise_if_any()
        self._declarations()
        self._wishes()

    def _param(self, p: Param) -> None:
        if p.is_index:
            file = p.value if isinstance(p.value, File) else None
            self.assembly.index(p.name, p.labels or None, file, p.span)
            return
        value = None if p.value is None else self.expr(p.value)
        whole = p.integer and p.bounds is not None
        self.assembly.param(p.name, self.exprs(p.dims), self._bounds(p.bounds), whole, value, p.span)

    def _declarations(self) -> None:
        m, assembly = self.model, self.assembly
        rounds = None if m.horizon.rounds is None else self.expr(m.horizon.rounds)
        assembly.set_horizon(rounds, m.horizon.span)
        for d in m.decisions:
            domain = DomainSpec(d.domain.kind, self.exprs(d.domain.args), d.domain.span, rounded=d.domain.rounded)
            assembly.decision(d.name, self.exprs(d.dims), domain, d.span)
            for cut in d.domain.cuts:
                assembly.cut(d.name, self.expr(cut.left), cut.relation, self.expr(cut.right), cut.span)
        for s in m.streams:
            if s.first is not None and s.following is not None:
                assembly.state(s.name, self.exprs(s.dims), self._bounds(s.bounds), self.expr(s.first), s.span)
                continue
            mean = None if s.mean is None else self.expr(s.mean)
            distribution = None if s.distribution is None else self._distribution(s.distribution)
            assembly.stream(
                s.name,
                self.exprs(s.dims),
                self._bounds(s.bounds),
                s.integer,
                s.iid,
                mean,
                distribution,
                s.span,
                s.values,
                s.known,
            )
        for s in m.streams:
            if s.following is not None:
                assembly.follow(s.name, self.expr(s.following))
        for let in m.lets:
            assembly.let(let.name, self.expr(let.value), let.span)

    def _wishes(self) -> None:
        m, assembly = self.model, self.assembly
        if m.objective is not None:
            assembly.minimize(self.expr(m.objective if m.gain is None else m.gain), m.maximized)
        assembly.chosen_delay = None if m.delay is None else self.expr(m.delay)
        for p in m.predictions:
            assembly.predictions.append(prediction(assembly, p.stream, self.expr(p.value), p.span))
        for c in m.constraints:
            left, right = self.expr(c.left), self.expr(c.right)
            penalty = None if c.penalty is None else self.expr(c.penalty)
            assembly.constraint(c.label, left, c.relation, right, c.timing, c.span, c.span, penalty, c.percent)

    def _bounds(self, bounds: tuple[Expr, Expr] | None) -> tuple[Expr, Expr] | None:
        return None if bounds is None else (self.expr(bounds[0]), self.expr(bounds[1]))

    def _distribution(self, distribution: Distribution) -> Distribution:
        return replace(
            distribution,
            args=self.exprs(distribution.args),
            options=tuple((n, self.expr(e)) for n, e in distribution.options),
        )

    def exprs(self, exprs: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(self.expr(e) for e in exprs)

    def expr(self, expr: Expr) -> Expr:
        """Expression with the shapes that follow from the values."""
        return rewrite(expr, lambda node: self.scope.resolved(self._again(node)))

    def _again(self, node: Expr) -> Expr:
        match node:
            case Name(name=name, kind=kind) if kind not in (Kind.ROUND, Kind.HORIZON):
                return self.scope.name(name, node.span)
            case Call(atom=atom, args=args, options=options):
                return build.call(atom, *args, span=node.span, shape=None, **dict(options))
            case Index(base=base, items=items):
                return build.index(base, items, node.span)
            case Array(items=items):
                return build.array(items, node.span)
        return node
