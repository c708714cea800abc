"""Plan as a user holds it: the choices made, and the learner, the run and the module that follow from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from oco.backends import registry
from oco.backends.base import Compiled
from oco.backends.capabilities import EXACT
from oco.backends.choose import BackendChoice, choose_backend
from oco.backends.contract import Contract
from oco.backends.learner import Learner
from oco.backends.notifying import OnRound, OnWarning
from oco.backends.registry import backend as find_backend
from oco.backends.registry import compiled_by, make_fleet, make_learner, registered, restored, usable
from oco.compiler.promises.making import promise_of_plan
from oco.compiler.promises.rendering import render
from oco.compiler.selection import plan as core
from oco.compiler.selection.continuation import continues
from oco.compiler.selection.plan_notices import plan_notices
from oco.compiler.selection.shared_program import with_program_of
from oco.contract import Recipe, contract_of
from oco.differentiable import Differentiable
from oco.dsl.calls import checked_call
from oco.dsl.diagnostics import Diagnostic, contained
from oco.dsl.habits import OF_PLAN, Suggesting
from oco.dsl.load import parse
from oco.dsl.records import dataclass
from oco.dsl.statements import Feedback
from oco.dsl.writing import write_files
from oco.evaluation.report.frontier import plot_frontier
from oco.evaluation.report.plan_page import Explanation, plan_html, plan_latex
from oco.facts import Facts
from oco.notebook_bar import notebook_bar
from oco.plan_files import PlanFiles
from oco.trials import trial_of

if TYPE_CHECKING:
    from oco.backends.fleet import Fleet
    from oco.evaluation.comparators import ComparatorBudget
    from oco.evaluation.data import Data
    from oco.evaluation.measured_run import MeasuredRun
    from oco.evaluation.recorder import Keep
    from oco.evaluation.report.trace import Trace
    from oco.evaluation.run import Progress


PUBLIC = (
    *("alerting", "algorithm", "certified", "choice", "explain", "facts", "files", "fleet", "for_rounds", "frontier"),
    *("guarantee", "horizon", "interactive_frontier", "lean", "learner", "loss_of_settings", "model", "plot_frontier"),
    *("program", "recipe", "replay", "run", "settings", "source", "to_json", "usage", "verdicts", "warnings"),
    *("with_horizon", "with_precision", "write"),
)
"""Names that `dir(plan)` lists."""
RESTORED = 8  # plans of recipes that are kept, each for all the learners that are restored from it


@dataclass(frozen=True, eq=False, repr=False)
class Plan(core.Plan, Differentiable, Suggesting):
    """Model with its algorithm, settings and guarantee; makes learners. `target` is the backend's name, None for the
    fastest; `precision` that of its learners and files on backends that have it. A value: every method leaves it as it is.
    """

    _known_as, _lines = "a plan", OF_PLAN
    facts: Facts
    target: str | None = None
    precision: str = EXACT

    @classmethod
    def of(cls, plan: core.Plan, target: str | None = None, precision: str = EXACT) -> Self:
        """Bind a plan of the compiler to a backend. Raises OCO732 for an unknown name."""
        find_backend(target)
        parts = {f.name: getattr(plan, f.name) for f in fields(core.Plan)} | {"facts": Facts.of(plan.facts)}
        return with_program_of(cls(**parts, target=target, precision=precision), plan)

    @classmethod
    def from_recipe(cls, recipe: Any, target: str | None = None, precision: str = EXACT) -> Self:
        """Plan that a saved state names. Raises OCO850 where the recipe is not valid."""
        return cls._of_words(Recipe.read(recipe).words, target, precision)

    @classmethod
    @lru_cache(maxsize=RESTORED)
    def _of_words(cls, words: str, target: str | None, precision: str) -> Self:
        known = Recipe.of_words(words)
        with contained("restoring this model"):
            model = parse(known.model, name=known.name)
            options: Any = {"tradeoff": known.tradeoff, "effort": known.effort, "season": known.season}
            made = core.compile_plan(model, known.algorithm, known.settings or known.mode, **options)
            plan = cls.of(made, target, precision)
            plan = plan.certified(known.certify) if known.certify else plan
            plan = plan.alerting(known.alert) if known.alert else plan
            # The text may print otherwise now; the state goes with the text that it was saved with.
            plan.__dict__["contract"] = replace(plan.contract, recipe={**plan.recipe, "model": known.model})
        return plan

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """Warnings about the model, and about its guarantee at this horizon."""
        return (*super().warnings, *plan_notices(self.choice))

    @cached_property
    def contract(self) -> Contract:
        """Contract of the plan, which backends print and learners check."""
        again = self.alert is None and continues(self.choice.situation, self._winner)
        continued = self._epochs_after if again else None
        return replace(contract_of(self), restored=restored_learner, continued=continued)

    @cached_property
    def _continued(self) -> Self | None:
        return self.continued()

    def _epochs_after(self, backend: str) -> tuple[Compiled, Contract]:
        """Program and contract of the epochs after the horizon."""
        plan = self._continued
        assert plan is not None
        return plan.compiled(backend), plan.contract

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Recipe, backend and precision: another process makes the same plan of them."""
        return Plan.from_recipe, (self.contract.recipe, self.target, self.precision)

    def __dir__(self) -> list[str]:
        return sorted(PUBLIC)

    def backend_for(self, rounds: int | None, backend: str | None = None) -> BackendChoice:
        """Backend for a run of so many rounds, None for an unknown number, with the reason: the one named here, else the
        plan's own, else the one that compiles and runs them in the least time."""
        return choose_backend(self.program, rounds, backend or self.target)

    def compiled(self, backend: str | None = None) -> Compiled:
        """Program as functions of a backend, compiled on first use. Raises OCO732 for an unknown backend, and OcoError where
        one cannot run here."""
        target = find_backend(backend or self.target)
        if target.name not in self._compiled:
            self._compiled[target.name] = compiled_by(target.name, self.program, self.contract, self.precision)
        return self._compiled[target.name]

    @cached_property
    def _files(self) -> PlanFiles:
        return PlanFiles(self.program, self.contract, self.target, self.precision)

    @cached_property
    def _compiled(self) -> dict[str, Compiled]:
        return {}

    def trial(self, rounds: int, runs: int) -> Callable[[Mapping[str, float], Data, int], Trace]:
        """Runs with other values of the free constants, of so many rounds each: numbers, data, seed -> trace.

        Settings are those of the plan's horizon, of which the rounds may be the beginning; without a horizon those of so
        many rounds. Runs share one program; constants that are counts, and so set shapes of arrays, get one for each value.
        """
        return trial_of(self, rounds, runs)

    @checked_call
    def learner(
        self,
        seed: int = 0,
        start: Any = None,
        draws: Mapping[str, Any] | None = None,
        backend: str | None = None,
        on_out_of_bounds: str = "error",
        timeout: float | None = 0.0,
    ) -> Learner:
        """Learner before its first round.

        seed   of the algorithm's own random numbers; `draws` gives them as arrays instead, by name
        start  the first decision (a dict for several), by default the domain's centre
        on_out_of_bounds  "error", "clip" or "accept" data outside the bounds that the model states
        timeout  seconds that a call waits while another thread uses the learner: 0 for an error at once, None for ever

        Raises OCO846 for a start that is no decision of the domain, OCO849 for a seed or draws that are wrong, OCO732 for an
        unknown backend.
        """
        compiled = self.compiled(self.backend_for(self.horizon, backend).name)
        options: dict[str, Any] = {"draws": draws, "on_out_of_bounds": on_out_of_bounds, "timeout": timeout}
        return make_learner(compiled, self.contract, seed=seed, start=start, **options)

    def player(self, rounds: int, backend: str, **options: Any) -> Learner | None:
        """Learner with the decisions of `learner(backend=backend, **options)` for whole runs of so many rounds, which is given streams and
        discloses of them what the model's feedback does; None where the feedback is the streams, or such runs go round by round.
        """
        problem, reads = self.canonical, self.program
        over = self.contract.continued is not None and self.horizon is not None and rounds > self.horizon
        by_rounds = problem.feedback is Feedback.FULL or not registered(backend).whole_runs
        if by_rounds or any((problem.delay, reads.context, reads.previous, reads.factored, over)):
            return None
        if backend not in self._players:
            contract = contract_of(self, discloses=True)
            self._players[backend] = compiled_by(backend, self.disclosing, contract, self.precision), contract
        return make_learner(*self._players[backend], **options)

    @cached_property
    def _players(self) -> dict[str, tuple[Compiled, Contract]]:
        return {}

    @checked_call
    def fleet(
        self,
        size: int,
        start: Any = None,
        seeds: Sequence[int] | None = None,
        backend: str | None = None,
        workers: int = 1,
        timeout: float | None = 0.0,
    ) -> Fleet:
        """Independent learners that step together, of precision exact; arrays have the learner first, (size, *shape).

        start    the first decision: one for all, or (size, *shape)
        seeds    of each learner's random numbers; by default 0, 1, 2, ...
        workers  threads at most that share the work in C
        timeout  as for `learner`

        Raises OcoError as `learner` does.
        """
        rounds = None if self.horizon is None else size * self.horizon
        target = self.backend_for(rounds, backend).name
        exact = self if self.precision == EXACT else self.with_precision(EXACT)
        summed = self.certify and find_backend(target).fleet(self.program, size).writes_all
        own = exact._summed_at_once if summed else exact
        return make_fleet(
            own.compiled(target), own.contract, size, start=start, seeds=seeds, workers=workers, timeout=timeout
        )

    @cached_property
    def _summed_at_once(self) -> Self:
        """Plan whose certificates sum each round when it comes, since rounds that wait would be copied in every round."""
        return replace(self, pending=False)

    @checked_call
    def run(
        self,
        data: Any = None,
        rounds: int | None = None,
        seed: int = 0,
        start: Any = None,
        draws: Mapping[str, Any] | None = None,
        backend: str | None = None,
        keep: Keep = "all",
        progress: Progress | None = None,
        *,
        mapping: Mapping[str, str | Sequence[str]] | None = None,
        journal: str | Path | None = None,
        budget: ComparatorBudget | None = None,
        on_missing: str = "error",
        on_round: OnRound | None = None,
        on_warning: OnWarning | None = None,
    ) -> Trace:
        """Run a learner over data: a path, arrays with the round first, an iterator of rounds, or None to draw.

        The plan does not change: it decides as `learner()` does on these rounds, even where their number is not its horizon.

        mapping     columns that fill each stream: {"price": "zone.*"}; `on_missing` values: "error", "hold" or "skip"
        budget      of time and memory for the trace's comparators
        journal     a folder that records every round before it counts (see `oco.open`): the same call continues after a crash
        on_round    called with the feedback of each round (where C plays many at once, after those), `on_warning` with each warning's text
        progress    called now and then with the round, the loss and the violation so far; None: a bar in notebooks

        Raises OcoError where the data do not fit the model (OCO8xx), with the round and the entry.
        """
        from oco.evaluation.report.trace import Trace
        from oco.evaluation.run import run

        options: dict[str, Any] = {"mapping": mapping, "journal": journal, "budget": budget, "on_missing": on_missing}
        options |= {"on_round": on_round, "on_warning": on_warning}
        bar = notebook_bar(self.model.name, rounds or self.horizon) if progress is None else None
        try:
            return Trace.of(run(self, data, rounds, seed, start, draws, backend, keep, progress or bar, **options))
        finally:
            if bar is not None:
                bar.close()

    def replay(self, trace: MeasuredRun, progress: Progress | None = None) -> Trace:
        """Repeat the run of a trace with the same data, draws and start, hence the same decisions, bit for bit.

        Raises OCO833 where the trace does not hold its data.
        """
        from oco.evaluation.replay import require_data
        from oco.evaluation.report.trace import Trace
        from oco.evaluation.run import run

        require_data(trace)
        start, draws = dict(trace.origin.start) or None, dict(trace.origin.draws) or None
        backend = trace.backend or None
        return Trace.of(run(self, trace.data, None, trace.seed, start, draws, backend, progress=progress))

    def explain(self) -> Explanation:
        """Table of all algorithms: chosen, applicable, or why not and what would make it apply."""
        return Explanation.of(self.choice)

    def _repr_html_(self) -> str:
        return plan_html(self._winner)

    def _repr_latex_(self) -> str:
        return plan_latex(self._winner)

    def plot_frontier(self, ax: Any = None) -> Any:
        """Draw `frontier()`: regret against violation over the weights, on `ax` or new axes, which it returns. Raises OCO911
        without Matplotlib, which the extra `plots` installs.
        """
        return plot_frontier(self.frontier(), ax)

    def interactive_frontier(self) -> Any:
        """Plotly figure of `frontier()`, whose points name their weight and both bounds. Raises OCO911 without Plotly, which
        the extra `interactive` installs.
        """
        from oco.evaluation.report.interactive import frontier_figure

        return frontier_figure(self.frontier())

    def with_horizon(self, T: int) -> Self:
        """Plan of the same algorithm for another horizon, with settings and guarantee for its number of rounds."""
        return type(self).of(super().with_horizon(T), self.target, self.precision)

    @checked_call
    def with_precision(self, precision: str) -> Self:
        """This plan with learners "exact", every operation of the rule rounded on its own, or in C "fast": products and sums rounded
        together, sums in another order, exponentials within 1e-13 of themselves. Fleets are exact. Raises OCO740 for other names.
        """
        return self.of(self, self.target, registry.precision_of_learners(precision))

    def for_rounds(self, rounds: int) -> Self:
        """Plan for data of so many rounds: this one where they match its horizon or the horizon is unknown."""
        return self if self.horizon in (None, rounds) else self.with_horizon(rounds)

    def files(self, backend: str | None = None, precision: str | None = None) -> dict[str, str]:
        """Files to run elsewhere, texts by file name: one module for NumPy; a source, a header and an example for C.

        precision  of their numbers: "exact", or for C "fast" or "float32" (`with_precision`, docs/float32.md); None: the plan's, where the
                   backend has it

        Raises OcoError: OCO734 for a backend that writes none, OCO740 for one that writes none of this precision.
        """
        return self._files.texts(backend, precision)

    def lean(self) -> str:
        """File of Lean 4 with the guarantee as a theorem and its constants as checked inequalities. Raises OCO870 where the
        plan is none of the family.
        """
        return render(promise_of_plan(self))

    def usage(
        self,
        path: str | Path,
        data: str | Path,
        backend: str | None = None,
        target: str | None = None,
        precision: str | None = None,
    ) -> str:
        """Sentences on the files that `write` puts at `path`, with a command that runs them on `data`."""
        rounds = None if self.canonical.feedback.gives_values_alone else str(data)
        names = [place.name for place in self.files_at(path, backend, precision, target)]
        chosen = registry.builder(target) if target else backend or self.target
        return registry.usage_of(chosen, str(path), names, rounds, precision or self.precision)

    def source(self, backend: str | None = None, precision: str | None = None) -> str:
        """Text of the standalone module; for C, of the source file. Raises what `files` raises."""
        return next(iter(self.files(backend, precision).values()))

    def files_at(
        self, path: str | Path, backend: str | None = None, precision: str | None = None, target: str | None = None
    ) -> Mapping[Path, str | bytes]:
        """Contents of the files that `write` puts at `path`, by their places. Raises what `write` raises of them."""
        return self._files.placed(Path(path), backend, precision, target)

    def write(
        self, path: str | Path, backend: str | None = None, precision: str | None = None, target: str | None = None
    ) -> list[Path]:
        """Write the learner; returns the paths of its files.

        For NumPy one module where the path has an ending, as `learner.py`, else a folder with the rule and the learner that runs it as
        modules of their own; for C a folder. Each file is written completely or not at all. `precision` is that of `files`. `target`: a
        platform to compile for, "wasm" for WebAssembly with an ES module. Raises what `files` raises, OCO690 to OCO692 where it cannot be
        compiled for the target, and OCO903 where a file cannot be written.
        """
        places = self.files_at(path, backend, precision, target)
        write_files(places)
        return list(places)

    @property
    def recipe(self) -> dict[str, Any]:
        """JSON values from which `from_recipe` makes this plan again: model, algorithm, settings, tradeoff, effort."""
        return dict(self.contract.recipe)


def restored_learner(state: Mapping[str, Any], backend: str | None = None) -> Learner:
    """Learner from a state and the recipe in it; on the backend that saved it where that works here and none is named."""
    plan = Plan.from_recipe(state.get("recipe"), backend or usable(state.get("backend")))
    with contained("restoring this model"):
        return restored(state, plan.compiled(plan.backend_for(plan.horizon).name), plan.contract)
