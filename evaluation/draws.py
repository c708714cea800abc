"""Draws of streams from their distributions, in blocks of rounds with a seed each, so that any part can be drawn again."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from oco.compiler.problem.canonical import StreamRange
from oco.dsl.diagnostics import InternalError
from oco.dsl.spill import release, spacious
from oco.evaluation.mapping import size

Array = np.ndarray[Any, Any]

BLOCK_ENTRIES = 1 << 17
"""Numbers drawn at once for a stream: draws are made in blocks of rounds, each with its own seed."""
Blocks = dict[str, tuple[int, Array]]
"""Last block drawn for each stream, with its number: rounds are read in order, often in parts far shorter than a block."""


def draw(stream: StreamRange, seed: int, start: int, stop: int, last: Blocks) -> Array:
    """Draw a stream for rounds `start` to `stop` from its distribution, whatever the blocks they are drawn in. The
    array is read-only.
    """
    step = _rounds_of_block(stream)
    parts = []
    for block in range(start // step, -(-stop // step)):
        number, values = last.get(stream.name, (-1, np.empty(0)))
        if number != block:
            values = _block(stream, seed, block)
            last[stream.name] = block, values
        parts.append(values[max(0, start - block * step) : stop - block * step])
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.empty((0, *stream.shape))


class StoredDraws:
    """Draws that are read many times: each block is stored when it is first read, large streams in temporary files.

    Threads may share it: those that draw one block at the same time store the same numbers.
    """

    def __init__(self, rounds: int) -> None:
        self._rounds = rounds
        self._streams: dict[tuple[str, int], tuple[Array, Array]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return StoredDraws, (self._rounds,)  # another process draws for itself

    def read(self, stream: StreamRange, seed: int, start: int, stop: int) -> Array:
        """Same array as `draw` gives, up to the last round that is stored. Pages of the rounds before leave the memory."""
        step = _rounds_of_block(stream)
        values, there = self._stored(stream, seed, step)
        release(values[:start])
        for block in range(start // step, -(-stop // step)):
            if not there[block]:
                place = values[block * step : (block + 1) * step]
                place[...] = _block(stream, seed, block)[: len(place)]
                there[block] = True
        result = values[start:stop]
        result.flags.writeable = False
        return result

    def _stored(self, stream: StreamRange, seed: int, step: int) -> tuple[Array, Array]:
        """Place of all rounds of a stream, and a flag for each block that is there."""
        key = stream.name, seed
        if key not in self._streams:
            kind = np.int64 if stream.distribution is not None and stream.distribution.discrete else np.float64
            values = spacious((self._rounds, *stream.shape), kind)
            self._streams.setdefault(key, (values, np.zeros(-(-self._rounds // step), dtype=bool)))
        return self._streams[key]


def _rounds_of_block(stream: StreamRange) -> int:
    return max(1, BLOCK_ENTRIES // max(1, size(stream)))


def _block(stream: StreamRange, seed: int, block: int) -> Array:
    """Draws of a block (rounds, *shape), read-only."""
    if stream.distribution is None:
        raise InternalError(f"stream {stream.name} has no distribution to draw from")
    rng = np.random.default_rng([seed, zlib.crc32(stream.name.encode()), block])
    values = stream.distribution.sample(rng, _rounds_of_block(stream))
    values.flags.writeable = False
    return values
