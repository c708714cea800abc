"""Expressions of the model into equations of the step IR, by the `lower` column of the atoms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oco.compiler.domains.combination import Combination
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.compiler.lowering.alike_terms import AlikeTerms
from oco.dsl.atoms import ATOMS, form_of, forms
from oco.dsl.atoms.index import lower_index, slice_ends
from oco.dsl.diagnostics import InternalError, fail
from oco.dsl.dims import known
from oco.dsl.expressions import Array, Call, Constant, Expr, Index, Kind, Name, Slice, names, walk

ROUND = "t"


class Lowering:
    """Lowers several expressions over one environment: what they share is traced once, and alike terms of sums together."""

    def __init__(self, tracer: Tracer, env: Mapping[str, Value | Combination]) -> None:
        self.tracer = tracer
        self.env = env
        self.values: dict[int, Any] = {}
        self.kept: list[Expr] = []  # an id names a node only while the node lives
        self.alike = AlikeTerms(tracer, env, self.values, self._of)

    def __call__(self, expr: Expr) -> Value:
        self.kept.append(expr)
        return self.tracer.lift(self._of(expr))

    def _of(self, expr: Expr) -> Any:
        self.alike.work_out(expr)
        for node in walk(expr, self.values):
            self.values[id(node)] = self._value(node)
        return self.values[id(expr)]

    def _value(self, node: Expr) -> Any:
        match node:
            case Constant(value=value, shape=shape):
                # Numbers stay Python's, so that they print as literals.
                return value.array.item() if shape == () else self.tracer.constant(value.array, *origin(node))
            case Name(name=name):
                if name not in self.env:
                    message = f"the algorithm reads the constraints before the first round, and they depend on `{name}`, revealed later"
                    raise fail("OCO705", message, node.span)
                return self.env[name]
            case Slice():
                return None  # its ends are read where the axis is known
            case Call(atom=atom, args=args):
                return ATOMS[atom].lower(self.tracer, node, *self._arguments(node, args))
            case Array(items=items):
                return self.tracer.stack(*(self.values[id(i)] for i in items))
            case Index(base=base, items=items):
                sizes = known(base.shape)
                places = [self._place(item, size) for item, size in zip(items, sizes)]
                if isinstance(self.values[id(base)], Combination):
                    return self.values[id(base)].gathered(*map(self.tracer.lift, places))
                return lower_index(self.tracer, self.values[id(base)], known(node.shape), sizes, places)
        raise InternalError(f"no equations for a {type(node).__name__}")

    def _arguments(self, node: Call, args: tuple[Expr, ...]) -> list[Any]:
        if isinstance(form_of(node), forms.Scattered):
            items = [self._place(item, size) for item, size in zip(args[1:], known(node.shape))]
            return [self.values[id(args[0])], *items]
        return [self.values[id(a)] for a in args]

    def _place(self, item: Expr, size: int) -> Any:
        if isinstance(item, Slice):
            return known(slice_ends(item, size))
        place = self.values[id(item)]
        if names(item, Kind.ROUND):  # a learner that goes on after the horizon stays at the last entry
            return self.tracer.minimum(self.tracer.to_int(place), size - 1)
        return place


_WORDS = {"/": "over", "*": "times", "+": "plus", "-": "minus", "@": "times"}
_LONGEST_NAME = 24  # characters of a name in emitted text


def origin(node: Expr) -> tuple[str, str]:
    """A name for a constant and where it came from: what the model says there (`level / 3` is called `level_over_3`)."""
    message = " ".join(node.span.text.split()) if node.span is not None else ""
    name = "_".join(_WORDS.get(word, word) for word in message.split(" "))
    return (name if len(name) <= _LONGEST_NAME and name.isidentifier() else ""), (
        f"`{message}` in the model" if message else ""
    )
