"""The library of emitted C sources: each source contains what it refers to, and nothing else."""

from __future__ import annotations

import re
from itertools import pairwise

from oco.backends.c99.library import linked, names, pieces


def functions_of(lines: list[str]) -> set[str]:
    return set(re.findall(r"\bm_(\w+)", "\n".join(lines))) & names()


def test_references_of_the_library_are_defined_before_they_are_used() -> None:
    defined: set[str] = set()
    for piece in pieces():
        assert not defined & piece.defines
        defined |= piece.defines
        assert set(re.findall(r"@(\w+)", piece.text)) <= defined, piece.text


def test_a_source_has_what_it_refers_to_through_others_too() -> None:
    assert functions_of(linked(["y = @v_abs_whole(x);"], "m")) == {
        "v_abs_whole",
        "v_max_whole",
        "choose_whole",
        "whole",
    }
    rows = linked(["@svd(a, u, s, vt, space, 2, 2);"], "m")
    assert {"dot", "reflection", "rotate_rows", "bidiagonal"} <= functions_of(rows)
    assert not {"eigh", "sort", "vector"} & functions_of(rows)
    assert "@" not in "\n".join(rows)


def test_names_that_a_source_defines_itself_get_its_prefix_alone() -> None:
    own = ["static int @mine(int a) { return a; }", "int b = @mine(1);"]
    assert linked(own, "m") == ["static int m_mine(int a) { return a; }", "int b = m_mine(1);"]


def test_functions_of_several_lines_end_a_paragraph() -> None:
    lines = linked(["@sort(x, n);", "z = @max(x, @exp(y));"], "m")
    assert all(after == "" for line, after in pairwise(lines) if line == "}")
