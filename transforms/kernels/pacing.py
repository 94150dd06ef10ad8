"""Pacing: when the next call may begin, so that a quota holds in every sliding second and minute.

Time is always an argument, in seconds of any monotonic clock; nothing here sleeps or reads one.

A service counts the tokens of a minute, and a client learns how many a call takes only when it ends. So each call
reserves the most that it may take, and settles with the true number: that is as fast as a pace that knows the numbers
beforehand, and never over the quota. Reserving a mean instead would exceed the quota by as much as the mean is wrong.
"""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

_CREDIT_S = 1.0  # of unused reservations, this much may be made good at once
SECOND_S, MINUTE_S = 1.0, 60.0
_SLACK_S = {SECOND_S: 0.015, MINUTE_S: 0.1}  # calls travel: two may arrive closer together than they were sent
_CATCH_UP_S = 0.1  # a late loop may make good this much at once
_IDLE_S = 1.0  # after an idle time of this length there is nothing to make good
_LEAST_PACE = 0.05
_RECOVERY_PER_S = 0.03
_MOST_OVERTAKEN = 8


@dataclass
class TokenReservation:
    """Tokens that one call holds."""

    begun: float  # time at which the call began
    tokens: int  # most tokens that it can use, and once it is settled, the tokens used; whole numbers have exact sums
    tokens_per_s: float  # the pace at which they were reserved
    is_held: bool = True  # whether the window of its minute still counts them


class TokenPacer:
    """Tokens of one lane: no more than its quota in any 60 s, evenly spread, so that a restart begins no new minute.

    Within the window tokens are spread by the generic cell rate algorithm (ITU-T I.371, Annex A): a call may begin once
    those before it have used up their time, whatever it takes itself.

    Args:
        per_minute: most tokens in any minute.

    >>> pacer = TokenPacer(6000)
    >>> first = pacer.reserve(0.0, 500)
    >>> pacer.wait_s(0.0, 500)
    5.0
    >>> pacer.settle(first, 100)
    >>> pacer.wait_s(0.0, 500)
    1.0
    """

    def __init__(self, per_minute: float) -> None:
        self.per_minute = math.floor(per_minute)
        self._per_s = per_minute / MINUTE_S
        self._reserved = deque[TokenReservation]()
        self._total = 0
        self._due = -math.inf

    def fits(self, tokens: float) -> bool:
        """Return whether a call that may take this number of tokens can ever begin."""
        return tokens <= self.per_minute

    def wait_s(self, now: float, tokens: float) -> float:
        """Seconds until a call may begin; 0 if it may begin now, infinite if it never can.

        Args:
            now: the time in seconds.
            tokens: most tokens that the call can use.
        """
        return round(max(self._due, self._room_at(now, tokens), now) - now, 9)

    def reserve(self, now: float, tokens: float, pace: float = 1.0) -> TokenReservation:
        """Count a call that begins now.

        Args:
            now: the time in seconds.
            tokens: most tokens that the call can use.
            pace: the share of the full rate that is used now.
        """
        self._drop_expired(now)
        reservation = TokenReservation(now, math.ceil(tokens), self._per_s * pace)
        self._reserved.append(reservation)
        self._total += reservation.tokens
        base = max(self._due, now - _CREDIT_S) if math.isfinite(self._due) else now
        self._due = base + reservation.tokens / reservation.tokens_per_s
        return reservation

    def settle(self, reservation: TokenReservation, tokens: float) -> None:
        """Count the tokens that a call used instead of those that it might have used."""
        taken = math.ceil(tokens)
        excess = reservation.tokens - taken
        reservation.tokens = taken
        self._due -= excess / reservation.tokens_per_s
        if reservation.is_held:
            self._total -= excess

    def mean(self) -> float:
        """Mean tokens of the calls in the last minute; 0 if there were none."""
        return self._total / len(self._reserved) if self._reserved else 0.0

    def _room_at(self, now: float, tokens: float) -> float:
        """Time at which the window has room."""
        self._drop_expired(now)
        if not self.fits(tokens):
            return math.inf
        over, room_at = self._total + math.ceil(tokens) - self.per_minute, now
        for reservation in self._reserved:
            if over <= 0:
                break
            over -= reservation.tokens
            room_at = reservation.begun + MINUTE_S + _SLACK_S[MINUTE_S]
        return room_at

    def _drop_expired(self, now: float) -> None:
        """Remove the reservations that the window that ends now no longer counts."""
        while self._reserved and self._reserved[0].begun + MINUTE_S + _SLACK_S[MINUTE_S] <= now:
            reservation = self._reserved.popleft()
            reservation.is_held = False
            self._total -= reservation.tokens


