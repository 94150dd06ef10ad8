"""Metrics of trajectories: plain Python says what is right, with every edge, and google-adk's rules."""

from collections.abc import Sequence
from itertools import combinations, permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbeam.transforms.kernels import trajectories as kernels
from rankbeam.transforms.kernels.judged import Undefined

Calls = Sequence[tuple[str, dict[str, str]]]
arguments = st.dictionaries(st.sampled_from("xy"), st.sampled_from("12"), max_size=2)
trajectories = st.lists(st.tuples(st.sampled_from("ab"), arguments), max_size=4)
rules = st.sampled_from(kernels.MATCHES)


def fits(call: tuple[str, dict[str, str]], expected: tuple[str, dict[str, str]], args: str) -> bool:
    same = {"equal": call[1] == expected[1], "ignore": True,
            "subset": all(call[1].get(name) == value for name, value in expected[1].items())}  # fmt: skip
    return call[0] == expected[0] and same[args]


def pairs(calls: Calls, expected: Calls, args: str) -> int:
    """The most pairs, over all ways to assign calls to expected ones."""
    longest = max(len(calls), len(expected))
    padded = [*calls, *[("", {})] * (longest - len(calls))]
    return max(
        sum(fits(call, one, args) for call, one in zip(order, expected, strict=False)) for order in permutations(padded)
    )


def plain(calls: Calls, expected: Calls, args: str) -> dict[str, Any]:
    common, p, e = pairs(calls, expected, args), len(calls), len(expected)
    fit = lambda some: all(fits(*pair, args) for pair in zip(some, expected, strict=True))  # noqa: E731
    return {
        "exact": float(p == e and fit(calls)),
        "in_order": float(any(map(fit, combinations(calls, e)))),
        "any_order": float(common == e),
        "precision": common / p if p else Undefined.NO_STEPS,
        "recall": common / e if e else Undefined.NO_STEPS_EXPECTED,
    }


@given(calls=trajectories, expected=trajectories, args=rules)
def test_every_value_is_that_of_the_definition(calls: Calls, expected: Calls, args: str) -> None:
    for name, value in plain(calls, expected, args).items():
        assert getattr(kernels, f"trajectory_{name}")(calls, expected, args) == value, name


@given(calls=trajectories, expected=trajectories, ignore_args=st.booleans())
def test_matches_are_those_of_google_adk(calls: Calls, expected: Calls, ignore_args: bool) -> None:
    """By the rules of `TrajectoryEvaluator`, written from its source: one call of the agent for each expected one."""
    same = lambda one, other: one[0] == other[0] and (ignore_args or one[1] == other[1])  # noqa: E731
    left, has_call = list(calls), []
    for one in expected:
        place = next((place for place, call in enumerate(left) if same(call, one)), None)
        has_call.append(place is not None)
        if place is not None:
            del left[place]
    remaining = list(expected)
    for call in calls:
        if remaining and same(call, remaining[0]):
            del remaining[0]
    args = "ignore" if ignore_args else "equal"
    assert kernels.trajectory_any_order(calls, expected, args) == float(all(has_call))
    assert kernels.trajectory_in_order(calls, expected, args) == float(not remaining)
    is_exact = len(calls) == len(expected) and all(map(same, calls, expected))
    assert kernels.trajectory_exact(calls, expected, args) == float(is_exact)


@pytest.mark.parametrize(
    ("calls", "expected", "values"),
    [
        ([], [], (1.0, 1.0, 1.0, "no_steps", "no_steps_expected")),
        ([("a", {})], [], (0.0, 1.0, 1.0, 0.0, "no_steps_expected")),
        ([], [("a", {})], (0.0, 0.0, 0.0, "no_steps", 0.0)),
        ([("a", {})] * 2, [("a", {})], (0.0, 1.0, 1.0, 0.5, 1.0)),
        ([("a", {})], [("a", {})] * 2, (0.0, 0.0, 0.0, 1.0, 0.5)),
    ],
)
def test_edges(calls: Calls, expected: Calls, values: tuple[float | str, ...]) -> None:
    names = ("exact", "in_order", "any_order", "precision", "recall")
    assert tuple(getattr(kernels, f"trajectory_{name}")(calls, expected) for name in names) == values


@pytest.mark.long
def test_long_trajectories_take_no_time() -> None:
    calls: Calls = [("a", {"x": "1", "y": str(number)}) for number in range(1000)]
    assert kernels.common_calls(calls, [("a", {"x": "1"})] * 250, "subset") == 250
