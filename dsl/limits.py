"""Limits on the size of a model: the length of its text, the depth of its nesting, the numbers that it makes.

They hold for files and for the builder alike, so that every model can be printed. Each limit protects memory or the
stack. None limits the time that a model takes.
"""

from __future__ import annotations

import math

from oco.dsl.chains import PLAIN, balanced, counts, levels, maximal_sums
from oco.dsl.diagnostics import Diagnostic, OcoError
from oco.dsl.domains import DOMAINS
from oco.dsl.expressions import Constant, Expr, walk
from oco.dsl.source import Span
from oco.dsl.statements import Statements

TEXT_LIMIT = 32 * 2**20
"""Characters of a model file: its tokens and its tree take a few hundred bytes for each."""

DEEPEST = 200
"""Levels that an expression may nest: readers and printers recurse, and Python has some thousand frames."""

MOST_PARTS = 10**6
"""Parts of an expression with its lets written out, and terms of its sums: derivatives write them out, at some 300 bytes each."""

MOST_NUMBERS = 10**8
"""Entries of an array of fixed data, of all files together, and of what formulas of fixed data make: 800 MB."""

MOST_BYTES = 16 * MOST_NUMBERS
"""Bytes of a file of fixed data: its numbers, and as much besides."""

MOST_TEXT_BYTES = 2**28
"""Bytes of a text file of fixed data, a certificate or a promise: numbers in text take several times their place while they are read."""

LONGEST_NUMBER, LONGEST_LINE = 512, 2**24
"""Characters of a number in a text file, and of a line: a file that `gzip` unpacks may be one line."""

LARGEST_EXPONENT = 1000
"""Exponent of a power, and terms of a series, in exact arithmetic: a power of a double has a thousand bits for each."""

MOST_FIXED = 160 * 10**6
"""Bytes that the packed files of a model may unpack to."""

MOST_ROUNDS = 2**30
"""Bytes that a packed file with the rounds of a run, or a trace, may unpack to."""

RATIO = 16
"""Ratio of bytes in memory to bytes on disk that needs no limit: `1,` in a text is a number of eight bytes in a row of its own."""

MOST_ENTRIES = 10**7
"""Entries of all decisions together, unless they are kept as factors, and of all streams: 80 MB, and a check holds some tens of copies."""

MOST_ROW_NUMBERS = 25 * 10**6
"""Numbers of the rows of a polyhedron: 200 MB, held in a dozen copies while its size is computed."""

FACTORED = tuple(row.name for row in DOMAINS.values() if row.factored)
"""Domains whose decisions may be kept as factors, so that they may have more entries than an array."""

MOST_FACTORED = 10**12
"""Entries of a decision that may be kept as factors: its rows and columns are vectors of some millions."""

LONGEST = 10**12
"""Rounds of a horizon: up to there a count of rounds and its squares are exact enough for the sums over schedules."""

LONGEST_DELAY = 10_000
"""Rounds of a delay of the feedback: there is a learner for each."""


def too_deep(span: Span | None) -> Diagnostic:
    """Diagnostic for an expression that nests too deep."""
    return Diagnostic(
        "OCO107",
        f"this expression nests deeper than {DEEPEST} levels",
        span,
        "name its parts with `let`; a sum of many terms is one part over a vector: `sum(c * x)`",
    )


def too_long(span: Span | None) -> Diagnostic:
    """Diagnostic for a sum of too many terms."""
    message = f"this expression adds up more than {MOST_PARTS:,} terms"
    return Diagnostic("OCO130", message, span, "a sum of many terms is one part over a vector: `sum(c * x)`, `c @ x`")


def admitted(expr: Expr, span: Span | None) -> Expr:
    """Expression with its long sums balanced.

    Raises OcoError where it would nest too deep as text; an array of numbers counts its axes.
    """
    terms = counts(expr)
    if max(terms.values(), default=0) > PLAIN and sum(terms.get(top, 0) for top in maximal_sums(expr)) > MOST_PARTS:
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
    """Sizes of expressions with shared nodes written out. Each node is counted once."""

    def __init__(self) -> None:
        self._parts: dict[int, int] = {}
        self._levels: dict[int, int] = {}
        self._kept: list[Expr] = []  # an id names a node only while the node lives

    def check(self, expr: Expr, span: Span | None) -> None:
        """Refuse an expression that is small only because its lets are used repeatedly."""
        parts, levels = self._parts, self._levels
        self._kept.append(expr)
        for node in walk(expr, parts):
            parts[id(node)] = 1 + sum(parts[id(child)] for child in node.children)
            levels[id(node)] = 1 + max((levels[id(child)] for child in node.children), default=0)
        if levels[id(expr)] > 2 * DEEPEST:
            raise OcoError(too_deep(span))
        if parts[id(expr)] > MOST_PARTS:
            hint = "use a let fewer times within the lets that build on it; a sum over entries is one part: sum(x)"
            message = f"without its lets this has more than {MOST_PARTS:,} parts"
            raise OcoError(Diagnostic("OCO130", message, span, hint))


class Made:
    """Count of the numbers that formulas of fixed data have made."""

    def __init__(self) -> None:
        self.numbers = 0

    def add(self, numbers: int, role: str, span: Span | None) -> None:
        """Count numbers before they are made. Raises OcoError past `MOST_NUMBERS`."""
        self.numbers += numbers
        if self.numbers > MOST_NUMBERS:
            message = (
                f"up to {role} the formulas of fixed data make {self.numbers:,} numbers; "
                f"at most {MOST_NUMBERS:,} fit into memory with what is made of them"
            )
            hint = 'read large data from a file: `param A[m, n] = file("A.npy")`'
            raise OcoError(Diagnostic("OCO805", message, span, hint))


def numbers(node: Expr) -> int:
    """Count of the numbers that one node makes."""
    return math.prod(d for d in node.shape if isinstance(d, int))


def check_entries(model: Statements) -> None:
    """Refuse decisions and streams that have too many entries to be held several times over."""
    whole = [d for d in model.decisions if d.domain.kind not in FACTORED]
    for what, declared in (("decisions", whole), ("streams", model.streams)):
        total = sum(math.prod(n for n in d.shape if isinstance(n, int)) for d in declared)
        if total > MOST_ENTRIES:
            message = f"the {what} have {total:,} entries together; at most {MOST_ENTRIES:,} fit into memory"
            hint = f"matrices in {' and '.join(FACTORED)} may be larger"
            raise OcoError(Diagnostic("OCO805", message, declared[0].span, hint))
