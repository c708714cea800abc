"""Numbers of emitted C, and how far they may be rounded otherwise than each operation of a rule on its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from oco.backends.c99 import single
from oco.dsl.records import dataclass

_FLOATS = (
    "Numbers are float (24 binary digits, about 7 decimal ones): the last digits of decisions differ from those of double, tolerances of "
    "exact steps are those of float, and sums over many rounds lose what is a ten-millionth of them (docs/float32.md: how far examples "
    "were apart). Guarantees are those of exact numbers."
)
_QUICK = (
    "Numbers are rounded as is fast: products and sums together where the compiler's -ffp-contract=fast says so, exponentials within 1e-13 "
    "of themselves (below e^-708 they are 0, above e^709 infinite). Last digits of decisions differ from those of `--precision exact`, and "
    "from one compiler to the next (docs/speed.md: how far examples were apart)."
)
_QUICK_EXP = """double @exp(double x) {
    /* e^x = 2^k e^r with |r| <= log(2)/2, and a polynomial that meets its function at Chebyshev's points */
    const double shifted = @fma(x, 0x1.71547652b82fep+0, 0x1.8p52), k = shifted - 0x1.8p52;
    const double r = @fma(-k, 0x1.62e42fefa39efp-1, x);
    double p = 0x1.72ad458027fbcp-19;
    p = @fma(p, r, 0x1.a136bf03ec612p-16);
    p = @fma(p, r, 0x1.a019c36bc053cp-13);
    p = @fma(p, r, 0x1.6c166bde96885p-10);
    p = @fma(p, r, 0x1.111111170bc08p-7);
    p = @fma(p, r, 0x1.55555565c7e0ep-5);
    p = @fma(p, r, 0x1.5555555554f96p-3);
    p = @fma(p, r, 0x1.fffffffffe062p-2);
    p = 1.0 + @fma(p * r, r, r);
    uint64_t u;
    memcpy(&u, &shifted, sizeof u); /* its last bits are those of k */
    u = (u + 1023) << 52;
    double power;
    memcpy(&power, &u, sizeof power);
    return x > 709.0 ? INFINITY : x < -708.0 ? 0.0 : p * power;
}"""


@dataclass(frozen=True)
class Arithmetic:
    """Numbers of a source with their rounding.

    name    as users name it (`Registered.precisions`)
    single  True where numbers are floats
    fused   True where compilers may round a product and a sum together
    pieces  texts of functions in place of those of the library, by name
    about   comment in the source; "" for none
    """

    name: str
    single: bool = False
    fused: bool = False
    pieces: Mapping[str, str] = field(default_factory=dict)
    about: str = ""


EXACT = Arithmetic("exact")
"""Every operation of the rule rounded on its own, so that a learner and a fleet round alike."""
FAST = Arithmetic("fast", fused=True, pieces={"exp": _QUICK_EXP}, about=_QUICK)
SINGLE = Arithmetic("float32", single=True, pieces=single.HELPERS, about=_FLOATS)
ARITHMETICS = {a.name: a for a in (EXACT, FAST, SINGLE)}
"""Arithmetics by name."""
