"""One model under test: its stages, each made once, and how a law says that it does not hold."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from fuzz.meaning import EXTENDED, Evaluator
from fuzz.nodes import Apply, Array, Node
from fuzz.typed import Constraint, Minimize, State, Tree
from fuzz.writer import drawn

import oco
from oco.compiler.problem.canonical import Canonical, canonical
from oco.compiler.prover.facts import Facts
from oco.compiler.selection.choice import Choice
from oco.compiler.selection.plan import explain_choice
from oco.dsl.diagnostics import OcoError
from oco.dsl.model import Model

BUGS = ("OCO999", "OCO133")
"""Codes that no model of moderate numbers may end in."""
ROOT = Path(oco.__file__).parent.parent


class Violation(AssertionError):
    """A law that does not hold. `kind` is the same for all models on which it fails for the same reason, as far as can be told."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind


class Refused(Exception):
    """The model is not one that the law speaks of: the language or the compiler refuses it, in words."""

    def __init__(self, code: str, message: str = "") -> None:
        super().__init__(f"{code} {message}")
        self.code = code


@contextmanager
def product() -> Iterator[None]:
    """Around whatever oco does: it ends well, or in words (then `Refused`)."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            yield
    except OcoError as error:
        found = next((d for d in error.diagnostics if d.code in BUGS), None)
        if found is None:
            raise Refused(error.code, error.message) from None
        raise Violation(
            f"{found.code} {place_of(error.__cause__ or error)}", _told(error.__cause__ or error)
        ) from error
    except (Violation, Refused):
        raise
    except Exception as error:
        raise Violation(f"crash {place_of(error)}", _told(error)) from error


def _told(error: BaseException) -> str:
    """The error, and the last functions that it came through."""
    frames = traceback.extract_tb(error.__traceback__)[-6:]
    return f"{type(error).__name__}: {error}\n" + "\n".join(f"  {f.filename}:{f.lineno} {f.name}" for f in frames)


def place_of(error: BaseException) -> str:
    """The kind of an error, and the innermost function of oco that it came from."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if ROOT in Path(f.filename).parents and "fuzz" not in f.filename] or list(frames)
    return f"{type(error).__name__} in {Path(own[-1].filename).name}:{own[-1].name}" if own else type(error).__name__


@dataclass(frozen=True, eq=False)
class Function:
    """A number that a round is worth: the loss, or an entry of a constraint brought to g <= 0 or h == 0.

    value(env, t) by the independent evaluator, and the greatest number in its making.
    """

    prefix: str
    node: Node
    place: tuple[int, ...]
    evaluator: Evaluator

    def __call__(self, env: Mapping[str, Array], t: float) -> Any:
        return self.evaluator(self.node, env, t)[self.place]

    @property
    def largest(self) -> float:
        return self.evaluator.largest


class Case:
    """A model and its stages. `effort` is how much a law may try: 1 in `make test`."""

    def __init__(self, tree: Tree, seed: int = 0, effort: float = 1.0) -> None:
        self.tree, self.seed, self.effort = tree, seed, effort

    def rng(self, salt: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, salt])

    def tries(self, count: int) -> int:
        return max(1, round(count * self.effort))

    @cached_property
    def model(self) -> Model:
        with product():
            return oco.parse(self.tree.text, params=self.tree.given or None)

    @cached_property
    def problem(self) -> Canonical:
        with product():
            return canonical(self.model)

    @cached_property
    def facts(self) -> Facts:
        with product():
            return oco.check(self.model)

    @cached_property
    def choice(self) -> Choice:
        with product():
            return explain_choice(self.model, "optimal")

    @cached_property
    def evaluator(self) -> Evaluator:
        return Evaluator(self.tree, EXTENDED)

    @cached_property
    def sides(self) -> dict[str, Node]:
        """By the label of the canonical problem, the node that is to be at most 0, or 0."""
        found: dict[str, Node] = {}
        equalities = {e.label for e in self.problem.equalities}
        for c in self.tree.of(Constraint):
            left, right = c.comparison.left, c.comparison.right
            above, below = Apply("sub", (left, right)), Apply("sub", (right, left))
            if c.comparison.relation == "==" and c.label not in equalities:
                found |= {f"{c.label}.above": above, f"{c.label}.below": below}
            else:
                found[c.label] = below if c.comparison.relation == ">=" else above
        kept = {c.label for c in self.problem.inequalities}
        for s in self.tree.of(State):  # its range, where what follows is known before the decision
            (low, high), after = s.bounds, s.following
            ends = {f"{s.name}.least": Apply("sub", (low, after)), f"{s.name}.most": Apply("sub", (after, high))}
            found |= {label: node for label, node in ends.items() if label in kept}
        return found

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """The loss, and every entry of every constraint."""
        found = [Function("loss", self.tree.first(Minimize).value, (), self.evaluator)]
        for label, node in self.sides.items():
            for place in np.ndindex(*node.shape):
                entry = f"[{', '.join(map(str, place))}]" if node.shape else ""
                found.append(Function(f"constraints.{label}{entry}", node, place, self.evaluator))
        return tuple(found)

    # Places.

    @property
    def rounds(self) -> tuple[float, ...]:
        """The first round and the last, or a late one."""
        return 1.0, float(self.problem.horizon or 1000)

    def streams(self, rng: np.random.Generator) -> dict[str, Array]:
        """Values that a round may reveal: ends, or anything between them."""
        return {s.name: drawn(rng, s) for s in self.problem.streams}

    @cached_property
    def carried(self) -> dict[str, Array]:
        """Values of the states in round 1."""
        return {s.name: np.asarray(self.evaluator(s.first, {}), dtype=float) for s in self.tree.of(State)}

    def following(self, env: Mapping[str, Array], t: float) -> dict[str, Array]:
        """Values of the states after a round."""
        found = {}
        for s in self.tree.of(State):
            low, high = (self.evaluator(b, {}) for b in s.bounds)
            found[s.name] = np.asarray(np.clip(self.evaluator(s.following, env, t), low, high), dtype=float)
        return found

    def decisions(self, rng: np.random.Generator) -> dict[str, Array]:
        """A point of the domain: inside, at an extreme point, or between the two."""
        return {b.name: _point(rng, b.domain) for b in self.problem.blocks}


def _point(rng: np.random.Generator, domain: Any) -> Array:
    with product():
        inside = np.array(domain.sample(rng, 1)[0])
        draw = rng.random()
        if draw < 0.3:
            return inside
        slope = rng.normal(size=domain.shape)
        if rng.random() < 0.3:
            slope = np.where(rng.random(domain.shape) < 0.5, slope, 0.0)
        extreme = np.array(domain.lmo_array(slope))
        share = rng.choice((1.0, 1.0, 1.0, 0.5, 0.999))
        return np.asarray(inside + share * (extreme - inside)) if share < 1 else extreme


Law = Callable[[Case], None]
