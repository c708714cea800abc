"""Conditions of guarantees on data: what is proved of every sequence within the range of some rounds and with their means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np

from oco.compiler.problem.canonical import Canonical
from oco.compiler.prover.context import ProofContext
from oco.compiler.prover.fact import Fact
from oco.compiler.prover.feasibility.feasible import Feasibility
from oco.compiler.prover.measured import Rounds, covered, observed
from oco.compiler.prover.phrasing import plural
from oco.compiler.prover.search_budget import USUAL, SearchBudget
from oco.dsl.records import dataclass


@dataclass(frozen=True, eq=False)
class DataConditions:
    """Rounds of data, and the facts on feasibility that they prove of themselves. They are no promise for other rounds."""

    problem: Canonical
    data: Rounds
    budget: SearchBudget = USUAL

    @cached_property
    def facts(self) -> Mapping[str, Fact]:
        """Facts on feasibility with each stream confined to the hull of its data, its mean that of the sample."""
        seen = observed(self.problem, self.data)
        if not seen.rounds:
            return {}
        narrow = covered(self.problem, seen)
        streams = tuple(
            replace(s, mean=np.asarray(seen.streams[s.name], dtype=np.float64).mean(axis=0), distribution=None)
            if s.name in seen.streams
            else s
            for s in narrow.streams
        )
        setting = ProofContext(replace(narrow, streams=streams), self.budget)
        return {f.key: f for f in Feasibility(setting).facts()}

    @property
    def margin(self) -> float | None:
        """Slater margin of the data in the units of the problem; None where they have none that is positive."""
        fact = self.facts.get("slater.margin")
        known = fact is not None and fact.known and fact.value is not None and fact.value > 0
        return float(fact.value) if fact is not None and known else None

    def words(self, key: str) -> str:
        """Clause that says that a condition held on the data, with its margin s where it is one on that; "" where they do not tell."""
        fact = self.facts.get(key)
        if fact is None or not fact.known or fact.value is None or fact.why is None or not fact.value > 0:
            return ""
        margin = f"s = {fact.value:.6g}: " if key == "slater.margin" else ""
        return f"it holds on the {plural(self._rounds, 'round')} of data, in whose range {margin}{fact.why.claim}"

    @property
    def _rounds(self) -> int:
        return min(len(v) for v in self.data.values())
