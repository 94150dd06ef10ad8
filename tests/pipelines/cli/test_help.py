"""Help is whole: no sentence is cut short, and no line is wider than 80 letters."""

import re
from collections.abc import Iterator

import click
import pytest

from rankbeam.pipelines.cli import main


def commands(command: click.Command = main, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words of every command and group."""
    yield path
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from commands(inner, (*path, name))


@pytest.mark.parametrize("path", [*commands()], ids=" ".join)
def test_help_fits_80_columns_and_ends_its_sentences(path: tuple[str, ...]) -> None:
    context = click.Context(main, info_name="rankbeam")
    for name in path:
        assert isinstance(context.command, click.Group)
        context = click.Context(context.command.commands[name], context, name)
    lines = context.get_help().splitlines()
    assert [line for line in lines if len(line) > 80] == []
    assert [line for line in lines[1:] if re.search(r"(\.\.\.|…)$", line)] == []
