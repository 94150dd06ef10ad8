"""The console script: what the command line does, without half a second of what Python does around it.

Beam and Google's clients are some thousand modules. Collecting garbage while they are imported, looking through all of
them for plugins, and taking them down one by one in the end serves no purpose in a process that ends with its work.
"""

import ctypes
import gc
import os
import resource
import signal
import sys
from contextlib import suppress
from io import TextIOWrapper
from types import FrameType, TracebackType
from typing import NoReturn

_OPEN_FILES = 10_240  # the most that macOS lets a process have
_INTERRUPTED = 130


def command() -> NoReturn:
    """Run the command line, and end the process with its status."""
    # SIGTERM means what Ctrl-C means, and so does SIGHUP, when the terminal is closed; `nohup` ignores it.
    usual = (signal.default_int_handler, signal.SIG_DFL)
    signals = [number for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) in usual]
    for number in signals:
        signal.signal(number, _leave)
    gc.set_threshold(1_000_000, 50, 100)  # for imports; `overheads.avoid_overheads` lowers it for the run
    from rankbeam.pipelines.cli import main
    from rankbeam.pipelines.local import overheads
    from rankbeam.pipelines.local.interrupt import interrupt

    overheads.ends_with_its_command = True
    _keep_memory()
    _open_more_files()
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A terminal that only knows ASCII still shows numbers; files and pipes get ids and names as they are.
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="replace")
    sys.excepthook = _crash
    for number in signals:
        signal.signal(number, interrupt)
    try:
        main()
    except SystemExit as end:  # click always ends so; anything else is a bug, which Python prints
        _end(end.code if isinstance(end.code, int) else int(end.code is not None))
    _end(0)


def _leave(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001  a signal handler's arguments
    """End the process at once: nothing has begun."""
    os._exit(_INTERRUPTED)


def _crash(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print a bug as Python does; taken down afterwards, libraries would report what its frames hold as leaks."""
    sys.__excepthook__(kind, error, trace)
    _end(_INTERRUPTED if issubclass(kind, KeyboardInterrupt) else 1)


def _end(status: int) -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, BrokenPipeError):  # closed, or no longer read
            try:
                stream.flush()
            except OSError:  # a full disk: some versions of Python fail again with what they could not write before
                if not status:
                    raise
    os._exit(status)


def _keep_memory() -> None:
    """Let glibc keep the memory of an array that is gone for the next one: taking it from the system costs a fifth."""
    trim_threshold, map_threshold, bytes_kept = -1, -3, 1 << 30  # names and numbers of malloc.h
    with suppress(AttributeError, OSError):  # another C library
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(map_threshold, bytes_kept)
        mallopt(trim_threshold, bytes_kept)


def _open_more_files() -> None:
    """Allow as many open files as the system lets a user have: each mapped part of a large ledger is one.

    Many systems begin with 256 or 1,024, for programs that number files in a fixed set of bits.
    """
    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = _OPEN_FILES if most == resource.RLIM_INFINITY else min(most, _OPEN_FILES)
    if limit != resource.RLIM_INFINITY and limit < enough:
        with suppress(ValueError, OSError):  # a system with another limit
            resource.setrlimit(resource.RLIMIT_NOFILE, (enough, most))


if __name__ == "__main__":
    command()
