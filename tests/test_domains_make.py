"""Domains from the language: the two tables agree, arguments are checked with reasons, printing reads back."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from domain_cases import CASES, Case

from oco.compiler.domains import Domain, cut, domain, make_domain
from oco.compiler.domains.make import maker
from oco.dsl.diagnostics import OcoError
from oco.dsl.domains import DOMAINS
from oco.dsl.expressions import constant
from oco.dsl.load import parse
from oco.dsl.statements import DomainSpec


def test_every_kind_of_the_language_is_made() -> None:
    assert {case.at(1.0).kind for case in CASES} >= DOMAINS.keys(), "a domain has no case in domain_cases.py"
    for kind, row in DOMAINS.items():
        arguments = list(inspect.signature(maker(kind)).parameters)[1:]
        assert tuple(arguments[: len(row.parameters)]) == row.parameters


def declared(text: str, shape: tuple[int, ...]) -> Domain:
    dims = f"[{', '.join(map(str, shape))}]" if shape else ""
    model = parse(f"model m\nhorizon T = 5\ndecision x{dims} in {text}\nminimize sum(x)\n")
    return make_domain(model.decisions[0].domain, shape, {})


@pytest.mark.parametrize("case", [c for c in CASES if c.at(1.0).kind in DOMAINS], ids=lambda case: case.name)
def test_what_is_printed_reads_back_as_the_same_set(case: Case) -> None:
    d = case.at(1.0)
    again = declared(str(d), d.shape)
    for c in np.random.default_rng(0).standard_normal((5, *d.shape)):
        assert again.support(c) == pytest.approx(d.support(c), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("interval", "box"),
    [("[-1, 2]", "box(-1, 2)"), ("[0, [1, 2]] with sum(x) <= 2", "box(0, [1, 2]) with sum(x) <= 2")],
)
def test_an_interval_is_a_box(interval: str, box: str) -> None:
    assert str(declared(interval, (2,))) == str(declared(box, (2,)))


@pytest.mark.parametrize(
    ("kind", "shape", "arguments", "code", "words"),
    [
        ("box", (2,), ([0, 3], [1, 2]), "OCO410", "lo 3 is above hi 2"),
        ("box", (2,), (0, np.inf), "OCO413", "not a finite number"),
        ("box", (2,), (0, [1, 2, 3]), "OCO412", "does not fit"),
        ("ball", (2,), (-1,), "OCO411", "must be positive"),
        ("simplex", (2,), (0,), "OCO411", "must be positive"),
        ("budget", (3,), (0, 1, 4), "OCO410", "total"),
        ("capped_simplex", (3,), (0.2, 1), "OCO410", "at most"),
        ("ellipsoid", (2,), ([[1, 2], [2, 1]],), "OCO415", "positive definite"),
        ("spectrahedron", (2, 3), (1,), "OCO414", "square"),
        ("birkhoff", (2, 2), (3,), "OCO412", "size"),
        ("polytope", (2,), ([[1, 0], [-1, 0], [0, 1], [0, -1]], [1, -2, 1, 1]), "OCO410", "contradict"),
        ("polytope", (2,), ([[1, 0], [-1, 0], [0, -1]], [1, 1, 1]), "OCO418", "entry 1 can be arbitrarily large"),
        ("polytope", (1,), ([[0], [1], [-1]], [-1, 1, 1]), "OCO410", "row 0"),
        ("flow", (3,), ([[0, 1], [1, 2], [2, 1]], 0, 2), "OCO417", "cycle"),
        ("flow", (2,), ([[0, 1], [2, 3]], 0, 3), "OCO417", "no path"),
        ("group_ball", (2,), (1, [0, 0.5]), "OCO415", "integers"),
    ],
)
def test_wrong_arguments_are_explained(
    kind: str, shape: tuple[int, ...], arguments: tuple, code: str, words: str
) -> None:
    with pytest.raises(OcoError, match=words) as caught:
        domain(kind, shape, *arguments)
    assert caught.value.code == code


def test_an_error_of_a_model_points_at_the_domain() -> None:
    text = "model m\nhorizon T = 5\ndecision x[2] in polytope([[1, 0], [0, 1]], [1, 1])\nminimize sum(x)\n"
    model = parse(text)
    with pytest.raises(OcoError) as caught:
        make_domain(model.decisions[0].domain, (2,), {})
    assert caught.value.span is not None
    assert caught.value.span.text.startswith("polytope")


@pytest.mark.parametrize(
    ("base", "rows"),
    [
        (domain("box", (2,), 0, 1), ([[1, 1]], -1)),
        (domain("simplex", (3,), 1), ([[1, 0, 0]], -0.1)),
        (domain("ball", (2,), 1), ([[1, 0]], -2)),
        (domain("ball", (2,), 1), ([[1, 0]], -1)),
    ],
    ids=["box", "simplex", "ball", "ball-touching"],
)
def test_a_cut_that_leaves_nothing_is_an_error(base: Domain, rows: tuple) -> None:
    with pytest.raises(OcoError) as caught:
        cut(base, *rows)
    assert caught.value.code == "OCO410"


def test_what_takes_long_is_offered_all_the_same() -> None:
    d = make_domain(DomainSpec("birkhoff", (constant(201),)), (201, 201), {})
    assert d.is_cheap("lmo") and not d.is_cheap("project")
    assert "201 equations" in d.expensive["project"]
    x = np.random.default_rng(0).normal(size=(201, 201)) / 100
    nearest = d.project_array(x)
    assert d.contains(nearest)
    corner = d.lmo_array(nearest - x)  # <x - p, z - p> <= 0 for all z of the set, for the corner that is worst
    assert np.sum((x - nearest) * (corner - nearest)) <= 1e-8


def test_arrays_of_the_wrong_shape_are_refused() -> None:
    d = domain("simplex", (3,), 1)
    with pytest.raises(OcoError, match="shape"):
        d.project_array(np.zeros(4))
    with pytest.raises(OcoError, match="finite"):
        d.lmo_array([0.0, np.nan, 1.0])
