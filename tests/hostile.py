"""More than seventy model files that somebody wrote to do harm, each under 100 kB, and what runs one of them within limits."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

SECONDS, MEMORY = 2.0, 2 * 2**30
"""Processor time and address space of each file."""

HEAD = "model m\nhorizon T = 100\n"
BODY = "decision x[3] in box(0, 1)\nstream c[3] in [0, 1]\nminimize c @ x\n"


def _model(
    extra: str = "", minimize: str = "c @ x", decision: str = "decision x[3] in box(0, 1)", first: str = HEAD
) -> str:
    return f"{first}{extra}{decision}\nstream c[3] in [0, 1]\nminimize {minimize}\n"


def _chain(step: str, count: int, last: str) -> str:
    """`let a1 = ... a0 ...`, `let a2 = ... a1 ...`, and so on over a decision."""
    lets = "".join(f"let a{k} = {step.format(f'a{k - 1}')}\n" for k in range(1, count))
    return f"{HEAD}decision x[3] in box(0, 1)\nstream c[3] in [0, 1]\nlet a0 = c @ x\n{lets}minimize {last.format(f'a{count - 1}')}\n"


def _streams(count: int) -> str:
    return "".join(f"stream s{k} in [0, 1]\n" for k in range(count))


def _constraints(
    each: str, count: int = 30, minimize: str = "c @ x", decision: str = "decision x[3] in box(0, 1)"
) -> str:
    """`each` has the number of the constraint as k, a decision's entry as i."""
    rows = "".join(f"    g{k}: {each.format(k=k + 1, i=k % 3)}\n" for k in range(count))
    return _model(minimize=minimize, decision=decision) + "subject to\n" + rows


def _sum(each: str, count: int = 200) -> str:
    """`each` has a number of its own as k, a decision's entry as i."""
    return " + ".join(each.format(k=k + 1, i=k % 3) for k in range(count))


def _entries(around: str, each: str, count: int, domain: str = "box(0, 1)", size: int = 40, head: str = "") -> str:
    """`each` has a number of its own as k, two entries of a decision as i and j; their sum stands in `around`."""
    terms = (each.format(k=k + 1, i=k % size, j=(7 * k + 1) % size) for k in range(count))
    return f"{HEAD}decision x[{size}] in {domain}\n{head}minimize {around.format(' + '.join(terms))}\n"


def _numbers(rows: int, n: int) -> list[list[int]]:
    rng = random.Random(1)
    return [[rng.randint(-4, 4) for _ in range(n)] for _ in range(rows)]


def _polytope(n: int, rows: int, domain: str = "polytope({}, 1)") -> str:
    """Over rows without a pattern that a formula makes: a ramp, folded over and over."""
    ramp = f"(outer(1..{rows}, 0.7549 * ones({n})) + outer(ones({rows}), 0.5698 * (1..{n}))) / {rows + n}"
    fold = "{}"
    for _ in range(6):
        fold = fold.format("1 - 2 * square({})")
    folds = "".join(f"param A{k + 1}[{rows}, {n}] = {fold.format(f'A{k}')}\n" for k in range(3))
    declared = f"param A0[{rows}, {n}] = {ramp}\n{folds}decision x[{n}] in {domain.format('A3')}\n"
    return f"{HEAD}{declared}stream c[{n}] in [0, 1]\nminimize c @ x\n"


