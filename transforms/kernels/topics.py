"""Topics of documents from integer counts of words: the same clusters on any machine, unlike those of an SVD.

Leaders are chosen by farthest-first traversal (Gonzalez, 1985) among well-connected documents; then documents go to the
cluster whose words they hold, and clusters to the words that their documents hold, a few times.
"""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from rankbeam.transforms.kernels.grouping import grouped

_WORDS = 32  # most words of a document's profile
_ROUNDS = 6
_LABEL_WORDS = 3
_SCALE = 64
MOST_TOPICS = 24

Profile = dict[str, int]  # words with their weights


def topic_count(documents: int) -> int:
    """The number of topics for a number of documents.

    >>> [topic_count(documents) for documents in (1, 10, 170, 10**6)]
    [1, 2, 9, 24]
    """
    return max(1, min(MOST_TOPICS, math.isqrt(documents // 2)))


def profiles(documents: Sequence[Collection[str]]) -> list[Profile]:
    """The weightiest words of every document; a word weighs the number of digits, base 2, of how rare it is.

    Args:
        documents: the distinct words of each.

    >>> profiles([["pay", "invoice"], ["pay", "owner"], ["pay", "invoice"], ["cat"]])[0]
    {'invoice': 2, 'pay': 1}
    """
    counts = Counter(word for words in documents for word in set(words))
    weights = {word: (len(documents) // count).bit_length() for word, count in counts.items() if count > 1}
    return [_heaviest({word: weights[word] for word in words if word in weights}) for words in documents]


def overlap(first: Profile, second: Profile) -> int:
    """The weight of the words that two profiles share.

    >>> overlap({"a": 3, "b": 1}, {"a": 3, "c": 2})
    3
    """
    return sum(weight for word, weight in first.items() if word in second)


def topics(documents: Sequence[Profile], count: int) -> list[int]:
    """The topic of every document, from 0; topics without documents are left out of the numbering.

    Args:
        documents: profiles of the documents.
        count: most topics.

    >>> cats, dogs = {"cat": 2, "paw": 1}, {"dog": 2, "bone": 2}
    >>> topics([cats, dogs, cats, dogs], 2)
    [0, 1, 0, 1]
    """
    centres = [dict.fromkeys(documents[leader], _SCALE) for leader in _leaders(documents, count)]
    assigned: list[int] = []
    for _ in range(_ROUNDS):
        before, assigned = assigned, _assign_topics(documents, centres)
        if assigned == before:
            break
        centres = [_centre(documents, assigned, topic) for topic in range(len(centres))]
    assigned = _merge_singletons(documents, assigned)
    order = {topic: number for number, topic in enumerate(dict.fromkeys(assigned))}
    return [order[topic] for topic in assigned]


def label(documents: Sequence[Profile]) -> tuple[str, ...]:
    """The three words that the documents of a topic share most, by weight.

    >>> label([{"cat": 2, "paw": 1}, {"cat": 2}])
    ('cat', 'paw')
    """
    sums: Counter[str] = Counter()
    for profile in documents:
        sums.update(profile)
    return tuple(sorted(sums, key=lambda word: (-sums[word], word))[:_LABEL_WORDS])


def _heaviest(weights: Profile) -> Profile:
    return dict(sorted(weights.items(), key=lambda item: (-item[1], item[0]))[:_WORDS])


def _leaders(documents: Sequence[Profile], count: int) -> list[int]:
    spread = Counter(word for profile in documents for word in profile)
    ties = [sum(spread[word] - 1 for word in profile) for profile in documents]
    least = sorted(ties)[len(ties) // 2]  # outliers would make topics of their own
    eligible = [place for place, tied in enumerate(ties) if tied >= least]
    leaders = [max(eligible, key=lambda place: (ties[place], -place))]
    nearest = {place: overlap(documents[place], documents[leaders[0]]) for place in eligible}
    while len(leaders) < min(count, len(eligible)):
        leader = min(eligible, key=lambda place: (nearest[place], -ties[place], place))
        leaders.append(leader)
        nearest = {place: max(near, overlap(documents[place], documents[leader])) for place, near in nearest.items()}
        nearest[leader] = 1 << 62
    return leaders


def _assign_topics(documents: Sequence[Profile], centres: Sequence[Profile]) -> list[int]:
    holders = grouped((word, (topic, share)) for topic, centre in enumerate(centres) for word, share in centre.items())
    assigned = []
    for profile in documents:
        scores = [0] * len(centres)
        for word, weight in profile.items():
            for topic, share in holders.get(word, ()):
                scores[topic] += weight * share
        assigned.append(max(range(len(centres)), key=lambda topic: (scores[topic], -topic)))
    return assigned


def _merge_singletons(documents: Sequence[Profile], assigned: Sequence[int]) -> list[int]:
    """Join topics of a single document to the topics that share most with them, so that no document is alone."""
    sizes = Counter(assigned)
    large = [topic for topic, size in sorted(sizes.items()) if size > 1]
    if not large:
        return [min(assigned)] * len(assigned)
    centres = {topic: _centre(documents, assigned, topic) for topic in large}

    def nearest(profile: Profile) -> int:
        scores = {topic: _score(profile, centre) for topic, centre in centres.items()}
        return max(large, key=lambda topic: (scores[topic], -topic))

    return [topic if sizes[topic] > 1 else nearest(profile) for profile, topic in zip(documents, assigned, strict=True)]


def _score(profile: Profile, centre: Profile) -> int:
    return sum(weight * centre.get(word, 0) for word, weight in profile.items())


def _centre(documents: Sequence[Profile], assigned: Sequence[int], topic: int) -> Profile:
    members = [profile for profile, own in zip(documents, assigned, strict=True) if own == topic]
    counts = Counter(word for profile in members for word in profile)
    return {word: count * _SCALE // len(members) for word, count in counts.items() if count * _SCALE >= len(members)}


@dataclass(frozen=True)
class Neighbours:
    """Documents by their words, and by each word the documents that hold it."""

    profiles: Mapping[str, Profile]  # by document, its words by falling weight
    holders: Mapping[str, Sequence[str]]  # by word, the documents that contain it

    @classmethod
    def of(cls, profiles: Mapping[str, Profile]) -> "Neighbours":
        """The neighbours among these documents."""
        return cls(profiles, grouped((word, name) for name, words in profiles.items() for word in words))

    def nearest(self, own: Profile, besides: str, least: int = 1) -> str | None:
        """The document that shares the greatest weight, ties to the last by name; None if no document shares enough.

        The heaviest words are the rarest ones. A document without any of the words so far shares at most the remaining
        weight: once another one shares more, no further document is compared (as MaxScore; Turtle & Flood, 1995).

        Args:
            own: the words of a document.
            besides: its name.
            least: the weight that is enough.

        >>> found = Neighbours.of({"a": {"cat": 3, "paw": 1}, "b": {"cat": 3}, "c": {"paw": 1}})
        >>> found.nearest({"cat": 3, "paw": 1}, "a")
        'b'
        """
        remaining = sum(own.values())
        shared: dict[str, int] = {}
        best = 0
        for word, weight in own.items():
            if remaining < max(best, least):
                break
            remaining -= weight
            for name in self.holders.get(word, ()):
                if name != besides and name not in shared:
                    shared[name] = overlap(own, self.profiles[name])
                    best = max(best, shared[name])
        nearest = max(shared, key=lambda name: (shared[name], name), default=None)
        return None if nearest is None or shared[nearest] < least else nearest
