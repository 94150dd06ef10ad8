"""Memory of the processes of a command, by kind: what the kernel must keep, and pages of files that it can drop."""

import threading
import time
from dataclasses import dataclass
from pathlib import Path

_EVERY_S = 0.25
_PROC = Path("/proc")


@dataclass(frozen=True)
class Peaks:
    """The most memory of each kind that a process held at one time, in bytes.

    Attributes:
        process: its program and module, as in its command line.
        anonymous: memory that no file backs: objects, and buffers of Arrow.
        mapped: pages of files: libraries, and spilled batches.
        anonymous_at_s: when it held the most anonymous memory, in seconds after the start.
    """

    process: str
    anonymous: int
    mapped: int
    anonymous_at_s: float


class Sampled:
    """Samples the descendants of this process in a block, four times a second; only on Linux."""

    def __init__(self, every_s: float = _EVERY_S) -> None:
        self._every_s, self._ended = every_s, threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._peaks: dict[int, Peaks] = {}

    def __enter__(self) -> "Sampled":
        self._began = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def peaks(self) -> list[Peaks]:
        """Peaks of every process, those with the most anonymous memory first."""
        return sorted(self._peaks.values(), key=lambda peaks: -peaks.anonymous)

    def _sample(self) -> None:
        while not self._ended.wait(self._every_s):
            for pid in _children("self"):
                self._look_at(pid)

    def _look_at(self, pid: int) -> None:
        try:
            lines = (_PROC / str(pid) / "status").read_text().splitlines()
            command = (_PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")
            children = _children(str(pid))
        except OSError:  # it has ended
            return
        rss = {
            name: int(size.split()[0]) * 1024
            for name, _, size in (line.partition(":") for line in lines)
            if "Rss" in name
        }
        if rss:
            now = time.monotonic() - self._began
            known = self._peaks.get(pid, Peaks("", 0, 0, 0.0))
            grew = rss["RssAnon"] > known.anonymous
            self._peaks[pid] = Peaks(
                " ".join(part for part in command[1:4] if part),
                max(known.anonymous, rss["RssAnon"]),
                max(known.mapped, rss["RssFile"]),
                now if grew else known.anonymous_at_s,
            )
        for child in children:
            self._look_at(child)


def _children(pid: str) -> list[int]:
    """Processes that any thread of a process started."""
    return [
        int(child) for thread in (_PROC / pid / "task").iterdir() for child in (thread / "children").read_text().split()
    ]
