"""Do the tests notice when the code is wrong? A seeded sample of mutants, and the share that the tests kill.

    make mutants                                                        everything: some hours
    make mutants MUTANTS="--each 20 --seed 7 transforms/kernels/ranking"

Every mutant runs in a copy of the repository, in a process forked from one that has imported the libraries, against
the module's doctests and the test files that concern it (`tests_of`) until one fails; not against whole runs
(tests/endtoend). A mutant that runs much longer than the module does counts as killed. Each is printed with its line
when it has run, and a module's score when all of its mutants have. Some survivors change nothing that could be seen.

mutmut and cosmic-ray have no option for a sample by a seed, which is what makes a run of minutes comparable.
"""

import importlib
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from mutations import Mutant, mutants

REPOSITORY = Path(__file__).parents[2]
SHARED_DATA = Path(os.environ.get("RANKBEAM_SHARED_DATA") or REPOSITORY.parent / "shared" / "data")
NOT_COPIED = shutil.ignore_patterns(".git", ".venv*", ".hypothesis", ".*_cache", "__pycache__", "out", "build", "dist")
OPTIONS = ("-x", "-q", "-n0", "-pno:cacheprovider", "-mnot campaign", "--hypothesis-seed=0", "--durations=1")
LOG = "mutants.log"
# What tests import besides rankbeam is imported once, before processes are forked; as in support.processes, without a
# thread.
LIBRARIES = ("apache_beam.runners.portability.fn_api_runner.fn_runner", "duckdb", "google.cloud.bigquery", "grpc.aio",
             "httpx", "hypothesis", "pyarrow.dataset", "pyarrow.parquet", "scipy.stats")  # fmt: skip
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
FLOORS = ("kernels", "records", "clients", "stages", "pipelines")
TIMES_LONGER, AND_SECONDS, WAIT_S = 4, 20, 900


@dataclass(frozen=True)
class Job:
    """A mutant to run the tests of its module against, and how many there are of that module."""

    module: Path
    mutant: Mutant
    of: int
    tests: Sequence[str]
    cpu_s: int


def tests_of(module: Path) -> list[str]:
    """The module's doctests, and the test files that concern it; those that are named after it come first.

    A file concerns it that imports it, or lies in the folder that mirrors its own and imports its package, which may
    pass on what is in it. Where there is none, all of that folder do.
    """
    parts = module.with_suffix("").parts
    package, name = ".".join(("rankbeam", *parts[:-1])), parts[-1]
    dotted = package if name == "__init__" else f"{package}.{name}"
    of_module = re.compile(rf"{re.escape(dotted)}\b(?!\.)|from {re.escape(package)} import .*\b{name}\b")
    of_package = re.compile(rf"(from|import) {re.escape(package)}\b(?!\.)")
    is_stage = len(parts) == 2 or parts[1] in ("retrieve", "write")
    folder = REPOSITORY / "tests" / (Path("stages") if is_stage else Path(*parts[parts[0] == "transforms" : -1]))
    unit = {
        path: path.read_text(encoding="utf-8")
        for floor in FLOORS
        for path in sorted((REPOSITORY / "tests" / floor).rglob("test_*.py"))
    }
    beside = [path for path in unit if path.parent == folder]
    named = [path for path in beside if path.stem.startswith(f"test_{name}")]
    importing = [path for path, text in unit.items() if of_module.search(text)]
    passed_on = [path for path in beside if of_package.search(unit[path])]
    first = [path for path in importing if path.parent == folder]
    files = dict.fromkeys(named + first + importing + passed_on) or dict.fromkeys(beside)
    return [f"rankbeam/{module}", *(str(path.relative_to(REPOSITORY)) for path in files)]


