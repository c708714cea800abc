"""Syntax: the text cannot be read (OCO1xx)."""

from __future__ import annotations

from oco.dsl.codes.base import Code, Stage


def _in_model(*lines: str) -> str:
    """Model with one decision around the lines of an example."""
    return "\n".join(("model example", "horizon T = 10", "decision x[2] in box(0, 1)", *lines)) + "\n"


SYNTAX: dict[str, Code] = {
    "OCO100": Code(
        "something else was expected",
        "The statement is understood up to the marked place, where something that does not fit follows. "
        "The message says what could stand there.",
        _in_model("minimize 2 x[0]"),
        "Write one of the things that the message lists.",
    ),
    "OCO101": Code(
        "a character that has no meaning",
        "Models are plain text: names of the letters a to z and A to Z, digits and `_`, and the signs of the keyboard. Typographic quotes, "
        "minus signs and comparison signs, and invisible characters often come from copying out of a document.",
        _in_model("minimize sum(x) − 1"),
        "Delete the character, or write the sign of the keyboard in its place.",
    ),
    "OCO102": Code(
        "a malformed number",
        "Numbers look like 12, 0.5 and 1e-3. A letter or a second point directly after a number is a mistake; so is a product without `*`.",
        _in_model("minimize 1.2.3 * sum(x)"),
        "Correct the number, or write the product with `*`.",
    ),
    "OCO103": Code(
        "a number that the computer cannot hold",
        "Integers have 64 bits, other numbers are double precision: between about 1e-308 and 1e308 in size.",
        _in_model("minimize 1e999 * sum(x)"),
        "Choose other units, in which the number is of ordinary size.",
    ),
    "OCO104": Code(
        "a string without an end",
        'A string, such as the name of a file, stands between two straight double quotes on one line: file("groups.csv").',
        _in_model('param a[2] = file("a.csv)', "minimize a @ x"),
        'Add the closing `"`.',
    ),
    "OCO105": Code(
        "a bracket that is never closed",
        "Every ( and [ needs its ) or ]. A line end inside brackets does not end the statement; reading goes on at the next line that can "
        "only be a new statement.",
        _in_model("minimize sum(x"),
        "Add the closing bracket.",
    ),
    "OCO106": Code(
        "a closing bracket without its opening one",
        "The marked bracket closes nothing, or closes a bracket of the other kind.",
        _in_model("minimize sum(x))"),
        "Delete it, or open it before; ( goes with ), [ with ].",
    ),
    "OCO107": Code(
        "an expression that nests too deep",
        "Brackets, operators and functions may stand inside each other 200 levels deep. A chain of operators counts a level an operator, "
        "but for sums of more than 64 terms, which count few.",
        _in_model(f"minimize {'(' * 201}sum(x){')' * 201}"),
        "Give parts of the expression names with `let`, or write a long sum over a vector as `sum(...)`.",
    ),
    "OCO108": Code(
        "a line that begins no statement",
        "Every statement begins with one of these words: model, horizon, index, param, decision, stream, context, state, let, minimize, "
        "maximize, subject to, measure, feedback, assume, using. A constraint begins with its label.",
        _in_model("minimise sum(x)"),
        "Begin the line with one of these words, or a constraint with its label and a colon.",
    ),
    "OCO109": Code(
        "a constraint without its label, or in the wrong place",
        "Constraints stand under the line `subject to`, each with a label by which facts and reports call it: `cap: sum(x) <= 1`.",
        _in_model("minimize sum(x)", "subject to", "    sum(x) >= 1"),
        "Write a name and a colon in front of the constraint.",
    ),
    "OCO110": Code(
        "a reserved word as a name",
        "The words that begin a statement are reserved: nothing can be called so. All other words of the language are free.",
        "model example\nhorizon T = 10\ndecision model in box(0, 1)\nminimize 0\n",
        "Choose another name.",
    ),
    "OCO111": Code(
        "a function as a name",
        "`prev` is the previous decision of what stands in parentheses after it, as `prev(x)`; nothing is called so.",
        _in_model("minimize sum(x - prev)"),
        "Choose another name, or write `prev(x)` for the previous decision x.",
    ),
    "OCO112": Code(
        "a comparison in the wrong place",
        "A comparison stands once in a constraint, between its two sides, and nowhere else. `0 <= f <= 1` is two constraints.",
        _in_model("minimize sum(x)", "subject to", "    cap: 0.5 <= sum(x) <= 1"),
        "Write two constraints with a label each. A range that every decision must lie in belongs into the domain: `in box(0, 1)`.",
    ),
    "OCO113": Code(
        "a comparison that the language does not have",
        "Constraints are `<=`, `>=` or `==`. A strict comparison would have no closed set of solutions; `!=` no convex one.",
        _in_model("minimize sum(x)", "subject to", "    cap: sum(x) < 1"),
        "Write `<=` or `>=`, with a margin if one is needed: `sum(x) <= 0.99`.",
    ),
    "OCO114": Code(
        "`=` and `==` mixed up",
        "`=` gives a name its value (param, let, horizon, options); `==` compares the two sides of an equality constraint.",
        _in_model("minimize sum(x)", "subject to", "    cap: sum(x) = 1"),
        "Write the other one.",
    ),
    "OCO115": Code(
        "a power written with another sign",
        "The power of x to 2 is written `x ** 2`.",
        _in_model("minimize sum(x ^ 2)"),
        "Write `**`, or `square(x)`.",
    ),
    "OCO117": Code(
        "unknown words at the end of a constraint",
        "A constraint ends in `each round` (no round makes up for another), `on average` (a round may make up for another; also when "
        "nothing is said), `in 99% of rounds` or `in total` (a budget for all rounds).",
        _in_model("minimize sum(x)", "subject to", "    cap: sum(x) <= 1    every round"),
        "Write `each round`, `on average`, `in 99% of rounds` or `in total`.",
    ),
    "OCO118": Code(
        "a constraint that compares nothing",
        "A constraint has two sides with `<=`, `>=` or `==` between them.",
        _in_model("minimize sum(x)", "subject to", "    cap: sum(x) - 1"),
        "Write what the expression is compared with, such as `<= 0`.",
    ),
    "OCO119": Code(
        "a declaration without `in`",
        "A decision lies `in` a domain; a stream lies `in` bounds or follows a distribution after `~`.",
        "model example\nhorizon T = 10\ndecision x[2] box(0, 1)\nminimize sum(x)\n",
        "Write `in` before the domain or the bounds, `~` before a distribution.",
    ),
    "OCO120": Code(
        "not bounds, a domain or a distribution",
        "A param or a stream lies `in [lo, hi]`, or in `lo..hi` where it is whole; a decision lies in a domain such as `simplex`, or "
        "`[lo, hi]`; a distribution such as `uniform(0, 1)` follows `~`.",
        "model example\nhorizon T = 10\ndecision x[2] in 0..1\nminimize sum(x)\n",
        "Write bounds `in [lo, hi]`, a domain such as `box(0, 1)` or `simplex`, or a distribution after `~`.",
    ),
    "OCO121": Code(
        "a dot before anything but T",
        "Only `.T`, the transpose, follows an expression. Sums, sizes and the like are functions: `sum(x)`.",
        _in_model("minimize x.sum"),
        "Write the function, or `.T`.",
    ),
    "OCO122": Code(
        "a slice with a step, or in the wrong place",
        "`x[a:b]` are the entries from a up to, not including, b. There is no third part, and no slice outside an index.",
        _in_model("minimize sum(x[0:2:1])"),
        "Write `x[a:b]`; other choices of entries are indices: `param odd[2] = [1, 3]`, `x[odd]`.",
    ),
    "OCO123": Code(
        "an unknown measure or feedback",
        "What is measured is `static regret` or `dynamic regret`; what comes back is `full`, `gradient`, `two_point` or `bandit` feedback.",
        _in_model("minimize sum(x)", "measure dynamical regret"),
        "Write one of the words that the message lists.",
    ),
    "OCO124": Code(
        "something said twice",
        "Bounds, distribution and `iid` of a stream, options of a call, and settings after `with` are each said once.",
        _in_model("stream a in [0, 1] in [0, 2]", "minimize a * sum(x)"),
        "Keep one of the two.",
    ),
    "OCO125": Code(
        "arguments out of order",
        "In a call the arguments without a name come first, those with a name after them: `pareto(3, mean = 8)`.",
        _in_model("stream a ~ pareto(mean = 8, 3) in [0, 99]", "minimize a * sum(x)"),
        "Put the argument without a name first.",
    ),
    "OCO127": Code(
        "an entry too few",
        "Something is missing next to a comma or between brackets: every comma stands between two entries, and brackets hold at least one.",
        _in_model("param a[2] = [1, 2, ]", "minimize a @ x"),
        "Add the entry, or delete the comma.",
    ),
    "OCO128": Code(
        "two statements on one line",
        "A statement ends at the end of its line, so a word that begins a statement stands at the beginning of a line.",
        "model example  horizon T = 10\ndecision x in box(0, 1)\nstream c in [-1, 1]\nminimize c * x\n",
        "Start a new line before the marked word.",
    ),
    "OCO129": Code(
        "a text that is too long",
        "A model file has at most 4 million characters.",
        "yes '# a comment' | head -n 500000 > long.oco; oco check long.oco",
        'Put large data in a file of its own: `param A[m, n] = file("A.npy")`.',
        Stage.COMMAND,
    ),
    "OCO130": Code(
        "an expression that its lets make very large",
        "Derivatives write an expression out with its lets, so a let that is used twice in a let that is used twice, and so on, grows "
        "without bound. Written out, an expression has at most 1,000,000 parts.",
        _in_model("let a0 = sum(x)", *(f"let a{k} = a{k - 1} + a{k - 1}" for k in range(1, 21)), "minimize a20"),
        "Say the same with fewer uses: `1048576 * a0`.",
        Stage.CHECK,
    ),
    "OCO133": Code(
        "an internal limit",
        "Numbers beyond floating point, matrices that no factorization serves, nesting or memory that the machine does not have: "
        "nobody foresaw where this model meets such a limit, and it ends there in words.",
        "numbers of size 1e300 that are multiplied with each other",
        "Write numbers in units in which they are of moderate size, and fewer or smaller parts.",
        Stage.COMMAND,
    ),
    "OCO134": Code(
        "a limit of an untrusted command is not a positive number",
        "Untrusted commands have limits on time, in seconds, and on memory: in bytes in Python, in megabytes after `--memory`.",
        "oco --untrusted --seconds 0 check model.oco",
        "Give positive numbers: `--seconds 30 --memory 2048`.",
        Stage.COMMAND,
    ),
    "OCO135": Code(
        "no limits on this system",
        "Untrusted commands run with limits that the operating system holds; this one has none that Python can set.",
        "oco --untrusted check model.oco, on Windows",
        "Run it in a container or a virtual machine with limits of its own.",
        Stage.COMMAND,
    ),
    "OCO136": Code(
        "an untrusted command was ended",
        "It took more time, memory or room for files than it may, or it failed.",
        "oco --untrusted --seconds 0.1 check model.oco",
        "Give more with `--seconds` and `--memory`, or leave out `--untrusted` where you trust the file.",
        Stage.COMMAND,
    ),
    "OCO999": Code(
        "a bug of oco",
        "Something happened that never should, whatever the model is. What went wrong is the cause of this error; a command writes its "
        "traceback, its words and the versions to a file, and leaves files that it was to replace as they were.",
        "no model is known that provokes it",
        "This is a bug in oco: please report it with the model.",
        Stage.COMMAND,
    ),
}
