"""Files beside a learner in WebAssembly: an ES module that runs it, its types for TypeScript, and a package for Node.js and bundlers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from importlib.resources import files

from oco.backends.c99.interface import Named
from oco.backends.c99.module import CSource
from oco.backends.c99.return_codes import error_size
from oco.compiler.ir.program import DType

_CALLED = (
    "init",
    "prepare",
    "decide",
    "observe",
    "observe_round",
    "skip",
    "pending",
    "measure",
    "certificate",
    "alarm",
)
_ALWAYS = ("save", "load", "error", "version", "sizeof")
_INDENT = "  "


def called(source: CSource) -> list[str]:
    """Functions of the source that the binding calls, by their names in C."""
    heads = (source.ring or source.interface).heads()
    return [f"{source.name}_{name}" for name in (*(f for f in _CALLED if f in heads), *_ALWAYS)]


def binding(source: CSource) -> dict[str, str]:
    """Texts of the files by name."""
    name = source.name
    package = {
        "name": name.lower().replace("_", "-"),
        "version": "0.1.0",
        "type": "module",
        "exports": {".": {"types": f"./{name}.d.mts", "default": f"./{name}.mjs"}, f"./{name}.wasm": f"./{name}.wasm"},
    }
    return {
        f"{name}.mjs": _module(source),
        f"{name}.d.mts": "\n".join(_types(source)) + "\n",
        "package.json": json.dumps(package, indent=2) + "\n",
    }


def _module(source: CSource) -> str:
    """Text of the module, its tables filled in."""
    text = files("oco.backends.c99").joinpath("javascript_binding.mjs").read_text(encoding="utf-8")
    before, _, rest = text.replace("NAME.wasm", f"{source.name}.wasm").partition("// begin tables\n")
    after = rest.partition("// end tables\n")[2]
    return f"{before}const TABLES = {json.dumps(_tables(source), indent=2)};\n{after}"


def _tables(source: CSource) -> dict[str, object]:
    of = source.interface
    number = "f" if of.arithmetic.single else "d"
    kinds = {DType.FLOAT: number, DType.INT: "q", DType.BOOL: "b"}
    groups = {
        "decisions": of.decisions,
        "context": of.known,
        "inputs": of.inputs,
        "draws": of.draws,
        "certificate": of.proof,
    }
    return {
        "name": source.name,
        "number": number,
        "turns": source.ring.turns if source.ring else 1,
        "stateSize": source.state_size,
        "errorSize": error_size(of),
        "values": of.outputs,
        "measures": of.program.measure is not None,
        "prepares": of.program.prepare is not None,
        "watches": "alarm" in of.heads(),
        **{key: {n.field.name: (kinds[n.type.dtype], n.type.shape) for n in group} for key, group in groups.items()},
    }


# Types.


def _types(source: CSource) -> Iterator[str]:
    """Lines of the declarations, with a member for each name of the model."""
    of, arrays = source.interface, "Float32Array" if source.interface.arithmetic.single else "Float64Array"
    yield f"/** Learners of {source.name}.wasm. Arrays go in nested or row by row, and come out row by row. */"
    yield "export type Numbers = ArrayLike<number | bigint> | readonly Numbers[];"
    yield from _interface("Decision", "Decisions of a round.", of.decisions, {True: arrays, False: "number"})
    taken = {True: "Numbers", False: "number | bigint | boolean"}
    yield from _interface(
        "Before", "What is known before a decision: contexts, and the rule's draws.", [*of.known, *of.draws], taken
    )
    yield from _interface("Round", "What a round reveals, with the rule's draws.", [*of.inputs, *of.draws], taken)
    yield from _interface(
        "Certificate", "Bounds of what fixed decisions lost.", of.proof, {True: arrays, False: "number"}
    )
    start = "; ".join(f"{json.dumps(d.field.name)}?: {'Numbers' if d.type.shape else 'number'}" for d in of.decisions)
    yield from (
        _DECLARATIONS.replace("OPTIONAL", "?" if not (of.known or of.draws) else "")
        .replace("ARRAY", arrays)
        .replace("START", f"{{ {start} }}")
        .split("\n")
    )


def _interface(name: str, doc: str, items: Sequence[Named], kinds: dict[bool, str]) -> Iterator[str]:
    members = {n.field.name: n for n in items}
    yield ""
    yield f"/** {doc} */"
    yield f"export interface {name} {{"
    for key, n in members.items():
        shape = f" // {' x '.join(map(str, n.type.shape))}" if n.type.shape else ""
        yield f"{_INDENT}{json.dumps(key)}: {kinds[bool(n.type.shape)]};{shape}"
    yield "}"


_DECLARATIONS = """
/** Values of decisions in a round: g holds where it is at most 0, h where it is 0. */
export interface Measured {
  loss: number;
  constraints: ARRAY;
  equalities: ARRAY;
}

/** Error for data that the learner refuses; the learner is as before. */
export class LearnerError extends Error {
  readonly code: number;
}

/** Learner that decides round by round: `decide`, then `observe`. */
export class Learner {
  private constructor();
  decide(givenOPTIONAL: Before): Decision;
  observe(given: Round, options?: { round?: number }): void;
  readonly pending: number[];
  skip(round?: number): void;
  measure(decisions: { [Name in keyof Decision]: Decision[Name] | Numbers }, given: Round): Measured;
  run(rounds: Iterable<Round | ((decision: Decision) => Round)>): ({ decision: Decision } & Partial<Measured>)[];
  readonly alarm: { round: number; statement: string } | null;
  certificate(): Certificate;
  save(): Uint8Array;
  restore(bytes: Uint8Array): void;
}

/** A compiled learner, of which `create` makes as many as are wanted. */
export class Model {
  constructor(module: WebAssembly.Module);
  readonly version: string;
  create(options?: { start?: START }): Learner;
}

type Source = URL | BufferSource | Response | WebAssembly.Module;

/** Model of the compiled module beside this file, or of one that is given. */
export function load(source?: Source | Promise<Source>): Promise<Model>;"""
