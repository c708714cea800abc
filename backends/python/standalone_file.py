"""Emitted module as a program: it plays a file of data. This text is part of every one, below its learner."""

from __future__ import annotations

import csv
import math
import re
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from oco.backends.python.interface import CONSTRAINTS, CONTEXT, DELAY, EQUALITIES, LABELS, MODEL, PREVIOUS, STREAMS
from oco.backends.python.standalone import Feedback, Learner
from oco.backends.python.streams import ARRAYS, DISTRIBUTED, NAMED


def named_columns(name: str, header: list[str]) -> list[int]:
    """Columns by the names of the entries: `price[NYC]`, `price.NYC`, `price_NYC`, or `NYC` of one stream alone; none where none is."""
    stream = STREAMS[name]
    places = [
        [str(i) if own is None else own[i] for i, own in zip(at, stream.names)] for at in np.ndindex(*stream.shape)
    ]
    named = [s for other, s in STREAMS.items() if other not in PREVIOUS and stream.names[0] in s.names]
    alone = len(stream.shape) == 1 and len(named) == 1
    columns: dict[str, int] = {}
    for place in map(",".join, places):
        ways = [f"{name}[{place}]", f"{name}.{place}", f"{name}_{place}", *([place] if alone else [])]
        known = [k for way in ways for k, h in enumerate(header) if re.sub(r",\s+", ",", h) == way]
        if known:
            columns[place] = known[0]
    if columns and len(columns) < len(places):
        lacking = [place for place in map(",".join, places) if place not in columns]
        raise ValueError(f"{name} has no column for {', '.join(lacking)}")
    return list(columns.values())


def columns_of(name: str, header: list[str]) -> list[int]:
    """Columns of a stream: `price`, those of its names, `price[0]`, `price[1]`, ..., or `price.ANYTHING` in the order of the file."""
    stream, size = STREAMS[name], math.prod(STREAMS[name].shape)
    results = [k for k, h in enumerate(header) if h == name]
    if NAMED and stream.names:
        results = results or named_columns(name, header)
    if ARRAYS and stream.shape:
        plain = [re.sub(r"\s", "", h) for h in header]
        places = [f"{name}[{','.join(map(str, i))}]" for i in np.ndindex(*stream.shape)]
        results = results or [plain.index(p) for p in places if p in plain]
        results = results or [k for k, h in enumerate(header) if h.startswith(name + ".")]
    if DISTRIBUTED and stream.distribution and not results:
        raise ValueError(f"no column for {name}: the model draws it from {stream.distribution}, a file must have it")
    if len(results) != size:
        raise ValueError(f"{name} has {size} entries, the file {len(results) or 'no'} columns for it")
    return results


def number_of(cell: str) -> float:
    """Plain decimal number: Python also accepts `1_0` and digits of other scripts."""
    if not cell.isascii() or "_" in cell:
        raise ValueError(cell)
    return float(cell)


def rounds_of(path: str) -> Iterator[dict[str, Any]]:
    """Rounds of a CSV file with a header, one a row."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        rows = csv.reader(file)
        header = [h.strip() for h in next(rows, [])]
        given = [name for name in STREAMS if name not in PREVIOUS] if PREVIOUS else STREAMS
        columns = {name: columns_of(name, header) for name in given}
        for row in rows:
            try:
                cells = {n: [number_of(row[k]) for k in ks] for n, ks in columns.items()}
            except (ValueError, IndexError) as error:
                raise ValueError(f"{path}, line {rows.line_num}: a cell is missing or not a number") from error
            yield {n: np.array(values).reshape(STREAMS[n].shape) for n, values in cells.items()}


def _feedbacks(learner: Any, rounds: Iterator[dict[str, Any]]) -> Iterator[Feedback]:
    """Feedback of all rounds, in their order."""
    if DELAY:
        late: list[dict[str, Any]] = []
    for streams in rounds:
        learner.decide(**{name: streams.pop(name) for name in CONTEXT})
        if DELAY:
            late.append(streams)
            if len(late) > DELAY:
                yield learner.observe(**late.pop(0))
        else:
            yield learner.observe(**streams)
    if DELAY:
        yield from (learner.observe(**streams) for streams in late)


def run(rounds: Iterator[dict[str, Any]]) -> None:
    """Play all rounds and print their losses."""
    count, loss = 0, 0.0
    if LABELS:
        signed, hard = np.zeros((2, len(CONSTRAINTS + EQUALITIES)))
    for feedback in _feedbacks(Learner(), rounds):
        count, loss = count + 1, loss + feedback.loss
        if LABELS:
            signed += np.concatenate([feedback.constraints, feedback.equalities])
            hard += feedback.violation
    print(f"{MODEL}: {count} rounds, loss {loss:.6g} ({loss / max(count, 1):.6g} a round)")
    if LABELS:
        soft = Feedback(count, loss, *np.split(signed, [len(CONSTRAINTS)])).violation
        for label, total, worst in zip(CONSTRAINTS + EQUALITIES, soft, hard):
            print(f"{label}: violation {total:.6g} over all rounds, {worst:.6g} round by round")


def main(arguments: list[str]) -> int:
    """Run the learner over the CSV file that the arguments name; returns the exit status."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(f"usage: python {sys.argv[0]} data.csv   (columns: {', '.join(STREAMS)})", file=sys.stderr)
        return 2
    try:
        run(rounds_of(arguments[0]))
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
