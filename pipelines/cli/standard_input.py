"""Standard input as a file: `-` in place of a path."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

STDIN = "-"


@contextmanager
def read(paths: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The paths, with a temporary copy of standard input in place of `-`; files are read more than once."""
    if STDIN not in paths:
        yield paths
        return
    if paths.count(STDIN) > 1:
        raise click.UsageError("standard input (-) can replace only one file")
    import shutil
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from rankbeam.transforms.records.errors import InputError

    with TemporaryDirectory(prefix="rankbeam-", ignore_cleanup_errors=True) as folder:
        copy = Path(folder) / "stdin"
        with copy.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        try:
            yield tuple(str(copy) if path == STDIN else path for path in paths)
        except InputError as error:
            raise InputError(str(error).replace(str(copy), "standard input")) from error
