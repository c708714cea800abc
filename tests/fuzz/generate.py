"""Whole models at random, from a seed: valid and meaningful ones, over everything that the language can say.

`MAKERS` has a function for each word that begins a statement. What a statement declares goes into the scope as a leaf, and expressions
are grown over the leaves (`growth.py`). A new statement needs a class in `typed.py` and a maker here; a test names those that lack one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np
from fuzz.arguments import definite, distribution_arguments, domain_arguments, node_of, round_array, small
from fuzz.growth import AFFINE, CONSTANT, Growth, Term, fixed, joined
from fuzz.meaning import Evaluator
from fuzz.nodes import Apply, Literal, Node, Number, Ref, Shape
from fuzz.objective import minimize, subject
from fuzz.typed import (
    Assume,
    Comparison,
    Constraint,
    Decision,
    Feedback,
    Horizon,
    Index,
    Let,
    Measure,
    Minimize,
    Param,
    Predict,
    Set,
    State,
    Stream,
    Tree,
    Using,
)
from fuzz.writer import ATTEMPTS, Unlucky, Writer, both

from oco.compiler.problem.canonical import Canonical
from oco.dsl.atoms import ATOMS
from oco.dsl.distributions import DISTRIBUTIONS
from oco.dsl.domains import DOMAINS
from oco.dsl.expressions import Kind
from oco.dsl.fact_keys import CLAIMS, catalogue
from oco.dsl.intervals import interval
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


# One maker for each statement word. Each adds as many statements of its kind as it likes.


def horizon(w: Writer) -> None:
    w.add(Horizon(w.pick(HORIZONS)))


def index(w: Writer) -> None:
    """In some models names for an axis."""
    if w.seed % 8 == 5:
        w.add(Index(w.name("i"), tuple(f"e{k}" for k in range(w.n))))


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


def state(w: Writer) -> None:
    """In some models a round leaves a number to the next: half of what there was, and a decision."""
    if w.seed % 9 == 4:
        x, name = w.tree.of(Decision)[0].ref(), w.name("s")
        own = Ref(name, Kind.STREAM, ())
        total = Apply("sum", (x,)) if x.of else x
        following = Apply("add", (Apply("mul", (Number(0.5), own)), total))
        one = State(name, (), (), following, (Number(-4), Number(4)), Number(1))
        w.declare(one, -4.0, 4.0)


def predict(w: Writer) -> None:
    """In some models a stream is predicted from the rounds before."""
    streams = [s for s in w.tree.of(Stream) if not s.known]
    if w.seed % 7 == 3 and streams:
        own = streams[0].ref()
        form = ("last({})", "mean({}, 3)", "ewma({}, 0.2)", "season({}, 4)")[w.seed // 7 % 4]
        w.add(Predict(own, Ref(form.format(own.name), Kind.STREAM, own.of)))


def maximize(w: Writer) -> None:
    """In some models the loss is written as a gain."""
    if w.seed % 5 == 1:
        as_gain = [replace(s, maximized=True) if isinstance(s, Minimize) else s for s in w.tree.statements]
        w.tree = replace(w.tree, statements=tuple(as_gain))


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
        w.growth.pool += [T, both("div", fixed(Number(w.pick((1, 5, 0.5)))), T)]
    w.growth.grow(10)
    for _ in range(int(w.pick((0, 0, 1, 2)))):
        found = w.growth.choose(lambda t: not isinstance(t.node, Ref))
        if found is not None:
            named = Let(w.name("e"), found.node)
            w.add(named)
            w.growth.pool.append(Term(named.ref(), found.range, found.curvature))
    w.growth.grow(12)


def measure(w: Writer) -> None:
    if w.chance(0.5):
        w.add(Measure(w.pick(("static", "dynamic"))))


def feedback(w: Writer) -> None:
    if w.chance(0.3 if w.tree.of(Constraint) else 0.6):
        w.add(Feedback(w.pick(("full", "gradient", "two_point", "bandit"))))
    if w.seed % 10 == 7 and not w.tree.of(State):
        own = w.tree.first(Feedback) or Feedback("full")
        rest = tuple(s for s in w.tree.statements if not isinstance(s, Feedback))
        w.tree = replace(w.tree, statements=(*rest, replace(own, delay=w.seed // 10 % 4)))


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
    "index": index,
    "param": param,
    "decision": decision,
    "stream": stream,
    "context": context,
    "state": state,
    "predict": predict,
    "let": let,
    "minimize": minimize,
    "maximize": maximize,
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
