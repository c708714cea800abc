"""Flags with which emitted C is compiled, here and by those who take it elsewhere."""

NUMERIC = ("-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math")
"""Exponentials, logarithms and roots in vectors, since nothing reads errno or traps; sums keep their order, and NaN its meaning.

No fused multiply-add, which saves a seventh: compilers fuse otherwise in a fleet than in a learner, and both should agree to rounding.
"""
PORTABLE = ("-std=c99", "-O3", *NUMERIC)
"""Flags that any gcc, clang and zig takes."""
OF_THIS_MACHINE = "-march=native"
FLAGS = (*PORTABLE, OF_THIS_MACHINE, "-fPIC", "-shared")
"""Flags of a shared library for the machine at hand."""


def command(*files: str) -> str:
    """Command that compiles files into a program for the machine at hand."""
    return " ".join(("cc", *PORTABLE, OF_THIS_MACHINE, *files, "-lm"))
