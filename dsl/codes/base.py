"""Codes of the language's errors and warnings."""

from __future__ import annotations

from enum import StrEnum

from oco.dsl.records import dataclass


class Stage(StrEnum):
    """First stage that can give a code; the example of a code is a text for that stage."""

    PARSE = "parse"
    CHECK = "check"
    LINT = "lint"
    COMPILE = "compile"
    RUN = "run"
    BUILDER = "builder"
    COMMAND = "command"


@dataclass(frozen=True, slots=True)
class Code:
    """Row of `oco help CODE`.

    `explanation` may have the places `{domains}`, `{distributions}` and `{facts}`, which `explanations` fills with lists.
    `example` provokes the code: a model for the stages parse, check, lint and compile; Python for the builder and a run; a
    shell command for the command line.
    """

    title: str
    explanation: str
    example: str
    remedy: str
    stage: Stage = Stage.PARSE
