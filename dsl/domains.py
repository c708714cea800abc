"""Table of domains: the sets for decisions, and conditions on their arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from oco.dsl.dims import Shape, broadcast, show
from oco.dsl.records import dataclass

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Complaint:
    """Problem in words; `argument` names the part at fault, "" is the domain or the distribution as a whole."""

    code: str
    argument: str
    message: str
    hint: str = ""


Shapes = Mapping[str, Shape]
Values = Mapping[str, Array]


@dataclass(frozen=True)
class DomainKind:
    """Row of the table.

    parameters  the names of the arguments in order; the last `optional` of them may be left out
    doc         the set, in a line
    shapes      (shape of the decision, shapes of the arguments) -> a complaint or None; dimensions may be symbolic
    values      (shape of the decision, values of the arguments) -> a complaint or None, where values decide
    polyhedral  its size is found by linear programs
    factored    its points may be kept as factors, so that they may have more entries than an array
    """

    name: str
    parameters: tuple[str, ...]
    doc: str
    shapes: Callable[[Shape, Shapes], Complaint | None]
    values: Callable[[tuple[int, ...], Values], Complaint | None]
    optional: int = 0
    polyhedral: bool = False
    factored: bool = False

    @property
    def signature(self) -> str:
        """Signature in the language, as `box(lo, hi)`."""
        return f"{self.name}({', '.join(self.parameters)})" if self.parameters else self.name


def _fits(shape: Shape, argument: str, given: Shape) -> Complaint | None:
    if broadcast(given, shape) == shape:
        return None
    return Complaint(
        "OCO412",
        argument,
        f"`{argument}` has shape {show(given)}, which does not fit a decision of shape {show(shape)}"
        if shape
        else f"`{argument}` has shape {show(given)}, and the decision is a number",
        "give one number for all entries, or an array of the decision's shape",
    )


def _number(argument: str, given: Shape) -> Complaint | None:
    if given == ():
        return None
    return Complaint("OCO412", argument, f"`{argument}` is a single number; here it has shape {show(given)}")


def _entrywise(*arguments: str) -> Callable[[Shape, Shapes], Complaint | None]:
    """Rule that these arguments broadcast to the decision's shape."""

    def rule(shape: Shape, given: Shapes) -> Complaint | None:
        return next(filter(None, (_fits(shape, a, given[a]) for a in arguments if a in given)), None)

    return rule


def _numbers(
    *arguments: str, wants: Callable[[Shape], str] = lambda shape: ""
) -> Callable[[Shape, Shapes], Complaint | None]:
    """Rule that these arguments are numbers, and that `wants` accepts the decision's shape."""

    def rule(shape: Shape, given: Shapes) -> Complaint | None:
        message = wants(shape)
        if message:
            return Complaint("OCO414", "", message)
        return next(filter(None, (_number(a, given[a]) for a in arguments if a in given)), None)

    return rule


def _array(name: str) -> Callable[[Shape], str]:
    return lambda shape: "" if shape else f"{name} needs a decision with several entries; this one is a number"


def _matrix(name: str) -> Callable[[Shape], str]:
    return lambda shape: "" if len(shape) == 2 else f"{name} needs a matrix; this decision {_has(shape)}"


def _square(name: str) -> Callable[[Shape], str]:
    def wants(shape: Shape) -> str:
        return (
            ""
            if len(shape) == 2 and shape[0] == shape[1]
            else f"{name} needs a square matrix; this decision {_has(shape)}"
        )

    return wants


def _has(shape: Shape) -> str:
    return f"has shape {show(shape)}" if shape else "is a number"


def _polytope_shapes(shape: Shape, given: Shapes) -> Complaint | None:
    matrix, right = given["A"], given["b"]
    if len(shape) != 1:
        return Complaint("OCO414", "", f"polytope needs a vector; this decision {_has(shape)}")
    if len(matrix) != 2 or matrix[1] != shape[0]:
        return Complaint(
            "OCO412", "A", f"`A` needs {shape[0]} columns, one for each entry of the decision; it {_has(matrix)}"
        )
    if right not in ((matrix[0],), ()):
        return Complaint("OCO412", "b", f"`b` needs {matrix[0]} entries, one for each row of `A`; it {_has(right)}")
    return None


def _ellipsoid_shapes(shape: Shape, given: Shapes) -> Complaint | None:
    if len(shape) != 1:
        return Complaint("OCO414", "", f"ellipsoid needs a vector; this decision {_has(shape)}")
    if given["P"] != (shape[0], shape[0]):
        wanted = show((shape[0], shape[0]))
        return Complaint(
            "OCO412", "P", f"`P` needs shape {wanted}, the decision having {shape[0]} entries; it {_has(given['P'])}"
        )
    return _fits(shape, "c", given["c"]) if "c" in given else None


