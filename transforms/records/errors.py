"""The errors that rankbeam raises on purpose, and failed calls as typed records, which are never dropped.

    RankbeamError
     ├── InputError        the user's input cannot be used: exit status 2
     │    └── InputErrors  several of them, reported together
     └── CallError         a service did not answer one call: becomes a row of `failures` when retries do not help
          └── Unreachable   no connection to the service could be made

Any other exception is a bug, and crashes. Messages suggest the valid name nearest to a misspelt one, and shorten long
ones.
"""

import difflib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any, NamedTuple

from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.records.reply import NO_TOKENS, Tokens

_BEAM_SUFFIX = " [while running"  # Beam appends the step to the message of an exception


class FailureKind(StrEnum):
    """The reason why a call has no result.

    BLOCKED: a model or its safety filter refused to answer. TRUNCATED: the answer reached its limit of tokens.
    OVER_BUDGET: the call was not made, because it might have cost more than the rest of the budget.
    """

    INVALID = "invalid"
    PERMISSION = "permission"
    NOT_FOUND = "not_found"
    QUOTA = "quota"
    TIMEOUT = "timeout"
    UNAVAILABLE = "unavailable"
    MALFORMED = "malformed"
    BLOCKED = "blocked"
    TRUNCATED = "truncated"
    OVER_BUDGET = "over_budget"

    @property
    def is_transient(self) -> bool:
        """True if the same request may succeed later."""
        return self in _TRANSIENT


_TRANSIENT = {FailureKind.QUOTA, FailureKind.TIMEOUT, FailureKind.UNAVAILABLE, FailureKind.MALFORMED}


@dataclass(frozen=True)
class Failure:
    """One call that failed after all its retries."""

    stage: str
    kind: FailureKind
    query_id: str  # id of the call's query
    attempts: int
    message: str
    # Whether the call has an answer after all, which only configurations with a threshold cannot use.
    only_thresholds: bool = False
    tokens: Tokens = NO_TOKENS


class FailedCall(NamedTuple):
    """The text of a warning about a failure."""

    kind: str
    attempts: int
    message: str
    query_id: str  # id of the call's query
    metric: str | None = None


def message_behind(error: BaseException | None, kind: type[Exception]) -> str | None:
    """The message of an error of some kind behind an exception of Beam's, which wraps errors of steps; or None."""
    marker = f"{kind.__module__}.{kind.__name__}: "
    while error is not None:
        if isinstance(error, kind):
            return str(error).partition(_BEAM_SUFFIX)[0]
        if marker in str(error):  # an exception of another process arrives as the text of its traceback
            message = str(error).rpartition(marker)[2]
            return message.partition(_BEAM_SUFFIX)[0].partition("\n\n")[0].strip()
        error = error.__cause__ or error.__context__
    return None


def failure_warnings(calls: Iterable[FailedCall]) -> list[str]:
    """Warnings about failures: for each kind, the number of queries or judged values that it concerns, and one message.

    A query counts once, however many configurations have no answer to it.

    >>> slow, late = FailedCall("quota", 3, "slow down", "q1"), FailedCall("timeout", 1, "too late", "q1")
    >>> failure_warnings([slow, FailedCall("quota", 9, "wait", "q2"), slow, late])
    ['2 queries have no answer (quota): wait', '1 query has no answer (timeout): too late']
    >>> failure_warnings([slow._replace(metric="Faithfulness"), slow._replace(metric="ClaimRecall")])
    ['2 judged values are missing (quota): slow down']
    """
    counts: Counter[tuple[str, bool]] = Counter()
    queries: defaultdict[str, set[str]] = defaultdict(set)
    messages: dict[tuple[str, bool], tuple[int, str]] = {}
    for call in calls:
        key = call.kind, call.metric is not None
        counts[key] += call.metric is not None or call.query_id not in queries[call.kind]
        if call.metric is None:
            queries[call.kind].add(call.query_id)
        messages[key] = max(messages.get(key, (0, "")), (call.attempts, call.message))
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [
        f"{_missing_text(count, is_judged=is_judged)} ({kind}): {messages[kind, is_judged][1]}"
        for (kind, is_judged), count in ordered
    ]


def _missing_text(count: int, *, is_judged: bool) -> str:
    if is_judged:
        return pluralize(count, "judged value is missing", "judged values are missing")
    return pluralize(count, "query has no answer", "queries have no answer")


