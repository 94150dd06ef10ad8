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
from dataclasses import dataclass
from functools import wraps
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any


@dataclass(frozen=True)
class Step:
    """A step of a process: before or after the call of that number of a function of a module.

    >>> Step(itertools, "count.absent")
    Traceback (most recent call last):
    AttributeError: type object 'itertools.count' has no attribute 'absent'
    """

    module: ModuleType
    function: str
    number: int = 1
    moment: str = "after"

    def __post_init__(self) -> None:
        """Find the function while tests are collected, for a name that moved would fail in campaigns only."""
        attrgetter(self.function)(self.module)


def killed_at(
    step: Step, arguments: Sequence[str], folder: Path, timeout_s: float = 120.0
) -> subprocess.CompletedProcess[str]:
    """Run the command, which kills itself at a step."""
    function = f"{step.module.__name__}:{step.function}"
    command = [sys.executable, "-m", "support.killing", function, str(step.number), step.moment, *arguments]
    path = {"PYTHONPATH": str(Path(__file__).parents[1])}
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **path}, capture_output=True, text=True, timeout=timeout_s, check=False
    )


def _patch(step: Step) -> None:
    outer, _, inner = step.function.rpartition(".")
    owner: Any = attrgetter(outer)(step.module) if outer else step.module
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

    name, _, function = sys.argv[1].partition(":")
    _patch(Step(importlib.import_module(name), function, int(sys.argv[2]), sys.argv[3]))
    main(sys.argv[4:])
