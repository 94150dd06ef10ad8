"""The one thread of a process on which its remote calls run, whichever DoFn asked for them."""

import asyncio
import functools
import os
import threading

_lock = threading.Lock()


def running_loop() -> asyncio.AbstractEventLoop:
    """The loop of this process; it is started by whoever comes first, and runs as long as the process."""
    with _lock:
        return _loop_of(os.getpid())


@functools.cache
def _loop_of(pid: int) -> asyncio.AbstractEventLoop:
    del pid  # a process that was forked has its parent's memory, but not its threads
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="rankbeam-calls", daemon=True).start()
    return loop
