"""Pauses: how a task waits between two looks at something that takes long, without a clock of its own."""

from rankbeam.transforms.records.calls.call import Call

PAUSE = "pause"
"""The service that pauses name; no quota pool pays for them."""


def pause(seconds: float) -> Call:
    """A call that is over after some time; a step that yields it is sent None for it.

    >>> pause(2.5).payload
    '2.5'
    """
    return Call(PAUSE, None, f"{seconds:g}")
