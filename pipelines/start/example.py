"""The example that `rankbeam init --example` writes: the helpdesk collection with its experiments."""

from importlib.resources import files
from importlib.resources.abc import Traversable

PARTS = (
    "README.md",
    "queries.jsonl",
    "qrels/test.tsv",
    "corpus.jsonl",
    "evidence.jsonl",
    "experiment.yaml",
    "answers.yaml",
    "gates.yaml",
)
"""Its files. A checkout's folder may hold others, such as results."""


def part(name: str) -> bytes:
    """The content of one of its files."""
    found: Traversable = files("rankbeam") / "examples" / "helpdesk"
    for step in name.split("/"):
        found = found / step
    return found.read_bytes()


def example() -> dict[str, bytes]:
    """Every file's content, by its path in the example's folder."""
    return {name: part(name) for name in PARTS}
