"""The shape of the code: what may import what, what is shipped, and what starting up costs."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from sources import ROOT, nodes, parsed, statements

import oco
from oco.backends import BACKENDS
from oco.cli.app import COMMANDS
from oco.dsl.domains import DOMAINS

LAYERS = ("grammar", "dsl", "compiler", "backends", "evaluation", "evaluation.report", "api")
STAGES = (
    "ir",
    "domains",
    "problem",
    "evidence",
    "prover",
    "theory",
    "lowering",
    "proximal",
    "algorithms",
    "certificates",
    "selection",
    "promises",
)
"""Packages of `compiler`, in the order of their imports."""
HEAVY = ("numpy", "cvxpy", "sympy", "scipy", "matplotlib", "pandas", "xarray", "oco.dsl.atoms")
MODULES = [path for layer in LAYERS if "." not in layer for path in sorted((ROOT / layer).rglob("*.py"))]

ON_DEMAND = ("compiler", "backends", "evaluation", "evaluation.report")
"""Layers that a module of `api` may import in a function: `import oco` and the help of a command load none of them."""

LAZY = {
    "IPython.display": "loaded by the notebook that shows a bar",
    "cvxpy": "seconds; by checks that need a solver",
    "h5py": "by stored traces",
    "opentelemetry": "an extra; by spans, where the program has loaded it",
    "oco.backends.xla": "loads JAX, an extra; by learners that name it",
    "lark": "by `make tables` alone",
    "matplotlib": "half a second; by plots",
    "pandas": "half a second; by traces as tables",
    "plotly": "an extra; by interactive plots",
    "pyarrow": "an extra; by Parquet and Arrow files",
    "ray": "an extra; by tables of runs and fleets on a cluster",
    "fsspec": "an extra; by snapshots of fleets in object stores",
    "rich": "by output in colour, tables and progress",
    "scipy": "a tenth of a second; by the sets and distributions that need it",
    "sympy": "half a second; by formulas in LaTeX",
    "xarray": "half a second with pandas; by datasets and files of traces",
    "concurrent.futures": "by tables of runs on all cores",
    "difflib": "by words that are nearly right",
    "multiprocessing": "by tables of runs on all cores",
    "resource": "absent on some systems; by untrusted commands",
    "signal": "by untrusted commands",
    "subprocess": "by untrusted commands",
    "oco.cli.app": "within the handler of Ctrl-C, which may come while the command line loads",
    "oco.cli.command": "as `oco.cli.app`",
    "oco.cli.output": "as `oco.cli.app`; by errors",
    "oco.cli.bug_report": "by bugs",
    "oco.lsp.server": "an extra; by `oco lsp`",
    "oco.cli.one_run": "loads the evaluation and its report; by `oco run`",
    "oco.cli.results": "loads tables of `rich`; by `oco run`",
    "oco.compiler.domains.box_row": "by domains that rows cut",
    "oco.compiler.domains.cut_sets": "by domains that rows cut",
    "oco.compiler.ir.interpret": "loads the tracer; by domains that are used alone, with arrays",
    "oco.contract": "loads the compiler",
    "oco.dsl.codes": "by the first diagnostic",
    "oco.dsl.explanations": "by `oco help`",
    "oco.dsl.habits": "by names that `oco` does not have",
    "oco.dsl.files": "by models that name files",
    "oco.dsl.readers.parquet": "by Parquet files",
    "oco.dsl.text.formatter": "by `oco fmt`",
    "oco.dsl.text.latex": "by models shown in a notebook",
    "oco.dsl.text.notebook": "by models shown in a notebook",
    "oco.evaluation.comparators.compare": "loads solvers; by regret",
    "oco.evaluation.report.figure": "loads matplotlib",
    "oco.evaluation.report.interactive": "loads matplotlib's plots; by interactive ones",
    "oco.evaluation.report.plots": "by traces that are shown; those of pilot runs are not",
    "oco.evaluation.report.run_page": "as `oco.evaluation.report.plots`",
    "oco.evaluation.report.run_table": "by traces that are shown",
    "oco.evaluation.storage": "by traces that are saved",
    "oco.facts": "loads the compiler",
    "oco.gradients": "loads the evaluation; by losses of settings",
    "oco.following": "loads the compiler and the backends",
    "oco.linting": "loads the compiler and the evaluation",
    "oco.magics": "by `%load_ext oco`",
    "oco.migrating": "loads the compiler and the backends",
    "oco.overflow_check": "loads the compiler and the backends",
    "oco.plan": "loads the compiler and the backends",
    "oco.emitting": "loads the compiler and the backends",
    "oco.fleets": "loads the compiler and the backends; an extra; by fleets by key",
    "oco.serving": "loads the compiler and the backends; the service an extra; by `oco serve` and `oco pipe`",
    "oco.sweeps": "loads the compiler and the backends",
    "oco.tuning": "loads the compiler and the backends",
}
"""Packages and modules that may be imported when a function is called, with their cost or what they load, and by whom
they are needed. All others are imported at the top of a file.
"""

BY_NAME = {
    "oco": {*(place.split(":")[0] for place in oco.PLACES.values()), "oco.words"},
    "oco.backends.registry": {row.place.split(":")[0] for row in BACKENDS.values()},
    "oco.cli.app": {f"oco.cli.{module}" for module, *_ in COMMANDS.values()},
    "oco.compiler.domains.make": {f"oco.compiler.domains.{kind}" for kind in DOMAINS},
}
"""Modules that import others by the names in a table: public names, backends, commands, domains."""

MUTUAL = {
    "oco.backends.learner": "its journal and its saved states act on a learner",
    "oco.evaluation.measured_run": "its parts go to other processes, and come back as a run",
    "oco.compiler.prover.context": "has the provers, and each of them gets it",
    "oco.compiler.ir.lanes": "its rules stand in the table of operations, which it reads",
    "oco.compiler.ir.methods": "a traced value holds its tracer",
}
"""Modules that are imported under TYPE_CHECKING by modules which they import, and the reason why each needs the other."""


@dataclass(frozen=True)
class Import:
    """Import of a module or package `name` in a file: in a function (`lazy`) or for annotations alone (`typing`)."""

    name: str
    line: int
    lazy: bool = False
    typing: bool = False


def dotted(path: Path) -> str:
    """Name of the module in a file."""
    layer, *rest = path.relative_to(ROOT).with_suffix("").parts
    parts = ["oco", *(() if layer == "api" else (layer,)), *rest]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {dotted(path): path for path in MODULES}


def imports(text: str, modules: Set[str]) -> list[Import]:
    """All imports in a text. `from a import b` is of `a.b` where that is a module, else of `a`."""

    def within(node: ast.AST, lazy: bool, typing: bool) -> Iterator[Import]:
        for child in statements(node):
            inner = lazy or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            annotating = typing or (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING")
            if isinstance(child, ast.Import):
                yield from (Import(alias.name, child.lineno, inner, annotating) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0 and child.module is not None, f"line {child.lineno}: relative import"
                for name in (f"{child.module}.{alias.name}" for alias in child.names):
                    yield Import(name if name in modules else child.module, child.lineno, inner, annotating)
            else:
                yield from within(child, inner, annotating)

    return list(within(parsed(text), False, False))


@cache
def all_imports() -> dict[str, list[Import]]:
    """Imports of each module."""
    return {name: imports(path.read_text(), NAMES.keys()) for name, path in NAMES.items()}


def cycle(graph: Mapping[str, Set[str]]) -> list[str]:
    """Modules of a cycle, in its order; none where there is no cycle."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def listed(name: str) -> str | None:
    """Entry of `LAZY` that a module is or lies in."""
    parts = name.split(".")
    return next((n for k in range(len(parts), 0, -1) if (n := ".".join(parts[:k])) in LAZY), None)


