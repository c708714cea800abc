"""Results of the benchmark, and the file of JSON that keeps them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.practice.chance import Chance, Saving
from oco.dsl.writing import write_text
from oco.evaluation.baselines.base import SkippedRule
from oco.evaluation.baselines.rule_table import RuleLine

OWN = "hedged"
"""Algorithm that is of no paper, and weighs the rules of practice."""


@dataclass(frozen=True)
class Priced:
    """Results at one price of a unit of violation: the default learner, the algorithms by name and the rules, the cheapest first.

    picked       name of the rule that was cheapest on the first fifth
    tuned        what `oco tune` makes of the first fifth; None where it was not played
    ablation     the default without each of its parts, by name
    early        the default in the first tenth of the rounds
    early_rules  the two cheap rules in the first tenth of the rounds
    wide         the default where the declared bounds of the data are ten times as wide; None where it was not played
    chance       what the rules that dominate save, and what of it may be chance; None where none does, or it was not played
    """

    price: float
    algorithm: str
    default: RuleLine
    rules: tuple[RuleLine, ...] = ()
    algorithms: tuple[RuleLine, ...] = ()
    picked: str = ""
    tuned: RuleLine | None = None
    ablation: tuple[RuleLine, ...] = ()
    early: RuleLine | None = None
    early_rules: tuple[RuleLine, ...] = ()
    wide: RuleLine | None = None
    chance: Chance | None = None


@dataclass(frozen=True)
class Results:
    """Results of a problem at all prices, with the rules that were left out and the number of rounds that were scored.

    wealth  True where the loss is the negative logarithm of wealth
    """

    name: str
    words: str
    rounds: int
    priced: tuple[Priced, ...]
    left_out: tuple[SkippedRule, ...] = ()
    wealth: bool = False


class Kept:
    """Results by problem in a file of JSON."""

    def __init__(self, path: Path) -> None:
        self.path = path
        kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        self.results = {name: _results(x) for name, x in kept.items()}

    def save(self, results: Results) -> None:
        """Replace the results of a problem, and write the file."""
        self.results[results.name] = results
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_text(self.path, json.dumps({n: asdict(r) for n, r in self.results.items()}, indent=1) + "\n")


def _results(kept: dict[str, Any]) -> Results:
    rows = tuple(_priced(p) for p in kept["priced"])
    left_out = tuple(SkippedRule(**x) for x in kept["left_out"])
    return Results(kept["name"], kept["words"], kept["rounds"], rows, left_out, kept["wealth"])


def _priced(p: dict[str, Any]) -> Priced:
    lists = {n: tuple(RuleLine(**line) for line in p[n]) for n in ("rules", "algorithms", "ablation", "early_rules")}
    lines = {n: None if p[n] is None else RuleLine(**p[n]) for n in ("tuned", "early", "wide")}
    chance = None if p["chance"] is None else _chance(p["chance"])
    default = RuleLine(**p["default"])
    return Priced(p["price"], p["algorithm"], default, picked=p["picked"], chance=chance, **lists, **lines)


def _chance(kept: dict[str, Any]) -> Chance:
    return Chance(tuple(Saving(**s) for s in kept["savings"]), kept["p_value"])
