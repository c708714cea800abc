"""Signatures of the words of the language. Written by `make stubs` from the tables of the language."""

from oco.domains import Domain
from oco.dsl.terms import DistributionTerm, Operand, Term

__all__ = [
    "abs",
    "ball",
    "bernoulli",
    "beta",
    "binomial",
    "birkhoff",
    "box",
    "budget",
    "capped_simplex",
    "categorical",
    "constant",
    "diag",
    "dot",
    "ellipsoid",
    "entr",
    "exp",
    "exponential",
    "eye",
    "flow",
    "gamma",
    "group_ball",
    "hinge",
    "huber",
    "inv_pos",
    "kl_div",
    "l1_ball",
    "log",
    "log1p",
    "log_sum_exp",
    "logistic",
    "lognormal",
    "max",
    "maximum",
    "mean",
    "min",
    "minimum",
    "neg",
    "nonneg_ball",
    "norm1",
    "norm2",
    "norm_inf",
    "normal",
    "nuclear_ball",
    "nuclear_norm",
    "ones",
    "outer",
    "pareto",
    "poisson",
    "polytope",
    "pos",
    "power",
    "prev",
    "quad_form",
    "range",
    "rel_entr",
    "repeat",
    "sigma_max",
    "simplex",
    "spectrahedron",
    "sqrt",
    "square",
    "sum",
    "sum_squares",
    "trace",
    "uniform",
    "zeros",
]

def abs(x: Operand, /) -> Term:
    """The absolute value."""

def ball(r: Operand) -> Domain:
    """`ball(r)`: the l2 norm of x is at most r."""

def bernoulli(p: Operand) -> DistributionTerm:
    """`bernoulli(p)`: 1 with probability p, else 0."""

def beta(a: Operand, b: Operand) -> DistributionTerm:
    """`beta(a, b)`: a share between 0 and 1."""

def binomial(n: Operand, p: Operand) -> DistributionTerm:
    """`binomial(n, p)`: successes in n trials."""

def birkhoff(n: Operand) -> Domain:
    """`birkhoff(n)`: n x n matrices >= 0 whose rows and columns sum to 1."""

def box(lo: Operand, hi: Operand) -> Domain:
    """`box(lo, hi)`: lo <= x <= hi in every entry."""

def budget(lo: Operand, hi: Operand, total: Operand) -> Domain:
    """`budget(lo, hi, total)`: lo <= x <= hi with the given total."""

def capped_simplex(cap: Operand, s: Operand = ...) -> Domain:
    """`capped_simplex(cap, s)`: 0 <= x <= cap with sum s (1 unless given)."""

def categorical(p: Operand) -> DistributionTerm:
    """`categorical(p)`: 0, 1, ... with the probabilities p."""

def constant(v: Operand) -> DistributionTerm:
    """`constant(v)`: always v."""

def diag(x: Operand, /) -> Term:
    """The matrix with a vector on its diagonal, or the diagonal of a matrix."""

def dot(x: Operand, /, y: Operand) -> Term:
    """The inner product of two vectors."""

def ellipsoid(P: Operand, c: Operand = ...) -> Domain:
    """`ellipsoid(P, c)`: (x - c) @ inv(P) @ (x - c) <= 1; c is 0 unless given."""

def entr(x: Operand, /) -> Term:
    """-x * log(x), and 0 at 0."""

def exp(x: Operand, /) -> Term:
    """e to the power x."""

def exponential(mean: Operand) -> DistributionTerm:
    """`exponential(mean)`: waiting times."""

def eye(n: Operand, /) -> Term:
    """The identity matrix."""

def flow(edges: Operand, source: Operand, sink: Operand) -> Domain:
    """`flow(edges, source, sink)`: x >= 0 sends one unit along the edges of a graph without cycles from the source to
    the sink; a row of `edges` has the nodes that an entry leads from and to: `[[0, 1], [1, 2]]`."""

def gamma(shape: Operand, *, mean: Operand) -> DistributionTerm:
    """`gamma(shape, mean = ...)`: sums of waiting times."""

def group_ball(r: Operand, groups: Operand) -> Domain:
    """`group_ball(r, groups)`: the l2 norms of the groups of entries sum to at most r; `groups` has the number of its
    group for each entry: `[0, 0, 1]`."""

def hinge(x: Operand, /) -> Term:
    """Max(1 - x, 0)."""

def huber(x: Operand, /, M: Operand = ...) -> Term:
    """X**2 where |x| <= M, else 2 * M * |x| - M**2; M is 1 unless given."""

