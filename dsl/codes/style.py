"""Style and likely mistakes, which `oco lint` warns of (OCO63x)."""

from __future__ import annotations

from oco.dsl.codes.base import Code, Stage

_HEAD = "model m\nhorizon T = 1000\ndecision x[3] in box(0, 1)\nstream c[3] in [-1, 1]\n"

STYLE: dict[str, Code] = {
    "OCO630": Code(
        "a name that nothing uses",
        "The param, index or let stands in no other statement, so that a reader looks for a part that it has not.",
        _HEAD + "param limit = 2\nminimize c @ x\n",
        "Use it, or leave it out: `oco lint --fix` does. A param whose value comes from outside is left to you.",
        Stage.LINT,
    ),
    "OCO631": Code(
        "a sum that could be a vector",
        "The terms are one expression of the entries of arrays, written out for one index after another. Written once, over the whole "
        "arrays, it is shorter, and right for another length as well.",
        _HEAD + "minimize c[0] * x[0] + c[1] * x[1] + c[2] * x[2]\n",
        "Write a product `c @ x`, or `sum(...)` of the expression over the arrays: `oco lint --fix` does.",
        Stage.LINT,
    ),
    "OCO632": Code(
        "constraints that could be a vector",
        "The constraints are one comparison of the entries of arrays, written out for one index after another. One constraint over the "
        "whole arrays says as much: it holds entry by entry, and facts and violations are shown by entry.",
        _HEAD + "minimize c @ x\nsubject to\n"
        "    a: x[0] <= c[0] + 1   each round\n    b: x[1] <= c[1] + 1   each round\n    d: x[2] <= c[2] + 1   each round\n",
        "Write one constraint over the arrays; its label takes the place of those that are left out, also in `assume`.",
        Stage.LINT,
    ),
    "OCO633": Code(
        "a constraint that repeats another",
        "Both sides, the relation and the time at which it holds are those of an earlier constraint: one of them adds nothing, or was "
        "meant to say another thing.",
        _HEAD + "minimize c @ x\nsubject to\n    a: c @ x <= 1   each round\n    b: c @ x <= 1   each round\n",
        "Leave one of them out, or correct it.",
        Stage.LINT,
    ),
    "OCO634": Code(
        "units that look mixed",
        "In one sum the largest value of a term is more than a million times that of another, over the ranges that the model states. "
        "Often one of them is in other units: watts beside megawatts, cents beside millions. A coefficient below 1 or a power of ten "
        "says that the difference is meant, as of a small regularizer, a large penalty or a conversion.",
        _HEAD + "stream megawatts in [0, 5]\ndecision watts in box(0, 5e7)\nminimize c @ x + abs(watts - megawatts)\n",
        "Write both in the same units, or the conversion as a coefficient: `megawatts - 1e-6 * watts`.",
        Stage.LINT,
    ),
    "OCO635": Code(
        "a horizon too short for every guarantee",
        "What each algorithm that applies promises up to the horizon holds of every sequence of decisions, while at a horizon that is not "
        "much longer one of them says something.",
        "model m\nhorizon T = 3\ndecision x[3] in box(0, 1)\nstream c[3] in [-1, 1]\nminimize c @ x\n"
        "subject to\n    cap: c @ x <= 0.5   each round\n",
        "Give the number of rounds that the learner is to run, or `horizon T unknown`.",
        Stage.LINT,
    ),
    "OCO636": Code(
        "a constraint that is never near its limit",
        "At the best fixed decision of the data, and at the best decision of each round, the constraint keeps more than a hundredth of its "
        "range to spare in every round. The best decisions are the same without it.",
        "oco lint model.oco --data prices.csv",
        "Look at its right side and its units. If it guards against rounds that are not in the data, `# oco: ignore OCO636` on its line.",
        Stage.COMMAND,
    ),
}
"""Codes that `oco lint` adds to the warnings of the checker."""