CASES: dict[str, str] = {
    "dense_polytope": f"{HEAD}param A[240, 100] = {_numbers(240, 100)}\n"
    + "decision x[100] in polytope(A, 1)\nstream c[100] in [0, 1]\nminimize c @ x\n",
    "polytope_of_a_formula": _polytope(100, 2000),
    "ball_with_many_cuts": _polytope(50, 100, "l1_ball(2) with {} @ x <= 0.5"),
    "flat_polytope_of_a_formula": _polytope(150, 600, "box(-1, 1) with {0} @ x <= 1, {0} @ x >= -1, sum(x) == 0"),
    "cut_matrices": f"{HEAD}decision X[60, 60] in birkhoff(60) with X[0, 0] <= 0.5\nminimize sum(X[0, :])\n",
    "many_polytopes": _polytope(3, 10) + "".join(f"decision y{k}[3] in polytope(A3, 1)\n" for k in range(300)),
    "roots_unlike": _model(minimize=" + ".join(f"sqrt(1 + square(x[{k % 3}] - {k / 250}))" for k in range(250))),
    "roots_of_a_stream": _model()
    + "subject to\n    g: "
    + _sum("sqrt(1 + square(x[{i}] - {k} * c[0]))")
    + " <= 1e9 each round\n",
    "roots_constrained": _model()
    + "subject to\n    g: "
    + _sum("sqrt(1 + square(x[{i}] - {k} / 1000))")
    + " <= 1e9 each round\n",
    "forms_constrained": _model("param P[3, 3] = eye(3)\n")
    + "subject to\n    g: "
    + _sum("quad_form(x - {k}, P)", 120)
    + " <= 1e9 each round\n",
    "exponentials_constrained": _model()
    + "subject to\n    g: "
    + _sum("log_sum_exp(x - {k})", 140)
    + " <= 1e9 each round\n",
    "root_of_quotients": _entries("sqrt(1 + square({}))", "{k} / (x[{i}] + {k})", 30, "box(0, 1) with sum(x) <= 2"),
    "root_of_squares_over": _entries("sqrt(1 + square({}))", "square(x[{i}] + {k}) / (x[{j}] + 2)", 100),
    "root_of_fourth_powers": _entries("sqrt(1 + square({}))", "(x[{i}] - {k}) ** 4", 250),
    "roots_over_a_wide_box": _entries("{}", "sqrt(1 + square(x[{i}] - {k}))", 400, "box(-1000, 1000)", 3),
    "streams_over_groups": _entries("{}", "s{k} * x[{i}]", 400, "group_ball(2, 0..999)", 1000, _streams(401)),
    "vast_diagonals": HEAD
    + "param v[1000] = ones(1000)\ndecision x[1000] in box(0, 1)\nstream c in [0, 1]\nminimize c * x[0]\nsubject to\n    g: "
    + _sum("sum(diag(outer(x, v) - {k}))", 120)
    + " <= 1e9 each round\n",
    "traces_of_ramps": f"{HEAD}param u[1000] = 1..1000\ndecision x[1000] in l1_ball(2)\n"
    + f"minimize max([{_sum('trace(outer(x - {k}, u))', 15)}, {_sum('trace(outer(x + {k}, u))', 15)}])\n",
    "a_long_flow": f"{HEAD}param edges[1000, 2] = {[[k // 2, k // 2 + 1] for k in range(1000)]}\n"
    + "decision x[1000] in flow(edges, 0, 500)\nstream c in [0, 1]\nminimize c * x[0]\n",
    "divergences_unlike": _model(minimize=_sum("kl_div({k}, x[{i}] + 1)", 130)),
    "terms_unlike": _model(_streams(500), " + ".join(f"s{k} * x[{k % 3}]" for k in range(500))),
    "squares_unlike": _model(_streams(330), " + ".join(f"s{k} * square(x[{k % 3}] - {k})" for k in range(330))),
    "squares_constrained": _constraints("square(x[{i}] * {k} - 1) <= 1e9 each round"),
    "kinks_constrained": _constraints("abs(x[{i}] - {k}) <= 1e9 each round"),
    "vectors_constrained": _constraints(
        "square(x - {k} / 100) - c[0] <= 0 each round", 30, "sum(x) * c[0]", "decision x[250] in box(0, 1)"
    ),
    "nested_parentheses": _model(minimize="(" * 40000 + "c @ x" + ")" * 40000),
    "nested_calls": _model(minimize="abs(" * 15000 + "c @ x" + ")" * 15000),
    "nested_brackets": _model(f"param A = {'[' * 40000}1{']' * 40000}\n"),
    "nested_powers": _model(minimize="c @ x" + " + 2" + " ** 2" * 15000),
    "minus_signs": _model(minimize="-" * 80000 + "c @ x"),
    "huge_shape": _model("param A[1000000, 1000000] = ones\n"),
    "huge_decision": _model(decision="decision y[1000000000000] in box(0, 1)\ndecision x[3] in box(0, 1)"),
    "huge_range": _model("param r = 0..1000000000000\n"),
    "repeat_bomb": _model("param r = repeat(repeat(repeat(1..1000, 1000), 1000), 1000)\n"),
    "exponent_bomb": _model("param k = 10 ** 10 ** 10 ** 10\n", minimize="k * (c @ x)"),
    "huge_number": _model(f"param k = {'9' * 90000}\n", minimize="k * (c @ x)"),
    "huge_exponent": _model("param k = 1e999999999\n", minimize="k * (c @ x)"),
    "cyclic_lets": f"{HEAD}{BODY}let a = b + 1\nlet b = d + 1\nlet d = a + 1\n",
    "billion_laughs": _chain("{0} + {0}", 60, "{0}"),
    "billion_products": _chain("square({0} + {0}) + {0}", 30, "{0}"),
    "long_chain_of_lets": _chain("{0} + 1", 2500, "{0}"),
    "billion_maxima": _chain("max([{0}, 2 * {0}])", 20, "{0}"),
    "many_terms": _model(minimize=" + ".join(["c @ x"] * 12000)),
    "many_alike_terms": _model(minimize=" + ".join(f"x[{k % 3}] * c[1]" for k in range(4000))),
    "many_terms_apart": _model(minimize=" + ".join(f"x[{k % 3}] * sum(c)" for k in range(4000))),
    "many_sums": _model(minimize="+".join([f"({'+'.join(['x[0]'] * 70)})"] * 70)),
    "many_streams": HEAD
    + "decision x[3] in box(0, 1)\n"
    + "".join(f"stream s{k} in [0, 1]\n" for k in range(4000))
    + "minimize "
    + "s0 * x[0]\n",
    "confusable_names": _model("param \u0430 = 1\nparam a = 2\n", minimize="\u0430 * (c @ x) + \uff41 * 0"),
    "null_bytes": _model(minimize="c @\0 x\0"),
    "control_characters": _model(minimize="c @ x \x1b[2J\u202e\u2028 + \x07 0"),
    "many_constraints": HEAD + BODY + "subject to\n" + "".join(f"    g{k}: x[0] - {k} <= 1\n" for k in range(1500)),
    "huge_index": _model(minimize="c @ x + x[99999999999999999999999]"),
    "deep_products": _model(minimize=" @ ".join(["outer(x, x)"] * 300)),
    "wide_array": _model(f"param w = [{', '.join(['1'] * 30000)}]\n"),
    "long_name": _model(f"param {'n' * 90000} = 1\n"),
    "huge_horizon": _model(first=f"model m\nhorizon T = {'9' * 400}\n"),
    "endless_horizon": _model(first="model m\nhorizon T = 10000000000000\n"),
    "long_horizon": "model m\nhorizon T = 1000000000000\n" + BODY + "subject to\n    cap: c @ x <= 1    each round\n",
    "huge_polytope": _model(
        "param A[3000, 3] = ones\nparam b[3000] = ones\n", decision="decision x[3] in polytope(A, b)"
    ),
    "many_matrices": _model("param A[700, 700] = ones\n", minimize="c @ x + sum(A @ A @ A @ A) * 0"),
    "many_errors": HEAD + "".join(f"let a{k} = b{k} +\n" for k in range(4500)),
    "formula_bomb": _model() + "using ogd with eta = " + "(" * 150 + "t" + "+T)**9" * 150 + "\n",
    "formula_powers": _model() + "using ogd with eta = 9**9**9**9**9\n",
    "assumed_bomb": _model() + "assume loss.lipschitz.l2 <= 9e307 ** 9e307\n",
    "ranges_by_the_hundred": _model("".join(f"param a{k}[9999999] = 1..9999999\n" for k in range(300))),
    "decompositions": _model(
        "param A[700, 700] = outer(1..700, 1..700)\n" + "".join(f"param s{k} = sigma_max(A + {k})\n" for k in range(50))
    ),
    "wide_bounds": _model(
        "param lo[1000000] = 1..1000000\n" + "".join(f"stream s{k}[1000000] in [lo, lo + 1]\n" for k in range(100))
    ),
    "names_nearly_right": HEAD
    + BODY
    + "".join(f"let abcdefgh{k} = x[0]\n" for k in range(1500))
    + "".join(f"let b{k} = abcdefgi{k}\n" for k in range(1500)),
    "characters_of_no_statement": HEAD + BODY + "$\n" * 40_000,
    "a_decision_too_large": _model(decision="decision y[100000000] in ball(1)\ndecision x[3] in box(0, 1)"),
    "groups_of_one": _entries("sum_squares(x) + {}", "x[{i}]", 20, "group_ball(2, 0..9999)", 10_000)
    + "subject to\n    b: norm2(x) <= 0.9 on average\n",
    "roots_over_a_budget": _entries(
        "sum(sqrt(1 + square(x - c))) + {}", "x[{i}]", 9, "budget(0, 1, 1)", 1000, "stream c[1000] in [0, 1]\n"
    ),
    "a_large_ellipsoid": HEAD
    + "param A[1000, 1000] = outer(1..1000, 1..1000) + eye(1000)\ndecision x[1000] in ellipsoid(A)\n"
    + "stream c in [0, 1]\nminimize c * x[0]\n",
    "balls_cut_alike": HEAD
    + "".join(f"decision y{k}[5] in ball(1) with y{k}[0] <= 0.5\n" for k in range(90))
    + f"stream c in [0, 1]\nminimize {' + '.join(f'c * y{k}[0]' for k in range(90))}\n",
    "balls_cut_unlike": HEAD
    + "".join(f"decision y{k}[5] in ball(1) with y{k}[0] <= 0.{k}1\n" for k in range(300))
    + "minimize y0[0]\n",
    "a_cut_of_matrices": f"{HEAD}decision X[60, 60] in spectrahedron(1) with X[0] <= 0.5, sum(X, axis=0) <= 0.9\nminimize sum(X)\n",
    "a_law_of_a_million": _model("param p[1000000] = 1 / 1000000\nstream s ~ categorical(p)\n", minimize="s * x[0]"),
    "quadratic_of_a_large_matrix": _model(
        "param A[400, 400] = eye\n",
        decision="decision x[3] in box(0, 1)\ndecision y[400] in box(0, 1)",
        minimize="c @ x + quad_form(y, A)",
    ),
    "forms_in_one_large_matrix": _entries(
        "{}", "(x - {k}) @ P @ (x - {k})", 30, size=1000, head="param P[1000, 1000] = eye(1000)\n"
    ),
    "products_of_one_large_matrix": _entries(
        "{}",
        "sum(outer(u, v) @ (x - {k}))",
        400,
        size=250,
        head="param u[250] = 1..250\nparam v[250] = ones(250)\n",
    ),
    "roots_on_permutations": f"{HEAD}decision X[10, 10] in birkhoff(10)\nstream c in [0, 1]\nminimize c * X[0, 0]\nsubject to\n"
    + "".join(f"    g{k}: sqrt(1 + square(X[0, {k % 10}] - 7)) - {k} * X[1, 1] <= 1e9 each round\n" for k in range(30)),
    "root_of_sixty_streams": _model(
        "".join(f"stream s{k} ~ pareto(3, mean = {k + 1}) in [0, 1000]\n" for k in range(60)),
        minimize="sqrt(1 + square(" + " + ".join(f"s{k} * square(x[0] - {k})" for k in range(60)) + "))",
    ),
}

