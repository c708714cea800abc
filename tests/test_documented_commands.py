"""Command lines of the pages: each that begins with `oco` runs, as it stands or with stand-ins for what it leaves open."""

from __future__ import annotations

import io
import re
import shlex
import shutil
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow
import pytest
import typer
from pyarrow import parquet
from thorough import corners

import oco
from oco.cli import main
from oco.cli.app import COMMANDS, app_for

ROOT = Path(__file__).parent.parent
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/papers/*.md"), *ROOT.glob("grammar/*.md")]
PROGRAMS = ("oco", "make", "pip", "cc")
MODEL = """\
# run: --data prices.csv
model pages
horizon T = 40
decision x[2] in box(-1, 1)
stream a[2] in [-1, 1]
minimize sum_squares(x - a)
subject to
    cap: sum(x) <= 1  each round  # oco: ignore OCO636
using coldq
"""
STAND_INS = {
    "FILE": "prices.csv",
    "DIR": "results",
    "NAME": "shop",
    "PROBLEM": "pacing",
    "CODE": "OCO203",
    "SECONDS": "1",
    "TIMES": "2",
    "FILE.lean": "promise.lean",
    "COMMAND": "check model.oco",
    "WORDS": "check model.oco",
    "EFFORT": "2",
    "examples/NAME.oco": "examples/tracking.oco",
}
"""Words in capitals that stand for the user's own, and a word for each."""
VALUES = {
    "--data": "prices.csv",
    "--out": "results",
    "--set": "alpha=2",
    "--algorithm": "coldq",
    "--algorithms": "coldq,nested",
    "--grid": "alpha=1,2",
    "--seconds": "20",
    "--memory": "2048",
    "--effort": "2",
    "--baselines": "none",
    "--budget": "0.2",
    "--param": "",
    "--replay": "trace.nc",
    "--journal": "journal",
    "--backend": "c",
    "--select": "OCO631",
    "--ignore": "OCO631",
    "--lean": "promise.lean",
}
"""Values of options that a page names without one."""
EVENTS = '{"key": "a"}\n'
"""Standard input of a pipe."""
DATA = ["--data", "prices.csv"]
LESS = {"--comparators": "none", "--baselines": "none", "--rounds": "24"}
"""Options that runs get here beside those of the page: nothing that the page is not about takes time."""
NOT_RUN = {
    "oco watch": "it serves a page until Ctrl-C: test_watch.py runs it",
    "oco serve": "it serves until Ctrl-C: test_service.py runs it",
    "oco compile --target wasm": "it takes a compiler of an extra: test_webassembly.py compiles where that is",
    "oco compile model.oco --target wasm": "so does this",
    "oco fleet model.oco --engine ray": "it takes a package of an extra: test_cluster_engines.py runs fleets where that is",
    "oco tune model.oco --gradient": "it takes the package of an extra: test_jax_gradients.py tunes so where that is",
    "oco tune --gradient": "so does this",
    "oco lsp": "it serves an editor until that ends: test_language_server.py runs it",
    "make demo": "it makes an environment and installs packages; .ci runs it",
    "make test": "this is it",
    "make bench": "minutes of timing",
    "make fuzz": "an hour",
    "make large": "ten minutes, twice",
    "make soak": "10^7 rounds of every algorithm",
    "make release": "it builds, and runs this in what it has built: test_release.py",
    "make vscode": "it takes packages of npm; test_vscode.py packages and starts the extension",
    "make tree-sitter": "it takes a tool of npm; test_tree_sitter.py compares what it writes",
    "make playground": "it takes packages of npm: test_playground.py builds the page",
    "make jax": "tests of the backend whose package is large",
    "make editors": "the two above",
    "make engines": "it installs packages: the two below",
    "make streams": "it installs Flink and Quix Streams",
    "make clusters": "it installs Ray",
    "make audit": "it asks a registry",
    "make tables": "test_parser_tables.py compares what it writes",
    "make stubs": "test_words.py compares what it writes",
    "make site": "minutes; .github/workflows/docs.yml builds it",
    "make smoke-oldest": "it installs packages",
    "make smoke-newest": "it installs packages",
    "pip install": "the registry is not at hand in tests; .ci installs the wheel",
    "cc -O2": "no command, but what a figure was compiled with: test_c99_compilers.py compiles",
}
"""Command lines that do not run here, with the reason."""


def written(text: str) -> Iterator[tuple[str, str]]:
    """Command lines of a page, with those options that stand beside them in a row of a table."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    for language, block in blocks:
        if language in ("", "sh", "bash", "console"):
            for line in block.replace("\\\n", " ").splitlines():
                line = re.sub(r"^\s*(next\s+)?(\$ )?", "", line).split("  #")[0]
                if line.split(" ")[0] in PROGRAMS:
                    yield " ".join(line.split()), ""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    for part in re.split(r"\n\n|\n(?=[|*-])", prose):
        spans = [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", part)]
        first = next((span for span in spans if span.startswith("oco ")), "")
        for span in spans:
            if span.split(" ")[0] in PROGRAMS and len(span.split()) > 1:
                yield span, ""
            elif span.startswith("--") and first and part.startswith("|"):
                yield span, first


def commands() -> dict[str, str]:
    """Command lines of all pages, each with a page that has it."""
    results: dict[str, str] = {}
    for page in PAGES:
        for line, owner in written(page.read_text(encoding="utf-8")):
            base = " ".join(owner.split(" ")[:3] if len(owner.split()) > 2 else owner.split(" ")[:2])
            results.setdefault(f"{base} {line}".strip(), page.name)
    return results


LINES = commands()
OURS = [line for line in LINES if line.startswith("oco ") and not line.startswith(tuple(NOT_RUN))]


def runnable(line: str) -> Iterator[list[str]]:
    """Words of a command line that can be run: choices apart, stand-ins for capitals, values and the model added."""
    choices = [word.split("|") if re.fullmatch(r"[a-z]+(\|[a-z]+)+", word) else [word] for word in line.split()]
    for words in product(*choices):
        replaced = shlex.split(" ".join(STAND_INS.get(word, word) for word in words))[1:]
        yield with_model(with_values(replaced))


def with_values(words: list[str]) -> list[str]:
    """Words with a value behind each option that takes one and has none."""
    results = []
    for word, following in zip(words, [*words[1:], "--"]):
        results.append(word)
        if word in VALUES and following.startswith("-"):
            results.append(VALUES[word])
    return results


def with_model(words: list[str]) -> list[str]:
    """Words with the files that their command needs, where they stand after it alone."""
    name = next((word for word in words if word in COMMANDS), "")
    files = [word for word in words if word == "-" or Path(word).suffix in (".oco", ".json", ".nc")]
    at = words.index(name) + 1 if name else 0
    if name in ("check", "explain", "compile", "run", "tune", "data", "fmt", "lint", "prove", "pipe") and not files:
        words = [*words[:at], "model.oco", *words[at:]]
    if name == "verify-certificate" and not files:
        words = [*words, "certificate.json", "trace.nc"]
    if name == "verify-promise" and not words[at:]:
        words = [*words, "promise.lean"]
    if name == "migrate":
        words = ["state" if word == "learners.db" else word for word in words]
        words = [*words, *(() if files else ("state", "model.oco"))]
    if name == "emit":
        words = [*words, *(() if words[at:] else ("flink",)), *(() if files else ("model.oco",)), "--force"]
    if name == "fleet":
        wanted = {"--data": "rounds.parquet", "--out": "decisions"}
        words = [*words, *(() if files else ("model.oco",))]
        words = [*words, *(word for option, value in wanted.items() if option not in words for word in (option, value))]
    if name == "new" and words[at:] == []:
        words = [*words, "shop"]
    if name == "tune":
        words = [*words, *(() if "--budget" in words else ("--budget", "0.2")), *(() if "--data" in words else DATA)]
    if name in ("compile", "prove"):
        words = [*words, "--force"]
    if name == "prove":
        words = [*words, *(() if "--algorithm" in words else ("--algorithm", "nested"))]
        words = [*words, *(() if "--lean" in words else ("--lean", "promise.lean"))]
    if any("examples/" in word for word in words) and name in ("run", "compile"):
        words = [*words, "--algorithms" if name == "run" else "--algorithm", "coldq"]
    return with_less_work(words) if name == "run" and words != ["run", "model.oco"] else words


def with_less_work(words: list[str]) -> list[str]:
    """Words of a run that is shorter, and in this process."""
    added = dict(LESS)
    if "--replay" in words or "--settings" in words:
        del added["--rounds"]  # as many as there are
    if {"--seeds", "--grid", "--algorithms"} & set(words):
        added["--engine"] = "here"
    return [*words, *(word for option, value in added.items() if option not in words for word in (option, value))]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, without_drawing: Callable[[pytest.MonkeyPatch], None]) -> Path:
    """Folder with the user's own: a model, data, a trace and a certificate of its run, the examples."""
    folder = tmp_path_factory.mktemp("desk")
    (folder / "model.oco").write_text(MODEL)
    (folder / "theirs.oco").write_text(MODEL.replace("# run: --data prices.csv\n", ""))
    rows = (f"{((3 * k) % 7) / 7 - 0.4:.3f},{((5 * k) % 11) / 11 - 0.5:.3f}" for k in range(40))
    (folder / "prices.csv").write_text("a[0],a[1]\n" + "\n".join(rows) + "\n")
    (folder / "examples").symlink_to(ROOT / "examples")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        without_drawing(patch)
        words = ["run", "model.oco", "--comparators", "none", "--baselines", "none", "--certify", "static"]
        assert main([*words, "--out", "kept"]) == 0
    goals = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(np.linspace(-0.5, 0.5, 12)), 2)
    rows_by_key = pyarrow.table({"key": ["a", "b"] * 3, "round": [1, 1, 2, 2, 3, 3], "a": goals})
    parquet.write_table(rows_by_key, folder / "rounds.parquet")
    oco.compile(oco.load(folder / "model.oco")).learner().save(folder / "state")
    plan = oco.compile(oco.load(folder / "model.oco"), "nested")
    (folder / "promise.lean").write_text(plan.lean())
    for name in ("trace.nc", "certificate.json"):
        shutil.copy(folder / "kept" / name, folder / name)
    return folder


def unique() -> dict[str, tuple[str, list[str]]]:
    """Commands to run: a page's command line with the words that run for it; once for the same words in another order."""
    named = {tuple(sorted(words)): (line, words) for line in OURS for words in runnable(line)}
    return {shlex.join(words): (line, words) for line, words in named.values()}


def shown(cases: Iterable[tuple[str, list[str]]]) -> list[tuple[str, list[str]]]:
    """Cases, the short ones without examples first, each with an option of its command that those before it lack."""
    kept, seen = [], set[tuple[str, str]]()
    for line, words in sorted(cases, key=lambda case: ("examples/" in case[0], len(case[0].split()), case[0])):
        command = next((word for word in words if word in COMMANDS), "")
        options = {(command, word) for word in ["", *line.split()] if word == "" or word.startswith("--")}
        if options - seen:
            kept.append((line, words))
        seen |= options
    return kept


BRIEF = [(line, words) for line, words in shown(unique().values()) if "tuned" not in words]
"""All but the search for settings, which `tests/test_cli.py` runs."""


@pytest.mark.parametrize(("line", "words"), corners(unique().values(), BRIEF), ids=unique())
def test_command_lines_of_the_pages_run(
    line: str,
    words: list[str],
    desk: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    undrawn: None,
) -> None:
    shutil.copytree(desk, tmp_path / "desk", symlinks=True, ignore=shutil.ignore_patterns("kept"))
    monkeypatch.chdir(tmp_path / "desk")
    given = EVENTS if words[0] == "pipe" else (desk / "theirs.oco").read_text()
    monkeypatch.setattr("sys.stdin", io.StringIO(given))
    status = main(words)
    printed = capfd.readouterr()
    assert status == 0, f"{LINES[line]}: {line}\n{words}\n{printed.err}"
    assert printed.out or printed.err or {"fmt", "lint"} & set(words)


def test_command_lines_of_other_programs_are_named_with_a_reason() -> None:
    others = [line for line in LINES if not line.startswith("oco ")]
    assert not [line for line in others if not line.startswith(tuple(NOT_RUN))]
    targets = re.findall(r"^([\w-]+(?: [\w-]+)*):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    known = {name for names in targets for name in names.split()}
    named = {line.split()[1] for line in others if line.startswith("make ")}
    assert named <= known, "a page names a target that the Makefile lacks"


def test_the_table_of_commands_names_every_command() -> None:
    table = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`oco ([a-z][a-z-]+)", table))
    assert named == set(COMMANDS)


def test_command_lines_are_seen() -> None:
    """Lines of blocks with their continuations, spans of prose over two lines, options in the row of a table."""
    page = "Try `oco check\nm.oco`.\n\n```\n$ oco run a.oco \\\n   --seed 1   # twice\n```\n\n| `oco fmt m.oco` | `--diff` shows |\n"
    assert list(written(page)) == [
        ("oco run a.oco --seed 1", ""),
        ("oco check m.oco", ""),
        ("oco fmt m.oco", ""),
        ("--diff", "oco fmt m.oco"),
    ]
    assert list(runnable("oco fmt --comparators fast|none")) == [
        ["fmt", "model.oco", "--comparators", "fast"],
        ["fmt", "model.oco", "--comparators", "none"],
    ]
    assert list(runnable("oco run --rounds 9")) == [
        ["run", "model.oco", "--rounds", "9", "--comparators", "none", "--baselines", "none"]
    ]
    assert len(OURS) >= 40


def test_every_option_with_a_stand_in_is_there() -> None:
    groups = {name: typer.main.get_command(app_for([name])) for name in COMMANDS}
    commands = [c for name, group in groups.items() for c in (group, group.commands[name])]  # type: ignore[attr-defined]
    options = {o for c in commands for p in c.params for o in p.opts}
    assert VALUES.keys() <= options
