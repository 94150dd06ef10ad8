"""The positions of the texts of a store: 24 bytes a text, sorted by hash."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

_PLACE = np.dtype([("high", "<u8"), ("low", "<u8"), ("part", "<u4"), ("group", "<u4")])
Places = npt.NDArray[Any]


class TextIndex:
    """The parts of a store, and the part and row group of each hash.

    Half of a hash names a text: of 2**40 texts two would have the same half with a probability of 2**-49.
    """

    def __init__(self) -> None:
        self.paths: list[str] = []
        self._places = np.empty(0, _PLACE)

    def __len__(self) -> int:
        return len(self._places)

    def add(self, parts: Sequence[tuple[str, Sequence[Sequence[bytes]]]]) -> None:
        """Add parts: the path of each, and the hashes of each of its row groups."""
        pieces = [self._places]
        for path, groups in parts:
            for number, digests in enumerate(groups):
                pieces.append(_places(digests, len(self.paths), number))
            self.paths.append(path)
        places = np.concatenate(pieces)
        self._places = places[np.lexsort((places["low"], places["high"]))]

    def drop(self, path: str) -> None:
        """Leave out a part."""
        if path in self.paths:
            self._places = self._places[self._places["part"] != self.paths.index(path)]

    def find(self, digests: Sequence[bytes]) -> Places:
        """A place for each hash; an unknown hash has a `part` beyond all parts."""
        wanted = _places(digests, 0, 0)
        found = np.zeros(len(wanted), _PLACE)
        found["part"] = len(self.paths)
        first = np.searchsorted(self._places["high"], wanted["high"], "left")
        last = np.searchsorted(self._places["high"], wanted["high"], "right")
        for row in np.flatnonzero(first < last):
            here = self._places[first[row] : last[row]]
            same = here[here["low"] == wanted["low"][row]]
            if len(same):
                found[row] = same[0]
        return found


def _places(digests: Sequence[bytes], part: int, group: int) -> Places:
    halves = np.frombuffer(b"".join(digest[:16] for digest in digests), "<u8").reshape(-1, 2)
    places = np.empty(len(halves), _PLACE)
    places["high"], places["low"], places["part"], places["group"] = halves[:, 0], halves[:, 1], part, group
    return places
