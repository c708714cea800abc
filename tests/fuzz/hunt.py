"""`python tests/fuzz/hunt.py SECONDS [SEED]`: models at random, one after another, each held to every law.

What fails is minimised and written into tests/fuzz/found, with the law and the seed; what is mended moves to tests/fuzz/corpus.
"""

from __future__ import annotations

import argparse
import faulthandler
import math
import sys
import traceback
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from itertools import count
from pathlib import Path
from time import monotonic

sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz.attack import facts
from fuzz.case import Case, Law, Refused, Violation
from fuzz.clock import OutOfTime, within
from fuzz.corpus import excused, written
from fuzz.generate import generated
from fuzz.hindsight import comparators
from fuzz.language import gradients, printing, values, words_only
from fuzz.learners import learners
from fuzz.shrink import same_failure, shrunk
from fuzz.typed import Tree

FOUND = Path(__file__).parent / "found"
LONGEST = 60.0
"""Seconds that a law may take on one model, at an effort of 1."""
LAWS: Mapping[str, Law] = {
    "printing": printing,
    "values": values,
    "gradients": gradients,
    "words_only": words_only,
    "facts": facts,
    "learners": learners,
    "comparators": comparators,
}
"""A new statement that promises more has its law here."""


@dataclass(frozen=True, eq=False)
class Found:
    """A law that does not hold on the model of a seed."""

    law: str
    seed: int
    kind: str
    message: str
    tree: Tree

    def __str__(self) -> str:
        again = f"pytest tests/test_model_laws.py -k {self.law} --seed {self.seed}"
        return (
            f"the law `{self.law}` fails on the model of seed {self.seed} ({again})\n{self.message}\n\n{self.tree.text}"
        )


@dataclass
class Report:
    """Ends of models and laws, and the finds, once for each kind."""

    models: int = 0
    ends: Counter[tuple[str, str]] = field(default_factory=Counter)
    found: dict[tuple[str, str], Found] = field(default_factory=dict)


def today() -> int:
    """Start of the seeds of a day: they move by date."""
    return date.today().toordinal() * 1000


def hunt(laws: Mapping[str, Law], seeds: Iterable[int], seconds: float, effort: float = 1.0) -> Report:
    """Models of the seeds until the time is over; the law at work then is left, as is one that takes longer than `LONGEST`."""
    report, end = Report(), monotonic() + seconds
    for seed in seeds:
        if monotonic() > end:
            break
        tree = generated(seed)
        case, report.models = Case(tree, seed, effort), report.models + 1
        for name, law in laws.items():
            found = tried(name, law, case, min(LONGEST * effort, end - monotonic()))
            report.ends[name, found.kind if isinstance(found, Found) else found] += 1
            if isinstance(found, Found):
                report.found.setdefault((name, found.kind), found)
    return report


def tried(name: str, law: Law, case: Case, seconds: float = math.inf) -> Found | str:
    """End of a law on a model: "holds", the code that the model is refused with, "no time", or what was found."""
    try:
        with within(seconds):
            law(case)
    except OutOfTime:
        return "no time"
    except Refused as refused:
        return refused.code
    except Violation as violation:
        return Found(name, case.seed, violation.kind, str(violation), case.tree)
    except Exception as error:  # the law itself, or something that it does not expect of the compiler
        return Found(name, case.seed, f"law {type(error).__name__}", traceback.format_exc()[-2000:], case.tree)
    return "holds"


def minimised(found: Found, effort: float = 1.0, seconds: float = 60.0) -> Tree:
    """Smallest model tried within the seconds on which the law fails as it did."""
    fails, end = same_failure(LAWS[found.law], found.kind, found.seed, effort), monotonic() + seconds
    try:
        with within(seconds):
            again = fails(found.tree)
    except OutOfTime:
        return found.tree
    return shrunk(found.tree, fails, end - monotonic()) if again else found.tree


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seconds", type=float)
    parser.add_argument("seed", type=int, nargs="?", default=today())
    parser.add_argument("--laws", default=",".join(LAWS), help="some of them, by commas")
    parser.add_argument("--effort", type=float, default=3.0, help="how much is tried on each model; 1 in `make test`")
    given = parser.parse_args()
    faulthandler.enable()
    laws = {name: LAWS[name] for name in given.laws.split(",")}
    end = monotonic() + given.seconds
    known, seen = excused(laws), set[tuple[str, str]]()
    ends: Counter[tuple[str, str]] = Counter()
    models = 0
    for seed in count(given.seed):
        if monotonic() > end:
            break
        print(f"\rseed {seed}", end="", file=sys.stderr, flush=True)  # the last word of a process that crashes
        report = hunt(laws, [seed], end - monotonic(), given.effort)
        ends, models = ends + report.ends, models + report.models
        for key, found in report.found.items():
            if key not in seen and found.kind not in known:
                seen.add(key)
                small = minimised(found, given.effort)
                path = written(small, found.law, seed, found.kind, found.message, FOUND)
                print(f"\n{path}\nlaw {found.law}, seed {seed}: {found.message[:1500]}\n\n{small.text}", flush=True)
    print(f"\n{models} models from seed {given.seed}")
    for (law, how), times in sorted(ends.items()):
        print(f"{law:12} {how:60} {times:6}{'  (open)' if how in known else ''}")
    return 1 if seen else 0


if __name__ == "__main__":
    sys.exit(main())
