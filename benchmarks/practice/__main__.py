"""Default learner against rules that a practitioner would write, on the last 80% of the rounds.

Run: python -m benchmarks.practice [--problems nyiso,tracking] [--portfolios DIR] [--seconds 10] [--seed 0] [--write]

--portfolios is a folder with files MARKET_relatives.csv of daily price relatives, a row a day; without it there are no portfolios.
Results are kept in --kept, a file for each problem, and a problem that is there already is not run again, but for those named by
--problems. `--write` puts the tables into docs/practice.md.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.practice.page import page, write_page
from benchmarks.practice.problems import PROBLEMS, ROOT, problems
from benchmarks.practice.runs import Results, compare


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", default="", help="names, separated by commas; all by default")
    parser.add_argument("--portfolios", type=Path, default=None, help="folder of price relatives")
    parser.add_argument("--seconds", type=float, default=10.0, help="of one rule")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kept", type=Path, default=ROOT / "build" / "practice", help="folder of results")
    parser.add_argument("--write", action="store_true", help="write docs/practice.md")
    o = parser.parse_args()
    there = problems(o.portfolios, o.seed)
    asked = [w for w in o.problems.split(",") if w]
    for name in asked or [n for n in there if not (o.kept / f"{n}.json").exists()]:
        found = compare(there[name](), o.seconds)
        found.save(o.kept)
        print(f"{name}: {found.seconds:.0f} s", file=sys.stderr)
    results = [Results.load(path) for n in PROBLEMS if (path := o.kept / f"{n}.json").exists()]
    print(page(results))
    if o.write:
        write_page(results)


if __name__ == "__main__":
    main()
