"""Reason why a problem has no exact penalized step, if so (see `penalty`)."""

from __future__ import annotations

from functools import lru_cache

from oco.compiler.domains.base import MAX_DENSE_ORDER
from oco.compiler.problem.canonical import Inequality
from oco.compiler.problem.structure import Structure, is_affine, separable_over_box
from oco.compiler.prover.epigraph import NoEpigraph, epigraph, has_kinks, kinks_hinder
from oco.compiler.prover.step_cost import step_cost
from oco.compiler.proximal.known_point import known_rows
from oco.compiler.theory.theorems import Objection, Situation
from oco.compiler.theory.ways_out import way_to_bound
from oco.dsl.atoms import ATOMS, form_of, forms
from oco.dsl.expressions import Call, Kind, names, walk

MANY_PIECES = 256
"""Pieces of kinks up to which a step with a multiplier for each is chosen unasked: it takes about 10 ms."""


@lru_cache(maxsize=8)
def step_rank(s: Situation) -> int:
    """The rank of its cost, worked out once for all algorithms that take such a step."""
    return step_cost(s.canonical).rank


def ask_for_it(fix: str) -> str:
    """Ways out of an objection that is about time alone."""
    return f"{fix}, or ask for the algorithm by its name"


@lru_cache(maxsize=8)
def solver_objection(s: Situation) -> Objection | None:
    """Why argmin <c, x> + alpha |x - y|^2 + sum_n Q_n [g_n(x)]_+ over the domain has no exact solver here, if so."""
    structure, label = s.canonical.structure
    for d in s.domains:
        for operation in ("project", "project_jacobian"):
            if why := d.expensive.get(operation):
                message = f"its step needs a projection onto {d}: {why}"
                return Objection(
                    message,
                    ask_for_it("decide in a set that has one, such as a box, a ball or a simplex"),
                    slow=True,
                )
    if structure is Structure.AFFINE or separable_over_box(structure, s.domains):
        return None
    kinked, why, pieces = frozenset[str](), "", 0
    if kinks_hinder(s.canonical):
        try:
            above = epigraph(s.canonical)
            kinked = frozenset(c.label for c in s.canonical.inequalities if has_kinks(c))
            structure, label = above.canonical.structure
            pieces = len(above.owner)
        except NoEpigraph as error:
            why = error.why
    for c in s.canonical.inequalities:
        if c.label not in kinked and s.entries(c.label, c.shape, "smoothness.l2") is None:
            return _unsolved(s, c, why)
    if s.size > MAX_DENSE_ORDER and structure is not Structure.AFFINE:
        return Objection(
            f"its step solves a system of the size of the decision for `{label}`, and {s.size} entries are more than {MAX_DENSE_ORDER}",
            ask_for_it(f"linearise `{label}`, or decide in a box under sums of functions of single entries"),
            slow=True,
        )
    if pieces > MANY_PIECES:
        labels = ", ".join(f"`{name}`" for name in sorted(kinked))
        message = (
            f"its step has a multiplier for each of {pieces:,} pieces of kinks in {labels}, more than {MANY_PIECES}"
        )
        return Objection(message, ask_for_it("smooth the kinks, or take fewer"), slow=True)
    return None


@lru_cache(maxsize=16)
def known_objections(s: Situation, moves: bool) -> tuple[Objection, ...]:
    """Why decisions cannot be moved to the nearest point within the known constraints; `moves`: the algorithm lets them be moved."""
    labels = ", ".join(dict.fromkeys(f"`{c.origin}`" for c in s.canonical.known))
    if not moves:
        return (Objection(f"its decisions cannot be moved to what is known before them: {labels}"),)
    decisions, rows = tuple(b.name for b in s.canonical.blocks), known_rows(s.canonical)
    structure, _ = rows.structure
    nonlinear = [c for c in s.canonical.known if not is_affine(c.expr, decisions)]
    results = [
        Objection(
            f"it is not proved that `{c.origin}` is convex, and its decisions are moved to what is known before them"
        )
        for c in nonlinear
        if not s.holds(f"constraints.{c.label}.convex")
    ]
    if structure is Structure.AFFINE or separable_over_box(structure, s.domains):
        return tuple(results)
    for d in s.domains:
        if why := d.expensive.get("project_jacobian"):
            message = f"moving its decisions to what is known before them needs a projection onto {d}: {why}"
            results.append(Objection(message, "decide in a set that has one, such as a box, a ball or a simplex"))
    try:
        if kinks_hinder(rows):
            epigraph(rows)
    except NoEpigraph as error:
        results.append(Objection(f"no decision is moved to what is known before it, {labels}: {error.why}"))
    unbounded = [c for c in rows.inequalities if c in nonlinear and not has_kinks(c)]
    results += [_unsolved(s, c, "") for c in unbounded if s.entries(c.label, c.shape, "smoothness.l2") is None]
    return tuple(results)


def _unsolved(s: Situation, c: Inequality, why: str) -> Objection:
    """Why the step under a constraint without a bound of its smoothness is not solved, and what is solved in its place."""
    key = f"constraints.{c.label}.smoothness.l2"
    forms = "affine, smooth, the largest of few such pieces, sums of these, or over a box sums of functions of single entries"
    solved = f"its step is solved exactly where constraints are {forms}"
    kinks = [n for n in walk(c.expr) if isinstance(n, Call) and _smoother(n) and names(n, Kind.DECISION)]
    for node in sorted(kinks, key=lambda n: not _is_round(n)):
        written = " ".join(node.span.text.split()) if node.span is not None else node.atom
        inner = written[len(node.atom) + 1 : -1] if written.startswith(f"{node.atom}(") else "v"
        fix = _smoother(node).format(written, inner)
        how = why if why and not _is_round(node) else solved
        return Objection(f"`{c.origin}` has kinks in `{written}`, and {how}", fix)
    message = f"nothing bounds how fast the gradient of `{c.origin}` changes, and {solved}"
    return Objection(message, way_to_bound(s.canonical, c.expr, key), span=c.span)


def _is_round(node: Call) -> bool:
    """True if it has a kink that no finite number of smooth pieces make."""
    return ATOMS[node.atom].norm is not None


def _smoother(node: Call) -> str:
    """Replacement for a function with kinks: of {0}, whose argument is {1}; "" for one without, or where none is known."""
    if _is_round(node):
        return "write `sum_squares({1})` in the place of `{0}`, and the square of its bound"
    match form_of(node):
        case forms.SUM_OF_SIZES:
            return "write `sum(huber({1}))` in the place of `{0}`"
        case forms.SIZE | forms.LARGEST_SIZE:
            return "write the two sides of `{0} <= b`, `{1} <= b` and `-({1}) <= b`, as constraints of their own"
        case forms.Extreme():
            return "write the pieces of `{0}` as constraints of their own, without it"
    return ""
