"""Plans, algorithms, backends and settings (OCO7xx)."""

from __future__ import annotations

from oco.dsl.codes.base import Code, Stage

PLANS: dict[str, Code] = {
    "OCO731": Code(
        "the backend is not there yet",
        "A plan runs on NumPy. C99 and JAX are named in the language of plans, and come later.",
        'oco.compile(model, backend="c")',
        'Use backend="numpy".',
        Stage.COMPILE,
    ),
    "OCO732": Code(
        "no such backend",
        "The backend of a plan is chosen by name.",
        'oco.compile(model, backend="fortran")',
        'Use backend="numpy".',
        Stage.COMPILE,
    ),
}
