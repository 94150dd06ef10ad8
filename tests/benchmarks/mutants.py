"""Do the tests notice when the code is wrong? A seeded sample of mutants, and the share that the tests kill.

    make mutants                                                        the modules of MODULES: some minutes
    make mutants MUTANTS="--each 20 --seed 7 transforms/kernels/ranking"

Mutants run in a copy of the repository, against the module's doctests and the test files that concern it (`tests_of`)
until one fails; not against whole runs (tests/endtoend), campaigns, or more than 20 examples of a Hypothesis test.
A mutant with which a test runs much longer counts as killed. Each mutant is printed with its line when it has run, and
at the end the score of every module. mutants.toml names mutants that always run, and those that change nothing.

mutmut 3 runs mutants as quickly, in forked processes and only against tests that reach them. It has no sample by a
seed, leaves out decorated functions, which properties, validators and caches are, and what runs at import, and measures
a copy in which every function is replaced by one that chooses among its mutants, which Beam cannot pickle.
"""

import importlib
import os
import re
import resource
import shutil
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import click
from mutant_tests import LOG, ONE_HOUR, Lines, Session, anew, ended, forked_process, prepare, written
from mutations import Mutant, mutants, replaced

REPOSITORY = Path(__file__).parents[2]
SHARED_DATA = Path(os.environ.get("RANKBEAM_SHARED_DATA") or REPOSITORY.parent / "shared" / "data")
NOT_COPIED = shutil.ignore_patterns(".git", ".venv*", ".hypothesis", ".*_cache", "__pycache__", "out", "build", "dist")
# What tests import besides rankbeam is imported once, before processes are forked; as in support.processes, without a
# thread.
LIBRARIES = ("apache_beam.runners.portability.fn_api_runner.fn_runner", "duckdb", "google.cloud.bigquery", "grpc.aio",
             "httpx", "hypothesis", "ir_measures", "pyarrow.dataset", "pyarrow.parquet", "pydantic", "pytrec_eval",
             "scipy.stats")  # fmt: skip
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
FLOORS = ("kernels", "records", "clients", "stages", "pipelines", "judge")
CPU_S_OF_A_FILE, CPU_S_OF_A_MODULE = 25, 120
ENOUGH = 3
KNOWN: dict[str, list[dict[str, str]]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
# Those in which a mistake would be noticed last: numbers, pace, answers that are paid for, gates.
MODULES = [
    "transforms/kernels/ranking/metrics.py",
    "transforms/kernels/ranking/rankings.py",
    "transforms/kernels/ranking/hits.py",
    "transforms/kernels/ranking/ties.py",
    "transforms/kernels/ranking/fusion.py",
    "transforms/kernels/ranking/spans.py",
    "transforms/kernels/statistics/moments.py",
    "transforms/kernels/statistics/corrections.py",
    "transforms/kernels/statistics/bootstrap.py",
    "transforms/kernels/statistics/intervals.py",
    "transforms/kernels/statistics/estimates.py",
    "transforms/kernels/statistics/randomisation.py",
    "transforms/kernels/statistics/selection.py",
    "transforms/kernels/statistics/ppi.py",
    "transforms/kernels/pacing.py",
    "transforms/kernels/judged.py",
    "transforms/records/scores/means.py",
    "transforms/records/scores/aggregates.py",
    "transforms/records/scores/estimates.py",
    "transforms/clients/calls/lanes.py",
    "transforms/clients/calls/pool_calls.py",
    "transforms/clients/calls/admission.py",
    "transforms/clients/calls/fanout.py",
    "transforms/clients/calls/driver.py",
    "transforms/clients/calls/health.py",
    "transforms/clients/calls/ledger_session.py",
    "transforms/clients/calls/feed.py",
    "transforms/clients/ledger/parts.py",
    "transforms/clients/ledger/index.py",
    "transforms/clients/ledger/lookup.py",
    "transforms/clients/ledger/writer.py",
    "transforms/clients/ledger/rows.py",
    "transforms/clients/ledger/merging.py",
    "pipelines/gates/checks.py",
    "pipelines/gates/show.py",
    "pipelines/gates/table.py",
]


def tests_of(module: Path, repository: Path) -> list[str]:
    """The test files that concern the module, those that are named after it first, and at the end its doctests.

    These are the files in the folder that mirrors its own that are named after it, import it, or import its package,
    which may pass on what is in it. Where they are few, all of that folder are (on the floors of clients and pipelines,
    whose modules work through others), and those of any folder that import the module. With the doctests first, pytest
    would import the module twice if its package imports it, too.
    """
    parts = module.with_suffix("").parts
    package, name = ".".join(("rankbeam", *parts[:-1])), parts[-1]
    dotted = package if name == "__init__" else f"{package}.{name}"
    of_module = re.compile(rf"{re.escape(dotted)}\b(?!\.)|from {re.escape(package)} import .*\b{name}\b")
    of_package = re.compile(rf"(from|import) {re.escape(package)}\b(?!\.)")
    is_stage = len(parts) == 2 or parts[1] in ("retrieve", "write")
    folder = repository / "tests" / (Path("stages") if is_stage else Path(*parts[parts[0] == "transforms" : -1]))
    unit = {
        path: path.read_text(encoding="utf-8")
        for floor in FLOORS
        for path in sorted((repository / "tests" / floor).rglob("test_*.py"))
    }
    beside = [path for path in unit if path.parent == folder]
    named = [path for path in beside if path.stem.startswith(f"test_{name}")]
    importing = [path for path, text in unit.items() if of_module.search(text)]
    is_passed_on = f".{name} import" in (repository / module).with_name("__init__.py").read_text(encoding="utf-8")
    passed_on = [path for path in beside if is_passed_on and of_package.search(unit[path])]
    first = [path for path in importing if path.parent == folder]
    own = list(dict.fromkeys(named + first + passed_on))
    is_enough = len(own) >= ENOUGH or (named and parts[1] in ("kernels", "records"))
    files = dict.fromkeys(own if is_enough else own + beside + importing)
    return [*(str(path.relative_to(repository)) for path in files), f"rankbeam/{module}"]


def modules_in(paths: Sequence[Path]) -> list[Path]:
    """Modules below these folders, relative to the repository."""
    files = [file for path in paths for file in ([path] if path.is_file() else sorted(path.rglob("*.py")))]
    return [file.resolve().relative_to(REPOSITORY) for file in files]


def known(kind: str, module: Path) -> list[dict[str, str]]:
    """Entries of mutants.toml about a module."""
    return [entry for entry in KNOWN.get(kind, []) if entry["module"] == str(module)]


def of_list(module: Path, folder: Path) -> Iterator[tuple[Mutant, bool]]:
    """The mutants of a module that always run, and whether the test that is named there failed."""
    for entry in known("always", module):
        mutant = replaced(folder / module, entry["old"], entry["new"], entry["what"])
        yield mutant, killed_anew(module, mutant, folder, [entry["test"]], CPU_S_OF_A_FILE)


def of_sample(module: Path, folder: Path, count: int, seed: int) -> Iterator[tuple[Mutant, bool]]:
    """Mutants of a module, and whether one of its tests failed."""
    same = {entry["change"] for entry in known("equivalent", module)}
    chosen = mutants(folder / module, count, seed, same)
    tests = tests_of(module, folder)
    reading, writing = os.pipe()

    def collect() -> int:
        def report(number: int, killed: bool) -> None:
            os.write(writing, f"{number} {int(killed)}\n".encode())

        session = Session(folder, module, chosen, report, Lines(str(module)))
        session.lines.start()
        return anew(folder, tests, [session]) or session.failed

    child = forked_process(collect, folder, ONE_HOUR) if chosen else None
    os.close(writing)
    left = set(range(len(chosen)))
    with os.fdopen(reading) as reports:
        for line in reports:
            number, killed = map(int, line.split())
            left.remove(number)
            yield chosen[number], bool(killed)
    if child and ended(child):
        log = (folder / LOG).read_text(encoding="utf-8", errors="replace")
        raise click.ClickException(f"the tests of {module} fail without a mutant:\n{log}")
    for number in sorted(left):
        yield chosen[number], killed_anew(module, chosen[number], folder, tests, CPU_S_OF_A_MODULE)


def killed_anew(module: Path, mutant: Mutant, folder: Path, tests: Sequence[str], most_cpu_s: int) -> bool:
    """Return whether any of these tests, collected with the mutant, fails."""
    with written(folder / module, mutant.source):
        return ended(forked_process(lambda: anew(folder, tests), folder, most_cpu_s)) != 0


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--each",
    "mutants_per_module",
    default=8,
    show_default=True,
    help="Mutants of each module, besides those that always run.",
)
@click.option("--seed", default=1, show_default=True, help="Another seed takes another sample.")
def command(paths: Sequence[Path], mutants_per_module: int, seed: int) -> None:
    """Print the share of mutants that the tests kill, by module."""
    listed = dict.fromkeys([*MODULES, *(entry["module"] for entry in KNOWN["always"])])
    modules = modules_in(paths or [REPOSITORY / module for module in listed])
    scores: dict[Path, list[bool]] = {}
    os.environ |= ONE_THREAD | {"RANKBEAM_SHARED_DATA": str(SHARED_DATA)}
    for library in LIBRARIES:
        importlib.import_module(library)
    with tempfile.TemporaryDirectory(prefix="mutants-") as parent:
        folder = Path(parent, "rankbeam")
        prepare(folder, REPOSITORY, NOT_COPIED)
        for module in modules:
            for mutant, killed in chain(of_list(module, folder), of_sample(module, folder, mutants_per_module, seed)):
                scores.setdefault(module, []).append(killed)
                click.echo(f"{'killed' if killed else 'survived':8}  {module}:{mutant.lines.start}: {mutant.change}")
    click.echo("\n".join(score(str(module), killed) for module, killed in scores.items()))
    every = [killed for of_module in scores.values() for killed in of_module]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    click.echo(f"{score('all', every)}, in {used.ru_utime + used.ru_stime:.0f} CPU s")


def score(name: str, killed: Sequence[bool]) -> str:
    """The line of a module: which share of its mutants the tests kill."""
    return f"{sum(killed) / max(len(killed), 1):5.0%}  {sum(killed):3} of {len(killed):3}  {name}"


if __name__ == "__main__":
    command()
