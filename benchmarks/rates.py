"""Exponents of regret and violation, beside those of the theorems: `python -m benchmarks.rates [--all] [--only NAME,NAME]`.

Writes docs/rates.md, a row a method with its worst world. With `--all` it also prints a row for each world and measure, at all horizons and
in every world where a theorem speaks; without, at every third horizon and in the worlds that the tests hold. With `--only` the rows of
other algorithms stay.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from law_rates import HORIZONS, SETTINGS, TOO_SHORT, Fit, fitted, horizons_of, lives_of

from oco.compiler.algorithms import ALGORITHMS
from oco.dsl.writing import write_text

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "rates.md"
SEEDS = 20
SEQUENCES = ("coins", "pushed")
INTRODUCTION = f"""# Exponents

How fast regret and violation grow with the number of rounds, for every method in worlds of `tests/law_worlds.py` where its theorems speak.
`python -m benchmarks.rates` makes this page; `--all` also prints each world.

A line a seed, {SEEDS} seeds, T = {HORIZONS[0]} .. {HORIZONS[-1]} (.. 4096 where a round asks for more oracle calls the longer the run is):
least squares of log(max(measure, what one round can cost) / log factors of the theorem) on log T. Shown is the world with the largest
exponent above the theorem's: the mean slope and the lower limit of its one-sided 95% confidence interval. Losses: `coins` (each entry meets
a fair coin, the game of the lower bound) and `pushed` (a biased coin that drives the decision across the constraint). A measure that stays
below what one round can cost has the exponent of 1 / (log factors): zero, or a little less. `anytime` is the method of a theorem for models
that leave the number of rounds open.

"""
OTHER_SETTINGS = """

## Settings

With the papers' constants the following methods stay near their first decision, or leave the constraints alone, for longer than 2^14 rounds
(errata 11 and 13 and their kin; their guarantees are vacuous there). They have other constants before the same powers of T, within every
condition of their theorems:

"""
LEFT_OUT = "Left out, because no constants that were tried say something at such T (one-point estimates vary by more than the domain):"
HEAD = "| method | measure | theorem | measured | at least | worst in | fits |\n| --- | --- | --- | --- | --- | --- | --- |"
LONG_HEAD = (
    "| method | world | losses | measure | theorem | measured | at least |\n| --- | --- | --- | --- | --- | --- | --- |"
)


def fits(every: bool, only: Collection[str]) -> Iterator[Fit]:
    """Fits of these algorithms or methods of them; of all where none is named."""
    for name in dict.fromkeys(a.name for a in ALGORITHMS if not only or any(a.name == m.split()[0] for m in only)):
        for life in lives_of(name, every):
            if only and not {name, life.method} & set(only):
                continue
            horizons = horizons_of(life)
            for sequence in SEQUENCES:
                print(f"{life}, {sequence}", file=sys.stderr, flush=True)
                yield from fitted(life, sequence, horizons if every else horizons[:: len(horizons) // 2], range(SEEDS))


def told(fit: Fit) -> str:
    """The exponents of a fit as cells."""
    return (
        f"{fit.theorem:.3f} | {fit.slope:.3f} | {fit.lower:.3f}{'' if fit.lower <= fit.theorem + 0.05 else ' **no**'}"
    )


def long_row(fit: Fit) -> str:
    return f"| {fit.life.method} | {fit.life.world} | {fit.sequence} | {fit.measure} | {told(fit)} |"


def short_rows(found: Sequence[Fit]) -> Mapping[str, str]:
    """For each method the fit with the largest exponent above its theorem's."""
    rows = {}
    for method in dict.fromkeys(f.life.method for f in found):
        of_method = [f for f in found if f.life.method == method]
        worst = max(of_method, key=lambda f: f.lower - f.theorem)
        world = f"{worst.life.world}, {worst.sequence}"
        rows[method] = f"| {method} | {worst.measure} | {told(worst)} | {world} | {len(of_method)} |"
    return rows


def rows_of_page() -> Mapping[str, str]:
    """Rows of the page as it is, by method."""
    table = PAGE.read_text().split("| --- |\n", 1)[1].split("\n\n", 1)[0]
    return {row.split("|")[1].strip(): row for row in table.splitlines()}


def in_order(rows: Mapping[str, str]) -> list[str]:
    """Rows in the order of the table of algorithms."""
    names = [a.name for a in ALGORITHMS]
    return [rows[method] for method in sorted(rows, key=lambda m: names.index(m.split()[0]))]


def page(rows: Mapping[str, str]) -> str:
    constants = [f"| `{n}` | `{', '.join(f'{k} = {v}' for k, v in s.items())}` |" for n, s in SETTINGS.items()]
    settings = "\n".join(["| method | settings |", "| --- | --- |", *constants])
    short = ", ".join(f"{a} in the {r}" for a, r in sorted(TOO_SHORT))
    return INTRODUCTION + "\n".join([HEAD, *in_order(rows)]) + OTHER_SETTINGS + f"{settings}\n\n{LEFT_OUT} {short}.\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rates", description=__doc__)
    parser.add_argument("--all", action="store_true", help="every world and horizon, each printed")
    parser.add_argument("--only", default="", help="algorithms, or methods of them, whose rows are made anew")
    o = parser.parse_args()
    every, only = o.all, [w for w in o.only.split(",") if w]
    found = list(fits(every, only))
    write_text(PAGE, page({**(rows_of_page() if only else {}), **short_rows(found)}))
    if every:
        print("\n".join([LONG_HEAD, *map(long_row, found)]))
    beyond = [f for f in found if f.lower > f.theorem + 0.05]
    print(f"{len(found)} exponents in docs/rates.md, {len(beyond)} of them above the theorem's by more than 0.05")
    for fit in beyond:
        print(f"  {fit}; the theorem says T^{fit.theorem:.3f}")


if __name__ == "__main__":
    main()
