"""Tokens that a connection reports are bounded, and those of truncated answers are kept."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.services import FAST, Ask, Echo, feed, run_all, stage, task

from rankbeam.transforms.clients.calls.fanout import FanOut
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.clients.virtual_clock import VirtualClock
from rankbeam.transforms.records.calls.steps import Call, CallAnswer, FailedTask, Steps
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.reply import Reply, Tokens


class Reporting(Echo):
    """Reports the same tokens for every call, and may use ten."""

    tokens: Tokens

    async def call(self, payload: str, timeout_s: float, attempt: int) -> Reply:
        return replace(await super().call(payload, timeout_s, attempt), tokens=self.tokens)

    def most_tokens(self, payload: str) -> Tokens:  # noqa: ARG002  the Protocol's
        return Tokens(7, 0, 3)


IMPOSSIBLE: dict[str, Any] = {
    "negative": Tokens(-5000, 0, 2),
    "too many for any model": Tokens(2**63, 0, 2),
    "no number": Tokens("12", 0, 2),  # type: ignore[arg-type]
    "not a number": Tokens(float("nan"), 0, 2),  # type: ignore[arg-type]
    "more cached than sent": Tokens(5, 6, 2),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_tokens_that_no_call_can_use_count_as_the_most_that_it_may(name: str, tmp_path: Path) -> None:
    service = Reporting()
    service.tokens = IMPOSSIBLE[name]
    outcomes, fan_out = run_all({"echo": service}, [[task("a"), task("b")]], tmp_path, FAST)
    assert not any(isinstance(outcome, FailedTask) for outcome in outcomes)
    (usage,) = fan_out.usage()
    assert usage.tokens == Tokens(14, 0, 6)
    assert any("echo reports impossible numbers of tokens" in warning for warning in fan_out.warnings())


class TokensOfFailure(Ask):
    """Work whose value is the tokens of its failed call."""

    def steps(self, item: Call) -> Steps[Any]:
        (error,) = yield [item]
        assert isinstance(error, CallError)
        return error.tokens


@pytest.mark.parametrize(("kind", "attempts"), [(FailureKind.MALFORMED, 3), (FailureKind.BLOCKED, 1)])
def test_a_failed_call_has_the_tokens_of_all_its_attempts(kind: FailureKind, attempts: int, tmp_path: Path) -> None:
    def refuse(_: object) -> None:
        raise CallError(kind, "of no use")

    service = Reporting(reader=refuse)
    service.tokens = Tokens(50, 20, 2)
    with VirtualClock() as clock:
        works = {"echo": TokensOfFailure("echo", service)}
        fan_out = FanOut(replace(stage({"echo": service}), works=works), Ledger(str(tmp_path)), clock)
        fan_out.begin(("pool",), 0, feed([task("q")]))
        (outcome,) = (outcome for outcome in fan_out.outcomes() if isinstance(outcome, CallAnswer))
    assert outcome.value == Tokens(50 * attempts, 20 * attempts, 2 * attempts)
