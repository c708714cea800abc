"""Models of the language as trees: what the corpus keeps as text takes part in every law."""

from __future__ import annotations

from typing import Any

import numpy as np
from fuzz import typed
from fuzz.nodes import Apply, Array, At, Literal, Node, Number, Part, Ref, Stack
from fuzz.typed import Comparison, Statement, Tree

from oco.dsl import expressions as ast
from oco.dsl.distributions import DISTRIBUTIONS
from oco.dsl.domains import DOMAINS
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Kind
from oco.dsl.fact_keys import is_claim
from oco.dsl.model import Model


class Reader:
    """Nodes for the expressions of one model; names have the shapes that the values of params give."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.params = {p.name: np.asarray(p.data) for p in model.params}
        self.refs: dict[str, Ref] = {}

    def shape(self, dims: tuple[Any, ...]) -> tuple[int, ...]:
        return tuple(int(evaluate(d, self.params)) for d in dims)

    def node(self, expr: Any) -> Node:
        match expr:
            case ast.Constant(value=data):
                return Literal(data.array.copy()) if data.array.ndim else Number(data.array.item())
            case ast.Name(name=name, kind=kind):
                return self.refs.get(name) or Ref(name, kind, (), expr.integer)
            case ast.Call(atom=atom, args=args, options=options):
                return Apply(atom, tuple(map(self.node, args)), tuple((k, int(v)) for k, v in options))
            case ast.Array(items=items):
                return Stack(tuple(map(self.node, items)))
            case ast.Index(base=base, items=items):
                return At(self.node(base), tuple(map(self._item, items)))
        raise ValueError(f"no node for a {type(expr).__name__}")

    def _item(self, item: Any) -> Node | Part:
        if not isinstance(item, ast.Slice):
            return self.node(item)
        ends = [None if e is None else int(evaluate(e, self.params)) for e in (item.start, item.stop)]
        return Part(ends[0], ends[1])

    def pair(self, ends: Any) -> tuple[Node, Node] | None:
        return None if ends is None else (self.node(ends[0]), self.node(ends[1]))

    def comparison(self, c: Any) -> Comparison:
        return Comparison(self.node(c.left), str(c.relation), self.node(c.right))

    # Statements.

    def declared(self, statement: Any) -> Any:
        self.refs[statement.name] = statement.ref()
        return statement

    def param(self, p: Any) -> Statement:
        value = None if p.value is None else self.node(p.value)
        dims, shape = tuple(map(self.node, p.dims)), self.shape(p.dims)
        given: Array | None = p.data if p.value is None else None
        if p.labels:
            return self.declared(typed.Index(p.name, tuple(p.labels)))
        return self.declared(typed.Param(p.name, dims, shape, value, self.pair(p.bounds), p.integer, given))

    def decision(self, d: Any) -> Statement:
        args = dict(zip(DOMAINS[d.domain.kind].parameters, map(self.node, d.domain.args)))
        plain = typed.Decision(
            d.name, tuple(map(self.node, d.dims)), self.shape(d.dims), typed.Set(d.domain.kind, args)
        )
        self.declared(plain)
        cuts = tuple(self.comparison(c) for c in d.domain.cuts)
        return typed.Decision(d.name, plain.dims, plain.of, typed.Set(d.domain.kind, args, False, cuts))

    def stream(self, s: Any) -> Statement:
        if s.following is not None:
            return self._state(s)
        law = None
        if s.distribution is not None:
            options = {k: self.node(v) for k, v in s.distribution.options}
            assert set(options) <= set(DISTRIBUTIONS[s.distribution.kind].keywords)
            law = typed.Distribution(s.distribution.kind, tuple(map(self.node, s.distribution.args)), options)
        mean = None if s.mean is None else self.node(s.mean)
        dims = tuple(map(self.node, s.dims))
        shape, bounds = self.shape(s.dims), self.pair(s.bounds)
        if s.values:
            bounds = None
        return self.declared(typed.Stream(s.name, dims, shape, bounds, s.integer, s.iid, mean, law, s.values, s.known))

    def _state(self, s: Any) -> Statement:
        dims, shape = tuple(map(self.node, s.dims)), self.shape(s.dims)
        self.refs[s.name] = Ref(s.name, Kind.STREAM, shape)
        bounds = self.pair(s.bounds)
        assert bounds is not None
        return typed.State(s.name, dims, shape, self.node(s.following), bounds, self.node(s.first))


def tree_of(model: Model) -> Tree:
    """The statements of a model whose params all have values."""
    r, rounds = Reader(model), model.horizon.rounds
    found: list[Statement] = [*map(r.param, model.params)]
    horizon = None if rounds is None else int(evaluate(rounds, r.params))
    found.append(typed.Horizon(horizon))
    found += [r.decision(d) for d in model.decisions] + [r.stream(s) for s in model.streams]
    for let in model.lets:
        found.append(r.declared(typed.Let(let.name, r.node(let.value))))
    assert model.objective is not None
    found += [typed.Predict(r.refs[p.stream], r.node(p.value)) for p in model.predictions]
    found.append(typed.Minimize(r.node(model.objective), model.gain is not None))
    for c in model.constraints:
        sides = Comparison(r.node(c.left), str(c.relation), r.node(c.right))
        found.append(typed.Constraint(c.label, sides, str(c.timing)))
    delay = None if model.delay is None else int(evaluate(model.delay, r.params))
    found += [typed.Measure(str(model.measure)), typed.Feedback(str(model.feedback), delay)]
    for a in model.assumptions:
        found.append(typed.Assume(*((a.key,) if is_claim(a.key) else (a.key, str(a.relation), r.node(a.value)))))
    if model.using is not None:
        found.append(typed.Using(model.using.algorithm or "", dict(model.using.settings)))
    return Tree(tuple(found), model.name)