def run_tests(folder: Path, tests: Sequence[str], cpu_s: int) -> int:
    """Fork a process that runs tests in a copy of the repository, and return its id; it ends with pytest's status."""
    shutil.rmtree(folder / ".hypothesis", ignore_errors=True)
    if child := os.fork():
        return child
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    signal.alarm(WAIT_S)
    log = os.open(folder / LOG, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    for descriptor in (0, 1, 2):
        os.dup2(log, descriptor)
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    os.environ |= {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "RANKBEAM_SHARED_DATA": str(SHARED_DATA)}
    os._exit(pytest.main([*OPTIONS, *tests]))


def jobs_of(modules: Sequence[Path], each: int, seed: int, folder: Path) -> Iterator[Job]:
    """The mutants of every module; its tests must pass without one."""
    for module in modules:
        if not (sample := mutants(REPOSITORY / module, each, seed)):
            continue
        tests = tests_of(module)
        _, status, used = os.wait4(run_tests(folder, tests, WAIT_S), 0)
        if status:
            said = (folder / LOG).read_text(encoding="utf-8", errors="replace")
            raise click.ClickException(f"the tests of {module} fail without a mutant:\n{said}")
        own_s = used.ru_utime + used.ru_stime
        cpu_s = int(TIMES_LONGER * own_s) + AND_SECONDS
        click.echo(f"{len(sample)} mutants of {module}: {len(tests)} files, {own_s:.0f} CPU s without a mutant")
        yield from (Job(module, mutant, len(sample), tests, cpu_s) for mutant in sample)


def survivors(folders: Sequence[Path], jobs: Iterator[Job]) -> Iterator[tuple[Job, bool]]:
    """Run jobs, one in each folder at a time, and say of each whether the tests passed all the same."""
    free, running = list(folders), dict[int, tuple[Path, Job]]()
    more = True
    while more or running:
        job = next(jobs, None) if free and more else None
        more = more and (job is not None or not free)
        if job:
            folder = free.pop()
            (folder / job.module).write_text(job.mutant.source, encoding="utf-8")
            running[run_tests(folder, job.tests, job.cpu_s)] = folder, job
        elif running:
            child, status = os.wait()
            folder, job = running.pop(child)
            shutil.copy(REPOSITORY / job.module, folder / job.module)
            free.append(folder)
            yield job, status == 0


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--each", default=5, show_default=True, help="Mutants of each module.")
@click.option("--seed", default=1, show_default=True, help="Another seed takes another sample.")
@click.option("--processes", default=os.cpu_count() or 1, help="That run at a time; by default one for each core.")
def command(paths: Sequence[Path], each: int, seed: int, processes: int) -> None:
    """Print the share of mutants that the tests kill, by module."""
    roots = paths or (Path("transforms"), Path("pipelines"))
    files = [file for root in roots for file in ([root] if root.is_file() else sorted(root.rglob("*.py")))]
    modules = [file.resolve().relative_to(REPOSITORY) for file in files]
    results = dict[Path, list[bool]]()
    os.environ |= ONE_THREAD
    for library in LIBRARIES:
        importlib.import_module(library)
    with tempfile.TemporaryDirectory(prefix="mutants-") as parent:
        folders = [Path(parent, str(number), "rankbeam") for number in range(processes + 1)]
        for folder in folders:
            shutil.copytree(REPOSITORY, folder, symlinks=True, ignore=NOT_COPIED)
            for environment in REPOSITORY.glob(".venv*"):
                (folder / environment.name).symlink_to(environment)
        for job, survived in survivors(folders[1:], jobs_of(modules, each, seed, folders[0])):
            results.setdefault(job.module, []).append(not survived)
            click.echo(f"{'survived' if survived else 'killed':8}  {job.module}:{job.mutant.line}: {job.mutant.change}")
            if len(results[job.module]) == job.of:
                click.echo(score(str(job.module), results[job.module]))
    click.echo("\n".join(score(str(module), killed) for module, killed in results.items()))
    click.echo(score("all", [killed for of_module in results.values() for killed in of_module]))


def score(name: str, killed: Sequence[bool]) -> str:
    """The line of a module: which share of its mutants the tests kill."""
    return f"{sum(killed) / max(len(killed), 1):5.0%}  {sum(killed):3} of {len(killed):3}  {name}"


if __name__ == "__main__":
    command()
