"""Every code is explained, every example provokes its code, and every code that the package gives is in the table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from oco.compiler.prover.check import check
from oco.dsl import codes
from oco.dsl.codes import CODES, Stage
from oco.dsl.diagnostics import Diagnostic, OcoError
from oco.dsl.explanations import explanation
from oco.dsl.load import parse

ROOT = Path(__file__).parent.parent
PACKAGES = ("dsl", "compiler", "backends", "evaluation", "api")


def found(text: str, folder: Path, checking: bool) -> list[str]:
    """The codes that a model's text gives, errors and warnings."""
    try:
        model = parse(text, folder=folder)
        warnings = check(model).warnings if checking else ()
    except OcoError as error:
        return [d.code for d in error.diagnostics]
    return [d.code for d in warnings]


@pytest.mark.parametrize("code", [c for c, row in CODES.items() if row.stage in (Stage.PARSE, Stage.CHECK)])
def test_example_provokes_its_code_and_no_other(code: str, tmp_path: Path) -> None:
    row = CODES[code]
    assert set(found(row.example, tmp_path, row.stage is Stage.CHECK)) == {code}


@pytest.mark.parametrize("code", [c for c, row in CODES.items() if row.stage is Stage.BUILDER])
def test_builder_example_provokes_its_code(code: str) -> None:
    import oco

    with pytest.raises(OcoError) as caught:
        exec(CODES[code].example, {"oco": oco})
    assert caught.value.code == code


def test_every_code_in_the_package_is_explained() -> None:
    used = {
        code
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if "codes" not in path.parts
        for code in re.findall(r'"(OCO[1-9]\d\d)"', path.read_text(encoding="utf-8"))
    }
    assert sorted(used - set(CODES)) == []


def test_tables_do_not_explain_a_code_twice() -> None:
    rows = re.findall(
        r'^    "(OCO\d{3})": ', "".join(p.read_text() for p in Path(codes.__file__).parent.glob("*.py")), re.M
    )
    assert sorted(rows) == sorted(CODES)


def test_rows_read_as_sentences() -> None:
    for code, row in CODES.items():
        assert row.explanation.endswith("."), code
        assert not re.search(r"\{[a-z]+\}", explanation(row)), f"{code}: a place without its list"
        assert row.remedy.endswith("."), code
        assert not row.title.endswith("."), code
        assert "hint" not in row.remedy, f"{code}: the remedy stands where there is no other hint"


@pytest.mark.parametrize("code", CODES)
def test_every_finding_says_a_way_out(code: str) -> None:
    """What has no hint of its own has that of its code."""
    bare, own = Diagnostic(code, "it is so"), Diagnostic(code, "it is so", hint="do this")
    assert f"  hint: {CODES[code].remedy}" in bare.render() and OcoError(bare).hint == CODES[code].remedy
    assert "  hint: do this" in own.render() and CODES[code].remedy not in own.render()
