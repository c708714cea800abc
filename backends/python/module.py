"""Program as a standalone Python module: NumPy is all it needs, and it reads from top to bottom."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any

import numpy as np

from oco.backends.contract import Contract, Range
from oco.backends.identity import model_hash, plan_hash
from oco.backends.past_horizon import ALONE, ANYTIME
from oco.backends.python.constants import array_source
from oco.backends.python.docstrings import NUMPY_ALONE, learner_docstring, rule_docstring
from oco.backends.python.functions import function_lines
from oco.backends.python.helpers import HELPERS
from oco.backends.python.layout import turned
from oco.backends.python.sources import definitions, helper_lines, imports
from oco.backends.python.specialized import specialized
from oco.backends.python.streams import Stream
from oco.compiler.ir.dead_code import used_by
from oco.compiler.ir.lower_bounds import lower_bounds
from oco.compiler.ir.names import identifier
from oco.compiler.ir.passes import shorten
from oco.compiler.ir.program import ROUND, DType, Field, Function, Global, Program
from oco.dsl.labels import Axes

_RULE = 100
_CALLED_HELPER = re.compile(rf"\b({'|'.join(helper.__name__ for helper in HELPERS)})\(")
_DEFINITION = re.compile(r"^(?:(?:def|class) (\w+)|(\w+) = )", re.MULTILINE)
_LEARNER = ("intake", "state_file", "standalone")
_IN_TURN = ("open_rounds", "standalone_delayed")
_FILE = "standalone_file"
UNPACKED = '''
def unpacked(text, dtype, shape):
    """An array from its compressed bytes."""
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype).reshape(shape)
'''


def emit(program: Program, contract: Contract) -> str:
    """Text of the module: the rule, then the learner that runs it."""
    return standalone_module(_rule(shorten(program), program.entries), program, contract)


def standalone_module(rule: Iterable[str], program: Program, contract: Contract, needs: str = NUMPY_ALONE) -> str:
    """Text of a module of any rule whose entries take and give arrays of NumPy: what goes in and out, and the learner that runs it.

    needs  packages that the rule needs, in words
    """
    learner = _learner_part(program, contract)
    read = _read("\n".join(learner))
    part = [*rule, *_interface(program, contract, read), "", ""]
    return _module(rule_docstring(program, contract, needs=needs), part, learner)


def emit_parts(program: Program, contract: Contract) -> dict[str, str]:
    """Texts of two modules by file name: the rule with its inputs and outputs, and the learner that runs it. The second holds nothing of
    the model but its name: models with the same features have the same.
    """
    name = identifier(program.name)
    rule, learner = _rule_part(program, contract), _learner_part(program, contract)
    given = _defined(rule) & _read("\n".join(learner))
    asked = [f"from {name}_rule import (", *(f"    {word}," for word in sorted(given)), ")"]
    return {
        f"{name}_rule.py": _module(rule_docstring(program, contract, f"{name}_learner"), rule),
        f"{name}_learner.py": _module(learner_docstring(name), [*asked, ""], learner),
    }


def _module(head: str, *parts: Sequence[str]) -> str:
    """Text of a module: its docstring, the imports that its parts need, and the parts."""
    body = [line for part in parts for line in part]
    read = frozenset[str]().union(*(_read("\n".join(part)) for part in parts))
    standard = imports(("streams", *_LEARNER, *_IN_TURN, _FILE), read)
    return "\n".join([head, "", *standard, "", *body]).rstrip() + "\n"


@lru_cache(maxsize=64)
def _read(text: str) -> frozenset[str]:
    """Names in the code of a text, which it may read; the learner's text is asked for again and again."""
    read, open_ = set[str](), [compile(text, "<module>", "exec", dont_inherit=True)]
    while open_:
        code = open_.pop()
        read.update(code.co_names, code.co_varnames, code.co_cellvars)
        open_ += [part for part in code.co_consts if isinstance(part, CodeType)]
    return frozenset(read)


def _rule_part(program: Program, contract: Contract) -> list[str]:
    """Constants, functions, and names, shapes and ranges of what goes in and out."""
    read = _read("\n".join(_learner_part(program, contract)))
    return [*_rule(shorten(program), program.entries), *_interface(program, contract, read)]


def _learner_part(program: Program, contract: Contract) -> list[str]:
    return [_heading("The learner"), _learner(program, contract)]


def _learner(program: Program, contract: Contract) -> str:
    """Learner of the features that the program has: checks of data, saved states, a program that plays files."""
    names = (*_LEARNER, *(_IN_TURN if contract.delay else ()), _FILE)
    return _specialized(names, contract.delay > 0, tuple(_known(program, contract).items()))


@lru_cache(maxsize=64)
def _specialized(names: Sequence[str], in_turn: bool, known: tuple[tuple[str, Any], ...]) -> str:
    """Text of the learner. Files are asked for one by one, and models with the same features have the same learner."""
    return specialized(definitions(names, in_turn=in_turn), dict(known))


