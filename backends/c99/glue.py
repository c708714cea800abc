"""Functions of one form for every learner, compiled beside the emitted source, for callers that do not know its types."""

from __future__ import annotations

from oco.backends.c99.interface import Named
from oco.backends.c99.module import Source

NAMES = ("glue_decide", "glue_observe", "glue_measure")


def glue(source: Source) -> str:
    """decide(self, decisions side by side), observe(self, addresses of inputs), measure(self, decisions, inputs, loss g h)."""
    name, of = source.name, source.interface
    inputs = [_input(n, k) for k, n in enumerate(of.inputs)]
    if of.program.measure is None or of.draws:
        return ""
    g = of.outputs[0]
    given = _side_by_side(of.decisions, "decisions")
    numbers = [p if d.type.shape else f"*({p})" for p, d in zip(given, of.decisions)]
    return f"""
void {name}_glue_decide(void *self, double *decisions);
void {name}_glue_decide(void *self, double *decisions) {{
    {name}_decide({", ".join(["self", *given])});
}}

int64_t {name}_glue_observe(void *self, const void *const *inputs);
int64_t {name}_glue_observe(void *self, const void *const *inputs) {{
    return {name}_observe({", ".join(["self", *inputs])});
}}

void {name}_glue_measure(void *self, const double *decisions, const void *const *inputs, double *worth);
void {name}_glue_measure(void *self, const double *decisions, const void *const *inputs, double *worth) {{
    {name}_measure({", ".join(["self", *numbers, *inputs, "worth", "worth + 1", f"worth + {1 + g}"])});
}}
"""


def _input(n: Named, k: int) -> str:
    pointer = f"(const {n.c_type} *)inputs[{k}]"
    return pointer if n.type.shape else f"*{pointer}"


def _side_by_side(values: list[Named], base: str) -> list[str]:
    """Where each of several arrays begins when they follow each other."""
    found, before = list[str](), 0
    for n in values:
        found.append(f"{base} + {before}" if before else base)
        before += n.size
    return found
