"""The process that reads files for `early`: it writes pickled parts to standard output, and None after each file.

python -P -m rankbeam.transforms.clients.formats.early_process '[[["qrels", PATH], ["run", PATH]], BUCKETS]'
"""

import json
import os
import pickle
import sys
from contextlib import suppress
from typing import Any

from rankbeam.transforms.clients.formats import rows
from rankbeam.transforms.clients.formats.divided import in_parts, reduced
from rankbeam.transforms.clients.storage import batches

_READERS = {"qrels": rows.read_qrels, "run": rows.read_run}


def main() -> None:
    """Read the files that the argument names."""
    batches.register()
    files, buckets = json.loads(sys.argv[1])
    with suppress(BrokenPipeError):  # the process that waits for the parts has gone
        for role, path in files:
            _send_file(role, path, buckets)
    os._exit(0)  # a broken pipe would be reported again


def _send_file(role: str, path: str, buckets: int) -> None:
    try:
        for part in in_parts(_READERS[role](path), buckets):
            _send(reduced(part))
    except BrokenPipeError:
        raise
    except Exception as error:
        _send(error)  # raised where the file is wanted
    else:
        _send(None)


def _send(message: Any) -> None:
    sys.stdout.buffer.write(pickle.dumps(message))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
