"""Problem of a round as one program of CVXPY whose numbers are parameters, for rounds that can only be solved one after another.

What a round has without a decision in it, an expression of streams, states, margins and the round, is one parameter of the program: it
stays disciplined in its parameters (Agrawal, Verschueren, Diamond & Boyd, A rewriting system for convex optimization problems, section 4),
so that CVXPY forms it once and a later round costs its solver alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from oco.compiler.problem.canonical import Canonical, StreamRange
from oco.compiler.problem.cvxpy_form import to_cvxpy
from oco.dsl.atoms import ATOMS, form_of, forms
from oco.dsl.dims import known
from oco.dsl.evaluate import Evaluation
from oco.dsl.expressions import Call, Expr, Index, Kind, Name, Slice, changes, names, rewrite, walk
from oco.dsl.records import dataclass

Array = np.ndarray[Any, Any]
PARAMETER = "_parameter_"
MORE = 1e-6  # of a violation, and in its unit, that a later program may add: solvers end a little outside


@dataclass(frozen=True, eq=False)
class RoundProgram:
    """Program of one round: variables of the decisions, and parameters with what their values are made of.

    strict    least loss under all constraints
    lenient   where these allow nothing: in turn, the least sum by which known constraints are broken, that of the others then, and the
              least loss with these violations
    """

    strict: Any
    lenient: tuple[Any, ...]
    violations: tuple[_Violation, ...]
    variables: Mapping[str, Any]
    parameters: tuple[tuple[Any, Evaluation], ...]

    @classmethod
    def of(cls, problem: Canonical) -> RoundProgram | None:
        """Program of a problem; None where it is not disciplined in its parameters."""
        import cvxpy as cp

        build = _Build(cp, problem)
        variables = {b.name: cp.Variable(known(b.shape), name=b.name) for b in problem.blocks}
        try:
            loss = cp.Minimize(build.form(problem.objective, variables))
            limits = [(c, build.form(c.expr, variables)) for c in problem.inequalities]
            equations = [build.form(c.expr, variables) == 0 for c in problem.equalities]
        except NotDisciplined:
            return None
        domain = [c for b in problem.blocks for c in b.domain.constraints(cp, variables[b.name])]
        strict = cp.Problem(loss, [*domain, *equations, *(form <= 0 for _, form in limits)])
        if not strict.is_dcp(dpp=True):
            return None
        violations = tuple(_Violation.of(cp, [form for c, form in limits if c.known is own]) for own in (True, False))
        within, lenient = [*domain, *equations], []
        for violation in violations:
            within += violation.constraints
            lenient.append(cp.Problem(cp.Minimize(violation.total), within))
            within = [*within, *violation.kept]
        return cls(strict, (*lenient, cp.Problem(loss, within)), violations, variables, tuple(build.parameters))

    def solved(self, *tries: Mapping[str, Array]) -> Array | None:
        """Best decision (n,) with the first numbers of the round that all constraints allow one with, or else with the last; None where the
        solver finds none.
        """
        if not any(map(self._solved_strictly, tries)) and not self._solved_leniently():
            return None
        return np.concatenate([np.ravel(v.value) for v in self.variables.values()])

    def _solved_strictly(self, data: Mapping[str, Array]) -> bool:
        for parameter, value in self.parameters:
            parameter.value = parameter.project(np.asarray(value(data), dtype=np.float64).reshape(parameter.shape))
        return _solve(self.strict)

    def _solved_leniently(self) -> bool:
        for program, violation in zip(self.lenient, self.violations):
            if not _solve(program):
                return False
            violation.keep()
        return _solve(self.lenient[-1])


@dataclass(frozen=True, eq=False)
class _Violation:
    """Violation of some constraints over zero, which a program may leave and a later one keeps."""

    pairs: tuple[tuple[Any, Any], ...]
    constraints: list[Any]
    kept: list[Any]
    total: Any

    @classmethod
    def of(cls, cp: Any, forms: list[Any]) -> _Violation:
        pairs = tuple((cp.Variable(f.shape, nonneg=True), cp.Parameter(f.shape, nonneg=True)) for f in forms)
        total = sum((cp.sum(left) for left, _ in pairs), start=cp.Constant(0))
        return cls(pairs, [f <= left for f, (left, _) in zip(forms, pairs)], [a <= b for a, b in pairs], total)

    def keep(self) -> None:
        for left, kept in self.pairs:
            kept.value = (1 + MORE) * np.maximum(left.value, 0.0) + MORE


def _solve(program: Any) -> bool:
    import cvxpy as cp

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            program.solve(solver=cp.CLARABEL)
        except (cp.error.SolverError, ValueError):
            return False
    return bool(program.status == cp.OPTIMAL)


class NotDisciplined(Exception):
    """Raised where an expression has no form in parameters."""


class _Build:
    """Parameters of a program so far."""

    def __init__(self, cp: Any, problem: Canonical) -> None:
        self.cp = cp
        self.parameters: list[tuple[Any, Evaluation]] = []
        self.data = {s.name: _signed(cp, s) for s in problem.streams}

    def form(self, expr: Expr, variables: Mapping[str, Any]) -> Any:
        """CVXPY expression over variables and parameters."""
        own: dict[str, Any] = {}
        replaced = self.in_parameters(expr, own)
        return to_cvxpy(replaced, {**variables, **own}, {})

    def in_parameters(self, expr: Expr, own: dict[str, Any]) -> Expr:
        """Expression with a parameter for each of its largest parts that change with the data and have no decision."""
        done: dict[int, Expr] = {}
        for node in walk(expr):
            if not names(node, Kind.DECISION):
                done[id(node)] = node
                continue
            if isinstance(node, Index) and any(changes(i) for i in node.items):
                raise NotDisciplined
            children = tuple(self._child(done[id(c)], own) for c in node.children)
            done[id(node)] = node.with_children(children)
        return self._child(done[id(expr)], own)

    def _child(self, node: Expr, own: dict[str, Any]) -> Expr:
        if isinstance(node, Slice) or names(node, Kind.DECISION) or not changes(node):
            return node
        name = f"{PARAMETER}{len(self.parameters)}"
        parameter = self.cp.Parameter(known(node.shape), **self.sign(node))
        self.parameters.append((parameter, Evaluation(node)))
        own[name] = parameter
        return Name(name, Kind.DECISION, shape=node.shape)

    def sign(self, node: Expr) -> dict[str, bool]:
        """Sign of data as CVXPY knows it from the ranges of the streams; none where it has no form of them."""
        if any(isinstance(n, Index) and any(changes(i) for i in n.items) for n in walk(node)):
            return {}
        calls = [n for n in walk(node) if isinstance(n, Call)]
        if any(ATOMS[n.atom].cvxpy is None or (form_of(n) is forms.REMAINDER and changes(n)) for n in calls):
            return {}
        form = to_cvxpy(rewrite(node, _as_variable), self.data, {})
        return {"nonneg": form.is_nonneg(), "nonpos": form.is_nonpos()}


def _signed(cp: Any, stream: StreamRange) -> Any:
    return cp.Parameter(
        known(stream.shape), nonneg=bool(np.all(stream.lower >= 0)), nonpos=bool(np.all(stream.upper <= 0))
    )


def _as_variable(node: Expr) -> Expr:
    return replace(node, kind=Kind.DECISION) if isinstance(node, Name) and node.kind is Kind.STREAM else node
