"""The tokens of a minute on the virtual clock: a quota that binds, and a service that fails one call in ten."""

import bisect
import itertools
import json
import random
from dataclasses import dataclass, field
from pathlib import Path

from rankbeam.transforms.clients.calls.fake import FakeRequest, FakeService, call_all
from rankbeam.transforms.clients.virtual_clock import VirtualClock
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.reply import Reply, Tokens

PER_MINUTE, CALLS = 400_000, 200
TIMEOUT_S = 10.0


@dataclass
class Charging(FakeService):
    """Charges what a call takes when it arrives, also where the client never learns of it.

    Attributes:
        charged: when each attempt arrived, and the tokens that it took.
    """

    charged: list[tuple[float, int]] = field(default_factory=list)

    def most_tokens(self, payload: str) -> Tokens:
        body = json.loads(payload)
        return Tokens(body["input"], 0, body["limit"])

    def busiest_minute(self) -> int:
        times = [at for at, _ in self.charged]
        totals = [0, *itertools.accumulate(tokens for _, tokens in self.charged)]
        return max(totals[bisect.bisect_left(times, at + 60)] - totals[place] for place, at in enumerate(times))


def service() -> Charging:
    """Answers within 4 s. Of ten calls, one is refused, dropped, cut off on its way back, or never answered."""
    chance = random.Random(2)
    fates: dict[int, str] = {}

    def latency_s(request: FakeRequest) -> float:
        fate = chance.choice(("refused", "dropped", "unreadable", "hangs")) if chance.random() < 0.1 else "answered"
        fates[request.number] = fate
        taken = request.payload["input"] + request.payload["output"]
        connection.charged.append((request.at_s, 0 if fate == "refused" else taken))
        return 3600.0 if fate == "hangs" else chance.uniform(0.5, 4.0)

    def answer(request: FakeRequest) -> Reply:
        tokens = Tokens(request.payload["input"], 0, request.payload["output"])
        match fates[request.number]:
            case "refused":
                raise CallError(FailureKind.QUOTA, "slow down", retry_after_s=1.0)
            case "dropped":
                raise CallError(FailureKind.UNAVAILABLE, "dropped")
            case "unreadable":
                raise CallError(FailureKind.MALFORMED, f"no JSON: {request.number}", tokens=tokens)
        return Reply("{}", tokens)

    connection = Charging(answer, latency_s)
    return connection


def test_the_busiest_minute_takes_its_quota_and_no_more(tmp_path: Path) -> None:
    chance = random.Random(1)
    payloads = [
        {"number": n, "input": chance.randint(1_000, 6_000), "output": chance.randint(20, 2_000), "limit": 2_048}
        for n in range(CALLS)
    ]
    charging = service()
    quota = Quota(requests_per_minute=60_000, tokens_per_minute=PER_MINUTE, timeout_s=TIMEOUT_S, attempts=9)
    with VirtualClock() as clock:
        values = call_all(charging, payloads, quota, str(tmp_path), clock)
    assert values == [{}] * CALLS
    assert 0.9 <= charging.busiest_minute() / PER_MINUTE <= 1.005
