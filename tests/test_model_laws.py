"""Laws of the language, the facts, the learners and the comparators, on models made at random over the whole language.

The seeds move by date; `--seed N` takes one model, `--law-seconds S` another time for each law. `make fuzz` goes on for an hour.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import count

import pytest
from fuzz.case import Refused, Violation
from fuzz.corpus import Kept, excused, kept, written
from fuzz.hunt import FOUND, LAWS, hunt, minimised, today
from thorough import corners

LONG = (
    "comparators_prefixes_that_nothing_satisfies",
    "comparators_infinite_slope_of_fixed_entries",
    "learners_oco133_zerodivisionerror_in_affine_py_excess",
)
"""Models with small ones beside them, as in `tests/test_comparators_in_part.py`."""


@pytest.mark.parametrize("law", LAWS)
def test_laws_hold_on_models_of_today(law: str, request: pytest.FixtureRequest) -> None:
    """What fails is minimised and written into tests/fuzz/found."""
    laws, seed = {law: LAWS[law]}, request.config.getoption("--seed")
    seconds = request.config.getoption("--law-seconds")
    report = hunt(laws, count(today()) if seed is None else [seed], seconds)
    assert report.models > 0
    known = excused(laws) if report.found else frozenset()
    for found in report.found.values():
        if found.kind not in known:
            small = minimised(found)
            path = written(small, found.law, found.seed, found.kind, found.message, FOUND)
            pytest.fail(f"{found}\n\nthe smallest model, kept in {path}:\n\n{small.text}", pytrace=False)


@pytest.mark.parametrize(
    "one", corners(kept(), [one for one in kept() if one.path.stem not in LONG]), ids=lambda one: one.path.stem
)
def test_models_that_broke_a_law(one: Kept) -> None:
    """A file that is marked as open fails here once it is mended, so that its mark goes. A model that is refused in words broke nothing."""
    if one.open:
        with pytest.raises(Violation):
            LAWS[one.law](one.case())
    else:
        with suppress(Refused):
            LAWS[one.law](one.case())
