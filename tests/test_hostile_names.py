"""Names, strings and numbers that an attacker chooses, in every position, in Python, C and HTML: they are text there and nothing else."""

from __future__ import annotations

import ast
import builtins
import ctypes
import re
import shutil
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
from driving import plan_for
from test_c99 import STRICT
from test_emitter import contract, queue_program
from thorough import corners, one_in

import oco
from oco.backends.c99.build import compiler
from oco.backends.c99.module import emit as emit_c
from oco.backends.python.module import emit
from oco.compiler.ir.names import RESERVED, identifier, is_legal
from oco.compiler.ir.passes import shorten
from oco.dsl.diagnostics import OcoError
from oco.plan import Plan

PLAIN = """\
model {model}
horizon T = 20
param {param}[2] = [0.25, 0.75]
decision {x}[2] in box(0, 1)
stream {c}[2] in [-1, 1]
stream {d} in [0, 2]
let {let} = {c} + {param} * {d}
minimize {let} @ {x} + sum_squares({x} - {param})
subject to
    {label}: sum({x}) - {d} <= 0    each round
using ogd
"""
_WORDS = """
    import np self update class lambda print exec __import__ int main double void errno NULL unix linux M_PI DBL_MAX
    INT64_MAX stdin struct inline restrict Learner STATE START STREAMS pack unpack re time run json MODEL Stream
    Feedback init decide observe measure step check save load state work loss constraints rounds record i t_ f g h wrong
    place memcpy fabs isfinite bool_ true nan inf eval os sys open object None_ False_ async await match case type
    global nonlocal yield assert round_ v x_2
"""
WORDS = _WORDS.split()
LIBRARY = ("round", "gamma", "select", "time", "printf", "y1", "signal")
POSITIONS = ("model", "param", "x", "c", "d", "let", "label")


@cache
def allowed() -> tuple[str, ...]:
    """Words that the language takes as names wherever a name stands."""
    return tuple(w for w in WORDS if _is_a_name(w))


def _is_a_name(word: str) -> bool:
    try:
        for position in POSITIONS:
            oco.parse(PLAIN.format(**{p: word if p == position else f"plain_{p}" for p in POSITIONS}))
    except OcoError:
        return False
    return True


