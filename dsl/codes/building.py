"""Constraints and objectives without decisions, the builder's own mistakes (OCO52x), assumptions (OCO65x) and `using` (OCO70x)."""

from __future__ import annotations

from oco.dsl.codes.base import Code, Stage

_HEAD = "model m\nhorizon T = 10\ndecision x[3] in box(0, 1)\nstream c[3] in [-1, 1]\n"
_BUILDER = 'm = oco.Model("m", horizon=10)\nx = m.decision("x", 3, domain=oco.box(0, 1))\n'


BUILDING: dict[str, Code] = {
    "OCO520": Code(
        "a constraint without a decision",
        "Whether it holds does not depend on what is decided.",
        _HEAD + "minimize c @ x\nsubject to\n    cap: c <= 1\n",
        "Use a decision in it; what is known about a stream is said in its range: `stream c[3] in [lo, hi]`.",
    ),
    "OCO521": Code(
        "an objective without a decision",
        "Every decision would cost the same.",
        _HEAD + "minimize sum(c)\n",
        "Use a decision in the objective. Where it only moves states that cost in later rounds, say what it costs itself, 0.001 * start.",
    ),
    "OCO539": Code(
        "a decision that cannot be rounded",
        "A decision of 0 and 1 is drawn among the extreme points of its set, with the fractional decision as its mean. That costs nothing "
        "on average where the loss is linear, constraints beside the set are linear and hold on average, and the set has no other extreme "
        "points: boxes, of which one row may limit the number of ones, simplices, capped simplices, flows, the Birkhoff polytope.",
        _HEAD.replace("box(0, 1)", "{0, 1}") + "minimize sum_squares(x) + c @ x\n",
        "State a linear loss, write constraints of each round into the set, or leave `rounded` out and round the decisions yourself.",
        Stage.CHECK,
    ),
    "OCO529": Code(
        "a state that cannot be",
        "`state s = EXPR in [lo, hi] start v` is what a round leaves to the next: v lies in the range, EXPR has the shape of s, and the "
        "feedback is full, since EXPR may use everything that the round reveals, and constraints that are known before the decision "
        "keep the range.",
        _HEAD + "state s = s + x[0] in [0, 4] start 5\nminimize c @ x\n",
        "Start within the range, and give both sides one shape.",
    ),
    "OCO528": Code(
        "a share of the rounds that cannot be kept",
        "`in 99% of rounds` says that a constraint may be broken in 1% of them. A margin is learned for it, so it is an inequality "
        "under full feedback, and the streams that come after the decision have bounds: some margin is then enough.",
        _HEAD + "minimize c @ x\nsubject to\n    cap: sum(x) + c[0] <= 1  in 100% of rounds\n",
        "Bound the streams; or write `each round`, perhaps with a penalty.",
    ),
    "OCO750": Code(
        "a total that cannot be kept",
        "`spend: c @ x <= B in total` says that the costs of all rounds together are at most B, whatever comes. So costs are never "
        "negative, some decision costs nothing in every round and breaks no constraint that is known before it, data that come after the "
        "decision have a worst value, B and the number of rounds are known, and the feedback is full.",
        _HEAD + "minimize c @ x\nsubject to\n    spend: c @ x <= 5  in total\n",
        "Bound the streams of the cost from below by 0, or make them a `context`; or write `on average`.",
        Stage.CHECK,
    ),
    "OCO527": Code(
        "a penalty that is no price",
        "A penalty is the loss that a unit of violation of its constraint is worth: one positive number, or one for each entry.",
        _HEAD + "minimize c @ x\nsubject to\n    cap: sum(x) <= 1  each round, penalty 0\n",
        "Write a positive number in units of the loss, `penalty 50` say, or leave it out: `--tradeoff` then says what violations count.",
        Stage.CHECK,
    ),
    "OCO540": Code(
        "what cannot stand beside delayed feedback",
        "`feedback full delayed 3` says that the data of a round come by the end of the third round after it. Four learners take turns, so "
        "that none decides before it knows its last round. The number of rounds is known before the first one. States that streams move "
        "are known late, and are expected from averages of these: none is expected where a stream picks entries of what moves it.",
        "model m\nhorizon T = 100\nparam w[2] = [1, 2]\ndecision x[2] in box(0, 1)\nstream k in 0..1\n"
        "state s = 0.5 * s + w[k] in [0, 9] start 4\nminimize s * sum(x)\nfeedback full delayed 3\n",
        "Leave one of both out, or give what is known by then as a `context`: `context s in [0, 9]` for the value that is read off, or an "
        "estimate.",
        Stage.CHECK,
    ),
    "OCO530": Code(
        "a name that is not there",
        "The object has no such attribute. Names of CVXPY and other modelers are known, and the hint is the line to write here.",
        "oco.Variable(3)",
        "`dir(oco)`, `dir(m)` and `dir(plan)` list what there is.",
        Stage.BUILDER,
    ),
    "OCO522": Code(
        "a comparison that is no constraint",
        "Constraints are `<=`, `>=` and `==`. The boundary belongs to the set, so `<` and `>` are not among them.",
        _BUILDER + "m.subject_to(x < 1)\n",
        "Write `<=` or `>=`.",
        Stage.BUILDER,
    ),
    "OCO523": Code(
        "a constraint or an expression used as a truth value",
        "Python's `and`, `or`, `if` and chains such as `0 <= x <= 1` ask whether a comparison is true. That is not known while a model "
        "is written.",
        _BUILDER + "m.subject_to(0 <= x <= 1)\n",
        "Give each comparison to `subject_to` by itself.",
        Stage.BUILDER,
    ),
    "OCO524": Code(
        "something that cannot stand in an expression",
        "Expressions are made of the model's names, finite numbers, arrays of them, and the functions of oco.",
        _BUILDER + 'm.minimize(x @ ["a", "b", "c"])\n',
        "Use arrays of numbers, and `oco.log` in place of `np.log`.",
        Stage.BUILDER,
    ),
    "OCO525": Code(
        "names of two models in one expression",
        "A decision, stream or param belongs to the model that declared it.",
        _BUILDER + 'other = oco.Model("other", horizon=10)\nother.minimize(oco.sum(x))\n',
        "Declare what the expression needs in one model. In a notebook, run again all cells that use a model that was made anew.",
        Stage.BUILDER,
    ),
    "OCO526": Code(
        "an argument of the wrong type",
        "Names are text, domains and distributions come from oco's functions, bounds are pairs.",
        _BUILDER + 'm.stream("c", bounds=5)\n',
        "Give an argument of the kind that the message names: a text, a pair, a comparison, `oco.box(0, 1)`.",
        Stage.BUILDER,
    ),
    "OCO640": Code(
        "an argument that a call does not take",
        "The function or method has no argument of this name, fewer than were given, or lacks one. Keywords of CVXPY and other modelers "
        "are known, and the hint is the line to write here.",
        _BUILDER + 'm.decision("y", 3, nonneg=True)\n',
        "`help(oco.Model.decision)`, `help(oco.compile)` list what a call takes.",
        Stage.BUILDER,
    ),
}

