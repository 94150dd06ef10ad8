"""Read and divide files in another process while this one imports its modules.

Importing Beam and Google's clients takes more than a second, and Python's lock blocks other threads meanwhile. The
other process (`main`) therefore reads on another core. It writes large pieces to the spill files, and sends their
places through a pipe. A pipeline that needs such a file takes the parts that are ready, and waits for the rest.
"""

import json
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from typing import IO, TYPE_CHECKING, Any

from rankbeam.transforms.clients.storage import spill
from rankbeam.transforms.records.errors import InputError

if TYPE_CHECKING:  # importing Arrow would delay the start of the other process
    import pyarrow as pa

    from rankbeam.transforms.clients.formats.bucketing import DividedPart

File = tuple[str, str]  # a role, for example "run", and the path of a local file

_begun: dict[File, "_Reading"] = {}


@contextmanager
def reading(files: Sequence[File], buckets: int) -> "Iterator[subprocess.Popen[bytes]]":
    """Read and divide files one by one in another process while the block runs; batches in the block are spilled."""
    command = [sys.executable, "-P", "-m", "rankbeam.transforms.clients.formats.read_ahead"]
    with spill.spilling():
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        process = subprocess.Popen(  # noqa: S603  this Python, and paths as data
            [*command, json.dumps([list(files), buckets])],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env=environment,
            process_group=0,  # Ctrl-C interrupts this process, which then ends the other
        )
        begun = {file: _Reading(file[1], buckets) for file in files}
        receiver = threading.Thread(target=_receive, args=[process.stdout, list(begun.values())], daemon=True)
        receiver.start()
        _begun.update(begun)
        try:
            yield process
        finally:
            for file in begun:
                _begun.pop(file, None)
            process.kill()
            process.wait()
            receiver.join()


def is_begun(file: File) -> bool:
    """Return whether a file is being read, and its parts have not been taken yet."""
    return file in _begun


def buckets() -> int | None:
    """The number of buckets of the files that are being read; None if no file is."""
    return next((reading.buckets for reading in _begun.values()), None)


def take_parts(file: File) -> "Iterator[DividedPart] | None":
    """Take the parts of a file that is being read; None if it is not, or its parts have been taken."""
    reading = _begun.pop(file, None)
    return None if reading is None else reading.parts()


class _Reading:
    def __init__(self, path: str, buckets: int) -> None:
        self._path, self.buckets = path, buckets
        self.received: SimpleQueue[Any] = SimpleQueue()

    def parts(self) -> "Iterator[DividedPart]":
        from rankbeam.transforms.clients.formats.bucketing import decode_part

        while (message := self.received.get()) is not None:
            if isinstance(message, EOFError):
                problem = "the process that read it was killed; free memory, and run the same command again"
                raise InputError(problem, path=self._path)
            if isinstance(message, Exception):
                raise message
            yield decode_part(message)


def _receive(stream: IO[bytes], readings: Sequence[_Reading]) -> None:
    """Pass the process's messages to the readings: a file's parts, then None or an error; then the next file."""
    with stream:
        for reading in readings:
            message: Any = ()
            while message is not None and not isinstance(message, Exception):
                try:
                    message = pickle.load(stream)  # noqa: S301  what our own process wrote
                except (EOFError, pickle.UnpicklingError):
                    message = EOFError()
                reading.received.put(message)


def main() -> None:
    """Read the files that the argument names; write pickled parts to standard output, and None after each file."""
    from rankbeam.transforms.clients.formats import rows
    from rankbeam.transforms.clients.storage import batches

    batches.register()
    readers = {"qrels": rows.read_qrels, "run": rows.read_run}
    files, buckets = json.loads(sys.argv[1])
    with suppress(BrokenPipeError):  # the process that waits for the parts has gone
        for role, path in files:
            _send_file(readers[role], path, buckets)
    os._exit(0)  # a broken pipe would be reported again


def _send_file(read: "Callable[[str], Iterator[pa.RecordBatch]]", path: str, buckets: int) -> None:
    from rankbeam.transforms.clients.formats.bucketing import encode_part, in_parts

    try:
        for part in in_parts(read(path), buckets):
            _send(encode_part(part))
    except BrokenPipeError:
        raise
    except Exception as error:
        _send(error)  # raised by the reader of the parts
    else:
        _send(None)


def _send(message: Any) -> None:
    sys.stdout.buffer.write(pickle.dumps(message))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