class Pacer:
    """The pace of one lane: no more calls than its quota in any window, evenly spread, slower after push-back.

    A window with as many calls as it may hold is full until the first of them has left it: the bound holds for every
    window, wherever it begins, and a late call delays only the call that is due a whole window after it.
    Within the windows calls are spread evenly by the generic cell rate algorithm (ITU-T I.371, Annex A).

    Attributes:
        limits: the most calls in a window, by its length in seconds.
        interval_s: seconds between two calls at full pace.
        tokens: the pace in tokens; None if the quota has no limit of tokens.

    >>> pacer = Pacer({1.0: 2, 60.0: 100}, 0.5)
    >>> [pacer.spend(now) for now in (0.0, 0.5)] and pacer.wait_s(0.6)
    0.415
    """

    def __init__(self, limits: dict[float, int], interval_s: float, tokens: TokenPacer | None = None) -> None:
        self.limits, self.interval_s, self.tokens = limits, interval_s, tokens
        self._begun = {window: deque[float](maxlen=most) for window, most in limits.items()}
        self._due = -math.inf
        self._pace, self._paced_at = 1.0, 0.0

    def wait_s(self, now: float, tokens: float = 0.0) -> float:
        """Seconds until the next call may begin; 0 if it may begin now, infinite if it never can.

        Args:
            now: the time in seconds.
            tokens: most tokens that the call can use.
        """
        free = [
            begun[0] + window + _SLACK_S.get(window, 0.0)
            for window, begun in self._begun.items()
            if len(begun) == begun.maxlen
        ]
        wait = max(self._due - self._tolerance_s(), *free, now) - now
        token_wait = 0.0 if self.tokens is None or not tokens else self.tokens.wait_s(now, tokens)
        return max(round(wait, 9), token_wait)

    def spend(self, now: float, tokens: float = 0.0) -> TokenReservation | None:
        """Count a call that begins now; every attempt counts.

        Args:
            now: the time in seconds.
            tokens: most tokens that the call can use.

        Returns:
            The reservation of its tokens, for `settle`; None if tokens are not counted.
        """
        for window, begun in self._begun.items():
            while begun and begun[0] + window + _SLACK_S.get(window, 0.0) <= now:
                begun.popleft()  # under a large quota, calls of many windows would be left
            begun.append(now)
        is_idle = self._due < now - _IDLE_S
        self._due = (now + self._tolerance_s() if is_idle else max(self._due, now)) + self.interval_s / self.pace(now)
        return None if self.tokens is None or not tokens else self.tokens.reserve(now, tokens, self.pace(now))

    def settle(self, reservation: TokenReservation | None, tokens: float) -> None:
        """Count the tokens that a call used instead of those that it might have used."""
        if self.tokens is not None and reservation is not None:
            self.tokens.settle(reservation, tokens)

    def push_back(self, now: float) -> None:
        """Slow down: the service refused a call for its rate.

        The pace falls each second by the share of calls that was refused.
        """
        calls_per_s = self.pace(now) * self._full_rate_per_s()
        self._pace = max(_LEAST_PACE, self.pace(now) * (1 - min(0.5, 1 / max(calls_per_s, 1.0))))
        self._paced_at = now

    def pace(self, now: float) -> float:
        """The share of the full rate that is used now, up to 1; it recovers with time.

        >>> pacer = Pacer({1.0: 2}, 0.5)
        >>> pacer.push_back(0.0)
        >>> round(pacer.pace(0.0), 2), round(pacer.pace(10.0), 2), pacer.pace(100.0)
        (0.5, 0.8, 1.0)
        """
        return min(1.0, self._pace + _RECOVERY_PER_S * (now - self._paced_at))

    def mean_tokens(self) -> float:
        """Mean tokens of the calls in the last minute; 0 if tokens are not counted."""
        return 0.0 if self.tokens is None else self.tokens.mean()

    def _full_rate_per_s(self) -> float:
        """Calls a second at full pace: whichever of requests and tokens allows fewer."""
        mean = self.mean_tokens()
        by_tokens = math.inf if self.tokens is None or not mean else self.tokens.per_minute / MINUTE_S / mean
        return min(1 / self.interval_s, by_tokens)

    def _tolerance_s(self) -> float:
        return min(_CATCH_UP_S, self.interval_s * (max(self.limits.values()) - 1))


