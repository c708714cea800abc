"""Fenced blocks of a page of Markdown, with what the comments above them ask for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(
    r"^<!-- run (?P<unseen>python|console)\n(?P<before>.*?)^-->$"
    r"|^(?:<!-- *(?P<mark>fails|shown: [^>]+?) *-->\n+)?"
    r"(?P<ticks>```+)(?P<language>[\w-]*)(?P<options>[^\n]*)\n(?P<code>.*?)^(?P=ticks)[ ]*$",
    re.MULTILINE | re.DOTALL,
)
EXECUTED = ("python", "ipython", "oco", "console")
"""Languages whose blocks are executed where nothing else is asked."""


@dataclass(frozen=True)
class Block:
    """Block of code of a page.

    language  word behind the fence, "" where there is none
    file      name under which the code is written into the folder of the page before it is executed, "" for none
    mark      `hidden`: executed and not shown, in a comment `<!-- run python`; `fails`: ends with an error; `shown: reason`: not executed
    """

    language: str
    code: str
    file: str = ""
    mark: str = ""

    @property
    def executed(self) -> bool:
        """True where the build executes it: a model is checked, Python and command lines are run, and a file is there for those."""
        return (self.language in EXECUTED or bool(self.file)) and not self.mark.startswith("shown")

    @property
    def reason(self) -> str:
        """Reason why it is not executed, "" where it is."""
        if self.executed:
            return ""
        return self.mark.partition(": ")[2] or f"{self.language or 'text'}: nothing to run"


def blocks(text: str) -> list[tuple[re.Match[str], Block]]:
    """Blocks of a page in their order, each with its place in the text."""
    return [(match, _block(match)) for match in FENCE.finditer(text)]


def _block(match: re.Match[str]) -> Block:
    if match["unseen"]:
        return Block(match["unseen"], match["before"], mark="hidden")
    file = re.search(r"\bfile=(\S+)", match["options"])
    return Block(match["language"], match["code"], file[1] if file else "", match["mark"] or "")


def without_blocks(text: str) -> str:
    """Prose of a page: neither blocks nor spans of code."""
    return re.sub(r"`[^`\n]*(?:\n[^`\n]+)?`", "", FENCE.sub("", text))


def headings(text: str) -> list[str]:
    """Headings of a page, without their signs."""
    return re.findall(r"^#{1,6} +(.+?) *$", FENCE.sub("", text), re.MULTILINE)


def title(text: str, path: Path) -> str:
    """First heading of a page; its name where there is none."""
    return next(iter(headings(text)), path.stem)
