"""Promises as files of Lean 4 with Mathlib: the theory, the data of the model, and the theorem of the algorithm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

from oco.compiler.promises.promise import LeanPromise, RationalInequality
from oco.compiler.promises.steps import ArithmeticRule, Bounds, ProgramStep, needed_steps

THEORY = {
    "ogd": ("intervals", "descent"),
    "ogd_strong": ("intervals", "descent", "strong"),
    "nested": ("intervals", "descent", "violation"),
    "nested_strong": ("intervals", "descent", "strong", "violation"),
    "oeg": ("intervals", "exponential"),
}
"""Files of lemmas that come before the data."""
LEMMAS = {ArithmeticRule.ADD: ("icc_add", 2), ArithmeticRule.SUB: ("icc_sub", 2), ArithmeticRule.NEG: ("icc_neg", 2)}
LEMMAS |= {ArithmeticRule.MUL: ("icc_mul", 8), ArithmeticRule.INV: ("icc_inv", 5)}
"""Lemma for each rule over earlier steps, with the number of inequalities that it asks for."""
OPERATIONS = {
    ArithmeticRule.ADD: "v{} x s + v{} x s",
    ArithmeticRule.SUB: "v{} x s - v{} x s",
    ArithmeticRule.MUL: "v{} x s * v{} x s",
}
OPERATIONS |= {
    ArithmeticRule.NEG: "-v{} x s",
    ArithmeticRule.INV: "(v{} x s)⁻¹",
    ArithmeticRule.DECISION: "x {}",
    ArithmeticRule.STREAM: "s {}",
}
"""Term of each rule; `{}` stand for its positions."""
ROUND = "{x : Decision} {s : Data} (h : Round x s)"
IN_RANGE = "{s : Data} (h : ∀ i, s i ∈ Set.Icc (least i) (most i))"
BOX = """\
/-- Decisions: the box between `lower` and `upper`. -/
def domain : Set Decision := {v | ∀ i, v i ∈ Set.Icc (lower i) (upper i)}

theorem domain_convex : Convex ℝ domain := by
  intro a ha b hb p q hp hq hpq i
  have h1 := ha i
  have h2 := hb i
  have e1 : p * lower i + q * lower i = lower i := by rw [← add_mul, hpq, one_mul]
  have e2 : p * upper i + q * upper i = upper i := by rw [← add_mul, hpq, one_mul]
  simp only [PiLp.add_apply, PiLp.smul_apply, smul_eq_mul]
  constructor
  · linarith [mul_le_mul_of_nonneg_left h1.1 hp, mul_le_mul_of_nonneg_left h2.1 hq]
  · linarith [mul_le_mul_of_nonneg_left h1.2 hp, mul_le_mul_of_nonneg_left h2.2 hq]

theorem diameter {a b : Decision} (ha : a ∈ domain) (hb : b ∈ domain) : ‖a - b‖ ≤ D :=
  norm_le_of_entries (a - b) (fun i => upper i - lower i) D D_nonneg (fun i => by
    have h1 := ha i
    have h2 := hb i
    rw [PiLp.sub_apply, abs_le]
    exact ⟨by linarith [h1.1, h2.2], by linarith [h1.2, h2.1]⟩) width_le_D
