"""Facts on the structure of functions (linear, affine, quadratic, separable, a gather) and on the cost of oracles."""

from __future__ import annotations

from collections.abc import Iterator

from oco.compiler.problem.calculus import gradient
from oco.compiler.problem.structure import is_separable
from oco.compiler.prover.context import ProofContext
from oco.compiler.prover.curvature.composition import FLAT_KINDS
from oco.compiler.prover.fact import Fact
from oco.compiler.prover.phrasing import plural
from oco.compiler.prover.ranges.refine import fixed_slopes, without_decisions
from oco.compiler.prover.step_cost import step_cost
from oco.compiler.prover.suprema.separable import Separable
from oco.compiler.prover.terms.leaves import entrywise
from oco.compiler.prover.types import ProofRule, Status, Step
from oco.dsl.dims import known
from oco.dsl.expressions import Expr, Index, Name, changes, walk


def structure_fact(setting: ProofContext, expr: Expr, prefix: str, words: str) -> Fact:
    """`PREFIX.structure`: linear, affine, quadratic, separable or general, with what is gathered by streams."""
    kind = _kind(setting, expr)
    gathered = sum(_size(n) for n in walk(expr) if isinstance(n, Index) and _by_stream(setting, n))
    value = f"{kind}, of {plural(gathered, 'entry')} that streams pick" if gathered else kind
    return Fact(
        f"{prefix}.structure",
        value,
        Status.PROVED,
        Step(ProofRule.STRUCTURE, f"{words} is {_WORDS[kind]}", value, (), expr.span, expr),
    )


_WORDS = {
    "linear": "linear in the decision",
    "affine": "affine in the decision",
    "quadratic": "quadratic in the decision",
    "separable": "a sum of functions of single entries of the decision",
    "general": "of no special form",
}


def _kind(setting: ProofContext, expr: Expr) -> str:
    if setting.composition(expr) in FLAT_KINDS:
        if expr.shape != () or fixed_slopes(setting, expr) is None:  # of many entries one linear form is not looked for
            return "affine"
        rest = setting.ranges(setting.simplify(without_decisions(expr)))
        return "linear" if rest.least == 0 == rest.greatest else "affine"
    if expr.shape != ():
        return "separable" if is_separable(expr, tuple(setting.decisions)) else "general"
    slopes = gradient(expr, list(setting.decisions)).values() if setting.hessians.smooth(expr) else ()
    if slopes and all(setting.composition(setting.simplify(g)) in FLAT_KINDS for g in slopes):
        return "quadratic"
    return "separable" if _is_separable(setting, expr) else "general"


def _is_separable(setting: ProofContext, expr: Expr) -> bool:
    """True if every term is entrywise in decisions of its own shape."""
    for body in Separable(setting).groups(expr):
        split = entrywise(setting.simplify(body), lambda n: not setting.depends(n) or isinstance(n, Name))
        moving = [leaf for leaf in split.leaves.values() if setting.depends(leaf)]
        if not all(isinstance(leaf, Name) and leaf.shape == split.shape for leaf in moving):
            return False
    return True


def _by_stream(setting: ProofContext, node: Index) -> bool:
    return setting.depends(node.base) and any(map(changes, node.items))


def _size(node: Index) -> int:
    size = 1
    for d in known(node.shape):
        size *= d
    return size


def oracle_facts(setting: ProofContext) -> Iterator[Fact]:
    """Cost of a projection and a linear minimisation on each decision's domain,
    n being its number of entries; and of a penalized step."""
    for key, cost in (("projection", "projection_cost"), ("linear_minimisation", "lmo_cost")):
        message = [f"{getattr(b.domain, cost)} on {b.domain}" for b in setting.canonical.blocks]
        yield _cost(key, " and ".join(message))
    if setting.canonical.inequalities:
        yield _cost("penalized_step", step_cost(setting.canonical).words)


def _cost(operation: str, words: str) -> Fact:
    step = Step(ProofRule.ORACLE, f"a {operation.replace('_', ' ')} costs {words}", words)
    return Fact(f"domain.{operation}", words, Status.PROVED, step)
