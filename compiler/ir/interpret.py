"""The interpreter: what a program means. Every backend is tested against it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from oco.compiler.ir.ops import OPS
from oco.compiler.ir.program import Block, Equation, Function, Global, Operand, Program, Type, Var
from oco.compiler.ir.trace import Result, Tracer
from oco.compiler.ir.verifier import KINDS, check_functions
from oco.dsl.diagnostics import InternalError

Array = np.ndarray[Any, Any]
Environment = dict[str, Any]


def interpret(program: Program, function: str, args: Sequence[Any]) -> tuple[Array, ...]:
    """Run `init`, `decide`, `update`, `measure` or one of the program's functions, by name, on arrays."""
    for f in (*program.entries, *program.functions):
        if f.name == function:
            return run_function(f, args, program.functions, program.constants)
    raise InternalError(f"the program has no function {function}")


def run_function(
    f: Function, args: Sequence[Any], functions: Iterable[Function], constants: Iterable[Global]
) -> tuple[Array, ...]:
    """One function on arrays; results have the shapes and kinds of its type."""
    return _Machine(functions, constants).run(f, args)


def as_numpy(name: str, fn: Callable[..., Result], *types: Type) -> Callable[..., tuple[Array, ...]]:
    """NumPy code out of traced code: `fn(t, *values)` is traced once for these types; each call interprets it."""
    t = Tracer(name)
    function = t.function(name, lambda *vs: fn(t, *vs), [(f"a{k}", made) for k, made in enumerate(types)])
    check_functions((*t.functions, function), t.constants)
    machine = _Machine(t.functions, t.constants)
    return lambda *args: machine.run(function, args)


def _as(value: Any, made: Type) -> Array:
    array: Array = np.asarray(value, dtype=KINDS[made.dtype])
    if array.shape != made.shape:
        raise InternalError(f"an array of shape {array.shape} where {made} is needed")
    return array


class _Machine:
    """Walks equations with an environment from names to arrays."""

    def __init__(self, functions: Iterable[Function], constants: Iterable[Global]) -> None:
        self.functions = {g.name: g for g in functions}
        self.constants = {g.var.name: g.value for g in constants}

    def run(self, f: Function, args: Sequence[Any]) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            results = self.call(f, tuple(_as(a, p.type) for a, p in zip(args, f.body.params, strict=True)))
        return tuple(_as(v, r.type) for v, r in zip(results, f.body.results))

    def call(self, f: Function, args: tuple[Any, ...]) -> tuple[Any, ...]:
        return self.block(f.body, args, dict(self.constants))

    def block(self, block: Block, args: tuple[Any, ...], env: Environment) -> tuple[Any, ...]:
        """Results of a block in the environment of its function, where every name is bound once."""
        for p, a in zip(block.params, args):
            env[p.name] = a
        for e in block.equations:
            for var, value in zip(e.outs, self.equation(e, env)):
                env[var.name] = value
        return tuple([_read(r, env) for r in block.results])

    def equation(self, e: Equation, env: Environment) -> tuple[Any, ...]:
        args = tuple([_read(a, env) for a in e.args])
        if e.op in OPS:
            value = OPS[e.op].value(args, dict(e.attrs))
            return tuple(value) if len(e.outs) > 1 else (value,)
        match e.op:
            case "call":
                return self.call(self.functions[e.attr("function")], args)
            case "if":
                return self.block(e.blocks[0] if args[0] else e.blocks[1], (), env)
            case "for":
                values = args[1:]
                for i in range(int(args[0])):
                    values = self.block(e.blocks[0], (np.int64(i), *values), env)
                return values
            case "while":
                values = args
                while self.block(e.blocks[0], values, env)[0]:
                    following = self.block(e.blocks[1], values, env)
                    values = _left_behind(values, following) if e.leaving else following
                return values
            case "map":
                made = [self.block(e.blocks[0], row, env) for row in zip(*args, strict=True)]
                return tuple(map(np.stack, zip(*made, strict=True)))
        raise InternalError(f"there is no operation {e.op}")


def _left_behind(values: tuple[Any, ...], following: tuple[Any, ...]) -> tuple[Any, ...]:
    """Values after a turn of a loop that lanes leave one by one: lanes whose first value is false keep theirs."""
    on, now = values[0], following[0]
    return (now, *(np.where(on, new, old) for new, old in zip(following[1:], values[1:])))


def _read(operand: Operand, env: Environment) -> Any:
    if isinstance(operand, Var):
        return env[operand.name]
    return KINDS[operand.type.dtype](operand.value)
