"""Emitted modules: standalone, readable, and the same bits as the interpreter."""

from __future__ import annotations

import ast
import json
import subprocess
import sys

import numpy as np
import pytest
from ir_programs import FLOAT, as_python, same_bits

from oco.backends.contract import Contract, Range
from oco.backends.python.constants import array_source
from oco.backends.python.functions import function_lines
from oco.backends.python.module import emit, rule_text
from oco.compiler.ir.build import trace_program
from oco.compiler.ir.interpret import interpret, run_function
from oco.compiler.ir.passes import optimize, shorten
from oco.compiler.ir.program import DType, Field, Program, Type
from oco.compiler.ir.trace import Tracer
from oco.compiler.selection.plan import compile_plan
from oco.dsl.load import parse
from oco.plan import Plan

INT = DType.INT
MODEL = 'model tiny\n# "quotes""" and \\ backslashes\nstream price[3] in [0, 10]'

GUARD = """
import builtins, sys
real = builtins.__import__
allowed = set(sys.stdlib_module_names) | {"numpy", "learner"}
def guarded(name, globals=None, locals=None, fromlist=(), level=0):
    if level == 0 and name.split(".")[0] not in allowed:
        raise ImportError("not allowed: " + name)
    return real(name, globals, locals, fromlist, level)
builtins.__import__ = guarded
"""


def queue_program(names=("price", "jobs")) -> Program:
    """A small rule with a constant, a call, a comment, a loop and a branch."""
    t = Tracer("tiny")
    price, jobs = names

    def project(v):
        return t.minimum(t.maximum(v, 0.0), 1.0)

    def update(state, seen, drawn):
        x, Q = state["x"], state["Q"]
        eta = t.constant(0.1, "eta", "1/T (Theorem 1)")
        alpha = t.name("alpha", t.sqrt(state["round"]))
        t.note("(8): the queue")
        queue = t.name("Q_next", t.maximum((1.0 - eta) * Q + (seen[jobs] - t.sum(x)), 0.0))
        gradient = t.name("gradient", seen[price] - queue)
        t.note("(10): the step")
        step = t.call("project", project, x - gradient / (2.0 * alpha), doc="Nearest point of the box.")
        lo, hi = t.for_(
            20,
            lambda i, lo, hi: t.if_(
                t.sum(step) > lo + hi, lambda: ((lo + hi) / 2.0, hi), lambda: (lo, (lo + hi) / 2.0)
            ),
            (0.0, 3.0),
        )
        return {"x": step, "Q": t.where(queue > hi - lo, queue, 0.0)}

    return optimize(
        trace_program(
            t,
            decision=[Field("x", Type(FLOAT, (3,)))],
            feedback=[Field(price, Type(FLOAT, (3,))), Field(jobs, Type(FLOAT))],
            init=lambda start: {"x": start["x"], "Q": 0.0},
            decide=lambda state, drawn: {"x": state["x"]},
            update=update,
            measure=lambda now, x, seen: (
                t.sum(seen[price] * x["x"]),
                t.reshape(seen[jobs] - t.sum(x["x"]), (1,)),
                t.zeros((0,)),
            ),
            labels=["service"],
        )
    )


def contract(**changes) -> Contract:
    given = {
        "text": MODEL,
        "algorithm": "queue",
        "horizon": 100,
        "start": {"x": np.full(3, 0.5)},
        "cite": "Nobody 2020, Algorithm 1",
        "guarantee": ("static regret <= 12",),
        "ranges": {"price": Range(0.0, 10.0), "jobs": Range(0.0, np.inf, "poisson(2)")},
    }
    return Contract(**(given | changes))


