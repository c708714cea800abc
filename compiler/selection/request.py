"""Request of a model or a caller: an algorithm, settings by name, and a policy for the settings that are not given."""

from __future__ import annotations

from dataclasses import field, replace

from oco.compiler.algorithms import Algorithm
from oco.compiler.selection.modes import Mode, SettingsMode, mode_of
from oco.compiler.theory.resolve import GivenSettings
from oco.compiler.theory.theorems import Situation
from oco.dsl.diagnostics import fail
from oco.dsl.records import dataclass
from oco.dsl.settings import SETTINGS, UNIT_WORDS, UNITS, WORD_SETTINGS
from oco.dsl.source import Span
from oco.dsl.suggest import nearest


@dataclass(frozen=True)
class Policy:
    """Policy for the settings that are not given: their kind, and the weight of violations against regret where the two are added."""

    mode: Mode = Mode.PAPER
    weight: float = 1.0

    @property
    def unit_free(self) -> bool:
        """True where settings are those of the problem without units."""
        return self.mode is not Mode.PAPER

    @property
    def searches(self) -> bool:
        """True where free constants are searched."""
        return self.mode in (Mode.LEAST, Mode.TUNED)

    @property
    def unsearched(self) -> Policy:
        """Policy on the same problem with the paper's constants."""
        return replace(self, mode=Mode.UNIT_FREE) if self.unit_free else self


PAPER = Policy()


@dataclass(frozen=True)
class AlgorithmRequest:
    """An algorithm, its settings, and the place in the model where they are written.

    algorithm  name of the algorithm that is asked for, which may take its time then; None: any
    given      settings by name: words, numbers, or formulas as text
    span       place that errors point to; None where a caller gives them
    policy     of the settings that are not given
    """

    algorithm: str | None = None
    given: GivenSettings = field(default_factory=dict)
    span: Span | None = None
    policy: Policy = PAPER

    def names(self, a: Algorithm) -> bool:
        """True where it asks for that algorithm."""
        return self.algorithm == a.name

    def of(self, a: Algorithm) -> AlgorithmRequest:
        """Request with the given settings that the algorithm has."""
        own = (*SETTINGS[a.name], UNITS)
        return replace(self, given={name: value for name, value in self.given.items() if name in own})

    @property
    def numbers_given(self) -> bool:
        """True if some setting that is not a word is given."""
        return any(name not in WORD_SETTINGS and name != UNITS for name in self.given)

    @property
    def unit_free(self) -> bool:
        """True if settings are those of the problem without units: where that is asked for, or nothing is given.

        Raises OCO721 for units that there are not.
        """
        word = str(self.given.get(UNITS, UNIT_WORDS[0])).strip('"')
        if word not in UNIT_WORDS:
            message = f"the setting {UNITS} is one of {', '.join(UNIT_WORDS)}, not `{word}`"
            raise fail("OCO721", message, self.span)
        return word == "free" or (self.policy.unit_free and UNITS not in self.given and not self.numbers_given)

    @property
    def searches(self) -> bool:
        """True if the free constants of a theorem are searched."""
        return self.unit_free and not self.numbers_given and self.policy.mode is not Mode.UNIT_FREE

    def check_names(self, a: Algorithm | None) -> None:
        """Check the names of the given settings. Raises OCO702 for one that the algorithm (None: every algorithm) does not have."""
        if a is None:
            known = list(dict.fromkeys(name for names in SETTINGS.values() for name in names))
            message, every = "no algorithm has a setting `{}`", "`oco explain` prints those of a model's algorithm"
        else:
            known = list(SETTINGS[a.name])
            message, every = f"`{a.name}` has no setting `{{}}`", f"the settings are {', '.join(known)}"
        for name in (n for n in self.given if n not in (*known, UNITS)):
            near = nearest(name, known, least=0.5)
            raise fail("OCO702", message.format(name), self.span, f"did you mean `{near}`?" if near else every)


NOTHING_ASKED = AlgorithmRequest()


def request_of(s: Situation, algorithm: str | None = None, settings: SettingsMode = Mode.PAPER) -> AlgorithmRequest:
    """Request of a model's `using` line, behind the algorithm and the settings that a caller gives.

    Raises OCO709 for an unknown kind of settings, OCO721 for what is no formula.
    """
    (mode, formulas), using = mode_of(settings), s.canonical.model.using
    policy = Policy(mode, s.weight)
    if using is None or algorithm not in (None, using.algorithm):
        return AlgorithmRequest(algorithm, formulas, None, policy)
    return AlgorithmRequest(
        using.algorithm, {**dict(using.settings), **formulas}, using.span if algorithm is None else None, policy
    )
