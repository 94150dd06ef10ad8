"""The document that shares most with another, without a look at those that share little."""

from collections.abc import Mapping
from dataclasses import dataclass

from rankbeam.transforms.kernels.topics import Profile, overlap


@dataclass(frozen=True)
class Neighbours:
    """Documents by their words, and by each word the documents that hold it.

    Attributes:
        profiles: by document, its words by falling weight.
        holders: by word, the documents that contain it.
    """

    profiles: Mapping[str, Profile]
    holders: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, profiles: Mapping[str, Profile]) -> "Neighbours":
        """The neighbours among these documents."""
        holders: dict[str, list[str]] = {}
        for name, words in profiles.items():
            for word in words:
                holders.setdefault(word, []).append(name)
        return cls(profiles, {word: tuple(names) for word, names in holders.items()})

    def nearest(self, own: Profile, besides: str, least: int = 1) -> str | None:
        """The document that shares the greatest weight; of equal ones the last by name; None where none shares enough.

        The heaviest words are the rarest ones. A document without any of those looked at so far shares at most what is
        left: once another one shares more, no further document is looked at (as MaxScore; Turtle & Flood, 1995).

        Args:
            own: the words of a document.
            besides: its name.
            least: the weight that is enough.

        >>> found = Neighbours.of({"a": {"cat": 3, "paw": 1}, "b": {"cat": 3}, "c": {"paw": 1}})
        >>> found.nearest({"cat": 3, "paw": 1}, "a")
        'b'
        """
        left = sum(own.values())
        shared: dict[str, int] = {}
        best = 0
        for word, weight in own.items():
            if left < max(best, least):
                break
            left -= weight
            for name in self.holders.get(word, ()):
                if name != besides and name not in shared:
                    shared[name] = overlap(own, self.profiles[name])
                    best = max(best, shared[name])
        nearest = max(shared, key=lambda name: (shared[name], name), default=None)
        return None if nearest is None or shared[nearest] < least else nearest
