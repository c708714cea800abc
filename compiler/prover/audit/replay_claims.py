"""Claims that the model itself decides, for the replay: what a name or constant is, of what form a function is, how sets combine.

Part of the replay (`verify.py`), and like it without the prover's code.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oco.compiler.problem.canonical import DecisionBlock
from oco.compiler.prover.audit.falsify import TOLERANCE, Attack, AuditOutcome, Place, Verdict
from oco.compiler.prover.types import ProofRule, Step
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Constant, Expr, Kind, Name, walk

Array = np.ndarray[Any, Any]
REPLAYED: Verdict = (AuditOutcome.REPLAYED, "")
CONVEX_WORDS = ("convex", "affine", "constant")


def failed(words: str) -> Verdict:
    """Verdict that the claim does not hold, with the reason."""
    return AuditOutcome.FAILED, words


class Claims(Attack):
    """The claims about leaves, structure, sets and the list of constraints."""

    # ---- names and constants

    def _declared(self, step: Step) -> Verdict:
        """The range holds everything that the model lets the name be."""
        node = step.subject
        if not isinstance(node, Name):
            return failed("only a name has a declared range")
        lower, upper = self._ends_of(node.name)
        holds = np.all(step.value.lo <= lower) and np.all(step.value.hi >= upper)
        return REPLAYED if holds else failed("the model lets it be more than that")

    def _ends_of(self, name: str) -> tuple[Any, Any]:
        for b in self.problem.blocks:
            if b.name == name:
                return b.domain.lower, b.domain.upper
        for s in self.problem.streams:
            if s.name == name:
                return s.lower, s.upper
        return 1.0, float(self.problem.horizon or np.inf)

    def _constant(self, step: Step) -> Verdict:
        """A number that is what it is, or an expression without a decision."""
        node = step.subject
        if step.value == "constant":
            free = not any(isinstance(n, Name) and n.kind is Kind.DECISION for n in walk(node))
            return REPLAYED if free else failed("a decision stands in it")
        if not isinstance(node, Constant) or not hasattr(step.value, "lo"):
            return failed("it is no constant")
        value = node.value.array
        holds = np.all(step.value.lo <= value) and np.all(step.value.hi >= value)
        return REPLAYED if holds else failed("the constant has another value")

    def _variable(self, step: Step) -> Verdict:
        holds = isinstance(step.subject, Name) and step.subject.name in self.decisions and step.value == "affine"
        return REPLAYED if holds else failed("it is no decision")

    # ---- facts about all constraints

    def _no_constraints(self, step: Step) -> Verdict:
        holds = step.value is True and not self.problem.constraints
        return REPLAYED if holds else failed("there are constraints")

    def _common(self, step: Step) -> Verdict:
        points = [p for p in step.premises if p.rule == ProofRule.SLATER_POINT and p.value >= 0]
        mixtures = [p for p in step.premises if p.rule == ProofRule.MIXTURE and p.value is True]
        holds = step.value is True and bool(points or mixtures)
        return REPLAYED if holds else failed("no decision is given that satisfies every constraint")

    def _dependent(self, step: Step) -> Verdict:
        """The row adds nothing to the rank of the other rows and the domain's affine hull."""
        rows, labels = self._mean_rows()
        if step.value not in labels:
            return failed("there is no such row")
        others = np.delete(rows, len(rows) - len(labels) + labels.index(step.value), axis=0)
        holds = _rank(others) == _rank(rows)
        return REPLAYED if holds else failed("the row is independent of the others")

    def _mean_rows(self) -> tuple[Array, list[str]]:
        """The affine hull's equalities, then those of the model in the mean, by differences; the labels of the latter."""
        blocks = self.problem.blocks
        size = sum(b.domain.size for b in blocks)
        hulls = [np.zeros((0, size))]
        start = 0
        for b in blocks:
            matrix = b.domain.affine_hull()[0]
            hulls.append(np.pad(matrix, ((0, 0), (start, size - start - b.domain.size))))
            start += b.domain.size
        means = {s.name: np.asarray(s.mean) for s in self.problem.streams if s.mean is not None}
        place = {**self.places[0], **means}
        result, labels = [], []
        for c in self.problem.equalities:
            columns = [self._at_unit(c.expr, place, k) for k in range(-1, size)]
            result.append(np.stack([np.ravel(v - columns[0]) for v in columns[1:]], axis=1))
            names = [f"[{', '.join(map(str, at))}]" for at in np.ndindex(*c.shape)] if c.shape else [""]
            labels += [c.label + n for n in names]
        return np.concatenate([*hulls, *result]), labels

    def _at_unit(self, expr: Expr, place: Place, k: int) -> Array:
        """The value at the k-th unit vector of all decisions together; at 0 for k = -1."""
        x, start = {}, 0
        for b in self.problem.blocks:
            flat = np.zeros(b.domain.size)
            if start <= k < start + b.domain.size:
                flat[k - start] = 1.0
            x[b.name] = flat.reshape(b.shape)
            start += b.domain.size
        return np.asarray(evaluate(expr, {**place, **x}, float(place["t"])), dtype=np.float64)

    def _every_entry(self, step: Step) -> Verdict:
        """The worst of the entries; a flag holds where all of them do."""
        if step.value is True or isinstance(step.value, str):
            kinds = [p.value for p in step.premises]
            holds = isinstance(step.value, str) or all(k is True or k in CONVEX_WORDS for k in kinds)
            return REPLAYED if holds else failed("it is not said of every entry")
        results = [t for p in step.premises if (t := top(p.value)) is not None]
        for p in step.premises:
            if hasattr(p.value, "lo"):  # of a range either end may be the worst, or its size
                results += [p.value.least, float(p.value.magnitude.max())]
        if not isinstance(step.value, (int, float)) or not results:
            return AuditOutcome.STATED, ""
        slack = TOLERANCE * max(1.0, abs(step.value))
        holds = min(results) - slack <= step.value <= max(results) + slack
        return REPLAYED if holds else failed("it is the value of no entry")

    # ---- sets

    def _product(self, step: Step) -> Verdict:
        """Sizes of a product of sets from those of the sets."""
        key, parts = step.subject[0], np.array([float(p.value) for p in step.premises])
        if len(parts) != len(self.problem.blocks) or any(p.rule != ProofRule.DOMAIN for p in step.premises):
            return failed("a set is left out")
        if key == "domain.inner_radius":
            holds = step.value <= parts.min() * (1 + TOLERANCE)
        elif key in ("domain.diameter.l2", "domain.radius"):
            holds = step.value >= float(np.linalg.norm(parts)) * (1 - TOLERANCE)
        else:
            holds = step.value >= parts.sum() * (1 - TOLERANCE)
        return REPLAYED if holds else failed("the sizes of the sets make another number")

    def _domain(self, step: Step) -> Verdict:
        """Points of the set, extreme ones among them, stay within what is claimed."""
        key, block = step.subject
        if key == "domain.inner_radius":
            return self._inner(block, step.value)
        flat = self._points(block).reshape(-1, block.domain.size)
        gaps = flat[self.rng.permutation(len(flat))] - flat
        if key.endswith(("bregman_radius", "bregman_diameter")):
            centre = np.broadcast_to(block.domain.centre().reshape(1, -1), flat.shape)
            to = centre if key.endswith("radius") else flat[self.rng.permutation(len(flat))]
            seen = float(np.max(_divergence(block, flat, to)))
        elif key == "domain.radius":
            seen = float(np.linalg.norm(flat, axis=1).max())
        else:
            seen = float(np.linalg.norm(gaps, 1 if key.endswith("l1") else 2, axis=1).max())
        holds = seen <= step.value * (1 + TOLERANCE)
        return (AuditOutcome.TESTED, "") if holds else failed(f"{seen:g} was found")

    def _inner(self, block: DecisionBlock, value: float) -> Verdict:
        """A ball of that radius in the affine hull lies in the set: tried at the centre, and no narrower direction is found."""
        d = block.domain
        if value > d.interior_margin(d.inner_centre) * (1 + 1e-7) + 1e-12:
            return failed("no ball of this radius lies in the set")
        for _ in range(1 if d.decomposes else min(40, self.count // 2)):
            move = d.tangent(self.rng.normal(size=d.shape))
            size = float(np.linalg.norm(move))
            if d.decomposes:
                inside = d.contains(d.inner_centre + value / size * move, 1e-7)
                return (AuditOutcome.TESTED, "") if inside else failed("a point of such a ball lies outside the set")
            width = (d.support(move) + d.support(-move)) / size if size > 0 else np.inf
            if size > 1e-9 and 2 * value > width * (1 + 1e-9):
                return failed("the set is narrower than such a ball in some direction")
        return AuditOutcome.TESTED, ""

    def _oracle(self, step: Step) -> Verdict:
        """The cost as the sets state it; of a penalized step, that the constraints have the form that it speaks of."""
        if isinstance(step.value, str) and "Newton" in step.value:
            kinked, smooth = "kinks" in step.value, {"derivative": "affine", "one unknown": "separable"}
            form = "general" if kinked else next((f for w, f in smooth.items() if w in step.value), "general")
            with np.errstate(all="ignore"):
                pairs = list(zip(self.places[:20], self.places[1:]))
                off = [self._off_form(c.expr, form, p, q) for c in self.problem.inequalities for p, q in pairs]
            return (AuditOutcome.TESTED, "") if max(off) <= 1e-7 else failed(f"a constraint is not {form}")
        message = [
            " and ".join(f"{getattr(b.domain, cost)} on {b.domain}" for b in self.problem.blocks)
            for cost in ("projection_cost", "lmo_cost")
        ]
        return REPLAYED if step.value in message else failed("the sets state another cost")

    # ---- the form of a function

    def _structure(self, step: Step) -> Verdict:
        """Differences of values that vanish for functions of the form that is claimed."""
        if not isinstance(step.subject, Expr) or not isinstance(step.value, str):
            return failed("it is no function")
        kind = step.value.partition(",")[0]
        with np.errstate(all="ignore"):
            worst = max(self._off_form(step.subject, kind, p, q) for p, q in zip(self.places[:20], self.places[1:]))
        return (
            (AuditOutcome.TESTED, "")
            if worst <= 1e-7
            else failed(f"it is not {kind} between two decisions that were tried")
        )

    def _off_form(self, expr: Expr, kind: str, p: Place, q: Place) -> float:
        """Distance of four values from the pattern of the form, relative to the largest; 0 where one is undefined.

        Of an array the entry that is furthest.
        """

        def value(place: Place) -> np.ndarray[Any, Any]:
            return np.asarray(evaluate(expr, {**p, **place}, float(p["t"])), dtype=np.float64)

        x, y = ({n: v[n] for n in self.decisions} for v in (p, q))

        def at(share: float) -> np.ndarray[Any, Any]:
            return value({n: x[n] + share * (y[n] - x[n]) for n in x})

        if kind == "linear":
            zero = {n: np.zeros_like(v) for n, v in x.items()}
            values = [at(0), -2 * at(0.5), at(1), value(zero)]
        elif kind == "affine":
            values = [at(0), -2 * at(0.5), at(1)]
        elif kind == "quadratic":
            values = [at(0), -3 * at(1 / 3), 3 * at(2 / 3), -at(1)]
        elif kind == "separable":
            one, other = self._two_entries()
            moved = {**x, **one(x, y)}
            values = [at(0), -value(moved), -value({**x, **other(x, y)}), value({**moved, **other(moved, y)})]
        else:
            return 0.0 if kind == "general" else np.inf
        if not np.isfinite(values).all():
            return 0.0
        return float(
            np.max(np.abs(np.sum(values, axis=0)) / np.maximum(1e-300, np.abs(values).max(axis=0)), initial=0.0)
        )

    def _two_entries(self) -> tuple[Any, Any]:
        """Two moves, each of which takes one entry over from another decision."""
        places = [(n, at) for n in self.decisions for at in np.ndindex(np.shape(self.places[0][n]))]
        chosen = [places[int(k)] for k in self.rng.choice(len(places), size=min(2, len(places)), replace=False)]

        def move(name: str, at: tuple[int, ...]) -> Any:
            def taken(x: Place, y: Place) -> Place:
                value = np.array(x[name])
                value[at] = y[name][at]
                return {name: value}

            return taken

        moves = [move(*c) for c in chosen]
        return moves[0], moves[-1] if len(moves) > 1 else lambda x, y: {}


def top(value: Any) -> float | None:
    """The upper end of a claim that is a range or a number."""
    if hasattr(value, "hi"):
        return float(np.max(value.hi))
    return float(value) if isinstance(value, (int, float, np.floating)) and not isinstance(value, bool) else None


def _rank(rows: Array) -> int:
    scale = np.linalg.norm(rows, axis=1, keepdims=True)
    kept = rows[scale.ravel() > 0] / scale[scale.ravel() > 0]
    return int(np.linalg.matrix_rank(kept, tol=1e-8)) if len(kept) else 0


def _divergence(block: DecisionBlock, x: Array, y: Array) -> Array:
    """The Bregman divergence of the set's geometry, row by row; of matrices, with `y` a multiple of the identity."""
    if block.domain.geometry == "euclidean":
        return np.asarray(np.sum((x - y) ** 2, axis=1) / 2)
    if block.domain.geometry == "von neumann":
        x, y = (np.linalg.eigvalsh(m.reshape(len(m), *block.shape)) for m in (x, y))
    with np.errstate(all="ignore"):
        terms = np.where(x > 0, x * np.log(np.where(x > 0, x, 1.0) / y), 0.0) - x + y
    return np.asarray(np.sum(terms, axis=1))
