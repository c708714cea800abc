"""The values of params: files, ranges, sizes, and what a caller gives."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from thorough import thorough

from oco.dsl.bind import bind
from oco.dsl.diagnostics import OcoError
from oco.dsl.files import READERS
from oco.dsl.limits import MOST_BYTES, MOST_TEXT_BYTES
from oco.dsl.load import load, parse
from oco.dsl.model import Model
from oco.dsl.statements import Param
from oco.dsl.text.printer import print_model

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.oco"))
REST = "decision x[2] in box(0, 1)\nstream c[2] in [-1, 1]\nminimize c @ x\n"
A = np.array([[1.5, 2.0, 3.0], [4.0, 5.0, 6.0]])


def model(*params: str, folder: Path | None = None, given: dict[str, object] | None = None) -> Model:
    return parse("model m\nhorizon T = 9\n" + "\n".join(params) + "\n" + REST, params=given, folder=folder)


def value(text: str, folder: Path | None = None, given: dict[str, object] | None = None) -> np.ndarray:
    found = model(text, folder=folder, given=given).params[-1].data
    assert found is not None
    return found


def error(*params: str, folder: Path | None = None, given: dict[str, object] | None = None) -> OcoError:
    with pytest.raises(OcoError) as caught:
        model(*params, folder=folder, given=given)
    return caught.value


def test_values_that_are_written() -> None:
    assert value("param a[4] in 0..3 = repeat(0..1, 2)").tolist() == [0, 0, 1, 1]
    assert value("param a[3] = 2 * ones(3) + [1, 2, 3] / 2").tolist() == [2.5, 3.0, 3.5]
    assert value("param a[2, 2] = eye(2) - zeros(2, 2)").tolist() == [[1, 0], [0, 1]]
    assert value("param a[2, 3] = 7").tolist() == [[7, 7, 7], [7, 7, 7]]
    assert model("param n = 3", "param a[n] = 1..n").params[-1].data.tolist() == [1, 2, 3]  # type: ignore[union-attr]


def test_whole_numbers_are_kept_whole() -> None:
    assert value("param a = 5").dtype == np.int64
    assert value("param a = 5.0").dtype == np.float64
    assert value("param a[2] in 0..9 = [1.0, 2.0]").dtype == np.int64
    assert value("param a[2] in [0, 9] = [1, 2]").dtype == np.float64


def save(folder: Path, kind: str, array: np.ndarray) -> str:
    path = folder / f"a.{kind}"
    if kind == "csv":
        np.savetxt(path, array, delimiter=",", fmt="%.17g")
    elif kind == "npy":
        np.save(path, array)
    elif kind == "npz":
        np.savez(path, other=array * 2, a=array)
    elif kind == "json":
        path.write_text(json.dumps(array.tolist()))
    else:
        pa = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        parquet.write_table(pa.table({f"c{i}": array[:, i] for i in range(array.shape[1])}), path)
    return path.name


@pytest.mark.parametrize("kind", [k.lstrip(".") for k in READERS])
def test_files_of_every_kind(kind: str, tmp_path: Path) -> None:
    name = save(tmp_path, kind, A)
    assert (value(f'param a[2, 3] = file("{name}")', tmp_path) == A).all()


def test_a_vector_from_a_row_or_a_column(tmp_path: Path) -> None:
    (tmp_path / "row.csv").write_text("1,2,3\n")
    (tmp_path / "column.csv").write_text("\ufeffprice\n1\n2\n3\n")
    assert value('param a[3] = file("row.csv")', tmp_path).tolist() == [1, 2, 3]
    assert value('param a[3] in 1..3 = file("column.csv")', tmp_path).tolist() == [1, 2, 3]


def test_a_file_in_a_folder_below(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    save(tmp_path / "data", "csv", A)
    (tmp_path / "m.oco").write_text('model m\nhorizon T = 9\nparam a[2, 3] = file("data/a.csv")\n' + REST)
    assert (load(tmp_path / "m.oco").params[0].data == A).all()


def test_a_json_object_holds_params_by_name(tmp_path: Path) -> None:
    (tmp_path / "all.json").write_text(json.dumps({"a": [1, 2], "b": 3}))
    assert value('param b = file("all.json")', tmp_path) == 3


def outside(folder: Path) -> list[str]:
    """Ways to name a file that does not lie in `folder / inner`."""
    inner = folder / "inner"
    inner.mkdir()
    save(folder, "csv", A)
    (inner / "link.csv").symlink_to(folder / "a.csv")
    (inner / "up").symlink_to(folder)
    return [
        "../a.csv",
        str(folder / "a.csv"),
        "link.csv",
        "up/a.csv",
        "inner/../../a.csv",
        "C:\\\\a.csv",
        "/etc/passwd",
    ]


def test_files_outside_the_folder_are_not_read(tmp_path: Path) -> None:
    for name in outside(tmp_path):
        assert error(f'param a[2, 3] = file("{name}")', folder=tmp_path / "inner").code in ("OCO802", "OCO801"), name
    assert error('param a[2, 3] = file("a.csv")').code == "OCO802"


def test_a_link_inside_the_folder_is_read(tmp_path: Path) -> None:
    save(tmp_path, "csv", A)
    (tmp_path / "link.csv").symlink_to(tmp_path / "a.csv")
    assert (value('param a[2, 3] = file("link.csv")', tmp_path) == A).all()


def test_what_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    os.mkfifo(tmp_path / "pipe.csv")
    for name in ("folder.csv", "pipe.csv", "none.csv", "none/a.csv", "a\\0.csv"):
        assert error(f'param a = file("{name}")', folder=tmp_path).code == "OCO801", name


BROKEN: dict[str, tuple[str | bytes, str]] = {
    "word.csv": ("1,2\n3,four\n", "row 2, column 2 is 'four'"),
    "empty.csv": ("1,2\n3,\n", "row 2, column 2 is empty"),
    "ragged.csv": ("1,2\n3\n", "row 2 has 1 cells"),
    "nothing.csv": ("", "no numbers"),
    "infinite.csv": ("1,2\n3,inf\n", "[1, 1]"),
    "nan.csv": ("nan,2\n3,4\n", "[0, 0]"),
    "bytes.csv": (b"\xff\xfe1,2", ""),
    "cut.json": ("[[1, 2], [3", ""),
    "text.json": ('[[1, 2], [3, "4"]]', "entry [1, 1] is"),
    "truth.json": ("[[1, 2], [3, true]]", "entry [1, 1] is"),
    "ragged.json": ("[[1, 2], [3]]", "differ in length"),
    "deep.json": ("[" * 100_000 + "]" * 100_000, ""),
    "large.json": (f"[[1, 2], [3, {2**70}]]", "too large"),
    "cut.npy": (b"\x93NUMPY\x01\x00", ""),
    "cut.npz": (b"PK\x03\x04", ""),
    "cut.parquet": (b"PAR1", ""),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_named_with_the_place(name: str, tmp_path: Path) -> None:
    content, place = BROKEN[name]
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    found = error(f'param a[2, 2] = file("{name}")', folder=tmp_path)
    assert found.code == "OCO804"
    assert place in found.message
    assert name in found.message


class Trap:
    """Unpickling it would create a file."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.mark),)


