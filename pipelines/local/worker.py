"""A worker process of Beam's local runner: like Beam's own, but it ends cleanly and silently on SIGTERM."""

import fcntl
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rankbeam.pipelines.local.interrupt import GRACE_S
from rankbeam.pipelines.local.worker_processes import PROBLEM

_LOOK_S = 0.5


def main(folder: Path, parent: int) -> None:
    """Work until the runner has no more work, until SIGTERM, or until the parent process has ended."""
    threading.Thread(target=_leave_after, args=(parent, folder), daemon=True).start()
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=_leave, args=(folder,), daemon=True).start())
    with _hold_lock(folder):
        import grpc
        from apache_beam.runners.worker import sdk_worker_main

        try:
            sdk_worker_main.main(sys.argv[:1])
        except grpc.RpcError:  # the parent was killed
            _leave(folder)


@contextmanager
def _hold_lock(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with _own_file(folder).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            _remove_file(folder)


def _leave_after(parent: int, folder: Path) -> None:
    """Leave once the parent has ended; while this worker starts, the parent does not know it, and cannot end it."""
    while os.getppid() == parent:
        time.sleep(_LOOK_S)
    _leave(folder)


def _leave(folder: Path) -> None:
    """End the calls in flight, then the process; discard Beam's messages about this."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    from rankbeam.transforms.clients.calls import fanout
    from rankbeam.transforms.records.errors import InputError

    try:
        fanout.stop_all(GRACE_S)
    except InputError as error:
        (folder / f"{PROBLEM}{os.getpid()}").write_text(str(error), encoding="utf-8")
    _remove_file(folder)
    os._exit(0)


def _remove_file(folder: Path) -> None:
    _own_file(folder).unlink(missing_ok=True)
    with suppress(OSError):  # not empty: other workers are still running
        folder.rmdir()


def _own_file(folder: Path) -> Path:
    return folder / str(os.getpid())


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
