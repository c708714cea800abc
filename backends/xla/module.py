"""Program as a text of JAX: constants, the rule, and a round of it, which `lax.scan` repeats and `jax.vmap` does for many learners."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from oco.backends.contract import Contract
from oco.backends.python.constants import array_source
from oco.backends.python.module import UNPACKED, comment, standalone_module
from oco.backends.xla.functions import check_expressible, function_lines
from oco.backends.xla.templates import DIFFERENTIABLE, HELPERS, TEMPLATES, Template
from oco.compiler.ir.dead_code import used_by
from oco.compiler.ir.passes import fuse
from oco.compiler.ir.program import Function, Program
from oco.compiler.ir.rewrite import equations_of

IMPORTS = "import jax\nimport jax.numpy as jnp\nfrom jax import lax\n"
WITH_NUMPY = "import numpy as np\n"
DERIVATIVES = "from oco.backends.xla import derivatives\n"
TRACED = "traced_"
"""Beginning of the names of entries that take and give arrays of JAX, in a module that stands alone."""
ENABLED = 'jax.config.update("jax_enable_x64", True)\n'
FOR_NUMPY = '''

def for_numpy(function):
    """Function of arrays of NumPy, compiled on its first call; a single result is no tuple."""
    run = jax.jit(function)

    def call(*values):
        results = tuple(np.asarray(a)[()] for a in run(*values))
        return results if len(results) > 1 else results[0]

    return call

'''
PLAY = '''

@jax.jit
def play(state, inputs, draws=()):
    """Many rounds in one call: inputs and draws in the order of their tables, the round first; what `play_round` gives of each."""
    return lax.scan(lambda now, of_round: play_round(now, *of_round), state, (inputs, draws))
'''


def rule_text(program: Program) -> str:
    """Text of constants, functions and the round of a program; 64-bit numbers are enabled by whoever runs it. Raises OCO873."""
    check_expressible(program)
    return "\n".join([WITH_NUMPY + IMPORTS, *_rule(fuse(program), _of_rounds(program)), ""])


def differentiable_text(program: Program) -> str:
    """Text of `rule_text` with operations whose derivatives stay finite. Raises OCO873."""
    check_expressible(program)
    return "\n".join(
        [WITH_NUMPY + IMPORTS, DERIVATIVES, *_rule(fuse(program), _of_rounds(program), templates=DIFFERENTIABLE), ""]
    )


def emit(program: Program, contract: Contract) -> str:
    """Text of a module that needs JAX and NumPy: the rule, `play` for many rounds, and the learner that runs it. Raises OCO873."""
    check_expressible(program)
    names = [f.name for f in program.entries]
    rule = [IMPORTS, ENABLED, *_rule(fuse(program), names, TRACED)]
    rule += [PLAY] if program.measure is not None else []
    rule += [FOR_NUMPY, *(f"{name} = for_numpy({TRACED}{name})" for name in names), "", ""]
    return standalone_module(rule, program, contract, "JAX and NumPy")


def _of_rounds(program: Program) -> list[str]:
    """Names of the entries of every round: all but those that learners ask for now and then."""
    return [f.name for f in program.entries if f not in (program.slopes, program.certificate)]


def _rule(
    program: Program, names: Sequence[str], prefix: str = "", templates: Mapping[str, Template] = TEMPLATES
) -> Iterator[str]:
    """Constants with their origins, the functions, the entries of these names with a prefix, and the round."""
    entries = [f for f in program.entries if f.name in names]
    functions, constants = used_by(program, entries)
    sources = [(g.var.name, _constant(g.value), comment(g.why)) for g in constants]
    if any("unpacked(" in source for _, source, _ in sources):
        yield f"import base64\nimport zlib\n{UNPACKED}"
    for name, source, why in sources:
        yield from ([f"# {why}"] if why else [])
        yield f"{name} = {source}"
    called = {e.op for f in (*functions, *entries) for e in equations_of(f.body)}
    yield from (f"\n{text.rstrip()}" for name, text in HELPERS.items() if name in called)
    for f in functions:
        yield from ("", "", *function_lines(f, False, templates))
    for f in entries:
        yield from ("", "", *function_lines(_prefixed(f, prefix), True, templates))
    if program.measure is not None:
        yield from ("", "", *_round_lines(program, prefix))


def _prefixed(function: Function, prefix: str) -> Function:
    return replace(function, name=prefix + function.name)


def _constant(value: np.ndarray[Any, Any]) -> str:
    source = array_source(value)
    return source if value.shape == () else f"jnp.asarray({source})"


def _round_lines(program: Program, prefix: str) -> Iterator[str]:
    """Function of a round, from the entries; inputs are those of `Program.revealed`, and what rounds leave to the next is in the state."""
    yield "def play_round(state, inputs, draws):"
    yield '    """Round of a learner: the state after it, and (decisions, loss, constraints, equalities)."""'
    if program.prepare is not None:
        places = [k for k, f in enumerate(program.revealed) if f.name in program.context]
        yield f"    state = {prefix}prepare(*state, *(inputs[k] for k in {places}))"
    yield f"    decided = {prefix}decide(*state, *draws)"
    data = "inputs"
    if program.previous:
        fields = {f.name: f"state[{k}]" for k, f in enumerate(program.state)}
        each = program.data(fields, (f"inputs[{k}]" for k in range(len(program.revealed))))
        data = "data"
        yield f"    data = {', '.join(each)},"
    number = f"state[{program.number_place}]"
    yield f"    loss, constraints, equalities = {prefix}measure({number}, *decided, *{data})"
    yield f"    return {prefix}update(*state, *{data}, *draws), (decided, loss, constraints, equalities)"