_RUN = """
import json, os, resource, signal, sys, time
import cvxpy, oco, oco.plan, oco.compiler.selection.plan
from oco.dsl.diagnostics import OcoError
from oco.guarded import limit
oco.compile(oco.parse("model w\\nhorizon T = 9\\ndecision x[2] in ball(1)\\nstream c[2] in [0, 1]\\nminimize c @ x\\n"))
seconds, memory = float(sys.argv[1]), int(sys.argv[2])
ENDS = (signal.SIGPROF, signal.SIGXCPU, signal.SIGKILL)

def outcome(work):
    try:
        work()
        return "done"
    except OcoError as error:
        assert str(error)
        return error.code

def examine(text):
    began, made = time.process_time(), []
    ended = outcome(lambda: made.append(oco.compile(oco.parse(text, folder=os.getcwd()))))
    # Facts that no theorem asked for are proved when they are printed; a model without a plan is checked alone.
    checked = outcome(lambda: str(made[0].facts) if made else oco.check(oco.parse(text, folder=os.getcwd())))
    return [checked, ended], time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

for line in sys.stdin:
    name, text = json.loads(line)
    pid = os.fork()
    if pid == 0:
        limit(seconds, memory)
        signal.setitimer(signal.ITIMER_PROF, seconds)  # the system's limit is of whole seconds
        print(json.dumps([name, *examine(text)]), flush=True)
        os._exit(0)
    _, status, used = os.wait4(pid, 0)
    if status:
        said = "ended" if os.WIFSIGNALED(status) and os.WTERMSIG(status) in ENDS else "failed"
        print(json.dumps([name, [said], used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]), flush=True)
"""


