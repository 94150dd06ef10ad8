"""The calls of a round, cut into parts that one job takes."""

from collections.abc import Callable, Iterable, Iterator

from rankbeam.transforms.clients.ledger.waiting import PendingCall

_MOST_CALLS, _MOST_BYTES = 20_000, 80 << 20  # of a part; a line is about as long as its payload


class Affordable:
    """The calls that money is left for, of which each reserves the most that it may cost."""

    def __init__(self, left: float) -> None:
        self.left = left
        self.others: list[str] = []

    def of(self, calls: Iterable[PendingCall], most_cost: Callable[[PendingCall], float]) -> Iterator[PendingCall]:
        """Yield them; the keys of the others are added to `others`."""
        for call in calls:
            if (cost := most_cost(call)) <= self.left:
                self.left -= cost
                yield call
            else:
                self.others.append(call.key)


def parts_of(calls: Iterable[PendingCall]) -> Iterator[list[PendingCall]]:
    """Calls of one service and step, in parts that one job takes."""
    part: list[PendingCall] = []
    size = 0
    for call in calls:
        length = len(call.payload.encode("utf-8", "replace"))
        if part and (len(part) == _MOST_CALLS or size + length > _MOST_BYTES):
            yield part
            part, size = [], 0
        part.append(call)
        size += length
    if part:
        yield part
