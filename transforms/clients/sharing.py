"""Share process-wide settings between blocks of several threads."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from typing import TypeVar

Value = TypeVar("Value")


def shared(
    block: Callable[[], AbstractContextManager[Value]],
) -> Callable[[], AbstractContextManager[Value]]:
    """Share a block between overlapping uses, nested or in threads: the first enters the block, the last leaves it."""
    lock = threading.Lock()
    entered: list[tuple[AbstractContextManager[Value], Value]] = []
    inside = 0

    @wraps(block)
    @contextmanager
    def within() -> Iterator[Value]:
        nonlocal inside
        with lock:
            if not entered:
                manager = block()
                entered.append((manager, manager.__enter__()))
            inside += 1
        try:
            yield entered[0][1]
        finally:
            with lock:
                inside -= 1
                if not inside:
                    entered.pop()[0].__exit__(None, None, None)

    return within