def layer_of(module: str) -> str:
    """Layer that a module lies in, the innermost one."""
    parts = module.split(".")[1:]
    return next((n for k in range(len(parts), 0, -1) if (n := ".".join(parts[:k])) in LAYERS), "api")


def test_imports_go_one_way():
    for name, found in all_imports().items():
        own = layer_of(name)
        allowed = set(LAYERS[: LAYERS.index(own) + 1])
        wrong = {i.name for i in found if i.name.split(".")[0] == "oco" and layer_of(i.name) not in allowed}
        assert not wrong, f"{name} lies in {own}, which may not import {wrong}"


def test_stages_of_the_compiler_go_one_way():
    """Imports within `compiler`, those in functions too; types alone may come from a later stage."""
    for name in (n for n in NAMES if n.count(".") > 2 and layer_of(n) == "compiler"):
        allowed = set(STAGES[: STAGES.index(name.split(".")[2]) + 1])
        others = (i for i in all_imports()[name] if layer_of(i.name) == "compiler" and i.name.count(".") > 1)
        wrong = {i.name for i in others if not i.typing and i.name.split(".")[2] not in allowed}
        assert not wrong, f"{name} may not import {wrong}"


def test_no_module_imports_itself_through_others():
    """Imports in functions count, and imports by the names in a table."""
    graph = {name: {i.name for i in found if not i.typing and i.name in NAMES} for name, found in all_imports().items()}
    graph |= {name: graph[name] | others for name, others in BY_NAME.items()}
    assert not (found := cycle(graph)), " -> ".join(found)
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}}), "a cycle is seen"


def test_modules_that_annotate_each_other_are_named():
    graph = {
        name: {i.name for i in found if i.name in NAMES and not (i.typing and i.name in MUTUAL)}
        for name, found in all_imports().items()
    }
    assert not (found := cycle(graph)), " -> ".join(found)
    for name in MUTUAL:
        back = {n: s | {i.name for i in all_imports()[n] if i.name == name} for n, s in graph.items()}
        assert cycle(back), f"{name} closes no cycle"


