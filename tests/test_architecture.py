"""The shape of the code: what may import what, what is shipped, and what starting up costs."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LAYERS = ("grammar", "dsl", "compiler", "backends", "evaluation", "api")
HEAVY = ("cvxpy", "sympy", "scipy.optimize", "matplotlib", "pandas", "xarray")
MODULES = [path for layer in LAYERS for path in sorted((ROOT / layer).rglob("*.py"))]


def imported(path: Path) -> set[str]:
    """The modules of ours that a file imports, by their dotted names, function bodies included."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name == "oco" or name.startswith("oco.")}


def layer_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in LAYERS else "api"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_one_way(path):
    own = path.relative_to(ROOT).parts[0]
    allowed = set(LAYERS[: LAYERS.index(own) + 1])
    wrong = {m for m in imported(path) if layer_of(m) not in allowed}
    assert not wrong, f"{own} may not import {wrong}"


def test_every_folder_with_code_is_shipped():
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders = {config["package-dir"].get(name, "") for name in config["packages"] if name in config["package-dir"]}
    folders |= {
        name.removeprefix("oco.").replace(".", "/") for name in config["packages"] if name not in config["package-dir"]
    }
    with_code = {str(path.parent.relative_to(ROOT)) for path in MODULES}
    assert folders == with_code


@pytest.mark.parametrize("what", ["import oco", "from oco.cli import main; main(['--help'])"])
def test_starting_up_imports_nothing_heavy(what):
    code = f"import sys\n{what}\nprint('LOADED', *[m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("LOADED")[1].split() == []


def test_no_pickle_no_unguarded_except():
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ExceptHandler):
                assert node.type is not None, f"{path}:{node.lineno}: bare except"
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
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and (size := (node.end_lineno or 0) - node.lineno + 1) > 60
    }
    assert not long_files and not long_functions
