"""Learner in C whose feedback comes later: d + 1 learners in its struct take turns, as in `backends.delayed`.

Saved: a head as that of one learner, the rounds begun, the open round of each turn and whether its context was taken, the learners with
the bytes of each, those before their contexts were taken, and a checksum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from oco.backends.c99.entry_points import EntryPoints
from oco.backends.c99.interface import Interface, Named
from oco.backends.c99.return_codes import bytes_of_struct, first_refusal
from oco.backends.c99.state import HEAD, TAIL, load_head, readable, save_head, state_size
from oco.backends.contract import Contract
from oco.backends.python.state_file import LAST_ROUND
from oco.compiler.ir.program import NUMBER, OBSERVED
from oco.dsl.records import dataclass

MISSING, UNKNOWN, OVER = "feedback_missing", "round_unknown", "round_over"
ORDER = "round_too_early"
REFUSALS = {
    MISSING: "the feedback of a round that the next one needs is missing: observe or skip it",
    UNKNOWN: "the round is not decided yet",
    OVER: "the round is over: it was observed or skipped",
}
"""Return codes that learners in turn have beside those of one, in words."""
IN_ORDER = {ORDER: "states hang on the feedback of rounds before: observe the oldest open round, and leave none out"}
"""Return code that they have beside these where rounds are observed in their order."""
IN_TURN = "in_turn"
"""Ending of the name of one of the learners in turn."""


@dataclass(frozen=True)
class Ring:
    """Writer of a learner of `turns` learners in turn. `one` is the interface of each of them, `of` that of the whole; `contract` is that
    of one.
    """

    one: Interface
    turns: int
    contract: Contract

    @cached_property
    def of(self) -> Interface:
        """Interface of the whole, whose state is that of one."""
        return replace(self.one, name=self.one.name.removesuffix(f"_{IN_TURN}"))

    @property
    def prepares(self) -> bool:
        """True where contexts are taken before a decision."""
        return self.one.program.prepare is not None

    @property
    def state_size(self) -> int:
        """Bytes of a saved learner."""
        copies = 1 + self.prepares
        return HEAD + 8 + 16 * self.turns + copies * self.turns * state_size(self.one) + TAIL

    @property
    def bytes_of_struct(self) -> int:
        """Bytes of the struct on a machine of 64 bits."""
        return (1 + self.prepares) * self.turns * bytes_of_struct(self.one) + 8 + 16 * self.turns

    def _code(self, name: str) -> int:
        return -(first_refusal(self.one) + [*self.refusals].index(name))

    @property
    def refusals(self) -> dict[str, str]:
        """Return codes beside those of one learner, in words."""
        return {**REFUSALS, **(IN_ORDER if self.one.program.in_order else {})}

    # The header.

    def struct(self) -> Iterator[str]:
        """Struct of the learner, after that of one."""
        name, turns = self.of.name, self.turns
        yield from self.one.struct()
        yield ""
        yield f"/* Feedback comes {turns - 1} rounds later at most, and {turns} learners take turns: round t is that of"
        yield f" * turns[(t - 1) % {turns}]. */"
        yield "typedef struct {"
        yield f"    {self.one.name} turns[{turns}];"
        if self.prepares:
            yield f"    {self.one.name} before[{turns}]; /* as they were before the contexts of their rounds were taken */"
        yield "    int64_t decided; /* rounds that were begun */"
        yield f"    int64_t open[{turns}]; /* the round of each turn whose feedback is still to come, or 0 */"
        yield f"    int64_t prepared[{turns}]; /* 1 where the context of a turn's round was taken */"
        yield f"}} {name};"
        yield ""
        yield f"typedef {self.one.name}_record {name}_record;"

    def heads(self) -> dict[str, str]:
        """Head of each public function."""
        own = self.of.heads()
        own.pop("step")
        given, me = [n.parameter for n in (*self.of.inputs, *self.of.draws)], f"{self.of.name} *self"
        later = {
            "decide": own["decide"].replace(f"const {me}", me),
            "observe_round": self.of.head("observe_round", "int64_t", [me, "int64_t t", *given]),
            "skip": self.of.head("skip", "int64_t", [me, "int64_t t"]),
            "pending": self.of.head("pending", "int64_t", [f"const {me}", "int64_t *rounds"]),
        }
        return own | later

    def prototypes(self) -> Iterator[str]:
        """Lines of the header for each function."""
        name = self.of.name
        words = {
            "init": "Begin round 1. NULL starts at the model's first decision.",
            "prepare": f"Take what is known of the next round before `decide`: 0, {name}_{MISSING}, or -k where entry k of a learner would "
            "not be finite.",
            "decide": f"Begin the next round: its decision; 0, {name}_{MISSING}, or -1 where it holds a number that is not finite.",
            "check": "0 if every input is finite and within its bounds, else 1 + the place of the first that is not (over all in order).",
            "measure": "What decisions are worth in the oldest open round, else the next: the loss, values of g (<= 0: it holds) and h.",
            "observe": "Take what the oldest open round revealed. The result is that of observe_round.",
            "observe_round": f"Take what an open round t revealed, in any order: 0, {name}_{UNKNOWN}, {name}_{OVER}, or what check or a "
            "step refuses; nothing changes then.",
            "skip": "Go on without the data of an open round t: 0, or a code as that of observe_round.",
            "pending": f"Write the open rounds, the oldest first, into {self.turns} entries; gives how many they are.",
            "run": "Play many rounds, each with its feedback before the next of its turn; inputs have the round first. Stops before one "
            "that observe would refuse; gives how many were played.",
        }
        for function, head in self.heads().items():
            yield f"/* {words[function]} */"
            yield f"{head};"
            yield ""

    # The source.

    def lines(self) -> Iterator[str]:
        """Lines of the functions."""
        heads = self.heads()
        if self.together:
            yield from self._learning_together()
        for function in heads:
            yield f"{heads[function]} {{"
            yield from (f"    {line}" for line in getattr(self, f"_{function}")())
            yield "}"
            yield ""

    @property
    def together(self) -> bool:
        """True where the learners in turn learn together."""
        return bool(self.one.program.shared)

    def _member(self, field: str) -> str:
        """Member of a learner's struct with a field of its state."""
        return next(n.name for n in self.one.state if n.field.name == field)

    def _learning_together(self) -> Iterator[str]:
        """Functions that bring what the learners in turn have in common from the one that observed last, and that play a round so."""
        one, observed = self.one.name, self._member(OBSERVED)
        yield "/* What the learners in turn have in common, from the one that observed last. */"
        yield f"static const {one} *{self.of.name}_newest(const {self.of.name} *self) {{"
        yield "    int last = 0;"
        yield f"    for (int i = 1; i < {self.turns}; ++i) {{"
        yield f"        if (self->turns[i].{observed} > self->turns[last].{observed}) {{ last = i; }}"
        yield "    }"
        yield "    return &self->turns[last];"
        yield "}"
        yield ""
        yield f"static void {one}_learn_from({one} *self, const {one} *other) {{"
        yield "    if (self == other) { return; }"
        for n in self.one.state:
            if n.field.name in self.one.program.shared and n.size:
                whole = f"memcpy(self->{n.name}, other->{n.name}, sizeof self->{n.name});"
                yield f"    {whole if n.type.shape else f'self->{n.name} = other->{n.name};'}"
        yield "}"
        yield ""
        many = [f"const {n.c_type} *{n.name}" for n in (*self.one.inputs, *self.one.draws)]
        given = [f"{one} *self", f"const {one} *other", "int64_t t", *many, f"const {one}_record *record"]
        yield f"static int64_t {one}_round({', '.join(given)}) {{"
        learns = [f"{one}_learn_from(self, other);"]
        yield from (f"    {line}" for line in EntryPoints(self.one, self.contract).round_of_many(learns))
        yield "    return t + 1;"
        yield "}"
        yield ""

    def _call(self, function: str, *arguments: str) -> str:
        return f"{self.one.name}_{function}({', '.join(arguments)})"

    def _given(self, values: Sequence[Named]) -> list[str]:
        return [n.name for n in values]

    def _next(self) -> Iterator[str]:
        """Statements that give the turn of the next round, or return."""
        yield f"const int i = (int)(self->decided % {self.turns});"
        yield f"if (self->open[i] != 0) {{ return {self._code(MISSING)}; }}"

    def _init(self) -> Iterator[str]:
        yield f"for (int i = 0; i < {self.turns}; ++i) {{"
        yield f"    {self._call('init', '&self->turns[i]', *self._given(self.of.decisions))};"
        if self.one.program.numbers:
            yield f"    self->turns[i].{self._member(NUMBER)} = i + 1;"
        if self.prepares:
            yield "    self->before[i] = self->turns[i];"
        yield "    self->open[i] = self->prepared[i] = 0;"
        yield "}"
        yield "self->decided = 0;"

    def _prepare(self) -> Iterator[str]:
        yield from self._next()
        yield "if (self->prepared[i]) {"
        yield "    self->turns[i] = self->before[i];"
        yield "} else {"
        yield "    self->before[i] = self->turns[i];"
        yield "}"
        yield from self._followed()
        yield f"const int64_t wrong = {self._call('prepare', '&self->turns[i]', *self._given(self.of.known))};"
        yield "self->prepared[i] = wrong == 0;"
        yield "return wrong;"

    def _followed(self) -> Iterator[str]:
        """Statements that take what the round before left, from the learner that decided it, into the learner of turn i."""
        if not (self.one.program.handed or self.one.program.corrected):
            return
        if self.one.program.handed:
            yield f"const {self.one.name} *const last = &self->turns[(self->decided + {self.turns - 1}) % {self.turns}];"
        yield "if (self->decided > 0) {"
        for name, left in self.one.program.handed:
            yield f"    {self._copied('self->turns[i].', name, 'last->', left)}"
        if self.one.program.corrected:
            yield f"    const {self.one.name} *const newest = {self.of.name}_newest(self);"
        for name in self.one.program.corrected:
            yield f"    if (newest != &self->turns[i]) {{ {self._copied('self->turns[i].', name, 'newest->', name)} }}"
        yield "}"

    def _copied(self, to: str, name: str, source: str, left: str) -> str:
        """Statement that copies a field of a learner's state from that of another one, each behind its struct."""
        mine, its = (next(n for n in self.one.state if n.field.name == field) for field in (name, left))
        target, value = f"{to}{mine.name}", f"{source}{its.name}"
        return f"memcpy({target}, {value}, sizeof {target});" if mine.type.shape else f"{target} = {value};"

    def _decide(self) -> Iterator[str]:
        yield from self._next()
        values = self._given([*self.of.draws, *self.of.decisions])
        yield f"const int64_t wrong = {self._call('decide', '&self->turns[i]', *values)};"
        yield "if (wrong == 0) { self->open[i] = ++self->decided; }"
        yield "return wrong;"

    def _check(self) -> Iterator[str]:
        yield f"return {self._call('check', *self._given(self.of.inputs))};"

    def _measure(self) -> Iterator[str]:
        values = self._given([*self.of.decisions, *self.of.inputs])
        yield from self._oldest()
        if self.one.program.in_order:  # the levels of the oldest open round are those that were learned last
            yield f"{self.one.name} one = self->turns[(t - 1) % {self.turns}];"
            yield f"{self._call('learn_from', '&one', f'{self.of.name}_newest(self)')};"
            yield f"{self._call('measure', '&one', *values, 'loss', 'constraints', 'equalities')};"
            return
        yield f"{self._call('measure', f'&self->turns[(t - 1) % {self.turns}]', *values, 'loss', 'constraints', 'equalities')};"

    def _opened(self) -> Iterator[str]:
        """Statements that give the turn of round t, or return."""
        yield f"if (t < 1 || t > self->decided) {{ return {self._code(UNKNOWN)}; }}"
        yield f"const int i = (int)((t - 1) % {self.turns});"
        yield f"if (self->open[i] != t) {{ return {self._code(OVER)}; }}"

    def _observe_round(self) -> Iterator[str]:
        yield from self._opened()
        if self.one.program.in_order:
            yield f"for (int64_t before = t - 1; before > 0 && before > self->decided - {self.turns}; --before) {{"
            yield f"    if (self->open[(before - 1) % {self.turns}] == before) {{ return {self._code(ORDER)}; }}"
            yield "}"
        values = self._given([*self.of.inputs, *self.of.draws])
        if self.together:
            yield f"int64_t wrong = {self._call('check', *self._given(self.of.inputs))};"
            yield "if (wrong == 0) {"
            yield f"    {self._call('learn_from', '&self->turns[i]', f'{self.of.name}_newest(self)')};"
            yield f"    wrong = {self._call('step', '&self->turns[i]', *values)};"
            yield "}"
        else:
            yield f"const int64_t wrong = {self._call('observe', '&self->turns[i]', *values)};"
        yield "if (wrong == 0) { self->open[i] = self->prepared[i] = 0; }"
        yield "return wrong;"

    def _observe(self) -> Iterator[str]:
        yield from self._oldest()
        values = ["self", "t", *self._given([*self.of.inputs, *self.of.draws])]
        yield f"return {self.of.name}_observe_round({', '.join(values)});"

    def _oldest(self) -> Iterator[str]:
        """Statements that give the oldest open round t, or the next one."""
        yield f"int64_t t = self->decided < {self.turns} ? 1 : self->decided - {self.turns - 1};"
        yield f"while (t <= self->decided && self->open[(t - 1) % {self.turns}] != t) {{ ++t; }}"

    def _skip(self) -> Iterator[str]:
        yield from self._opened()
        if self.one.program.in_order:
            yield f"return {self._code(ORDER)};"
            return
        if self.prepares:
            yield "if (self->prepared[i]) {"
            for _, left in self.one.program.handed:  # the round was decided, and left what it did
                yield f"    {self._copied('self->before[i].', left, 'self->turns[i].', left)}"
            yield "    self->turns[i] = self->before[i];"
            yield "}"
        if self.one.program.numbers:
            yield f"self->turns[i].{self._member(NUMBER)} += {self.turns};"
        yield "self->open[i] = self->prepared[i] = 0;"
        yield "return 0;"

    def _pending(self) -> Iterator[str]:
        yield "int64_t place = 0;"
        yield f"for (int i = 0; i < {self.turns}; ++i) {{"
        yield f"    const int64_t t = self->open[(self->decided + i) % {self.turns}];"
        yield "    if (t != 0) { rounds[place++] = t; }"
        yield "}"
        yield "return place;"

    def _run(self) -> Iterator[str]:
        values = [*self.of.inputs, *self.of.draws]
        many = [f"{n.name} + t * {n.size}" if n.type.shape else f"{n.name} + t" for n in values]
        sizes = {f"after_{n.name}": n.size for n in self.of.state}
        sizes |= {"decisions": sum(d.size for d in self.of.decisions), "loss": 1}
        sizes |= dict(zip(("constraints", "equalities"), self.of.outputs, strict=True))
        yield "for (int64_t t = 0; t < rounds; ++t) {"
        yield f"    const int i = (int)(self->decided % {self.turns});"
        yield "    if (self->open[i] != 0) { return t; }"
        yield from (f"    {line}" for line in self._followed())
        if self.together:
            given = ["&self->turns[i]", f"{self.of.name}_newest(self)", "t", *self._given(values), "record"]
            yield f"    if ({self._call('round', *given)} != t + 1) {{ return t; }}"
        else:
            yield f"    {self.of.name}_record place = *record;"
            for member, _, _ in self.of.record():
                yield f"    if (place.{member}) {{ place.{member} += t * {sizes[member]}; }}"
            yield f"    if ({self._call('run', '&self->turns[i]', '1', *many, '&place')} != 1) {{ return t; }}"
        yield "    self->prepared[i] = 0;"
        yield "    ++self->decided;"
        yield "}"
        yield "return rounds;"

    # Saved states.

    def state_lines(self) -> Iterator[str]:
        """Lines of the functions that save and load, after those of one."""
        name, turns, size = self.of.name, self.turns, state_size(self.one)
        yield f"{save_head(self.of)} {{"
        yield f"    unsigned char *to = @pack({self.one.name}_head, 3, bytes);"
        yield "    to = @pack(&self->decided, 1, to);"
        yield f"    to = @pack(self->open, {turns}, to);"
        yield f"    to = @pack(self->prepared, {turns}, to);"
        yield f"    for (int i = 0; i < {turns}; ++i) {{"
        for k, part in enumerate(self._parts):
            yield f"        {self._call('save', f'&self->{part}[i]', f'to + {size} * (i + {k * turns})')};"
        yield "    }"
        yield f"    const uint64_t crc = @crc(bytes, {name}_state_size - {TAIL});"
        yield f"    @pack(&crc, 1, bytes + {name}_state_size - {TAIL});"
        yield "}"
        yield ""
        yield from readable(name, self.one.name)
        yield "    int64_t decided, open, prepared;"
        yield f"    const unsigned char *from = @unpack(&decided, 1, bytes + {HEAD});"
        yield f"    if (decided < 0 || decided > INT64_C({LAST_ROUND})) {{ return 5; }}"
        yield f"    for (int i = 0; i < {turns}; ++i) {{"
        yield "        @unpack(&open, 1, from + 8 * i);"
        yield f"        @unpack(&prepared, 1, from + 8 * (i + {turns}));"
        yield f"        const int open_now = open >= 1 && open <= decided && open > decided - {turns} && (open - 1) % {turns} == i;"
        yield "        if (open != 0 && !open_now) { return 5; }"
        yield "        if (prepared != 0 && prepared != 1) { return 5; }"
        yield "    }"
        yield f"    from += {16 * turns};"
        yield f"    for (int i = 0; i < {len(self._parts) * turns}; ++i) {{"
        yield f"        if ({self.one.name}_readable(from + {size} * i, {size}) != 0) {{ return 5; }}"
        yield "    }"
        yield "    return 0;"
        yield "}"
        yield ""
        yield f"{load_head(self.of)} {{"
        yield f"    const int wrong = {name}_readable(bytes, size);"
        yield "    if (wrong != 0) { return wrong; }"
        yield f"    const unsigned char *from = @unpack(&self->decided, 1, bytes + {HEAD});"
        yield f"    from = @unpack(self->open, {turns}, from);"
        yield f"    from = @unpack(self->prepared, {turns}, from);"
        yield f"    for (int i = 0; i < {turns}; ++i) {{"
        for k, part in enumerate(self._parts):
            yield f"        {self._call('load', f'&self->{part}[i]', f'from + {size} * (i + {k * turns})', str(size))};"
        decided, now = self.one.decided, self.one.state[0].name
        yield f"        self->turns[i].{decided} = self->open[i] != 0 ? self->turns[i].{now} : 0;"
        yield "    }"
        yield "    return 0;"
        yield "}"

    @property
    def _parts(self) -> tuple[str, ...]:
        """Members of the struct that hold learners."""
        return ("turns", "before") if self.prepares else ("turns",)
