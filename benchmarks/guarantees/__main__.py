"""Regret and violation under attack, as shares of what is promised: `python -m benchmarks.guarantees [--write] [--seeds N] [--only NAME]
[--missing]`.

For every algorithm and every shape of model where one of its theorems applies, sequences are drawn at random, chosen by an adversary that
sees each decision, and changed greedily. `--write` puts the table into docs/guarantees.md; with `--missing` rows that it has stay.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor

from benchmarks.guarantees.attacks import SEEDS
from benchmarks.guarantees.page import rows_of, rows_of_page, write_page
from oco.compiler.algorithms import ALGORITHMS


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.guarantees", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/guarantees.md")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--only", default="", help="one algorithm")
    parser.add_argument("--missing", action="store_true", help="only what the page has no row of")
    o = parser.parse_args()
    kept = rows_of_page() if o.missing else {}
    names = [a.name for a in ALGORITHMS if o.only in ("", a.name)]
    rows = []
    with ProcessPoolExecutor(2) as pool:
        for lines in pool.map(rows_of, names, [o.seeds] * len(names), [kept] * len(names)):
            rows += lines
            print("\n".join(lines), flush=True)
    if o.write and not o.only:
        write_page(rows)


if __name__ == "__main__":
    main()
