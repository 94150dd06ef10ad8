"""Judged values leave the stage that collects them some at a time, and arrive at scoring as they were."""

from collections.abc import Iterable
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.utils.windowed_value import WindowedValue
from hypothesis import given
from hypothesis import strategies as st

from rankbeam.transforms.clients.storage.batches import Bucketed, Reference
from rankbeam.transforms.judge import collect
from rankbeam.transforms.judge.collect import PANEL, WORK, CollectJudgementsFn, distinct_texts
from rankbeam.transforms.judge.rows import Rows
from rankbeam.transforms.records.calls.steps import CallAnswer, Subject
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.judging.answers import Answer, AnswerRow, AnswerStatus, EvaluatedItem, Value
from rankbeam.transforms.records.labels import text_hash
from rankbeam.transforms.records.metrics.evaluation import Configuration
from rankbeam.transforms.records.rankings.contexts import Passage
from rankbeam.transforms.records.scores.judged import judged_values
from rankbeam.transforms.records.scores.scored import Status

AT_ONCE = 20
METRICS = ("Faithfulness", "AnswerRelevance(ragas)", "Refused")
ROWS = Rows(tuple(Configuration(f"{n}", f"{n}", 0, "x", "{}", None, None) for n in range(3)), {}, {}, {})
FAILED = CallError(FailureKind.TIMEOUT, "too late")

_OUTCOMES = st.one_of(
    st.sampled_from([(0.0, None, None), (1 / 3, None, None), (1.0, None, None)]),
    st.sampled_from([(None, "no_claims", None), (None, "timeout", FAILED)]),
)
_VALUES = st.dictionaries(st.tuples(st.integers(0, 2), st.sampled_from(METRICS)), _OUTCOMES, max_size=9)
_ITEMS = st.lists(st.tuples(st.integers(0, 3), _VALUES), max_size=30)
Row = tuple[int, int, str, str, float | None, Status, str | None]


def answer(query_id: str, bucket: int, values: dict[tuple[int, str], tuple[Any, ...]]) -> CallAnswer:
    judged = tuple(Value(*key, *outcome) for key, outcome in values.items())
    return CallAnswer(
        WORK, query_id, (Subject(PANEL, query_id, bucket, (0, 1, 2)),), EvaluatedItem(query_id, None, (), judged, ())
    )


def bucketed(outputs: Iterable[Any]) -> list[Bucketed]:
    plain = (output.value if isinstance(output, WindowedValue) else output for output in outputs)
    return [output for output in plain if not isinstance(output, beam.pvalue.TaggedOutput)]


def rows_of(elements: Iterable[Bucketed]) -> list[Row]:
    by_bucket: dict[int, list[Any]] = {}
    for bucket, batch in elements:
        by_bucket.setdefault(bucket, []).append(batch)
    rows = [
        (bucket, part.configuration, part.metric, *row)
        for bucket, batches in by_bucket.items()
        for part in judged_values(batches)
        for row in zip(
            part.query_ids.to_pylist(),
            [None if np.isnan(value) else value for value in part.values],
            map(Status, part.status),
            part.reasons.to_pylist(),
            strict=True,
        )
    ]
    return sorted(rows, key=repr)


@given(_ITEMS)
def test_values_arrive_as_they_were_and_few_are_held(items: list[tuple[int, dict[Any, Any]]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collect, "_VALUES_AT_ONCE", AT_ONCE)
        fn = CollectJudgementsFn(ROWS)
        fn.start_bundle()
        early = bucketed(
            out for n, (bucket, values) in enumerate(items) for out in fn.process(answer(f"q{n}", bucket, values))
        )
        late = bucketed(fn.finish_bundle())
    assert sum(batch.num_rows for _, batch in late) < AT_ONCE
    expected = [
        (bucket, *key, f"q{n}", value, status_of(value, error), reason)
        for n, (bucket, values) in enumerate(items)
        for key, (value, reason, error) in values.items()
    ]
    assert rows_of([*early, *late]) == sorted(expected, key=repr)


def status_of(value: float | None, error: CallError | None) -> Status:
    if value is not None:
        return Status.OK
    return Status.UNDEFINED if error is None else Status.FAILED


def test_no_values_are_no_panels() -> None:
    assert judged_values([]) == []


@given(st.lists(st.lists(st.text("ab", min_size=1, max_size=2), max_size=4), max_size=8), st.integers(1, 5))
def test_every_text_is_written_once_however_often_it_occurs(answers: list[list[str]], at_once: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collect, "_TEXTS_AT_ONCE", at_once)
        fn = CollectJudgementsFn(ROWS)
        fn.start_bundle()
        outputs = [out for n, texts in enumerate(answers) for out in fn.process(with_contexts(f"q{n}", texts))]
        outputs += fn.finish_bundle()
    plain = (output.value if isinstance(output, WindowedValue) else output for output in outputs)
    shards: dict[int, list[Reference]] = {}
    for output in plain:
        if isinstance(output, beam.pvalue.TaggedOutput) and output.tag == "texts":
            shard, reference = output.value.value if isinstance(output.value, WindowedValue) else output.value
            shards.setdefault(shard, []).append(reference)
    rows = [row for shard in shards.items() for table in distinct_texts(shard) for row in table.to_pylist()]
    expected = {text for texts in answers for text in texts}
    assert sorted(row["text"] for row in rows) == sorted(expected)
    assert all(row["text_hash"] == text_hash(row["text"]) for row in rows)


def with_contexts(query_id: str, texts: list[str]) -> CallAnswer:
    known = Answer(AnswerStatus.OK, None, tuple(Passage(None, text) for text in texts))
    evaluated = EvaluatedItem(query_id, None, (AnswerRow(0, 0, known),), (), ())
    return CallAnswer(WORK, query_id, (Subject(PANEL, query_id, 0, (0,)),), evaluated)
