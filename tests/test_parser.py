"""The parser: trees against Python's own parser and against trees written out, and every mistake with its place and its way out."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oco.dsl.diagnostics import Diagnostic, OcoError
from oco.dsl.source import Source, Span
from oco.dsl.text import syntax
from oco.dsl.text.parser import formula_text, parse_file, parse_formula
from oco.dsl.text.words import CONTEXTUAL_WORDS, STATEMENT_WORDS

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.oco"))
AT = Span(Source("", ""), 0, 0)


def read(text: str) -> tuple[tuple[syntax.Statement, ...], list[Diagnostic]]:
    file, findings = parse_file(Source("m.oco", text))
    return file.statements, findings


def statement(text: str) -> syntax.Statement:
    statements, findings = read(text)
    assert not findings, findings[0].render()
    assert len(statements) == 1
    return statements[0]


def expression(text: str) -> syntax.Expression:
    found = statement(f"minimize {text}")
    assert isinstance(found, syntax.MinimizeStatement)
    return found.objective


def name(text: str) -> syntax.Identifier:
    return syntax.Identifier(text, span=AT)


def number(value: float | int) -> syntax.Number:
    return syntax.Number(value, span=AT)


def call(atom: str, *args: syntax.Expression, **options: syntax.Expression) -> syntax.Call:
    return syntax.Call(atom, args, tuple(options.items()), span=AT)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_examples_parse(path: Path) -> None:
    statements, findings = read(path.read_text())
    assert findings == []
    assert not any(isinstance(s, syntax.UnreadableStatement) for s in statements)


# Expressions, against Python's parser, which has the same operators, precedence and numbers.

ATOMS = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.MatMult: "matmul", ast.Pow: "pow"}


def from_python(node: ast.AST) -> object:
    """What Python reads, in plain tuples."""
    match node:
        case ast.BinOp(left, op, right):
            return (ATOMS[type(op)], from_python(left), from_python(right))
        case ast.UnaryOp(ast.USub(), ast.Constant(value)) if not isinstance(value, complex):
            return ("number", type(value).__name__, repr(-value))
        case ast.UnaryOp(ast.USub(), operand):
            inner = from_python(operand)
            if isinstance(inner, tuple) and inner[0] == "number":
                return ("number", inner[1], repr(-ast.literal_eval(inner[2])))
            return ("minus", inner)
        case ast.Constant(value):
            return ("number", type(value).__name__, repr(value))
        case ast.Name(identifier):
            return identifier
        case ast.Attribute(value, "T"):
            return ("transpose", from_python(value))
        case ast.Call(ast.Name(function), args, keywords):
            return (function, *map(from_python, args), *((k.arg, from_python(k.value)) for k in keywords))
        case ast.List(items):
            return ("array", *map(from_python, items))
        case ast.Subscript(base, ast.Tuple(items)):
            return ("index", from_python(base), *map(from_python, items))
        case ast.Subscript(base, item):
            return ("index", from_python(base), from_python(item))
        case ast.Slice(lower, upper, None):
            return ("slice", *(None if e is None else from_python(e) for e in (lower, upper)))
    raise AssertionError(ast.dump(node))


def from_ours(node: syntax.Expression | syntax.Slice | None) -> object:
    match node:
        case None:
            return None
        case syntax.Number(value):
            return ("number", type(value).__name__, repr(value))
        case syntax.Identifier(identifier):
            return identifier
        case syntax.Call(function, args, options):
            return (function, *map(from_ours, args), *((key, from_ours(value)) for key, value in options))
        case syntax.ArrayLiteral(items):
            return ("array", *map(from_ours, items))
        case syntax.Subscript(base, items):
            return ("index", from_ours(base), *map(from_ours, items))
        case syntax.Slice(start, stop):
            return ("slice", from_ours(start), from_ours(stop))
    raise AssertionError(node)


names = st.sampled_from(["x", "y", "in_", "mean", "T", "each", "Q_2"])
literals = st.one_of(
    st.integers(0, 2**63 - 1).map(str),
    st.floats(0, allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(["0", "1.", ".5", "2e3", "1E-3", "0.0"]),
)


def _grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from([" + ", " - ", "*", " / ", " @ ", "**", "-", "+"])
    items = st.one_of(inner, st.sampled_from([":", "1:", ":2", "x:y + 1"]))
    return st.one_of(
        st.tuples(inner, operators, inner).map("".join),
        st.tuples(inner, operators, inner, operators, inner).map("".join),
        inner.map(lambda e: f"-{e}"),
        inner.map(lambda e: f"(x + {e})"),
        inner.map(lambda e: f"(x * {e}).T"),
        st.lists(inner, min_size=1, max_size=3).map(lambda es: f"[{', '.join(es)}]"),
        st.lists(inner, min_size=0, max_size=3).map(lambda es: f"f({', '.join(es)})"),
        inner.map(lambda e: f"sum(x, axis = {e})"),
        st.lists(items, min_size=1, max_size=3).map(lambda es: f"(y + x)[{', '.join(es)}]"),
    )


@settings(max_examples=2 * settings().max_examples)
@given(st.recursive(st.one_of(names, literals), _grow, max_leaves=12))
def test_expressions_are_read_as_python_reads_them(text: str) -> None:
    assert from_ours(expression(text)) == from_python(ast.parse(text, mode="eval").body)


def test_ranges_bind_loosest_and_are_never_floats() -> None:
    assert expression("0..4") == syntax.Call("range", (number(0), number(4)), operator="..", span=AT)
    assert from_ours(expression("0..m-1")) == ("range", from_ours(number(0)), ("sub", "m", from_ours(number(1))))
    assert from_ours(expression("1+2..-k")) == ("range", from_ours(expression("1 + 2")), ("minus", "k"))
    assert from_ours(expression("1.5..2.5")) == ("range", from_ours(number(1.5)), from_ours(number(2.5)))


def test_a_minus_belongs_to_the_number_behind_it_unless_brackets_part_them() -> None:
    assert expression("-5") == number(-5)
    assert expression("-(5)") == syntax.Call("minus", (number(5),), operator="-", span=AT)
    assert from_ours(expression("-2 ** 2")) == ("minus", ("pow", from_ours(number(2)), from_ours(number(2))))


def test_spans_hold_what_was_written() -> None:
    text = "minimize a + (b - 2) * f(x, axis = 0)[1:2].T"
    found = read(text)[0][0]
    assert isinstance(found, syntax.MinimizeStatement)
    assert found.span.text == text
    add = found.objective
    assert isinstance(add, syntax.Call) and isinstance(add.args[1], syntax.Call)
    group, transposed = add.args[1].args
    assert add.args[1].span.text == "(b - 2) * f(x, axis = 0)[1:2].T"
    assert group.span.text == "(b - 2)"
    assert transposed.span.text == "f(x, axis = 0)[1:2].T"
    assert (transposed.span.line, transposed.span.column) == (1, 24)


# Statements.

FORMS: list[tuple[str, syntax.Statement]] = [
    ("model a", syntax.ModelStatement(name("a"), span=AT)),
    ("horizon T = 24 * d", syntax.HorizonStatement(expression("24 * d"), span=AT)),
    ("horizon T unknown", syntax.HorizonStatement(None, span=AT)),
    ("param n", syntax.ParamStatement(name("n"), (), None, False, None, span=AT)),
    (
        "param z[5, n] in 0..k-1 = repeat(0..4, 10)",
        syntax.ParamStatement(
            name("z"),
            (number(5), name("n")),
            (number(0), expression("k-1")),
            True,
            expression("repeat(0..4, 10)"),
            span=AT,
        ),
    ),
    (
        'param g in [lo, [1, 2]] = file("a b.csv")',
        syntax.ParamStatement(
            name("g"),
            (),
            (name("lo"), expression("[1, 2]")),
            False,
            call("file", syntax.QuotedString("a b.csv", span=AT)),
            span=AT,
        ),
    ),
    ("decision x[3] in simplex", syntax.DecisionStatement(name("x"), (number(3),), call("simplex"), span=AT)),
    (
        "decision x in box(lo = -1, hi = 2)",
        syntax.DecisionStatement(name("x"), (), call("box", lo=number(-1), hi=number(2)), span=AT),
    ),
    ("stream s", syntax.StreamStatement(name("s"), (), None, False, False, None, None, span=AT)),
    (
        "stream s[2] in [0, 1] iid mean = 0.5",
        syntax.StreamStatement(
            name("s"), (number(2),), (number(0), number(1)), False, True, number(0.5), None, span=AT
        ),
    ),
    (
        "stream s iid in 0..9",
        syntax.StreamStatement(name("s"), (), (number(0), number(9)), True, True, None, None, span=AT),
    ),
    (
        "stream s in [0, 9] ~ pareto(3, mean = 8)",
        syntax.StreamStatement(
            name("s"),
            (),
            (number(0), number(9)),
            False,
            False,
            None,
            call("pareto", number(3), mean=number(8)),
            span=AT,
        ),
    ),
    ("let y = x", syntax.LetStatement(name("y"), name("x"), span=AT)),
    ("minimize x", syntax.MinimizeStatement(name("x"), span=AT)),
    ("subject to", syntax.SubjectToStatement(span=AT)),
    ("cap: x <= 1", syntax.ConstraintStatement(name("cap"), name("x"), "<=", number(1), "", span=AT)),
    (
        "cap: x >= y  each round",
        syntax.ConstraintStatement(name("cap"), name("x"), ">=", name("y"), "each round", span=AT),
    ),
    (
        "cap: x == y  on average",
        syntax.ConstraintStatement(name("cap"), name("x"), "==", name("y"), "on average", span=AT),
    ),
    ("measure dynamic regret", syntax.MeasureStatement("dynamic", span=AT)),
    ("feedback bandit", syntax.FeedbackStatement("bandit", span=AT)),
    ("assume feasible.common", syntax.AssumeStatement("feasible.common", None, None, span=AT)),
    ("assume slater.margin >= 0.5", syntax.AssumeStatement("slater.margin", ">=", number(0.5), span=AT)),
    (
        "assume constraints.mean[0,  1] . bound <= 3",
        syntax.AssumeStatement("constraints.mean[0, 1].bound", "<=", number(3), span=AT),
    ),
    ("using mirror-descent", syntax.UsingStatement("mirror-descent", (), span=AT)),
    ("using with V=2*sqrt( T )", syntax.UsingStatement(None, (("V", "2 * sqrt(T)"),), span=AT)),
    (
        "using coldq with epsilon = max(loss.bound, 1), alpha = -t ** 0.5",
        syntax.UsingStatement("coldq", (("epsilon", "max(loss.bound, 1)"), ("alpha", "-t ** 0.5")), span=AT),
    ),
]


@pytest.mark.parametrize(("text", "tree"), FORMS, ids=[text for text, _ in FORMS])
def test_statements(text: str, tree: syntax.Statement) -> None:
    assert statement(text) == tree
    assert statement(f"\t{text}  # a comment").span.text == text


@pytest.mark.parametrize("word", CONTEXTUAL_WORDS)
def test_words_are_names_wherever_they_are_not_expected(word: str) -> None:
    assert expression(f"{word}[{word}] * {word}({word}, {word} = {word})") is not None
    for text in (
        f"model {word}",
        f"let {word} = {word} + 1",
        f"param {word}[{word}] in [{word}, {word}] = {word}",
        f"stream {word}[{word}] ~ {word}({word}) in {word}..{word}",
        f"stream {word} iid mean = {word} in [0, {word}]",
        f"decision {word} in {word}",
        f"{word}: {word} <= {word} on average",
        f"assume {word}.{word} <= {word}",
        f"using {word} with {word} = {word}" if word != "with" else "using with with = with",
    ):
        statement(text)


@pytest.mark.parametrize("word", STATEMENT_WORDS)
def test_statement_words_are_no_names(word: str) -> None:
    for text in (f"let {word} = 1", f"stream {word} in [0, 1]", f"minimize 2 * {word}", f"minimize f({word} = 1)"):
        assert [d.code for d in read(text)[1]] == ["OCO110"]
    findings = read(f"subject to\n    {word}: x <= 1")[1]
    assert [(d.code, d.span and d.span.text) for d in findings] == [("OCO110", word)]


def test_lines_go_on_inside_brackets() -> None:
    statements, findings = read("param A[2, 2] = [[1, 2], # first\n\n   [3,\r\n 4]]\nlet y = (1 +\n2)\n")
    assert findings == []
    assert [s.span.line for s in statements] == [1, 5]


def test_line_ends_of_windows_and_a_byte_order_mark_are_no_matter() -> None:
    text = "model a\nsubject to\n    cap: x <= 1\n"
    assert read("\ufeff" + text.replace("\n", "\r\n")) == read(text)


# Formulas.


def test_formulas_know_the_keys_of_facts() -> None:
    tree = parse_formula("2 * constraints.cap[0].lipschitz.l2 / sqrt(t)")
    assert from_ours(tree) == (
        "div",
        ("mul", from_ours(number(2)), "constraints.cap[0].lipschitz.l2"),
        ("sqrt", "t"),
    )
    assert (
        formula_text("2*constraints.cap[0].lipschitz.l2/sqrt( t )") == "2 * constraints.cap[0].lipschitz.l2 / sqrt(t)"
    )


@pytest.mark.parametrize(
    "text", ["", "   ", "2 *", "__import__('os')", "x; y", "a = 1", "(t", "f(x).bound", "# nothing"]
)
def test_what_is_no_formula_is_refused(text: str) -> None:
    with pytest.raises(OcoError) as caught:
        parse_formula(text)
    assert caught.value.code.startswith("OCO1")
