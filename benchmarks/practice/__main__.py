"""Default learner against rules that a practitioner would write, on the last 80% of the rounds.

Run: python -m benchmarks.practice [--problems nyiso,tracking] [--portfolios DIR] [--seconds 10] [--seed 0] [--write]

--portfolios is a folder with files MARKET_relatives.csv of daily price relatives, a row a day; without it there are no portfolios.
`--write` puts the tables into docs/practice.md.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.practice.page import page, write_page
from benchmarks.practice.problems import problems
from benchmarks.practice.runs import compare


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", default="", help="names, separated by commas; all by default")
    parser.add_argument("--portfolios", type=Path, default=None, help="folder of price relatives")
    parser.add_argument("--seconds", type=float, default=10.0, help="of one rule")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true", help="write docs/practice.md")
    o = parser.parse_args()
    there = problems(o.portfolios, o.seed)
    results = []
    for name in [w for w in o.problems.split(",") if w] or there:
        results.append(compare(there[name](), o.seconds))
        print(f"{name}: {results[-1].seconds:.0f} s", file=sys.stderr)
    print(page(results))
    if o.write:
        write_page(results)


if __name__ == "__main__":
    main()
