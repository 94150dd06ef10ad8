"""The attempts at one call: which failures are worth another attempt, and after what pause."""

import math
import random
from collections import Counter as Tally
from collections.abc import Sequence
from typing import Any

from rankbeam.transforms.clients.calls.health import NotAsked
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.reply import NO_TOKENS

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0
_MOST_MALFORMED = 3  # answers that break the schema (if no tokens are counted: in the same way) before it gives up
_MOST_TRUNCATED = 2
_MOST_FORMS = 7  # at least the number of request parts that a service may refuse one after the other


class Attempts:
    """The history of one call."""

    def __init__(self) -> None:
        self.number = 1
        self.made, self.counted, self.began = 0, 0, math.inf
        self.tokens = NO_TOKENS
        self.seconds = 0.0
        self.answered_s: float | None = None
        self.are_settled = False  # True once an answer carries them
        self.refused: str | None = None
        self._malformed: Tally[str] = Tally()
        self._truncated = 0
        self._forms = 0

    @property
    def is_longer(self) -> bool:
        """True if the next attempt may ask for a longer answer, because an answer was cut short."""
        return self._truncated > 0

    def begin(self, now: float) -> None:
        self.made += 1
        self.counted += 1
        self.began = min(self.began, now)

    def refuse(self, answer: str, outcomes: Sequence[Any]) -> None:
        """Reject an answer that no task can use, while another attempt may bring a better one."""
        errors = [outcome for outcome in outcomes if isinstance(outcome, CallError)]
        if len(errors) < len(outcomes):
            return
        kinds = {error.kind for error in errors}
        if kinds == {FailureKind.MALFORMED} or (kinds == {FailureKind.TRUNCATED} and not self._truncated):
            self.number += 1
            self.refused = answer
            raise errors[0]

    def may_pass(self, error: CallError) -> bool:
        """Return whether another attempt may succeed after this error; called once per error."""
        if isinstance(error, NotAsked) or error.stops_pool:
            return False
        if error.changes_form and self._forms < _MOST_FORMS:
            self._forms += 1
            self.counted -= 1
            return True
        if error.kind is FailureKind.TRUNCATED:
            self._truncated += 1
            return self._truncated < _MOST_TRUNCATED
        if error.kind is FailureKind.MALFORMED:
            self._malformed[error.message] += 1
            repeated = self._malformed.total() if self.tokens.total else self._malformed[error.message]
            return repeated < _MOST_MALFORMED
        return error.kind.is_transient

    def pause_s(self, error: CallError) -> float:
        """The pause before another attempt: longer each time, and never shorter than the service requests."""
        if error.changes_form:
            return 0.0
        requested_s = error.retry_after_s or 0.0
        longest_s = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0 ** (self.counted - 1))
        jitter = random.uniform(0.5, 1.0)  # noqa: S311  it spreads attempts, and decides no result
        return max(longest_s * jitter, requested_s * (1 + 0.1 * jitter))
