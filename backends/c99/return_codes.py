"""Version and size of an emitted source, and the meaning of its return codes, for those who call it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from oco.backends.c99.interface import PUBLIC, Interface, Named
from oco.backends.c99.writer import comment
from oco.compiler.ir.names import identifier
from oco.compiler.ir.program import DType

STATUS_NAMES = ("version", "sizeof", "error", "error_size", "text", "number", "place")
"""Names that follow the module's prefix, beside those of the interface."""

_HELPERS = """\
static inline char *@text(char *to, const char *from) {
    while (*from) {
        *to++ = *from++;
    }
    *to = 0;
    return to;
}"""
_PLACES = """\
static inline char *@number(char *to, int64_t value) {
    char digits[24];
    int count = 0;
    do {
        digits[count++] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    while (count) {
        *to++ = digits[--count];
    }
    *to = 0;
    return to;
}

static inline char *@place(char *to, const char *name, int64_t place, const int64_t *shape, int axes) {
    int64_t behind = 1;
    to = @text(to, name);
    for (int k = 0; k < axes; ++k) {
        behind *= shape[k];
    }
    for (int k = 0; k < axes; ++k) {
        behind /= shape[k];
        to = @number(@text(to, k ? ", " : "["), place / behind);
        place %= behind;
    }
    return axes ? @text(to, "]") : to;
}"""
_LONGEST = 200
"""Characters of an error beside the name of the entry."""


