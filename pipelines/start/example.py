"""The example that `rankbeam init --example` writes: the helpdesk collection with its experiments."""

from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable

_FOLDERS = {"": (".md", ".jsonl", ".yaml"), "qrels": (".tsv",)}
"""The endings of its files, by folder: those of pyproject.toml. A checkout's folder may hold results, too."""


def part(name: str) -> bytes:
    """The content of one of its files."""
    folder = _folder()
    for step in name.split("/"):
        folder = folder / step
    return folder.read_bytes()


def example() -> dict[str, bytes]:
    """Every file's content, by its path in the example's folder."""
    return {name: part(name) for name in sorted(_names())}


def _names() -> Iterator[str]:
    for inside, endings in _FOLDERS.items():
        folder = _folder() / inside if inside else _folder()
        yield from (f"{inside}/{path.name}".lstrip("/") for path in folder.iterdir() if path.name.endswith(endings))


def _folder() -> Traversable:
    return files("rankbeam") / "examples" / "helpdesk"
