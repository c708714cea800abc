"""Data and the learner (OCO8xx)."""

from __future__ import annotations

from oco.dsl.codes.base import Code, Stage

DATA: dict[str, Code] = {
    "OCO820": Code(
        "data cannot be read",
        "Data for a run is a path to a CSV, TSV, Parquet, Arrow, NPY or NPZ file with one row a round, "
        "a dict of arrays with the round first, "
        "a data frame, an iterator of dicts, or nothing where the model can draw its own.",
        'oco.load_data(model, "prices.xlsx")',
        "Save the data in one of these forms and check the path.",
        Stage.RUN,
    ),
    "OCO821": Code(
        "the table is not rectangular",
        "Every row has a cell for every column, and every column has a name of its own.",
        'oco.load_data(model, "prices_with_a_short_row.csv")',
        "Repair the line that is named.",
        Stage.RUN,
    ),
    "OCO822": Code(
        "a stream has no column",
        "A stream or context takes the column of its name; a vector takes `price[0]`, `price[1]`, ..., `price_0`, `price_1`, ... or "
        "`price.ANYTHING` in the order of the file, or one array of the right shape. A stream with a distribution is drawn when the data "
        "lacks it.",
        'oco.load_data(model, {"cost": costs})',
        "Rename the column, or say which columns fill the stream: `--map price=CAPITL,CENTRL`.",
        Stage.RUN,
    ),
    "OCO823": Code(
        "the number of columns does not fit the stream",
        "A stream of shape [10] needs ten numbers a round.",
        'oco.load_data(model, {"price": prices_of_eleven_zones})',
        "Choose the columns with `--map`, or change the shape in the model.",
        Stage.RUN,
    ),
    "OCO835": Code(
        "the names in the data are not those of the index",
        "A stream over an index, `stream price[zone]`, takes columns by name in any order: `price[NYC]`, `price.NYC`, `price_NYC`, or "
        "`NYC` alone where no other stream is over the index; or, of a long table with a row for each name in each round, the column "
        "`price` beside one of the names.",
        'oco.load_data(model, {"price[NYC]": a, "price[WESST]": b})  # index zone = [NYC, WEST]',
        "Correct the names that are listed; `--map zone=Name` says which column has the names of a long table.",
        Stage.RUN,
    ),
    "OCO824": Code(
        "a mapping names what is not there",
        "`--map stream=column,column` names a stream of the model and columns of the data; `*` stands for "
        "any characters of a name.",
        'oco.load_data(model, "prices.csv", mapping={"price": ["CAPITOL"]})',
        "Take the name from the list that the message gives; `oco data` shows all.",
        Stage.RUN,
    ),
    "OCO825": Code(
        "a stream cannot be drawn",
        "Only a stream with a stated distribution (`~ uniform(0, 1)`) can be drawn. Other streams need data.",
        "oco.load_data(model, None)",
        "Give data, or state a distribution in the model.",
        Stage.RUN,
    ),
    "OCO826": Code(
        "the number of rounds does not fit",
        "All streams have the same number of rounds, at least one, and at least as many as are asked for.",
        'oco.load_data(model, {"price": numpy.ones((10, 3)), "jobs": numpy.ones(9)})',
        "Cut or complete the data, or change the number of rounds.",
        Stage.RUN,
    ),
    "OCO827": Code(
        "a value is missing",
        "An empty cell, NaN or an infinite number stands where a stream needs a number.",
        'oco.load_data(model, {"price": [1.0, float("nan")]})',
        "Fill it, or say `--on-missing hold` (the last value before) or `--on-missing skip` (leave the round out).",
        Stage.RUN,
    ),
    "OCO828": Code(
        "a cell is not a number",
        "The cells of a column that fills a stream are numbers with a decimal point.",
        'oco.load_data(model, {"price": ["1.0", "cheap"]})',
        "Correct the cell, or map another column.",
        Stage.RUN,
    ),
    "OCO829": Code(
        "a value is not whole",
        "A stream declared with `in 0..k-1` takes integers.",
        'oco.load_data(model, {"user": [1.5]})',
        "Correct the data, or declare the stream with `in [lo, hi]`.",
        Stage.RUN,
    ),
    "OCO830": Code(
        "a value is out of bounds",
        "The bounds of a stream are part of the model: facts and guarantees rest on them, so data that leaves them is an error.",
        'oco.load_data(model, {"price": [-1051.0]})',
        "Check the data, or widen the bounds in the model. A wrong column is left out with `--map`, in Python `mapping`.",
        Stage.RUN,
    ),
    "OCO831": Code(
        "what is asked of a trace does not exist",
        "Regret is `static` or `dynamic`, violation `hard` or `soft`; `keep` is `all`, `last`, a number or names of decisions.",
        'trace.regret("best")',
        "Use one of the words that the message gives.",
        Stage.RUN,
    ),
    "OCO832": Code(
        "the comparator was not computed",
        "Regret compares with the best decision in hindsight. Where finding it costs more than the budget, or no solver here reaches the "
        "problem, there is no number.",
        'trace.regret("dynamic")',
        "Ask `trace.comparator(kind).words` for the reason; give a larger budget where that is it.",
        Stage.RUN,
    ),
    "OCO833": Code(
        "a trace cannot be written or read",
        "Traces are written as NetCDF (`.nc`) or Zarr (`.zarr`), whole, and read back from these; or as Parquet, a table of the rounds.",
        'trace.save("trace.txt")',
        "Choose one of these forms; a file from another version of oco is read with that version.",
        Stage.RUN,
    ),
    "OCO834": Code(
        "a file unpacks to too much",
        "What the content of a file takes in memory is looked at before anything is read: at most 1 GiB for a file with rounds and for a "
        "trace, or 16 times what it takes on the disk. A file of a few kilobytes may unpack to gigabytes.",
        'oco.load_data(model, "bomb.parquet")',
        "If the file is yours, save it without compression.",
        Stage.RUN,
    ),
}
