"""The pages of the documentation: their blocks of examples, their links and their anchors.

What a fence says after its three marks decides how a test treats the block:

    console         commands, each with what it prints first; they are run, one after the other
    python, sql     are run
    LANGUAGE file=  is written to that file, for the commands below it
    sh              commands that need a cloud, a cluster or a long time: their options are checked
    yaml, json, toml  are parsed
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from support.data import REPOSITORY

DOCS = REPOSITORY / "docs"
_FENCE = re.compile(r"^```(\w+)(?: ([^\n]*))?\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """An example.

    Attributes:
        language: the first word of the fence.
        label: the rest of the fence's line, such as `file=NAME`.
        text: the text between the fences.
        line: number of the first line of the text.
    """

    language: str
    label: str
    text: str
    line: int

    @property
    def file(self) -> str | None:
        """The file that the block is written to."""
        return self.label.removeprefix("file=") if self.label.startswith("file=") else None

    def commands(self) -> Iterator[tuple[str, list[str]]]:
        """Each command of a console, and the lines it prints."""
        for command in re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]:
            line, *printed = command.rstrip("\n").splitlines()
            yield line, printed


@dataclass(frozen=True)
class Document:
    """A page of the documentation."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.relative_to(REPOSITORY).as_posix()

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def prose(self) -> str:
        """The text without its examples."""
        return _FENCE.sub("", self.text)

    @property
    def blocks(self) -> list[Block]:
        text = self.text
        return [
            Block(match[1], match[2] or "", match[3], text.count("\n", 0, match.start(3)) + 1)
            for match in _FENCE.finditer(text)
        ]

    def block(self, language: str, label: str = "") -> Block:
        """The only block of a language and a label."""
        (block,) = (
            candidate for candidate in self.blocks if (candidate.language, candidate.label) == (language, label)
        )
        return block

    def section(self, heading: str) -> str:
        """The text between a heading and the next one."""
        _, heading_line, rest = self.text.partition(f"\n## {heading}\n")
        assert heading_line, f"{self.name} has no section {heading!r}"
        return rest.partition("\n## ")[0]

    def rows(self, heading: str) -> list[list[str]]:
        """The cells of the rows of the tables in a section, without their heads."""
        tables = re.findall(r"(?:^\|.*\n?)+", self.section(heading), flags=re.MULTILINE)
        lines = [line for table in tables for line in table.splitlines()[2:]]
        return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]

    @property
    def links(self) -> list[str]:
        """Targets of links and pictures that are not on the web."""
        return re.findall(r"\]\((?!https?://|mailto:)([^)\s]+)\)", self.prose)

    @property
    def anchors(self) -> set[str]:
        """Targets of links behind `#`: the headings, as GitHub and MkDocs spell them."""
        headings = re.findall(r"^#+ (.*)$", self.prose, flags=re.MULTILINE)
        return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}

    @property
    def broken_links(self) -> list[str]:
        """Links to a file or a heading that is not there."""
        return [link for link in self.links if not self._is_there(*link.partition("#")[::2])]

    def _is_there(self, path: str, anchor: str) -> bool:
        target = self.path.parent / path if path else self.path
        return target.exists() and (not anchor or anchor in Document(target).anchors)


README = Document(REPOSITORY / "README.md")
PAGES = [README, *(Document(path) for path in sorted(DOCS.glob("*.md")))]


def page(name: str) -> Document:
    """A page of docs/ by the name of its file, without ending."""
    return Document(DOCS / f"{name}.md")
