"""Names: what is declared, where and how often (OCO2xx)."""

from __future__ import annotations

from oco.dsl.codes.base import Code, Stage


def _model(body: str) -> str:
    """Model with `body` after its horizon."""
    return f"model m\nhorizon T = 10\n{body}"


_REST = "decision x[3] in box(0, 1)\nstream c[3] in [-1, 1]\nminimize c @ x\n"

NAMES: dict[str, Code] = {
    "OCO201": Code(
        "a name is not declared",
        "Every name in an expression is a param, a decision, a stream or an abbreviation that stands above it in the file, or `t`, the "
        "round.",
        _model(_REST + "subject to\n    cap: x <= limit\n"),
        "Correct the spelling, or declare the name: `param limit = ...` for fixed data, `stream limit in [lo, hi]` for data of each round.",
    ),
    "OCO202": Code(
        "there is no such function",
        "Functions have the names that CVXPY gives them: sum, log, norm2, sum_squares, quad_form, ... Domains, distributions and "
        "declared names "
        "are not functions.",
        _model(_REST + "subject to\n    cap: norm(x) <= 1\n"),
        "Take a function of the language, under CVXPY's name, or an operator: + - * / ** @.",
    ),
    "OCO203": Code(
        "a name is declared twice",
        "Params, decisions, streams and abbreviations share their names, so each name is declared once.",
        _model("param c = 2\n" + _REST),
        "Give one of the two another name.",
    ),
    "OCO204": Code(
        "a name is used before it is declared",
        "A model is read from the top, so that what a line means never depends on what follows it.",
        _model("let double = 2 * c\n" + _REST),
        "Move the declaration above the line that uses it.",
    ),
    "OCO205": Code(
        "a name is reserved",
        "`t` is the round and `T` the horizon; words that begin a statement and `prev` are reserved; and a stream or a label is not "
        "called round, loss, gradient, constraints or constraint_gradients, since `observe(...)` uses these words.",
        _model("stream loss in [0, 1]\n" + _REST),
        "Choose another name.",
    ),
    "OCO206": Code(
        "an abbreviation is defined by itself",
        "`let` gives a name to an expression of names that are declared before it.",
        _model(_REST.replace("minimize", "let total = total + sum(c)\nminimize")),
        "Use another name for the part that is meant.",
    ),
    "OCO207": Code(
        "a statement is missing",
        "A model has a name, a horizon, at least one decision, and something to minimize.",
        "model m\n" + _REST,
        "Add the statement that the message names.",
    ),
    "OCO208": Code(
        "a statement stands twice",
        "The name, the horizon, the objective, the measure, the feedback and the algorithm of a model are said once.",
        _model(_REST + "minimize sum(x)\n"),
        "Keep one of the two; several losses are added up in one expression.",
    ),
    "OCO209": Code(
        "two constraints have the same label",
        "Traces, facts and assumptions name a constraint by its label.",
        _model(_REST + "subject to\n    cap: sum(x) <= 2\n    cap: x[0] <= 0.5\n"),
        "Give one of them another label.",
    ),
    "OCO210": Code(
        "no such regret or feedback",
        "Regret is static or dynamic; feedback is full, gradient, two_point or bandit.",
        'm = oco.Model("m", horizon=10)\nm.measure("adaptive")\n',
        "Take one of the words.",
        Stage.BUILDER,
    ),
    "OCO211": Code(
        "a value is given for a param that is not there",
        "The values given with `--param name=...` or `params={...}` are for params that the model declares.",
        'oco.parse(text, params={"limt": 3})\n',
        "Correct the name; the message lists the params of the model.",
        Stage.RUN,
    ),
    "OCO212": Code(
        "an unknown horizon stands in an expression",
        "`T` is the number of rounds: that of `horizon T = ...`, or of the data that a model is compiled for. With `horizon T unknown` it "
        "has no value. The formulas after `using ... with` may use T all the same.",
        _model(_REST + "subject to\n    cap: sum(x) <= 100 / T\n").replace("T = 10\n", "T unknown\n"),
        "State the horizon, `horizon T = 1000` say; or declare a param and use it in place of T.",
        Stage.CHECK,
    ),
    "OCO213": Code(
        "this cannot stand in an expression",
        "A function needs its arguments in parentheses; a file is read as the value of a param, and only there; a fact has no value in "
        "a model.",
        _model('param a[3] = 2 * file("a.csv")\n' + _REST),
        "Write the function with its arguments; give the file to a param of its own.",
    ),
    "OCO214": Code(
        "a constraint above `subject to`",
        "Constraints are labelled lines that follow the line `subject to`.",
        _model(_REST + "cap: sum(x) <= 2\n"),
        "Write `subject to` on a line of its own above the constraints.",
    ),
    "OCO216": Code(
        "a param has no value",
        "A param without a value in the file gets one when the model is checked or compiled; shapes, domains and facts depend on it.",
        _model("param k in 1..9\n" + _REST + "subject to\n    cap: sum(x) <= k\n"),
        'Give one: `--param k=3` on the command line, `params={"k": 3}` in Python, or `param k = 3` in the file.',
        Stage.CHECK,
    ),
    "OCO219": Code(
        "nothing is predicted of this",
        "`predict` states what a decision may assume of a stream before its round, one line a stream; contexts and states are known "
        "then, and of a context the rounds to come alone are predicted, by `ahead`.",
        _model(_REST.replace("minimize", "predict x = 2\nminimize")),
        "Name a stream that has no prediction yet, and give the prediction its shape, or one number.",
    ),
    "OCO220": Code(
        "this is not known before the round",
        "A prediction is made of contexts, states, `prev(x)`, fixed data, the round, and statistics of streams over the rounds before: "
        "`last(price)`, `mean(price, 24)`, `ewma(price, 0.1)`, `season(price, 24)`. Of rounds to come it is made by `ahead(next_price)`, "
        "for a context whose first axis has an entry for the round and one for each later one.",
        _model(_REST.replace("minimize", "predict c = 2 * c\nminimize")),
        "Write `last(c)` for the value of the round before, or another statistic.",
    ),
    "OCO218": Code(
        "this is no list of names",
        "An index names the entries of the axes that it gives the length of: words, whole numbers, or texts in quotes, each once, or the "
        "column of a csv file.",
        _model("index zone = [NYC, WEST, NYC]\n" + _REST),
        'Write `index zone = [NYC, WEST]`, or `index zone = file("zones.csv", column = "name")`.',
    ),
    "OCO554": Code(
        "a family that is no constraint of arrays",
        "`cap[z in zone]: sum(x[plant in at[z]]) <= limit[z]` is one constraint with an entry for each name of the index `zone`. "
        "What depends on z is a number for each z: an entry `limit[z]`, a sum of the entries that a param chooses (`param at[plant] in "
        "zone`), and what is made of them entry by entry.",
        _model("index zone = [NYC, WEST]\n" + _REST + "subject to\n    cap[z in zone]: sum(x) <= 2\n"),
        "Write it with arrays: `cap: sum(x, by = at) <= limit`.",
    ),
    "OCO217": Code(
        "the previous decision cannot stand here",
        "`prev(x)` is the decision x of the round before. It stands in the loss, where feedback is full, as `norm1(x - prev(x))`, and in "
        "constraints each round that are made of contexts and fixed data besides: these are met exactly, as `p - prev(p) <= ramp` or "
        "`norm2(p - prev(p)) <= reach`. A length stands alone on its side.",
        _model(_REST + "subject to\n    calm: sum(x - prev(x)) <= 1  on average\n"),
        "Take `prev` out of other constraints; write `norm2(x - prev(x)) <= r`, one length a constraint, each round.",
        Stage.CHECK,
    ),
}
