"""Goldens, one small file for each text that a person reads, rewritten by `pytest --update-golden`; and choices without mixtures."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.entropy import deterministic_PRNG

from oco import tuning

HERE = Path(__file__).parent
NEW_OBJECTS = 100_000
"""Objects between two searches for garbage: with plans and formulas in memory, more searches take a seventh of the time."""
NEVER = 1 << 30
"""Searches among new objects for one among those that outlived them: nearly all of these are plans that stay to the end, and looking at
them again takes seconds.
"""


EXAMPLES = {"brief": 40, "thorough": 400}
"""Examples of each property: in `make test`, and with `--hypothesis-profile thorough`."""

for name, count in EXAMPLES.items():
    slow = [HealthCheck.too_slow]
    settings.register_profile(
        name, max_examples=count, derandomize=True, database=None, deadline=None, suppress_health_check=slow
    )
settings.load_profile("brief")
providers.is_local_module_file = lambda path: False
"""Examples without numbers from the modules that happen to be loaded: they are the same in every order of the tests, and parsing the text
of all modules takes each process three seconds."""


def pytest_configure(config: pytest.Config) -> None:
    gc.set_threshold(NEW_OBJECTS, NEVER)
    with deterministic_PRNG():  # the first one searches all objects for garbage: here they are few
        pass


def pytest_collection_finish() -> None:
    """Keep what collection made out of every search for garbage: it stays to the end."""
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Leave what is there at the end to go with the process: the last search for garbage takes seconds."""
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the expected texts with what comes out now")
    parser.addoption("--points", type=int, default=12, help="how many points of each domain are compared with CVXPY")
    parser.addoption("--agreement", type=int, default=40, help="rounds of the tests that compare backends")
    parser.addoption("--kills", type=int, default=4, help="how often the tests of survival kill a process")
    parser.addoption(
        "--hostile-seconds", type=float, default=0.12, help="processor time of each model file that does harm"
    )
    parser.addoption(
        "--seed", type=int, help="the model at random to which the laws are held, instead of those of today"
    )
    parser.addoption(
        "--law-seconds", type=float, default=0.2, help="seconds for which each law is tried on models at random"
    )


OPTIMIZED = re.compile(r"c99|backends_agree|examples_agree|test_drift")
"""Files of tests whose matter is what the compiler of C makes of a program."""


@pytest.fixture(autouse=True, scope="module")
def quick_builds(request: pytest.FixtureRequest) -> Iterator[None]:
    """No optimization, for a fifth of the time of a build: the bits are those of users, who have more."""
    with pytest.MonkeyPatch.context() as patch:
        if OPTIMIZED.search(request.path.stem) is None:
            from oco.backends.c99 import build

            patch.setattr(build, "FLAGS", tuple("-O0" if flag == "-O3" else flag for flag in build.FLAGS))
        yield


@pytest.fixture(scope="session")
def without_drawing() -> Callable[[pytest.MonkeyPatch], None]:
    """Patch by which figures are written without being drawn, for fixtures that last longer than a test."""
    from matplotlib.figure import Figure

    def written(_: Figure, out: Any, format: str = "png", **options: Any) -> None:
        if format == "svg":
            out.write("<svg></svg>")
        else:
            Path(out).write_bytes(b"picture")

    return lambda patch: patch.setattr(Figure, "savefig", written)


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch, without_drawing: Callable[[pytest.MonkeyPatch], None]) -> None:
    """Figures that are written without being drawn, for tests of the files that a run leaves and of the words of a page."""
    without_drawing(monkeypatch)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[..., None]:
    """`golden(actual)` compares with `tests/golden/FILE/TEST.txt`; `golden(actual, path)` with a file of one's own."""
    name = re.sub(r"[^\w.-]+", "-", request.node.name).strip("-")
    default = HERE / "golden" / request.path.stem / f"{name}.txt"

    def check(actual: str, path: Path = default) -> None:
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(actual, encoding="utf-8")
        assert path.exists(), f"{path} is missing: run pytest with --update-golden and read what it writes"
        assert actual == path.read_text(encoding="utf-8"), f"see {path}; pytest --update-golden rewrites it"

    return check


@pytest.fixture
def unmixed(monkeypatch: pytest.MonkeyPatch) -> None:
    """No algorithm weighs others, as on models whose feedback or constraints keep them out: pilot runs decide."""
    tried = tuning._tried
    monkeypatch.setattr(tuning, "_ahead_of_pilots", lambda choice, data: None)
    monkeypatch.setattr(tuning, "_tried", lambda *rest: tuple(v for v in tried(*rest) if not v.algorithm.mixes))
