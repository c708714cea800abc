"""Program as a text of JAX: constants, the rule, and a round of it, which `lax.scan` repeats and `jax.vmap` does for many learners."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from oco.backends.python.constants import array_source
from oco.backends.python.module import UNPACKED, comment
from oco.backends.xla.functions import check_expressible, function_lines
from oco.backends.xla.templates import DIFFERENTIABLE, HELPERS, TEMPLATES, Template
from oco.compiler.ir.dead_code import used_by
from oco.compiler.ir.passes import fuse
from oco.compiler.ir.program import Function, Program
from oco.compiler.ir.rewrite import equations_of

IMPORTS = """\
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
"""
DERIVATIVES = "from oco.backends.xla.derivatives import larger, largest, ratio, root, smaller, smallest"


def entries_of(program: Program) -> list[Function]:
    """Entries that run in JAX: all but those that learners ask for now and then."""
    return [f for f in program.entries if f not in (program.slopes, program.certificate)]


def rule_text(program: Program) -> str:
    """Text of constants, functions and the round of a program; 64-bit numbers are enabled by whoever runs it. Raises OCO873."""
    check_expressible(program)
    return "\n".join([IMPORTS, *_rule(fuse(program)), ""])


def differentiable_text(program: Program) -> str:
    """Text of `rule_text` with operations whose derivatives stay finite. Raises OCO873."""
    check_expressible(program)
    return "\n".join([IMPORTS, DERIVATIVES, *_rule(fuse(program), DIFFERENTIABLE), ""])


def _rule(program: Program, templates: Mapping[str, Template] = TEMPLATES) -> Iterator[str]:
    entries = entries_of(program)
    functions, constants = used_by(program, entries)
    sources = [(g.var.name, _constant(g.value), comment(g.why)) for g in constants]
    if any("unpacked(" in source for _, source, _ in sources):
        yield f"import base64\nimport zlib\n{UNPACKED}"
    for name, source, why in sources:
        yield from ([f"# {why}"] if why else [])
        yield f"{name} = {source}"
    called = {e.op for f in (*functions, *entries) for e in equations_of(f.body)}
    yield from (f"\n{text}" for name, text in HELPERS.items() if name in called)
    for f in functions:
        yield from ("", "", *function_lines(f, False, templates))
    for f in entries:
        yield from ("", "", *function_lines(f, True, templates))
    if program.measure is not None:
        yield from ("", "", *_round_lines(program))


def _constant(value: np.ndarray[Any, Any]) -> str:
    source = array_source(value)
    return source if value.shape == () else f"jnp.asarray({source})"


def _round_lines(program: Program) -> Iterator[str]:
    """Function of a round, from the entries."""
    yield "def play_round(state, inputs, draws):"
    yield '    """Round of a learner: the state after it, and (decisions, loss, constraints, equalities)."""'
    if program.prepare is not None:
        places = [k for k, f in enumerate(program.feedback) if f.name in program.context]
        yield f"    state = prepare(*state, *(inputs[k] for k in {places}))"
    yield "    decided = decide(*state, *draws)"
    yield f"    loss, constraints, equalities = measure(state[{program.number_place}], *decided, *inputs)"
    yield "    return update(*state, *inputs, *draws), (decided, loss, constraints, equalities)"
