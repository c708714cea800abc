"""The generator of random models against the language: no atom, domain, fact, statement or form of one is left out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from fuzz.attack import ATTACKS
from fuzz.generate import MAKERS
from fuzz.growth import AFFINE, PUBLIC
from fuzz.meaning import MEANING, Evaluator
from fuzz.membership import MEMBERSHIP
from fuzz.nodes import Apply, Number, Ref, walk
from fuzz.reading import tree_of
from fuzz.typed import (
    Assume,
    Constraint,
    Decision,
    Feedback,
    Index,
    Measure,
    Minimize,
    Predict,
    Set,
    State,
    Stream,
    Tree,
    nodes_of,
)
from fuzz.writer import Unlucky, Writer, drawn

import oco
from oco.compiler.problem.canonical import canonical
from oco.dsl.distributions import DISTRIBUTIONS
from oco.dsl.domains import DOMAINS
from oco.dsl.expressions import Kind
from oco.dsl.fact_keys import FUNCTION_FACTS
from oco.dsl.text.words import STATEMENT_WORDS

SEEDS = 400
"""Tried for a form of a statement at most; the rarest comes once in thirty."""


def test_every_atom_has_an_independent_meaning() -> None:
    assert {a.name for a in PUBLIC} == set(MEANING)


def test_every_domain_has_an_independent_description() -> None:
    assert set(MEMBERSHIP) == set(DOMAINS)


def test_every_fact_about_functions_is_attacked() -> None:
    assert {f.key for f in FUNCTION_FACTS} == set(ATTACKS)


def test_every_statement_has_a_maker() -> None:
    assert {"model", *MAKERS} == set(STATEMENT_WORDS)


def written(seed: int) -> Tree:
    """A model of the seed over a plain box, which takes a tenth of the time of other sets."""
    w = Writer(seed)
    for word, make in MAKERS.items():
        if word == "decision":
            x = Decision("x1", (Number(w.n),), (w.n,), Set("box", {"lo": Number(0), "hi": Number(1)}))
            problem = w.check(x)
            assert problem is not None
            w.blocks.append(problem.blocks[0])
            w.declare(x, 0.0, 1.0, AFFINE)
        else:
            make(w)
    return w.tree


def uses(which: Callable[[object], bool]) -> Callable[[Tree], bool]:
    return lambda tree: any(which(n) for s in tree.statements for top in nodes_of(s) for n in walk(top))


def has(kind: type, which: Callable[..., bool]) -> Callable[[Tree], bool]:
    return lambda tree: any(map(which, tree.of(kind)))


FORMS: dict[str, Callable[[Tree], bool]] = {
    "t": uses(lambda n: isinstance(n, Ref) and n.kind is Kind.ROUND),
    "T": uses(lambda n: isinstance(n, Ref) and n.kind is Kind.HORIZON),
    "remainder": uses(lambda n: isinstance(n, Apply) and n.atom == "mod"),
    "data of the round": lambda tree: "[t - 1]" in tree.text or "[(t - 1) % " in tree.text,
    "horizon unknown": lambda tree: tree.horizon is None,
    "context": has(Stream, lambda s: s.known),
    "index": lambda tree: "[i" in tree.text and bool(tree.of(Index)),
    "state": lambda tree: bool(tree.of(State)),
    "previous decision": uses(lambda n: isinstance(n, Ref) and n.name.startswith("prev(")),
    "prediction": lambda tree: bool(tree.of(Predict)),
    "gain": has(Minimize, lambda s: s.maximized),
    "delayed": has(Feedback, lambda s: bool(s.delay)),
    "set of values": has(Stream, lambda s: bool(s.values)),
    "integers": has(Stream, lambda s: s.integer and s.bounds is not None),
    "iid": has(Stream, lambda s: s.iid and s.mean is None),
    "iid with a mean": has(Stream, lambda s: s.mean is not None),
    "no bounds": has(Stream, lambda s: s.bounds is None and not s.values and s.distribution is None),
    "open param": lambda tree: bool(tree.given),
    "dynamic": has(Measure, lambda s: s.kind == "dynamic"),
    "gradient": has(Feedback, lambda s: s.kind == "gradient"),
    "bandit": has(Feedback, lambda s: s.kind == "bandit"),
    "bandit without constraints": lambda tree: (
        any(s.kind == "bandit" for s in tree.of(Feedback)) and not tree.of(Constraint)
    ),
    "each round": has(Constraint, lambda s: s.timing == "each round"),
    "on average": has(Constraint, lambda s: s.timing == "on average"),
    "equality": has(Constraint, lambda s: s.comparison.relation == "=="),
    "assumed bound": has(Assume, lambda s: s.value is not None),
    "assumed claim": has(Assume, lambda s: s.value is None),
    **{f"~ {d}": has(Stream, lambda s, d=d: s.distribution and s.distribution.kind == d) for d in DISTRIBUTIONS},
}


def test_every_form_is_written() -> None:
    left = dict(FORMS)
    for seed in range(SEEDS):
        try:
            tree = written(seed)
        except Unlucky:
            continue
        left = {name: seen for name, seen in left.items() if not seen(tree)}
        if not left:
            break
    assert not left, f"never written: {', '.join(left)}"


def test_texts_are_read_as_the_trees_that_they_were_written_from() -> None:
    """Sets of values, `T`, remainders and claims: the corpus is replayed by trees."""
    text = """model m
horizon T = 12
param p[4] = [1.0, 3.0, 2.0, 0.5]
decision x[2] in box(0, 3)
stream y in {-1, 1}
stream s[2] in {0, 0.5, 2}
minimize p[(t - 1) % 4] * x[0] + (y * s) @ x / T
subject to
    cap: sum(x) <= 9  each round
assume feasible.common
assume slater.margin >= 0.5
"""
    model = oco.parse(text)
    tree = tree_of(model)
    assert oco.parse(tree.text) == model
    streams = {s.name: drawn(np.random.default_rng(0), s) for s in canonical(model).streams}
    assert streams["y"] in (-1, 1) and set(streams["s"]) <= {0, 0.5, 2}
    value = Evaluator(tree)(tree.first(Minimize).value, {"x": np.array([0.7, 0.2]), **streams}, 7.0)
    assert float(value) == pytest.approx(2.0 * 0.7 + float(streams["y"] * streams["s"] @ [0.7, 0.2]) / 12, rel=1e-15)