def pluralize(number: int, one: str, many: str | None = None) -> str:
    """A number of things.

    >>> pluralize(1, "query", "queries"), pluralize(10_000, "query", "queries"), pluralize(2, "metric")
    ('1 query', '10,000 queries', '2 metrics')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


class RankbeamError(Exception):
    """Base of all errors raised on purpose.

    Messages may quote texts from servers and files. Their control characters are escaped for terminals.
    """

    def __init__(self, message: str) -> None:
        super().__init__(visible(message))

    def _render_traceback_(self) -> list[str]:
        """The message alone, which IPython shows instead of the frames of rankbeam and Beam."""
        return [f"{type(self).__name__}: {self}"]


class InputError(RankbeamError):
    """Input that cannot be used. The message names the file, the line if there is one, and what to do.

    Attributes:
        problem: description of the mistake, and the way out.
        path: the file.
        line: the line of the file, from 1.
    """

    def __init__(self, problem: str, *, path: str | None = None, line: int | None = None) -> None:
        named = path or repr(path)
        place = "" if path is None else f"{named}: " if line is None else f"{named}:{line}: "
        super().__init__(f"{place}{problem}")
        self.problem, self.path, self.line = visible(problem), path, line

    def __reduce__(self) -> tuple[object, ...]:
        return partial(InputError, path=self.path, line=self.line), (self.problem,)


class InputErrors(InputError):
    """All problems of one input, one per line.

    Attributes:
        errors: the problems, at least one.
    """

    def __init__(self, errors: Sequence[InputError]) -> None:
        super().__init__("\n".join(str(error) for error in errors))
        self.errors = tuple(errors)

    def __reduce__(self) -> tuple[object, ...]:
        return InputErrors, (self.errors,)


class CallError(RankbeamError):
    """A call failed. If a retriever in this process raises it, it is final; a remote call may be retried.

    Attributes:
        kind: kind of the failure.
        message: the service's message, in one line.
        attempts: number of attempts.
        retry_after_s: the wait that the service requested before a retry; None if it requested none.
        tokens: tokens of the failed attempt.
        stops_pool: whether no call of this quota pool can succeed soon, because a daily budget is used up.
        changes_form: whether the connection makes its next attempt in a form that the service may take: it is made
            without a pause, and this one does not count towards the limit of attempts.
    """

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        attempts: int = 1,
        retry_after_s: float | None = None,
        tokens: Tokens = NO_TOKENS,
        stops_pool: bool = False,
        changes_form: bool = False,
    ) -> None:
        super().__init__(in_one_line(message))
        self.kind, self.message, self.attempts, self.retry_after_s = kind, str(self), attempts, retry_after_s
        self.tokens, self.stops_pool, self.changes_form = tokens, stops_pool, changes_form

    def __reduce__(self) -> tuple[object, ...]:
        attempt = self.attempts, self.retry_after_s, self.tokens, self.stops_pool, self.changes_form
        return CallError, (self.kind, self.message, *attempt)


class Unreachable(CallError):
    """No connection to the service could be made: wrong host or port, or nothing listens there."""

    def __init__(self, message: str) -> None:
        super().__init__(FailureKind.UNAVAILABLE, message)


def visible(text: str) -> str:
    r"""A text with its control characters escaped, so that the terminal does not obey them; tabs and newlines stay.

    Escaped are C0, DEL and C1, the separators of lines and paragraphs, and characters that change the direction of
    writing.

    >>> visible("\x1b[2J\x07 all\tis well\n\u202e")
    '\\x1b[2J\\x07 all\tis well\n\\u202e'
    """
    return _CONTROLS.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def json_text(document: Any, **options: Any) -> str:
    r"""JSON for a terminal, with the control characters of `visible` escaped; `options` are those of json.dumps.

    >>> json_text("é\x9b31m\u202e")
    '"é\\u009b31m\\u202e"'
    """
    text = json.dumps(document, indent=2, ensure_ascii=False, **options)
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def in_one_line(text: str) -> str:
    r"""Like `visible`, with tabs and newlines replaced by blanks.

    >>> in_one_line("<html>\r\n\t<p>busy\r\n")
    '<html> <p>busy '
    """
    return visible(re.sub(r"[\t\n\r]+", " ", text))


_MOST_NAMES = 60


def did_you_mean(word: str, valid: Iterable[str]) -> str:
    """The end of a message "unknown …": the nearest valid name, or all valid names if none is near.

    >>> did_you_mean("retriver", ["retriever", "name"])
    "did you mean 'retriever'?"
    >>> did_you_mean("zzz", ["retriever", "name"])
    'valid are: name, retriever'
    """
    by_lower = _one_spelling(valid)
    if nearest := _nearest(word, by_lower):
        return f"did you mean {nearest!r}?"
    names = sorted(by_lower.values())
    more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
    return f"valid are: {', '.join(names[:_MOST_NAMES])}{more}"


def did_you_mean_among(word: str, families: Mapping[str, Iterable[str]]) -> str:
    """As `did_you_mean`, for more names than fit one list: if none is near, a line for each family.

    >>> print(did_you_mean_among("zzz", {"ranked": ["RR", "AP"], "counted": ["NumRel"]}))
    valid are:
      ranked: AP, RR
      counted: NumRel
    """
    family_of: dict[str, str] = {}
    for family, names in families.items():
        family_of |= {name: family for name in names if name not in family_of}
    by_lower = _one_spelling(family_of)
    if nearest := _nearest(word, by_lower):
        return f"did you mean {nearest!r}?"
    lines = grouped((family_of[name], name) for name in by_lower.values())
    return "\n  ".join(["valid are:", *(f"{family}: {', '.join(sorted(names))}" for family, names in lines.items())])


def _one_spelling(names: Iterable[str]) -> dict[str, str]:
    """The first of all spellings of each name, by the name in lower case."""
    by_lower: dict[str, str] = {}
    for name in names:
        by_lower.setdefault(name.lower(), name)
    return by_lower


def _nearest(word: str, by_lower: Mapping[str, str]) -> str | None:
    near = difflib.get_close_matches(word.lower(), by_lower, n=max(1, len(by_lower)))
    # Swapped letters are the most common mistake, and difflib does not rank them first.
    near.sort(key=lambda name: sorted(name) != sorted(word.lower()))
    return by_lower[near[0]] if near else None


def shortened(text: str, most: int = 60) -> str:
    """The first characters of a text, with "…" at the end if it is longer.

    >>> shortened("abc"), shortened("abcdef", most=4)
    ('abc', 'abc…')
    """
    return text if len(text) <= most else text[: most - 1] + "…"
