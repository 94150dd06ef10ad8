"""Settings of all tests. Hypothesis measures no time, because a slow machine is not a failure.

`make test` tries the same examples each time: chance must not decide whether a commit may land. `make campaign` tries
others each time, and prints their seed.
"""

import atexit
import gc
import os
import signal
import sys
from collections import Counter
from collections.abc import Generator
from itertools import count

import pytest
from hypothesis import HealthCheck, settings
from support import beam_habits
from support.campaigns import sized

UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ordinary", UNTIMED, max_examples=25, derandomize=True)
settings.register_profile(
    "campaign", UNTIMED, max_examples=sized(200, 20), derandomize=False, database=None, print_blob=True
)
settings.load_profile("ordinary")

COLLECTED_AFTER = (50_000, 20, 10)
"""Thresholds of the garbage collector: new objects before a collection, and collections before older generations.

Fewer of the latter keep memory of earlier pipelines, which refer to themselves: gigabytes in a whole run.
"""
FROZEN_AFTER_TESTS, FROZEN_AFTER_MODULES = 100, 100
"""A run collects garbage before it writes its results, and would look through all modules each time."""

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    # A shell starts what it runs in the background so, and what the tests start would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers() -> int:
    """Two more than there are cores: tests wait for processes and stand-ins for much of their time."""
    return (os.cpu_count() or 1) + 2


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Import and collect without the garbage collector, which otherwise takes half of that time.

    Modules and tests stay until the end, so later collections leave them out.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.set_threshold(*COLLECTED_AFTER)
        gc.enable()
        gc.freeze()
        atexit.register(gc.unfreeze)  # extensions report what is left at the end as leaks


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run long tests first, then campaigns, then laws, which `make test` has tried already: in CI time may run out."""
    items.sort(key=lambda item: [item.get_closest_marker(name) is None for name in ("long", "campaign")])


_begun = count(1)
_frozen_modules = 0


def pytest_runtest_setup() -> None:
    """Let Beam remember signatures, and later collections leave out what tests have imported since the last time."""
    global _frozen_modules
    beam_habits.make_cheap()
    if not next(_begun) % FROZEN_AFTER_TESTS or len(sys.modules) > _frozen_modules + FROZEN_AFTER_MODULES:
        gc.collect()
        gc.freeze()
        _frozen_modules = len(sys.modules)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name what was skipped, such as tests of an emulator that needs Go, with the number of tests."""
    reasons = Counter(
        report.longrepr[2].removeprefix("Skipped: ") for report in terminalreporter.stats.get("skipped", ())
    )
    if reasons:
        terminalreporter.section("skipped")
    for reason, tests in reasons.most_common():
        terminalreporter.line(f"{tests} tests: {reason}")
