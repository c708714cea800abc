"""Program as a standalone Python module: NumPy is all it needs, and it reads from top to bottom."""

from __future__ import annotations

import ast
import math
import re
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from oco.backends.contract import Contract, Range
from oco.backends.identity import model_hash, plan_hash
from oco.backends.past_horizon import ALONE, ANYTIME
from oco.backends.python.constants import array_source
from oco.backends.python.functions import function_lines
from oco.backends.python.helpers import HELPERS
from oco.backends.python.sources import definitions, helper_lines, imports
from oco.backends.python.specialized import reads, specialized
from oco.backends.python.streams import Stream
from oco.compiler.ir.dead_code import used_by
from oco.compiler.ir.lower_bounds import lower_bounds
from oco.compiler.ir.passes import shorten
from oco.compiler.ir.program import DType, Field, Function, Program
from oco.dsl.labels import Axes

_RULE = 100
_IN_TURN = ("open_rounds", "standalone_delayed")
_LATER = """\
Each `decide` begins a round. The data of round t come before round t + {0} + 1 is decided, in any order;
`learner.pending` lists the open rounds, and `learner.skip(round=t)` says that the data never come.
"""
_UNPACKED = '''
def unpacked(text, dtype, shape):
    """An array from its compressed bytes."""
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype).reshape(shape)
'''


def emit(program: Program, contract: Contract) -> str:
    """Text of the module."""
    known = _known(program, contract)
    names = ("intake", "state_file", "standalone", *(_IN_TURN if contract.delay else ()), "standalone_file")
    learner = specialized(definitions(names, in_turn=contract.delay > 0), known)
    body = [
        *_rule(shorten(program), program.entries),
        *_interface(program, contract, reads(ast.parse(learner))),
        "",
        "",
        _heading("The learner"),
        learner,
    ]
    head = [_docstring(program, contract), "", *imports(("streams", *names), "\n".join(body)), ""]
    return "\n".join([*head, *body])


def _known(program: Program, contract: Contract) -> dict[str, Any]:
    """Values of the names that the learner's text branches on."""
    return {
        "prepare": program.prepare is not None,
        "certificate": program.certificate is not None,
        "DELAY": contract.delay,
        "SHARED": program.shared,
        "HORIZON": contract.of_one_turn.horizon,
        "CONTEXT": program.context,
        "PREVIOUS": program.previous,
        "DRAWS": program.draws,
        "LIPSCHITZ": program.slopes is not None,
        "STREAMS": [f.name for f in program.feedback],
        "START": program.decision,
        "NAMED": any(contract.axes.get(f.name) for f in program.feedback),
        "INTEGERS": any(f.type.dtype is DType.INT for f in program.feedback),
        "EXPLAINED": False,
        "len": len,
    }


def emit_rule(program: Program, entries: Sequence[Function] = (), skip: Collection[str] = ()) -> str:
    """Text of constants and functions alone, of all entries or of these: what a learner inside this package executes.

    `skip` names passes to leave out.
    """
    return rule_text(shorten(program, skip), entries or program.entries)


def rule_text(program: Program, entries: Sequence[Function]) -> str:
    """Text of constants and of entries by these names, of a program after the passes for NumPy."""
    rule = list(_rule(program, entries))
    packed = ["base64", "zlib"] if _UNPACKED in rule else []
    modules = sorted([*packed, "math"] if _uses_math(rule) else packed)
    return "\n".join(
        [*(f"import {m}" for m in modules), *([""] if modules else []), "import numpy as np", "", *rule, ""]
    )


def _uses_math(rule: Iterable[str]) -> bool:
    return any("math." in line for line in rule)


def _heading(title: str) -> str:
    return f"# {title} {'-' * (_RULE - len(title) - 4)}"


