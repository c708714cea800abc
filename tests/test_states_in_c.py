"""Saving in C: bytes that go from one process to another, from one machine to another, and that are refused when anything is wrong."""

from __future__ import annotations

import ctypes
import random
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from test_c99 import STRICT, build, contract, has_compiler, queue

from oco.backends.c99.build import compiler
from oco.backends.c99.module import emit
from oco.backends.c99.state import MAGIC, state_size
from oco.compiler.ir.build import trace_program
from oco.compiler.ir.program import DType, Field, Program, Type
from oco.compiler.ir.trace import Tracer

pytestmark = pytest.mark.skipif(not has_compiler(), reason="no C compiler")

PRICES, JOBS = np.random.default_rng(0).uniform(0, 10, (60, 3)), np.random.default_rng(1).uniform(0, 4, 60)


def crc64(data: bytes) -> int:
    """CRC-64/XZ, from its definition as a polynomial division, bit by bit."""
    crc = 2**64 - 1
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xC96C5795D7870F42 if crc & 1 else 0)
    return crc ^ (2**64 - 1)


def test_the_checksum_is_the_published_one():
    assert crc64(b"123456789") == 0x995DC9BBDF1939FA  # the check value of CRC-64/XZ in the catalogue of CRCs


class Struct:
    """A learner of a library, and what is done with it."""

    def __init__(self, native):
        self.native, self.name = native, native.source.name
        self.memory = native.layout()
        self.call("init", *[None for _ in native.program.decision])

    def call(self, name, *args):
        function = getattr(self.native.library, f"{self.name}_{name}")
        function.restype = ctypes.c_int64 if name in ("observe", "load") else None
        return function(ctypes.byref(self.memory), *args)

    def bytes(self):
        return bytes(self.memory)

    def save(self):
        buffer = (ctypes.c_ubyte * state_size(self.native.source.interface))()
        self.call("save", buffer)
        return bytes(buffer)

    def load(self, data):
        buffer = (ctypes.c_ubyte * max(len(data), 1)).from_buffer_copy(data.ljust(1, b"\0"))
        return ctypes.c_int(self.call("load", buffer, ctypes.c_int64(len(data)))).value

    def observe(self, k):
        decided = [np.empty(f.type.shape) for f in self.native.program.decision]
        self.call("decide", *[d.ctypes.data_as(ctypes.c_void_p) for d in decided])
        price = np.ascontiguousarray(PRICES[k])
        assert self.call("observe", price.ctypes.data_as(ctypes.c_void_p), ctypes.c_double(JOBS[k])) == 0


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    return build([queue()], tmp_path_factory.mktemp("c"))[0]


def test_a_loaded_learner_goes_on_bit_for_bit(native):
    whole, part, again = Struct(native), Struct(native), Struct(native)
    for k in range(60):
        whole.observe(k)
    for k in range(25):
        part.observe(k)
    assert again.load(part.save()) == 0 and again.save() == part.save()
    for k in range(25, 60):
        again.observe(k)
    assert again.save() == whole.save()


def test_the_layout_is_the_documented_one(native):
    a = Struct(native)
    for k in range(7):
        a.observe(k)
    data = a.save()
    words = np.frombuffer(data, "<u8")
    assert data[:8] == MAGIC and words[1] == 1 and words[-1] == crc64(data[:-8])
    values = native.init(*[np.asarray(v) for v in (np.zeros(3),)])
    entries = sum(np.size(v) for v in values)
    assert len(words) == 4 + entries and words[3] == 8  # round 8, after seven
    names = [f.name for f in native.program.state]
    kept = {n: getattr(a.memory, m) for n, m in zip(names, native.members)}
    flat = np.concatenate([np.ravel(kept[n]) for n in names[1:]]).astype(float)
    assert np.array_equal(np.frombuffer(data, "<f8")[4:-1], flat)


def test_what_is_refused_changes_nothing(native):
    a, b = Struct(native), Struct(native)
    a.observe(0)
    data, before = a.save(), b.bytes()
    newer, foreign = bytearray(data), bytearray(data)
    newer[8] += 1
    foreign[16] ^= 1
    cases = [
        (b"", 1),
        (data[:31], 1),
        (data[:-1], 1),
        (data + b"\0", 1),
        (b"x" * len(data), 2),
        (newer, 3),
        (foreign, 4),
    ]
    for damaged, why in cases:
        assert b.load(bytes(damaged)) == why and b.bytes() == before
    flipped = bytearray(data)
    flipped[-12] ^= 0x10
    assert b.load(bytes(flipped)) == 5 and b.bytes() == before


