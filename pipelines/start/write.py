"""Write new files, all of them or none, and never over one that is there."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rankbeam.transforms.records.errors import InputError, InputErrors


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
