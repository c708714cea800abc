"""How much text and how much nesting the language takes: the same for files and for the builder, so that every model can be printed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from oco.dsl.chains import PLAIN, balanced, counts, levels, wholes
from oco.dsl.diagnostics import Diagnostic, OcoError
from oco.dsl.dims import known
from oco.dsl.domains import DOMAINS
from oco.dsl.expressions import Call, Constant, Expr, parts, walk
from oco.dsl.meter import WAYS_OUT, allowed
from oco.dsl.model import Model
from oco.dsl.source import Span

DEEPEST = 200
"""How many levels an expression may nest."""

TEXT_LIMIT = 4 * 2**20
"""How many characters a model file may have."""


MOST_PARTS = 4_000
"""How many parts an expression may have when the lets in it are written out and alike terms of its sums are put together."""

MOST_WRITTEN = 60_000
"""How many parts an expression may have when the lets in it are written out."""

MOST_TERMS = 4_000
"""How many terms the sums of an expression may have."""

MOST_WORK = 3_200
"""How many parts loss and constraints may have together, each counted by the time that proofs and the choice take over it."""

WEIGHTS = {
    "kl_div": 20,
    "rel_entr": 20,
    "sigma_max": 20,
    "nuclear_norm": 15,
    "quad_form": 13,
    "log_sum_exp": 11,
    "norm2": 7,
    "trace": 7,
    "sqrt": 7,
    "outer": 4,
    "div": 4,
    "huber": 4,
    "power": 4,
    "pow": 4,
    "max": 4,
    "min": 4,
}
"""Of parts that are counted more than once."""

VAST, MOST_VAST = 20_000, 50
"""A part counts one more for each 20,000 entries, at most 50 more: beyond that, arrays are mostly kept as factors."""

MOST_CONSTRAINTS = 30
"""How many constraints a model may state; each may be a vector of many."""

MOST_WORKED = 2 * 10**7
"""How many numbers the formulas of params, bounds and arguments of a model may make, all parts together: half a second, 160 MB."""

FACTORED = tuple(row.name for row in DOMAINS.values() if row.factored)
"""Domains whose decisions may be kept as factors, so that they may have more entries than an array."""

MOST_DECIDED, MOST_REVEALED = 2 * 10**6, 10**7
"""How many entries the decisions of a model may have together, unless they may be kept as factors, and how many the streams."""

CHEAP = frozenset(
    {"add", "sub", "mul", "minus", "transpose", "range", "repeat", "ones", "zeros", "eye", "outer", "sum"}
)
"""Atoms that make a number in a few nanoseconds; others take some times that."""

LONGEST = 10**12
"""The most rounds of a horizon: at a microsecond a round, eleven days."""


def too_deep(span: Span | None) -> Diagnostic:
    return Diagnostic(
        "OCO107",
        f"this expression nests deeper than {DEEPEST} levels",
        span,
        "name its parts with `let`; a sum of many terms is one part over a vector: `sum(c * x)`",
    )


def too_long(span: Span | None) -> Diagnostic:
    said = f"this expression adds up more than {MOST_TERMS:,} terms"
    return Diagnostic("OCO130", said, span, "a sum of many terms is one part over a vector: `sum(c * x)`, `c @ x`")


def admitted(expr: Expr, span: Span | None) -> Expr:
    """The expression with its long sums balanced.

    Refuses one that would nest too deep as text, where an array of numbers counts its axes.
    """
    terms = counts(expr)
    if max(terms.values(), default=0) > PLAIN and sum(terms.get(top, 0) for top in wholes(expr)) > MOST_TERMS:
        raise OcoError(too_long(span))
    depth: dict[int, int] = {}
    deepest: dict[int, int] = {}  # of the terms of a sum
    for node in walk(expr):
        own = len(node.shape) if isinstance(node, Constant) else 0
        below = [depth[id(child)] for child in node.children]
        depth[id(node)] = 1 + max(below, default=own)
        if id(node) in terms:
            first = id(node.children[0])
            deepest[id(node)] = max(deepest.get(first, depth[first]), below[1])
            if terms[id(node)] > PLAIN:
                depth[id(node)] = deepest[id(node)] + levels(terms[id(node)])
    if depth[id(expr)] > DEEPEST:
        raise OcoError(too_deep(span))
    return balanced(expr)


class Sizes:
    """How large expressions are when what they share is written out. Each node is counted once."""

    def __init__(self) -> None:
        self._parts: dict[int, int] = {}
        self._levels: dict[int, int] = {}
        self._kept: list[Expr] = []  # an id names a node only while the node lives

    def check(self, expr: Expr, span: Span | None, most: int) -> None:
        """Refuse an expression that is small only because its lets are used over and over: proofs read it as if it were written out."""
        parts, levels = self._parts, self._levels
        self._kept.append(expr)
        for node in walk(expr, parts):
            parts[id(node)] = 1 + sum(parts[id(child)] for child in node.children)
            levels[id(node)] = 1 + max((levels[id(child)] for child in node.children), default=0)
        if levels[id(expr)] > 2 * DEEPEST:
            raise OcoError(too_deep(span))
        if parts[id(expr)] > most:
            hint = "use a let fewer times within the lets that build on it; a sum over entries is one part: sum(x)"
            raise OcoError(Diagnostic("OCO130", f"without its lets this has more than {most:,} parts", span, hint))


def check_work(objective: Expr, constraints: Sequence[Expr], streams: int, span: Span | None) -> None:
    """Refuse a model that is too much work as a whole: one and a half for a part of a constraint, three quarters for one of the loss."""
    work = (3 * _size(objective) + 6 * sum(map(_size, constraints))) // 4 + 2 * streams
    most = allowed(MOST_WORK)
    if work > most:
        said = f"the terms of the model weigh {work:,}, more than {most:,.0f}: too many are different"
        raise OcoError(Diagnostic("OCO132", said, span, WAYS_OUT))


def _size(expr: Expr) -> int:
    vast = sum(min(math.prod(known(n.shape)) // VAST, MOST_VAST) for n in walk(expr) if isinstance(n, Call))
    return vast + sum(WEIGHTS.get(atom, 1) * count for atom, count in parts(expr).items())


class Made:
    """How many numbers the formulas of fixed data have made."""

    def __init__(self) -> None:
        self.numbers = 0

    def add(self, numbers: int, role: str, span: Span | None) -> None:
        """Count more before they are made; refuse them past `MOST_WORKED`."""
        self.numbers += numbers
        most = allowed(MOST_WORKED)
        if self.numbers > most:
            said = f"up to {role} the formulas of fixed data make {self.numbers:,} numbers; at most {most:,.0f} are worked out"
            hint = 'read large data from a file: `param A[m, n] = file("A.npy")`'
            raise OcoError(Diagnostic("OCO805", said, span, hint))


def numbers(node: Expr) -> int:
    """The numbers that one part makes or reads; products and decompositions of matrices count their multiplications."""
    shapes = [tuple(d for d in e.shape if isinstance(d, int)) for e in (node, *node.children)]
    touched = max(map(math.prod, shapes))
    match node:
        case Call(atom="matmul" | "dot"):
            return touched + math.prod(shapes[0]) * max(shapes[1][-1:], default=1) // (5 if node.integer else 50)
        case Call(atom="nuclear_norm" | "sigma_max"):
            return touched + touched * min(shapes[1], default=1) // 2
        case Call(atom=atom):
            return touched if atom in CHEAP else 4 * touched
    return touched


def check_entries(model: Model) -> None:
    """Refuse decisions and streams that have too many entries to be worked with one by one."""
    whole = [d for d in model.decisions if d.domain.kind not in FACTORED]
    for what, declared, most in (("decisions", whole, MOST_DECIDED), ("streams", model.streams, MOST_REVEALED)):
        total = sum(math.prod(n for n in d.shape if isinstance(n, int)) for d in declared)
        if total > allowed(most):
            said = f"the {what} have {total:,} entries together; at most {allowed(most):,.0f} are worked with"
            hint = f"matrices in {' and '.join(FACTORED)} may be larger; or allow more: `oco --effort 4 compile ...`"
            raise OcoError(Diagnostic("OCO805", said, declared[0].span, hint))


def check_count(constraints: int, span: Span | None) -> None:
    if constraints > MOST_CONSTRAINTS:
        hint = "state many alike as one vector constraint: `cap: A @ x <= b`"
        said = f"the model states {constraints} constraints, more than {MOST_CONSTRAINTS}"
        raise OcoError(Diagnostic("OCO131", said, span, hint))
