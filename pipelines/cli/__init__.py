"""The command line, one module for each kind of command. Commands import their slow dependencies themselves."""

from rankbeam.pipelines.cli import (  # noqa: F401  they add their commands to `main`
    batch,
    compare,
    corpora,
    execute,
    gate,
    goldens,
    init,
    inspect,
    judge,
    label,
    nuggets,
    report,
    runs,
    status,
    traces,
    warehouse,
)
from rankbeam.pipelines.cli.group import main

__all__ = ["main"]