"""


def render(promise: LeanPromise) -> str:
    """Text of the Lean file of a promise."""
    lemmas = "\n".join(_text(name) for name in THEORY[promise.theorem])
    data = "\n".join(_data(promise))
    memory = f"{_text('memory')}\n" if promise.constraint_steps else ""
    return f"{_head(promise)}{lemmas}\n{data}\n{memory}{_text(promise.theorem)}"


def _text(name: str) -> str:
    return (Path(__file__).parent / f"{name}.lean").read_text(encoding="utf-8")


def _head(promise: LeanPromise) -> str:
    """Comment with the model, and the opening of the namespace."""
    about = f"The promise of the theorem `{promise.theorem}` for this model, in exact arithmetic over real numbers:"
    opening = "import Mathlib\n\nopen Finset\n\nnamespace Promise\n\nnoncomputable section\n\n"
    return f"/-\n{about}\n\n{promise.model}\n-/\n{opening}"


def _data(promise: LeanPromise) -> Iterator[str]:
    """Lines between the lemmas and the theorem."""
    yield "/-! ## The model -/\n"
    yield from (f"abbrev {name} : ℕ := {value}" for name, value in promise.counts)
    space = "Fin d → ℝ" if promise.theorem == "oeg" else "EuclideanSpace ℝ (Fin d)"
    yield f"abbrev Decision : Type := {space}\nabbrev Data : Type := Fin m → ℝ"
    yield from (f"def {name} : {_kind(name)} := {vector_text(name, v, promise)}" for name, v in promise.vectors)
    yield from (f"def {name} : ℝ := {fraction_text(value)}" for name, value in promise.numbers)
    yield ""
    yield from (inequality_text(row, promise) for row in promise.inequalities)
    yield "\n/-- Decision and data of a round are in their ranges. -/\nstructure Round (x : Decision) (s : Data) : Prop where"
    yield "  decision : ∀ i, x i ∈ Set.Icc (lower i) (upper i)\n  stream : ∀ i, s i ∈ Set.Icc (least i) (most i)\n"
    yield from (step_text(k, promise.steps[k], promise.bounds[k]) for k in range(len(promise.steps)))
    yield _vector_of("gradient", "Fin d", promise.gradient)
    yield f"theorem entries {ROUND} : ∀ i, |gradient x s i| ≤ slope i := by\n  intro i\n  fin_cases i"
    slope = dict(promise.vectors)["slope"]
    for k, b in zip(promise.gradient, slope, strict=True):
        yield f"  · show |v{k} x s| ≤ ({fraction_text(b)} : ℝ)\n    exact abs_le_of_icc (b{k} h) (by norm_num) (by norm_num)"
    yield ""
    if promise.theorem != "oeg":
        yield BOX
    if promise.constraint_steps:
        yield from _constraints(promise)


def _constraints(promise: LeanPromise) -> Iterator[str]:
    """Lines about the constraints: at the point, over all decisions, and that their data are additive."""
    vectors, of = dict(promise.vectors), dict(promise.at_point)
    yield "theorem point_mem : point ∈ domain := by\n  intro i\n  fin_cases i <;> norm_num [point, lower, upper]\n"
    yield from (point_text(k, promise.steps[k], ends) for k, ends in promise.at_point)
    yield _vector_of("excessOf", "Fin constraints", promise.constraint_steps)
    yield "def excess (k : Fin constraints) (x : Decision) (s : Data) : ℝ := excessOf x s k\n"
    yield f"theorem excess_le_high {ROUND} : ∀ k, excess k x s ≤ high k := by\n  intro k\n  fin_cases k"
    for k, b in zip(promise.constraint_steps, vectors["high"], strict=True):
        yield f"  · show v{k} x s ≤ ({fraction_text(b)} : ℝ)\n    exact (b{k} h).2"
    yield f"\ntheorem excess_at_point {IN_RANGE} :\n    ∀ k, excess k point s ∈ Set.Icc (pointLow k) (pointHigh k) := by"
    yield "  intro k\n  fin_cases k"
    for k in promise.constraint_steps:
        yield f"  · show v{k} point s ∈ {_interval(of[k])}\n    exact p{k} h"
    yield "\ntheorem additive (k : Fin constraints) (x x' : Decision) (s s' : Data) :"
    yield "    excess k x s + excess k x' s' = excess k x' s + excess k x s' := by\n  fin_cases k"
    for k in promise.constraint_steps:
        used = ", ".join(f"v{j}" for j in needed_steps(promise.steps, (k,)))
        yield f"  · show v{k} x s + v{k} x' s' = v{k} x' s + v{k} x s'\n    simp only [{used}]\n    ring"
    yield ""


def fraction_text(value: Fraction) -> str:
    """Fraction as a term: 3, -5 / 2."""
    return str(value.numerator) if value.denominator == 1 else f"{value.numerator} / {value.denominator}"


def vector_text(name: str, values: Sequence[Fraction], promise: LeanPromise) -> str:
    """Vector as a term."""
    euclidean = name == "point" and promise.theorem != "oeg"
    return f"{'!₂' if euclidean else '!'}[{', '.join(map(fraction_text, values))}]"


def _kind(name: str) -> str:
    """Type of a vector."""
    if name == "point":
        return "Decision"
    size = "m" if name in ("least", "most") else "d" if name in ("lower", "upper", "slope") else "constraints"
    return f"Fin {size} → ℝ"


def inequality_text(row: RationalInequality, promise: LeanPromise) -> str:
    """Theorem that an inequality is."""
    words = {w.strip(" ()") for w in f"{row.left} {row.right}".replace("^", " ").replace("/", " ").split()}
    named = [n for n, _ in (*promise.numbers, *promise.vectors, *promise.counts) if n in words or f"-{n}" in words]
    over = next((i for i in "ik" if i in words and "∑" not in row.left + row.right), "")
    sums = ["Fin.sum_univ_succ"] if "∑ i" in row.left else []
    sums += ["sum_range_succ", "Nat.factorial"] if "∑ k" in row.right else []
    proof = f"norm_num [{', '.join([*named, *sums])}]"
    if over:
        return f"theorem {row.name} : ∀ {over}, {row.left} {row.relation} {row.right} := by\n  intro {over}\n  fin_cases {over} <;> {proof}"
    return f"theorem {row.name} : {_real(row.left)} {row.relation} {row.right} := by\n  {proof}"


def _real(text: str) -> str:
    return f"({text} : ℝ)" if text.isdigit() else text


def _interval(ends: Bounds) -> str:
    low, high = map(fraction_text, ends)
    return f"Set.Icc ({low} : ℝ) ({high} : ℝ)"


def term_text(step: ProgramStep) -> str:
    """Term that a step is."""
    return fraction_text(step.value) if step.rule is ArithmeticRule.NUMBER else OPERATIONS[step.rule].format(*step.args)


def step_text(k: int, step: ProgramStep, ends: Bounds) -> str:
    """Definition of a step and its interval over all decisions and data."""
    match step.rule:
        case ArithmeticRule.DECISION:
            proof = f"simpa [v{k}, lower, upper] using h.decision {step.args[0]}"
        case ArithmeticRule.STREAM:
            proof = f"simpa [v{k}, least, most] using h.stream {step.args[0]}"
        case ArithmeticRule.NUMBER:
            proof = f"norm_num [v{k}, Set.mem_Icc]"
        case _:
            proof = f"unfold v{k}; exact {_lemma(step, 'b')}"
    return (
        f"def v{k} (x : Decision) (s : Data) : ℝ := {term_text(step)}\n"
        f"theorem b{k} {ROUND} : v{k} x s ∈ {_interval(ends)} := by\n  {proof}\n"
    )


def point_text(k: int, step: ProgramStep, ends: Bounds) -> str:
    """Interval of a step at the point, over all data."""
    match step.rule:
        case ArithmeticRule.DECISION:
            proof = f"norm_num [v{k}, point, Set.mem_Icc]"
        case ArithmeticRule.STREAM:
            proof = f"simpa [v{k}, least, most] using h {step.args[0]}"
        case ArithmeticRule.NUMBER:
            proof = f"norm_num [v{k}, Set.mem_Icc]"
        case _:
            proof = f"unfold v{k}; exact {_lemma(step, 'p')}"
    return f"theorem p{k} {IN_RANGE} : v{k} point s ∈ {_interval(ends)} := by\n  {proof}\n"


def _lemma(step: ProgramStep, letter: str) -> str:
    name, count = LEMMAS[step.rule]
    return " ".join([name, *(f"({letter}{a} h)" for a in step.args), *["(by norm_num)"] * count])


def _vector_of(name: str, index: str, places: Sequence[int]) -> str:
    entries = ", ".join(f"v{k} x s" for k in places)
    return f"def {name} (x : Decision) (s : Data) : {index} → ℝ := ![{entries}]\n"