def test_pickles_are_not_opened(tmp_path: Path) -> None:
    trap = np.empty(2, dtype=object)
    trap[:] = [Trap(tmp_path / "sprung"), 1]
    np.save(tmp_path / "a.npy", trap, allow_pickle=True)
    np.savez(tmp_path / "a.npz", a=trap)
    for name in ("a.npy", "a.npz"):
        assert error(f'param a[2] = file("{name}")', folder=tmp_path).code == "OCO804"
    assert not (tmp_path / "sprung").exists()


def test_a_header_that_promises_too_much_allocates_nothing(tmp_path: Path) -> None:
    header = np.lib.format.magic(1, 0)
    body = repr({"descr": "<f8", "fortran_order": False, "shape": (10**6, 10**6)}).encode() + b"\n"
    (tmp_path / "a.npy").write_bytes(header + len(body).to_bytes(2, "little") + body)
    assert "1,000,000,000,000" in error('param a[2] = file("a.npy")', folder=tmp_path).message


def test_a_zip_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", b"x")
    content = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        start = content.index(signature) + offset
        content[start : start + 4] = (MOST_BYTES + 1).to_bytes(4, "little")
    path.write_bytes(content)
    assert error('param a[2] = file("a.npz")', folder=tmp_path).code == "OCO804"


