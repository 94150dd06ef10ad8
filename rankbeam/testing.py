"""Tools for tests of plug-ins: services without a network, and time that passes at once.

docs/testing.md shows how.
"""

from rankbeam.transforms.clients.calls.fake import FakeRequest, FakeService, call_all
from rankbeam.transforms.clients.clock import SystemClock
from rankbeam.transforms.clients.virtual_clock import VirtualClock
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.reply import Reply, Tokens

__all__ = [
    "FakeRequest",
    "FakeService",
    "Quota",
    "Reply",
    "SystemClock",
    "Tokens",
    "VirtualClock",
    "call_all",
]