def _defined(lines: Sequence[str]) -> set[str]:
    """Names that a text defines at its top."""
    return {name for names in _DEFINITION.findall("\n".join(lines)) for name in names if name}


def _known(program: Program, contract: Contract) -> dict[str, Any]:
    """Values of the names that the learner's text branches on: mostly whether there is any."""
    revealed = {f.name for f in program.feedback}
    return {
        "prepare": program.prepare is not None,
        "certificate": program.certificate is not None,
        "DELAY": contract.delay,
        "SHARED": program.shared,
        "HANDED": bool(program.handed),
        "CORRECTED": program.corrected,
        "NUMBERS": program.numbers,
        "NUMBERED": program.numbered_by != ROUND,
        "HORIZON": None if contract.of_one_turn.horizon is None else True,
        "CONTEXT": bool(program.context),
        "PREVIOUS": bool(program.previous),
        "DRAWS": bool(program.draws),
        "LIPSCHITZ": program.slopes is not None,
        "STATED": contract.alert is not None,
        "STREAMS": frozenset({"second_loss"} & revealed),
        "START": range(len(program.decision)),
        "NAMED": any(contract.axes.get(name) for name in revealed),
        "INTEGERS": any(f.type.dtype is DType.INT for f in program.feedback),
        "ARRAYS": any(f.type.shape for f in program.feedback),
        "DISTRIBUTED": any(contract.ranges.get(name, Range()).distribution for name in revealed),
        "LABELS": bool(program.labels or contract.equalities),
        "EXPLAINED": False,
        "len": len,
    }


def rule_text(program: Program, entries: Sequence[Function]) -> str:
    """Text of constants and of entries by these names, of a program after the passes for NumPy."""
    rule = list(_rule(program, entries))
    packed = ["base64", "zlib"] if UNPACKED in rule else []
    modules = sorted([*packed, "math"] if _uses_math(rule) else packed)
    return "\n".join(
        [*(f"import {m}" for m in modules), *([""] if modules else []), "import numpy as np", "", *rule, ""]
    )


def _uses_math(rule: Iterable[str]) -> bool:
    return any("math." in line for line in rule)


def _heading(title: str) -> str:
    return f"# {title} {'-' * (_RULE - len(title) - 4)}"


def comment(text: str) -> str:
    """Text on one line, without characters that could end it."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _rule(program: Program, entries: Sequence[Function]) -> Iterator[str]:
    """Constants with their origins, then the functions."""
    names = {f.name for f in entries}
    entries = [f for f in program.entries if f.name in names]
    functions, read = used_by(program, entries)
    constants = [(g.var.name, array_source(g.value), comment(g.why)) for g in read if not g.beside_arrays]
    if read:
        yield _heading("Constants")
        yield ""
    if any("unpacked(" in source for _, source, _ in constants):
        yield UNPACKED
    for name, source, why in constants:
        line = f"{name} = {source}"
        if why and len(line) + len(why) + 4 <= _RULE and "\n" not in line:
            yield f"{line}  # {why}"
        else:
            yield from (f"# {part}" for part in textwrap.wrap(why, _RULE - 2))
            yield line
    yield from _numbers([g for g in read if g.beside_arrays])
    yield ""
    yield _heading("The rule")
    nonzero = {g.var.name for g in program.constants if g.value.shape == () and g.value != 0}
    least = lower_bounds(program)
    layout = turned(program.update, program.functions)
    text: list[str] = []
    for f in (*functions, *entries):
        by_rows = layout if f.name == program.update.name else frozenset[str]()
        text += ("", "", *function_lines(f, nonzero, least[f.name], by_rows))
    called = set(_CALLED_HELPER.findall("\n".join(text)))
    yield from (line for helper in HELPERS if helper.__name__ in called for line in helper_lines(helper))
    yield from text
    yield ""
    yield ""


def _numbers(constants: Sequence[Global]) -> Iterator[str]:
    """Numbers that stand beside arrays, as arrays without axes."""
    if constants:
        yield ""
        yield "# Numbers beside arrays: NumPy takes arrays without axes sooner than numbers of Python's"
        yield from (f"{g.var.name} = np.array({array_source(g.value)})" for g in constants)


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
        if program.handed:
            yield from _table("HANDED", {name: quoted(left) for name, left in program.handed})
        if program.corrected:
            yield f"CORRECTED = {program.corrected!r}"
        yield f"IN_ORDER = {program.in_order}"
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
    if program.certificate is not None:
        yield f"CERTIFIED = {_strings(program.certificate.result_names)}"
    if contract.alert is not None:
        yield f"STATED = {_strings(contract.alert.statements)}"
        yield f"ON_ALARM = {quoted(contract.alert.result)}"
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