def _docstring(program: Program, contract: Contract) -> str:
    """Docstring of the module: its purpose, its use, the model, and the guarantee."""
    known = ", ".join(f"{name}=..." for name in program.context)
    filled = {*program.context, *dict(program.previous)}
    inputs = ", ".join(f"{f.name}=..." for f in program.feedback if f.name not in filled)
    rows = [
        f"{program.name}: decisions round by round with the algorithm {contract.algorithm}.",
        "",
        "Needs NumPy alone. Written by oco from the model below.",
        "",
        "    learner = Learner()",
        f"    x = learner.decide({known})",
        f"    feedback = learner.observe({inputs}{', round=1' if contract.delay else ''})",
        "",
        "`python THIS_FILE data.csv` runs it over a file with a column for each stream (`price`, or",
        "`price[0]`, `price[1]`, ..., or `price.ANYTHING`) and a row for each round.",
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
    text = "\n".join(rows).rstrip()
    safe = "\n".join(map(_printable, text.replace("\\", "\\\\").split("\n")))
    return '"""' + safe.replace('"""', '\\"\\"\\"').rstrip('"') + '\n"""'


def _printable(line: str) -> str:
    """Line with what cannot be printed as escapes."""
    return line if line.isprintable() else "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in line)


def comment(text: str) -> str:
    """Text on one line, without characters that could end it."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _rule(program: Program, entries: Sequence[Function]) -> Iterator[str]:
    """Constants with their origins, then the functions."""
    names = {f.name for f in entries}
    entries = [f for f in program.entries if f.name in names]
    functions, read = used_by(program, entries)
    constants = [(g.var.name, array_source(g.value), comment(g.why)) for g in read]
    if constants:
        yield _heading("Constants")
        yield ""
    if any("unpacked(" in source for _, source, _ in constants):
        yield _UNPACKED
    for name, source, why in constants:
        line = f"{name} = {source}"
        if why and len(line) + len(why) + 4 <= _RULE and "\n" not in line:
            yield f"{line}  # {why}"
        else:
            yield from (f"# {part}" for part in textwrap.wrap(why, _RULE - 2))
            yield line
    yield ""
    yield _heading("The rule")
    nonzero = {g.var.name for g in program.constants if g.value.shape == () and g.value != 0}
    least = lower_bounds(program)
    text = [line for f in (*functions, *entries) for line in ("", "", *function_lines(f, nonzero, least[f.name]))]
    called = {word for line in text for word in re.findall(r"\w+(?=\()", line)}
    yield from (line for helper in HELPERS if helper.__name__ in called for line in helper_lines(helper))
    yield from text
    yield ""
    yield ""


def _interface(program: Program, contract: Contract, read: Collection[str]) -> Iterator[str]:
    """Names, shapes and ranges of inputs and outputs; of those that the learner does not read, the model's own alone."""
    yield _heading("What goes in and out")
    yield ""
    yield f"MODEL = {quoted(program.name)}"
    yield f"MODEL_HASH = {quoted(model_hash(contract))}"
    yield f"PLAN_HASH = {quoted(plan_hash(program, contract))}"
    yield f"HORIZON = {contract.of_one_turn.horizon}"
    if contract.horizon is not None:
        yield f"AFTER_HORIZON = {quoted(ANYTIME if contract.anytime else ALONE)}"
    if contract.delay:
        yield f"DELAY = {contract.delay}"
        if program.shared:
            yield f"SHARED = {program.shared!r}"
    yield from _table("NAMES", {f.name: _names(a) for f in program.decision if (a := contract.axes.get(f.name))})
    yield f"STATE = {_strings(f.name for f in program.state)}"
    yield f"CONSTRAINTS = {_strings(program.labels)}"
    yield f"EQUALITIES = {_strings(contract.equalities)}"
    if "CONTEXT" in read:
        yield f"CONTEXT = {_strings(program.context)}"
    if "PREVIOUS" in read:
        yield from _table("PREVIOUS", {name: quoted(own) for name, own in program.previous})
    if "LIPSCHITZ" in read:
        yield from _lipschitz(program, contract)
    if "DRAWS" in read:
        kinds = contract.distributions
        draws = {f.name: f"({f.type.shape}, {quoted(kinds.get(f.name, 'uniform'))})" for f in program.draws}
        yield from _table("DRAWS", draws)
    start = {f.name: array_source(np.asarray(contract.start[f.name], float)) for f in program.decision}
    yield from _table("START", start)
    yield from (*helper_lines(Stream), "", "")
    yield from _table("STREAMS", {f.name: stream_source(f, contract) for f in program.feedback})


def _lipschitz(program: Program, contract: Contract) -> Iterator[str]:
    """Bounds of the gradients that `slopes` measures, in its order."""
    assert program.slopes is not None
    limits = contract.constants.slopes[: 1 + math.prod(program.slopes.body.results[1].type.shape)]
    rows = [f"({quoted(limit.name)}, {array_source(np.asarray(limit.bound))})," for limit in limits]
    yield from ("LIPSCHITZ = (", *(f"    {row}" for row in rows), ")") if rows else ("LIPSCHITZ = ()",)


def _table(name: str, rows: Mapping[str, str]) -> Iterator[str]:
    if not rows:
        yield f"{name} = {{}}"
        return
    yield f"{name} = {{"
    yield from (f"    {quoted(key)}: {value}," for key, value in rows.items())
    yield "}"


def quoted(text: str) -> str:
    """String literal in double quotes; characters that do not print are escaped."""
    return '"' + "".join(c if c.isprintable() and c not in '"\\' else f"\\U{ord(c):08x}" for c in text) + '"'


def _strings(items: Iterable[str]) -> str:
    """Tuple of strings, on several lines where they are many."""
    parts = [quoted(i) for i in items]
    line = f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    return line if len(line) < _RULE - 20 else "(\n" + "".join(f"    {part},\n" for part in parts) + ")"


def _names(axes: Axes) -> str:
    """Source of the names of the entries along each axis: `(("NYC", "WEST"), None)`."""
    return f"({', '.join('None' if a is None else _strings(a.names) for a in axes)},)"


def stream_source(field: Field, contract: Contract) -> str:
    """Source of a stream, as `Stream((10,), -1000.0, 3000.0)`."""
    given, axes = contract.ranges.get(field.name, Range()), contract.axes.get(field.name)
    parts = [repr(field.type.shape), _bound(given.lower), _bound(given.upper)]
    if field.type.dtype is DType.INT:
        parts.append("integer=True")
    if given.distribution:
        parts.append(f"distribution={quoted(given.distribution)}")
    if axes:
        parts.append(f"names={_names(axes)}")
    return f"Stream({', '.join(parts)})"


def _bound(value: Any) -> str:
    array = np.asarray(value, dtype=np.float64)
    same = array.size and (array == array.flat[0]).all()
    return array_source(array.ravel()[:1].reshape(()) if same else array)
