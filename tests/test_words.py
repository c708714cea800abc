"""Words of the language as Python functions: signatures, types, and what `dir(oco)` shows."""

import inspect
import re
from pathlib import Path

import pytest

import oco
from oco.dsl.atoms import ATOMS
from oco.dsl.distributions import DISTRIBUTIONS
from oco.dsl.domains import DOMAINS
from oco.reference import reference
from oco.stubs import words_stub

ROOT = Path(__file__).parent.parent


def test_the_stub_is_what_the_tables_say():
    assert (ROOT / "api" / "words.pyi").read_text() == words_stub(), "run `make stubs`"


def test_dir_holds_what_is_meant_and_nothing_else():
    public = [name for name in dir(oco) if name != "__version__"]
    assert set(public) == set(oco.__all__)
    words = {n for n, a in ATOMS.items() if not n.startswith("_") and not a.operator} | {
        "range",
        *DOMAINS,
        *DISTRIBUTIONS,
    }
    assert words <= set(public)
    for name in public:
        assert inspect.getdoc(getattr(oco, name)), f"oco.{name} has no docstring"


@pytest.mark.parametrize(
    ("word", "signature"),
    [
        ("box", "(lo, hi)"),
        ("simplex", "(s=None)"),
        ("huber", "(x, /, M=None)"),
        ("norm2", "(x, /, *, axis=None, over=None)"),
        ("maximum", "(*xs)"),
        ("quad_form", "(x, /, P)"),
        ("pareto", "(shape, *, mean)"),
    ],
)
def test_signatures_are_those_of_the_language(word, signature):
    own = inspect.signature(getattr(oco, word))
    bare = own.replace(
        parameters=[p.replace(annotation=inspect.Parameter.empty) for p in own.parameters.values()],
        return_annotation=inspect.Signature.empty,
    )
    assert str(bare) == signature


def test_arguments_may_be_given_by_their_names():
    m = oco.Model("names", horizon=10)
    x = m.decision("x", 2, domain=oco.box(lo=0, hi=1))
    P = [[2.0, 0.0], [0.0, 1.0]]
    assert repr(oco.quad_form(x, P=P)) == repr(oco.quad_form(x, P))
    assert repr(oco.huber(x, M=2)) == repr(oco.huber(x, 2))
    assert repr(oco.kl_div(x, y=x)) == repr(oco.kl_div(x, x))
    assert repr(oco.sum(x, axis=None)) == repr(oco.sum(x))
    with pytest.raises(oco.OcoError) as error:
        oco.quad_form(x, Q=P)
    assert error.value.code in ("OCO303", "OCO304")


def test_the_reference_is_what_the_docstrings_say():
    page = reference()
    assert (ROOT / "docs" / "api.md").read_text() == page, "run `make stubs`"
    headings = {
        line.removeprefix("### `").split("(")[0].rstrip("`") for line in page.splitlines() if line[:4] == "### "
    }
    assert headings >= set(oco.__all__), "public names without a section"
    assert not [line for line in page.splitlines() if line.startswith("* `") and line.endswith(("`:", "`: "))]


def test_the_public_face_names_its_errors():
    """Functions of `oco` and methods of its classes that may fail say with which error."""
    functions = [(name, getattr(oco, name)) for name in oco.__all__ if inspect.isfunction(getattr(oco, name))]
    without = ("T", "t", "state", "predict", "context", "of_shape")  # errors of the terms that they are made of
    functions += [
        (f"{cls.__name__}.{name}", f)
        for cls in (oco.Model, oco.Domain, oco.Untrusted)
        for name, f in vars(cls).items()
        if inspect.isfunction(f) and not name.startswith("_") and name not in without
    ]
    assert not [name for name, f in functions if not re.search(r"\bRaises\b|\berrors of\b", f.__doc__ or "")]
