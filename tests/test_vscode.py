"""The extension for VS Code, packaged, starts the language server and shows what it says."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from oco.lsp.session import COMMANDS

ROOT = Path(__file__).parent.parent
EXTENSION = ROOT / "editors" / "vscode"
OCO = Path(sys.executable).with_name("oco")
UNREACHED = re.compile(r"ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONNREFUSED|ECONNRESET|ENETUNREACH|E40[13]|E50\d")
"""Codes of npm where the registry does not answer, or not this machine."""
RIGHT = "model m\nhorizon T = 10\ndecision x in box(0, 1)\nstream c in [0, 1]\nminimize c * x\n"


def manifest() -> dict[str, Any]:
    """Description of the extension."""
    read: dict[str, Any] = json.loads((EXTENSION / "package.json").read_text(encoding="utf-8"))
    return read


def test_the_manifest_is_in_step_with_the_server() -> None:
    stated = manifest()
    assert [c["command"] for c in stated["contributes"]["commands"]] == [f"oco.{word}" for word in COMMANDS]
    grammar = json.loads((ROOT / "grammar" / "oco.tmLanguage.json").read_text(encoding="utf-8"))
    assert [g["scopeName"] for g in stated["contributes"]["grammars"]] == [grammar["scopeName"]]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the extension as an editor installs it: built by npm, packaged and unpacked."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    root = tmp_path_factory.mktemp("repository")
    ignored = shutil.ignore_patterns("node_modules", "out", "LICENSE")
    folder = Path(shutil.copytree(EXTENSION, root / "editors" / "vscode", ignore=ignored))
    (root / "grammar").mkdir()
    for name in ("LICENSE", "grammar/oco.tmLanguage.json"):
        shutil.copy(ROOT / name, root / name)
    for command in (["npm", "install", "--fetch-retries=0"], ["npm", "run", "package"]):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200)
        if done.returncode and UNREACHED.search(done.stderr):
            pytest.skip("the registry of npm does not answer")
        assert done.returncode == 0, done.stdout + done.stderr
    with zipfile.ZipFile(folder / "out" / "oco.vsix") as package:
        package.extractall(root / "installed")
    return root / "installed" / "extension"


def shown(unpacked: Path, file: Path, oco: Path | str) -> dict[str, Any]:
    """What the packaged extension shows of a file, with a stub of the editor."""
    command = [
        "node",
        str(ROOT / "tests" / "vscode_client.cjs"),
        str(unpacked / "out" / "extension.js"),
        str(oco),
        str(file),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.mark.thorough
def test_the_package_is_whole(unpacked: Path) -> None:
    files = {str(path.relative_to(unpacked)) for path in unpacked.rglob("*") if path.is_file()}
    wanted = {"package.json", "readme.md", "LICENSE.txt", "language-configuration.json"}
    assert files == wanted | {"out/extension.js", "out/oco.tmLanguage.json", "out/NOTICES.txt"}
    stated = manifest()
    named = [stated["main"], *(g["path"] for g in stated["contributes"]["grammars"])]
    named += [language["configuration"] for language in stated["contributes"]["languages"]]
    assert all((unpacked / name).is_file() for name in named)
    assert "vscode-languageclient 11" in (unpacked / "out" / "NOTICES.txt").read_text(encoding="utf-8")


@pytest.mark.thorough
def test_mistakes_are_shown_and_lenses_run(unpacked: Path, tmp_path: Path) -> None:
    file = tmp_path / "a model.oco"
    file.write_text(RIGHT.replace("c * x", "c * y"), encoding="utf-8")
    wrong = shown(unpacked, file, OCO)
    assert [(d["code"], d["line"]) for d in wrong["diagnostics"]] == [("OCO201", 4)] and wrong["errors"] == []
    assert wrong["registered"] == [f"oco.{word}" for word in COMMANDS]
    assert wrong["task"] == [str(OCO), ["run", str(file)]]
    file.write_text(RIGHT, encoding="utf-8")
    assert shown(unpacked, file, OCO)["diagnostics"] == []


@pytest.mark.thorough
def test_a_server_that_is_absent_is_named(unpacked: Path, tmp_path: Path) -> None:
    file = tmp_path / "model.oco"
    file.write_text(RIGHT, encoding="utf-8")
    errors = shown(unpacked, file, tmp_path / "nowhere" / "oco")["errors"]
    assert "pip install 'ocolang[editor]'" in errors[-1] and "oco.path" in errors[-1]
