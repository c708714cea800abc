"""Source of doubles as one of floats, token by token; the rule comes with tolerances for it (`compiler/ir/precision.py`)."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

WIDE = "wide_double"
"""Word for a double that stays one."""
FUNCTIONS = frozenset(
    [
        "copysign",
        "exp",
        "expm1",
        "fabs",
        "floor",
        "fma",
        "fmax",
        "fmin",
        "fmod",
        "frexp",
        "hypot",
        "ldexp",
        "log",
        "log1p",
        "nextafter",
        "pow",
        "sqrt",
    ]
)
"""Functions of libm that have a twin for floats, with an f behind the name."""
WORDS: Mapping[str, str] = {
    **{name: f"{name}f" for name in FUNCTIONS},
    **{f"DBL_{limit}": f"FLT_{limit}" for limit in ("EPSILON", "MAX", "MIN")},
    "double": "float",
    WIDE: "double",
}
_SUM_OF_LOGS = """float @{name}(const float *x, int n) {{
    float sum = 0;
    for (int i = 0; i < n; ++i) {{
        sum += logf(x[i]);
    }}
    return sum;
}}"""
HELPERS: Mapping[str, str] = {
    "exp": "float @exp(float x) { return expf(x); }",
    "log": "float @log(float x) { return logf(x); }",
    "finite": """int @finite(const float *v, int n) {
    int32_t wrong = 0;
    for (int k = 0; k < n; ++k) {
        uint32_t u;
        memcpy(&u, v + k, sizeof u);
        wrong |= (int32_t)((u & 0x7f800000u) + 0x00800000u);
    }
    return wrong >= 0;
}""",
    **{name: _SUM_OF_LOGS.format(name=name) for name in ("sum_of_logs", "sum_of_logs_above")},
}
"""Functions of the library that take numbers apart by their bits, as those of libm."""
_TOKEN = re.compile(
    r"""/\*.*?\*/ | "(?:\\.|[^"\\])*" | ^\#[^\n]*
    | (?P<number>(?:0x[0-9a-f]+(?:\.[0-9a-f]*)?p[+-]?\d+ | \d+\.\d*(?:e[+-]?\d+)? | \d+e[+-]?\d+))
    | (?P<word>[A-Za-z_@]\w*) | 0x[0-9a-f]+u? | \d+""",
    re.VERBOSE | re.DOTALL | re.MULTILINE | re.IGNORECASE,
)


def in_floats(text: str) -> str:
    """Text of a source or a header with float for double; comments, strings and directives stay."""
    return _TOKEN.sub(_replaced, text)


def _replaced(match: re.Match[str]) -> str:
    if match["number"]:
        return number(float.fromhex(match["number"]) if match["number"][:2].lower() == "0x" else float(match["number"]))
    return WORDS.get(match["word"], match["word"]) if match["word"] else match[0]


def number(value: float) -> str:
    """Literal of the float nearest to a number."""
    code = repr(float(str(np.float32(value))))
    return f"{code}f"
