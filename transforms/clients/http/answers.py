"""Read answers for the `http` retriever: JMESPath expressions locate results, ids, scores and texts."""

import json
import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial, reduce
from operator import itemgetter
from typing import Any

import jmespath.exceptions
import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.transforms.clients.storage.json_paths import Find, finder, names_in
from rankbeam.transforms.records.errors import CallError, FailureKind, shortened
from rankbeam.transforms.records.queries import Ranking
from rankbeam.transforms.records.rankings.retrieved import rankings_array

_LARGEST = sys.float_info.max


class UnexpectedAnswer(Exception):
    """An answer does not look like most answers."""


@dataclass(frozen=True)
class Reader:
    """Reads the answers of one service."""

    results: str
    id: str
    score: str | None
    text: str | None
    required: bool

    def ranking(self, answer: Any) -> Ranking:
        results = self._results(answer)
        find_id = _finder(self.id)
        doc_ids = tuple(
            name if type(name := find_id(result)) is str and name else self._doc_id(name, result) for result in results
        )
        return Ranking(doc_ids, self._scores(results), self._texts(results))

    def rankings(self, answers: Iterable[Any]) -> pa.ListArray:
        """The rankings in many answers, without an object for each of them."""
        lengths: list[int] = []
        ids, scores, texts = list[Any](), list[Any](), list[Any]()
        find = _finder(self.results)
        columns = zip((ids, scores, texts), (self.id, self.score, self.text), strict=True)
        fields = [(values, _each_at(path)) for values, path in columns if path is not None]
        try:
            for answer in answers:  # one at a time: its values are still in the processor's cache
                results = find(answer)
                if type(results) is not list:
                    raise UnexpectedAnswer
                lengths.append(len(results))
                for values, at in fields:
                    values += at(results)
            named, contents = pa.array(ids, pa.string()), pa.array(texts, pa.string())
        except (LookupError, TypeError, ValueError, CallError) as error:  # nothing there, or a value of another type
            raise UnexpectedAnswer from error
        if named.null_count or contents.null_count or pc.any(pc.equal(named, "")).as_py():
            raise UnexpectedAnswer
        if not (_are(float, scores) and all(map(math.isfinite, scores))):
            raise UnexpectedAnswer
        numbers = pa.nulls(len(ids), pa.float64()) if self.score is None else pa.array(scores, pa.float64())
        contents = pa.nulls(len(ids), pa.string()) if self.text is None else contents
        return rankings_array([named, numbers, contents], lengths, [False] * len(lengths))

    def _results(self, answer: Any) -> list[Any]:
        results = _finder(self.results)(answer)
        if isinstance(results, list):
            return results
        if not self.required and self._is_left_out(answer):
            return []
        hint = "" if results is not None else f"; {self._why_not(answer)}"
        raise malformed(f"results: {self.results} is not a list, found {short_json(results)}{hint}")

    def _is_left_out(self, answer: Any) -> bool:
        """Return whether only the list of results is missing: many services omit an empty list."""
        names = names_in(self.results)
        if names is None or not isinstance(answer, dict) or _error_in(answer) is not None:
            return False
        value: Any = answer
        for name in names:
            if not isinstance(value, dict):
                return False
            value = value.get(name)
            if value is None:
                return True
        return False

    def _why_not(self, answer: Any) -> str:
        """The reason that an answer without a list of results does not count as an empty ranking."""
        if not isinstance(answer, dict):
            return f"the answer is not an object, found {short_json(answer)}"
        if (error := _error_in(answer)) is not None:
            return f"the answer holds an error: {short_json(error)}"
        if self.required:
            return f"the answer is {short_json(answer)}"
        if names_in(self.results) is None:
            return f"if the service omits an empty list, write results: {self.results} || `[]`"
        return "results_required: false is for omitted lists, but here is another value instead of a list"

    def _scores(self, results: list[Any]) -> tuple[float, ...]:
        if self.score is None:
            return (math.nan,) * len(results)
        find = _finder(self.score)
        return tuple(
            score if type(score := find(result)) is float and abs(score) <= _LARGEST else self._score(score, result)
            for result in results
        )

    def _texts(self, results: list[Any]) -> tuple[str, ...]:
        if self.text is None:
            return ()
        find = _finder(self.text)
        return tuple(text if type(text := find(result)) is str else self._text(text) for result in results)

    def _doc_id(self, value: Any, result: Any) -> str:
        if _is_number(value):
            return str(value)
        raise malformed(f"id: {self.id} is neither text nor number, found {short_json(value)} in {short_json(result)}")

    def _score(self, value: Any, result: Any) -> float:
        if value is None:
            return math.nan
        if not _is_number(value):
            raise malformed(f"score: {self.score} is not a number, found {short_json(value)} in {short_json(result)}")
        return float(value)

    def _text(self, value: Any) -> str:
        if value is None:
            return ""
        raise malformed(
            f"text: {self.text} is not text, found {short_json(value)}; JMESPath's join(' ', …) makes one text"
        )


@cache
def _each_at(path: str) -> Callable[[Iterable[Any]], Iterable[Any]]:
    """A function that returns the value at a path of names in each of many values, without a Python step for each.

    It raises a LookupError or a TypeError if a value has nothing there.

    >>> list(_each_at("_source.id")([{"_source": {"id": "a"}}, {"_source": {"id": "b"}}]))
    ['a', 'b']
    """
    names = names_in(path)
    if names is None:
        raise UnexpectedAnswer
    getters = [itemgetter(name) for name in names]
    return lambda values: reduce(lambda within, getter: map(getter, within), getters, values)


def _are(kind: type, values: list[Any]) -> bool:
    """Return whether all values are of one type.

    >>> _are(float, [1.0, 2.0]), _are(float, [1.0, True])
    (True, False)
    """
    return set(map(type, values)) <= {kind}


@cache
def _finder(path: str) -> Find:
    """As `finder`, with the error of a call where a path does not fit an answer."""
    find = finder(path)
    return find if names_in(path) is not None else partial(_search, path, find)


def _search(path: str, find: Find, answer: Any) -> Any:
    try:
        return find(answer)
    except jmespath.exceptions.JMESPathError as error:
        raise malformed(f"{path} does not fit the answer: {str(error).splitlines()[0]}") from error


def _error_in(answer: dict[str, Any]) -> Any:
    """The error that an answer reports; None where it reports none."""
    return answer.get("error") or answer.get("errors") or None


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= _LARGEST  # False for NaN


def short_json(value: Any, most: int = 80) -> str:
    return shortened(json.dumps(value, ensure_ascii=False), most)


def malformed(message: str) -> CallError:
    return CallError(FailureKind.MALFORMED, message)
