"""The values of params, and the files that they come from (OCO80x)."""

from __future__ import annotations

from oco.dsl.codes.base import Code, Stage


def _model(param: str) -> str:
    return f"model m\nhorizon T = 10\n{param}\ndecision x[3] in box(0, 1)\nstream c[3] in [-1, 1]\nminimize c @ x\n"


PARAMS: dict[str, Code] = {
    "OCO801": Code(
        "a data file is not there",
        "The path of a `file(...)` is relative to the model file.",
        'oco.load("model.oco")  # with: param a[3] = file("missing.csv")\n',
        "Correct the path, or put the file beside the model.",
        Stage.RUN,
    ),
    "OCO802": Code(
        "a data file is outside the model's folder",
        "A model reads files in its own folder and below it, also through links, so that it is safe to open a model from elsewhere. A "
        "model given as "
        "text has a folder only when `folder=` says so.",
        _model('param a[3] = file("../a.csv")'),
        "Copy the file beside the model.",
    ),
    "OCO803": Code(
        "a data file of an unknown kind",
        "Data is read from csv, npy, npz, json and parquet files.",
        'oco.load("model.oco")  # with: param a[3] = file("data.xlsx")\n',
        "Save the data in one of these forms.",
        Stage.RUN,
    ),
    "OCO804": Code(
        "data that is not an array of numbers",
        "A file, or a value given for a param, holds numbers in rows of equal length. Text, missing cells, infinite values and Python "
        "objects are "
        "refused; the message names the place.",
        'oco.parse(text, params={"a": ["one", "two"]})\n',
        "Correct the cell that is named.",
        Stage.RUN,
    ),
    "OCO805": Code(
        "more data than a model may hold",
        "Fixed data has at most 100,000,000 numbers, and formulas make at most as many in a model, parts of formulas included. "
        "The files of a model unpack to at most 160 MB, or 16 times what they take on the disk. "
        "Decisions have at most 10,000,000 entries together, unless they may be kept as factors, and so have streams; the rows of a "
        "polyhedron have at most 25,000,000 numbers. More does not fit into the memory of most machines with what is made of it. "
        "Sizes are checked before anything is allocated.",
        _model("param a[10, 100000000] = 0"),
        "Check the sizes; data of this size comes in streams.",
    ),
    "OCO806": Code(
        "a value of a param is outside its range",
        "A param with a range, `in [lo, hi]` or integers `in a..b`, holds values of that range alone.",
        _model("param a[3] in 0..4 = [0, 2, 5]"),
        "Correct the entry that is named, or the range.",
    ),
    "OCO808": Code(
        "data by name that do not fit the index",
        "Fixed data whose axis is an index may come by name, in any order: from a csv file with a column of the names, as a dict, a series "
        "or a frame of pandas, an array of xarray. Each name has one value.",
        _model("index zone = [NYC, WEST]\nparam w[zone]"),
        "Add the names that are listed as missing, and take out or correct those that the index does not have.",
        Stage.RUN,
    ),
    "OCO807": Code(
        "a value that is not a finite number",
        "The value of a param, a bound or an argument comes out infinite or undefined: a division by zero, a logarithm of zero, numbers "
        "too large.",
        _model("param a[3] = 1 / zeros(3)"),
        "Correct the expression.",
    ),
}
