"""The DAG in deploy/airflow calls commands with options that they have; tests/endtoend/test_airflow.py runs it."""

import ast
import shlex

import pytest
from support.data import REPOSITORY

from rankbeam.pipelines.cli import main

SOURCE = (REPOSITORY / "deploy" / "airflow" / "rankbeam_nightly.py").read_text(encoding="utf-8")


def line_of(argument: ast.expr) -> str:
    """The command of a task, up to its first value that is filled in."""
    first = argument.values[0] if isinstance(argument, ast.JoinedStr) else argument
    assert isinstance(first, ast.Constant)
    return str(first.value)


LINES = [
    line_of(call.args[1])
    for call in ast.walk(ast.parse(SOURCE))
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "command"
]


def test_there_are_four_tasks() -> None:
    assert sorted(line.split()[1] for line in LINES) == ["evaluate", "gate", "monitor", "trend"]


@pytest.mark.parametrize("line", LINES)
def test_the_command_of_a_task_is_right(line: str) -> None:
    program, name, *words = shlex.split(line.partition(" $OPTIONS")[0])
    assert program == "$RANKBEAM"
    main.commands[name].make_context(name, words)
