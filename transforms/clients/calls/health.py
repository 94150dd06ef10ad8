"""The circuit breaker of one service: decides from the outcomes of its last attempts whether it may be called.

closed ── 20 failures in a row ──► open ── after 1, 2, 4 … 60 s ──► one probe ── answered ──► closed
                                    ▲                                   │ failed          given up: after
                                    └───────────────────────────────────┘                 `give_up_after_s`

A failure that is due to one query (blocked, truncated, or invalid or not found at a service that has answered others)
is not counted; before the first answer, invalid requests count as long as all are refused with the same message. Empty
and malformed answers open a breaker of their step alone, after 20 different calls in a row. A service that has only
refused permanently (wrong credentials, a missing corpus), or a step that has only had such answers, is given up as soon
as its breaker opens; a service with an answer in the ledger has worked before, and may recover. After a refusal because
the quota of the day is used up, the breaker stays open: answers to calls in flight do not close it.

The first attempt at a service whose address is known goes alone. If it is refused for a reason that all calls share (no
connection, wrong credentials, a wrong address), no other call begins, and the run ends.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from rankbeam.transforms.clients.calls.services import Access
from rankbeam.transforms.records.errors import CallError, FailureKind, pluralize

FAILURES_TO_OPEN = 20
MOST_UNCONFIRMED = 2 * FAILURES_TO_OPEN
"""Most attempts since the last answer, in flight or failed: a service that never replies costs no more than these."""

_FIRST_PROBE_S, _LONGEST_PROBE_S = 1.0, 60.0
_COUNTED = {
    FailureKind.UNAVAILABLE,
    FailureKind.TIMEOUT,
    FailureKind.PERMISSION,
    FailureKind.NOT_FOUND,
    FailureKind.QUOTA,
}
_REPLIED = {FailureKind.MALFORMED, FailureKind.BLOCKED, FailureKind.TRUNCATED}


class NotAsked(CallError):
    """An attempt was not made, because its service was given up."""


@dataclass(frozen=True)
class StartedAttempt:
    """An attempt that was begun."""

    answers: int
    is_probe: bool


class Breaker:
    """A circuit breaker, as a state machine over times that are passed to it; it reads no clock."""

    def __init__(self, give_up_after_s: float) -> None:
        self.on_change: list[Callable[[], None]] = []
        self.is_reported = False
        self._give_up_after_s = give_up_after_s
        self._answers = self._failures = self._unconfirmed = 0
        self._has_answered = self._may_recover = False
        self._last: CallError | None = None
        self._stopped_by: CallError | None = None
        self._opened: float | None = None
        self._probe_at = 0.0
        self._pause_s = _FIRST_PROBE_S
        self._is_probing = self._is_given_up = False
        self._rejected: set[str] = set()
        self._refusals: set[str] = set()
        self._awaits_first = False
        self.access: Access | None = None
        self.first_refusal: CallError | None = None

    @property
    def is_open(self) -> bool:
        """True while only probes may begin."""
        return self._opened is not None

    def notify(self) -> None:
        for on_change in self.on_change:
            on_change()

    def try_first(self, access: Access) -> None:
        """Let the first attempt go alone, unless one has been made already."""
        self.access = access
        self._awaits_first |= not (self._answers or self._unconfirmed or self._failures)

    def is_given_up(self, now: float) -> bool:
        if self._opened is not None and not self._is_probing:
            self._is_given_up |= now - self._opened >= self._give_up_after_s
        return self._is_given_up

    def wait_until(self, now: float) -> float | None:
        """When an attempt may begin; None if another attempt must end first."""
        if self.is_given_up(now) or self._is_probing:
            return None
        if self._opened is not None:
            return max(now, min(self._probe_at, self._opened + self._give_up_after_s))
        most = 1 if self._awaits_first else MOST_UNCONFIRMED
        return now if self._unconfirmed < most else None

    def begin(self) -> StartedAttempt:
        """Count an attempt that begins; the caller has waited until `wait_until`."""
        self._unconfirmed += 1
        self._is_probing = self.is_open
        return StartedAttempt(self._answers, self._is_probing)

    def stop(self, error: CallError, now: float) -> None:
        """Give the service up permanently, even if more answers arrive: no call of its quota pool can succeed soon."""
        self._stopped_by, self._is_given_up = error, True
        if self._opened is None:
            self._open(now)

    def answered(self) -> None:
        """Record an answer to any attempt: the breaker closes, unless the service was stopped."""
        self._has_answered, self._awaits_first = True, False
        self._answers += 1
        self._failures = self._unconfirmed = 0
        self._rejected.clear()
        if self._stopped_by is not None:
            return
        self._opened, self._is_probing, self._is_given_up = None, False, False

    def answered_before(self) -> None:
        self._has_answered = True

    def failed(self, begun: StartedAttempt, error: CallError, now: float) -> None:
        """Record a failed attempt; failures due to a single query do not count."""
        # A service that has answered before may only be down for now.
        is_lasting = error.kind is FailureKind.PERMISSION or not self._has_answered
        if self._awaits_first and is_lasting and self.access is not None and self.access.is_refused(error):
            self.first_refusal = error
            self._is_given_up = True
        if error.kind not in _COUNTED or (error.kind is FailureKind.NOT_FOUND and self._has_answered):
            self.ended(begun, now)
        else:
            self._add(begun, error, now)

    def refused(self, begun: StartedAttempt, error: CallError, now: float) -> None:
        """Record an invalid request; it counts while the service has refused all requests, with the same message."""
        if len(self._refusals) < 2:  # more would only take memory
            self._refusals.add(error.message)
        is_alike = len(self._refusals) == 1 and (self._last is None or self._last.kind is error.kind)
        if self._has_answered or not is_alike:
            self.ended(begun, now)
        else:
            self._add(begun, error, now)

    def rejected(self, begun: StartedAttempt, call: str, error: CallError, now: float) -> None:
        """Record an empty or malformed answer to a call; further ones to the same call count only for probes."""
        if call in self._rejected and not begun.is_probe:
            self.ended(begun, now)
        else:
            self._rejected.add(call)
            self._add(begun, error, now)

    def _add(self, begun: StartedAttempt, error: CallError, now: float) -> None:
        self._awaits_first = False
        self._failures += 1
        self._may_recover |= error.kind in _COUNTED and error.kind.is_transient
        self._last = error
        if error.kind is FailureKind.QUOTA:  # a daily quota that is used up asks for a long pause
            self._is_given_up |= (error.retry_after_s or 0.0) > self._give_up_after_s
        if begun.is_probe and self._is_probing:
            self._is_probing = False
            self._pause_s = min(_LONGEST_PROBE_S, 2 * self._pause_s)
            self._probe_at = now + self._pause_s
        elif self._opened is None and (self._failures >= FAILURES_TO_OPEN or self._is_given_up):
            self._open(now)

    def ended(self, begun: StartedAttempt, now: float) -> None:
        """Record that an attempt ended without evidence about the service."""
        self._awaits_first = False
        if begun.answers == self._answers:
            self._unconfirmed -= 1
        if begun.is_probe and self._is_probing:
            self._is_probing = False
            self._probe_at = now

    def refusal(self) -> NotAsked:
        """The reason why the remaining calls are not made."""
        last = self._stopped_by or self._last
        kind = FailureKind.UNAVAILABLE if last is None else last.kind
        return NotAsked(kind, f"not asked: {self._reason()}", 0)

    def report(self) -> str:
        wait = f"calls wait, and one at a time is tried for up to {self._give_up_after_s:g} s"
        return f"{self._reason()}; {'no further call is made' if self._is_given_up else wait}"

    def _reason(self) -> str:
        if self._stopped_by is not None:
            return f"its quota is exhausted for now: {self._stopped_by.message}"
        message = "" if self._last is None else self._last.message
        if self._rejected:
            return f"{len(self._rejected)} different calls in a row had empty or malformed answers, the last: {message}"
        return f"{pluralize(self._failures, 'attempt')} in a row failed, the last with: {message}{self._long_wait()}"

    def _long_wait(self) -> str:
        """The pause that the last refusal asks for, if that is too long."""
        wait_s = (self._last and self._last.retry_after_s) or 0.0
        is_long = self._is_given_up and wait_s > self._give_up_after_s
        return f", which asks to wait {wait_s:,.0f} s, longer than give_up_after_s" if is_long else ""

    def _open(self, now: float) -> None:
        self._opened = now
        self._probe_at, self._pause_s = now + _FIRST_PROBE_S, _FIRST_PROBE_S
        self._is_given_up |= not self._has_answered and not self._may_recover


@dataclass(frozen=True)
class StepBreaker:
    """The two circuit breakers that one call depends on: its service's, and the one for its step's answers."""

    service: Breaker
    answers: Breaker  # counts empty and malformed answers to one step
    call: str = field(compare=False)
    is_final: bool = field(default=True, compare=False)  # False if an invalid request is made again in parts

    @property
    def is_open(self) -> bool:
        return self.service.is_open or self.answers.is_open

    def is_given_up(self, now: float) -> bool:
        return self.service.is_given_up(now) or self.answers.is_given_up(now)

    def wait_until(self, now: float) -> float | None:
        service_at, answers_at = self.service.wait_until(now), self.answers.wait_until(now)
        return None if service_at is None or answers_at is None else max(service_at, answers_at)

    def begin(self) -> tuple[StartedAttempt, StartedAttempt]:
        return self.service.begin(), self.answers.begin()

    def answered(self, begun: tuple[StartedAttempt, StartedAttempt], now: float, *, is_usable: bool) -> None:
        """Record an answer; an unusable one (blocked or truncated) says nothing about the answers to its step."""
        self.service.answered()
        if is_usable:
            self.answers.answered()
        else:
            self.answers.ended(begun[1], now)

    def failed(self, begun: tuple[StartedAttempt, StartedAttempt], error: CallError, now: float) -> None:
        service_begun, answers_begun = begun
        if error.kind in _REPLIED:
            self.service.answered()
        elif error.kind is FailureKind.INVALID and self.is_final and not error.changes_form:
            self.service.refused(service_begun, error, now)
        else:
            self.service.failed(service_begun, error, now)
        if error.kind is FailureKind.MALFORMED:
            self.answers.rejected(answers_begun, self.call, error, now)
        else:
            self.answers.ended(answers_begun, now)

    def ended(self, begun: tuple[StartedAttempt, StartedAttempt], now: float) -> None:
        self.service.ended(begun[0], now)
        self.answers.ended(begun[1], now)

    def refusal(self, now: float) -> NotAsked:
        return (self.service if self.service.is_given_up(now) else self.answers).refusal()