@cache
def plans() -> list[tuple[dict[str, str], Plan]]:
    """Models whose every name is one of the words; each word comes in some position."""
    words, found = allowed(), []
    step = len(POSITIONS)
    for start in range(0, len(words), step):
        chosen = [words[(start + k) % len(words)] for k in range(step)]
        names = dict(zip(POSITIONS, chosen, strict=True))
        if len(found) % 2:
            names["model"] = LIBRARY[len(found) // 2 % len(LIBRARY)]
        if len(set(names.values())) == step:
            found.append((names, plan_for(PLAIN.format(**names), settings="paper")))
    return found


def test_most_words_are_names():
    assert len(allowed()) > 50 and len(plans()) >= 7


def decisions(plan, names, learner):
    rng, rows = np.random.default_rng(0), []
    for _ in range(6):
        rows.append(np.array(learner.decide()))
        learner.observe(**{names["c"]: rng.uniform(-1, 1, 2), names["d"]: rng.uniform(0, 2)})
    return np.array(rows)


@cache
def expected():
    names = {p: f"plain_{p}" for p in POSITIONS}
    plan = plan_for(PLAIN.format(**names), settings="paper")
    return decisions(plan, names, plan.learner(backend="numpy"))


def test_in_numpy_the_names_change_nothing():
    for names, plan in plans():
        assert np.array_equal(decisions(plan, names, plan.learner(backend="numpy")), expected()), names


def test_in_an_emitted_module_the_names_change_nothing():
    for names, plan in plans():
        module = {"__name__": "emitted"}
        exec(compile(plan.source("numpy"), "emitted", "exec"), module)
        assert np.array_equal(decisions(plan, names, module["Learner"]()), expected()), names


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_in_c_the_names_change_nothing(tmp_path):
    """All models in one library, as strict C and as the compiler's own dialect."""
    sources = [emit_c(plan.program, plan.contract) for _, plan in plans()]
    for source in sources:
        (tmp_path / f"{source.name}.h").write_text(source.header)
        (tmp_path / f"{source.name}.c").write_text(source.code)
    files = [f"{s.name}.c" for s in sources]
    for options in (STRICT, ("-Wall", "-Werror")):
        command = [*compiler(), *options, "-shared", "-fPIC", *files, "-o", "all.so", "-lm"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[:3000]
    library = ctypes.CDLL(str(tmp_path / "all.so"))
    for source, (names, _) in zip(sources, plans()):
        learner, rng, rows = (ctypes.c_double * 64)(), np.random.default_rng(0), []
        getattr(library, f"{source.name}_init")(learner, None)
        for _ in range(6):
            x, c = np.empty(2), rng.uniform(-1, 1, 2)
            getattr(library, f"{source.name}_decide")(learner, ctypes.c_void_p(x.ctypes.data))
            rows.append(x)
            given = ctypes.c_void_p(c.ctypes.data), ctypes.c_double(rng.uniform(0, 2))
            assert getattr(library, f"{source.name}_observe")(learner, *given) == 0
        assert np.allclose(rows, expected(), atol=1e-14), names


def test_no_name_of_a_model_hides_one_of_the_module():
    """What the emitted module defines and uses, and no variable of a rule may be called."""
    (_, plan), *_ = plans()
    tree = ast.parse(plan.source("numpy"))
    defined = {n.name for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    defined |= {t.id for n in tree.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)}
    defined |= {a.asname or a.name for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom)) for a in n.names}
    emitted = shorten(plan.program)
    rule = {f.name for f in emitted.functions} | {g.var.name for g in emitted.constants}
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} & set(dir(builtins))
    free = {n for n in (defined - rule) | used if not n.startswith("_")} - {
        "round"
    }  # every rule calls its first argument `round`
    assert free <= RESERVED, sorted(free - RESERVED)


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_no_name_of_a_model_is_a_macro(tmp_path):
    headers = "".join(
        f"#include <{h}.h>\n" for h in ("stdbool", "stdint", "float", "math", "stddef", "string", "stdio")
    )
    (tmp_path / "h.c").write_text(headers)
    for dialect in ("c99", "gnu17"):
        command = [*compiler(), f"-std={dialect}", "-dM", "-E", "h.c"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        if done.returncode:
            continue
        macros = re.findall(r"^#define ([A-Za-z]\w*) ", done.stdout, re.M)
        assert len(macros) > 50 and not [m for m in macros if is_legal(m)]


STRINGS = [
    '"""',
    "'''",
    '"; import os; os.abort() #',
    "\\",
    "\\\n",
    "*/ #error */",
    "/* ??/ */",
    "%s%n{0}{x}",
    "\x00\x1b[2J",
    "\u202e\u2028\u2029\ufeff",
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "&lt;b&gt;",
    "\r\n#define x 1\r\n",
    "é" * 300,
    "\ud7ff\U0010ffff",
    "$(rm -rf x)`id`",
    "\\N{BULLET}\\x41",
    "#include </etc/passwd>\n",
    '" + str(1) + "',
]


@pytest.mark.parametrize("text", one_in(2, STRINGS))
def test_strings_are_text_in_every_position_of_emitted_code(tmp_path, text):
    """Model text, names, labels, laws, the cite and the guarantee, at the level of the emitters, where nothing was checked before."""
    from dataclasses import replace

    from oco.backends.contract import Range

    program = queue_program()
    hostile = replace(program, name=text, labels=(text,))
    ranges = {name: Range(r.lower, r.upper, text) for name, r in contract().ranges.items()}
    words = dict.fromkeys(("text", "algorithm", "cite"), text)
    given = contract(**words, guarantee=(text, text), ranges=ranges, equalities=(text,), recipe={"model": text})
    module, plain = {"__name__": "emitted"}, {"__name__": "emitted"}
    exec(compile(emit(hostile, given), "emitted", "exec"), module)
    exec(compile(emit(program, contract()), "emitted", "exec"), plain)
    a, b = module["Learner"](), plain["Learner"]()
    for learner in (a, b):
        learner.decide()
        learner.observe(price=[1.0, 2.0, 3.0], jobs=2.0)
    assert a.decide().tobytes() == b.decide().tobytes()
    assert module["MODEL"] == text and module["CONSTRAINTS"] == (text,) and module["EQUALITIES"] == (text,)
    if shutil.which("cc"):
        source = emit_c(hostile, given)
        (tmp_path / f"{source.name}.h").write_text(source.header, encoding="utf-8")
        (tmp_path / "code.c").write_text(source.code, encoding="utf-8")
        for options in (STRICT, ("-trigraphs", "-Werror")):
            done = subprocess.run(
                [*compiler(), *options, "-fsyntax-only", "code.c"], cwd=tmp_path, capture_output=True, text=True
            )
            assert done.returncode == 0, done.stderr[:2000]


def test_identifiers_are_legal_whatever_they_come_from():
    taken = set()
    for text in [*STRINGS, *WORDS, "", "_", "1", "9x", "a b", "α", "ａ", "ﬁ", "x" * 500]:
        name = identifier(text, taken)
        assert is_legal(name) and name not in taken and name.isascii() and len(name) <= 64
        taken.add(name)


def test_numbers_stay_the_numbers_that_they_are():
    """At the ends of what the computer holds, through text, Python and C."""
    values = [
        "1.7976931348623157e308",
        "5e-324",
        "-0.0",
        "1e22",
        "0.1",
        "9007199254740993",
        "-1e-310",
        "123456789012345678",
    ]
    text = PLAIN.format(**{p: f"plain_{p}" for p in POSITIONS}).replace("[0.25, 0.75]", f"[{values[0]}, {values[1]}]")
    model = oco.parse(text)
    assert [v.hex() for v in model.params[0].data] == [float(values[0]).hex(), float(values[1]).hex()]
    for value in values:
        again = oco.parse(oco.parse(text.replace(values[0], value)).params and text.replace(values[0], value))
        assert float(again.params[0].data[0]).hex() == float(value).hex()


def test_reports_hold_no_markup_of_the_model(tmp_path):
    """The report of a run whose names and notes are markup."""
    from oco.evaluation.report.run_page import write_report

    names = {p: f"plain_{p}" for p in POSITIONS}
    plan = plan_for(PLAIN.format(**names), settings="paper")
    rng = np.random.default_rng(0)
    trace = plan.run({names["c"]: rng.uniform(-1, 1, (20, 2)), names["d"]: rng.uniform(0, 2, 20)})
    evil = "</script></style><script>alert('oco')</script><img src=x onerror=alert(1)>\"'"
    trace.notes = trace.warnings = (evil,)
    write_report(trace, tmp_path / "report.html", plan.facts, plan.explain() + evil)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "alert(&#x27;oco&#x27;)" in page or "alert(&#39;oco&#39;)" in page
    assert "<script>alert" not in page and "<img src=x" not in page


SAID = {
    "formats": "%s%n%x {0} {x!r}",
    "trigraphs": "what ??/ ??' ??< ends",
    "the end of a comment": "*/ int evil(void) { return 1; } /*",
    "separators of lines": "line\u2028evil()\u2029evil()\x85evil()",
    "a name of many letters": "",
}


@pytest.mark.parametrize("attack", corners(SAID, ["trigraphs", "separators of lines", "a name of many letters"]))
def test_comments_and_long_names_stay_what_they_are(attack, tmp_path):
    x, said = ("x" if SAID[attack] else "n" * 5000), SAID[attack]
    text = f"# {said}\nmodel m\nhorizon T = 20  # {said}\ndecision {x}[2] in box(0, 1)  # {said}\nstream c[2] in [0, 1]  # {said}\n"
    text += f"minimize c @ {x}\nsubject to\n    g: {x}[0] <= c[0] each round  # {said}\n"
    plan = oco.compile(oco.parse(text), algorithm="coldq")
    (tmp_path / "m.py").write_text(plan.source("numpy"))
    code = "import m; learner = m.Learner(); learner.decide(); learner.observe(c=[0.5, 0.5])"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    if shutil.which("cc") is None:
        return
    files = plan.files("c")
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    options = ["-std=c99", "-trigraphs", "-pedantic", "-Wall", "-Wextra", "-Werror"]
    sources = [name for name in files if name.endswith(".c")]
    done = subprocess.run(["cc", *options, *sources, "-o", "m", "-lm"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert subprocess.run(["./m"], cwd=tmp_path, capture_output=True).returncode == 0
