"""Some seconds of fuzzing, and everything that fuzzing has found before. `make fuzz` goes on for ten minutes."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from thorough import corners, thorough

FUZZ = Path(__file__).parent / "fuzz"
sys.path.insert(0, str(FUZZ))

from fuzz.corpus import kept  # noqa: E402
from run import fuzz  # noqa: E402
from target import run  # noqa: E402

from grammar import ALGORITHMS, ATOMS, DOMAINS, FAMILIES, NAMES, NUMBERS, SHAPES, expression  # noqa: E402

SECONDS = float(os.environ.get("OCO_FUZZ", "1"))
CORPUS = sorted((FUZZ / "corpus").glob("*"))
OF_LAWS = {one.path.name for one in kept()}
"""Models that broke a law, which `tests/test_model_laws.py` holds to it."""


@pytest.mark.parametrize("path", corners(CORPUS, [p for p in CORPUS if p.name not in OF_LAWS]), ids=lambda p: p.stem)
def test_what_was_found_before(path):
    run(path.read_text(encoding="utf-8", errors="replace"))


@pytest.mark.parametrize("seed", [0, thorough(1)])
def test_sentences_and_mutations_end_in_words(seed):
    report = fuzz(SECONDS, seed, least=24)
    assert not report.faults, "\n\n".join(f"{text!r}\n{trace}" for text, trace in report.faults.values())
    assert len(report.paths) > 10


words = st.sampled_from([*NAMES, *NUMBERS, *ATOMS, *ALGORITHMS, *DOMAINS, *FAMILIES, *SHAPES])
signs = st.sampled_from(
    ["(", ")", "[", "]", "=", ",", ":", "~", "\n", " ", "@", "in", "with", "<=", "#", "..", '"', "\0", "\t"]
)
lines = st.lists(st.one_of(words, signs, st.text(max_size=3)), max_size=12).map(" ".join)
texts = st.lists(
    st.one_of(
        lines,
        st.randoms(use_true_random=False).map(lambda rng: f"minimize {expression(rng, 4)}"),
        st.sampled_from(
            ["model m", "horizon T = 9", "decision x[2] in box(0, 1)", "stream c[2] in [0, 1]", "minimize c @ x"]
        ),
    ),
    max_size=10,
).map("\n".join)


@settings(suppress_health_check=list(HealthCheck), max_examples=settings().max_examples // 8)
@given(texts)
def test_lines_of_words_end_in_words(text):
    run(text, compile=False)


def test_the_words_are_of_the_language():
    assert all(re.fullmatch(r"[a-z_0-9]+", a) for a in ATOMS)
