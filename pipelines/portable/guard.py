"""Run a command, and end it when standard input ends, because then the process that started this one has gone.

    python guard.py COMMAND [ARGUMENT …]

A process that is killed cannot stop its children, but the system closes its pipes. Nothing here imports rankbeam.
"""

import os
import subprocess
import sys
import threading

_STOPPING_S = 5.0


def _watch(process: "subprocess.Popen[bytes]") -> None:
    os.read(0, 1)  # never written to
    process.terminate()
    try:
        process.wait(_STOPPING_S)
    except subprocess.TimeoutExpired:
        process.kill()


def main() -> None:
    """Run the command of this process's arguments; the exit status is the command's."""
    process = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)  # noqa: S603  what the caller asks for
    threading.Thread(target=_watch, args=[process], daemon=True).start()
    sys.exit(process.wait())


if __name__ == "__main__":
    main()
