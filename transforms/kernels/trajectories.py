"""Metrics of an agent: its calls of tools, compared with the expected ones, and an answer's tokens, cost and duration.

With P calls of the agent and E expected ones, P ∩ E is the largest number of pairs in which every call occurs once:
for equal calls that is the intersection of multisets. The metrics are those of Vertex AI's evaluation service and of
Google's Agent Development Kit.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from rankbeam.transforms.kernels.judged import Undefined, Value

ToolCall = tuple[str, Mapping[str, str]]
"""Name of the tool, and its arguments by name; their values are texts, which are equal if the values are."""
ToolCalls = Sequence[ToolCall]

MATCHES = ("equal", "ignore", "subset")
"""Rules for arguments: they are equal, they do not matter, or the expected ones are among the agent's."""


def trajectory_exact(calls: ToolCalls, expected_calls: ToolCalls, args: str = "equal") -> Value:
    """1 if the agent's calls are the expected ones in their order, else 0.

    >>> trajectory_exact([("find", {"q": "1"})], [("find", {"q": "1"})]), trajectory_exact([], [("find", {})])
    (1.0, 0.0)
    """
    pairs = zip(calls, expected_calls, strict=False)
    return float(len(calls) == len(expected_calls) and all(_matches(*pair, args) for pair in pairs))


def trajectory_in_order(calls: ToolCalls, expected_calls: ToolCalls, args: str = "equal") -> Value:
    """1 if the expected calls are a subsequence of the agent's, else 0.

    >>> trajectory_in_order([("find", {}), ("look", {}), ("buy", {})], [("find", {}), ("buy", {})])
    1.0
    """
    later = iter(calls)  # the first match is never worse than a later one
    return float(all(any(_matches(call, expected, args) for call in later) for expected in expected_calls))


def trajectory_any_order(calls: ToolCalls, expected_calls: ToolCalls, args: str = "equal") -> Value:
    """1 if the agent made every expected call, as often as it was expected, else 0.

    >>> trajectory_any_order([("buy", {}), ("find", {})], [("find", {}), ("buy", {})])
    1.0
    """
    return float(common_calls(calls, expected_calls, args) == len(expected_calls))


def trajectory_precision(calls: ToolCalls, expected_calls: ToolCalls, args: str = "equal") -> Value:
    """The share of the agent's calls that were expected: |P ∩ E| / |P|.

    >>> trajectory_precision([("find", {}), ("find", {})], [("find", {})])
    0.5
    """
    return common_calls(calls, expected_calls, args) / len(calls) if calls else Undefined.NO_STEPS


def trajectory_recall(calls: ToolCalls, expected_calls: ToolCalls, args: str = "equal") -> Value:
    """The share of the expected calls that the agent made: |P ∩ E| / |E|.

    >>> trajectory_recall([("find", {"q": "2"})], [("find", {"q": "1"}), ("buy", {})], "ignore")
    0.5
    """
    if not expected_calls:
        return Undefined.NO_STEPS_EXPECTED
    return common_calls(calls, expected_calls, args) / len(expected_calls)


def common_calls(calls: ToolCalls, expected_calls: ToolCalls, args: str) -> int:
    """The largest number of pairs of an expected call and a call of the agent that matches it.

    >>> calls = [("find", {"q": "1", "n": "5"}), ("find", {"q": "1"})]
    >>> common_calls(calls, [("find", {"q": "1"}), ("find", {"n": "5"})], "subset")
    2
    """
    if args == "ignore":
        return (Counter(tool for tool, _ in calls) & Counter(tool for tool, _ in expected_calls)).total()
    if args == "equal":
        return (Counter(map(_whole, calls)) & Counter(map(_whole, expected_calls))).total()
    return _most_pairs(
        [[place for place, call in enumerate(calls) if _matches(call, expected, args)] for expected in expected_calls]
    )


def steps(calls: ToolCalls) -> Value:
    """The number of calls of tools that the agent made."""
    return float(len(calls))


def retrievals(retrieving_calls: int) -> Value:
    """The number of calls that retrieved documents."""
    return float(retrieving_calls)


def all_tokens(input_tokens: int | None, output_tokens: int | None) -> Value:
    """Tokens of requests and answers together.

    >>> all_tokens(100, 20), all_tokens(None, None).value
    (120.0, 'tokens_not_given')
    """
    if input_tokens is None or output_tokens is None:
        return Undefined.TOKENS_NOT_GIVEN
    return float(input_tokens + output_tokens)


def tokens_in(input_tokens: int | None) -> Value:
    """Tokens of requests."""
    return all_tokens(input_tokens, 0)


def tokens_out(output_tokens: int | None) -> Value:
    """Tokens of answers."""
    return all_tokens(0, output_tokens)


def cost_of(cost: float | None) -> Value:
    """The cost of an answer, in the currency of the prices."""
    return Undefined.COST_NOT_KNOWN if cost is None else cost


def duration(seconds: float | None) -> Value:
    """Seconds until an answer was complete."""
    return Undefined.SECONDS_NOT_GIVEN if seconds is None else seconds


def _whole(call: ToolCall) -> tuple[str, frozenset[tuple[str, str]]]:
    return call[0], frozenset(call[1].items())


def _matches(call: ToolCall, expected: ToolCall, args: str) -> bool:
    if call[0] != expected[0] or args == "ignore":
        return call[0] == expected[0]
    return expected[1].items() <= call[1].items() if args == "subset" else call[1] == expected[1]


def _most_pairs(candidates: Sequence[Sequence[int]]) -> int:
    """The size of a maximum matching, by augmenting paths.

    Args:
        candidates: for each expected call, the positions of the calls that match it.
    """
    owners: dict[int, int] = {}
    calls_of: dict[int, int] = {}
    for start in range(len(candidates)):
        reached: dict[int, int] = {}
        queue = [start]
        for expected in queue:
            for call in candidates[expected]:
                if call not in reached:
                    reached[call] = expected
                    queue += [owners[call]] if call in owners else []
        free: int | None = next((call for call in reached if call not in owners), None)
        while free is not None:  # every expected call on the path changes to the call after it
            expected = reached[free]
            before = calls_of.get(expected)
            owners[free], calls_of[expected] = expected, free
            free = before
    return len(owners)
