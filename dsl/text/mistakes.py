"""Messages for statements that cannot be read: the parser gives the token and the possible ones, this file finds the
words.
"""

from __future__ import annotations

from typing import NamedTuple

from oco.dsl.diagnostics import Diagnostic
from oco.dsl.source import Span
from oco.dsl.suggest import nearest
from oco.dsl.text.clauses import attribute
from oco.dsl.text.lines import RELATIONS
from oco.dsl.text.other_languages import LOOP_WORDS, call_hint, integers, loop_word, sign_hint, timing_hint
from oco.dsl.text.spacing import canonical
from oco.dsl.text.tokens import CLOSER, LATER_KINDS, NAME_KINDS, STATEMENT_KINDS, SYMBOLS, Token
from oco.dsl.text.words import CONSTRAINT_FORM, CONTEXTUAL_WORDS, LATER_WORDS, STATEMENT_WORDS

SIGNS = {kind: sign for sign, kind in SYMBOLS.items()}
KEYWORDS = {word.upper(): word for word in CONTEXTUAL_WORDS}
TIMINGS = {"EACH": ("each round",), "ON": ("on average",)}
SUMMED = ("in total", "in 99% of rounds")
OPERATORS = frozenset({"PLUS", "MINUS", "STAR", "SLASH", "AT", "POWER", "RANGE", "DOT"})
OPERAND_ENDS = frozenset({"NUMBER", "TEXT", "RPAR", "RSQB", "RBRACE"})
DATA_WORDS = ("stream", "context")


class ParseFailure(NamedTuple):
    """Position where the parser stopped: `at` is the offending token, None at the end of the statement; `expected` the
    kinds that fit there.
    """

    tokens: list[Token]
    position: int
    expected: frozenset[str]

    @property
    def at(self) -> Token | None:
        """Offending token; None at the end of the statement."""
        return self.tokens[self.position] if self.position < len(self.tokens) else None

    @property
    def before(self) -> Token:
        """Token before the offending one."""
        return self.tokens[max(self.position - 1, 0)]

    @property
    def word(self) -> str:
        """Word of the statement, or "constraint"."""
        first = self.tokens[0]
        return first.text if first.type in STATEMENT_KINDS else "constraint"

    @property
    def span(self) -> Span:
        """Offending token, or the place right after the last one."""
        if self.at is not None:
            return self.at.span
        return Span(self.before.source, self.before.end, self.before.end)

    @property
    def opener(self) -> Token | None:
        """Innermost bracket that is open there."""
        open_: list[Token] = []
        for token in self.tokens[: self.position]:
            if token.type in CLOSER:
                open_.append(token)
            elif token.type in CLOSER.values() and open_:
                open_.pop()
        return open_[-1] if open_ else None

    def operand_before(self) -> bool:
        """True where an operand ends right before it."""
        kinds = NAME_KINDS | OPERAND_ENDS
        return self.position > 0 and self.before.type in kinds and "NUMBER" not in self.expected

    def encountered(self) -> str:
        """Phrase for the offending token."""
        return "the line ends here" if self.at is None else f"found `{self.at.text}`"


def explain(trouble: ParseFailure) -> Diagnostic:
    """Diagnostic of the first rule that applies, special ones first."""
    diagnostic = integers(trouble.tokens, trouble.position)
    for rule in (
        _reserved,
        _wrong_sign,
        _relation,
        _dot,
        _horizon,
        _closed_list,
        _timing,
        _missing_in,
        _bracketed,
        _adjacent,
    ):
        diagnostic = diagnostic or rule(trouble)
    return diagnostic or _plain(trouble)


def later(token: Token) -> Diagnostic:
    """Diagnostic for a word that is reserved for future use."""
    return Diagnostic(
        "OCO111",
        f"`{token.text}` is reserved for {LATER_WORDS[token.text]}",
        token.span,
    )


def _reserved(trouble: ParseFailure) -> Diagnostic | None:
    at = trouble.at
    if at is None:
        return None
    if at.type in LATER_KINDS:
        return later(at)
    if at.type not in STATEMENT_KINDS:
        return None
    if trouble.expected & {"NAME", "ALGORITHM"}:
        hint = f"choose another name, such as `{at.text}_1`"
        return Diagnostic("OCO110", f"`{at.text}` begins a statement, so it cannot be a name", at.span, hint)
    return Diagnostic(
        "OCO128", f"`{at.text}` begins a new statement", at.span, "a statement stands on a line of its own"
    )


