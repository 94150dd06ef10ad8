"""Replies of models: checks of their size, form and length of vectors, and counts of their tokens.

Token counts come from the service, and are estimated if it reports none or impossible ones.
"""

import json
import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rankbeam.transforms.clients.calls.combined_calls import divide_tokens
from rankbeam.transforms.clients.models.base import STOP, Stored
from rankbeam.transforms.records.errors import CallError, FailureKind, did_you_mean
from rankbeam.transforms.records.judging.answers import CHARACTERS_PER_TOKEN, estimated_tokens
from rankbeam.transforms.records.reply import Reply, Tokens

MOST_BYTES = 16 * 2**20
"""Maximum size of a decompressed reply: a few hundred compressed kilobytes may expand to a gigabyte."""

_LARGEST = 3.4e38  # components are converted to single precision
_SHOWN = 60
_MOST_LISTED = 100


def object_of(body: bytes) -> dict[str, Any]:
    """The JSON object of a reply.

    >>> object_of(b'{"a": [1]}')
    {'a': [1]}
    """
    if len(body) > MOST_BYTES:
        raise too_large()
    try:
        value = json.loads(body)
    except json.JSONDecodeError as error:
        raise CallError(FailureKind.UNAVAILABLE, f"the answer is not JSON: {error}") from None
    except (ValueError, RecursionError) as error:
        raise unreadable(error) from None
    if not isinstance(value, dict):
        raise CallError(FailureKind.MALFORMED, "the answer is not a JSON object")
    return value


def found_among(model: str, names: Collection[str]) -> str:
    """A message on whether a service lists a model; services may accept names that they do not list.

    >>> found_among("small", ["small", "large"]), found_among("smal", ["small", "large"])
    ("lists the model 'small'", "lists 2 models, but not 'smal'; did you mean 'small'?")
    """
    if model in names:
        return f"lists the model {model!r}"
    hint = f"; {did_you_mean(model, names)}" if 0 < len(names) <= _MOST_LISTED else ""
    return f"lists {len(names):,} models, but not {model!r}{hint}"


def too_large() -> CallError:
    return CallError(FailureKind.MALFORMED, f"the answer has more than {MOST_BYTES >> 20} MB")


def unreadable(error: Exception) -> CallError:
    first = str(error).strip().partition("\n")[0]
    return CallError(FailureKind.MALFORMED, f"the answer cannot be read: {type(error).__name__}: {first[:200]}")


