"""State of a learner in C as bytes and back: the struct's values little-endian, with a version, the learner's identity
and a checksum. Values that are read back are checked: finite numbers, in a valid round.

0   8 bytes   "OCOSTATE"
8   8         version of the format, 1
16  8         the learner's identity: the first digits of a hash of its model and plan
24  8 each    the entries of the state in the struct's order; truth values as 0 or 1; floats as the doubles that they are
-8  8         CRC-64/XZ (ECMA-182, reflected) of all bytes before it
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from oco.backends.c99.interface import Interface, Named
from oco.backends.c99.single import WIDE
from oco.backends.python.state_file import LAST_ROUND
from oco.compiler.ir.program import DType

STATE_NAMES = (
    "state_size",
    "save",
    "load",
    "readable",
    "pack",
    "unpack",
    "crc",
    "head",
    "all_finite",
    "pack_floats",
    "unpack_floats",
)
"""Names that follow the module's prefix, beside those of the interface."""
VERSION = 1
MAGIC = b"OCOSTATE"
HEAD = 24
TAIL = 8

_HELPERS = """\
static inline unsigned char *@pack(const void *values, int64_t count, unsigned char *to) {
    for (int64_t i = 0; i < count; ++i) {
        uint64_t bits;
        memcpy(&bits, (const char *)values + 8 * i, 8);
        for (int k = 0; k < 8; ++k) {
            *to++ = (unsigned char)(bits >> (8 * k));
        }
    }
    return to;
}

static inline const unsigned char *@unpack(void *values, int64_t count, const unsigned char *from) {
    for (int64_t i = 0; i < count; ++i) {
        uint64_t bits = 0;
        for (int k = 0; k < 8; ++k) {
            bits |= (uint64_t)*from++ << (8 * k);
        }
        memcpy((char *)values + 8 * i, &bits, 8);
    }
    return from;
}

static inline uint64_t @crc(const unsigned char *bytes, int64_t size) {
    uint64_t crc = UINT64_MAX;
    for (int64_t i = 0; i < size; ++i) {
        crc ^= bytes[i];
        for (int k = 0; k < 8; ++k) {
            crc = crc & 1 ? (crc >> 1) ^ UINT64_C(0xC96C5795D7870F42) : crc >> 1;
        }
    }
    return ~crc;
}
"""
_OF_DOUBLES = """\
static inline int @all_finite(const unsigned char *bytes, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        uint64_t bits;
        bytes = @unpack(&bits, 1, bytes);
        if ((~bits & UINT64_C(0x7FF0000000000000)) == 0) {
            return 0; /* infinite, or no number */
        }
    }
    return 1;
}"""
_OF_FLOATS = f"""\
static inline unsigned char *@pack_floats(const float *values, int64_t count, unsigned char *to) {{
    for (int64_t i = 0; i < count; ++i) {{
        const {WIDE} value = ({WIDE})values[i];
        to = @pack(&value, 1, to);
    }}
    return to;
}}

static inline const unsigned char *@unpack_floats(float *values, int64_t count, const unsigned char *from) {{
    for (int64_t i = 0; i < count; ++i) {{
        {WIDE} value;
        from = @unpack(&value, 1, from);
        values[i] = (float)value;
    }}
    return from;
}}

static inline int @all_finite(const unsigned char *bytes, int64_t count) {{
    for (int64_t i = 0; i < count; ++i) {{
        {WIDE} value;
        bytes = @unpack(&value, 1, bytes);
        if (!(value >= -({WIDE})FLT_MAX && value <= ({WIDE})FLT_MAX)) {{
            return 0; /* infinite, or no number */
        }}
    }}
    return 1;
}}"""


def state_size(of: Interface) -> int:
    """Size of a saved learner in bytes."""
    return HEAD + 8 * sum(n.size for n in of.state) + TAIL


def state_prototypes(of: Interface, size: int) -> Iterator[str]:
    """Lines of the header about saving a learner as `size` bytes."""
    yield "/* Bytes of a saved learner. */"
    yield f"enum {{ {of.name}_state_size = {size} }};"
    yield ""
    yield f"/* Write the learner as {of.name}_state_size bytes, the same on every machine. */"
    yield f"{save_head(of)};"
    yield ""
    yield "/* Read what save wrote. Gives 0, or why nothing was changed: 1 too short or too long, 2 not a saved learner,"
    yield " * 3 saved in another version of the format, 4 another learner, 5 damaged or of no learner's values. */"
    yield f"{load_head(of)};"
    yield ""


