"""Pacing in tokens: what calls take of a quota is reserved before each begins, and corrected when it is known.

A service counts the tokens of a minute, and a client knows how many a call takes only when it is answered. So each call
reserves the most that it may take, and settles with the true number: that is as fast as a pace that knew the numbers
before, and never over the quota. To reserve a mean instead exceeds it by as much as the mean is wrong.
"""

import math
from collections import deque
from dataclasses import dataclass

WINDOW_S = 60.0
_SLACK_S = 0.1  # calls travel: two may arrive closer together than they were sent
_CREDIT_S = 1.0  # what was reserved in vain and may be made good at once


@dataclass
class TokenReservation:
    """Tokens that one call holds.

    Attributes:
        begun: time at which the call began.
        tokens: most tokens that it can use, and once it is settled, the tokens used. Whole numbers have exact sums.
        tokens_per_s: the pace at which they were reserved.
        is_held: whether the window of its minute still counts them.
    """

    begun: float
    tokens: int
    tokens_per_s: float
    is_held: bool = True


class TokenPacer:
    """Tokens of one lane: at most so many in any 60 s, evenly spread, so that a restart does not begin a new minute.

    Within the window tokens are spread by the generic cell rate algorithm (ITU-T I.371, Annex A): a call may begin once
    those before it have used up their time, whatever it takes itself.

    Args:
        per_minute: tokens in any minute, at most.

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
        self._per_s = per_minute / WINDOW_S
        self._reserved = deque[TokenReservation]()
        self._total = 0
        self._due = -math.inf

    def fits(self, tokens: float) -> bool:
        """Return whether a call that may take so many tokens can ever begin."""
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
        self._leave(now)
        reservation = TokenReservation(now, math.ceil(tokens), self._per_s * pace)
        self._reserved.append(reservation)
        self._total += reservation.tokens
        base = max(self._due, now - _CREDIT_S) if math.isfinite(self._due) else now
        self._due = base + reservation.tokens / reservation.tokens_per_s
        return reservation

    def settle(self, reservation: TokenReservation, tokens: float) -> None:
        """Count what a call took instead of what it might have taken."""
        taken = math.ceil(tokens)
        excess = reservation.tokens - taken
        reservation.tokens = taken
        self._due -= excess / reservation.tokens_per_s
        if reservation.is_held:
            self._total -= excess

    def mean(self) -> float:
        """Tokens of a call of the last minute; 0 where there was none."""
        return self._total / len(self._reserved) if self._reserved else 0.0

    def _room_at(self, now: float, tokens: float) -> float:
        """When the window has room."""
        self._leave(now)
        if not self.fits(tokens):
            return math.inf
        over, room_at = self._total + math.ceil(tokens) - self.per_minute, now
        for reservation in self._reserved:
            if over <= 0:
                break
            over -= reservation.tokens
            room_at = reservation.begun + WINDOW_S + _SLACK_S
        return room_at

    def _leave(self, now: float) -> None:
        """Remove what the window that ends now no longer counts."""
        while self._reserved and self._reserved[0].begun + WINDOW_S + _SLACK_S <= now:
            left = self._reserved.popleft()
            left.is_held = False
            self._total -= left.tokens
