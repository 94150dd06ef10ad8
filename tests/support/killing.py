"""The command in a process of its own, which kills itself with SIGKILL at one call of one function.

python -m support.killing MODULE:CLASS.METHOD NUMBER before|after ARGUMENTS…
"""

import importlib
import inspect
import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple


class Step(NamedTuple):
    """A step of a process: before or after the call of that number of a function."""

    function: str
    number: int = 1
    moment: str = "after"


def killed_at(
    step: Step, arguments: Sequence[str], folder: Path, timeout_s: float = 120.0
) -> subprocess.CompletedProcess[str]:
    """Run the command, which kills itself at a step."""
    command = [sys.executable, "-m", "support.killing", step.function, str(step.number), step.moment, *arguments]
    path = {"PYTHONPATH": str(Path(__file__).parents[1])}
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **path}, capture_output=True, text=True, timeout=timeout_s, check=False
    )


def _patch(step: Step) -> None:
    module, _, name = step.function.partition(":")
    owner: Any = importlib.import_module(module)
    *outer, inner = name.split(".")
    for part in outer:
        owner = getattr(owner, part)
    setattr(owner, inner, _killing(getattr(owner, inner), step))


def _killing(function: Callable[..., Any], step: Step) -> Callable[..., Any]:
    numbers = itertools.count(1)  # calls of several threads overlap

    def kill_if(number: int, moment: str) -> None:
        if (number, moment) == (step.number, step.moment):
            os.kill(os.getpid(), signal.SIGKILL)

    @wraps(function)
    async def asynchronous(*parts: Any, **more: Any) -> Any:
        kill_if(number := next(numbers), "before")
        result = await function(*parts, **more)
        kill_if(number, "after")
        return result

    @wraps(function)
    def synchronous(*parts: Any, **more: Any) -> Any:
        kill_if(number := next(numbers), "before")
        result = function(*parts, **more)
        kill_if(number, "after")
        return result

    return asynchronous if inspect.iscoroutinefunction(function) else synchronous


if __name__ == "__main__":
    from rankbeam.pipelines.cli import main

    _patch(Step(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
    main(sys.argv[4:])
