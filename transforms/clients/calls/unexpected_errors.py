"""Unexpected errors of connections and readers: each fails one call, and the traceback of each kind is kept once.

Messages of such errors are left out everywhere: those of HTTP libraries may quote headers, and so contain secrets.
"""

import traceback
from collections.abc import Callable
from hashlib import sha256

from rankbeam.transforms.records.errors import CallError, FailureKind, InputError

_MOST_FRAMES = 50  # the innermost ones: an endless recursion has thousands


class UnexpectedError(CallError):
    """A call that failed with an error that is not a `CallError`."""

    def __init__(
        self, error: BaseException, raised: str = "an unexpected", advice: str = "please report it{}, with"
    ) -> None:
        *_, (frame, line) = traceback.walk_tb(error.__traceback__)
        module = str(frame.f_globals.get("__name__"))
        self.name = f"{raised} {type(error).__name__} at {module}, line {line}"
        self.advice = advice.format("" if module.startswith("rankbeam.") else " to the authors of that module")
        super().__init__(FailureKind.MALFORMED, self.name)
        self.frames = "".join(traceback.format_tb(error.__traceback__, -_MOST_FRAMES))


class UnexpectedErrors:
    """The unexpected errors of one lane."""

    def __init__(self, keep: Callable[[str, str], str]) -> None:
        self._keep = keep
        self._unwritten: dict[str, UnexpectedError] = {}
        self._places: dict[str, str] = {}

    def add(self, service: str, error: UnexpectedError) -> None:
        """Note an error; errors of the same type, source line and service are kept once."""
        name = f"{service}: {error.name}"
        if name not in self._places and name not in self._unwritten:
            self._unwritten[name] = error

    def write(self) -> None:
        """Write new tracebacks; called in a thread."""
        for name in list(self._unwritten):
            error = self._unwritten.pop(name)
            text = f"{name}\nTraceback (most recent call last):\n{error.frames}"
            self._places[name] = "its traceback could not be written"
            try:
                path = self._keep(f"error-{sha256(name.encode()).hexdigest()[:32]}.log", text)
            except InputError:  # a failure to write the log must not fail the run
                continue
            self._places[name] = f"{error.advice} {path}"

    def warnings(self) -> list[str]:
        return [f"{name}: the calls that met it count as malformed; {place}" for name, place in self._places.items()]
