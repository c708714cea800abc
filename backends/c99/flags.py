"""Flags with which emitted C is compiled, here and by those who take it elsewhere."""

NUMERIC = ("-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math")
"""Fused multiply-add where the machine has it; roots, exponentials and logarithms in vectors, since nothing reads errno or traps.

No -ffast-math: sums keep their order, and NaN and infinities their meaning.
"""
PORTABLE = ("-std=c99", "-O3", *NUMERIC)
"""Flags that any gcc, clang and zig takes."""
OF_THIS_MACHINE = "-march=native"
FLAGS = (*PORTABLE, OF_THIS_MACHINE, "-fPIC", "-shared")
"""Flags of a shared library for the machine at hand."""


def command(*files: str) -> str:
    """Command that compiles files into a program for the machine at hand."""
    return " ".join(("cc", *PORTABLE, OF_THIS_MACHINE, *files, "-lm"))
