"""`python tests/fuzz/run.py SECONDS [SEED]`: grammar-aware sentences and mutations of the corpus, for so long; failures are written down.

Prints executions, unique paths (how far a text came, with the codes that stopped it), and the slowest text.
"""

from __future__ import annotations

import hashlib
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from clock import OutOfTime, within
from target import run

from grammar import corpus, mutated, sentence

FOUND = Path(__file__).parent / "found"
LONGEST = 60.0
"""Seconds after which a text is left."""


@dataclass
class Report:
    """Record of a run. `faults` has the text and the traceback of each kind of failure once."""

    executions: int = 0
    paths: Counter[tuple[str, ...]] = field(default_factory=Counter)
    slowest: tuple[float, str] = (0.0, "")
    faults: dict[str, tuple[str, str]] = field(default_factory=dict)


def texts(rng: random.Random) -> Iterator[str]:
    """Without end."""
    known = corpus()
    while True:
        yield sentence(rng) if rng.random() < 0.5 else mutated(rng, known)


def fuzz(seconds: float, seed: int, least: int = 0) -> Report:
    """Run texts one after another, `least` of them however long that takes."""
    report, rng, end = Report(), random.Random(seed), time.monotonic() + seconds
    for text in texts(rng):
        if time.monotonic() > end and report.executions >= least:
            return report
        began = time.process_time()
        try:
            with within(LONGEST):
                report.paths[run(text)] += 1
        except OutOfTime:
            report.paths[("no time",)] += 1
        except Exception as error:  # whatever it is, it is what is looked for
            place = traceback.extract_tb(error.__traceback__)[-1]
            kind = f"{type(error).__name__} {Path(place.filename).name}:{place.lineno}"
            report.faults.setdefault(kind, (text, traceback.format_exc()))
        took = time.process_time() - began
        report.executions += 1
        report.slowest = max(report.slowest, (took, text))
    return report


def main() -> int:
    seconds, seed = float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    report = fuzz(seconds, seed)
    print(
        f"{report.executions} executions, {len(report.paths)} unique paths, slowest {report.slowest[0]:.2f} s:\n{report.slowest[1]}"
    )
    for kind, (text, trace) in report.faults.items():
        FOUND.mkdir(exist_ok=True)
        path = FOUND / f"{hashlib.sha256(text.encode(errors='replace')).hexdigest()[:12]}.oco"
        path.write_text(text, encoding="utf-8", errors="replace")
        print(f"\n{kind}: {path}\n{trace[-1500:]}")
    return 1 if report.faults else 0


if __name__ == "__main__":
    sys.exit(main())
