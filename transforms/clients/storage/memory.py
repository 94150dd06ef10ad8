"""Memory that this process holds and does not use."""

import ctypes
from contextlib import suppress

import pyarrow as pa


def release_unused() -> None:
    """Return memory of freed objects to the system, before work that allocates by other means.

    Arrow keeps what it has freed for its next tables, and so does the C library: without this a process holds the
    largest amount of each of them at the end, though it never used them together.
    """
    pa.default_memory_pool().release_unused()
    with suppress(AttributeError, OSError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)
