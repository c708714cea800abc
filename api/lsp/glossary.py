"""Meaning of each word of the language: signature and documentation from the tables of the language."""

from __future__ import annotations

from functools import cache
from inspect import Signature

from oco.dsl.atoms import ATOMS
from oco.dsl.distributions import DISTRIBUTIONS
from oco.dsl.domains import DOMAINS
from oco.dsl.functions import atom_signature, distribution_signature, domain_signature
from oco.dsl.records import dataclass
from oco.dsl.settings import SETTINGS
from oco.dsl.text.words import LATER_WORDS, STATEMENT_WORDS


@dataclass(frozen=True)
class Word:
    """Word of the language.

    kind       "atom", "domain", "distribution", "algorithm" or "statement"
    form       as it is written, with its arguments
    text       meaning, in sentences
    arguments  names in order; `name =` for those that are given by name
    """

    name: str
    kind: str
    form: str
    text: str
    arguments: tuple[str, ...] = ()


@cache
def functions() -> dict[str, Word]:
    """Words that take arguments in brackets: atoms, domains and distributions."""
    words = [
        _called(name, "atom", atom_signature(row), row.doc)
        for name, row in ATOMS.items()
        if not row.operator and not name.startswith("_")
    ]
    words += [_called(name, "domain", domain_signature(name), row.doc) for name, row in DOMAINS.items()]
    words += [
        _called(name, "distribution", distribution_signature(name), row.doc) for name, row in DISTRIBUTIONS.items()
    ]
    words += [Word(name, "atom", f"{name}(x)", meaning, ("x",)) for name, meaning in LATER_WORDS.items()]
    return {word.name: word for word in words}


@cache
def algorithms() -> dict[str, Word]:
    """Algorithms by the name that `using` takes, with their papers and what their theorems promise."""
    from oco.compiler.algorithms import ALGORITHMS

    words = {}
    for row in ALGORITHMS:
        promises = [
            f"* {t.name}: " + ", ".join(f"{measure} O({rate})" for measure, rate in t.rates.items())
            for t in row.theorems
            if t.rates
        ]
        title = row.title[:1].upper() + row.title[1:]
        text = "\n".join(
            [
                f"{title} ({row.cite}). A round costs {row.cost}.",
                "",
                *(dict.fromkeys(promises) or ["* nothing is promised of it"]),
            ]
        )
        words[row.name] = Word(row.name, "algorithm", f"using {row.name}", text, SETTINGS.get(row.name, ()))
    return words


@cache
def statements() -> dict[str, Word]:
    """Words that begin a statement, with its form."""
    return {name: Word(name, "statement", form, "") for name, form in STATEMENT_WORDS.items()}


def _called(name: str, kind: str, signature: Signature, text: str) -> Word:
    arguments = []
    for parameter in signature.parameters.values():
        star = "..." if parameter.kind is parameter.VAR_POSITIONAL else ""
        named = " =" if parameter.kind is parameter.KEYWORD_ONLY else ""
        arguments.append(f"{parameter.name}{named}{star}")
    written = f"{name}({', '.join(arguments)})" if arguments else name
    return Word(name, kind, written, text, tuple(arguments))
