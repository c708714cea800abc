"""Time and memory of ever more rounds, a process for each number of rounds."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

Row = tuple[str, str, str, str, str]
ROUNDS = (10**3, 10**4, 10**5, 10**6, 10**7)
MODEL = Path(__file__).parent.parent.parent / "examples" / "tracking.oco"

# The kernel's own account of this process alone: `ru_maxrss` is that of the process which started it, where that was larger.
MEMORY = """
def memory(kind):
    return sum(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(kind))
"""

ADVANCE = """
import sys, time, numpy as np, oco
plan = oco.compile(oco.load(sys.argv[1]), algorithm="coldq", settings="paper")
rounds, learner = int(sys.argv[2]), plan.learner(backend="c")
inputs = [np.full((1000, *f.type.shape), 0.5) for f in plan.program.feedback]
began = time.process_time()
for _ in range(rounds // 1000):
    learner.advance(inputs, 1000, ["loss"])
print(time.process_time() - began, memory("VmHWM"))
"""

RUN = """
import sys, tempfile, threading, time, warnings, numpy as np, oco
plan = oco.compile(oco.load(sys.argv[1]), algorithm="coldq", settings="paper")
rounds, most, over = int(sys.argv[2]), [0], threading.Event()
plan.compiled("c")
def watch():
    while not over.wait(0.005):
        most[0] = max(most[0], memory("RssAnon"))
with tempfile.TemporaryDirectory() as folder:
    data = {}
    for f in plan.program.feedback:  # files with holes: zeros that take no room
        file = f"{folder}/{f.name}.npy"
        np.lib.format.open_memmap(file, "w+", float, (rounds, *f.type.shape)).flush()
        data[f.name] = np.load(file, mmap_mode="r")
    watcher = threading.Thread(target=watch)
    watcher.start()
    began = time.process_time()
    trace = plan.run(data, backend="c", keep="last")
    seconds = time.process_time() - began
    over.set()
    watcher.join()
    assert len(trace.loss) == rounds
    print(seconds, most[0])
"""


def growth() -> Iterator[Row]:
    """Blocks of a thousand rounds in one learner, and whole runs over memory-mapped files, which keep 40 bytes a round."""
    if not Path("/proc/self/status").exists():
        yield "memory of ever more rounds", "", "skipped: /proc is not there", "", "1.05"
        return
    for what, script, kind in (
        ("learner.advance", ADVANCE, "resident memory"),
        ('plan.run over NPY files, keep="last"', RUN, "memory of its own"),
    ):
        found = []
        for rounds in ROUNDS:
            command = [sys.executable, "-W", "ignore", "-c", MEMORY + script, str(MODEL), str(rounds)]
            out = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
            found.append((float(out[0]) / rounds, int(out[1])))
        shown = ", ".join(f"{seconds * 1e6:.3g}" for seconds, _ in found)
        yield f"{what}: a round of 10^3, 10^4, ..., 10^7", f"{shown} us", "", "", "linear"
        least, most = min(m for _, m in found), max(m for _, m in found)
        yield f"{what}: {kind} over the same", f"{most / 1024:.0f} MB at most", "", f"{most / least:.3f}", "1.05"
