"""The programs that are measured: what they need, what they can read, how they are started, how they depart from us."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, partial
from pathlib import Path

from peers.values import METRICS, TREC_MEASURES

PEERS = Path(__file__).parent / "peers"
RANKBEAM = "rankbeam"
PEERS_PYTHON = os.path.abspath(os.environ.get("PEERS_PYTHON", sys.executable))  # noqa: PTH100  no link is followed
"""Runs the other tools: Beam imports pandas where it is installed, so rankbeam has an environment of its own."""


class Source(StrEnum):
    """Form of the files of judgements and run."""

    PARQUET = "parquet"
    TEXT = "trec"


class Ties(StrEnum):
    """Scores of a query that a tool ranks in another order than rankbeam, which reads doubles."""

    SAME = "none"
    FLOAT32 = "scores that differ as doubles are equal as float32, and tied"
    UNSTABLE = "equal scores are in no fixed order"
    FILE_ORDER = "equal scores are in the order of the file"


@dataclass(frozen=True)
class Task:
    """Data to score.

    Attributes:
        label: the size, and what is special about the rows.
        qrels: the judgements.
        runs: the run; rankbeam alone can have several.
        rows: number of rows of all runs.
        source: form of the files.
    """

    label: str
    qrels: Path
    runs: tuple[Path, ...]
    rows: int
    source: Source


@dataclass(frozen=True)
class Tool:
    """A program that scores a run.

    Attributes:
        name: its name in --tools and the tables.
        sources: forms of files that it reads.
        command: its program and arguments for a task, and the file or folder for its values.
        modules: Python packages it needs.
        program: a program it needs, in place of packages.
        ties: its order of ties.
        tolerance: largest difference from our values that its rounding explains.
        large: it takes part in sizes that are too large for text: it does not hold all rows more than once.
    """

    name: str
    sources: tuple[Source, ...]
    command: Callable[[Task, Path], list[str]]
    modules: tuple[str, ...] = ()
    program: str | None = None
    ties: Ties = Ties.SAME
    tolerance: float = 1e-9
    large: bool = False

    def missing(self) -> str | None:
        """The programs and packages that it needs and that are not installed."""
        if self.program is not None:
            return None if shutil.which(self.program) else f"no program {self.program}"
        absent = [module for module in self.modules if not _importable(module)]
        return f"no package {', '.join(absent)}" if absent else None


@cache
def _importable(module: str) -> bool:
    look = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    return subprocess.run([PEERS_PYTHON, "-c", look], check=False).returncode == 0


def rankbeam_command(task: Task, result: Path) -> list[str]:
    """`rankbeam score` of the environment this runs in."""
    metrics = [word for name in METRICS for word in ("-m", name)]
    program = str(Path(sys.executable).with_name(RANKBEAM))
    return [program, "score", str(task.qrels), *map(str, task.runs), *metrics, "--output", str(result)]


def trec_eval_command(program: str, task: Task, _: Path) -> list[str]:
    """trec_eval; what it prints is its result."""
    metrics = [word for name in TREC_MEASURES for word in ("-m", name)]
    return [program, "-q", "-c", *metrics, str(task.qrels), *map(str, task.runs)]


def peer_command(script: str, task: Task, result: Path) -> list[str]:
    """A script of peers/."""
    return [PEERS_PYTHON, str(PEERS / script), str(task.qrels), *map(str, task.runs), str(result)]


def _floor(name: str, *modules: str, large: bool = True) -> Tool:
    command = partial(peer_command, f"floor_{name}.py")
    return Tool(f"{name} (floor)", (Source.PARQUET,), command, modules or (name,), large=large)


def _peer(name: str, *modules: str, ties: Ties = Ties.FLOAT32, tolerance: float = 1e-9) -> Tool:
    command = partial(peer_command, f"with_{name}.py")
    return Tool(name, tuple(Source), command, (name, *modules), ties=ties, tolerance=tolerance)


def tools(trec_eval: str = "trec_eval") -> dict[str, Tool]:
    """Every tool by the word that --tools knows it by, rankbeam first."""
    trec = partial(trec_eval_command, trec_eval)
    all_tools = [
        Tool(
            RANKBEAM,
            tuple(Source),
            rankbeam_command,
            program=str(Path(sys.executable).with_name(RANKBEAM)),
            large=True,
        ),
        _peer("pytrec_eval"),
        _peer("ir_measures", "pandas"),
        _peer("ranx", "pandas", ties=Ties.UNSTABLE),
        # It rounds to five decimals; means are all there is.
        _peer("beir", "pytrec_eval", tolerance=5.1e-6),
        # It prints four decimals.
        Tool("trec_eval", (Source.TEXT,), trec, program=trec_eval, ties=Ties.FLOAT32, tolerance=5.1e-5),
        _floor("polars"),
        _floor("duckdb"),
        _floor("pyarrow", "pyarrow", "numpy", large=False),
        _floor("numba", "numba", "pyarrow"),
    ]
    return {tool.name.split()[0]: tool for tool in all_tools}
