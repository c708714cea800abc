"""Tables of the parser. Lark makes them from the grammar; they are shipped, so that reading a model does not wait for
it.
"""

from __future__ import annotations

import json
import pkgutil
import zlib
from functools import cache
from typing import Any, NamedTuple

SHIPPED = "tables.json"
STARTS = ("statement", "formula")


class GrammarReduction(NamedTuple):
    """Reduction of a grammar rule to one value."""

    origin: str
    method: str | None
    """Method of the tree builder that makes the value of the parts; None: the value is the list of parts, which another rule takes in."""
    size: int
    """Number of symbols of the rule. Each is a part, in order."""
    plain: bool
    """True where a single part is the value itself."""
    lists: list[int]
    """Indices of parts that are lists."""
    absent: list[int]
    """Number of optional parts left out before each symbol, and at the end."""


class Tables(NamedTuple):
    """LALR(1) tables: in each state the symbols that may follow, each with the next state, or with ~r where rule r
    ends.
    """

    rules: list[GrammarReduction]
    states: list[dict[str, int]]
    first: dict[str, int]
    """Initial state, by start symbol."""
    last: dict[str, int]
    """Final state, by start symbol."""


def grammar() -> str:
    """Text of the grammar `oco.lark`."""
    return (pkgutil.get_data("oco.grammar", "oco.lark") or b"").decode()


@cache
def tables() -> Tables:
    """Shipped tables where they belong to this grammar, else new ones."""
    text = grammar()
    try:
        shipped = json.loads(pkgutil.get_data("oco.grammar", SHIPPED) or b"{}")
    except OSError:
        shipped = {}
    return from_json(shipped) if shipped.get("grammar") == zlib.crc32(text.encode()) else built(text)


def from_json(written: dict[str, Any]) -> Tables:
    """Tables from the values of `to_json`."""
    states = [dict(zip(row[::2], row[1::2])) for row in written["states"]]
    return Tables([GrammarReduction(*rule) for rule in written["rules"]], states, written["first"], written["last"])


def to_json(made: Tables, text: str) -> str:
    """JSON of the tables of the grammar `text`, a rule or state a line."""
    states = ([part for action in state.items() for part in action] for state in made.states)
    lists = {"rules": map(json.dumps, made.rules), "states": map(json.dumps, states)}
    parts = {"grammar": zlib.crc32(text.encode()), "first": made.first, "last": made.last}
    lines = [f'"{name}": {json.dumps(value)}' for name, value in parts.items()]
    lines += [f'"{name}": [\n' + ",\n".join(rows) + "\n]" for name, rows in lists.items()]
    return "{" + ",\n".join(lines) + "}\n"


def built(text: str) -> Tables:
    """Tables of a grammar, made by Lark; states and rules are numbered in the order in which they are met."""
    from lark import Lark
    from lark.parsers.lalr_analysis import Shift

    parser: Any = Lark(
        text, parser="lalr", lexer="basic", start=list(STARTS), keep_all_tokens=True, maybe_placeholders=True
    )
    table = parser.parser.parser._parse_table
    order = [table.start_states[name] for name in STARTS]
    rules: dict[Any, int] = {}
    states: list[dict[str, int]] = []
    for state in order:
        actions = sorted(table.states[state].items())
        order += dict.fromkeys(arg for _, (action, arg) in actions if action is Shift and arg not in order)
        states.append(
            {
                s: order.index(arg) if action is Shift else ~rules.setdefault(arg, len(rules))
                for s, (action, arg) in actions
            }
        )
    ends = ({name: order.index(ends[name]) for name in STARTS} for ends in (table.start_states, table.end_states))
    return Tables([_rule(rule) for rule in rules], states, *ends)


def _rule(rule: Any) -> GrammarReduction:
    """Rule from one of Lark. The rules that it makes for `*` begin with two underscores."""
    names = [symbol.name for symbol in rule.expansion]
    given = rule.options.empty_indices or [False] * len(names)
    absent = [len(gap) for gap in "".join("x" if left_out else " " for left_out in given).split(" ")]
    method = rule.alias or (None if rule.origin.name.startswith("_") else rule.origin.name)
    plain = bool(rule.options.expand1 and not rule.alias)
    return GrammarReduction(
        rule.origin.name, method, len(names), plain, [k for k, n in enumerate(names) if n.startswith("_")], absent
    )
