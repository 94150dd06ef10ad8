"""The place of leases: files that a process replaces or deletes only if they are unchanged since it read them."""

from typing import NamedTuple, Protocol


class ReadFile(NamedTuple):
    """A file as it was read."""

    content: bytes
    version: object


class LeasePlace(Protocol):
    """A filesystem's way to make files that several processes compete for.

    Every method raises InputError if the filesystem refuses.
    """

    def read(self, name: str) -> ReadFile | None:
        """A file, or None."""
        ...

    def create(self, name: str, content: bytes) -> bool:
        """Make a file; returns whether this call made it, rather than another process."""
        ...

    def replace(self, name: str, content: bytes, seen: ReadFile) -> bool:
        """Replace a file, if it is unchanged since it was read; returns whether it was."""
        ...

    def delete(self, name: str, seen: ReadFile) -> None:
        """Delete a file, if it is unchanged since it was read."""
        ...