def _wrong_sign(trouble: ParseFailure) -> Diagnostic | None:
    at = trouble.at
    if at is None:
        return None
    if at.type in ("LESSTHAN", "MORETHAN"):
        hint = f"write `{at.text}=`"
        if trouble.word not in ("constraint", "assume"):
            hint = "comparisons stand under `subject to` only, as `<=`, `>=` or `==`"
        return Diagnostic("OCO113", f"there is no strict comparison `{at.text}`", at.span, hint)
    if at.type == "CARET":
        return Diagnostic("OCO115", "`^` is not an operator", at.span, "a power is written `**`")
    if at.type == "NE":
        return Diagnostic("OCO113", "there is no comparison `!=`", at.span, "a constraint is `<=`, `>=` or `==`")
    if at.type == "STAR" and trouble.before.type == "POWER":
        return Diagnostic("OCO115", "`***` is not an operator", at.span, "a power is written `**`")
    if at.type == "PLUS" and "NUMBER" in trouble.expected:
        return Diagnostic("OCO100", "there is no plus sign in front of a term", at.span, "leave the `+` out")
    return None


def _relation(trouble: ParseFailure) -> Diagnostic | None:
    """Mistakes in relations: `=` for `==` and the reverse, chains, comparisons in the wrong place, a constraint without
    one.
    """
    at, expected = trouble.at, trouble.expected
    compares = trouble.word == "constraint" and any(t.type in RELATIONS for t in trouble.tokens[: trouble.position])
    if at is not None and at.type == "EQUAL" and trouble.word == "constraint" and "EQ" in expected:
        return Diagnostic("OCO114", "`=` compares nothing", at.span, "an equality is written `==`")
    if at is not None and at.type == "EQ" and "EQUAL" in expected:
        return Diagnostic("OCO114", "`==` gives no value", at.span, "write `=`")
    if at is not None and at.type in RELATIONS | {"EQUAL"} and compares and trouble.opener is None:
        return Diagnostic(
            "OCO112",
            "a constraint compares two sides only",
            at.span,
            "write two constraints, each with a label of its own",
        )
    if (
        at is not None
        and at.type in RELATIONS
        and trouble.opener is None
        and trouble.word == "assume"
        and "LE" in expected
    ):
        return Diagnostic("OCO114", "an assumption is `<=` or `>=`", at.span, "write two assumptions for an equality")
    if at is not None and at.type in RELATIONS and trouble.operand_before():
        where = "a comparison stands between the two sides of a constraint only"
        bounds = "bounds are a domain, `in box(0, 10)`; " if trouble.word == "decision" else ""
        return Diagnostic("OCO112", where, at.span, f"{bounds}constraints follow the line `subject to`")
    if trouble.word == "constraint" and {"LE", "GE", "EQ"} <= expected and (at is None or at.type in NAME_KINDS):
        if at is not None and at.type not in ("EACH", "ON"):
            return None
        return Diagnostic("OCO118", "a constraint compares two sides", trouble.span, "write `<= 0`, `>= 0` or `== 0`")
    return None


def _dot(trouble: ParseFailure) -> Diagnostic | None:
    if trouble.before.type == "DOT" and trouble.at is not None and trouble.expected & {"T", "NAME"}:
        return attribute(trouble.at).diagnostics[0]
    return None


def _horizon(trouble: ParseFailure) -> Diagnostic | None:
    if trouble.word == "horizon" and trouble.expected == {"T"}:
        value = trouble.tokens[-1].text if trouble.tokens[-1].type == "NUMBER" else "5000"
        return Diagnostic("OCO100", "the horizon is called `T`", trouble.span, f"write `horizon T = {value}`")
    at, before = trouble.at, trouble.before
    if trouble.word == "horizon" and at is not None and at.type in NAME_KINDS and before.type == "NUMBER":
        hint = f"it counts rounds, without a unit: `horizon T = {before.text}  # {at.text}`"
        return Diagnostic("OCO100", f"expected the end of the line; {trouble.encountered()}", at.span, hint)
    return None


def _closed_list(trouble: ParseFailure) -> Diagnostic | None:
    """Mistakes in words from a closed list: the measure, the feedback."""
    if trouble.word not in ("measure", "feedback") or not trouble.expected <= KEYWORDS.keys():
        return None
    words = sorted(KEYWORDS[kind] for kind in trouble.expected)
    form = "write `feedback full`, `feedback gradient`, `feedback two_point` or `feedback bandit`"
    if trouble.word == "measure":
        form = "write `measure static regret` or `measure dynamic regret`"
    if trouble.at is not None and (near := nearest(trouble.at.text, words)):
        form = f"did you mean `{near}`?"
    return Diagnostic(
        "OCO123", f"expected {_either([f'`{w}`' for w in words])}; {trouble.encountered()}", trouble.span, form
    )


