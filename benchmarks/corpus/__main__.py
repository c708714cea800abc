"""Models of many fields, each compiled and run: `python -m benchmarks.corpus [NAME ...] [--write]`.

`--write` puts the table into docs/corpus.md.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.corpus.models import MODELS
from benchmarks.corpus.runs import Result, result_of
from oco.dsl.writing import write_text

PAGE = Path(__file__).resolve().parents[2] / "docs" / "corpus.md"
HEAD = """# Models of many fields

`python -m benchmarks.corpus --write` writes this page. The models are those of `benchmarks/corpus/models`, written from the reference
alone. Each is compiled without data and run for 50 rounds: on ordinary rounds (a season and noise within the ranges of the streams) and on
extreme ones (every value at the upper end of its range). A dash stands where the guarantee has no conditions, or where a comparator would
take long (over 5,000 entries). Seconds are those of a processor to
compile it, one of two that were busy with other work.

| model | compiled | seconds | algorithm | vacuous | conditions on ordinary rounds | on extreme rounds |
| --- | --- | --- | --- | --- | --- | --- |
"""


def row(r: Result) -> str:
    """Line of the table."""
    if r.refused:
        return f"| {r.name} | {r.refused.split(':')[0]} | {r.seconds:.1f} | | | | |"
    cells = [", ".join(cell) or "-" for cell in (r.vacuous, r.ordinary, r.extreme)]
    return f"| {r.name} | yes | {r.seconds:.1f} | {r.algorithm} | {' | '.join(cells)} |"


def main() -> None:
    """Run the models named, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.corpus", description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--write", action="store_true")
    o = parser.parse_args()
    rows = []
    for name, path in MODELS.items():
        if not o.names or name in o.names:
            rows.append(row(result_of(path)))
            print(rows[-1], flush=True)
    if o.write and len(rows) == len(MODELS):
        write_text(PAGE, HEAD + "\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
