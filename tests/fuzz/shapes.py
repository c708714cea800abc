"""`python tests/fuzz/shapes.py SECONDS [SEED]`: statements of all kinds over small shapes, for so long; prints those that end in a bug."""

from __future__ import annotations

import random
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz.clock import OutOfTime, within
from shape_cases import cases, outcome

LONGEST = 60.0
"""Seconds after which a model is left."""


def main() -> int:
    end, seed = time.monotonic() + float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    texts = list(dict.fromkeys(cases()))
    random.Random(seed).shuffle(texts)
    ends: Counter[str] = Counter()
    faults = 0
    for text in texts:
        if time.monotonic() > end:
            break
        try:
            with within(LONGEST):
                code, trace = outcome(text), ""
        except OutOfTime:
            code, trace = "no time", ""
        except Exception:  # whatever it is, it is what is looked for
            code, trace = "fault", traceback.format_exc()
        ends[code or "done"] += 1
        if code in ("OCO999", "fault"):
            faults += 1
            print(f"\n{code}\n{text}\n{trace[-1500:]}")
    print(f"{sum(ends.values())} of {len(texts)} models: {dict(ends)}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
