"""The table of tightness: proved bound over true supremum, for every case of the tests. Run: python benchmarks/tightness.py"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from facts_tight_cases import CASES

from oco.compiler.facts.check import check
from oco.dsl.load import parse


def main() -> None:
    print(f"{'':50} {'kind':12} {'|f|':>8} {'|grad|_2':>9} {'|grad|_inf':>10} {'seconds':>8}")
    for case in CASES:
        start = time.perf_counter()
        facts = check(parse(case.model))
        seconds = time.perf_counter() - start
        ratios = [
            f"{facts[f'loss.{key}'].value / case.stated[key]:.4f}" if key in case.stated else "-"
            for key in ("bound", "lipschitz.l2", "lipschitz.l1")
        ]
        print(f"{case.name:50} {case.kind:12} {ratios[0]:>8} {ratios[1]:>9} {ratios[2]:>10} {seconds:8.2f}")


if __name__ == "__main__":
    main()
