"""Files whose reading begins before a pipeline asks for them, as soon as the command line has named them.

Beam and Google's clients take a second to import, on one core. A thread reads meanwhile, into memory; a reader that is
then asked for such a file goes on from there. What is not asked for is dropped at the end of the block.
"""

import sys
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event

import pyarrow as pa

from rankbeam.transforms.clients.workers import Ahead

Batches = Iterator[pa.RecordBatch]
Name = tuple[str, str]
"""A role, such as "run", and the path of a file."""

_MOST_BATCHES = 64
"""Of one file; readers make about thirty a second."""

_MOST_BYTES = 256 << 20
"""Of all files together, before a pipeline asks for one of them."""

_SWITCH_S = 0.02
"""How long a thread keeps the interpreter. By default, 5 ms, imports and reading interrupt each other for 0.3 s."""

_begun: dict[Name, Ahead[pa.RecordBatch]] = {}
_asked = Event()
"""Set once a pipeline has asked for one of the files, or the block has ended."""


@contextmanager
def reading(batches: Mapping[Name, Batches]) -> Iterator[None]:
    """Read files, one after the other, in a thread beside the block.

    Args:
        batches: of each file, in the order in which they will be wanted.
    """
    interval = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_S)
    maker = ThreadPoolExecutor(1, thread_name_prefix="early")
    _asked.clear()
    budget = _Budget()
    ahead = {name: Ahead(budget.within(each), before=_MOST_BATCHES, maker=maker) for name, each in batches.items()}
    _begun.update(ahead)
    try:
        yield
    finally:
        _asked.set()
        for name in ahead:
            if (unused := _begun.pop(name, None)) is not None:
                unused.close()
        sys.setswitchinterval(interval)
        maker.shutdown(cancel_futures=True)  # after Ctrl-C there may still be a reader, which ends with the process


def is_begun(name: Name) -> bool:
    """Whether the reading of a file has begun, and it was not asked for yet."""
    return name in _begun


def begun(name: Name) -> Batches | None:
    """The batches of a file, where their reading has begun and they were not asked for yet."""
    found = _begun.pop(name, None)
    if found is not None:
        _asked.set()
    return None if found is None else iter(found)


class _Budget:
    """Pauses the thread, once its batches take `_MOST_BYTES`, until a pipeline asks for the first file."""

    def __init__(self) -> None:
        self._bytes = 0

    def within(self, batches: Batches) -> Batches:
        try:
            for batch in batches:
                self._bytes += batch.nbytes
                yield batch
                if self._bytes >= _MOST_BYTES:
                    _asked.wait()
        finally:
            if isinstance(batches, Generator):
                batches.close()