ASSUMING: dict[str, Code] = {
    "OCO651": Code(
        "there is no such fact",
        "The facts are {facts}; those of the loss stand under constraints.LABEL as well.",
        _HEAD + "minimize c @ x\nassume slater.margn >= 0.1\n",
        "Correct the key.",
    ),
    "OCO654": Code(
        "an assumed bound that is not one number",
        "A fact is bounded by one number, not by an array.",
        _HEAD + "minimize c @ x\nassume path_length <= [40]\n",
        "Write one number: its largest entry, if it is an upper bound.",
        Stage.CHECK,
    ),
    "OCO652": Code(
        "a fact assumed twice",
        "One bound on a fact is of use.",
        _HEAD + "minimize c @ x\nassume path_length <= 40\nassume path_length <= 50\n",
        "Keep the one that you are sure of.",
    ),
    "OCO653": Code(
        "a bound in the direction that is of no use",
        "Theorems need upper bounds on sizes, Lipschitz constants and variations, and lower bounds on margins, inner radii and strong "
        "convexity.",
        _HEAD + "minimize c @ x\nassume loss.bound >= 3\n",
        "Turn the relation round.",
    ),
}

USING: dict[str, Code] = {
    "OCO701": Code(
        "there is no such algorithm",
        "`oco algorithms` lists the algorithms with what they need and what they promise.",
        _HEAD + "minimize c @ x\nsubject to\n    cap: c @ x <= 1 each round\nusing colq\n",
        "Correct the name, or leave the statement out: then `oco explain` says which one is chosen.",
    ),
    "OCO702": Code(
        "the algorithm has no such setting",
        "Settings have the names of the letters in the paper of the algorithm.",
        _HEAD + "minimize c @ x\nsubject to\n    cap: c @ x <= 1 each round\nusing coldq with step = 0.1\n",
        "Take one of the settings that the message lists.",
    ),
}
