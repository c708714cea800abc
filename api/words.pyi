"""Signatures of the words of the language. Written by `make stubs` from the tables of the language."""

from oco.domains import Domain
from oco.dsl.terms import DistributionTerm, Operand, Term

__all__ = [
    "abs",
    "ahead",
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
    "ewma",
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
    "last",
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
    "season",
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
    """`abs(x)`: the absolute value.

    Arguments are expressions, numbers or arrays, whose shapes broadcast: it acts entry by entry, and the result has
    their common shape. Raises OcoError (OCO3xx) where they do not fit.
    """

def ahead(x: Operand, /) -> Term:
    """Entry of a context, along its first axis, for the round that is predicted, for `m.predict`: 0 for the round
    itself, k for k rounds later. Raises OCO220 for other arguments."""

def ball(r: Operand) -> Domain:
    """`ball(r)`: the l2 norm of x is at most r.

    Arguments are numbers, arrays or params. Raises OCO403 for their number, and OCO412 where a decision of another
    shape takes it.
    """

def bernoulli(p: Operand) -> DistributionTerm:
    """`bernoulli(p)`: 1 with probability p, else 0.

    Arguments are numbers, arrays or params that broadcast to the shape of the stream. Raises OCO421 for their
    number, and OCO422 where a stream of another shape takes it.
    """

def beta(a: Operand, b: Operand) -> DistributionTerm:
    """`beta(a, b)`: a share between 0 and 1.

    Arguments are numbers, arrays or params that broadcast to the shape of the stream. Raises OCO421 for their
    number, and OCO422 where a stream of another shape takes it.
    """

def binomial(n: Operand, p: Operand) -> DistributionTerm:
    """`binomial(n, p)`: successes in n trials.

    Arguments are numbers, arrays or params that broadcast to the shape of the stream. Raises OCO421 for their
    number, and OCO422 where a stream of another shape takes it.
    """

def birkhoff(n: Operand) -> Domain:
    """`birkhoff(n)`: n x n matrices >= 0 whose rows and columns sum to 1.

    Arguments are numbers, arrays or params. Raises OCO403 for their number, and OCO412 where a decision of another
    shape takes it.
    """

def box(lo: Operand, hi: Operand) -> Domain:
    """`box(lo, hi)`: lo <= x <= hi in every entry.

    Arguments are numbers, arrays or params. Raises OCO403 for their number, and OCO412 where a decision of another
    shape takes it.
    """

def budget(lo: Operand, hi: Operand, total: Operand) -> Domain:
    """`budget(lo, hi, total)`: lo <= x <= hi with the given total.

    Arguments are numbers, arrays or params. Raises OCO403 for their number, and OCO412 where a decision of another
    shape takes it.
    """

def capped_simplex(cap: Operand, s: Operand = ...) -> Domain:
    """`capped_simplex(cap, s)`: 0 <= x <= cap with sum s (1 unless given).

    Arguments are numbers, arrays or params. Raises OCO403 for their number, and OCO412 where a decision of another
    shape takes it.
    """

def categorical(p: Operand) -> DistributionTerm:
    """`categorical(p)`: 0, 1, ... with the probabilities p.

    Arguments are numbers, arrays or params that broadcast to the shape of the stream. Raises OCO421 for their
    number, and OCO422 where a stream of another shape takes it.
    """

def constant(v: Operand) -> DistributionTerm:
    """`constant(v)`: always v.

    Arguments are numbers, arrays or params that broadcast to the shape of the stream. Raises OCO421 for their
    number, and OCO422 where a stream of another shape takes it.
    """

def diag(x: Operand, /) -> Term:
    """`diag(x)`: the matrix with a vector on its diagonal, or the diagonal of a matrix.

    Arguments are expressions, numbers or arrays; [n] gives [n, n], [n, n] gives [n]. Raises OcoError (OCO3xx) where
    they do not fit.
    """

def dot(x: Operand, /, y: Operand) -> Term:
    """`dot(x, y)`: the inner product of two vectors.

    Arguments are expressions, numbers or arrays; [n] and [n] give a number. Raises OcoError (OCO3xx) where they do
    not fit.
    """

def ellipsoid(P: Operand, c: Operand = ...) -> Domain:
    """`ellipsoid(P, c)`: (x - c) @ inv(P) @ (x - c) <= 1; c is 0 unless given.

    Arguments are numbers, arrays or params. Raises OCO403 for their number, and OCO412 where a decision of another
    shape takes it.
    """

def entr(x: Operand, /) -> Term:
    """`entr(x)`: -x * log(x), and 0 at 0.

    Arguments are expressions, numbers or arrays, whose shapes broadcast: it acts entry by entry, and the result has
    their common shape. Raises OcoError (OCO3xx) where they do not fit.
    """

def ewma(x: Operand, /, number: Operand) -> Term:
    """Average a of a stream v, of its shape, that forgets at a rate 0 < r <= 1: a += max(r, 1/t) (v - a); `ewma(price,
    0.1)`, for `m.predict`. Raises OCO220 for other arguments."""

def exp(x: Operand, /) -> Term:
    """`exp(x)`: e to the power x.

    Arguments are expressions, numbers or arrays, whose shapes broadcast: it acts entry by entry, and the result has
    their common shape. Raises OcoError (OCO3xx) where they do not fit.
    """

def exponential(mean: Operand) -> DistributionTerm:
    """`exponential(mean)`: waiting times.

    Arguments are numbers, arrays or params that broadcast to the shape of the stream. Raises OCO421 for their
    number, and OCO422 where a stream of another shape takes it.
    """

def eye(n: Operand, /) -> Term:
    """`eye(n)`: the identity matrix.

    Arguments are expressions, numbers or arrays. Raises OcoError (OCO3xx) where they do not fit.
    """

def flow(edges: Operand, source: Operand, sink: Operand) -> Domain:
    """`flow(edges, source, sink)`: x >= 0 sends one unit along the edges of a graph without cycles from the source to
    the sink; a row of `edges` has the nodes that an entry leads from and to: `[[0, 1], [1, 2]]`.

    Arguments are numbers, arrays or params. Raises OCO403 for their number, and OCO412 where a decision of another
    shape takes it.
    """

def gamma(shape: Operand, *, mean: Operand) -> DistributionTerm:
    """`gamma(shape, mean = ...)`: sums of waiting times.

    Arguments are numbers, arrays or params that broadcast to the shape of the stream. Raises OCO421 for their
    number, and OCO422 where a stream of another shape takes it.
    """

def group_ball(r: Operand, groups: Operand) -> Domain:
    """`group_ball(r, groups)`: the l2 norms of the groups of entries sum to at most r; `groups` has the number of its
    group for each entry: `[0, 0, 1]`.

    Arguments are numbers, arrays or params. Raises OCO403 for their number, and OCO412 where a decision of another
    shape takes it.
    """

def hinge(x: Operand, /) -> Term:
    """`hinge(x)`: max(1 - x, 0).

    Arguments are expressions, numbers or arrays, whose shapes broadcast: it acts entry by entry, and the result has
    their common shape. Raises OcoError (OCO3xx) where they do not fit.
    """

def huber(x: Operand, /, M: Operand = ...) -> Term:
    """`huber(x, M = None)`: x**2 where |x| <= M, else 2 * M * |x| - M**2; M is 1 unless given.

    Arguments are expressions, numbers or arrays, whose shapes broadcast: it acts entry by entry, and the result has
    their common shape. Raises OcoError (OCO3xx) where they do not fit.
    """

def inv_pos(x: Operand, /) -> Term:
    """`inv_pos(x)`: 1 / x for positive x.

    Arguments are expressions, numbers or arrays, whose shapes broadcast: it acts entry by entry, and the result has
    their common shape. Raises OcoError (OCO3xx) where they do not fit.
    """

def kl_div(x: Operand, /, y: Operand) -> Term:
    """`kl_div(x, y)`: x * log(x / y) - x + y.

    Arguments are expressions, numbers or arrays, whose shapes broadcast: it acts entry by entry, and the result has
    their common shape. Raises OcoError (OCO3xx) where they do not fit.
    """

def l1_ball(r: Operand) -> Domain:
    """`l1_ball(r)`: the sum of |x| is at most r.

    Arguments are numbers, arrays or params. Raises OCO403 for their number, and OCO412 where a decision of another
    shape takes it.
    """

def last(x: Operand, /) -> Term:
    """Value of a stream in the round before, of its shape, for `m.predict`. Raises OCO220 for other arguments."""

def log(x: Operand, /) -> Term:
    """`log(x)`: the natural logarithm.

    Arguments are expressions, numbers or arrays, whose shapes broadcast: it acts entry by entry, and the result has
    their common shape. Raises OcoError (OCO3xx) where they do not fit.
    """

def log1p(x: Operand, /) -> Term:
    """`log1p(x)`: log(1 + x).

    Arguments are expressions, numbers or arrays, whose shapes broadcast: it acts entry by entry, and the result has
    their common shape. Raises OcoError (OCO3xx) where they do not fit.
    """

def log_sum_exp(x: Operand, /, *, axis: int | None = ..., over: Term | str | None = ...) -> Term:
    """`log_sum_exp(x, axis = None, over = None)`: log of the sum of exp.

    Arguments are expressions, numbers or arrays; the result is a number, or an array of the axes that are left.
    Raises OcoError (OCO3xx) where they do not fit.
    """

def logistic(x: Operand, /) -> Term:
    """`logistic(x)`: log(1 + exp(x)).

    Arguments are expressions, numbers or arrays, whose shapes broadcast: it acts entry by entry, and the result has
    their common shape. Raises OcoError (OCO3xx) where they do not fit.
    """

def lognormal(mu: Operand, sigma: Operand) -> DistributionTerm:
    """`lognormal(mu, sigma)`: exp of a normal(mu, sigma).

    Arguments are numbers, arrays or params that broadcast to the shape of the stream. Raises OCO421 for their
    number, and OCO422 where a stream of another shape takes it.
    """

def max(x: Operand, /, *, axis: int | None = ..., over: Term | str | None = ...) -> Term:
    """`max(x, axis = None, over = None)`: the largest entry.

    Arguments are expressions, numbers or arrays; the result is a number, or an array of the axes that are left.
    Raises OcoError (OCO3xx) where they do not fit.
    """

def maximum(*xs: Operand) -> Term:
    """`maximum(*xs)`: the largest of several arguments, entry by entry.

    Arguments are expressions, numbers or arrays, whose shapes broadcast: it acts entry by entry, and the result has
    their common shape. Raises OcoError (OCO3xx) where they do not fit.
    """

def mean(x: Operand, /, *, axis: int | None = ..., over: Term | str | None = ...) -> Term:
    """`mean(x, axis = None, over = None)`: the mean.

    Arguments are expressions, numbers or arrays; the result is a number, or an array of the axes that are left.
    Raises OcoError (OCO3xx) where they do not fit.
    """

def min(x: Operand, /, *, axis: int | None = ..., over: Term | str | None = ...) -> Term:
    """`min(x, axis = None, over = None)`: the smallest entry.

    Arguments are expressions, numbers or arrays; the result is a number, or an array of the axes that are left.
    Raises OcoError (OCO3xx) where they do not fit.
    """

def minimum(*xs: Operand) -> Term:
    """`minimum(*xs)`: the smallest of several arguments, entry by entry.

    Arguments are expressions, numbers or arrays, whose shapes broadcast: it acts entry by entry, and the result has
    their common shape. Raises OcoError (OCO3xx) where they do not fit.
    """

def neg(x: Operand, /) -> Term:
    """`neg(x)`: max(-x, 0).

    Arguments are expressions, numbers or arrays, whose shapes broadcast: it acts entry by entry, and the result has
    their common shape. Raises OcoError (OCO3xx) where they do not fit.
    """

def nonneg_ball(r: Operand) -> Domain:
    """`nonneg_ball(r)`: x >= 0, and the l2 norm of x is at most r.

    Arguments are numbers, arrays or params. Raises OCO403 for their number, and OCO412 where a decision of another
    shape takes it.
    """

def norm1(x: Operand, /, *, axis: int | None = ..., over: Term | str | None = ...) -> Term:
    """`norm1(x, axis = None, over = None)`: the sum of absolute values.

    Arguments are expressions, numbers or arrays; the result is a number, or an array of the axes that are left.
    Raises OcoError (OCO3xx) where they do not fit.
    """

def norm2(x: Operand, /, *, axis: int | None = ..., over: Term | str | None = ...) -> Term:
    """`norm2(x, axis = None, over = None)`: the Euclidean norm of the entries, also of a matrix (Frobenius; CVXPY
    takes its largest singular value, here `sigma_max`).

    Arguments are expressions, numbers or arrays; the result is a number, or an array of the axes that are left.
    Raises OcoError (OCO3xx) where they do not fit.
    """

def norm_inf(x: Operand, /, *, axis: int | None = ..., over: Term | str | None = ...) -> Term:
    """`norm_inf(x, axis = None, over = None)`: the largest absolute value.

    Arguments are expressions, numbers or arrays; the result is a number, or an array of the axes that are left.
    Raises OcoError (OCO3xx) where they do not fit.
    """

def normal(mean: Operand, sd: Operand) -> DistributionTerm:
    """`normal(mean, sd)`: the bell curve.

    Arguments are numbers, arrays or params that broadcast to the shape of the stream. Raises OCO421 for their
    number, and OCO422 where a stream of another shape takes it.
    """

def nuclear_ball(r: Operand) -> Domain:
    """`nuclear_ball(r)`: the singular values of x sum to at most r.

    Arguments are numbers, arrays or params. Raises OCO403 for their number, and OCO412 where a decision of another
    shape takes it.
    """

def nuclear_norm(x: Operand, /) -> Term:
    """`nuclear_norm(x)`: the sum of the singular values.

    Arguments are expressions, numbers or arrays; [m, n] gives a number. Raises OcoError (OCO3xx) where they do not
    fit.
    """

def ones(*shape: Operand) -> Term:
    """`ones(*shape)`: an array of ones; the arguments are its shape.

    Arguments are expressions, numbers or arrays. Raises OcoError (OCO3xx) where they do not fit.
    """

def outer(x: Operand, /, y: Operand) -> Term:
    """`outer(x, y)`: the matrix of products of the entries of two vectors.

    Arguments are expressions, numbers or arrays; [m] and [n] give [m, n]. Raises OcoError (OCO3xx) where they do
    not fit.
    """

def pareto(shape: Operand, *, mean: Operand) -> DistributionTerm:
    """`pareto(shape, mean = ...)`: heavy tails.

    Arguments are numbers, arrays or params that broadcast to the shape of the stream. Raises OCO421 for their
    number, and OCO422 where a stream of another shape takes it.
    """

def poisson(mean: Operand) -> DistributionTerm:
    """`poisson(mean)`: counts of independent arrivals.

    Arguments are numbers, arrays or params that broadcast to the shape of the stream. Raises OCO421 for their
    number, and OCO422 where a stream of another shape takes it.
    """

def polytope(A: Operand, b: Operand) -> Domain:
    """`polytope(A, b)`: A @ x <= b, bounded.

    Arguments are numbers, arrays or params. Raises OCO403 for their number, and OCO412 where a decision of another
    shape takes it.
    """

def pos(x: Operand, /) -> Term:
    """`pos(x)`: max(x, 0).

    Arguments are expressions, numbers or arrays, whose shapes broadcast: it acts entry by entry, and the result has
    their common shape. Raises OcoError (OCO3xx) where they do not fit.
    """

def power(x: Operand, /, p: Operand) -> Term:
    """`power(x, p)`: x to the power p.

    Arguments are expressions, numbers or arrays, whose shapes broadcast: it acts entry by entry, and the result has
    their common shape. Raises OcoError (OCO3xx) where they do not fit.
    """

def prev(x: Operand, /) -> Term:
    """Decision x of the round before, of its shape; in round 1 the start. Raises OCO217 for other things."""

def quad_form(x: Operand, /, P: Operand) -> Term:
    """`quad_form(x, P)`: x.T @ P @ x.

    Arguments are expressions, numbers or arrays; [n] and [n, n] give a number. Raises OcoError (OCO3xx) where they
    do not fit.
    """

def range(a: Operand, /, b: Operand) -> Term:
    """`range(a, b)`: integers from a to b, both included.

    Arguments are expressions, numbers or arrays. Raises OcoError (OCO3xx) where they do not fit.
    """

def rel_entr(x: Operand, /, y: Operand) -> Term:
    """`rel_entr(x, y)`: x * log(x / y).

    Arguments are expressions, numbers or arrays, whose shapes broadcast: it acts entry by entry, and the result has
    their common shape. Raises OcoError (OCO3xx) where they do not fit.
    """

def repeat(v: Operand, /, k: Operand) -> Term:
    """`repeat(v, k)`: each entry of v, k times.

    Arguments are expressions, numbers or arrays. Raises OcoError (OCO3xx) where they do not fit.
    """

def season(x: Operand, /, number: Operand) -> Term:
    """Value of a stream so many rounds before, of its shape, `season(price, 24)`, for `m.predict`. Raises OCO220 for
    other arguments."""

def sigma_max(x: Operand, /) -> Term:
    """`sigma_max(x)`: the largest singular value.

    Arguments are expressions, numbers or arrays; [m, n] gives a number. Raises OcoError (OCO3xx) where they do not
    fit.
    """

def simplex(s: Operand = ...) -> Domain:
    """`simplex(s)`: x >= 0 with sum s (1 unless given).

    Arguments are numbers, arrays or params. Raises OCO403 for their number, and OCO412 where a decision of another
    shape takes it.
    """

def spectrahedron(trace: Operand) -> Domain:
    """`spectrahedron(trace)`: symmetric positive semidefinite matrices of this trace.

    Arguments are numbers, arrays or params. Raises OCO403 for their number, and OCO412 where a decision of another
    shape takes it.
    """

def sqrt(x: Operand, /) -> Term:
    """`sqrt(x)`: the square root.

    Arguments are expressions, numbers or arrays, whose shapes broadcast: it acts entry by entry, and the result has
    their common shape. Raises OcoError (OCO3xx) where they do not fit.
    """

def square(x: Operand, /) -> Term:
    """`square(x)`: x squared.

    Arguments are expressions, numbers or arrays, whose shapes broadcast: it acts entry by entry, and the result has
    their common shape. Raises OcoError (OCO3xx) where they do not fit.
    """

def sum(x: Operand, /, *, axis: int | None = ..., over: Term | str | None = ..., by: Term | None = ...) -> Term:
    """`sum(x, axis = None, over = None, by = None)`: the sum.

    Arguments are expressions, numbers or arrays; the result is a number, or an array of the axes that are left.
    Raises OcoError (OCO3xx) where they do not fit.
    """

def sum_squares(x: Operand, /) -> Term:
    """`sum_squares(x)`: the sum of squares.

    Arguments are expressions, numbers or arrays; [n] gives a number, [m, n] gives a number. Raises OcoError
    (OCO3xx) where they do not fit.
    """

def trace(x: Operand, /) -> Term:
    """`trace(x)`: the sum of the diagonal.

    Arguments are expressions, numbers or arrays; [n, n] gives a number. Raises OcoError (OCO3xx) where they do not
    fit.
    """

def uniform(lo: Operand, hi: Operand) -> DistributionTerm:
    """`uniform(lo, hi)`: any number in [lo, hi], all alike.

    Arguments are numbers, arrays or params that broadcast to the shape of the stream. Raises OCO421 for their
    number, and OCO422 where a stream of another shape takes it.
    """

def zeros(*shape: Operand) -> Term:
    """`zeros(*shape)`: an array of zeros; the arguments are its shape.

    Arguments are expressions, numbers or arrays. Raises OcoError (OCO3xx) where they do not fit.
    """
