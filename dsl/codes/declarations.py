"""Fixed data, ranges and shapes of declarations (OCO32x), domains (OCO40x, 41x) and distributions (OCO42x)."""

from __future__ import annotations

from oco.dsl.codes.base import Code, Stage


def _model(*lines: str) -> str:
    """Model with these declarations after its horizon; one without a decision gets one, and an objective."""
    body = list(lines)
    if not any(line.startswith("decision") for line in lines):
        body.append("decision x[3] in box(0, 1)")
    return "\n".join(["model m", "horizon T = 10", *body, "stream cost in [-1, 1]", "minimize cost * sum(x)", ""])


FIXED: dict[str, Code] = {
    "OCO320": Code(
        "this must be known before the first round",
        "Shapes, ranges, horizons, the values of params and the arguments of domains and distributions are made of numbers and params. "
        "Streams and decisions have other values in each round.",
        _model("stream size in [1, 2]", "decision x[3] in ball(size)"),
        "Use numbers and params; give a value that other declarations need to a param.",
    ),
    "OCO321": Code(
        "the value of a param has another shape",
        "A param's value has the shape that is declared. A single number fills an array of any shape.",
        _model("param a[3] = [1, 2]"),
        "Correct the shape or the value; a file holds as many rows and columns as the shape says.",
    ),
    "OCO322": Code(
        "a range or a mean has another shape",
        "The ends of a range, and a mean, are single numbers or arrays that fill the shape of what they belong to.",
        _model("stream a[3] in [0, [1, 2]]"),
        "Give one number for all entries, or one for each.",
    ),
    "OCO553": Code(
        "names of entries in a range that is no index",
        "`param at[plant] in zone = [NYC, WEST]` has the name of an entry of `zone` for each plant. Names mean something in the range of "
        "an index alone.",
        "m = oco.Model('m', horizon=10)\nm.param('at', 2, ['NYC', 'WEST'], bounds=(0, 1), integer=True)\n",
        "Give the range as an index, `param at[plant] in zone`, or the values as numbers.",
        Stage.BUILDER,
    ),
    "OCO323": Code(
        "the horizon is not a number of rounds",
        "A horizon is an integer from 1 to 10^12, or `unknown`.",
        "model m\nhorizon T = 0.5\ndecision x in box(0, 1)\nstream c in [-1, 1]\nminimize c * x\n",
        "Give the number of rounds, or write `horizon T unknown`.",
    ),
    "OCO324": Code(
        "the objective is not one number",
        "What is minimized is one number each round.",
        "model m\nhorizon T = 10\ndecision x[3] in box(0, 1)\nstream c[3] in [-1, 1]\nminimize c * x\n",
        "Add the entries up with `sum(...)`, or write `c @ x` for an inner product.",
    ),
    "OCO325": Code(
        "`..` used as an index",
        "`0..4` holds both ends, a slice leaves out its end; an index that could be read both ways is refused.",
        _model("decision x[5] in box(0, 1)", "let first = x[0..2]"),
        "Write a slice: `x[0:3]`. For entries in some order declare a param of integers, and index with it.",
    ),
    "OCO326": Code(
        "a remainder of a number that is not whole",
        "`t % 24` is the remainder of integers, from 0 to 23: the hour of a round, say.",
        _model("decision x in box(0, 1)", "stream c in [-1, 1]", "let left = c % 2"),
        "Use integers: the round `t`, params and streams `in 0..k-1`. Write a share as a number: `0.05`.",
    ),
}

