"""Identifiers: every name that reaches generated code is made legal here, once, for all targets."""

from __future__ import annotations

import builtins
import keyword
import re
import unicodedata
from collections.abc import Collection

C_WORDS = frozenset(
    """auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while bool true false
    asm typeof complex imaginary main errno abort exit malloc calloc free memcpy memset memmove qsort printf NULL
    acos asin atan atan2 ceil cos cosh erf erfc exp exp2 expm1 fabs fdim floor fma fmax fmin fmod frexp hypot ldexp
    lgamma log log10 log1p log2 logb lrint lround modf nan nearbyint pow remainder remquo rint round scalbn sin sinh
    sqrt tan tanh tgamma trunc cbrt copysign ilogb llrint llround nextafter isnan isinf isfinite signbit fpclassify
    isnormal j0 j1 jn y0 y1 yn gamma_ INFINITY NAN HUGE_VAL EOF FILE stdin stdout stderr size_t int64_t uint64_t
    abs labs div ldiv rand srand time clock signal index jnf drem significand gammaf""".split()
)
MODULE_WORDS = frozenset(
    """np numpy jax jnp math json sys os io csv argparse hashlib zipfile tempfile warnings annotations self
    Learner Feedback State init decide observe update measure""".split()
)
RESERVED = C_WORDS | MODULE_WORDS | frozenset(keyword.kwlist) | frozenset(keyword.softkwlist) | frozenset(dir(builtins))

_ILLEGAL = re.compile(r"[^A-Za-z0-9_]")
_LONGEST = 60


def _spell(character: str) -> str:
    """An ASCII spelling of one character: a Greek letter by its name, others by number."""
    name = unicodedata.name(character, "")
    if match := re.fullmatch(r"GREEK (?:SMALL|CAPITAL) LETTER (\w+)", name):
        word = match[1].lower()
        return word.capitalize() if "CAPITAL" in name else word
    return "_" if ord(character) < 128 else f"u{ord(character):x}"


def identifier(name: str, taken: Collection[str] = ()) -> str:
    """A legal identifier close to `name` in Python, C and JAX, outside `taken`: `import` gives `import_`, a second `x` gives `x_2`."""
    stem = _ILLEGAL.sub(lambda m: _spell(m[0]), name)[:_LONGEST].strip("_") or "v"
    if stem[0].isdigit():
        stem = "v" + stem
    if stem in RESERVED:
        stem += "_"
    found, number = stem, 1
    while found in taken:
        number += 1
        found = f"{stem.rstrip('_')}_{number}"
    return found


def is_legal(name: str) -> bool:
    """Whether `name` may stand in generated code as it is."""
    return re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) is not None and name not in RESERVED
