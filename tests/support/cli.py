"""Run rankbeam's command as its users do, in this process or in one of its own."""

from dataclasses import dataclass

from click.testing import CliRunner
from support import processes

from rankbeam.pipelines.cli import main


@dataclass(frozen=True)
class Outcome:
    """Exit status and output of a command."""

    status: int
    stdout: str
    stderr: str


def rankbeam(*arguments: str) -> Outcome:
    """Run a command; what it does not handle itself is raised."""
    result = CliRunner(catch_exceptions=False).invoke(main, list(arguments))
    return Outcome(result.exit_code, result.stdout, result.stderr)


def rankbeam_process(*arguments: str, cwd: str | None = None, timeout_s: float = 120) -> Outcome:
    """Run a command in a process of its own, forked from one that has imported all it needs."""
    done = processes.run(processes.COMMAND, *arguments, cwd=cwd, timeout=timeout_s)
    return Outcome(done.returncode, done.stdout, done.stderr)
