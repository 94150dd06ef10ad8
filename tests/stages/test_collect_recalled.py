"""Rankings that are recalled many together are collected as each of them would be."""

import math
from collections import Counter as Tally
from collections.abc import Iterable
from typing import Any

import apache_beam as beam
from apache_beam.utils.windowed_value import WindowedValue
from hypothesis import given
from hypothesis import strategies as st

from rankbeam.transforms.records.calls.steps import CallAnswer, RecalledTasks, Subject
from rankbeam.transforms.records.metrics.evaluation import Configuration, Evaluation, Source
from rankbeam.transforms.records.queries import Ranking
from rankbeam.transforms.records.rankings.retrieved import documents_of
from rankbeam.transforms.retrieve.remote import CollectRankingsFn, CollectRecalledFn

SCORES = st.sampled_from([0.5, 1.5, math.nan])
IDS = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=4, unique=True) | st.lists(st.just("a"), max_size=3)
RANKINGS = IDS.flatmap(
    lambda ids: st.builds(
        Ranking,
        st.just(tuple(ids)),
        st.tuples(*[SCORES for _ in ids]),
        st.sampled_from([(), tuple(f"text of {name}" for name in ids)]),
    )
)
SUBJECTS = st.lists(st.tuples(st.integers(0, 2), st.sampled_from([(0,), (1,), (0, 1)])), min_size=1, max_size=2)


def collected(fn: Any, elements: Iterable[Any]) -> Tally[str]:
    """The output of a DoFn, row by row: the rankings by bucket and source, and the failures."""
    fn.start_bundle()
    outputs = [output for element in elements for output in fn.process(element)]
    rows: Tally[str] = Tally()
    for output in [*outputs, *fn.finish_bundle()]:
        value = output.value if isinstance(output, WindowedValue | beam.pvalue.TaggedOutput) else output
        if isinstance(output, beam.pvalue.TaggedOutput):
            rows[repr(value)] += 1
            continue
        bucket, (source, batch) = value
        rows.update(repr((bucket, source, row)) for row in batch.to_pylist())
    return rows


@given(st.lists(st.tuples(RANKINGS, SUBJECTS), min_size=1, max_size=6), st.sampled_from([None, 2]), st.booleans())
def test_many_are_collected_as_each(
    items: list[tuple[Ranking, list[tuple[int, tuple[int, ...]]]]], top_k: int | None, cuts: bool
) -> None:
    configurations = tuple(
        Configuration(f"{number}", f"{number}", number, "http", "{}", top_k, None, distance=0.5 if cuts else None)
        for number in range(2)
    )
    sources = (Source(None, top_k, refuse_repeats=True), Source(None, None, refuse_repeats=False))
    evaluation = Evaluation(configurations, (), sources)
    subjects = [
        tuple(
            Subject("retrieval", f"q{place}.{number}", bucket, positions)
            for number, (bucket, positions) in enumerate(of)
        )
        for place, (_, of) in enumerate(items)
    ]
    answers = [CallAnswer("http", "", of, ranking) for (ranking, _), of in zip(items, subjects, strict=True)]
    flat = [(place, subject) for place, of in enumerate(subjects) for subject in of]
    recalled = RecalledTasks(
        [subject for _, subject in flat],
        [place for place, _ in flat],
        documents_of([ranking for ranking, _ in items]),
    )
    assert collected(CollectRecalledFn(evaluation), [recalled]) == collected(CollectRankingsFn(evaluation), answers)