def state_lines(of: Interface, identity: str) -> Iterator[str]:
    """Lines of the functions; `identity` is a hash in hexadecimal digits."""
    name = of.name
    magic = int.from_bytes(MAGIC, "little")
    head = f"{{UINT64_C(0x{magic:016x}), UINT64_C({VERSION}), UINT64_C(0x{identity[:16]})}}"
    yield from (_HELPERS + (_OF_FLOATS if of.arithmetic.single else _OF_DOUBLES)).split("\n")
    yield ""
    yield f"static const uint64_t {name}_head[3] = {head};"
    yield ""
    yield f"{save_head(of)} {{"
    yield f"    unsigned char *to = @pack({name}_head, 3, bytes);"
    for n in of.state:
        address = f"self->{n.name}" if n.type.shape else f"&self->{n.name}"
        if n.type.dtype is not DType.BOOL:
            yield f"    to = @pack{_floats(of, n)}({address}, {n.size}, to);"
            continue
        yield f"    for (int i = 0; i < {n.size}; ++i) {{"
        yield f"        const uint64_t bit = ({address})[i];"
        yield "        to = @pack(&bit, 1, to);"
        yield "    }"
    yield f"    const uint64_t crc = @crc(bytes, {name}_state_size - {TAIL});"
    yield "    @pack(&crc, 1, to);"
    yield "}"
    yield ""
    yield from readable(name, of.name)
    yield from _believable(of)
    yield "    return 0;"
    yield "}"
    yield ""
    yield f"{load_head(of)} {{"
    yield f"    const int wrong = {name}_readable(bytes, size);"
    yield "    if (wrong != 0) { return wrong; }"
    yield f"    const unsigned char *from = bytes + {HEAD};"
    for n in of.state:
        address = f"self->{n.name}" if n.type.shape else f"&self->{n.name}"
        if n.type.dtype is not DType.BOOL:
            yield f"    from = @unpack{_floats(of, n)}({address}, {n.size}, from);"
            continue
        yield f"    for (int i = 0; i < {n.size}; ++i) {{"
        yield "        uint64_t bit;"
        yield "        from = @unpack(&bit, 1, from);"
        yield f"        ({address})[i] = bit != 0;"
        yield "    }"
    yield f"    self->{of.decided} = 0;"
    yield "    return 0;"
    yield "}"


def readable(name: str, prefix: str) -> Iterator[str]:
    """Beginning of the function that refuses what cannot be a state, before anything is changed: other learners and damage."""
    yield f"static int {name}_readable(const unsigned char *bytes, int64_t size) {{"
    yield "    uint64_t head[3], crc;"
    yield f"    if (size < {HEAD + TAIL}) {{ return 1; }}"
    yield "    @unpack(head, 3, bytes);"
    yield "    for (int k = 0; k < 3; ++k) {"
    yield f"        if (head[k] != {prefix}_head[k]) {{ return k + 2; }}"
    yield "    }"
    yield f"    if (size != {name}_state_size) {{ return 1; }}"
    yield f"    @unpack(&crc, 1, bytes + size - {TAIL});"
    yield f"    if (crc != @crc(bytes, size - {TAIL})) {{ return 5; }}"


def _believable(of: Interface) -> Iterator[str]:
    """Statements that refuse impossible entries: the round comes first."""
    yield f"    @unpack(head, 1, bytes + {HEAD});"
    yield f"    if (head[0] - 1 >= UINT64_C({LAST_ROUND})) {{ return 5; }}"
    place = HEAD
    for dtype, group in groupby(of.state, lambda n: n.type.dtype):
        count = sum(n.size for n in group)
        if dtype is DType.FLOAT and count:
            yield f"    if (!@all_finite(bytes + {place}, {count})) {{ return 5; }}"
        place += 8 * count


def _floats(of: Interface, n: Named) -> str:
    """Ending of the functions that keep a member of the struct."""
    return "_floats" if of.arithmetic.single and n.type.dtype is DType.FLOAT else ""


def save_head(of: Interface) -> str:
    """Head of the function that writes a learner as bytes."""
    return f"void {of.name}_save(const {of.name} *self, unsigned char *bytes)"


def load_head(of: Interface) -> str:
    """Head of the function that reads it back."""
    return f"int {of.name}_load({of.name} *self, const unsigned char *bytes, int64_t size)"