def _birkhoff_shapes(shape: Shape, given: Shapes) -> Complaint | None:
    message = _square("birkhoff")(shape)
    return Complaint("OCO414", "", message) if message else _number("n", given["n"])


def _budget_shapes(shape: Shape, given: Shapes) -> Complaint | None:
    if not shape:
        return Complaint("OCO414", "", _array("budget")(shape))
    return _fits(shape, "lo", given["lo"]) or _fits(shape, "hi", given["hi"]) or _number("total", given["total"])


def _group_shapes(shape: Shape, given: Shapes) -> Complaint | None:
    if len(shape) != 1:
        return Complaint("OCO414", "", f"group_ball needs a vector; this decision {_has(shape)}")
    if given["groups"] != shape:
        return Complaint(
            "OCO412",
            "groups",
            f"`groups` needs shape {show(shape)}, a group for each entry; it {_has(given['groups'])}",
        )
    return _number("r", given["r"])


def _flow_shapes(shape: Shape, given: Shapes) -> Complaint | None:
    if len(shape) != 1:
        return Complaint("OCO414", "", f"flow needs a vector, an entry for each edge; this decision {_has(shape)}")
    if given["edges"] != (shape[0], 2):
        wanted = show((shape[0], 2))
        return Complaint(
            "OCO412", "edges", f"`edges` needs shape {wanted}, a row for each edge; it {_has(given['edges'])}"
        )
    return _number("source", given["source"]) or _number("sink", given["sink"])


# Values


def _positive(name: str) -> Callable[[tuple[int, ...], Values], Complaint | None]:
    def rule(shape: tuple[int, ...], given: Values) -> Complaint | None:
        if name in given and np.min(given[name]) <= 0:
            return Complaint("OCO411", name, f"`{name}` must be positive; it is {_show(np.min(given[name]))}")
        return None

    return rule


def _show(value: Any) -> str:
    return repr(np.asarray(value).item()).removesuffix(".0")


def _ordered(shape: tuple[int, ...], given: Values) -> Complaint | None:
    """Rule that lo <= hi in every entry."""
    if "lo" not in given or "hi" not in given:
        return None
    low, high = (np.broadcast_to(given[a], shape) for a in ("lo", "hi"))
    wrong = np.argwhere(low > high)
    if not len(wrong):
        return None
    at = tuple(wrong[0])
    where = f" in entry [{', '.join(map(str, at))}]" if at and given["lo"].ndim + given["hi"].ndim else ""
    return Complaint(
        "OCO410",
        "",
        f"no decision lies in this box: lo {_show(low[at])} is above hi {_show(high[at])}{where}",
        "write the lower bound first",
    )


def _budget_values(shape: tuple[int, ...], given: Values) -> Complaint | None:
    if len(given) < 3:
        return None
    lo, hi = (np.broadcast_to(given[a], shape).ravel() for a in ("lo", "hi"))
    least, most, total = lo.sum(), hi.sum(), float(given["total"])
    size = np.maximum(abs(lo), abs(hi)).sum()
    rounding = lo.size * 2.0**-52 * size if np.isfinite(size) else 0.0  # of totals that were added up
    message = _ordered(shape, given)
    if message or least - rounding <= total <= most + rounding:
        return message
    return Complaint(
        "OCO410",
        "total",
        f"no decision has the total {_show(total)}: the bounds allow totals from {least:.9g} to {most:.9g}",
    )


def _capped_values(shape: tuple[int, ...], given: Values) -> Complaint | None:
    message = _positive("cap")(shape, given) or _positive("s")(shape, given)
    if message or "cap" not in given:
        return message
    most, total = float(np.broadcast_to(given["cap"], shape).sum()), float(given.get("s", np.array(1.0)))
    if most < total:
        return Complaint(
            "OCO410",
            "cap",
            f"no decision adds up to {_show(total)}: with these caps the entries add up to {most:.9g} at most",
        )
    return None


def _ellipsoid_values(shape: tuple[int, ...], given: Values) -> Complaint | None:
    matrix = given.get("P")
    if matrix is None:
        return None
    if not np.allclose(matrix, matrix.T, rtol=1e-9, atol=0):
        i, j = np.argwhere(~np.isclose(matrix, matrix.T, rtol=1e-9, atol=0))[0]
        message = f"entry [{i}, {j}] is {_show(matrix[i, j])}, entry [{j}, {i}] is {_show(matrix[j, i])}"
        return Complaint("OCO415", "P", f"`P` must be symmetric: {message}", "(P + P.T) / 2 is symmetric")
    if _clearly_definite(matrix):
        return None
    least = float(np.linalg.eigvalsh(matrix)[0])
    if least <= 0:
        return Complaint("OCO415", "P", f"`P` must be positive definite: its least eigenvalue is {least:.6g}")
    return None