def test_numbers_that_no_learner_keeps_are_refused(native):
    """With a right checksum: numbers that are not finite at every place, and rounds that there are not."""
    a, b = Struct(native), Struct(native)
    a.observe(0)
    data, before = a.save(), b.bytes()

    def loaded(place, value):
        wrong = data[:place] + value + data[place + 8 : -8]
        return b.load(wrong + crc64(wrong).to_bytes(8, "little"))

    places = range(32, len(data) - 8, 8)
    assert len(places) >= 4
    for value in (np.nan, -np.nan, np.inf, -np.inf):
        assert [loaded(place, np.float64(value).tobytes()) for place in places] == [5] * len(places)
    for round in (0, -1, -(2**63), 2**53 + 1, 2**63 - 1):
        assert loaded(24, round.to_bytes(8, "little", signed=True)) == 5
    assert b.bytes() == before
    assert loaded(32, np.float64(-0.0).tobytes()) == 0 and loaded(24, (2**53).to_bytes(8, "little")) == 0


def test_a_thousand_mutations_never_give_a_learner(native):
    rng = random.Random(0)
    a, b = Struct(native), Struct(native)
    for k in range(9):
        a.observe(k)
    data, before = a.save(), b.bytes()
    for _ in range(1000):
        damaged = bytearray(data)
        for _ in range(rng.choice((1, 1, 2, 8))):
            place, kind = rng.randrange(len(damaged)), rng.randrange(4)
            if kind == 0:
                damaged[place] ^= 1 << rng.randrange(8)
            elif kind == 1:
                del damaged[place : place + rng.randrange(1, 40)]
            elif kind == 2:
                damaged.insert(place, rng.randrange(256))
            else:
                damaged[place : place + 8] = rng.randbytes(8)
            if not damaged:
                break
        if damaged != data:
            assert b.load(bytes(damaged)) != 0 and b.bytes() == before


def test_another_model_is_another_learner(native, tmp_path):
    other = replace(contract(native.program), text="model other")
    assert emit(native.program, other).code != native.source.code
    ours = emit(native.program, contract(native.program))
    words = [line for s in (ours, emit(native.program, other)) for line in s.code.splitlines() if "_head[3] =" in line]
    assert len(words) == 2 and words[0] != words[1]


def every_kind() -> Program:
    """State with numbers, integers and truth values, alone and in arrays."""
    t = Tracer("kinds")

    def update(state, seen, drawn):
        high = seen["price"] > 5.0
        count = state["count"] + t.to_int(t.where(high, 1.0, 0.0))
        return {"x": state["x"] + 0.25, "high": high, "count": count, "any": t.any(high), "last": state["round"]}

    return trace_program(
        t,
        decision=[Field("x", Type(DType.FLOAT, (3,)))],
        feedback=[Field("price", Type(DType.FLOAT, (3,))), Field("jobs", Type(DType.FLOAT))],
        init=lambda start: {
            "x": start["x"],
            "high": start["x"] > 1.0,
            "count": t.to_int(start["x"]),
            "any": t.any(start["x"] > 1.0),
            "last": 0,
        },
        decide=lambda state, drawn: {"x": state["x"]},
        update=update,
        measure=lambda now, x, seen: (t.sum(x["x"]), t.zeros((0,)), t.zeros((0,))),
    )


def test_every_kind_of_state_is_kept(tmp_path):
    (native,) = build([every_kind()], tmp_path)
    assert {f.type.dtype for f in native.program.state} == set(DType)
    a, b = Struct(native), Struct(native)
    for k in range(20):
        a.observe(k)
    assert b.load(a.save()) == 0 and b.save() == a.save()
    for one in (a, b):
        one.observe(23)
    assert a.save() == b.save()
    found = [np.asarray(v) for v in native._state(b.memory)]
    assert found[0] == 22 and any(v.dtype == bool and v.shape and v.any() and not v.all() for v in found)


def test_the_size_is_a_constant_of_the_header(native, tmp_path):
    (tmp_path / f"{native.source.name}.h").write_text(native.source.header)
    (tmp_path / "use.c").write_text(
        f'#include "{native.source.name}.h"\nunsigned char saved[{native.source.name}_state_size];\n'
    )
    done = subprocess.run([*compiler(), *STRICT, "-c", "use.c"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
