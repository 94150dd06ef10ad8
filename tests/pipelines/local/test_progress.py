"""The progress shown during a run."""

import io

from rankbeam.pipelines.local.progress import Progress, show_progress
from rankbeam.transforms.clients.calls.tally import count
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.counters import Counter, Counts


def counts(**numbers: int) -> Counts:
    """Counts of the pool "rag", besides 100 judged queries."""
    counts: Counts = Counts({(Counter.JUDGED_QUERIES, ""): 100})
    counts.update({(Counter[name.upper()], "rag"): number for name, number in numbers.items()})
    return counts


def test_a_pool_says_how_far_it_is_how_fast_and_how_long_it_will_take() -> None:
    progress = Progress(0, 1, {"rag": Quota(requests_per_minute=1500)})
    progress.lines(counts(calls_planned=648, ledger_hits=48), 3.0)
    _, line = progress.lines(
        counts(calls_planned=648, ledger_hits=48, calls_made=250, calls_done=200, retries=3, calls_failed=1), 13.0
    )
    assert line == (
        "rag: 200/600 calls · 48 more from the ledger · 25.0/s of 25/s · 3 retries · 1 failure · about 16 s left"
    )


def test_time_before_the_first_call_does_not_count() -> None:
    progress = Progress(0, 1, {"rag": Quota(requests_per_minute=600)})
    for second in range(8):
        progress.lines(counts(calls_planned=100), float(second))
    _, line = progress.lines(counts(calls_planned=100, calls_made=10), 8.0)
    assert "10.0/s of 10/s" in line


def test_a_pool_that_is_done_says_no_rate() -> None:
    progress = Progress(0, 1, {"rag": Quota(requests_per_minute=600)})
    _, line = progress.lines(counts(calls_planned=100, calls_made=101, calls_done=100, retries=1), 8.0)
    assert line == "rag: 100/100 calls · 1 retry · 0 failures"


def test_a_pool_without_calls_is_not_shown() -> None:
    assert len(Progress(0, 1, {"rag": Quota(requests_per_minute=600)}).lines(counts(), 1.0)) == 1


def test_the_last_words_are_the_totals() -> None:
    out = io.StringIO()
    with show_progress(Progress(0, 1, {"rag": Quota(requests_per_minute=600)}), out):
        count(Counter.JUDGED_QUERIES, 4)
        count(Counter.CALLS_PLANNED, 4, "rag")
        count(Counter.CALLS_DONE, 3, "rag")
        count(Counter.CALLS_DONE, 1, "rag")
    assert out.getvalue().splitlines()[-1] == "rag: 4/4 calls · 0 retries · 0 failures"
