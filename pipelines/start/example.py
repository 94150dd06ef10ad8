"""The examples that `rankbeam init --example` writes: folders of `examples/`, with the collection that they use.

New files are written all or not at all, and never over one that is there.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType

from rankbeam.transforms.records.errors import InputError, InputErrors

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


@contextmanager
def written(contents: Mapping[Path, bytes]) -> Iterator[None]:
    """Write files, and delete them again where what follows refuses them."""
    problem = "exists already, and is never overwritten; choose another path"
    if wrong := [InputError(problem, path=str(path)) for path in contents if path.exists()]:
        raise InputErrors(wrong)
    paths: list[Path] = []
    try:
        for path, content in contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as file:
                paths.append(path)
                file.write(content)
        yield
    except (InputError, OSError):
        for path in paths:
            path.unlink()
        raise