def test_imports_in_functions_are_for_the_start_alone():
    wrong, used = [], set()
    for name, found in all_imports().items():
        for i in (i for i in found if i.lazy and not i.typing):
            entry = listed(i.name)
            used.add(entry)
            if entry is None and not (layer_of(name) == "api" and layer_of(i.name) in ON_DEMAND):
                wrong.append(f"{NAMES[name].relative_to(ROOT)}:{i.line}: {i.name}")
    assert not wrong, "import these at the top of the file: " + ", ".join(wrong)
    assert used >= LAZY.keys(), f"nothing imports these in a function: {LAZY.keys() - used}"


def test_imports_by_name_are_those_of_tables():
    assert set().union(*BY_NAME.values()) <= NAMES.keys()
    importing = {
        name
        for name, path in NAMES.items()
        for node in nodes(path)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("import_module", "importlib.import_module", "__import__")
    }
    assert importing == BY_NAME.keys()


def test_imports_are_read_where_they_stand():
    text = """
import a.b
if TYPE_CHECKING:
    from a import c
def f():
    from a.c import d
    g = lambda: 0
try:
    from a import e
except ImportError:
    pass
class K:
    def m(self):
        import h
"""
    assert imports(text, {"a", "a.b", "a.c"}) == [
        Import("a.b", 2),
        Import("a.c", 4, typing=True),
        Import("a.c", 6, lazy=True),
        Import("a", 9),
        Import("h", 14, lazy=True),
    ]


def test_pages_are_made_by_the_report_alone():
    """Layers below the report know no HTML; models print themselves, in `dsl/text/`."""
    for name in NAMES:
        if layer_of(name) in ("compiler", "backends", "evaluation"):
            assert not {"html", "oco.dsl.text.notebook"} & {i.name for i in all_imports()[name]}, name
            assert "_repr_html_" not in NAMES[name].read_text(), name


def test_every_folder_with_code_is_shipped():
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders = {config["package-dir"].get(name, "") for name in config["packages"] if name in config["package-dir"]}
    folders |= {
        name.removeprefix("oco.").replace(".", "/") for name in config["packages"] if name not in config["package-dir"]
    }
    with_code = {str(path.parent.relative_to(ROOT)) for path in MODULES}
    assert folders == with_code


BAD_BEGINNINGS = ("The same", "What", "Whether", "How", "Those", "Where", "That", "Which", "As", "Of")


def docstrings(text: str) -> Iterator[tuple[int, str]]:
    """Docstrings of modules, classes, functions and attributes, with their lines."""
    for node in ast.walk(parsed(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in node.body:
                match statement:
                    case ast.Expr(value=ast.Constant(value=str(words))):
                        yield statement.lineno, words.strip()


def badly_begun(text: str) -> list[int]:
    pattern = re.compile(rf"({'|'.join(BAD_BEGINNINGS)})\b")
    return sorted(line for line, words in docstrings(text) if pattern.match(words))


def test_docstrings_begin_with_a_noun_or_a_verb():
    """Words such as "Largest step", "Return ...", "True if ...": not with a clause, nor with a reference to the text above."""
    found = {str(path.relative_to(ROOT)): lines for path in MODULES if (lines := badly_begun(path.read_text()))}
    assert not found


def test_badly_begun_docstrings_are_seen():
    text = '''"""What it is."""
LIMIT = 3
"""Of a row."""
class K:
    """
    Whether it holds."""
    x: int
    """The same of x."""
    def m(self):
        """How far."""
        y = 1
        """Those of y."""
    async def n(self):
        """As it is written."""
def good():
    """Whatever, Often or Assume are other words."""
    print("What")
'''
    assert badly_begun(text) == [1, 3, 5, 8, 10, 12, 14]


@pytest.mark.parametrize("what", ["import oco", "from oco.cli import main; main(['--help'])"])
def test_starting_up_imports_nothing_heavy(what):
    code = f"import sys\n{what}\nprint('LOADED', *[m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("LOADED")[1].split() == []


def test_no_pickle_no_unguarded_except():
    for path in MODULES:
        for node in nodes(path):
            if isinstance(node, ast.ExceptHandler):
                assert node.type is not None, f"{path}:{node.lineno}: bare except"
                # An interruption goes on, or to whoever waits for what failed.
                if "BaseException" in ast.unparse(node.type):
                    ends = isinstance(last := node.body[-1], ast.Raise) and last.exc is None
                    assert ends or (node.name and node.name in ast.unparse(node.body)), f"{path}:{node.lineno}"
            if isinstance(node, ast.Import | ast.ImportFrom):
                assert "pickle" not in ast.unparse(node), f"{path}:{node.lineno}"
            if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
                assert ast.unparse(node.value) == "False", f"{path}:{node.lineno}"


def test_files_and_functions_stay_small():
    """A file within 400 lines, a function within 60: past that, look for the second thing in it. So it is in benchmarks."""
    files = [*MODULES, *sorted((ROOT / "benchmarks").rglob("*.py"))]
    long_files = {str(p.relative_to(ROOT)): n for p in files if (n := p.read_text().count("\n")) > 400}
    long_functions = {
        f"{path.relative_to(ROOT)}:{node.name}": size
        for path in files
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef) and (size := (node.end_lineno or 0) - node.lineno + 1) > 60
    }
    assert not long_files and not long_functions
