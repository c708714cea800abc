"""Functions of one form for every learner, compiled beside the emitted source, for callers that do not know its types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oco.backends.c99.interface import Interface, Named
from oco.backends.c99.module import CSource


def glue(source: CSource) -> str:
    """Text of the functions in C. `inputs` are those of `Program.feedback`, of which they read what data give.

    glue_prepare(self, addresses of inputs), where the rule prepares its rounds, reads contexts alone; glue_decide(self, addresses of
    draws, decisions side by side); glue_measure(self, decisions, inputs, measured), where measured is loss, g, h side by side, and
    nothing is read or written where an input is out of bounds (its place, else 0); then glue_observe(self, addresses of inputs, of
    draws). Where all decisions lie in the state, glue_measure takes them from there, and `decisions` is not read.
    """
    of = source.interface
    if of.program.measure is None:
        return ""
    return "\n".join([*_one(of), ""])


def holds_decisions(of: Interface) -> bool:
    """True where all decisions of a round lie in the state until it ends."""
    return len(of.held) == len(of.decisions)


def _one(of: Interface) -> Iterator[str]:
    places = {f.name: k for k, f in enumerate(of.program.feedback)}
    inputs = [_entry(n, f"(const {n.c_type} *)inputs[{places[n.field.name]}]") for n in of.inputs]
    draws = [_entry(n, f"(const {n.c_type} *)draws[{k}]") for k, n in enumerate(of.draws)]
    given = _side_by_side(of.decisions, "decisions")
    if holds_decisions(of):
        values = [f"((const {of.name} *)self)->{of.held[d.name].name}" for d in of.decisions]
    else:
        values = [_entry(d, p) for p, d in zip(given, of.decisions)]
    if of.program.prepare is not None:
        known = [entry for n, entry in zip(of.inputs, inputs) if n.field.name in of.program.context]
        yield from _function(
            of,
            "int64_t",
            "glue_prepare",
            "void *self, const void *const *inputs",
            ["(void)inputs;", f"return {of.name}_prepare({', '.join(['self', *known])});"],
        )
    yield from _function(
        of,
        "int64_t",
        "glue_decide",
        "void *self, const void *const *draws, double *decisions",
        [f"return {of.name}_decide({', '.join(['self', *draws, *given])});"],
    )
    yield from _function(
        of,
        "int64_t",
        "glue_observe",
        "void *self, const void *const *inputs, const void *const *draws",
        [f"return {of.name}_step({', '.join(['self', *inputs, *draws])});"],
    )
    measured = ["measured", "measured + 1", f"measured + {1 + of.outputs[0]}"]
    yield from _function(
        of,
        "int64_t",
        "glue_measure",
        "void *self, const double *decisions, const void *const *inputs, double *measured",
        [
            "(void)decisions;",
            f"const int64_t wrong = {of.name}_check({', '.join(inputs)});",
            f"if (wrong == 0) {{ {of.name}_measure({', '.join(['self', *values, *inputs, *measured])}); }}",
            "return wrong;",
        ],
    )


def _function(of: Interface, returns: str, name: str, parameters: str, body: Sequence[str]) -> Iterator[str]:
    head = f"{returns} {of.name}_{name}({parameters})"
    yield from ("", f"{head};", f"{head} {{", *(f"    {line}" for line in body), "}")


def _entry(n: Named, pointer: str) -> str:
    """Argument of a call: an array by its address, a number by its value."""
    return pointer if n.type.shape else f"*({pointer})"


def _side_by_side(values: Sequence[Named], base: str) -> list[str]:
    """Pointers to the beginnings of several consecutive arrays."""
    result, before = list[str](), 0
    for n in values:
        result.append(f"{base} + {before}" if before else base)
        before += n.size
    return result
