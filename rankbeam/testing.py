"""Tools for tests: gates that a result must meet, services without a network, and time that passes at once.

docs/testing.md shows how.
"""

from typing import TYPE_CHECKING

from rankbeam.transforms.clients.calls.fake import FakeRequest, FakeService, call_all
from rankbeam.transforms.clients.clock import SystemClock
from rankbeam.transforms.clients.virtual_clock import VirtualClock
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.reply import Reply, Tokens

if TYPE_CHECKING:
    from rankbeam.pipelines.api.result import Gates, Result

__all__ = [
    "FakeRequest",
    "FakeService",
    "Quota",
    "Reply",
    "SystemClock",
    "Tokens",
    "VirtualClock",
    "assert_gates",
    "call_all",
]


def assert_gates(result: "Result", gates: "Gates | None" = None, *, baseline: "Result | None" = None) -> None:
    """Raise an AssertionError if a result misses a gate; the message shows every gate with its value.

    Args:
        result: a finished run.
        gates: as under `gates:` of an experiment, or the path of a file with them; by default those of the experiment.
        baseline: the run that gates on differences compare with, instead of the baseline configuration.

    Raises:
        AssertionError: a gate is missed, or its value is missing.
        InputError: a gate cannot be checked, or there are none.
    """
    from rankbeam.pipelines.api import result as results  # imports Beam, which tests of plug-ins need not

    results.assert_gates(result, gates, baseline=baseline)