@dataclass
class Vectors:
    """Checks that all embeddings of a service have the same length: the stated one, or that of most so far."""

    service: str
    length: int | None  # None if the model decides it
    texts_per_request: int = 1
    _lengths: Counter[int] = field(default_factory=Counter, init=False)

    def read(self, rows: Any, texts: Sequence[str], tokens: Tokens) -> list[tuple[float, ...]]:
        if len(texts) == 1:
            return [self.checked(rows[0] if rows else None, texts[0], tokens)]
        if not isinstance(rows, list) or len(rows) != len(texts):
            self.texts_per_request = 1
            count = len(rows) if isinstance(rows, list) else 0
            message = f"{self.service} gives {count:,} embeddings for {len(texts):,} texts"
            raise CallError(FailureKind.MALFORMED, message, tokens=tokens)
        return [self.checked(row, text, tokens) for row, text in zip(rows, texts, strict=True)]

    def refused(self, texts: int) -> None:
        self.texts_per_request = min(self.texts_per_request, max(1, texts // 2))

    def checked(self, values: Any, text: str, tokens: Tokens) -> tuple[float, ...]:
        vector = _vector(values)
        if vector is None:
            raise CallError(FailureKind.MALFORMED, "the answer has no embedding", tokens=tokens)
        self._lengths[len(vector)] += 1
        length = self.length or self._lengths.most_common(1)[0][0]  # the first may be wrong
        if len(vector) != length:
            message = (
                f"the embedding of {text[:_SHOWN]!r} by {self.service} has {len(vector):,} components, "
                f"and not {length:,}"
            )
            raise CallError(FailureKind.MALFORMED, message, tokens=tokens)
        return vector


def reply_of(vectors: Sequence[tuple[float, ...]], texts: Sequence[str], tokens: Tokens, version: str) -> Reply:
    """The reply to a request for embeddings; if it has several texts, with a part for each."""
    answers = [Stored(None, STOP, None, version, vector).written() for vector in vectors]
    if len(answers) == 1:
        return Reply(answers[0], tokens)
    charged = divide_tokens(tokens, [len(text) for text in texts])
    return Reply("", tokens, tuple(Reply(answer, share) for answer, share in zip(answers, charged, strict=True)))


def _vector(values: Any) -> tuple[float, ...] | None:
    if not isinstance(values, list) or not values:
        return None
    if not all(isinstance(x, int | float) and not isinstance(x, bool) and abs(x) <= _LARGEST for x in values):
        return None
    return None if any(map(math.isnan, values)) or not any(values) else tuple(map(float, values))


@dataclass(frozen=True)
class ReportedUsage:
    """Token counts of a reply, as a service reports them: any JSON values."""

    input: Any = None  # tokens of the request, including cached ones
    cached: Any = None  # tokens of the request that were in the service's cache
    output: Any = None  # tokens of the answer, including thinking
    total: Any = None  # of request and answer; some services include thinking, or the request, only here

    @property
    def is_empty(self) -> bool:
        return not (self.input or self.cached or self.output)

    def tokens(self) -> Tokens | None:
        """The tokens; None if the counts are impossible.

        >>> ReportedUsage(7, None, 2.0).tokens(), ReportedUsage(-7, 0, 2).tokens(), ReportedUsage(7, 8).tokens()
        (Tokens(input=7, cached=0, output=2), None, None)
        """
        tokens = Tokens(*map(_token_count, (self.input, self.cached, self.output)))
        if not tokens.is_possible:
            return None
        total = _token_count(self.total)
        if isinstance(total, int) and total > tokens.total:
            rest = {"output": total - tokens.input} if tokens.input else {"input": total - tokens.output}
            completed = replace(tokens, **rest)
            return completed if completed.is_possible else tokens
        return tokens


@dataclass
class Charges:
    """Counts the tokens of a connection's calls."""

    service: str
    warnings: list[str] = field(default_factory=list)

    def of(self, usage: ReportedUsage, request: str, answer: str = "", limit: int | None = None) -> Tokens:
        """The tokens of a call.

        >>> Charges("m").of(ReportedUsage(7, 0, 2), "eight ch"), Charges("m").of(ReportedUsage(), "eight ch", "four")
        (Tokens(input=7, cached=0, output=2), Tokens(input=2, cached=0, output=1))
        """
        estimate = Tokens(estimated_tokens(request), 0, estimated_tokens(answer) if limit is None else limit)
        tokens = usage.tokens()
        if tokens is None:
            self._warn_of_estimates("reports impossible numbers of tokens")
            return estimate
        if usage.is_empty or (estimate.output and not tokens.output) or (estimate.input and not tokens.input):
            self._warn_of_estimates("does not report how many tokens its calls use")
            if usage.is_empty:
                return estimate
            return replace(tokens, input=tokens.input or estimate.input, output=tokens.output or estimate.output)
        return tokens

    def warn(self, problem: str) -> None:
        """Add a warning about the service, unless it was added before."""
        if (warning := f"{self.service} {problem}") not in self.warnings:
            self.warnings.append(warning)

    def _warn_of_estimates(self, problem: str) -> None:
        self.warn(f"{problem}: tokens and cost are estimated, at {CHARACTERS_PER_TOKEN} characters per token")


def _token_count(value: Any) -> Any:
    """A number of tokens as an integer; other values unchanged."""
    if value is None:
        return 0
    return int(value) if isinstance(value, float) and value.is_integer() else value
