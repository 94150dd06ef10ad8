"""The DAG in deploy/airflow calls commands with options that they have; tests/endtoend/test_airflow.py runs it."""

import ast
import shlex
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from jinja2 import Environment, StrictUndefined
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


@pytest.mark.parametrize("is_manual", [False, True])
def test_a_run_has_an_id_also_where_it_has_no_logical_date(is_manual: bool) -> None:
    """Airflow 3 runs a DAG that `airflow dags trigger` started without a logical date, and without `ts_nodash`."""
    night = datetime(2026, 1, 5, 3, tzinfo=UTC)
    run = SimpleNamespace(logical_date=None if is_manual else night, run_after=night)
    context = {"dag": SimpleNamespace(dag_id="rankbeam_nightly"), "dag_run": run}
    (template,) = (
        value.value
        for node in ast.walk(ast.parse(SOURCE))
        if isinstance(node, ast.Dict)
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and key.value == "RUN_ID" and isinstance(value, ast.Constant)
    )
    rendered = Environment(undefined=StrictUndefined, autoescape=True).from_string(template).render(context)
    assert rendered == "rankbeam_nightly-20260105T030000"
