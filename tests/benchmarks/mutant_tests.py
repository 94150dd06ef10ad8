"""Runs tests against mutants in forked processes: one that has collected the tests of a module, forked for each mutant.

    a process that imported the libraries
      └ one for each module: collects its tests, and notes which tests execute which of its lines
          └ one for each mutant: gives the module's functions their changed code, runs the tests that execute the line

Code that runs at import, such as a constant, cannot be changed afterwards; such a mutant is written to the copy of the
repository, and its process, forked from the first one, collects the tests anew.
"""

import builtins
import gc
import math
import os
import resource
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, NoReturn

import pytest
from hypothesis import HealthCheck, Phase, settings
from mutations import NOTE, Mutant, noting

OPTIONS = ("-x", "-q", "-n0", "-pno:cacheprovider", "-mnot campaign", "--hypothesis-seed=0", "--durations=1",
           "--hypothesis-profile=mutants")  # fmt: skip
LOG = "mutants.log"
ONE_HOUR = 3600
IDLE_S, LEAST_BUSY = 15.0, 0.02
FAILED_TO_PUT = 77
EXAMPLES, EXAMPLES_FOR_LINES = 20, 3
TIMES_LONGER, AND_SECONDS = 4, 5
SETTINGS = "_hypothesis_internal_use_settings"  # where Hypothesis keeps those of a test
# Hypothesis stops at the first example that fails.
settings.register_profile(
    "mutants", deadline=None, database=None, max_examples=EXAMPLES, suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.generate), report_multiple_bugs=False,
)  # fmt: skip


