"""Usage of calls that were made: their number, tokens and durations, to be added up over workers."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from rankbeam.transforms.kernels.durations import percentile
from rankbeam.transforms.records.reply import NO_TOKENS, Tokens


@dataclass(frozen=True)
class Took:
    """Usage of one quota pool and model, without the calls that the ledger answered."""

    position: int | None = None  # None for all calls
    calls: int = 0
    shared: int = 0
    tokens: Tokens = NO_TOKENS
    durations: Mapping[int, int] = field(default_factory=dict)

    def __add__(self, other: "Took") -> "Took":
        """Both together, at the first one's position."""
        return Took(
            self.position,
            self.calls + other.calls,
            self.shared + other.shared,
            self.tokens + other.tokens,
            dict(Counter(self.durations) + Counter(other.durations)),  # `asdict` makes no Counter
        )

    def percentile_s(self, percent: int) -> float | None:
        """A percentile of the durations, in seconds; None where no call was answered."""
        return percentile(self.durations, percent)


def summed(took: Iterable[Took]) -> tuple[Took, ...]:
    """The usage of calls, once for each position."""
    by_position: dict[int | None, Took] = {}
    for item in took:
        by_position[item.position] = by_position[item.position] + item if item.position in by_position else item
    return tuple(by_position.values())


def took_of(took: Iterable[Took], needed_by: Mapping[int, Collection[int]]) -> dict[int, Took]:
    """The usage of the calls that each configuration needed, by its position."""
    of: dict[int, Took] = {}
    for item in took:
        users = () if item.position is None else needed_by.get(item.position, ())
        for user in users:
            here = replace(item, position=user, shared=item.calls if len(users) > 1 else item.shared)
            of[user] = of[user] + here if user in of else here
    return of
