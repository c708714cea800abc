"""Base of all domains: a compact convex set with the operations that learners and theorems need of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from oco.compiler.domains.norms import Floats, vector_norm
from oco.compiler.domains.properties import AffineRow, EntrySum, FactorForm, LinearBound, QuadraticInequality
from oco.compiler.domains.vertices import decomposed
from oco.compiler.ir.program import DType, Type
from oco.dsl.diagnostics import InternalError, fail
from oco.dsl.records import dataclass

if TYPE_CHECKING:
    from oco.compiler.domains.combination import Combination
    from oco.compiler.ir.trace import Tracer
    from oco.compiler.ir.value import Value
    from oco.dsl.intervals import Interval

ArrayFunction = Callable[..., tuple[Floats, ...]]

MAX_VERTICES = 1024  # extreme points that are listed: functions are evaluated at each of them
MAX_DENSE_ORDER = 400  # of a full system of equations that a method solves in each of its steps
MAX_DENSE_ROWS = 4000  # of inequalities that such a method looks at in each of its steps


@dataclass(frozen=True, eq=False)
class Halfspaces:
    """{ x : A x <= b, E x = f } for flattened x, with A of shape (m, size) and E of shape (k, size)."""

    A: Floats
    b: Floats
    E: Floats
    f: Floats


@dataclass(frozen=True, eq=False)
class Domain(ABC):
    """A nonempty compact convex set of arrays of one `shape`; norms and inner products are those of the flattened array.

    Operations with a tracer `t` write the step IR and so exist in every backend. The others are NumPy, used at compile time."""

    kind: ClassVar[str]
    shape: tuple[int, ...]

    @cached_property
    def size(self) -> int:
        """Number of entries."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def geometry(self) -> str:
        """The mirror map of `bregman_step`: "euclidean" is |x|^2 / 2, "entropy" is sum x log x, "von neumann" is tr X log X."""
        return "euclidean"

    # Membership.

    @abstractmethod
    def violation(self, x: Floats) -> float:
        """Violation of the set's inequalities and equalities at `x`,
        in units of the set's own scale; at most 0 inside."""

    def contains(self, x: Any, tolerance: float = 1e-9) -> bool:
        """True if `x` has the right shape, is finite, and violates nothing by more than `tolerance` times the set's scale."""
        point = np.asarray(x, dtype=np.float64)
        return point.shape == self.shape and bool(np.isfinite(point).all()) and self.violation(point) <= tolerance

    def violation_of_factors(self, U: Floats, s: Floats, V: Floats, diagonal: float = 0.0) -> float:
        """`violation` of diagonal I + U diag(s) V', the latter with orthonormal columns, for a set whose points are kept so."""
        raise InternalError(f"points of {self} are kept as arrays")

    @abstractmethod
    def interior_margin(self, x: Floats) -> float:
        """Radius of a ball of the affine hull around `x` that lies in the set: the greatest one, or a lower bound.

        Zero on the relative boundary and for a set of one point; negative outside.
        """

    def in_relative_interior(self, x: Floats) -> bool:
        """True where x lies within the set with a positive margin, in its affine hull."""
        return self.contains(x) and (self.interior_margin(x) > 0 or self.dimension == 0)

    # Operations of a round, over the step IR.

    @abstractmethod
    def project(self, t: Tracer, v: Value) -> Value:
        """The nearest point: argmin |u - v|_2 over u in the set."""

    @abstractmethod
    def lmo(self, t: Tracer, c: Value) -> Value:
        """An extreme point of argmin <c, u>; among several the one of the lowest index, so the answer is deterministic."""

    @property
    def lmo_start(self) -> int | None:
        """Length of the vector that an iterative `lmo` starts from and ends with; None where it needs none."""
        return None

    def lmo_from(self, t: Tracer, c: Value | Combination, start: Value) -> tuple[Value | Combination, Value]:
        """`lmo` from where the last one ended, and where this one ends."""
        raise InternalError(f"{self} minimises linear functions without a start")

    @property
    def fractional(self) -> str:
        """Why not all extreme points are known to have entries 0 and 1 alone, in words; "" where they are."""
        return f"extreme points of {self} are not known to have entries 0 and 1 alone"

    @property
    def vertex_draws(self) -> int:
        """Number of uniform draws that `vertex` takes."""
        return 1

    def vertex(self, t: Tracer, x: Value, u: Value) -> Value:
        """An extreme point of entries 0 and 1 whose mean is x, for draws u that are uniform on [0, 1)."""
        return decomposed(t, self, x, u)

    def bregman_step(self, t: Tracer, x: Value, p: Value) -> Value:
        """argmin <p, u> + D(u, x) over u in the set, with D the Bregman divergence of `geometry`."""
        return self.project(t, x - p)

    @abstractmethod
    def project_jacobian(self, t: Tracer, v: Value, p: Value, M: Value) -> Value:
        """`J M`, row by row: M has shape (k, *shape), J is a generalized Jacobian of the projection at v, p = project(v).

        J is symmetric, so the rows may be read as columns.
        """

    @property
    def expensive(self) -> Mapping[str, str]:
        """Operations that take too long for a step of every round, unless someone asks for that, each with the reason in words."""
        return {}

    def is_cheap(self, operation: str) -> bool:
        """True where a step of every round, or a search, may use `operation`."""
        return operation not in self.expensive

    @property
    def bounds_only(self) -> frozenset[str]:
        """The quantities below that are sound bounds and not exact: "diameter.l1", "diameter.l2", "radius", ..."""
        return frozenset()

    # Costs of a call, in words.
    projection_cost: ClassVar[str] = "O(n)"
    lmo_cost: ClassVar[str] = "O(n)"

    # Geometry, NumPy; exact but for what `bounds_only` names.

    @property
    @abstractmethod
    def lower(self) -> Floats:
        """The least value of each entry over the set."""

    @property
    @abstractmethod
    def upper(self) -> Floats:
        """The greatest value of each entry over the set."""

    @abstractmethod
    def support(self, c: Floats) -> float:
        """max <c, x> over the set."""

    def diameter(self, norm: str = "l2") -> float:
        """max |x - y| over the set, in "l2" or "l1"."""
        if norm not in ("l1", "l2"):
            raise InternalError(f"diameter in the norm {norm!r}")
        return self._diameter_l2() if norm == "l2" else self._diameter_l1()

    @abstractmethod
    def _diameter_l2(self) -> float: ...

    @abstractmethod
    def _diameter_l1(self) -> float: ...

    @property
    @abstractmethod
    def radius(self) -> float:
        """max |x|_2 over the set."""

    @property
    @abstractmethod
    def radius_about_centre(self) -> float:
        """max |x - centre()|_2 over the set."""

    @property
    @abstractmethod
    def inner_radius(self) -> float:
        """Radius of a largest ball within the set, taken in its affine hull; 0 for a set of one point."""

    @property
    def inner_centre(self) -> Floats:
        """The centre of such a ball."""
        return self.centre()

    @abstractmethod
    def centre(self) -> Floats:
        """The default first decision."""

    @property
    def bregman_diameter(self) -> float:
        """sup D(x, y) over the set for the divergence of `geometry`; infinite for the entropy."""
        diameter = float(self.diameter("l2"))
        return diameter * diameter / 2  # infinite where a power would raise

    @property
    def bregman_radius(self) -> float:
        """max D(x, centre()) over the set for the divergence of `geometry`."""
        radius = float(self.radius_about_centre)
        return radius * radius / 2

    # Properties that hold of few sets. Each has a default that is safe for any set.

    is_box: ClassVar[bool] = False
    """It is the box between `lower` and `upper`: every entry moves alone."""
    is_ball: ClassVar[bool] = False
    """It is the ball of `radius` about 0."""
    is_simplex: ClassVar[bool] = False
    """Its points are nonnegative and have one sum."""
    tight_hull: ClassVar[bool] = False
    """`lower` and `upper` are the ends of the range of each entry, without rounding."""
    sign_symmetric: ClassVar[bool] = False
    """With a point, the set holds what every change of the signs of its entries, or of its singular values, makes of it."""
    spectral: ClassVar[bool] = False
    """A solver of conic programs takes it by a matrix that is to be positive semidefinite."""
    dense: ClassVar[bool] = False
    """A solver of conic programs takes it by a number for each pair of entries."""
    factors: ClassVar[FactorForm | None] = None
    """Factored form of points that are too large as arrays; None where they are kept as arrays."""

    def support_over(self, a: Interval) -> LinearBound | None:
        """A bound of max <c, x> over the set and all c in the range `a`; None where `support` and the bounds alone tell."""
        return None

    @property
    def entry_sum(self) -> EntrySum | None:
        """The one condition beside the bounds that makes the set, or a set around it, where that is a sum over the entries."""
        return None

    @property
    def row(self) -> AffineRow | None:
        """The one affine row that makes the set beside the bounds `lower` and `upper`; None where it takes none, or more than that."""
        return None

    @property
    def quadratic(self) -> QuadraticInequality | None:
        """The one condition that makes the set beside its bounds and affine hull, where that is a convex quadratic inequality."""
        return None

    # In other units.

    lengths: ClassVar[tuple[str, ...]] = ()
    """The fields that grow with the set: with them multiplied by a number, it is the set multiplied by that number."""

    @property
    def origin(self) -> Floats:
        """Middle of the set's description: a point that the same kind of set can be moved by. 0 where it cannot be moved."""
        return np.zeros(())

    def rescaled(self, origin: Floats, unit: float) -> Domain | None:
        """Set { (x - origin) / unit : x in this one } of the same kind; None where the kind has none (`affine.in_units`)."""
        if self.lengths and not np.any(origin):
            return replace(self, **{name: getattr(self, name) / unit for name in self.lengths})
        return self if unit == 1 and not np.any(origin) else None

    def affine_hull(self) -> tuple[Floats, Floats]:
        """Independent equalities A x = b (x flattened, A of shape (k, size)) whose solutions are the affine hull."""
        return np.zeros((0, self.size)), np.zeros(0)

    @property
    def hull_fits(self) -> bool:
        """True where the rows of the affine hull fit into memory."""
        return True

    @property
    def dimension(self) -> int:
        """Dimension of the affine hull."""
        return self.size - len(self.affine_hull()[1])

    def tangent(self, c: Floats) -> Floats:
        """The part of `c` parallel to the affine hull: its orthogonal projection on the solutions of A d = 0."""
        A, _ = self.affine_hull()
        if not len(A):
            return c
        flat = c.ravel()
        return np.asarray(flat - np.linalg.lstsq(A, A @ flat, rcond=None)[0]).reshape(self.shape)

    def halfspaces(self) -> Halfspaces | None:
        """The set as inequalities and equalities of the flattened array; None where it is not a polyhedron, or has too many facets."""
        return None

    def vertices(self) -> Floats | None:
        """All extreme points, shape (count, *shape), where there are at most `MAX_VERTICES`; else None."""
        return None

    @property
    def extreme_cost(self) -> int:
        """About how many microseconds a linear minimization takes in Python, where that is much."""
        return 0

    @property
    def sampling_cost(self) -> int:
        """About how many microseconds a sample takes, where that is much."""
        return 0

    @property
    def decomposes(self) -> bool:
        """True if a point that is extreme along a direction, or drawn, costs the decomposition of a large matrix: milliseconds."""
        return False

    @abstractmethod
    def sample(self, rng: np.random.Generator, n: int) -> Floats:
        """`n` independent points of the set, shape (n, *shape), with a density that is positive on its relative interior."""

    @abstractmethod
    def constraints(self, cp: Any, variable: Any) -> list[Any]:
        """The set in CVXPY: constraints on `variable` (of this shape); `cp` is the module."""

    def interior_constraints(self, cp: Any, variable: Any, margin: Any) -> list[Any]:
        """In CVXPY: a ball of radius `margin` around `variable`, taken in the affine hull, lies in the set.

        Or is proved to by `interior_margin`, where that is a lower bound.
        """
        h = self.halfspaces()
        if h is None:
            raise InternalError(f"{self} does not say in CVXPY what its interior is")
        x = cp.vec(variable, order="C")
        lengths = [vector_norm(self.tangent(row.reshape(self.shape))) for row in h.A]
        rows = [h.A @ x + cp.multiply(np.array(lengths), margin) <= h.b] if len(h.b) else []
        return [*rows, h.E @ x == h.f] if len(h.f) else rows

    @abstractmethod
    def __str__(self) -> str:
        """Text of the domain in the language."""

    # Arrays as vectors, in the step IR.

    def flat(self, t: Tracer, v: Value) -> Value:
        """`v` as a vector of `size` entries."""
        return t.reshape(v, shape=(self.size,))

    def shaped(self, t: Tracer, v: Value) -> Value:
        """A vector of `size` entries as an array of the domain's shape."""
        return t.reshape(v, shape=self.shape)

    def rows(self, t: Tracer, M: Value) -> Value:
        """`M` of shape (k, *shape) as a matrix of shape (k, size)."""
        return t.reshape(M, shape=(M.shape[0], self.size))

    def shaped_rows(self, t: Tracer, M: Value) -> Value:
        """A matrix of shape (k, size) as an array of shape (k, *shape)."""
        return t.reshape(M, shape=(M.shape[0], *self.shape))

    # Use alone, NumPy in and NumPy out.

    @cached_property
    def _projection(self) -> ArrayFunction:
        return self._alone(self.project, 1)

    @cached_property
    def _minimisation(self) -> ArrayFunction:
        return self._alone(self.lmo, 1)

    @cached_property
    def _mirror_step(self) -> ArrayFunction:
        return self._alone(self.bregman_step, 2)

    def _alone(self, traced: Callable[..., Value | tuple[Value, ...]], arguments: int) -> ArrayFunction:
        """A method over the step IR as a function of so many arrays of the domain's shape."""
        from oco.compiler.ir.interpret import as_numpy

        return as_numpy(traced.__name__, traced, *[Type(DType.FLOAT, self.shape)] * arguments)

    def project_array(self, v: Any) -> Floats:
        """The point of the set nearest to the array `v`."""
        return self._projection(self._read(v))[0]

    def lmo_array(self, c: Any) -> Floats:
        """A minimiser of <c, x> over the set."""
        return self._minimisation(self._read(c))[0]

    def bregman_step_array(self, x: Any, p: Any) -> Floats:
        """argmin <p, u> + D(u, x) over the set."""
        return self._mirror_step(self._read(x), self._read(p))[0]

    def _read(self, v: Any) -> Floats:
        array = np.asarray(v, dtype=np.float64)
        if array.shape != self.shape:
            raise fail("OCO412", f"an array of shape {array.shape} was given to a domain of shape {self.shape}")
        if not np.isfinite(array).all():
            raise fail("OCO413", "the array given to a domain holds entries that are not finite numbers")
        return array


def euclidean_radius_of_hull(lower: Floats, upper: Floats) -> float:
    """max |x|_2 over the box between `lower` and `upper`."""
    return vector_norm(np.maximum(np.abs(lower), np.abs(upper)))
