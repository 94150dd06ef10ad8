"""Measure tools in turn, A B C A B C, so that whatever else the machine does falls on all of them alike."""

import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from measure import CommandFailed, Usage, measure, median
from sizes import LARGEST_WITH_TEXT
from tools import RANKBEAM, Source, Task, Tool


@dataclass
class Outcome:
    """Outcome of a tool on a task.

    Attributes:
        tool: the tool.
        task: the task.
        result: its last output.
        usages: time and memory of each run, without the warm-up.
        failure: reason of a failure, if any.
    """

    tool: Tool
    task: Task
    result: Path
    usages: list[Usage] = field(default_factory=list)
    failure: str | None = None

    @property
    def name(self) -> str:
        """The tool and its input."""
        return f"{self.tool.name}, {self.task.label}, {self.task.source}"

    @property
    def typical(self) -> Usage:
        """The median of each figure."""
        return median(self.usages)

    def run(self, counts: bool) -> None:
        """Run it once more, from a clean slate."""
        if self.result.is_dir():
            shutil.rmtree(self.result)
        stdout = self.result if self.tool.name == "trec_eval" else self.result.with_suffix(".stdout")
        try:
            usage = measure(self.tool.command(self.task, self.result), stdout)
        except CommandFailed as failed:
            self.failure = str(failed)
        else:
            self.usages += [usage] if counts else []


@dataclass(frozen=True)
class Protocol:
    """Protocol of measurements: repetitions that count, a warm-up before them, and a listener."""

    repetitions: int
    warm_up: bool
    say: Callable[[str], None]


def in_turn(tools: Iterable[Tool], tasks: Sequence[Task], work: Path, protocol: Protocol) -> list[Outcome]:
    """Measure every tool on every task that it can read.

    Args:
        tools: those to measure; one that is not installed yields an outcome that says so.
        tasks: data to score.
        work: a folder for their results.
        protocol: protocol of the measurements.

    Raises:
        CommandFailed: rankbeam failed; there is nothing to compare the others with.
    """
    pairs = [(tool, task) for tool in tools for task in tasks if task.source in tool.sources]
    outcomes = [
        Outcome(tool, task, work / f"{number}-{tool.name.split()[0]}", failure=_reason_not_to(tool, task))
        for number, (tool, task) in enumerate(pairs)
    ]
    for turn in range(0 if protocol.warm_up else 1, protocol.repetitions + 1):
        for outcome in outcomes:
            if outcome.failure is None:
                outcome.run(counts=turn > 0)
                protocol.say(_failure(outcome, turn))
            if outcome.failure is not None and outcome.tool.name == RANKBEAM:
                raise CommandFailed(f"{outcome.name}: {outcome.failure}")
    return outcomes


def _reason_not_to(tool: Tool, task: Task) -> str | None:
    if (missing := tool.missing()) is not None:
        return f"not installed: {missing}"
    if task.rows > LARGEST_WITH_TEXT and not tool.large:
        return "not measured: it would need more memory than most machines have"
    return None


def _failure(outcome: Outcome, turn: int) -> str:
    """A line of progress."""
    which = f"run {turn}" if turn else "warm-up"
    took = f"{outcome.usages[-1].wall_s:.2f} s" if outcome.usages else "done"
    return f"{outcome.name}: {which}, {outcome.failure or took}"


def find(outcomes: Iterable[Outcome], name: str, source: Source) -> Outcome:
    """The outcome of a tool from a source."""
    return next(one for one in outcomes if one.tool.name == name and one.task.source == source)
