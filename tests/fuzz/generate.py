"""Whole models at random, from a seed: valid and meaningful ones, over everything that the language can say.

`MAKERS` has a function for each word that begins a statement. What a statement declares goes into the scope as a leaf, and expressions
are grown over the leaves (`growth.py`). A new statement needs a class in `typed.py` and a maker here; a test names those that lack one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from fuzz.arguments import Rng, definite, distribution_arguments, domain_arguments, node_of, round_array, small
from fuzz.growth import AFFINE, CONCAVE, CONSTANT, CONVEX, FLAT, PUBLIC, UNKNOWN, Growth, Term, fixed, joined
from fuzz.meaning import Evaluator
from fuzz.typed import (
    Apply,
    Array,
    Assume,
    Comparison,
    Constraint,
    Decision,
    Declaration,
    Feedback,
    Horizon,
    Let,
    Literal,
    Measure,
    Minimize,
    Node,
    Number,
    Param,
    Ref,
    Set,
    Shape,
    Statement,
    Stream,
    Tree,
    Using,
)

from oco.compiler.problem.canonical import Block, Canonical, StreamRange, canonical
from oco.dsl.atoms import ATOMS
from oco.dsl.diagnostics import OcoError
from oco.dsl.distributions import DISTRIBUTIONS
from oco.dsl.domains import DOMAINS
from oco.dsl.expressions import Kind
from oco.dsl.fact_keys import CLAIMS, catalogue
from oco.dsl.intervals import interval
from oco.dsl.load import parse
from oco.dsl.settings import SETTINGS, WORD_SETTINGS

HORIZONS = (1, 5, 50, 500, 10_000, None)
FORMULAS = (
    "0.5",
    "sqrt(t)",
    "0.1 * sqrt(T)",
    "1 / (t + 1)",
    "min(0.5, 1 / sqrt(t))",
    "2 * loss.lipschitz.l2 / sqrt(T)",
)
GENEROUS = {"<=": 1e5, ">=": 1e-6}
"""Assumptions that ordinary models keep."""
ATTEMPTS = 30


class Unlucky(Exception):
    """No valid part was found after many attempts."""


class Writer:
    """A model in the making: the statements so far, the leaves that they declare, and the sets that decisions lie in."""

    def __init__(self, seed: int) -> None:
        self.seed, self.rng = seed, np.random.default_rng(seed)
        self.n, self.m = (int(k) for k in self.rng.choice((2, 3, 4, 5), 2, replace=False))
        self.tree, self.leaves, self.serial = Tree(()), list[Term](), 0
        self.blocks: list[Block] = []
        self.streams: list[StreamRange] = []
        self.growth = Growth(self.rng, (), PUBLIC[seed % len(PUBLIC)])

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def pick(self, options: Any) -> Any:
        options = list(options)
        return options[int(self.rng.integers(len(options)))]

    def name(self, letter: str) -> str:
        self.serial += 1
        return f"{letter}{self.serial}"

    def shape(self, *kinds: str) -> Shape:
        """A shape of the language; with `kinds` among "number", "vector", "matrix", "square" only."""
        n, m = self.n, self.m
        shapes = {
            "number": [(), (1,), (1, 1)],
            "vector": [(n,), (n,), (m,), (1, n), (n, 1)],
            "matrix": [(m, n), (n, m)],
            "square": [(n, n)],
        }
        return tuple(
            self.pick(shapes[self.pick(kinds or ("number", "vector", "vector", "vector", "matrix", "square"))])
        )

    def add(self, statement: Statement) -> None:
        self.tree = self.tree.and_(statement)

    def declare(self, statement: Declaration, low: Any, high: Any, curvature: Any = CONSTANT) -> None:
        self.add(statement)
        self.leaves.append(Term(statement.ref(), interval(low, high, statement.shape), curvature))

    def dims(self, shape: Shape) -> tuple[Node, ...]:
        """The shape as it is written: numbers, or params that have that value."""
        whole = {int(p.value.value): p for p in self.tree.of(Param) if isinstance(p.value, Number) and p.integer}
        return tuple(whole[k].ref() if k in whole and self.chance(0.7) else Number(k) for k in shape)

    def check(self, statement: Decision | Stream) -> Canonical | None:
        """The problem of a declaration over the params so far; None where the language refuses it, as for an empty set."""
        x = statement if isinstance(statement, Decision) else PLAIN
        wanted = (Horizon(1), *self.tree.of(Param), *([] if statement is x else [x]), statement)
        declared = Tree((*wanted, Minimize(Apply("sum", (x.ref(),)))))
        try:
            return canonical(parse(declared.text, params=declared.given or None))
        except OcoError as error:
            if error.code in ("OCO999", "OCO133"):
                raise
            return None


PLAIN = Decision("x0", (), (), Set("box", {"lo": Number(0), "hi": Number(1)}))


# One maker for each statement word. Each adds as many statements of its kind as it likes.


def horizon(w: Writer) -> None:
    w.add(Horizon(w.pick(HORIZONS)))


def param(w: Writer) -> None:
    """Numbers that shapes are made of; data literal, generated and left open."""
    for length in (w.n, w.m):
        if w.chance(0.25):
            number = Param(w.name("n"), (), (), Number(length), integer=True)
            w.add(number)
    for _ in range(int(w.rng.integers(0, 4))):
        one = _param(w, w.shape())
        if one is not None:
            value = Evaluator(w.tree.and_(one)).params[one.name]
            w.declare(one, value, value)


def _param(w: Writer, shape: Shape) -> Param | None:
    name, dims = w.name("p"), w.dims(shape)
    kind = w.pick(("literal", "literal", "open", "one", "formula", "bounded", "whole", "definite"))
    drawn = round_array(w.rng, shape)
    match kind:
        case "open":
            return Param(name, dims, shape, None, given=drawn)
        case "one":
            return Param(name, dims, shape, Number(small(w.rng)))
        case "bounded":
            ends = Number(float(drawn.min())), Number(float(drawn.max()))
            return Param(name, dims, shape, node_of(drawn), ends)
        case "whole":
            numbers = w.rng.integers(0, 2, shape)
            bounds = (Number(0), Number(1)) if w.chance(0.5) else None
            return Param(name, dims, shape, node_of(numbers), bounds, integer=True)
        case "definite" if len(shape) == 2 and shape[0] == shape[1]:
            return Param(name, dims, shape, Literal(definite(w.rng, shape[0])))
        case "formula":
            formula = _generated(w, shape)
            return None if formula is None else Param(name, dims, shape, formula)
    return Param(name, dims, shape, node_of(drawn))


def _generated(w: Writer, shape: Shape) -> Node | None:
    """Fixed data by a formula of the shape: ones, repeat, ranges, products of them."""
    growth = Growth(w.rng, [fixed(Number(2)), *(t for t in w.leaves if not t.varies)], w.pick(_CONSTRUCTORS))
    lengths = [Number(k) for k in shape]
    if shape:
        growth.pool += [fixed_call("ones", *lengths), fixed_call("zeros", *lengths)]
    if len(shape) == 1:
        growth.pool.append(fixed_call("range", Number(1), Number(shape[0])))
        growth.pool.append(fixed_call("repeat", Number(0.5), Number(shape[0])))
    growth.grow(6)
    found = growth.choose(lambda t: t.shape == shape and not isinstance(t.node, Ref))
    return None if found is None else found.node


_CONSTRUCTORS = [
    ATOMS[name] for name in ATOMS if ATOMS[name].shape.__name__ in ("filled", "identity", "repeated", "whole_range")
]


def fixed_call(atom: str, *args: Node) -> Term:
    found = joined(ATOMS[atom], [fixed(a) for a in args], ())
    assert found is not None
    return found


def decision(w: Writer) -> None:
    """One to three decisions, the first in the domain whose turn it is, some with cuts."""
    kinds = list(DOMAINS)
    first = kinds[w.seed % len(kinds)]
    for k in range(int(w.pick((1, 1, 1, 2, 3)))):
        for _ in range(ATTEMPTS):
            kind = first if k == 0 else w.pick(kinds)
            found = _decision(w, kind)
            if found is not None:
                w.blocks.append(found[1].blocks[0])
                domain = w.blocks[-1].domain
                w.declare(found[0], domain.lower, domain.upper, AFFINE)
                break
        else:
            raise Unlucky(f"no arguments for the domain {first}")


def _decision(w: Writer, kind: str) -> tuple[Decision, Canonical] | None:
    name, shape = w.name("x"), w.shape()
    drawn = domain_arguments(w.rng, kind, shape)
    if drawn is None:
        return None
    plain = Decision(name, w.dims(shape), shape, drawn)
    if w.check(plain) is None:
        return None
    arguments = {n: _as_param(w, a) for n, a in drawn.args.items()}
    plain = Decision(name, plain.dims, shape, Set(kind, arguments, drawn.keyword))
    problem = w.check(plain)
    assert problem is not None
    if w.chance(0.35):
        cuts = tuple(_cuts(w, plain, problem))
        narrowed = Decision(name, plain.dims, shape, Set(kind, arguments, drawn.keyword, cuts))
        cut_problem = w.check(narrowed)
        if cut_problem is not None:
            return narrowed, cut_problem
    return plain, problem


def _as_param(w: Writer, argument: Node) -> Node:
    """The argument, or a param that has its value."""
    if not w.chance(0.3):
        return argument
    shape = argument.shape
    whole = bool(argument.expr.integer)
    one = Param(w.name("p"), w.dims(shape), shape, argument, integer=whole)
    w.add(one)
    return one.ref()


def _cuts(w: Writer, plain: Decision, problem: Canonical) -> Iterator[Comparison]:
    """Affine comparisons that a point of the set satisfies, mostly with something to spare."""
    domain = problem.blocks[0].domain
    x = domain.sample(w.rng, 1)[0]
    leaf = Term(plain.ref(), interval(domain.lower, domain.upper, plain.shape), AFFINE)
    growth = Growth(w.rng, [leaf, *(t for t in w.leaves if not t.varies)])
    growth.grow(5)
    value = Evaluator(w.tree.and_(plain))
    for _ in range(int(w.pick((1, 1, 2)))):
        term = growth.choose(lambda t: t.curvature is AFFINE)
        if term is None:
            return
        here = np.asarray(value(term.node, {plain.name: x}), dtype=float)
        relation = w.pick(("<=", "<=", ">=", "=="))
        spare = {"<=": 1.0, ">=": -1.0, "==": 0.0}[relation] * w.pick((0.1, 0.3, 1.0))
        limit = float(np.max(here) if relation != ">=" else np.min(here)) + spare
        if relation == "==" and here.size > 1:
            continue
        yield Comparison(term.node, relation, Number(limit if relation == "==" else round(limit, 3)))


def stream(w: Writer) -> None:
    """Two to four streams, the first of the distribution whose turn it is."""
    kinds = ["adversary", "adversary", "whole", "set", "iid", "mean", "known", "known", "free"]
    for k in range(int(w.rng.integers(1, 5))):
        for _ in range(ATTEMPTS):
            known = list(DISTRIBUTIONS)[w.seed % len(DISTRIBUTIONS)] if k == 0 and w.chance(0.7) else ""
            made = _stream(w, "known" if known else w.pick(kinds), known or w.pick(DISTRIBUTIONS))
            problem = None if made is None else w.check(made)
            if made is not None and problem is not None:
                seen = problem.streams[0]
                w.streams.append(seen)
                w.declare(made, seen.lower, seen.upper)
                break


def context(w: Writer) -> None:
    """In some models the last stream is known before the decision."""
    if w.seed % 5 == 3 and (streams := w.tree.of(Stream)):
        known = replace(streams[-1], known=True)
        w.tree = replace(w.tree, statements=tuple(known if s is streams[-1] else s for s in w.tree.statements))


def _stream(w: Writer, kind: str, law: str) -> Stream | None:
    name, shape = w.name(w.pick("cs")), w.shape()
    dims = w.dims(shape)
    low = float(w.pick((-1, -1, 0, 0.5, -3, 0.1)))
    ends: tuple[Node, Node] = (Number(low), Number(low + float(w.pick((0.5, 1, 2, 4)))))
    if w.chance(0.15) and shape:
        base = round_array(w.rng, shape)
        ends = Literal(base), Literal(base + np.abs(round_array(w.rng, shape)) + 0.1)
    match kind:
        case "whole":
            whole = Number(int(w.pick((0, 0, -1)))), Number(int(w.pick((1, w.n - 1, w.m - 1))))
            return Stream(name, dims, shape, whole, integer=True)
        case "set":
            values = w.pick(((-1, 1), (0, 0.5, 2), (0, 1, 3), (-0.25, 0.75), (1, 2, w.n + 0.5)))
            whole_set = all(isinstance(v, int) for v in values)
            return Stream(name, dims, shape, None, integer=whole_set, iid=w.chance(0.3), values=values)
        case "iid":
            return Stream(name, dims, shape, ends, iid=True)
        case "mean":
            middle = [np.mean([np.asarray(e.value) for e in ends if isinstance(e, Number | Literal)])]
            inside = Number(float(middle[0])) if isinstance(ends[0], Number) else ends[0]
            return Stream(name, dims, shape, ends, iid=True, mean=inside)
        case "known":
            distribution = distribution_arguments(w.rng, law, shape)
            if distribution is None:
                return None
            whole_values = DISTRIBUTIONS[law].family.discrete
            if whole_values and w.chance(0.4):
                whole = Number(0), Number(int(w.pick((1, w.n - 1, w.m - 1))))
                return Stream(name, dims, shape, whole, integer=True, distribution=distribution)
            wide = Number(float(w.pick((-1, 0, 0.5)))), Number(float(w.pick((1, 2, 3, 20))))
            return Stream(name, dims, shape, wide if w.chance(0.6) else None, distribution=distribution)
        case "free":
            return Stream(name, dims, shape, None if w.chance(0.3) else ends)
    return Stream(name, dims, shape, ends)


def let(w: Writer) -> None:
    """The pool that loss and constraints are made of, with names for some of it."""
    rounds = float(w.tree.horizon or 1000)
    t = Term(Ref("t", Kind.ROUND, (), True), interval(1.0, rounds, ()), CONSTANT)
    T = Term(Ref("T", Kind.HORIZON, (), True), interval(rounds, rounds, ()), CONSTANT)
    w.growth = Growth(w.rng, w.leaves, w.growth.focus, bent=0.3 if w.chance(0.1) else 0.0)
    if w.chance(0.2):
        w.growth.pool.append(t)
    if w.chance(0.2) and (found := w.growth.of_the_round(t)) is not None:
        w.growth.pool.append(found)
    if w.tree.horizon and w.chance(0.3):
        w.growth.pool += [T, _both("div", fixed(Number(w.pick((1, 5, 0.5)))), T)]
    w.growth.grow(10)
    for _ in range(int(w.pick((0, 0, 1, 2)))):
        found = w.growth.choose(lambda t: not isinstance(t.node, Ref))
        if found is not None:
            named = Let(w.name("e"), found.node)
            w.add(named)
            w.growth.pool.append(Term(named.ref(), found.range, found.curvature))
    w.growth.grow(12)


def minimize(w: Writer) -> None:
    """A convex number, or in a model that may bend any number: one to three of them, with positive factors."""
    terms = [_number(w, convex=True) for _ in range(int(w.pick((1, 1, 2, 2, 3))))]
    total = terms[0]
    for other in terms[1:]:
        total = _both("add", total, other)
    w.add(Minimize(total.node))


def _both(atom: str, left: Term, right: Term) -> Term:
    found = joined(ATOMS[atom], [left, right], ())
    assert found is not None
    return found


REDUCTIONS = ("sum", "mean", "max", "norm1", "norm2", "norm_inf", "sum_squares", "log_sum_exp")


def _number(w: Writer, convex: bool) -> Term:
    """A number that depends on a decision, of known curvature where the model does not bend."""

    def fits(term: Term) -> bool:
        return term.varies and (term.curvature is not UNKNOWN or w.growth.bent > 0)

    for _ in range(ATTEMPTS):
        found = w.growth.choose(fits)
        if found is None:
            w.growth.grow(3)
            continue
        found = w.growth.convex(found) if convex else found
        if found.shape:
            reduced = w.growth.over(ATOMS[w.pick(REDUCTIONS)], [found])
            found = reduced if reduced is not None and fits(reduced) else None
        if found is None or (convex and found.curvature is CONCAVE):
            continue
        if w.chance(0.4):
            weighted = w.growth.over(ATOMS["mul"], [fixed(Number(w.pick((0.5, 2, 0.1, 3)))), found])
            found = weighted or found
        return found
    raise Unlucky("no convex number")


TIMINGS = ("each round", "on average", "")


def subject(w: Writer) -> None:
    """None to three constraints that a decision keeps, by a margin mostly, for most values of the streams."""
    at = {b.name: b.domain.sample(w.rng, 1)[0] for b in w.blocks}
    for k in range(int(w.pick((0, 1, 1, 2, 2, 3)))):
        found = _constraint(w, f"g{k}", at)
        if found is not None:
            w.add(found)


def _constraint(w: Writer, label: str, at: Mapping[str, Array]) -> Constraint | None:
    equal = w.chance(0.15)

    def fits(term: Term) -> bool:
        good = FLAT if equal else (*FLAT, CONVEX, CONCAVE)
        return term.varies and (term.curvature in good or (w.growth.bent > 0 and not equal))

    term = w.growth.choose(fits)
    if term is None:
        return None
    values = _values_at(w, term.node, at)
    if not np.isfinite(values).all():
        return None
    timing = w.pick(TIMINGS)
    if equal:
        return Constraint(label, Comparison(term.node, "==", Number(round(float(values.mean()), 3))), timing)
    up = term.curvature is not CONCAVE
    spare = float(w.pick((0.1, 0.5, 1.0, 1.0, 0.0, -0.2)))
    limit = Number(round(float(values.max()) + spare if up else float(values.min()) - spare, 3))
    left, right = (term.node, _level(w, limit)) if w.chance(0.8) else (limit, term.node)
    relation = "<=" if up == (left is term.node) else ">="
    return Constraint(label, Comparison(left, relation, right), timing)


def _level(w: Writer, limit: Number) -> Node:
    """The limit, or with a small term of fixed data or streams beside it."""
    small_terms = [t for t in w.leaves if not t.varies and t.shape == () and np.abs(t.range.hi) <= 10]
    if not small_terms or w.chance(0.7):
        return limit
    extra = Apply("mul", (Number(0.1), w.pick(small_terms).node))
    return Apply("add", (limit, extra))


def _values_at(w: Writer, node: Node, at: Mapping[str, Array]) -> Array:
    """The values of an expression at these decisions for a few values of the streams."""
    value, found = Evaluator(w.tree), []
    for t in (1.0, float(w.tree.horizon or 1000)):
        for _ in range(6):
            streams = {s.name: drawn(w.rng, s) for s in w.streams}
            found.append(np.asarray(value(node, {**at, **streams}, t), dtype=float))
    return np.stack(found)


def drawn(rng: Rng, s: StreamRange) -> Array:
    """A value that a stream may have."""
    if s.stream.values:
        values = np.array(s.stream.values)[rng.integers(len(s.stream.values), size=s.shape)]
        return np.asarray(values, dtype=np.int64 if s.integer else float)
    return stream_value(rng, s.lower, s.upper, s.shape, s.integer)


def stream_value(rng: Rng, lower: Any, upper: Any, shape: Shape, integer: bool) -> Array:
    """A value within bounds: ends, one end for all entries, or anything between; unbounded ends are moderate."""
    lo, hi = np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)
    lo = np.where(np.isfinite(lo), lo, np.where(np.isfinite(hi), hi, 0) - 10)
    hi = np.where(np.isfinite(hi), hi, lo + 20)
    mode = rng.random()
    share = rng.random(shape) if mode < 0.4 else rng.integers(0, 2, shape) if mode < 0.8 else rng.integers(0, 2)
    value = np.broadcast_to(lo + share * (hi - lo), shape)
    return np.round(value).astype(np.int64) if integer else np.array(np.clip(value, lo, hi))


def measure(w: Writer) -> None:
    if w.chance(0.5):
        w.add(Measure(w.pick(("static", "dynamic"))))


def feedback(w: Writer) -> None:
    if w.chance(0.3 if w.tree.of(Constraint) else 0.6):
        w.add(Feedback(w.pick(("full", "gradient", "bandit"))))


def assume(w: Writer) -> None:
    if not w.chance(0.15):
        return
    labels = tuple(c.label for c in w.tree.of(Constraint) if c.comparison.relation != "==")
    keys = [k for k in catalogue(labels).values() if k.relation]
    for _ in range(int(w.pick((1, 2)))):
        key = w.pick(keys)
        value = -GENEROUS["<="] if key.key.endswith(".lower") else GENEROUS[key.relation]
        value = 0.5 if key.key in ("V_x", "V_g") else value
        if all(a.key != key.key for a in w.tree.of(Assume)):
            w.add(Assume(key.key, key.relation, Number(value)))
    if w.chance(0.5):
        w.add(Assume(w.pick(CLAIMS[1:])))


def using(w: Writer) -> None:
    if not w.chance(0.15):
        return
    name = list(SETTINGS)[w.seed // 3 % len(SETTINGS)]
    settings = {s: w.pick(WORD_SETTINGS.get(s, FORMULAS)) for s in SETTINGS[name] if w.chance(0.3)}
    w.add(Using(name if w.chance(0.9) or not settings else "", settings))


MAKERS: Mapping[str, Callable[[Writer], None]] = {
    "horizon": horizon,
    "param": param,
    "decision": decision,
    "stream": stream,
    "context": context,
    "let": let,
    "minimize": minimize,
    "subject": subject,
    "measure": measure,
    "feedback": feedback,
    "assume": assume,
    "using": using,
}
"""In the order of the text: declarations, the pool of expressions, what is wanted."""


def generated(seed: int) -> Tree:
    """The model of a seed."""
    for attempt in range(ATTEMPTS):
        writer = Writer(seed if attempt == 0 else seed + 10_000_019 * attempt)
        writer.seed = seed
        try:
            for make in MAKERS.values():
                make(writer)
        except Unlucky:
            continue
        return writer.tree
    raise Unlucky(f"no model for seed {seed}")
