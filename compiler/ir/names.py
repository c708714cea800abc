"""Identifiers: every name that reaches generated code is made legal here, once, for all targets."""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Callable, Collection
from functools import lru_cache, partial

# What generated code relies on: a variable of that name would hide it. C functions and constants carry a prefix of their own.
_C = """auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while bool true false asm
    typeof complex imaginary main errno memcpy memset memmove NULL INFINITY NAN HUGE_VAL EOF FILE stdin stdout stderr size_t
    unix linux BUFSIZ DECIMAL_DIG math_errhandling int64_t uint64_t uint32_t uint8_t assert ceil exp expm1
    fabs floor fmax fmin fmod isfinite isinf isnan log log1p pow sqrt"""
_PYTHON = """np numpy jax jnp math json sys os io csv argparse hashlib zipfile tempfile warnings self Learner init decide
    update measure slopes observe abs all any bool bytes dict enumerate float getattr hasattr int isinstance iter len list map max
    min next object open work print property range repr set sorted staticmethod str sum super tuple type vars zip Exception
    IndexError KeyError NotImplementedError OSError RuntimeError TypeError ValueError AssertionError AttributeError BaseException
    ArithmeticError Iterable NotFinite finite
    FileNotFoundError OverflowError RecursionError classmethod Any Iterator Mapping NamedTuple annotations base64 contextlib re time
    zlib unpacked ratio root larger smaller weighted_quantile until_done Feedback Intake Stream StreamError StateError pack unpack
    read_state write_state columns_of rounds_of run main MODEL MODEL_HASH PLAN_HASH HORIZON STATE
    START STREAMS CONTEXT PREVIOUS DRAWS CONSTRAINTS EQUALITIES LIPSCHITZ prepare
    named_columns DELAY OpenRounds RoundError LearnerInTurn reversed functools
    lax carried play play_round for_numpy derivatives
    AFTER_HORIZON NAMES arranged certificate STATE_FORMAT LAST_ROUND RLock check_round contextmanager entry_of number_of"""
_MACRO = re.compile(r"(DBL|FLT|LDBL|FP|HUGE|INT|L|M|MATH|P|SEEK|UINT)_\w+|[A-Z]\w*_(MAX|MIN)|__\w+")
"""Macros of C's headers: they would be exchanged for something else wherever they stand."""
RESERVED = (
    frozenset(_C.split()) | frozenset(_PYTHON.split()) | frozenset(keyword.kwlist) | frozenset(keyword.softkwlist)
)

_ILLEGAL = re.compile(r"[^A-Za-z0-9_]")
_LONGEST = 60  # characters of a name in emitted text
KEPT = 1 << 15
"""Spellings of names that are kept, some megabytes: a program has thousands of names, and each pass asks for all of them in turn."""


def _spell(character: str) -> str:
    """An ASCII spelling of one character: a Greek letter by its name, others by number."""
    if ord(character) < 128:
        return "_"
    if match := re.fullmatch(r"GREEK (SMALL|CAPITAL) LETTER (\w+)", unicodedata.name(character, "")):
        return match[2].lower() if match[1] == "SMALL" else match[2].capitalize()
    return f"u{ord(character):x}"


def identifier(name: str, taken: Collection[str] = ()) -> str:
    """A legal identifier close to `name` in Python, C and JAX, outside `taken`: `import` gives `import_`, a second x gives x_2."""
    stem = _legal(name)
    return stem if stem not in taken else first_free(partial(_numbered, stem), taken)


@lru_cache(maxsize=KEPT)
def _legal(name: str) -> str:
    """Legal identifier close to a name, wherever it is free."""
    stem = _ILLEGAL.sub(lambda m: _spell(m[0]), name)[:_LONGEST].strip("_") or "v"
    if stem[0].isdigit():
        stem = "v" + stem
    if stem in RESERVED:
        stem += "_"
    return f"v{stem}" if _MACRO.fullmatch(stem) else stem


@lru_cache(maxsize=KEPT)
def _numbered(stem: str, number: int) -> str:
    result = f"{stem.rstrip('_')}_{number}"
    return f"v{result}" if _MACRO.fullmatch(result) else result  # a second M


def first_free(spelled: Callable[[int], str], taken: Collection[str]) -> str:
    """A name with a number, from 2, outside `taken`: the first, where names were taken in order.

    Many names alike cost little: the number is doubled until a name is free, then halved in between.
    """
    low, high = 1, 2
    while spelled(high) in taken:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if spelled(middle) in taken else (low, middle)
    return spelled(high)


@lru_cache(maxsize=KEPT)
def is_legal(name: str) -> bool:
    """True if `name` may stand in generated code as it is."""
    return (
        re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) is not None and name not in RESERVED and not _MACRO.fullmatch(name)
    )


def is_temporary(name: str) -> bool:
    """True if a variable has no name of its own (`v`, `v_2`, ...), or a word alone (`v_scaled_x`, see `words.py`)."""
    return name == "v" or name.startswith("v_")
