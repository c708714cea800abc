"""The papers' experiments, one command each: `python -m benchmarks.papers NAME [--minutes M]`, or `--list`."""

from __future__ import annotations

import argparse
import sys

from benchmarks.papers import datacenter, doubly_bounded, gradual_variation, matrix_completion, ratings
from benchmarks.papers.experiment import Experiment, Missing

EXPERIMENTS: tuple[Experiment, ...] = (
    *datacenter.EXPERIMENTS,
    *matrix_completion.EXPERIMENTS,
    *ratings.EXPERIMENTS,
    *doubly_bounded.EXPERIMENTS,
    *gradual_variation.EXPERIMENTS,
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers", description=__doc__)
    parser.add_argument("name", nargs="?", choices=[e.name for e in EXPERIMENTS])
    parser.add_argument("--list", action="store_true", help="the experiments, and what they are")
    parser.add_argument(
        "--minutes", type=float, default=20.0, help="for experiments that run as long as they may (default: 20)"
    )
    given = parser.parse_args()
    if given.list or given.name is None:
        for e in EXPERIMENTS:
            print(f"{e.name:<20} {e.title}")
        return 0 if given.list else 2
    experiment = next(e for e in EXPERIMENTS if e.name == given.name)
    try:
        experiment.run(given.minutes).write()
    except Missing as missing:
        print(f"This experiment needs {missing}, which is not here.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
