"""Curvature and constraints (OCO5xx)."""

from __future__ import annotations

from oco.dsl.codes.base import Code, Stage

_HEAD = "model m\nhorizon T = 10\ndecision x[3] in box(0, 1)\nstream c[3] in [-1, 1]\n"

CONSTRAINTS: dict[str, Code] = {
    "OCO501": Code(
        "the loss is not convex",
        "What is minimized must be convex in the decisions for every value of the streams. The message names the part that is not, and two "
        "decisions between which the loss bulges upwards.",
        _HEAD + "minimize log(1 + sum(x))\n",
        "Put a minus before what should be large; give the sign of a stream in its range, as in `stream q in [0, 1]`; make one factor of a "
        "product a param or a stream.",
        Stage.CHECK,
    ),
    "OCO502": Code(
        "a constraint is not convex",
        "In `left <= right` the difference left - right must be convex in the decisions, in `left >= right` "
        "it must be concave: only then is "
        "the set of decisions that satisfy it convex.",
        _HEAD + "minimize c @ x\nsubject to\n    far: sum_squares(x) >= 0.5\n",
        "Turn the relation round, or write the constraint over an affine expression.",
        Stage.CHECK,
    ),
    "OCO503": Code(
        "an equality is not affine",
        "Both sides of `==` must be affine in the decisions for every value of the streams; a curved "
        "equality has no convex set of solutions.",
        _HEAD + "minimize c @ x\nsubject to\n    ring: sum_squares(x) == 0.5\n",
        "State the inequality that matters, or write the equality over affine expressions.",
        Stage.CHECK,
    ),
    "OCO504": Code(
        "an expression may be undefined",
        "A logarithm, a root, a quotient or a power gets an argument for which it has no value, at some decision in the domain and some "
        "value of the streams.",
        _HEAD + "minimize -sum(log(x))\n",
        "Narrow the domain or the range of the stream, or shift the argument: `log(0.01 + x)`.",
        Stage.CHECK,
    ),
}
