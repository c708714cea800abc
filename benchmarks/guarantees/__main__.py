"""Regret and violation under attack, as shares of what is promised: `python -m benchmarks.guarantees [--write] [--seeds N]
[--only NAME,NAME] [--missing]`.

For every algorithm and every shape of model where one of its theorems applies, sequences are drawn at random, chosen by an adversary that
sees each decision, and changed greedily. `--write` puts the table into docs/guarantees.md; with `--missing` rows that it has stay, with
`--only` those of other algorithms.
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
    parser.add_argument("--only", default="", help="algorithms whose rows are made anew")
    parser.add_argument("--missing", action="store_true", help="only what the page has no row of")
    o = parser.parse_args()
    page, only = rows_of_page(), [w for w in o.only.split(",") if w]
    asked = [a.name for a in ALGORITHMS if not only or a.name in only]
    kept = page if o.missing else {}
    rows = {a.name: [row for (name, _), row in page.items() if name == a.name] for a in ALGORITHMS}
    with ProcessPoolExecutor(2) as pool:
        for name, lines in zip(
            asked, pool.map(rows_of, asked, [o.seeds] * len(asked), [kept] * len(asked)), strict=True
        ):
            rows[name] = lines
            print("\n".join(lines), flush=True)
    if o.write:
        write_page([row for lines in rows.values() for row in lines])


if __name__ == "__main__":
    main()
