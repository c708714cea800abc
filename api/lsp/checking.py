"""Checks of model files for an editor, in the process that `Checker` begins."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib import import_module
from threading import Thread
from typing import Any

import numpy as np

from oco.compiler.problem.canonical import canonical
from oco.compiler.problem.folding import Folding
from oco.compiler.prover.check import check
from oco.compiler.prover.context import ProofContext
from oco.compiler.prover.derivation import step_lines, value_text
from oco.compiler.prover.fact import Fact
from oco.compiler.prover.mixed_units import mixed_units
from oco.compiler.prover.phrasing import number
from oco.dsl.diagnostics import Diagnostic, OcoError
from oco.dsl.dims import show
from oco.dsl.lint.text_rules import lint_text
from oco.dsl.load import parse
from oco.dsl.model import Model
from oco.dsl.source import Source
from oco.dsl.suppression import without_allowed
from oco.guarded import limit
from oco.lsp.checked import Checked, ShownFact


def checked(text: str, name: str, folder: str | None) -> Checked:
    """Check a model; data files are looked for in `folder`."""

    try:
        model = parse(text, name=name, folder=folder)
    except OcoError as error:
        return Checked(_words(error.diagnostics))
    try:
        facts = check(model)
    except OcoError as error:
        return Checked(_words(error.diagnostics), _shapes(model))
    context = ProofContext(canonical(model))
    warnings = (*facts.warnings, *_lints(text, name, model, context))
    return Checked(
        _words(warnings), _shapes(model), {key: _shown(facts[key]) for key in facts}, _ranges(model, context)
    )


def _lints(text: str, name: str, model: Model, context: ProofContext) -> tuple[Diagnostic, ...]:
    """Warnings of the rules of `oco lint` that take no longer than a check: those on the text and on ranges."""
    return (*lint_text(Source(name, text), model), *without_allowed(mixed_units(context)))


def _ranges(model: Model, context: ProofContext) -> dict[str, str]:
    """Range of each named expression over the declared ranges, the widest of its entries, in words."""
    folding, results = Folding(model), {}
    for let in model.lets:
        values = context.plain_range(folding.fold(let.value))
        if values is not None and values.size:
            results[let.name] = f"from {number(float(np.min(values.lo)))} to {number(float(np.max(values.hi)))}"
    return results


def _words(diagnostics: Sequence[Diagnostic]) -> tuple[Mapping[str, Any], ...]:
    return tuple(d.as_data() for d in diagnostics)


def _shapes(model: Model) -> dict[str, str]:
    """Shape of each name in words."""
    shapes = {p.name: p.shape for p in model.params} | {d.name: d.shape for d in model.decisions}
    shapes |= {s.name: s.shape for s in model.streams} | {let.name: let.value.shape for let in model.lets}
    return {name: show(shape) for name, shape in shapes.items()}


def _shown(fact: Fact) -> ShownFact:
    why = "" if fact.why is None else next(iter(step_lines(fact.why, 0, set()))).strip()
    return ShownFact(value_text(fact.value), fact.grade, why)


def main() -> None:
    """Answer checks on standard input, a line of JSON each, on standard output; the argument is the limit on memory, in bytes."""
    with suppress(ImportError):  # not every system has limits on processes
        limit(math.inf, int(sys.argv[1]))
    solvers = Thread(target=import_module, args=("cvxpy",), daemon=True)
    for line in sys.stdin:
        print(json.dumps(asdict(checked(**json.loads(line)))), flush=True)
        if (
            solvers.ident is None
        ):  # some models ask a solver, which takes a second to import: it is there for the next check
            solvers.start()


if __name__ == "__main__":
    main()
