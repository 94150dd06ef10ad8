"""The examples that `rankbeam init --example` writes: folders of `examples/`, with the collection that they use."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType

_HELPDESK = "helpdesk"
_ENDINGS = (".md", ".csv", ".jsonl", ".json", ".yaml", ".tsv", ".run", ".py", ".ipynb")
"""The endings of their files, as in pyproject.toml. A checkout's folder may hold results, too."""
_RESULTS = ("out", "__pycache__")


@dataclass(frozen=True)
class Example:
    """An example: its folders, and the commands that run it in the folder that holds them."""

    folders: tuple[str, ...]
    commands: tuple[str, ...]


EXAMPLES: Mapping[str, Example] = MappingProxyType(
    {
        _HELPDESK: Example((_HELPDESK,), ("rankbeam evaluate {}/answers.yaml",)),
        "chunking": Example((_HELPDESK,), ("rankbeam evaluate {}/helpdesk/chunking.yaml",)),
        "answers": Example(("answers",), ("rankbeam evaluate {}/answers/experiment.yaml",)),
        "runs": Example(("trec_runs", _HELPDESK), ("rankbeam evaluate {}/trec_runs/experiment.yaml",)),
        "goldens": Example(("goldens", _HELPDESK), ("rankbeam goldens {}/goldens/helpdesk.yaml",)),
        "notebook": Example(("notebook", "trec_runs", _HELPDESK), ("jupyter lab {}/notebook/first_results.ipynb",)),
        "app": Example(("app", _HELPDESK), ("python {}/app/app.py &", "rankbeam evaluate {}/app/experiment.yaml")),
    }
)
"""The examples, by the names that users give."""


def part(name: str) -> bytes:
    """The content of one of the helpdesk collection's files."""
    folder = _folder(_HELPDESK)
    for step in name.split("/"):
        folder = folder / step
    return folder.read_bytes()


def example(name: str = _HELPDESK) -> dict[str, bytes]:
    """Every file's content, by its path: that of the collection alone begins in its folder."""
    folders = (
        {"": _folder(_HELPDESK)}
        if name == _HELPDESK
        else {f"{folder}/": _folder(folder) for folder in EXAMPLES[name].folders}
    )
    return {
        f"{prefix}{path}": content for prefix, folder in folders.items() for path, content in sorted(_files(folder))
    }


def _files(folder: Traversable) -> Iterator[tuple[str, bytes]]:
    for path in folder.iterdir():
        if path.is_dir() and path.name not in _RESULTS:
            yield from ((f"{path.name}/{inside}", content) for inside, content in _files(path))
        elif path.name.endswith(_ENDINGS):
            yield path.name, path.read_bytes()


def _folder(name: str) -> Traversable:
    return files("rankbeam") / "examples" / name