SPECS: dict[str, Code] = {
    "OCO401": Code(
        "there is no such domain",
        "A decision lies in one of the named sets: {domains}.",
        _model("decision x[3] in cube(1)"),
        "Take the nearest set; a box with wide bounds where there is no natural one.",
    ),
    "OCO402": Code(
        "there is no such distribution",
        "A stream follows one of the named distributions: {distributions}.",
        _model("stream a ~ gaussian(0, 1)"),
        "Take the nearest distribution, or say `iid` for an unknown one.",
    ),
    "OCO403": Code(
        "a domain has other arguments",
        "Each domain has its own arguments, given in order or by name: box(lo, hi), ball(r), budget(lo, hi, total), ...",
        _model("decision x[3] in box(1)"),
        "Give the arguments that the message names.",
    ),
    "OCO410": Code(
        "a domain holds no decision",
        "A lower bound stands above its upper bound, or no decision has the total that is asked for.",
        _model("decision x[3] in box(1, 0)"),
        "Exchange the bounds, or correct the total.",
    ),
    "OCO411": Code(
        "a size that is not positive",
        "Radii, totals and traces are above 0.",
        _model("decision x[3] in ball(-1)"),
        "Correct the number.",
    ),
    "OCO412": Code(
        "an argument of a domain has another shape",
        "Bounds are numbers or arrays of the decision's shape; radii and totals are numbers; the matrix of a polytope has a column for "
        "each entry "
        "of the decision.",
        _model("decision x[3] in box([0, 0], 1)"),
        "Give one number for all entries, or an array of the decision's shape.",
    ),
    "OCO414": Code(
        "the domain is for decisions of another shape",
        "Simplices need several entries, nuclear_ball a matrix, spectrahedron and birkhoff a square matrix, polytope and ellipsoid a "
        "vector.",
        _model("decision x[3] in nuclear_ball(1)"),
        "Change the decision's shape or take another domain.",
    ),
    "OCO415": Code(
        "the matrix or the groups of a domain are wrong",
        "The matrix of an ellipsoid is symmetric and positive definite; groups are numbered with integers from 0 on.",
        _model("param P[3, 3] = -eye(3)", "decision x[3] in ellipsoid(P)"),
        "Correct the matrix or the numbers.",
    ),
    "OCO421": Code(
        "a distribution has other arguments",
        "Each distribution has its own arguments; the mean of pareto and gamma is given by its name: pareto(3, mean = 8).",
        _model("stream a ~ pareto(3)"),
        "Give the arguments that the message names.",
    ),
    "OCO422": Code(
        "an argument of a distribution has another shape",
        "Arguments are numbers or arrays of the stream's shape; categorical takes one vector of probabilities.",
        _model("stream a[3] ~ normal([0, 0], 1)"),
        "Give one number for all entries, or one for each.",
    ),
    "OCO423": Code(
        "an argument of a distribution is out of range",
        "Standard deviations, means of counts and shapes are positive; probabilities lie between 0 and 1 and add up to 1; a pareto "
        "with a mean has a shape above 1; `lo` is below `hi`.",
        _model("stream a ~ normal(0, -1)"),
        "Correct the argument.",
    ),
    "OCO424": Code(
        "an empty range",
        "The least value of a range stands first and is not above the greatest.",
        _model("stream a in [1, 0]"),
        "Exchange the two ends.",
    ),
    "OCO425": Code(
        "integers from a distribution of real numbers",
        "A stream `in 0..k-1` takes integers: poisson, binomial, bernoulli and categorical give them, and normal or uniform do not.",
        _model("stream a ~ uniform(0, 5) in 0..5"),
        "Write `in [lo, hi]`, or take a distribution of integers.",
    ),
    "OCO426": Code(
        "a distribution never falls within the range",
        "With both a distribution and a range, values outside the range are never drawn; here that leaves nothing.",
        _model("stream a ~ uniform(0, 1) in [2, 3]"),
        "Widen the range, or correct the distribution.",
    ),
    "OCO427": Code(
        "iid said where it does not belong",
        "`iid` is for a distribution that is unknown; `mean = ...` follows `iid`. A stream with a distribution is iid already, and takes "
        "the values of the distribution.",
        _model("stream a iid ~ uniform(0, 1)"),
        "Leave out `iid`, or leave out the distribution.",
    ),
    "OCO428": Code(
        "a mean outside the range",
        "The mean of a stream lies between its bounds.",
        _model("stream a in [0, 1] iid mean = 2"),
        "Correct the mean or the bounds.",
    ),
}