@dataclass
class Lines:
    """Lines of a module that each test executes, and its CPU seconds.

    Attributes:
        at_import: lines that are executed before a test runs.
        of_test: those that each test executes, in the order of collection.
    """

    module: str
    at_import: set[int] = field(default_factory=set)
    of_test: list[set[int]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    current: set[int] = field(default_factory=set)
    _is_module: dict[str, bool] = field(default_factory=dict)

    def start(self) -> None:
        """Note lines that this thread executes from now on: those of imports."""
        self.current = self.at_import
        sys.settrace(self._called)

    def stop(self) -> None:
        """Note no more of them."""
        sys.settrace(None)

    def is_module(self, filename: str) -> bool:
        """Return whether code comes from the module's file."""
        if filename not in self._is_module:
            self._is_module[filename] = filename.endswith(f"/{self.module}")
        return self._is_module[filename]

    def note(self, line: int) -> None:
        """Note a line that a test executes; called by `noting` code, in any thread."""
        self.current.add(line)

    def _called(self, frame: FrameType, _event: str, _value: object) -> Callable[..., Any] | None:
        return self._executed if self.is_module(frame.f_code.co_filename) else None

    def _executed(self, frame: FrameType, _event: str, _value: object) -> Callable[..., Any]:
        self.current.add(frame.f_lineno)
        return self._executed

    def tests(self, lines: range) -> list[int]:
        """The tests that execute one of these lines, the quickest first; all if none does."""
        which = [number for number, of_test in enumerate(self.of_test) if not of_test.isdisjoint(lines)]
        return sorted(which or range(len(self.of_test)), key=self.seconds.__getitem__)


@dataclass
class Session:
    """A plugin of pytest: instead of the tests once, runs them once for each mutant.

    Args:
        report: called with a mutant's number and whether it was killed.
    """

    folder: Path
    module: Path
    mutants: Sequence[Mutant]
    report: Callable[[int, bool], None]
    lines: Lines
    failed: bool = False

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the tests without a mutant, and then against those that are put into functions."""
        self.lines.stop()
        gc.unfreeze()
        self.code = compile((self.folder / self.module).read_bytes(), "<module>", "exec")
        self.failed = not self._note_lines(session)
        for number, mutant in enumerate([] if self.failed else self.mutants):
            if self.lines.at_import.isdisjoint(mutant.lines):
                run = partial(self._against, session, mutant, self.lines.tests(mutant.lines))
                with written(self.folder / self.module, mutant.source):
                    status = ended(forked_process(run, self.folder, ONE_HOUR))
                if status != FAILED_TO_PUT:
                    self.report(number, status != 0)
        return True

    def _note_lines(self, session: pytest.Session) -> bool:
        reading, writing = os.pipe()
        child = forked_process(lambda: self._run_noting(session, writing), self.folder, ONE_HOUR)
        os.close(writing)
        with os.fdopen(reading, encoding="utf-8") as results:
            for line in results:
                seconds, *numbers = line.split()
                self.lines.seconds.append(float(seconds))
                self.lines.of_test.append(set(map(int, numbers)))
        return ended(child) == 0

    def _run_noting(self, session: pytest.Session, writing: int) -> int:
        bound_examples(session.items, EXAMPLES_FOR_LINES)
        setattr(builtins, NOTE, self.lines.note)
        put(self.code, noting(self.folder / self.module), self.lines.is_module)
        with os.fdopen(writing, "w", encoding="utf-8") as results:
            for number, item in enumerate(session.items):
                self.lines.current = set()
                before = time.process_time()
                run_items(session, [item], session.items[number + 1 : number + 2])
                print(time.process_time() - before, *self.lines.current, file=results)
                if session.testsfailed:
                    break
        return finish(session)

    def _against(self, session: pytest.Session, mutant: Mutant, tests: Sequence[int]) -> int:
        if not put(self.code, mutant.code, self.lines.is_module):
            return FAILED_TO_PUT
        items = [session.items[test] for test in tests]
        bound_examples(items, EXAMPLES)
        for place, test in enumerate(tests):
            bound_cpu_s(TIMES_LONGER * times_more_examples(items[place]) * self.lines.seconds[test] + AND_SECONDS)
            run_items(session, items[place : place + 1], items[place + 1 : place + 2])
            if session.testsfailed:
                break
        return finish(session)


def bound_examples(items: Sequence[pytest.Item], most: int) -> None:
    """Let Hypothesis draw no more than so many examples, whatever a test says of itself."""
    for item in items:
        test = getattr(item, "obj", None)
        if own := getattr(test, SETTINGS, None):
            setattr(test, SETTINGS, settings(own, max_examples=min(most, own.max_examples)))


def times_more_examples(item: pytest.Item) -> float:
    """Factor of examples that a test draws against a mutant, relative to the recording of its lines."""
    return EXAMPLES / EXAMPLES_FOR_LINES if hasattr(getattr(item, "obj", None), SETTINGS) else 1.0


def bound_cpu_s(more: float) -> None:
    """Let this process use so many CPU seconds from now on; then it is killed."""
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (min(math.ceil(time.process_time() + more), most), most))


def run_items(session: pytest.Session, items: Sequence[pytest.Item], then: Sequence[pytest.Item] = ()) -> None:
    """Run tests until one fails."""
    for item, after in zip(items, [*items[1:], *then, None], strict=False):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        if session.testsfailed:
            return


def finish(session: pytest.Session) -> int:
    """Release what fixtures hold, and return the status of the tests."""
    session.config.hook.pytest_sessionfinish(session=session, exitstatus=session.testsfailed)
    return int(session.testsfailed > 0)


def put(module: CodeType, other: CodeType, is_module: Callable[[str], bool]) -> bool:
    """Give the functions of a module that is imported the code of another version of it; returns whether that worked.

    Args:
        module: its code.
        other: the code of the other version, with the same line numbers.
        is_module: whether code comes from the module's file.
    """
    before, after = codes_by_place(module), codes_by_place(other)
    new: dict[CodeType, CodeType] = {}
    for place, codes in before.items():
        others = after.get(place, codes)
        if len(others) != len(codes):  # one of several lambdas of a line is left out: which?
            return False
        new |= zip(codes, others, strict=True)
    for function in [thing for thing in gc.get_objects() if isinstance(thing, FunctionType)]:
        try:
            if is_module(function.__code__.co_filename):
                function.__code__ = new.get(function.__code__, function.__code__)
        except ValueError:  # a function within a function, which now uses other variables of it
            return False
    return True


def codes_by_place(module: CodeType) -> dict[tuple[str, int], list[CodeType]]:
    """The code of every function, by name and line; the lambdas of a line share them."""
    codes: dict[tuple[str, int], list[CodeType]] = {}
    for code in codes_in(module):
        codes.setdefault((code.co_qualname, code.co_firstlineno), []).append(code)
    return codes


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """The code of every function in code."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from codes_in(constant)


class written:  # noqa: N801  used as a function
    """A file with another text, as long as this context lasts."""

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.text = path, text

    def __enter__(self) -> None:
        self.before = self.path.read_text(encoding="utf-8")
        self.path.write_text(self.text, encoding="utf-8")

    def __exit__(self, *_: object) -> None:
        self.path.write_text(self.before, encoding="utf-8")


def anew(folder: Path, tests: Sequence[str], plugins: Sequence[object] = ()) -> int:
    """Collect and run tests in a copy of the repository, and return pytest's status."""
    environment = {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    os.environ |= environment
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    return int(pytest.main([*OPTIONS, f"--basetemp={folder.parent / 'tmp'}", *tests], plugins=plugins))


def forked_process(run: Callable[[], int], folder: Path, cpu_s: float) -> int:
    """Start a process, with its output in the folder's log; it is killed when it has used so many CPU seconds."""
    child = os.fork()
    if not child:
        _run_and_exit(run, folder, round(cpu_s))
    return child


def _run_and_exit(run: Callable[[], int], folder: Path, cpu_s: int) -> NoReturn:
    status = 1
    try:
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
        log = os.open(folder / LOG, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        for descriptor in (0, 1, 2):
            os.dup2(log, descriptor)
        status = run()
    finally:
        os._exit(status)


def ended(child: int) -> int:
    """The status of a process that was started here, once it has ended and what it started is ended, too.

    One that neither runs nor waits for a processor is killed: its tests wait for what will not happen.
    """
    busy_s, looked_at = 0.0, time.monotonic()
    while not (end := os.waitpid(child, os.WNOHANG))[0]:
        time.sleep(0.05)
        if time.monotonic() > looked_at + IDLE_S:
            before, busy_s, looked_at = busy_s, _busy_s(child), time.monotonic()
            if busy_s < before + LEAST_BUSY * IDLE_S:
                os.kill(child, signal.SIGKILL)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(end[1])


def _busy_s(process: int) -> float:
    """Seconds that a process's threads ran or waited for a processor; infinite if the system does not tell."""
    if not Path("/proc/self/schedstat").exists():
        return math.inf
    busy = 0
    for path in Path(f"/proc/{process}/task").glob("*/schedstat"):
        with suppress(FileNotFoundError, ProcessLookupError):  # the thread has just ended
            ran, waited, _ = path.read_text().split()
            busy += int(ran) + int(waited)
    return busy / 1e9


def prepare(folder: Path, repository: Path, not_copied: Callable[..., set[str]]) -> None:
    """Copy the repository, with its environments as links."""
    shutil.copytree(repository, folder, symlinks=True, ignore=not_copied)
    for environment in repository.glob(".venv*"):
        (folder / environment.name).symlink_to(environment)
