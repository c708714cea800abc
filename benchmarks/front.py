"""Picture of the README: the learner and every rule that fits examples/job_scheduling.oco, loss against violation.

`python benchmarks/front.py` writes docs/front.svg, in about half a minute of processor time.
"""

from __future__ import annotations

from pathlib import Path

import oco
from oco.evaluation.baselines.rule_table import rule_table
from oco.evaluation.baselines.rules import RuleChoice, beside
from oco.evaluation.cost import Trade
from oco.evaluation.report.rule_plots import loss_against_violation
from oco.evaluation.report.style import in_style

ROOT = Path(__file__).parent.parent


def main() -> None:
    plan = oco.compile(
        oco.load(ROOT / "examples" / "job_scheduling.oco"), data=ROOT / "examples/data/nyiso_2017-05.csv"
    )
    trace = plan.run(ROOT / "examples/data/nyiso_2017-05.csv")
    rules = beside(RuleChoice.ALL, trace.problem, trace.data, Trade.of(plan.choice.played, plan.tradeoff))
    table = rule_table(trace, rules)
    print(table.learner, *table.lines, sep="\n")
    with in_style():
        from matplotlib.figure import Figure

        page = Figure(figsize=(7.2, 3.9), layout="constrained")
        loss_against_violation(table, page.subplots())
        page.savefig(ROOT / "docs" / "front.svg", metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    main()