def rounds(count: int, seed: int = 0) -> list[dict[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    return [{"price": rng.uniform(0, 10, 3), "jobs": rng.uniform(0, 4)} for _ in range(count)]


@pytest.fixture
def module(tmp_path):
    """A folder with an emitted `learner.py`."""
    (tmp_path / "learner.py").write_text(emit(queue_program(), contract()))
    return tmp_path


def run(folder, *arguments, code=None):
    """Run a file or some code beside the module with NumPy and the standard library alone."""
    text = GUARD + f"sys.path.insert(0, {str(folder)!r})\n"
    if code is None:
        text += f"import runpy\nsys.argv = {['learner.py', *map(str, arguments)]!r}\n"
        text += "runpy.run_path(sys.path[0] + '/learner.py', run_name='__main__')"
    else:
        text += code
    return subprocess.run([sys.executable, "-I", "-c", text], capture_output=True, text=True, timeout=60)


def rule_of(program: Program) -> str:
    """Text of constants and functions that a learner inside the package executes."""
    return rule_text(shorten(program), program.entries)


def test_rule_reads_well(golden):
    golden(rule_of(queue_program()))


def test_head_reads_well(golden):
    text = emit(queue_program(), contract())
    golden(
        text[: text.index("\nimport ")] + text[text.index("# What goes in and out") : text.index("# The learner ---")]
    )


def test_module_has_sensible_lines():
    text = emit(queue_program(), contract())
    tree = ast.parse(text)
    assert max(map(len, text.splitlines())) <= 140
    assert {a.name.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names} <= {
        *sys.stdlib_module_names,
        "numpy",
    }
    assert "oco." not in "".join(line for line in text.splitlines() if line.startswith(("import", "from")))
    defined = [n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    assert len(set(defined)) == len(defined) and {"init", "decide", "update", "measure", "project", "Learner"} <= set(
        defined
    )
    assert MODEL.splitlines()[0] in ast.get_docstring(tree) and '"quotes""" and \\ backslashes' in ast.get_docstring(
        tree
    )


def test_module_runs_with_numpy_alone_and_gives_the_bits_of_the_interpreter(module):
    code = """
import json, numpy as np
from learner import Learner
rng = np.random.default_rng(0)
learner, out = Learner(), []
for _ in range(30):
    x = learner.decide()
    feedback = learner.observe(price=rng.uniform(0, 10, 3), jobs=rng.uniform(0, 4))
    out.append([x.tobytes().hex(), feedback.loss.hex(), feedback.constraints.tobytes().hex(), feedback.round])
print(json.dumps(out))
"""
    done = run(module, code=code)
    assert done.returncode == 0, done.stderr
    program = shorten(
        queue_program()
    )  # inner products instead of sums of products, which round otherwise on some processors
    state = interpret(program, "init", [np.full(3, 0.5)])
    for k, (streams, found) in enumerate(zip(rounds(30), json.loads(done.stdout), strict=True)):
        (x,) = interpret(program, "decide", state)
        loss, g, _ = interpret(program, "measure", [state[0], x, *streams.values()])
        assert found == [x.tobytes().hex(), float(loss).hex(), g.tobytes().hex(), k + 1]
        state = interpret(program, "update", [*state, *streams.values()])


def test_module_saves_and_loads(module):
    code = """
import numpy as np
from learner import Learner, StateError
rng = np.random.default_rng(0)
data = [dict(price=rng.uniform(0, 10, 3), jobs=rng.uniform(0, 4)) for _ in range(40)]
one, two = Learner(), Learner()
def play(learner, rows):
    for d in rows:
        learner.decide()
        learner.observe(**d)
play(one, data)
play(two, data[:20])
path = sys.path[0] + "/state"
two.save(path)
two = Learner.load(path)
play(two, data[20:])
assert all(a.tobytes() == b.tobytes() for a, b in zip(one.values.values(), two.values.values())), "differs"
text = open(path, "rb").read()
for damaged in (text[:-1], text.replace(b"queue", b"quite"), b"", text[:40], text + b" ", text.replace(b"-state 1", b"-state 2")):
    open(path, "wb").write(damaged)
    if damaged == text:
        continue
    try:
        Learner.load(path)
    except StateError:
        pass
    else:
        raise AssertionError("a damaged file gave a learner")
"""
    done = run(module, code=code)
    assert done.returncode == 0, done.stderr


def test_module_refuses_wrong_data_and_stays_as_it_was(module):
    code = """
import numpy as np
from learner import Learner, StreamError
learner = Learner()
good = dict(price=[1.0, 2.0, 3.0], jobs=2)
learner.decide()
learner.observe(**good)
before = [v.tobytes() for v in learner.values.values()]
nan = float("nan")
for bad in (dict(price=[1, 2, 3]), dict(good, extra=1), dict(good, price=[1, 2]), dict(good, price=[1, 2, 11]),
            dict(good, jobs=nan), dict(good, jobs=float("inf")), dict(good, price="cheap"), dict(good, jobs=[[1]])):
    try:
        learner.observe(**bad)
    except StreamError as error:
        print(error)
    else:
        raise AssertionError(bad)
assert before == [v.tobytes() for v in learner.values.values()]
"""
    done = run(module, code=code)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "jobs" in lines[0] and "extra" in lines[1] and "(2,)" in lines[2]
    assert lines[3] == "price[2] is 11.0, outside the model's bounds [0, 10]"


def write_csv(path, header, rows):
    path.write_text("\n".join([",".join(header), *(",".join(map(str, r)) for r in rows)]) + "\n")


@pytest.mark.parametrize(
    "header",
    [
        ["hour", "price[0]", "price[1]", "price[2]", "jobs"],
        ["hour", "price.north", "price.east", "price.west", "jobs"],
        ["hour", "price[0]", "price[1]", " price[2]", "jobs"],
    ],
)
def test_command_line(module, header):
    data = rounds(12)
    write_csv(module / "data.csv", header, [[k, *map(float, d["price"]), float(d["jobs"])] for k, d in enumerate(data)])
    done = run(module, module / "data.csv")
    assert done.returncode == 0, done.stderr
    program = queue_program()
    state, loss, g = interpret(program, "init", [np.full(3, 0.5)]), 0.0, []
    for d in data:
        worth = interpret(program, "measure", [state[0], state[1], *d.values()])
        loss, g = loss + float(worth[0]), [*g, float(worth[1][0])]
        state = interpret(program, "update", [*state, *d.values()])
    assert f"12 rounds, loss {loss:.6g}" in done.stdout
    assert (
        f"service: violation {max(sum(g), 0):.6g} over all rounds, {sum(max(v, 0) for v in g):.6g} round by round"
        in done.stdout
    )


def test_command_line_errors(module):
    write_csv(module / "data.csv", ["price[0]", "price[1]", "price[2]"], [[1, 2, 3]])
    done = run(module, module / "data.csv")
    assert done.returncode == 1 and "no column for jobs: the model draws it from poisson(2)" in done.stderr
    write_csv(module / "data.csv", ["price[0]", "price[1]", "jobs"], [[1, 2, 3]])
    done = run(module, module / "data.csv")
    assert done.returncode == 1 and "price has 3 entries, the file 2 columns" in done.stderr
    write_csv(module / "data.csv", ["price[0]", "price[1]", "price[2]", "jobs"], [[1, 2, "cheap", 3]])
    done = run(module, module / "data.csv")
    assert done.returncode == 1 and "data.csv, line 2: a cell is missing or not a number" in done.stderr
    assert run(module, module / "missing.csv").returncode == 1
    assert run(module).returncode == 2


@pytest.mark.parametrize(
    "names", [("import", "np"), ("self", "x"), ("update", "class"), ("λ", "eta"), ("round", "print")]
)
def test_streams_with_any_name(tmp_path, names):
    given = contract(ranges={}, text='"""\nimport os\n"""')
    (tmp_path / "learner.py").write_text(emit(queue_program(names), given))
    plain = queue_program()
    values = rounds(1)[0]
    code = f"""
from learner import Learner
learner = Learner()
learner.decide()
learner.observe(**{dict(zip(names, [list(map(float, values["price"])), float(values["jobs"])]))!r})
print(learner.values["x"].tobytes().hex())
"""
    done = run(tmp_path, code=code)
    assert done.returncode == 0, done.stderr
    state = interpret(plain, "update", [*interpret(plain, "init", [np.full(3, 0.5)]), *values.values()])
    assert done.stdout.strip() == state[1].tobytes().hex()


def test_expressions_have_no_parentheses_to_spare():
    t = Tracer("expressions")

    def body(a, b, A, i):
        return (
            a - (b - a) - b,
            (a + b) * (a - b) / b,
            -(a**3) * 2.0,
            (-a) ** 3,
            A.T @ (A @ a),
            (a * b) @ a,
            (a > 0) & ((b < 1) | ~(a <= b)),
            t.sum((A @ a - b) ** 2),
            t.maximum(0.0, a)[1:] * a[i],
            1.0 / (2.0 * a),
            a / (b / a) / 2.0,
            t.sum(t.to_float(a > 0)),
        )

    types = [("a", Type(FLOAT, (3,))), ("b", Type(FLOAT, (3,))), ("A", Type(FLOAT, (3, 3))), ("i", Type(INT))]
    functions = [t.function(f"f{k}", lambda *vs, k=k: body(*vs)[k], types) for k in range(12)]
    assert [function_lines(f)[-1].removeprefix("    return ") for f in functions] == [
        "a - (b - a) - b",
        "(a + b) * (a - b) / b",
        "-a ** 3 * 2.0",
        "(-a) ** 3",
        "A.T.dot(A.dot(a))",
        "float((a * b).dot(a))",
        "(a > 0.0) & ((b < 1.0) | ~(a <= b))",
        "float(((A.dot(a) - b) ** 2).sum())",
        "np.maximum(0.0, a)[1:] * a[i]",
        "1.0 / (2.0 * a)",
        "a / (b / a) / 2.0",
        "float(np.count_nonzero(a > 0.0))",
    ]
    args = [np.array([1.0, 2.0, 3.0]), np.array([3.0, 1.0, 2.0]), np.arange(9.0).reshape(3, 3), 1]
    with np.errstate(all="ignore"):
        assert all(same_bits(as_python(t, f)(*args), run_function(f, args, (), ())[0]) for f in functions)


ARRAYS = [
    np.zeros(3),
    np.ones((2, 2)),
    np.full(4, -0.0),
    np.full((2, 1), 0.1),
    np.arange(5),
    np.arange(3, 7),
    np.repeat(np.arange(5), 10),
    np.repeat([0.1, 0.2], 3),
    np.array([True, False, True]),
    np.array([np.nan, np.inf, -np.inf, -0.0, 1e-300]),
    np.array([[1, 2], [3, 4]]),
    np.empty((0, 3)),
    np.random.default_rng(0).normal(size=(3, 40)),
    np.random.default_rng(0).normal(size=(60, 50)),
    np.array(2.5),
    np.array([1.0, 2.0, 0.0, 1.0, 5.0]),
    np.array([1e300, 2.0, 0.0, 1.0, 5.0]),
    np.repeat([2.5, 0.5, 1.5], [3, 3, 1]),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype}{a.shape}")
def test_constants_keep_their_bits(array):
    unpacked = ast.parse(rule_of(packed_program()))
    namespace = {"np": np}
    keep = [
        n
        for n in unpacked.body
        if isinstance(n, ast.Import) or (isinstance(n, ast.FunctionDef) and n.name == "unpacked")
    ]
    exec(compile(ast.Module(keep, []), "unpacked", "exec"), namespace)
    found = np.asarray(eval(array_source(array), namespace))
    assert found.dtype == array.dtype and found.shape == array.shape and found.tobytes() == array.tobytes()


def packed_program() -> Program:
    t = Tracer("packed")
    big = np.random.default_rng(0).normal(size=3000)
    return trace_program(
        t,
        decision=[Field("x", Type(FLOAT, (3000,)))],
        init=lambda start: {"x": start["x"]},
        decide=lambda state, drawn: {"x": state["x"]},
        update=lambda state, seen, drawn: {"x": state["x"] + t.constant(big, "weights")},
    )


def test_several_decisions_of_which_one_is_a_number(tmp_path):
    text = "model m\nhorizon T = 3\ndecision x[2] in box(0, 1)\ndecision y in box(0, 1)\nstream c in [0, 1]\nminimize c * (sum(x) + y)\n"
    Plan.of(compile_plan(parse(text))).write(tmp_path / "learner.py")
    code = "import learner; first = learner.Learner({'y': 0.25}); print(first.decide()['y'], learner.Learner().decide()['y'])"
    assert run(tmp_path, code=code).stdout.split() == ["0.25", "0.5"]
    (tmp_path / "data.csv").write_text("c\n0.5\n1\n0\n")
    played = run(tmp_path, tmp_path / "data.csv")
    assert played.returncode == 0 and played.stdout.startswith("m: 3 rounds") and not played.stderr
    (tmp_path / "data.csv").write_text("c\n0.5\n1\n0\n1\n")
    assert "the horizon of 3 rounds is over" in run(tmp_path, tmp_path / "data.csv").stderr