def _timing(trouble: ParseFailure) -> Diagnostic | None:
    """Mistakes after the right side of a constraint."""
    at = trouble.at
    compares = any(t.type in RELATIONS for t in trouble.tokens[: trouble.position])
    begun = trouble.before.type in ("EACH", "ON", "IN") and trouble.expected <= {"ROUND", "AVERAGE", "NUMBER", "TOTAL"}
    if trouble.word == "constraint" and trouble.expected <= {"OF", "ROUNDS", "PERCENT"}:
        return Diagnostic("OCO117", "a share of rounds ends in `% of rounds`", trouble.span, "write `in 95% of rounds`")
    if trouble.word != "constraint" or not compares or trouble.opener is not None:
        return None
    if not begun and (
        at is None or at.type not in NAME_KINDS or "EACH" not in trouble.expected or _looks_like_operand(trouble)
    ):
        return None
    first = trouble.before if begun else trouble.tokens[trouble.position]
    span = first.span.to(trouble.tokens[-1].span)
    hint = timing_hint(span.text)
    if first.text in ("and", "or"):
        hint = "a constraint is one comparison: write each on a line of its own, with a label"
    return Diagnostic("OCO117", "a constraint ends in `each round`, `on average` or `in total`", span, hint)


TIMING_WORDS = ("always", "hard", "soft", "average", "iid", "round", "mean", "eachround", "everyround", "onaverage")


def _looks_like_operand(trouble: ParseFailure) -> bool:
    """True for `2 x`, which lacks an operator; `0 every round` is a wrong timing instead."""
    position = trouble.position
    following = trouble.tokens[position + 1].type if position + 1 < len(trouble.tokens) else ""
    return following in OPERATORS | set(CLOSER) or (
        following == "" and trouble.tokens[position].text.replace("_", "") not in (*TIMING_WORDS, "total")
    )


def _missing_in(trouble: ParseFailure) -> Diagnostic | None:
    at = trouble.at
    if "IN" not in trouble.expected or at is None or trouble.opener is not None or trouble.word == "constraint":
        return None
    if at.type == "EQUAL":
        if trouble.word in DATA_WORDS:
            hint = f"a {trouble.word} has bounds, `in [lo, hi]`, or a distribution, `~ uniform(0, 1)`; fixed data is a `param`"
        else:
            hint = "a decision lies in a domain: `in box(0, 1)`"
        return Diagnostic("OCO119", f"a {trouble.word} is given no value", at.span, hint)
    if trouble.word in DATA_WORDS and at.type in NAME_KINDS:
        near = nearest(at.text, ["in", "iid"])
        following = trouble.tokens[trouble.position + 1].type if trouble.position + 1 < len(trouble.tokens) else ""
        if following == "LPAR":
            return Diagnostic("OCO119", "expected `~` before the distribution", at.span, f"write `~ {at.text}(...)`")
        hint = (
            f"did you mean `{near}`?"
            if near
            else f"after its name a {trouble.word} has `in [lo, hi]`, `~ distribution(...)` or `iid`"
        )
        return Diagnostic("OCO119", f"expected `in`, `~` or `iid`; {trouble.encountered()}", at.span, hint)
    if at.type == "LSQB" and trouble.word == "param":
        hint = f"write `= {_rest(trouble)}` for its value, `in {_rest(trouble)}` for its range"
        return Diagnostic("OCO119", "expected `=` or `in`", at.span, hint)
    if trouble.word == "state" and at.text == "start":
        hint = "write the range that it is cut to, then `start`: `in [0, 100] start 10`"
        return Diagnostic("OCO119", "a state has a range before `start`", at.span, hint)
    if at.type in NAME_KINDS or at.type == "LSQB":
        what = "the domain" if trouble.word == "decision" else "the bounds"
        return Diagnostic("OCO119", f"expected `in` before {what}", at.span, f"write `in {_rest(trouble)}`")
    return None


def _rest(trouble: ParseFailure) -> str:
    """Remainder of the line, cut where it is long."""
    text = canonical(trouble.span.to(trouble.tokens[-1].span).text)
    return text if len(text) <= 40 else f"{text[:40]}..."


def _bracketed(trouble: ParseFailure) -> Diagnostic | None:
    """Mistakes inside ( ) and [ ]: empty ones, a comma too many or too few, slices."""
    at, opener = trouble.at, trouble.opener
    if at is None or opener is None:
        return None
    if at.type == CLOSER[opener.type] and trouble.before is opener:
        what = {"LSQB": "an array or an index", "LBRACE": "a set of values"}.get(opener.type, "a pair of brackets")
        return Diagnostic("OCO127", f"{what} holds at least one entry", opener.span.to(at.span))
    if at.type in ("COMMA", *CLOSER.values()) and trouble.before.type == "COMMA":
        return Diagnostic(
            "OCO127",
            f"expected an entry after the comma; {trouble.encountered()}",
            at.span,
            "delete the comma, or add an entry",
        )
    if at.type == "COMMA" and trouble.before is opener:
        return Diagnostic("OCO127", "expected an entry before the comma", at.span, "delete the comma, or add an entry")
    if at.type == "COLON" and opener.type == "LSQB":
        hint = (
            "`x[a:b]` are the entries a to b-1"
            if "RSQB" in trouble.expected
            else "a slice stands in an index: `x[a:b]`"
        )
        twice = any(t.type == "COLON" for t in trouble.tokens[trouble.tokens.index(opener) : trouble.position])
        return Diagnostic("OCO122", "a slice has no step" if twice else "there is no slice here", at.span, hint)
    if at.type == "EQUAL" and opener.type == "LPAR":
        return Diagnostic("OCO100", "only a name can be given a value here", at.span, "options look like `mean = 8`")
    if (
        opener.type == "LSQB"
        and at.type == "NUMBER"
        and "COMMA" in trouble.expected
        and trouble.before.type == "NUMBER"
    ):
        return Diagnostic(
            "OCO127",
            f"expected `,` between entries; {trouble.encountered()}",
            at.span,
            "entries are separated by commas",
        )
    return None


