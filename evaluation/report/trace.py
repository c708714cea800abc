"""Trace of a run: a measured run with its summary, plots, dataset and files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from oco.dsl.extras import require_package
from oco.dsl.habits import OF_TRACE, Suggesting
from oco.evaluation.measured_run import MeasuredRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame
    from plotly.graph_objects import Figure as PlotlyFigure
    from xarray import Dataset

    from oco.evaluation.report.run_table import MeasureTable


class Trace(MeasuredRun, Suggesting):
    """Measured run that shows itself in a notebook, as plots and as a dataset, and that files hold."""

    _known_as, _lines = "a run", OF_TRACE

    @classmethod
    def of(cls, run: MeasuredRun) -> Self:
        """Trace of a measured run."""
        parts: dict[str, Any] = {
            "origin": run.origin,
            "notes": run.notes,
            "warnings": run.warnings,
            "budget": run.budget,
            "certificate": run.own_certificate,
        }
        return cls(run.problem, run.data, run.record, run.promise, **parts)

    def __repr__(self) -> str:
        on = f", backend={self.backend!r}" if self.backend else ""
        return f"Trace({self.problem.name}, {self.promise.algorithm}, {self.rounds} rounds{on})"

    def _repr_html_(self) -> str:
        from oco.evaluation.report.run_page import brief

        return brief(self)

    def _repr_latex_(self) -> str:
        from oco.evaluation.report.run_page import brief_latex

        return brief_latex(self)

    def summary(self) -> MeasureTable:
        """Table of loss, regret and violation, in the units of the model, beside what is certified where the learner kept that, what is
        guaranteed, and what holding the first decision would have given.
        """
        from oco.evaluation.report.run_table import summary_table

        return summary_table(self)

    def compare(self, other: MeasuredRun) -> MeasureTable:
        """Table of the measures of this run and another one of the same model and number of rounds. Raises OCO831."""
        from oco.evaluation.report.run_table import comparison

        return comparison(self, other)

    def plot(self, **options: Any) -> Figure:
        """Plot regret, violation and decisions against the round, with the guarantee beside them; `options` are those of
        `plots.figure`. Raises OCO911 without Matplotlib, which the extra `plots` installs.
        """
        from oco.evaluation.report.plots import figure

        return figure(self, **options)

    def interactive(self) -> PlotlyFigure:
        """Plotly figure of regret, violation and losses, whose points name the round, its time and its decision. Raises
        OCO911 without Plotly, which the extra `interactive` installs.
        """
        from oco.evaluation.report.interactive import run_figure

        return run_figure(self)

    def interactive_rules(self, which: str = "some") -> PlotlyFigure:
        """Plotly figure of the loss against the violation of this run and of rules that a practitioner would write, played over
        the same rounds: "some", two cheap ones, or "all". Raises OCO831 for another word, OCO833 where the trace does not hold
        its data, OCO911 without Plotly.
        """
        from oco.evaluation.report.interactive import rules_figure

        return rules_figure(self, which)

    def to_dataset(self) -> Dataset:
        """Dataset (xarray) with dims round (T), constraint (N), equality (M) and those of the decisions. Raises OCO911 without
        xarray, which the extra `traces` installs.
        """
        from oco.evaluation.storage import to_dataset

        return to_dataset(self)

    def to_dataframe(self) -> DataFrame:
        """Table (pandas), a row a round: loss, constraints, equalities, duals, and entries of decisions where all were
        kept. The index is the round, from 1. Raises OCO911 without pandas.
        """
        require_package("pandas", "a table of a trace")
        import pandas

        from oco.evaluation.storage import table_of

        return pandas.DataFrame(table_of(self)).set_index("round")

    def save(self, path: str | Path) -> None:
        """Write as NetCDF (.nc) or Zarr (.zarr) with everything that `load_trace` needs, or as a Parquet table of the
        rounds. Raises OCO833 for another ending of the name, OCO833 or OCO911 without the extra of the format, OCO903 where the file
        cannot be written.
        """
        from oco.evaluation.storage import save

        save(self, Path(path))