def test_sizes_are_bounded_before_anything_is_allocated() -> None:
    for text in (
        "param a[1000000000] = 0",
        "param a[10] = sum(ones(100000, 100000)) + zeros(10)",
        "param a = sum(repeat(0..999999, 1000))",
        "param a[9] = sum(outer(0..99999, 0..99999)) * ones(9)",
        "param a = sum(1..10000000000000)",
    ):
        assert error(text).code == "OCO805", text
    with pytest.raises(OcoError) as caught:
        parse("model m\nhorizon T = 9\ndecision x[100000, 100000] in box(0, 1)\nminimize sum(x)\n")
    assert caught.value.code == "OCO805"


def test_values_that_a_caller_gives() -> None:
    for given in ([1, 2], (1.0, 2.0), np.array([1, 2]), np.array([1, 2], dtype=np.uint8)):
        assert value("param a[2]", given={"a": given}).tolist() == [1, 2]
    assert value("param a = 3", given={"a": 4}) == 4
    assert value("param a[3]", given={"a": 4}).tolist() == [4, 4, 4]
    assert value("param a[2] in 0..3", given={"a": [0.0, 3.0]}).dtype == np.int64


@pytest.mark.parametrize(
    ("param", "given", "code", "words"),
    [
        ("param a[2]", [1, 2, 3], "OCO321", "[3]"),
        ("param a[2] in 0..3", [1, 4], "OCO806", "entry [1] of `a` is 4, outside 0..3"),
        ("param a[2] in [0, 3]", [1, -0.5], "OCO806", "entry [1] of `a` is -0.5, outside [0, 3]"),
        ("param a[2] in 0..3", [1, 0.5], "OCO806", "entry [1] of `a` is 0.5, not an integer"),
        ("param a[2]", [1, float("nan")], "OCO807", "entry [1]"),
        ("param a[2]", ["one", "two"], "OCO804", "one"),
        ("param a[2]", [[1], [2, 3]], "OCO804", "length"),
        ("param a[2]", [None, 1], "OCO804", "not made of numbers"),
        ("param a", 2**80, "OCO804", "not made of numbers"),
        ("param a[2]", [], "OCO804", "no entries"),
    ],
)
def test_values_that_do_not_do(param: str, given: object, code: str, words: str) -> None:
    found = error(param, given={"a": given})
    assert found.code == code
    assert words in found.message


def test_a_value_for_a_param_that_is_not_there() -> None:
    found = error("param limit = 3", given={"limt": 4})
    assert found.code == "OCO211"
    assert "limit" in found.hint


def test_a_given_value_becomes_part_of_the_model() -> None:
    text = "model m\nhorizon T = 9\nparam n\nparam a[n]\ndecision x[n] in box(0, a)\nminimize sum(x)\n"
    bound = parse(text, params={"n": 3, "a": [1, 2.5, 3]})
    assert bound.decisions[0].shape == (3,)
    assert parse(print_model(bound)) == bound


