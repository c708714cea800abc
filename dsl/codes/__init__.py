"""Codes of all errors and warnings: `CODES["OCO201"]`. One file a hundred; the numbers are stable, never reused."""

from __future__ import annotations

from oco.dsl.codes.base import Code, Stage
from oco.dsl.codes.building import ASSUMING, BUILDING, USING
from oco.dsl.codes.clusters import CLUSTERS
from oco.dsl.codes.constraints import CONSTRAINTS
from oco.dsl.codes.data import DATA
from oco.dsl.codes.declarations import FIXED, SPECS
from oco.dsl.codes.facts import FACTS
from oco.dsl.codes.files_and_commands import FILES
from oco.dsl.codes.learner import LEARNER
from oco.dsl.codes.names import NAMES
from oco.dsl.codes.params import PARAMS
from oco.dsl.codes.parsing import SYNTAX
from oco.dsl.codes.plans import PLANS
from oco.dsl.codes.serving import SERVING
from oco.dsl.codes.sets import SETS
from oco.dsl.codes.shapes_and_types import SHAPES
from oco.dsl.codes.style import STYLE

__all__ = ["CODES", "Code", "Stage"]

CODES: dict[str, Code] = {
    code: row
    for table in (
        SYNTAX,
        NAMES,
        SHAPES,
        FIXED,
        SPECS,
        SETS,
        CONSTRAINTS,
        BUILDING,
        FACTS,
        SERVING,
        STYLE,
        ASSUMING,
        USING,
        PLANS,
        CLUSTERS,
        PARAMS,
        DATA,
        LEARNER,
        FILES,
    )
    for code, row in table.items()
}