def inv_pos(x: Operand, /) -> Term:
    """1 / x for positive x."""

def kl_div(x: Operand, /, y: Operand) -> Term:
    """x * log(x / y) - x + y."""

def l1_ball(r: Operand) -> Domain:
    """`l1_ball(r)`: the sum of |x| is at most r."""

def log(x: Operand, /) -> Term:
    """The natural logarithm."""

def log1p(x: Operand, /) -> Term:
    """Log(1 + x)."""

def log_sum_exp(x: Operand, /, *, axis: int | None = ...) -> Term:
    """Log of the sum of exp."""

def logistic(x: Operand, /) -> Term:
    """Log(1 + exp(x))."""

def lognormal(mu: Operand, sigma: Operand) -> DistributionTerm:
    """`lognormal(mu, sigma)`: exp of a normal(mu, sigma)."""

def max(x: Operand, /, *, axis: int | None = ...) -> Term:
    """The largest entry."""

def maximum(*xs: Operand) -> Term:
    """The largest of several arguments, entry by entry."""

def mean(x: Operand, /, *, axis: int | None = ...) -> Term:
    """The mean."""

def min(x: Operand, /, *, axis: int | None = ...) -> Term:
    """The smallest entry."""

def minimum(*xs: Operand) -> Term:
    """The smallest of several arguments, entry by entry."""

def neg(x: Operand, /) -> Term:
    """Max(-x, 0)."""

def nonneg_ball(r: Operand) -> Domain:
    """`nonneg_ball(r)`: x >= 0, and the l2 norm of x is at most r."""

def norm1(x: Operand, /, *, axis: int | None = ...) -> Term:
    """The sum of absolute values."""

def norm2(x: Operand, /, *, axis: int | None = ...) -> Term:
    """The Euclidean norm of the entries, also of a matrix (Frobenius; CVXPY takes its largest singular value, here
    `sigma_max`)."""

def norm_inf(x: Operand, /, *, axis: int | None = ...) -> Term:
    """The largest absolute value."""

def normal(mean: Operand, sd: Operand) -> DistributionTerm:
    """`normal(mean, sd)`: the bell curve."""

def nuclear_ball(r: Operand) -> Domain:
    """`nuclear_ball(r)`: the singular values of x sum to at most r."""

def nuclear_norm(x: Operand, /) -> Term:
    """The sum of the singular values."""

def ones(*shape: Operand) -> Term:
    """An array of ones; the arguments are its shape."""

def outer(x: Operand, /, y: Operand) -> Term:
    """The matrix of products of the entries of two vectors."""

def pareto(shape: Operand, *, mean: Operand) -> DistributionTerm:
    """`pareto(shape, mean = ...)`: heavy tails."""

def poisson(mean: Operand) -> DistributionTerm:
    """`poisson(mean)`: counts of independent arrivals."""

def polytope(A: Operand, b: Operand) -> Domain:
    """`polytope(A, b)`: A @ x <= b, bounded."""

def pos(x: Operand, /) -> Term:
    """Max(x, 0)."""

def power(x: Operand, /, p: Operand) -> Term:
    """x to the power p."""

def prev(x: Operand, /) -> Term:
    """Decision of the round before; in round 1 the start."""

def quad_form(x: Operand, /, P: Operand) -> Term:
    """X.t @ P @ x."""

def range(a: Operand, /, b: Operand) -> Term:
    """Whole numbers from a to b, both included."""

def rel_entr(x: Operand, /, y: Operand) -> Term:
    """x * log(x / y)."""

def repeat(v: Operand, /, k: Operand) -> Term:
    """Each entry of v, k times."""

def sigma_max(x: Operand, /) -> Term:
    """The largest singular value."""

def simplex(s: Operand = ...) -> Domain:
    """`simplex(s)`: x >= 0 with sum s (1 unless given)."""

def spectrahedron(trace: Operand) -> Domain:
    """`spectrahedron(trace)`: symmetric positive semidefinite matrices of this trace."""

def sqrt(x: Operand, /) -> Term:
    """The square root."""

def square(x: Operand, /) -> Term:
    """x squared."""

def sum(x: Operand, /, *, axis: int | None = ...) -> Term:
    """The sum."""

def sum_squares(x: Operand, /) -> Term:
    """The sum of squares."""

def trace(x: Operand, /) -> Term:
    """The sum of the diagonal."""

def uniform(lo: Operand, hi: Operand) -> DistributionTerm:
    """`uniform(lo, hi)`: any number in [lo, hi], all alike."""

def zeros(*shape: Operand) -> Term:
    """An array of zeros; the arguments are its shape."""