@dataclass(frozen=True)
class Ran:
    """Codes of `check` and `compile`, or "ended" by the limits, or "failed" otherwise; processor seconds and megabytes of both."""

    said: tuple[str, ...]
    seconds: float
    megabytes: float

    @property
    def is_contained(self) -> bool:
        """True where both ended in a result, a refusal or at the limits."""
        return not {"failed", "OCO999"} & {*self.said}


class Examiner:
    """Process that parses, checks and compiles texts, each in a fork of its own with the limits of `oco --untrusted`."""

    def __init__(self, folder: Path | None = None, seconds: float = SECONDS) -> None:
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, "-c", _RUN, str(seconds), str(MEMORY)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder, env=environment
        )

    def __enter__(self) -> Examiner:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def __call__(self, name: str, text: str) -> Ran:
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps([name, text]) + "\n")
        process.stdin.flush()
        own, said, seconds, megabytes = json.loads(process.stdout.readline())
        assert own == name
        return Ran(tuple(said), seconds, megabytes)


def examined(texts: Iterable[tuple[str, str]], folder: Path | None = None) -> Iterator[tuple[str, Ran]]:
    """Pairs of a name and what an examiner says of the text, one by one as they are done."""
    with Examiner(folder) as examine:
        for name, text in texts:
            yield name, examine(name, text)