class ReturnCodes:
    """Writer of `NAME_version`, `NAME_sizeof`, `NAME_error` and the codes; `refusals` has further ones by name, in words."""

    def __init__(
        self, interface: Interface, algorithm: str, identity: str, refusals: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self.of = interface
        self.refusals = [
            (f"{interface.name}_{name}", -code, words)
            for code, (name, words) in enumerate(refusals.items(), first_refusal(interface))
        ]
        kind = ", float" if interface.arithmetic.single else ""
        self.about = f"{comment(interface.program.name)}, {comment(algorithm)}, learner {identity[:16]}{kind}"
        program = interface.program
        self._taken = {*PUBLIC, *STATUS_NAMES, "ok", *(g.var.name for g in program.constants)}
        self._taken |= {f.name for f in program.functions}
        self.inputs = self._codes("wrong", self._with_entries(interface.inputs))
        self.state = self._codes(
            "overflow", {n: k for k, n in enumerate(interface.state, 1) if n.type.dtype is DType.FLOAT}
        )
        self.decision = self._name("overflow", "decision")
        self.undecided = self._name("undecided", "round")

    @staticmethod
    def _with_entries(inputs: list[Named]) -> dict[Named, int]:
        """First code of each input that has entries."""
        results, before = {}, 1
        for n in inputs:
            if n.size:
                results[n] = before
            before += n.size
        return results

    def _codes(self, kind: str, codes: dict[Named, int]) -> list[tuple[str, Named, int]]:
        return [(self._name(kind, n.name), n, code) for n, code in codes.items()]

    def _name(self, kind: str, name: str) -> str:
        result = identifier(f"{kind}_{name}", frozenset(self._taken))
        self._taken.add(result)
        return f"{self.of.name}_{result}"

    def header(self) -> Iterator[str]:
        """Lines of the header."""
        name = self.of.name
        yield f"/* Return codes. {name}_error says them in words. */"
        yield "enum {"
        yield f"    {name}_ok = 0,"
        for code, n, first in self.inputs:
            many = f" and the {n.size - 1:,} codes after it" if n.size > 1 else ""
            yield f"    {code} = {first}, /* {comment(n.field.name)}{many}: not finite, or out of bounds */"
        yield f"    {self.decision} = -1, /* the decision would not be finite */"
        for code, n, place in self.state:
            yield f"    {code} = {-place}, /* {comment(n.field.name)} would not be finite after the round */"
        if not self.refusals:
            yield f"    {self.undecided} = {self.of.undecided}, /* observe before decide: call decide first, once a round */"
        for code, number, words in self.refusals:
            yield f"    {code} = {number}, /* {words} */"
        yield f"    {name}_error_size = {error_size(self.of)}"
        yield "};"
        yield ""
        yield f"/* Write what a code means, with the entry that it names, into {name}_error_size characters, and give them. */"
        yield f"{self._error()};"
        yield ""
        yield "/* The model, the algorithm, and digits that change with either or with a setting. */"
        yield f"{self._version()};"
        yield ""
        yield f"/* Bytes of the struct {name}, for callers that do not read this file. */"
        yield f"{self._sizeof()};"
        yield ""

    def lines(self) -> Iterator[str]:
        """Lines of the functions."""
        yield from _HELPERS.split("\n")
        yield from ("", *_PLACES.split("\n")) if self.inputs else ()
        yield ""
        yield f"{self._error()} {{"
        if any(n.type.shape for _, n, _ in self.inputs):
            shapes = [(k, n) for k, (_, n, _) in enumerate(self.inputs) if n.type.shape]
            yield from (
                f"    static const int64_t shape_{k}[] = {{{', '.join(map(str, n.type.shape))}}};" for k, n in shapes
            )
        yield '    if (code == 0) { @text(text, "done"); return text; }'
        for k, (_, n, first) in enumerate(self.inputs):
            shape, axes = (f"shape_{k}", len(n.type.shape)) if n.type.shape else ("0", 0)
            place = f'@place(text, "{quoted(n.field.name)}", code - {first}, {shape}, {axes})'
            yield f"    if (code >= {first} && code < {first + n.size}) {{"
            yield f'        @text({place}, " is not finite, or out of its bounds");'
            yield "        return text;"
            yield "    }"
        yield "    switch (code) {"
        yield '    case -1: @text(text, "the decision would not be finite"); break;'
        for _, n, code in self.state:
            yield f'    case {-code}: @text(text, "{quoted(n.field.name)} would not be finite after the round"); break;'
        for _, code, words in self.refusals:
            yield f'    case {code}: @text(text, "{words}"); break;'
        if not self.refusals:
            undecided = "the round is observed before it was decided: call decide first, once a round"
            yield f'    case {self.of.undecided}: @text(text, "{undecided}"); break;'
        yield '    default: @text(text, "no code of this learner");'
        yield "    }"
        yield "    return text;"
        yield "}"
        yield ""
        yield f'{self._version()} {{ return "{quoted(self.about)}"; }}'
        yield ""
        yield f"{self._sizeof()} {{ return (int64_t)sizeof({self.of.name}); }}"
        yield ""

    def _error(self) -> str:
        return f"const char *{self.of.name}_error(int64_t code, char *text)"

    def _version(self) -> str:
        return f"const char *{self.of.name}_version(void)"

    def _sizeof(self) -> str:
        return f"int64_t {self.of.name}_sizeof(void)"


def quoted(text: str) -> str:
    """Text within a string of C."""
    shown = comment(text).replace("\\", "\\\\").replace('"', '\\"').replace("??", "?\\?")
    return shown[:3000]


def first_refusal(of: Interface) -> int:
    """First number after those of the state, of which code -k is of entry k of the struct, and after that of an undecided round."""
    return len(of.state) + 2


def error_size(of: Interface) -> int:
    """Characters that the text of an error takes at most, with the zero at its end."""
    axes = max((len(n.type.shape) for n in of.inputs), default=0)
    names = (n.field.name for n in (*of.inputs, *of.state))
    return _LONGEST + 24 * axes + max((len(quoted(name).encode()) for name in names), default=0)


def bytes_of_struct(of: Interface) -> int:
    """Bytes of the struct on a machine of 64 bits."""
    sizes, place = {DType.FLOAT: of.number_bytes, DType.INT: 8, DType.BOOL: 1}, 0
    for n in of.state:
        size = sizes[n.type.dtype]
        place = math.ceil(place / size) * size + size * max(n.size, 1)
    return math.ceil((math.ceil(place / 8) * 8 + 8 + of.number_bytes * of.work) / 8) * 8