def lane_pacer(requests_per_minute: float, lane: int, lanes: int, tokens_per_minute: float | None = None) -> Pacer:
    """The pace of one of several lanes, which together never begin more calls in a window than the quota allows.

    Args:
        requests_per_minute: quota of all lanes together.
        lane: index of the lane, from 0.
        lanes: number of lanes; no more than calls a second.
        tokens_per_minute: quota of all lanes together; None if tokens are not counted.

    >>> [lane_pacer(1500, lane, 4).limits for lane in (0, 3)]
    [{1.0: 7, 60.0: 420}, {1.0: 6, 60.0: 360}]
    """
    shares = lane_shares(requests_per_minute, lanes)
    per_minute = max(1, math.floor(requests_per_minute))
    begin, end = (per_minute * sum(shares[:upto]) // sum(shares) for upto in (lane, lane + 1))
    limits = {SECOND_S: shares[lane], MINUTE_S: end - begin}
    share = shares[lane] / sum(shares)
    tokens = None if tokens_per_minute is None else TokenPacer(tokens_per_minute * share)
    return Pacer(limits, MINUTE_S / (requests_per_minute * share), tokens)


def first_to_begin(waits_s: Sequence[float], overtaken: Sequence[int]) -> int:
    """Index of the waiting call to admit next: the earliest eligible one, ties by arrival.

    A call that takes few tokens may begin before one that has to wait until there is room for many, or the large one
    would hold up all others; but at most eight may, or the large one would wait for ever.

    Args:
        waits_s: seconds until each call may begin, by arrival; at least one.
        overtaken: for each call, the number of later calls that began before it.

    >>> first_to_begin([5.0, 0.1, 0.1], [0, 0, 0]), first_to_begin([5.0, 0.1, 0.1], [8, 0, 0])
    (1, 0)
    """
    upto = next((place for place, count in enumerate(overtaken) if count >= _MOST_OVERTAKEN), len(waits_s) - 1)
    return min(range(upto + 1), key=lambda place: (waits_s[place], place))


def lane_shares(requests_per_minute: float, lanes: int) -> list[int]:
    """The number of calls that each lane may begin in a second: the quota, divided as evenly as possible.

    >>> lane_shares(1500, 4)
    [7, 6, 6, 6]
    """
    per_second = math.ceil(requests_per_minute / 60)
    return [per_second // lanes + (lane < per_second % lanes) for lane in range(lanes)]


def lane_of(position: int, shares: Sequence[int]) -> int:
    """The lane of a call, by its position among all calls: lanes get calls in proportion to their shares.

    Args:
        position: from 0.
        shares: from `lane_shares`: no two differ by more than one, the larger first.

    >>> [lane_of(position, [2, 1]) for position in range(6)]
    [0, 1, 0, 0, 1, 0]
    """
    return position % sum(shares) % len(shares)
