"""Models and expressions as LaTeX, for notebooks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from oco.dsl.atoms import ATOMS
from oco.dsl.chains import Chains, Signed
from oco.dsl.expressions import Array, Call, Constant, Expr, File, Index, Kind, Name, Slice, walk
from oco.dsl.previous import decision_of
from oco.dsl.statements import Constraint, Decision, Feedback, Measure, Prediction, Relation, Statements, Stream
from oco.dsl.text.printer import ATOMIC, print_distribution, print_expr

GREEK = frozenset(
    {"alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu"}
    | {"nu", "xi", "pi", "rho", "sigma", "tau", "phi", "chi", "psi", "omega"}
)
RELATIONS = {Relation.LE: r"\le", Relation.GE: r"\ge", Relation.EQ: "="}
LONGEST = 6  # entries of a constant array that are written out

Part = tuple[str, int]
"""LaTeX, and the precedence of its outermost operator."""


def expression_latex(expr: Expr) -> str:
    """LaTeX of the expression; streams carry the round as an index."""
    done: dict[int, Part] = {}
    chains = Chains()
    for node in walk(expr):
        terms = chains.terms(node)
        done[id(node)] = _node(node, done) if terms is None else _sum(terms, done)
    return done[id(expr)][0]


def _node(node: Expr, done: dict[int, Part]) -> Part:
    match node:
        case Constant(value=value):
            return _constant(value.array)
        case Name(name=name) if x := decision_of(name):
            return _name(x, "t-1"), ATOMIC
        case Name(name=name, kind=kind):
            return _name(name, "t" if kind is Kind.STREAM else ""), ATOMIC
        case Call():
            return _call(node, [done[id(a)] for a in node.args])
        case Slice(start=start, stop=stop):
            return ":".join("" if end is None else done[id(end)][0] for end in (start, stop)), ATOMIC
        case Index(base=base, items=items):
            return rf"{_within(done[id(base)], ATOMIC)}\left[{', '.join(done[id(i)][0] for i in items)}\right]", ATOMIC
        case Array(items=items):
            return rf"\left({', '.join(done[id(i)][0] for i in items)}\right)", ATOMIC
        case File(path=path):
            return rf"\text{{{escaped(path)}}}", ATOMIC
    return rf"\text{{{escaped(print_expr(node))}}}", ATOMIC


def _sum(terms: list[Signed], done: Mapping[int, Part]) -> Part:
    own = ATOMS["add"].precedence
    first, *rest = ((minus, done[id(term)]) for minus, term in terms)
    return "".join([_within(first[1], own), *(f" {'-' if m else '+'} {_within(t, own + 1)}" for m, t in rest)]), own


def _within(part: Part, least: int) -> str:
    text, precedence = part
    return rf"\left({text}\right)" if precedence < least else text


def _call(node: Call, args: list[Part]) -> Part:
    row = ATOMS[node.atom]
    own = row.precedence
    if not row.operator:
        texts = [text for text, _ in args]
        if len(args) == 1 and row.latex and not node.options:
            return row.latex.replace("#1", texts[0]), ATOMIC
        options = [rf"\text{{{k} = {v}}}" for k, v in node.options]
        return rf"\operatorname{{{escaped(node.atom.strip('_'))}}}\left({', '.join(texts + options)}\right)", ATOMIC
    if len(args) == 1:
        return (f"{_within(args[0], own)}^\\top" if row.operator == ".T" else f"-{_within(args[0], own)}"), own
    left, right = args
    if row.operator == "/":
        return rf"\frac{{{left[0]}}}{{{right[0]}}}", ATOMIC
    if row.operator == "**":
        return f"{_within(left, own + 1)}^{{{right[0]}}}", own
    if row.operator == "..":
        return rf"{left[0]} \ldots {right[0]}", own
    sign = {"*": _times(node), "@": _product(node), "%": r" \bmod "}.get(row.operator, f" {row.operator} ")
    return f"{_within(left, own)}{sign}{_within(right, own + 1)}", own


def _times(node: Call) -> str:
    """LaTeX of an entrywise product."""
    if all(a.shape for a in node.args):
        return r" \odot "
    return r" \cdot " if isinstance(node.args[1], Constant) else r"\, "


def _product(node: Call) -> str:
    """LaTeX of a matrix product: two vectors have an inner product; everything else stands side by side."""
    return r"^\top " if len(node.args[0].shape) == 1 else r"\, "


def _constant(array: np.ndarray) -> Part:
    if array.shape == ():
        text = _number(array.item())
        return text, ATOMS["minus"].precedence if text.startswith("-") else ATOMIC
    if array.size > LONGEST or array.ndim > 1:
        return rf"\text{{array of {' by '.join(map(str, array.shape))}}}", ATOMIC
    return rf"\left({', '.join(_number(v) for v in array.tolist())}\right)", ATOMIC


def _number(value: float | int) -> str:
    mantissa, mark, exponent = f"{value:.6g}".partition("e")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if mark else mantissa


def _name(name: str, round_: str = "") -> str:
    """LaTeX of a name: `lam_2` as a letter with an index; a word upright; the round comes last in the index."""
    head, _, rest = name.partition("_")
    letter = f"\\{head}" if head in GREEK else head if len(head) == 1 else rf"\mathrm{{{head}}}"
    index = ",".join(part for part in ((rf"\mathrm{{{escaped(rest)}}}" if rest else ""), round_) if part)
    return f"{letter}_{{{index}}}" if index else letter


def escaped(text: str) -> str:
    """Plain text escaped for LaTeX."""
    return re.sub(r"([&%$#_{}])", r"\\\1", text.replace("\\", "/")).replace("^", r"\hat{}").replace("~", r"\sim{}")


def model_latex(model: Statements) -> str:
    """LaTeX display of the model: decisions, loss, constraints, and knowledge of the data."""
    rounds = "unknown" if model.horizon.rounds is None else expression_latex(model.horizon.rounds)
    gain = model.gain
    worst = "" if model.objective is None else r"\min" if gain is None else r"\max"
    decided = ", ".join(_decision(d) for d in model.decisions)
    loss = "" if model.objective is None else expression_latex(model.objective if gain is None else gain)
    lines = [rf"{worst}_{{{decided}}} \quad & {loss} && t = 1, \ldots, {rounds if rounds != 'unknown' else 'T'}"]
    lines += _group("subject to", map(_constraint, model.constraints))
    lines += _group("where", (_let(n, v) for n, v in _lets(model)))
    lines += _group("state", (_state(s) for s in model.streams if s.following is not None))
    for word, known in (("known", True), ("data", False)):
        lines += _group(word, (_stream(s) for s in model.streams if s.known is known and s.following is None))
    lines += _group("predicted", map(_prediction, model.predictions))
    lines += _group("feedback", _feedback(model))
    lines += _group("measured by", _measure(model))
    return "$$\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}$$"


def _group(word: str, lines: Iterable[str]) -> Iterator[str]:
    """Lines of the display, the first of them behind a word."""
    for number, line in enumerate(lines):
        yield (rf"\text{{{word}}} \quad & " if number == 0 else "& ") + line


def _measure(model: Statements) -> Iterator[str]:
    if model.measure is not Measure.STATIC:
        yield rf"\text{{{model.measure} regret}}"


def _feedback(model: Statements) -> Iterator[str]:
    """LaTeX of the feedback, where it is not that of all data at once."""
    late = "" if model.delay is None else rf"\text{{, }} {expression_latex(model.delay)} \text{{ rounds later}}"
    if late or model.feedback is not Feedback.FULL:
        yield rf"\text{{{escaped(model.feedback)}}}{late}"


def _prediction(prediction: Prediction) -> str:
    return rf"\hat{{{_name(prediction.stream)}}}_{{t}} = {expression_latex(prediction.value)}"


def _lets(model: Statements) -> list[tuple[str, Expr]]:
    return [(let.name, let.value) for let in model.lets]


def _let(name: str, value: Expr) -> str:
    return f"{_name(name)} = {expression_latex(value)}"


def _decision(decision: Decision) -> str:
    args = ", ".join(expression_latex(a) for a in decision.domain.args)
    kind = rf"\text{{{escaped(decision.domain.kind)}}}"
    domain = rf"{kind}({args})" if args else kind
    power = r" \times ".join(expression_latex(d) for d in decision.dims)
    set_ = rf"{_name(decision.name)} \in {domain}" + (f"^{{{power}}}" if power else "")
    return ", ".join(
        [
            set_,
            *(
                f"{expression_latex(c.left)} {RELATIONS[c.relation]} {expression_latex(c.right)}"
                for c in decision.domain.cuts
            ),
        ]
    )


def _constraint(c: Constraint) -> str:
    relation = f"{expression_latex(c.left)} {RELATIONS[c.relation]} {expression_latex(c.right)}"
    penalty = "" if c.penalty is None else rf"\text{{, penalty }} {expression_latex(c.penalty)}"
    return rf"{relation} && \text{{{escaped(c.label)}, {escaped(c.when)}}}{penalty}"


def _state(state: Stream) -> str:
    """LaTeX of a state: what a round leaves to the next, and what the first one has."""
    following = "" if state.following is None else expression_latex(state.following)
    first = "" if state.first is None else expression_latex(state.first)
    ends = ", ".join(expression_latex(b) for b in state.bounds or ())
    return rf"{_name(state.name, 't+1')} = {following} \in [{ends}], \quad {_name(state.name, '1')} = {first}"


def _stream(stream: Stream) -> str:
    name = _name(stream.name, "t")
    distribution = (
        "" if stream.distribution is None else rf" \sim \text{{{escaped(print_distribution(stream.distribution))}}}"
    )
    bounds = "" if stream.bounds is None else rf" \in [{', '.join(expression_latex(b) for b in stream.bounds)}]"
    if stream.values:
        bounds = rf" \in \{{{', '.join(map(_number, stream.values))}\}}"
    power = r" \times ".join(expression_latex(d) for d in stream.dims)
    iid = r"\ \text{iid}" if stream.iid else ""
    return f"{name}{distribution}{bounds}{f'^{{{power}}}' if power and bounds else ''}{iid}"
