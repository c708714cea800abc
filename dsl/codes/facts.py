"""Facts: warnings (OCO60x, OCO61x) and contradictions (OCO62x). What `assume` may say is in `building.py`."""

from __future__ import annotations

from oco.dsl.codes.base import Code, Stage

_HEAD = "model m\nhorizon T = 10\ndecision x[3] in box(0, 1)\nstream c[3] in [-1, 1]\n"

_SHORT = _HEAD.replace("10", "3") + "minimize c @ x\nsubject to\n    cap: c @ x <= 0.5   each round\n"

FACTS: dict[str, Code] = {
    "OCO601": Code(
        "an equality follows from the others",
        "In the mean one row of the equalities is a combination of the others and of what the domain says. Its multiplier can then grow "
        "without bound along with theirs, so it is left out where a theorem needs bounded multipliers.",
        _HEAD + "minimize c @ x\nsubject to\n    one: sum(x) == 1\n    two: 2 * sum(x) == 2\n",
        "Nothing needs to be done; to silence the warning, leave the row out.",
        Stage.CHECK,
    ),
    "OCO617": Code(
        "a state that decisions move is no store",
        "What a round leaves in a store has a value to learners: they fill it where that is cheap and empty it where it is dear. Decisions "
        "move this state, and the loss or a constraint is on its level, but it has no form of a store, so that each round is decided as "
        "if nothing were left to the next. The message says why: a term that is not linear in the level and the decisions, a factor of "
        "levels that changes with data, or one of decisions of which no range gives the sign, a lower end that nothing keeps, a constraint "
        "with which data ask for another level in every round.",
        "model m\nhorizon T = 100\ndecision order in box(0, 80)\nstream sales in [0, 60]\n"
        "state stock = stock + order - 0.01 * stock * order - sales in [0, 200] start 40\n"
        "minimize 2 * order + 12 * pos(sales - stock - order)\n",
        "Write what follows the state as a sum of its level, of entries of decisions and of data, with fixed factors (those of "
        "levels may be tables by the round, those of decisions data of one sign), and let a price of what is missing or a constraint "
        "keep its lower end: the table at `state` in the language reference has the forms. Where no round "
        "need care for what it leaves, `# allow OCO617` at the end of the line silences the warning.",
        Stage.CHECK,
    ),
    "OCO602": Code(
        "it is not known whether a function is convex",
        "Neither a proof nor a counterexample was found. Theorems that need convexity do not apply.",
        _HEAD + "minimize c @ x + sqrt(sum(exp(x))) * sum(exp(x))\n",
        "Write it with the atoms of disciplined convex programming, whose curvature is known.",
        Stage.CHECK,
    ),
    "OCO603": Code(
        "a stream or a state is not used",
        "It stands in no loss and no constraint, so what it is changes nothing. The range of a state is kept by itself only where "
        "decisions and contexts alone move the state; where streams move it too, its range cuts it.",
        _HEAD + "stream d in [0, 1]\nminimize c @ x\n",
        "Use it, or leave it out: a state in a constraint that keeps its range, say, or in the loss. `# allow OCO603` at the end of its "
        "line silences the warning.",
        Stage.CHECK,
    ),
    "OCO604": Code(
        "a constraint never binds",
        "It holds for every decision in the domain and every value of the streams, so it changes nothing: it is slack everywhere, or says "
        "what the domain says already.",
        _HEAD + "minimize c @ x\nsubject to\n    cap: c @ x <= 4\n",
        "Check the right side and the ranges; `# allow OCO604` at the end of its line silences the warning.",
        Stage.CHECK,
    ),
    "OCO605": Code(
        "the constraints cannot hold together",
        "No decision in the domain satisfies these constraints, each round or in the mean as the message says. A learner can still run, "
        "and its violation grows with the rounds. Constraints in a share of the rounds take smaller margins where there is no room for "
        "theirs, and keep the share in the long run only if rounds to come are like those that came.",
        _HEAD
        + "minimize c @ x\nsubject to\n    low: norm2(x) <= 0.1   each round\n    high: sum(sqrt(x)) >= 2   each round\n",
        "Relax one of the constraints that are named; the message gives the smallest change that fixes it.",
        Stage.CHECK,
    ),
    "OCO606": Code(
        "a range far wider than the data",
        "Constants, and with them step sizes and guarantees, are worked out for every value in the declared range. A range much wider than "
        "what occurs makes them needlessly cautious.",
        "oco check model.oco --data prices.csv",
        "Narrow the range to what you are sure of.",
        Stage.COMMAND,
    ),
    "OCO607": Code(
        "a few rounds that inflate a constant",
        "Half a percent of the rounds or fewer make the Lipschitz constant of the loss much larger than it is without them.",
        "oco check model.oco --data prices.csv",
        "Look at these rounds. If they are mistakes, leave them out; if not, keep them: the guarantee must hold for them too.",
        Stage.COMMAND,
    ),
    "OCO608": Code(
        "a guarantee that says nothing at this horizon",
        "The number that the theorem promises is no less than the horizon times the largest loss range or violation of one round: every "
        "sequence of decisions satisfies it.",
        _SHORT,
        "Compare the algorithms with `oco explain`, narrow the ranges of the streams, or measure on data.",
        Stage.COMPILE,
    ),
    "OCO609": Code(
        "a horizon too short for the settings",
        "With the settings that are used, the guarantee begins to say something only at a longer horizon.",
        _SHORT,
        "The message names the horizon from which it does. Until then go by pilot runs: `oco tune`.",
        Stage.COMPILE,
    ),
    "OCO610": Code(
        "an assumption that says less than what is proved",
        "The compiler found a better bound by itself, so the assumption changes nothing.",
        _HEAD + "minimize c @ x\nassume loss.bound <= 100\n",
        "Leave it out.",
        Stage.CHECK,
    ),
    "OCO611": Code(
        "a fixed constraint that holds on average only",
        "No stream stands in the constraint, so that it could hold in every round; on average, which is what a constraint means unless it "
        "says `each round`, one round may break it and another make up for that.",
        _HEAD + "minimize c @ x\nsubject to\n    cap: sum(x) <= 2\n",
        "Write `each round` after it, or narrow the domain: `decision x[3] in box(0, 1) with sum(x) <= 2`. If the average is "
        "what is meant, `# allow OCO611` at the end of the line silences the warning.",
        Stage.CHECK,
    ),
    "OCO612": Code(
        "a fixed constraint that the first decisions may break",
        "No stream stands in the constraint, and it is affine in one decision, so that the domain could be cut by it. The algorithm of "
        "the plan meets it like those that the data reveals: its first decisions may break it. `hedged`, which decides on data unless "
        "another is named, keeps to it from the first round and gives no such warning.",
        _HEAD + "minimize c @ x\nsubject to\n    cap: sum(x) <= 2   each round\n",
        "Cut the domain: `decision x[3] in box(0, 1) with sum(x) <= 2`; projections onto the cut set cost more. Or take "
        "`using hedged`. If it is meant to be learnt, `# allow OCO612` at the end of the line silences the warning.",
        Stage.COMPILE,
    ),
    "OCO613": Code(
        "a function overflows",
        "At a decision of the domain and values of the streams that the model allows, the loss or a constraint, or the squared norm of its "
        "gradient, is beyond the largest number that a computer holds (1.8e308). Nothing then bounds it, and a learner that comes there "
        "cannot go on.",
        _HEAD + "minimize c @ x + sum(exp(1000 * x))\n",
        "Narrow the domain or the ranges of the streams, or write the function in units in which its values are of moderate size.",
        Stage.CHECK,
    ),
    "OCO614": Code(
        "entries of very different widths",
        "Entries of the decision have widths whose ratio is beyond 1e9. A step that has to balance them in one constraint adds up numbers "
        "of 16 digits, so it knows the narrow entries to few: to about 1e-7 of their width at a ratio of 1e10, 1e-5 at 1e12.",
        "model m\nhorizon T = 100\ndecision x[2] in box([0, 0], [1e-5, 1e5])\nstream c[2] in [0, 1]\nminimize c @ x\n"
        "subject to\n    q: c @ x <= 1 each round\n",
        "Write the decision in units in which all entries are of like size: `1e6 * x[0]` in place of `x[0]`.",
        Stage.CHECK,
    ),
    "OCO615": Code(
        "decisions come too late for a state",
        "A state is moved by another state that decisions fill, and by no decision itself: what is ordered today is on its way before it "
        "is in stock. Learners value an order by what is in stock and on its way where each state on the way hands on one entry of a "
        "decision, or of the state before, with a fixed factor, where its range has room for all of it, and where the loss has a fixed "
        "price of what is missing or of low levels and no constraint is on the stock. Else an order is all cost to them.",
        "model m\nhorizon T = 100\ndecision order in box(0, 80)\nstream sales in [0, 60]\nstate coming = order in [0, 50] start 20\n"
        "state stock = stock + coming - sales in [0, 200] start 40\nminimize 2 * order + 12 * pos(sales - stock - coming)\n",
        "Give the states on the way room (`state coming = order in [0, 80]`), and the loss a price of what is missing when the order has "
        "come, `12 * pos(sales - stock - coming)` where the next stock is `stock + coming - sales`. Else decide the level up to which is "
        "ordered, judged by the need until then as late feedback: `minimize 0.05 * pos(level - need) + 10 * pos(need - level)` and "
        "`feedback full delayed 2`.",
        Stage.CHECK,
    ),
    "OCO616": Code(
        "rounds to come that nothing looks ahead to",
        "The model predicts streams of rounds to come, by `ahead`. They count by the value of what a round leaves to them in a store, as "
        "in a battery or a stock: where there is none, or the algorithm values none, the entry of the round itself is all that counts.",
        "model m\nhorizon T = 100\ndecision x[2] in box(0, 1)\ncontext next[24, 2] in [-1, 1]\nstream c[2] in [-1, 1]\n"
        "predict c = ahead(next)\nminimize c @ x\n",
        "Predict the round alone: `predict c = next[0]`; or say what a round leaves to the next by a `state`, and let `hedged` value it.",
        Stage.COMPILE,
    ),
    "OCO620": Code(
        "an assumption contradicts the model",
        "What is assumed is better than what the compiler shows to be possible.",
        _HEAD + "minimize c @ x\nassume domain.diameter.l2 <= 0.1\n",
        "Correct the number, or the domain and the ranges of the streams.",
        Stage.CHECK,
    ),
    "OCO621": Code(
        "data outside a declared range",
        "A value in the data lies outside the range that the model declares for its stream; facts that were proved for the range do not "
        "cover it.",
        "oco check model.oco --data prices.csv",
        "Widen the range, or leave the round out.",
        Stage.COMMAND,
    ),
    "OCO622": Code(
        "data that contradicts an assumption",
        "What is assumed of a fact does not hold on the data.",
        "oco check model.oco --data prices.csv",
        "Correct the number, or look at the round that the message names.",
        Stage.COMMAND,
    ),
}
