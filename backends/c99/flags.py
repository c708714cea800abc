"""Flags with which emitted C is compiled, here and by those who take it elsewhere."""

FUSED = "-ffp-contract=fast"
"""Products and sums in one rounding; compilers do so otherwise in a fleet than in a learner."""
OF_THIS_MACHINE = "-march=native"


def numeric(fused: bool = False) -> tuple[str, ...]:
    """Flags for numbers: exponentials, logarithms and roots in vectors, since nothing reads errno or traps; sums keep their order, and
    NaN its meaning.
    """
    return (FUSED if fused else "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math")


def portable(fused: bool = False) -> tuple[str, ...]:
    """Flags that any gcc, clang and zig takes."""
    return ("-std=c99", "-O3", *numeric(fused))


FLAGS = (*portable(), OF_THIS_MACHINE, "-fPIC", "-shared")
"""Flags of a shared library for the machine at hand."""


def quick(flags: tuple[str, ...]) -> tuple[str, ...]:
    """Flags that compile several times faster, for code that runs about as long as it takes to compile. Numbers are rounded as ever, so
    that results have the same bits, unless products and sums are fused.
    """
    return tuple(part for flag in flags for part in (("-O1", "-ftree-vectorize") if flag == "-O3" else (flag,)))


def command(*files: str, fused: bool = False) -> str:
    """Command that compiles files into a program for the machine at hand."""
    return " ".join(("cc", *portable(fused), OF_THIS_MACHINE, *files, "-lm"))
