"""Settings compared: `paper`, `optimal` and `tuned` for every algorithm that applies to a problem, against the best fixed decision.

Run: python -m benchmarks.settings [--rounds 1000,10000] [--models tracking,portfolio,even] [--seconds 60] [--write]

Every run is a line of docs/settings.csv as soon as it is over; a run that is there already is not made again (`--again` does), so an
interrupted table goes on where it stopped. `--write` puts the tables into docs/settings.md. A run that takes more than `--seconds` of
processor time is given up, and the table says how long it would take; more `--seconds` make it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.settings.page import write_page
from benchmarks.settings.problems import EXAMPLES, ROOT, example, own, stochastic
from benchmarks.settings.runs import KINDS, Kept, fill


def _names(text: str) -> list[str]:
    return [w for w in text.split(",") if w]


def main() -> None:
    made = {p.name: p for p in (*stochastic(3), *own())}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", default="1000,10000,100000")
    parser.add_argument("--models", default=",".join((*made, *EXAMPLES)))
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--again", default="", help="models whose runs are made again")
    parser.add_argument("--seconds", type=float, default=60.0, help="of one run")
    parser.add_argument("--lines", type=Path, default=ROOT / "docs" / "settings.csv", help="where runs are kept")
    parser.add_argument("--write", action="store_true", help="write docs/settings.md")
    o = parser.parse_args()
    kept = Kept(o.lines, _names(o.again))
    problems = [made[name] if name in made else example(name) for name in _names(o.models)]
    fill(kept, problems, [int(T) for T in _names(o.rounds)], _names(o.kinds), o.seconds)
    if o.write:
        write_page(kept.rows)


if __name__ == "__main__":
    main()
