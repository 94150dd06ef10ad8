"""Results that a test wrote down, or that follow from the query's text."""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Result:
    """One result.

    Attributes:
        id: id of the document.
        score: as the service says it: a distance where it deals in those, else higher is better; None for none.
        text: text of the result.
        uri: address of the document.
        display_name: display name of its file.
        title: title of the document.
    """

    id: str
    score: float | None
    text: str
    uri: str
    display_name: str
    title: str


class Rankings:
    """The ranking of every query, best first.

    Args:
        answers: by query, its results as `serve` takes them.
        documents: ids that all other queries find.
        distances: whether scores of made results are distances.
    """

    def __init__(self, answers: Mapping[str, Sequence[Mapping[str, Any]]], documents: Sequence[str], distances: bool):
        self._answers = {query: [_result(**result) for result in results] for query, results in answers.items()}
        self._documents = documents
        self._distances = distances

    def count(self, query: str) -> int:
        """The number of results of a query."""
        return len(self._answers.get(query, self._documents))

    def results(self, query: str, start: int, count: int) -> list[Result]:
        """The results of a query from a position on.

        Args:
            query: its text.
            start: the position, from 0.
            count: most results.
        """
        if query in self._answers:
            return self._answers[query][start : start + count]
        return self._invented(query, start, min(start + count, len(self._documents)))

    def _invented(self, query: str, start: int, end: int) -> list[Result]:
        """Walk the documents from one place in steps of one length: each comes once, and no list is shuffled."""
        size = len(self._documents)
        seed = int.from_bytes(hashlib.blake2b(query.encode(), digest_size=12).digest(), "big")
        first, step, quality = seed % size if size else 0, _stride(seed >> 32, size), 0.7 + seed % 997 / 3324
        return [
            _result(self._documents[(first + rank * step) % size], self._score(quality, rank))
            for rank in range(start, end)
        ]

    def _score(self, quality: float, rank: int) -> float:
        similarity = quality / (1 + rank / 20)
        return 1 - similarity if self._distances else similarity


def turned_around(results: Sequence[Result]) -> list[Result]:
    """The same results in the same places, the last one's score first."""
    return [replace(result, score=other.score) for result, other in zip(results, reversed(results), strict=True)]


def _stride(seed: int, size: int) -> int:
    step = seed % max(size, 1) or 1
    while math.gcd(step, size) > 1:
        step += 1
    return step


def _result(
    id: str,  # noqa: A002  the name that tests write
    score: float | None,
    text: str | None = None,
    uri: str | None = None,
    display_name: str | None = None,
    title: str | None = None,
) -> Result:
    return Result(
        id,
        score,
        f"Text of {id}." if text is None else text,
        f"gs://bucket/{id}.txt" if uri is None else uri,
        f"{id}.txt" if display_name is None else display_name,
        id if title is None else title,
    )