def test_binding_is_the_same_as_giving_the_values_at_once() -> None:
    text = """model m
param n
param k in 0..n - 1
param b[n] in [0, 9] = 3
param A[n, 2 * n]
horizon T = 10 * n
decision x[2 * n] in box(0, b[0])
decision y[n] in simplex(2)
stream c[n] in [0, b] iid mean = b / 2
stream w[n] ~ pareto(3, mean = 1 + b) in [0, 400]
stream i in 0..k
let z = A @ x
let both = [z[i], w[k], 1]
minimize c @ z + sum(both) + y[k] + sum(x[0:n])
subject to
    cap: z <= w + t  each round
    sum: sum(y) == n
measure dynamic regret
assume path_length <= 7
using coldq with epsilon = 0.5
"""
    given = {"n": 3, "k": 2, "A": np.arange(18.0).reshape(3, 6), "b": 4.5}
    assert bind(parse(text), given) == parse(text, params=given)
    assert bind(bind(parse(text), {"n": 3, "k": 1}), given) == parse(text, params=given)
    bound = bind(parse(text), given)
    assert bound.horizon.rounds is not None
    assert [d.shape for d in bound.decisions] == [(6,), (3,)]
    for wrong, code in (
        ({"n": 0}, "OCO424"),
        ({"n": 3, "k": 3}, "OCO806"),
        ({"n": 3, "b": 10}, "OCO806"),
        ({"q": 1}, "OCO211"),
    ):
        with pytest.raises(OcoError) as caught:
            bind(parse(text), wrong)
        assert caught.value.code == code


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_binding_nothing_changes_nothing(path: Path) -> None:
    assert bind(load(path), {}) == load(path)


def test_shapes_stay_symbolic_until_their_params_have_values() -> None:
    text = "model m\nhorizon T = 9\nparam n\nparam a[n, 2 * n]\ndecision x[2 * n] in box(0, 1)\nminimize sum(a @ x)\n"
    free = parse(text)
    assert str(free.decisions[0].shape[0]) == "2 * n"
    assert free.params[1].data is None
    assert parse(text, params={"n": 2, "a": np.ones((2, 4))}).decisions[0].shape == (4,)
    for given, code in ((0, "OCO308"), (-1, "OCO308"), (1.5, "OCO307")):
        with pytest.raises(OcoError) as caught:
            parse(text, params={"n": given})
        assert {d.code for d in caught.value.diagnostics} == {code}


def test_data_of_a_model_is_read_only() -> None:
    found: Param = model("param a[2] = [1, 2]").params[0]
    assert found.data is not None
    with pytest.raises(ValueError, match="read-only"):
        found.data[0] = 5


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    for name, size in (("a.csv", MOST_TEXT_BYTES + 1), ("a.json", MOST_TEXT_BYTES + 1), ("a.npy", MOST_BYTES + 1)):
        with (tmp_path / name).open("wb") as stream:
            stream.truncate(size)  # takes no place on the disk
        assert error(f'param a[2] = file("{name}")', folder=tmp_path).code == "OCO805"


@pytest.mark.parametrize("count", [60, thorough(300)])
@pytest.mark.parametrize("kind", [k.lstrip(".") for k in READERS])
def test_damaged_files_are_errors_in_words(kind: str, count: int, tmp_path: Path) -> None:
    """Bytes changed, cut and doubled at random: the file is read, or the error names it; nothing else comes out."""
    path = tmp_path / save(tmp_path, kind, A)
    whole, rng, outcomes = path.read_bytes(), np.random.default_rng(0), set()
    for _ in range(count):
        content = bytearray(whole)
        for place in rng.integers(0, len(content), rng.integers(1, 6)):
            content[place] = rng.integers(0, 256)
        cut = int(rng.integers(1, len(content) + 1)) if rng.random() < 0.3 else len(content)
        path.write_bytes(bytes(content[:cut]))
        try:
            model(f'param a[2, 3] = file("{path.name}")', folder=tmp_path)
        except OcoError as found:
            assert path.name in found.message
            outcomes.add(found.code)
    assert "OCO804" in outcomes
