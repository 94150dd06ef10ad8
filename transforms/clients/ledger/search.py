"""Looks up answers in a ledger, once or repeatedly: a part is read only once."""

from collections.abc import Iterator, Mapping

from rankbeam.transforms.clients.ledger.index import Index
from rankbeam.transforms.clients.ledger.rows import Entry
from rankbeam.transforms.records.calls.reach import Reach

_ROUNDS = 20


class Search:
    """Looks up the answers that one caller requests. Between two look-ups the requests may only become fewer.

    Args:
        folder: of the ledger.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._known: set[str] = set()
        self._damage: dict[str, str] = {}

    def find(self, wanted: Mapping[str, Reach | None]) -> Iterator[Entry]:
        """Find answers of earlier calls in the parts that were added since the last look-up.

        Args:
            wanted: for each key how far into a ranking the answer has to go; None for an answer that is whole.

        Yields:
            For each key at most one entry, the newest whose reach covers the requested one. Parts that cannot be used
            are left out, with a warning in `warnings`.

        Raises:
            InputError: the folder cannot be looked up.
        """
        left = dict(wanted)
        index = Index(self._folder, self._known)
        for _ in range(_ROUNDS):  # again when a merge moves an answer, or a damaged one has an older copy
            hits = index.hits(left)
            for entry in index.read(hits, left):
                del left[entry.key]
                yield entry
            if index.is_settled():
                break
        self._learn(index)

    def held(self, wanted: Mapping[str, Reach | None]) -> int:
        """How many entries `find` would yield, without reading an answer."""
        index = Index(self._folder)
        for _ in range(_ROUNDS):
            count = len(index.hits(wanted))
            if index.is_settled():
                break
        self._learn(index)
        return count

    def warnings(self) -> list[str]:
        """Warnings about the parts that were read so far."""
        if not self._damage:
            return []
        (path, reason), *others = sorted(self._damage.items())
        more = f" (and {len(others):,} more)" if others else ""
        paid = "answers of earlier calls cannot be read, and are paid for again where they are needed"
        return [f"{path}{more}: {paid}: {reason}; `rankbeam ledger {self._folder}` names all damaged files"]

    def _learn(self, index: Index) -> None:
        self._known |= index.listed
        for path, reason in index.damage.items():
            self._damage.setdefault(path, reason)
