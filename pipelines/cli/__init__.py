"""The command line, one module for each kind of command. Commands import their slow dependencies themselves."""

from rankbeam.pipelines.cli import (
    cancel,
    compare,
    corpora,
    execute,
    gate,
    goldens,
    init,
    inspect,
    judge,
    log,
    monitor,
    report,
    runs,
    schema,
    status,
    views,
    warehouse,
)
from rankbeam.pipelines.cli.group import main

__all__ = [
    "cancel",
    "compare",
    "corpora",
    "execute",
    "gate",
    "goldens",
    "init",
    "inspect",
    "judge",
    "log",
    "main",
    "monitor",
    "report",
    "runs",
    "schema",
    "status",
    "views",
    "warehouse",
]
