"""Distributions: the sdist has all that git has and its tests pass, the wheel is clean, a release is refused with reasons."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SPEC = importlib.util.spec_from_file_location("release", ROOT / ".ci" / "release.py")
assert SPEC is not None and SPEC.loader is not None
release = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(release)
PROJECT = '[project]\nversion = "1.2.0"\n[project.urls]\nSource = "https://code.test/oco"\n'
CHANGELOG = "# Changelog\n\n## Unreleased\n\n## 1.2.0 - 2027-01-31\n\n* x\n\n## 1.1.0 - 2026-12-01\n"
CITATION = "title: oco\nversion: 1.2.0\ndate-released: 2027-01-31\n"
IN_UNPACKED = ("test_parser_tables.py",)

HARMLESS = (
    "warning: no previously-included files",
    "warning: build_py: byte-compiling",
    "warning: install_lib: byte-compiling",
)
"""Beginnings of warnings of exclusions that exclude nothing here, and of an environment that writes no bytecode."""


def built(folder: Path, kind: str, out: Path) -> str:
    """Build a distribution of a folder without a registry, by what `python -m build` calls; what that printed."""
    code = f"import sys; from setuptools.build_meta import build_{kind}; build_{kind}(sys.argv[1])"
    command = [sys.executable, "-c", code, str(out)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree unpacked from the sdist that is built of it."""
    folder = tmp_path_factory.mktemp("sdist")
    built(ROOT, "sdist", folder)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder / "unpacked", filter="data")
    (tree,) = (folder / "unpacked").iterdir()
    return tree


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout of git")
def test_the_sdist_has_every_file_of_the_tree(sdist: Path) -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    files = {name for name in listed.stdout.split("\0") if name and (ROOT / name).exists()}
    assert not [name for name in sorted(files) if not (sdist / name).exists()]


def test_the_wheel_of_the_sdist_is_clean_and_the_tests_of_the_sdist_pass_with_it(sdist: Path, tmp_path: Path) -> None:
    printed = built(sdist, "wheel", tmp_path).splitlines()
    warnings = [line for line in printed if "warning" in line.lower() and not line.startswith(HARMLESS)]
    assert not warnings
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        assert not [name for name in names if not name.startswith(("oco/", "ocolang-"))]
        packed.extractall(tmp_path / "installed")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")} | {
        "PYTHONPATH": str(tmp_path / "installed")
    }
    origin = [sys.executable, "-c", "import oco; print(oco.__file__)"]
    where = subprocess.run(origin, capture_output=True, text=True, env=environment, cwd=tmp_path, check=True).stdout
    assert where.startswith(str(tmp_path)), "the tests would import another oco"
    tests = [str(sdist / "tests" / name) for name in IN_UNPACKED]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "--assert=plain", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=sdist, timeout=280)
    assert done.returncode == 0, done.stdout[-3000:]


def test_a_tree_in_order_may_be_released() -> None:
    assert release.faults(PROJECT, CHANGELOG, CITATION, ["v1.2.0"]) == []


@pytest.mark.parametrize(
    ("where", "project", "changelog", "citation", "tags"),
    [
        ("not `## 1.3.0", PROJECT.replace("1.2", "1.3"), CHANGELOG, CITATION.replace("1.2", "1.3"), ["v1.3.0"]),
        (
            "`Unreleased` has lines",
            PROJECT,
            CHANGELOG.replace("Unreleased\n", "Unreleased\n\n* y\n"),
            CITATION,
            ["v1.2.0"],
        ),
        ("its version is not", PROJECT, CHANGELOG, CITATION.replace("1.2", "1.1"), ["v1.2.0"]),
        ("date-released", PROJECT, CHANGELOG, CITATION.replace("-01-31", "-01-30"), ["v1.2.0"]),
        ("no tag v1.2.0", PROJECT, CHANGELOG, CITATION, ["v1.1.0"]),
        ("is a placeholder", PROJECT.replace("code.test", "oco.example"), CHANGELOG, CITATION, ["v1.2.0"]),
    ],
)
def test_each_fault_refuses_a_release(where: str, project: str, changelog: str, citation: str, tags: list[str]) -> None:
    (fault,) = release.faults(project, changelog, citation, tags)
    assert where in fault


def test_versions_agree() -> None:
    """pyproject.toml, CITATION.cff and `oco --version` name one version."""
    import tomllib

    import oco

    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert f"version: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert oco.__version__ == version
