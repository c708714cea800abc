"""Default learner against rules that a practitioner would write, on the last 80% of the rounds.

Run: python -m benchmarks.practice [--only nyiso,tracking] [--parts default,rules] [--data DIR] [--write]

--data is a folder of recorded data that are not shipped, without which there are no problems on them: portfolio/MARKET_relatives.csv of
daily price relatives, a row a day; nyiso/nyiso_rt_zonal_lbmp_hourly_2017.csv.gz with columns Time Stamp, Name, LBMP; movielens100k/u.data.
Results are kept in --kept as soon as they are there, a price and a part at a time; what is there is not played again without --again,
so that a run which was stopped goes on. `--write` makes docs/practice.md and its picture of what is kept, and plays nothing where
`--only none` says so.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.practice.page import page, write_page
from benchmarks.practice.problems import PROBLEMS, ROOT, problems
from benchmarks.practice.results import Kept
from benchmarks.practice.runs import Part, compare


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names of problems, separated by commas; all by default")
    parser.add_argument("--parts", default=",".join(Part), help="parts of the results; all by default")
    parser.add_argument("--data", type=Path, default=None, help="folder of recorded data")
    parser.add_argument("--seconds", type=float, default=600.0, help="of one rule")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kept", type=Path, default=ROOT / "benchmarks" / "practice" / "results.json")
    parser.add_argument("--every-price", action="store_true", help="tuned, wide bounds and ablation at every price")
    parser.add_argument("--again", action="store_true", help="play what is kept again")
    parser.add_argument("--write", action="store_true", help="write docs/practice.md")
    o = parser.parse_args()
    there, kept = problems(o.data, o.seed), Kept(o.kept)
    parts = [Part(word) for word in o.parts.split(",") if word]
    asked = [w for w in o.only.split(",") if w]
    for name in (n for n in there if n in asked or not asked):
        compare(
            there[name](), kept, parts, o.seconds, o.every_price, o.again, lambda text: print(text, file=sys.stderr)
        )
    results = [kept.results[n] for n in PROBLEMS if n in kept.results]
    print(page(results))
    if o.write:
        write_page(results)


if __name__ == "__main__":
    main()
