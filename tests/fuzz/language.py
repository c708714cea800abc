"""Laws of the language: texts read back as they were printed, and nothing but words comes out of a model; values and slopes are right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from fuzz.case import Case, Function, Refused, Violation, product
from fuzz.meaning import Evaluator
from fuzz.nodes import Array
from fuzz.typed import Minimize

import oco
from oco.compiler.problem.calculus import gradient
from oco.compiler.prover.terms.entry import entry
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Expr
from oco.dsl.text.formatter import format_text

SMOOTH = 1e-4
"""Slopes of both sides that differ by a smaller share belong to a function without a kink there."""


def printing(case: Case) -> None:
    """parse(print(m)) == m, and so is the text after the formatter."""
    given = case.tree.given or None
    with product():
        printed = case.model.to_oco()
    try:
        with product():
            again = oco.parse(printed, params=given)
            formatted = oco.parse(format_text(case.tree.text), params=given)
            twice = format_text(format_text(case.tree.text))
    except Refused as error:
        raise Violation("printed text refused", f"{error}\n{printed}") from None
    if again != case.model:
        raise Violation("another model after printing", printed)
    if again.to_oco() != printed:
        raise Violation("another text after printing", printed)
    if formatted != case.model:
        raise Violation("another model after formatting", format_text(case.tree.text))
    if twice != format_text(case.tree.text):
        raise Violation("formatting twice", twice)


def words_only(case: Case) -> None:
    """Checking, explaining, choosing and emitting end well or in words, with every fact asked for."""
    for key in case.facts:
        with product():
            str(case.facts[key])
    with product():
        assert case.facts.warnings is not None
        case.choice.situation.facts  # noqa: B018
        if case.rng(0).random() < 0.1 * case.effort:
            compile_source(oco.compile(case.model).source("numpy"))


def compile_source(source: str) -> None:
    """An emitted module is a program of Python."""
    import builtins

    builtins.compile(source, "emitted", "exec")


def expressions(case: Case) -> Iterator[tuple[Function, Expr]]:
    """Each function, and the compiler's expression of it."""
    theirs = {"loss": case.problem.objective}
    theirs |= {f"constraints.{c.label}": c.expr for c in case.problem.constraints}
    for f in case.functions:
        whole = theirs[f.prefix.partition("[")[0]]
        yield f, whole if not f.place else entry(whole, f.place)


def values(case: Case) -> None:
    """The canonical loss and constraints are what the independent evaluator says, shape and value."""
    shapes = {"loss": case.problem.objective.shape, **{c.label: c.shape for c in case.problem.constraints}}
    mine = {"loss": case.tree.first(Minimize).value, **case.sides}
    theirs = {"loss": case.problem.objective, **{c.label: c.expr for c in case.problem.constraints}}
    if mine.keys() != theirs.keys():
        raise Violation("other constraints", f"{sorted(mine)} became {sorted(theirs)}")
    rng, double = case.rng(1), Evaluator(case.tree, np.float64)
    for _ in range(case.tries(8)):
        env, t = {**case.decisions(rng), **case.streams(rng)}, float(rng.choice(case.rounds))
        for label, node in mine.items():
            wanted, size = case.evaluator(node, env, t), case.evaluator.largest
            rounding = np.abs(wanted - double(node, env, t))
            with product():
                found = evaluate(theirs[label], env, t)
            if np.shape(found) != tuple(shapes[label]) or np.shape(wanted) != np.shape(found):
                raise Violation("shape", f"{label}: {np.shape(found)} for {np.shape(wanted)}")
            room = 1e-12 * size + 100 * rounding + 1e-300
            if np.any(np.isfinite(wanted) & ~(np.abs(found - wanted) <= room)):
                raise Violation("value", f"{label}: {found} for {wanted} at {env}, t = {t}")


def gradients(case: Case) -> None:
    """Derivatives are those of the independent values, by central differences in extended precision where there is no kink."""
    rng, names = case.rng(2), [b.name for b in case.problem.blocks]
    widths = {b.name: np.broadcast_to(b.domain.upper - b.domain.lower, b.shape) for b in case.problem.blocks}
    for f, expr in expressions(case):
        with product():
            slopes = gradient(expr, names)
        for _ in range(case.tries(2)):
            env, t = {**case.decisions(rng), **case.streams(rng)}, float(rng.choice(case.rounds))
            env = {n: _inwards(case, n, v) if n in names else v for n, v in env.items()}
            for name in (n for n in names if widths[n].all()):
                with product():
                    found = np.broadcast_to(evaluate(slopes[name], env, t), widths[name].shape)
                direction = rng.normal(size=widths[name].shape) * widths[name]
                _slope(f, env, t, name, direction, float(np.sum(found * direction)))


def _inwards(case: Case, name: str, x: Array) -> Array:
    """A point a little towards the middle, so that steps to either side stay where the function has values."""
    domain = next(b.domain for b in case.problem.blocks if b.name == name)
    return np.asarray(x + 0.01 * (domain.inner_centre - x))


def _slope(f: Function, env: dict[str, Array], t: float, name: str, direction: Array, found: float) -> None:
    """The derivative of `f` along a direction, where it has the same slope to both sides."""
    middle, size = f(env, t), f.largest

    def slope(h: float) -> Any:
        return (f({**env, name: env[name] + np.longdouble(h) * direction}, t) - middle) / h

    for h in (1e-5, 1e-7):
        right, left = slope(h), slope(-h)
        scale = max(abs(right), abs(left), 1e-6 * size)
        if not np.isfinite([right, left]).all() or abs(right - left) > SMOOTH * scale:
            continue
        wanted = (right + left) / 2
        if not abs(found - wanted) <= abs(right - left) + 1e-7 * scale:
            raise Violation("gradient", f"{f.prefix} towards {name}: {found} for {wanted} at {env}, t = {t}")
        return