def _adjacent(trouble: ParseFailure) -> Diagnostic | None:
    """Mistake of two operands side by side."""
    at = trouble.at
    if at is None or not trouble.operand_before() or "PLUS" not in trouble.expected:
        return None
    if word := next((w for w in (trouble.before, at) if w.text in LOOP_WORDS), None):
        return loop_word(trouble.word, word)
    if at.type == "LPAR":
        hint = call_hint(trouble.tokens, trouble.position)
        return Diagnostic("OCO100", "only a function's name can stand before `(`", at.span, hint)
    if at.type in NAME_KINDS or at.type in ("NUMBER", "TEXT", "LSQB"):
        hint = ""
        if at.type != "TEXT":
            both = trouble.before.type in NAME_KINDS | {"NUMBER"} and at.type != "LSQB"
            hint = "an operator may be missing" + (f": `{trouble.before.text} * {at.text}`" if both else "")
        return Diagnostic("OCO100", f"expected {expected_words(trouble)}; {trouble.encountered()}", at.span, hint)
    return None


def _plain(trouble: ParseFailure) -> Diagnostic:
    message = f"expected {expected_words(trouble)}; {trouble.encountered()}"
    return Diagnostic("OCO100", message, trouble.span, _way_out(trouble))


def _way_out(trouble: ParseFailure) -> str:
    """Hint: the intended word, a sign from another language, or the form of the statement."""
    at, opener = trouble.at, trouble.opener
    if at is not None and (near := nearest(at.text, [KEYWORDS[k] for k in trouble.expected if k in KEYWORDS])):
        return f"did you mean `{near}`?"
    if sign := sign_hint(trouble.tokens, trouble.position, trouble.expected):
        return sign
    if (
        at is not None
        and at.type == "LPAR"
        and trouble.position == 2
        and trouble.word in ("param", "decision", *DATA_WORDS)
    ):
        length = trouble.tokens[3].text if len(trouble.tokens) > 3 else "3"
        return f"a shape stands in [ ]: `{trouble.before.text}[{length}]`"
    if at is not None and at.type == "COMMA" and opener is None and "IID" in trouble.expected:
        return "bounds stand in [ ]: `in [lo, hi]`"
    if opener is not None or "NUMBER" in trouble.expected:
        return ""
    if trouble.word == "subject" and trouble.position == 2:
        colon = "leave the colon out; " if at is not None and at.type == "COLON" else ""
        return f"{colon}constraints stand below `subject to`, one a line"
    return f"the form is `{STATEMENT_WORDS.get(trouble.word, CONSTRAINT_FORM)}`"


def expected_words(trouble: ParseFailure) -> str:
    """Possible continuations in plain words: never a terminal's or a rule's name."""
    expected = trouble.expected
    if {"NUMBER", "NAME"} <= expected:
        return "an expression"
    parts = ["an algorithm's name"] if "ALGORITHM" in expected else []
    if "NAME" in expected:
        parts.append("a name" if trouble.before.type != "ASSUME" else "the name of a fact")
    parts += ["an integer"] if "NUMBER" in expected else []
    timings = TIMINGS | ({"IN": SUMMED} if trouble.word == "constraint" else {})
    parts += sorted(f"`{w}`" for k in expected if k in KEYWORDS for w in timings.get(k, (KEYWORDS[k],)))
    operators = len(expected & OPERATORS) > 2
    hidden = OPERATORS | {"LPAR", "LSQB", "LBRACE"} if operators or parts else frozenset()
    parts += [f"`{SIGNS[k]}`" for k in SIGNS if k in expected - hidden]
    if operators and not parts:
        parts.append("an operator")
    if "$END" in expected:
        parts.append("the end of the line")
    return _either(parts)


def _either(parts: list[str]) -> str:
    return f"{', '.join(parts[:-1])} or {parts[-1]}" if len(parts) > 1 else "".join(parts)
