"""A run that can no longer meet `max_failure_rate` says so when the first query too many has failed, and once."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from rankbeam.transforms.call import FailureLimit
from rankbeam.transforms.records.calls.steps import FailedTask, Subject
from rankbeam.transforms.records.errors import Failure, FailureKind


def failed(query: int, panel: str = "retrieval", positions: tuple[int, ...] = (0,)) -> FailedTask:
    failure = Failure("retrieve", FailureKind.UNAVAILABLE, f"q{query}", 1, "it is down")
    return FailedTask("work", Subject(panel, f"q{query}", 0, positions), failure)


@given(st.integers(1, 200), st.integers(0, 100))
def test_the_first_failure_above_the_limit_is_the_one_that_says_so(queries: int, percent: int) -> None:
    limit = FailureLimit(percent / 100, queries)
    reports = [limit.add(failed(query)) is not None for query in range(queries)]
    most = Fraction(queries * percent, 100)
    first = next((number for number in range(1, queries + 1) if number > most), None)
    assert reports == [number == first for number in range(1, queries + 1)]


def test_failures_of_several_panels_and_sources_do_not_add_up() -> None:
    limit = FailureLimit(0.5, 4)
    for query in range(2):
        assert limit.add(failed(query, positions=(0,))) is None
        assert limit.add(failed(query, positions=(1,))) is None
        assert limit.add(failed(query, "Faithfulness")) is None
    assert limit.add(failed(2, positions=(1, 2))) == (
        "3 of 4 queries have failed for good, more than 50.0% (max_failure_rate): the run continues, and will end with "
        "status 3; the last failure: it is down"
    )


def test_a_limit_of_all_queries_is_never_exceeded() -> None:
    limit = FailureLimit(1.0, 2)
    assert [limit.add(failed(query)) for query in (0, 0, 1, 1)] == [None] * 4
