"""Text of `words.pyi`: the signature of each word of the language, for editors and type checkers."""

from __future__ import annotations

import inspect
import textwrap
from inspect import Parameter, Signature

import oco.words

WIDTH = 120
HEADER = '''"""Signatures of the words of the language. Written by `make stubs` from the tables of the language."""

from oco.domains import Domain
from oco.dsl.terms import DistributionTerm, Operand, Term
'''


def words_stub() -> str:
    """Return the stub as text: a function for each word, with its types and its docstring."""
    words = {name: getattr(oco.words, name) for name in oco.words.__all__}
    functions = [_stub(name, inspect.signature(word), inspect.getdoc(word) or "") for name, word in words.items()]
    names = "".join(f'    "{name}",\n' for name in words)
    return f"{HEADER}\n__all__ = [\n{names}]\n\n" + "\n".join(functions)


def _stub(name: str, signature: Signature, doc: str) -> str:
    parts: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.kind is Parameter.KEYWORD_ONLY and not any(part.startswith("*") for part in parts):
            parts.append("*")
        star = "*" if parameter.kind is Parameter.VAR_POSITIONAL else ""
        default = "" if parameter.default is Parameter.empty else " = ..."
        parts.append(f"{star}{parameter.name}: {parameter.annotation}{default}")
        if parameter.kind is Parameter.POSITIONAL_ONLY:
            parts.append("/")
    first, *others = [textwrap.fill(part, WIDTH - 8, break_long_words=False) for part in doc.split("\n\n")]
    text = textwrap.indent("\n\n".join([f'"""{first}', *others]) + ('\n"""' if others else '"""'), "    ")
    return f"def {name}({', '.join(parts)}) -> {signature.return_annotation}:\n{text}\n"


if __name__ == "__main__":
    print(words_stub(), end="")