def _clearly_definite(matrix: Array) -> bool:
    """True where the matrix less slightly more than rounding has a Cholesky factor, a tenth of the time of its
    eigenvalues.
    """
    lowered = matrix - 1e-12 * float(np.max(np.abs(matrix))) * len(matrix) * np.eye(len(matrix))
    try:
        np.linalg.cholesky(lowered)
    except np.linalg.LinAlgError:
        return False
    return True


def _birkhoff_values(shape: tuple[int, ...], given: Values) -> Complaint | None:
    if "n" in given and given["n"] != shape[0]:
        return Complaint(
            "OCO412",
            "n",
            f"birkhoff({_show(given['n'])}) holds matrices of that size; the decision has shape {show(shape)}",
        )
    return None


def _polytope_values(shape: tuple[int, ...], given: Values) -> Complaint | None:
    """Complaint about rows of zeros; the compiler decides by a linear program if the set is empty or unbounded."""
    if "A" not in given or "b" not in given:
        return None
    right = np.broadcast_to(given["b"], given["A"].shape[:1])
    wrong = np.flatnonzero(~given["A"].any(axis=1) & (right < 0))
    if len(wrong):
        row = wrong[0]
        return Complaint(
            "OCO410",
            "A",
            f"no decision satisfies row {row}: its coefficients are all zero and its right side is {_show(right[row])}",
        )
    return None


def _group_values(shape: tuple[int, ...], given: Values) -> Complaint | None:
    groups = given.get("groups")
    if groups is not None and (np.any(groups != np.floor(groups)) or np.any(groups < 0)):
        return Complaint("OCO415", "groups", "`groups` numbers the groups with integers from 0 on")
    return _positive("r")(shape, given)


def _flow_values(shape: tuple[int, ...], given: Values) -> Complaint | None:
    """Complaint about nodes that are not integers; cycles and unreachable sinks are found in the compiler."""
    for name, value in given.items():
        if np.any(value != np.floor(value)) or np.any(value < 0):
            return Complaint("OCO415", name, f"`{name}` numbers nodes with integers from 0 on")
    return None


DOMAINS: dict[str, DomainKind] = {
    kind.name: kind
    for kind in (
        DomainKind("box", ("lo", "hi"), "lo <= x <= hi in every entry", _entrywise("lo", "hi"), _ordered),
        DomainKind("ball", ("r",), "the l2 norm of x is at most r", _numbers("r"), _positive("r")),
        DomainKind("l1_ball", ("r",), "the sum of |x| is at most r", _numbers("r"), _positive("r")),
        DomainKind(
            "simplex",
            ("s",),
            "x >= 0 with sum s (1 unless given)",
            _numbers("s", wants=_array("simplex")),
            _positive("s"),
            1,
        ),
        DomainKind("nonneg_ball", ("r",), "x >= 0, and the l2 norm of x is at most r", _numbers("r"), _positive("r")),
        DomainKind("polytope", ("A", "b"), "A @ x <= b, bounded", _polytope_shapes, _polytope_values, polyhedral=True),
        DomainKind(
            "ellipsoid",
            ("P", "c"),
            "(x - c) @ inv(P) @ (x - c) <= 1; c is 0 unless given",
            _ellipsoid_shapes,
            _ellipsoid_values,
            1,
        ),
        DomainKind(
            "nuclear_ball",
            ("r",),
            "the singular values of x sum to at most r",
            _numbers("r", wants=_matrix("nuclear_ball")),
            _positive("r"),
            factored=True,
        ),
        DomainKind(
            "spectrahedron",
            ("trace",),
            "symmetric positive semidefinite matrices of this trace",
            _numbers("trace", wants=_square("spectrahedron")),
            _positive("trace"),
            factored=True,
        ),
        DomainKind(
            "birkhoff",
            ("n",),
            "n x n matrices >= 0 whose rows and columns sum to 1",
            _birkhoff_shapes,
            _birkhoff_values,
        ),
        DomainKind(
            "budget", ("lo", "hi", "total"), "lo <= x <= hi with the given total", _budget_shapes, _budget_values
        ),
        DomainKind(
            "capped_simplex",
            ("cap", "s"),
            "0 <= x <= cap with sum s (1 unless given)",
            lambda shape, given: (
                _numbers("s", wants=_array("capped_simplex"))(shape, given) or _fits(shape, "cap", given["cap"])
            ),
            _capped_values,
            1,
        ),
        DomainKind(
            "group_ball",
            ("r", "groups"),
            "the l2 norms of the groups of entries sum to at most r; `groups` has the number of its group for each entry: `[0, 0, 1]`",
            _group_shapes,
            _group_values,
        ),
        DomainKind(
            "flow",
            ("edges", "source", "sink"),
            "x >= 0 sends one unit along the edges of a graph without cycles from the source to the sink; a row of `edges` has the nodes "
            "that an entry leads from and to: `[[0, 1], [1, 2]]`",
            _flow_shapes,
            _flow_values,
            polyhedral=True,
        ),
    )
}
