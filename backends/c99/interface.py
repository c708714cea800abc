"""Public interface of an emitted learner in C: its struct and the prototypes of its functions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from oco.backends.c99.arithmetic import EXACT, Arithmetic
from oco.backends.c99.changes import Changes, changes_of
from oco.backends.c99.vectors import c_type, without_lanes
from oco.backends.c99.writer import LARGEST_ON_STACK, Signature, in_rows
from oco.compiler.evidence.watched_streams import ALARM
from oco.compiler.ir.names import identifier
from oco.compiler.ir.program import Field, Program, Type, Var
from oco.dsl.records import dataclass

PUBLIC = ("init", "prepare", "decide", "check", "measure", "step", "observe", "run", "certificate", "alarm")
"""Names that follow the module's prefix; a program's functions and constants keep away from them."""
_OWN = "constraints decisions equalities f g h i loss place record rounds self t work wrong"
_WORDS = frozenset(_OWN.split())
"""Local names in the bodies of the public functions."""
_LONGEST = 120  # characters of a line of the header


def size(made: Type) -> int:
    """Number of entries of an array."""
    return math.prod(without_lanes(made.shape))


@dataclass(frozen=True)
class Named:
    """Value with its name in C."""

    name: str
    field: Field

    @property
    def type(self) -> Type:
        """Type of the field."""
        return self.field.type

    @property
    def size(self) -> int:
        """Number of entries."""
        return size(self.field.type)

    @property
    def c_type(self) -> str:
        """C type of an entry."""
        return c_type(self.field.type)

    @property
    def parameter(self) -> str:
        """Parameter of a function: an array by its address, a number by its value."""
        return f"const {self.c_type} *{self.name}" if self.type.shape else f"{self.c_type} {self.name}"

    def declared(self, name: str) -> str:
        """Declaration as a variable of this name."""
        return f"{self.c_type} {name}[{max(self.size, 1)}]" if self.type.shape else f"{self.c_type} {name}"


@dataclass(frozen=True)
class Interface:
    """Names and types of inputs, outputs and state. `signatures` are those of the rule's functions; `arithmetic`: that of the source."""

    name: str
    program: Program
    signatures: Mapping[str, Signature]
    arithmetic: Arithmetic = EXACT

    @property
    def number_bytes(self) -> int:
        """Bytes of a number."""
        return 4 if self.arithmetic.single else 8

    @cached_property
    def state(self) -> list[Named]:
        """Members of the struct."""
        return [Named(p.name, f) for p, f in zip(self.program.update.body.params, self.program.state)]

    @cached_property
    def updated(self) -> Changes:
        """Changes of the state by a round."""
        return changes_of(self.program, self.program.update)

    @cached_property
    def prepared(self) -> Changes | None:
        """Changes of the state by the context of a round."""
        return None if self.program.prepare is None else changes_of(self.program, self.program.prepare)

    @property
    def known(self) -> list[Named]:
        """Inputs that are known before the decision."""
        return [n for n in self.inputs if n.field.name in self.program.context]

    @property
    def undecided(self) -> int:
        """Return code of an observed round that was not decided: behind those of the state."""
        return -len(self.state) - 1

    @cached_property
    def decided(self) -> str:
        """Member of the struct with the last round that was decided."""
        return identifier("decided", {n.name for n in self.state})

    def members(self) -> list[tuple[str, Type]]:
        """Names and types of the state in the struct."""
        return [(n.name, n.type) for n in self.state]

    @cached_property
    def decisions(self) -> list[Named]:
        """Decisions in the program's order."""
        return self._named(self.program.decision, set())

    @cached_property
    def held(self) -> dict[str, Named]:
        """Decisions that `decide` copies out of the state as they are, by name, with their fields."""
        body = self.program.decide.body
        fields = {p.name: n for p, n in zip(body.params, self.state)}
        own = zip(self.decisions, body.results)
        return {d.name: fields[r.name] for d, r in own if isinstance(r, Var) and r.name in fields}

    @cached_property
    def proof(self) -> list[Named]:
        """Results of the certificate; none where the state keeps no sums."""
        f = self.program.certificate
        if f is None:
            return []
        return [Named(name, Field(name, r.type)) for name, r in zip(f.result_names, f.body.results, strict=True)]

    @cached_property
    def inputs(self) -> list[Named]:
        """Data that a round reveals; what rounds leave to the next is in the struct."""
        return self._named(self.program.revealed, {d.name for d in self.decisions})

    def data(self, inputs: Sequence[str]) -> list[str]:
        """Arguments of the rule for all data of a round: these inputs in their order, and members of the struct."""
        return self.program.data({n.field.name: f"self->{n.name}" for n in self.state}, inputs)

    @cached_property
    def draws(self) -> list[Named]:
        """Algorithm's own random arrays of a round."""
        return self._named(self.program.draws, {d.name for d in (*self.decisions, *self.inputs)})

    def _named(self, fields: Sequence[Field], taken: set[str]) -> list[Named]:
        own = {f"{n.name}_new" for n in self.state} | {f"{d}_{state}" for d in taken for state in ("now", "kept")}
        used, result = _WORDS | taken | own, list[Named]()
        for f in fields:
            result.append(Named(identifier(f.name, used), f))
            used = used | {result[-1].name}
        return result

    @cached_property
    def rule_work(self) -> int:
        """Work space of the rule for large intermediate values, in doubles."""
        return max(s.work for s in self.signatures.values())

    @cached_property
    def work(self) -> int:
        """Total work space in doubles: the rule's, then new values of large state, then a large decision."""
        moved = [c.changes for c in (self.updated, self.prepared) if c is not None]
        most = max(sum(n for c in part if (n := size(c.result.type)) > LARGEST_ON_STACK) for part in moved)
        return self.rule_work + most + sum(n.size for n in self.decisions if n.size > LARGEST_ON_STACK)

    @property
    def outputs(self) -> tuple[int, int]:
        """Numbers of inequality and equality values."""
        if self.program.measure is None:
            return 0, 0
        _, g, h = self.program.measure.body.results
        return size(g.type), size(h.type)

    # prototypes
    def head(self, function: str, returns: str, parameters: Sequence[str]) -> str:
        """Head of a function; a long one has its parameters on lines of their own."""
        line = f"{returns} {self.name}_{function}({', '.join(parameters) or 'void'})"
        if len(line) <= _LONGEST:
            return line
        return "\n".join([f"{returns} {self.name}_{function}(", *in_rows(parameters), ")"])

    def heads(self) -> dict[str, str]:
        """Head of each public function."""
        own, known = f"{self.name} *self", f"const {self.name} *self"
        one_round = [n.parameter for n in self.inputs]
        draws = [n.parameter for n in self.draws]
        results = ["double *loss", "double *constraints", "double *equalities"]
        record = f"const {self.name}_record *record"
        many = [f"const {n.c_type} *{n.name}" for n in (*self.inputs, *self.draws)]
        items = {
            "init": self.head("init", "void", [own, *(f"const double *{d.name}" for d in self.decisions)]),
            "decide": self.head(
                "decide",
                "int64_t",
                [own, *draws, *(f"double *{d.name}" for d in self.decisions)],
            ),
            "check": self.head("check", "int64_t", one_round),
            "step": self.head("step", "int64_t", [own, *one_round, *draws]),
            "observe": self.head("observe", "int64_t", [own, *one_round, *draws]),
            "run": self.head("run", "int64_t", [own, "int64_t rounds", *many, record]),
        }
        if self.program.prepare is not None:
            items["prepare"] = self.head("prepare", "int64_t", [own, *(n.parameter for n in self.known)])
        if self.program.measure is not None:
            given = [own if self.work else known, *(d.parameter for d in self.decisions), *one_round]
            items["measure"] = self.head("measure", "void", [*given, *results])
        if self.program.certificate is not None:
            outs = [f"double *{n.name}" for n in self.proof]
            items["certificate"] = self.head("certificate", "void", [own if self.work else known, *outs])
        if any(f.name == ALARM for f in self.program.state):
            items["alarm"] = self.head("alarm", "int64_t", [known, "const char **statement"])
        return items

    def prototypes(self) -> Iterator[str]:
        """Lines of the header for each function."""
        begin = "Take what is known of this round" if self.known else "Begin this round"
        words = {
            "init": "Begin round 1. NULL starts at the model's first decision.",
            "prepare": f"{begin} before `decide`: 0, or -k where entry k of the struct would not be finite.",
            "decide": "The decision of this round, again where it is called again; 0, or -1 where it holds a number that is not finite.",
            "check": "0 if every input is finite and within its bounds, else 1 + the place of the first that is not (over all in order).",
            "measure": "What decisions are worth in this round: the loss, the values of g (g holds where it is <= 0) and of h.",
            "observe": "Take what a decided round revealed: the code of check, undecided, or that of step. Wrong input changes nothing.",
            "certificate": "What fixed decisions lost at least (take `rounding` off) and can lose, what proves it, and other regrets.",
            "alarm": "Round in which what the model states of its streams was refuted, and the statement (NULL: not wanted); 0 before.",
            "step": "Go on with checked input, decided or not: 0, or -k where entry k of the struct would not be finite and all stays.",
            "run": "Play many rounds; inputs have the round first. Stops before one that observe would refuse; gives how many were played.",
        }
        for function, head in self.heads().items():
            yield f"/* {words[function]} */"
            yield f"{head};"
            yield ""

    def struct(self) -> Iterator[str]:
        """Struct with the state of a learner."""
        yield "/* A learner. Nothing is kept outside, so that learners are independent of each other. */"
        yield "typedef struct {"
        left = {own: f"{name} of this round, which the rounds before left" for name, own in self.program.previous}
        for n in self.state:
            shape = " x ".join(map(str, n.type.shape)) + ", row by row" if len(n.type.shape) > 1 else ""
            words = n.field.doc or left.get(n.field.name, "")
            doc = "; ".join(part for part in (" ".join(words.replace("*/", "* /").split()), shape) if part)
            yield f"    {n.declared(n.name)};{f' /* {doc} */' if doc else ''}"
        yield f"    int64_t {self.decided}; /* the last round that decide answered; 0 after load */"
        if self.work:
            yield f"    double work[{self.work}]; /* space for intermediate values, no part of the state */"
        yield f"}} {self.name};"
        yield ""
        yield "/* What run writes down, with the round first. NULL: not wanted. */"
        yield "typedef struct {"
        for name, kind, words in self.record():
            yield f"    {kind} *{name}; /* {words} */"
        yield f"}} {self.name}_record;"

    def record(self) -> Iterator[tuple[str, str, str]]:
        """Members of the record: name, kind of entry, meaning."""
        yield "decisions", "double", "in the order of the model"
        if self.program.measure is not None:
            yield "loss", "double", "of the decisions"
            yield "constraints", "double", "values of g"
            yield "equalities", "double", "values of h"
        for n in self.state[1:]:
            yield f"after_{n.name}", n.c_type, f"{n.name} after the round"
