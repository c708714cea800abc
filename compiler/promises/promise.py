"""Promise: the guarantee of a plan as a list of statements over rationals, each with its justification."""

from __future__ import annotations

from fractions import Fraction

from oco.compiler.promises.steps import Bounds, ProgramStep
from oco.dsl.records import dataclass

FAMILY = {"ogd": ("ogd", "ogd_strong"), "oeg": ("oeg",), "nested": ("nested", "nested_strong")}
"""Algorithms whose theorems are written in Lean, with the names of these: for convex losses, and for strongly convex ones."""


@dataclass(frozen=True)
class RationalInequality:
    """Inequality between two expressions of the numbers and vectors of a promise, in the notation of Lean; `relation` is "≤" or "<"."""

    name: str
    left: str
    relation: str
    right: str


@dataclass(frozen=True)
class LeanPromise:
    """Statements from which the regret theorem of an algorithm follows.

    theorem       name of the theorem, of `FAMILY`
    model         text of the model that they are about
    counts        T rounds, d entries of the decision, m of the data, and of the memory the number of constraints
    vectors       numbers by entry: ranges of the decision and the data, bounds of the gradient's entries
    numbers       the step, diameter, gradient, and R, the bound of the regret
    steps         computation of gradient and constraints, `bounds` their intervals
    gradient      the step of each entry
    constraint_steps  of each constraint g, which asks for g <= 0
    at_point      positions of steps that constraints rest on, each with its interval at the feasible point
    """

    theorem: str
    model: str
    counts: tuple[tuple[str, int], ...]
    vectors: tuple[tuple[str, tuple[Fraction, ...]], ...]
    numbers: tuple[tuple[str, Fraction], ...]
    steps: tuple[ProgramStep, ...]
    bounds: tuple[Bounds, ...]
    gradient: tuple[int, ...]
    constraint_steps: tuple[int, ...]
    at_point: tuple[tuple[int, Bounds], ...]
    inequalities: tuple[RationalInequality, ...]

    @property
    def regret(self) -> Fraction:
        """R, the bound of the static regret over all rounds."""
        return dict(self.numbers)["R"]

    @property
    def statements(self) -> int:
        """Number of inequalities and intervals that are verified."""
        return (
            len(self.inequalities)
            + len(self.bounds)
            + len(self.at_point)
            + len(self.gradient)
            + 2 * len(self.constraint_steps)
        )

    @property
    def violation(self) -> tuple[Fraction, ...]:
        """Bound of what all rounds together break each constraint by; empty without constraints."""
        return dict(self.vectors).get("V", ())


def _inequalities(*rows: tuple[str, str, str, str]) -> tuple[RationalInequality, ...]:
    return tuple(RationalInequality(*row) for row in rows)


_DESCENT = (
    ("G_nonneg", "0", "≤", "G"),
    ("D_nonneg", "0", "≤", "D"),
    ("slope_le_G", "∑ i, slope i ^ 2", "≤", "G ^ 2"),
    ("width_le_D", "∑ i, (upper i - lower i) ^ 2", "≤", "D ^ 2"),
)
_SERIES = "∑ k ∈ range 40, L ^ k / (Nat.factorial k : ℝ)"
_STRONG = (
    ("c_pos", "0", "<", "c"),
    ("L_nonneg", "0", "≤", "L"),
    ("rounds_le_series", "(T : ℝ)", "≤", _SERIES),
    ("total_le_R", "c * G ^ 2 / 2 * (1 + L)", "≤", "R"),
)
_MEMORY = (
    ("high_le_V", "high k", "≤", "V k"),
    ("width_le_V", "pointHigh k - pointLow k", "≤", "V k"),
    ("point_has_margin", "pointHigh k", "≤", "-margin k"),
    ("margin_nonneg", "0", "≤", "margin k"),
)
INEQUALITIES = {
    "ogd": _inequalities(
        ("c_pos", "0", "<", "c"),
        *_DESCENT,
        ("r_nonneg", "0", "≤", "r"),
        ("T_le_square", "(T : ℝ)", "≤", "r ^ 2"),
        ("total_le_R", "r * (D ^ 2 / (2 * c) + c * G ^ 2)", "≤", "R"),
    ),
    "ogd_strong": _inequalities(*_DESCENT, *_STRONG),
    "nested": _inequalities(
        ("S_pos", "0", "<", "S"),
        *_DESCENT,
        ("r_nonneg", "0", "≤", "r"),
        ("T_le_square", "2 * (T : ℝ)", "≤", "r ^ 2"),
        ("total_le_R", "r * G * ((D ^ 2 / S + S) / 2)", "≤", "R"),
        *_MEMORY,
    ),
    "nested_strong": _inequalities(*_DESCENT, *_STRONG, *_MEMORY),
    "oeg": _inequalities(
        ("c_pos", "0", "<", "c"),
        ("L_nonneg", "0", "≤", "L"),
        ("step_le_one", "c * G", "≤", "1"),
        ("slope_le_G", "slope i", "≤", "G"),
        ("entropy", "(d : ℝ)", "≤", _SERIES),
        ("total_le_R", "(L + T * ((1 / 2 + 2 * (c * G) / 9) * (c * G) ^ 2)) / c", "≤", "R"),
    ),
}
"""Statements over the numbers that each theorem asks for; those with `i` or `k` are about every entry."""
