"""Docstrings of emitted modules."""

from __future__ import annotations

import textwrap

from oco.backends.contract import Contract
from oco.compiler.ir.program import Program

_LATER = """\
Each `decide` begins a round. The data of round t come before round t + {0} + 1 is decided, in any order;
`learner.pending` lists the open rounds, and `learner.skip(round=t)` says that the data never come.
"""
_BESIDE = """\
All of the model is in this file. {0}.py beside it checks data, saves states and runs the rule:
"""
_BELOW = """\
To review: the part `The rule` and what goes in and out are this model's. The part `The learner` follows from which
features the model has, and is the same text in all modules with the same ones.
"""
NUMPY_ALONE = "NumPy alone"
"""Packages that a module of NumPy needs, in words."""
_RUNS = """\
{0}: the learner that runs the rule in {0}_rule.py.

Needs NumPy alone. Nothing here is of the model: this text follows from which features it has (contexts, random
draws, late feedback, names), and two models with the same features have the same.
"""


def rule_docstring(program: Program, contract: Contract, learner: str | None = None, needs: str = NUMPY_ALONE) -> str:
    """Docstring of a module with the rule: its purpose, its use, the model, and the guarantee. `learner` names the module that runs
    the rule; None where that is this one. `needs` are the packages that it needs, in words.
    """
    known = ", ".join(f"{name}=..." for name in program.context)
    inputs = ", ".join(f"{f.name}=..." for f in program.revealed if f.name not in program.context)
    rows = [
        f"{program.name}: decisions round by round with the algorithm {contract.algorithm}.",
        "",
        f"Needs {needs}. Written by oco from the model below.",
        *(_BESIDE.format(learner) if learner else _BELOW).splitlines(),
        "",
        *([f"    from {learner} import Learner", ""] if learner else []),
        "    learner = Learner()",
        f"    x = learner.decide({known})",
        f"    feedback = learner.observe({inputs}{', round=1' if contract.delay else ''})",
        "",
        *_columns(program, f"{learner}.py" if learner else "THIS_FILE"),
        *(_LATER.format(contract.delay).splitlines() if contract.delay else []),
        *(
            ["`NAMES` has the names of the entries of decisions; data may come as dicts of names."]
            if contract.axes
            else []
        ),
        "",
        "The model",
        "",
        *(f"    {line}".rstrip() for line in contract.text.splitlines()),
        "",
        f"The algorithm: {contract.algorithm}{f' ({contract.cite})' if contract.cite else ''}",
        "",
        *(f"    {line}".rstrip() for line in contract.guarantee),
    ]
    return _as_docstring("\n".join(rows).rstrip())


def _columns(program: Program, file: str) -> list[str]:
    """Lines on the command that runs the module: the columns of a stream that is no number, by the first that there is."""
    array = next((f for f in program.revealed if f.type.shape), None)
    shown = ""
    if array is not None:
        places = [",".join([*"0" * (len(array.type.shape) - 1), str(k)]) for k in range(min(2, array.type.shape[-1]))]
        ways = [array.name, *(f"{array.name}[{place}]" for place in places), "...", f"{array.name}.ANYTHING"]
        shown = " (" + ", ".join(f"`{way}`" if way != "..." else way for way in ways[:-1]) + f", or `{ways[-1]}`)"
    sentence = (
        f"`python {file} data.csv` runs it over a file with a column for each stream{shown} and a row for each round."
    )
    return textwrap.wrap(sentence, 100, break_long_words=False, break_on_hyphens=False)


def learner_docstring(name: str) -> str:
    """Docstring of the module that runs the rule of a model of this name."""
    return _as_docstring(_RUNS.format(name).rstrip())


def _as_docstring(text: str) -> str:
    """Text between three quotes, with escapes for what would end it or cannot be printed."""
    safe = "\n".join(map(_printable, text.replace("\\", "\\\\").split("\n")))
    return '"""' + safe.replace('"""', '\\"\\"\\"').rstrip('"') + '\n"""'


def _printable(line: str) -> str:
    """Line with what cannot be printed as escapes."""
    return line if line.isprintable() else "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in line)
