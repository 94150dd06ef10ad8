"""Judged values, joined to the rankings of their queries and configurations."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.transforms.kernels.arrays import BoolArray, FloatArray
from rankbeam.transforms.records.metrics.evaluation import Evaluation
from rankbeam.transforms.records.race import order_of
from rankbeam.transforms.records.scores.scored import ScoredConfiguration, ScoredPanel, Status

NOT_JUDGED = "there is no judgement of it"
NOT_ASKED = "a race had dropped the configuration before"
NOT_LABELLED = "not_labelled"
LABELLED_IN_PART = "labelled_in_part"
UNDEFINED_BY_PEOPLE = "undefined_by_people"
NOTHING_TO_LABEL = "nothing_to_label"


_NAME = pa.dictionary(pa.int32(), pa.string())
VALUES = pa.schema(
    [
        ("query_id", _NAME),
        ("configuration", pa.int32()),
        ("metric", _NAME),
        ("value", pa.float64()),
        ("status", pa.int8()),
        ("reason", _NAME),
    ]
)
"""One row for each value of a bucket's queries, in any order; columns are null as in `JudgedValues`."""


@dataclass(frozen=True)
class JudgedValues:
    """The values of one judged metric under one configuration, for n queries of one bucket."""

    configuration: int  # its position in the experiment
    metric: str  # the canonical name
    query_ids: pa.StringArray  # n ids, each once
    values: FloatArray  # float64[n]; NaN if the status is neither OK nor EMPTY
    status: npt.NDArray[np.int8]
    reasons: pa.StringArray  # n texts: the reason for a missing value; null for a value

    def __post_init__(self) -> None:
        """Check that values, status and reasons agree."""
        has_value = self.status <= Status.EMPTY
        if not np.array_equal(np.isfinite(self.values), has_value):
            raise ValueError(f"{self.metric}: the queries with a value are those whose status is ok or empty")
        if not np.array_equal(np.asarray(self.reasons.is_valid()), ~has_value):
            raise ValueError(f"{self.metric}: the queries without a value have a reason, and no others")


def judged_values(batches: Sequence[pa.RecordBatch]) -> list[JudgedValues]:
    table = pa.Table.from_batches(batches, VALUES)
    query_id, metric, reason = (_strings(table[name]) for name in ("query_id", "metric", "reason"))
    configuration, value, status = (table[name].to_numpy() for name in ("configuration", "value", "status"))
    named = metric.dictionary_encode()
    key = configuration.astype(np.int64) * len(named.dictionary) + named.indices.to_numpy()
    order = np.argsort(key, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(key[order])) + 1) if len(order) else []
    return [
        JudgedValues(
            int(configuration[rows[0]]),
            metric[int(rows[0])].as_py(),
            query_id.take(pa.array(rows)),
            value[rows],
            status[rows],
            reason.take(pa.array(rows)),
        )
        for rows in parts
    ]


def _strings(column: pa.ChunkedArray) -> pa.StringArray:
    return pa.concat_arrays([pa.array([], pa.string()), *column.cast(pa.string()).chunks])


def with_judged(
    scored: Sequence[ScoredConfiguration],
    query_ids: pa.StringArray,
    values: Sequence[JudgedValues],
    evaluation: Evaluation,
) -> tuple[ScoredConfiguration, ...]:
    """Configurations with a panel for each judged metric besides the panel of rankings.

    A query that should have a judged value and has none has failed. In the panels of a configuration that is not
    judged, all queries are missing, except those that come after a race has dropped it.
    """
    names = [panel.name for panel in evaluation.panels[1:]]
    with_labels = {panel.name for panel in evaluation.panels if panel.has_labels}
    by_panel: dict[tuple[int, str], list[JudgedValues]] = {
        (position, kind): []
        for position, configuration in enumerate(evaluation.configurations)
        for name in names
        if name in configuration.judged
        for kind in ((name, by_people(name)) if name in with_labels else (name,))
    }
    for part in values:
        if (part.configuration, part.metric) not in by_panel:
            raise ValueError(f"{part.metric} of configuration {part.configuration} is not to be judged")
        by_panel[part.configuration, part.metric].append(part)
    with_panels = []
    order = order_of(query_ids)
    for scored_item in scored:
        is_asked = evaluation.configurations[scored_item.configuration].query_mask(order)
        panels = []
        for name in names:
            parts = by_panel.get((scored_item.configuration, name))
            panel = _no_panel(is_asked) if parts is None else _panel(query_ids, parts, is_asked)
            if name in with_labels:
                panel = _labelled_panel(
                    panel, query_ids, by_panel.get((scored_item.configuration, by_people(name)), [])
                )
            panels.append(panel)
        with_panels.append(replace(scored_item, panels=(scored_item.retrieval, *panels)))
    return tuple(with_panels)


def by_people(metric: str) -> str:
    """The name under which human values of a metric travel."""
    return f"{metric} by people"


def _labelled_panel(panel: ScoredPanel, query_ids: pa.StringArray, parts: Sequence[JudgedValues]) -> ScoredPanel:
    """Human values of queries that have both values, with the judge's."""
    values, why = np.full(len(query_ids), np.nan), np.full(len(query_ids), NOT_LABELLED, object)
    for part in parts:
        places = np.asarray(pc.index_in(part.query_ids, value_set=query_ids))
        values[places], why[places] = part.values, part.reasons.to_pylist()
    values = np.where(panel.scored, values, np.nan)
    lacking = panel.scored & np.isnan(values)
    reasons = pa.nulls(len(query_ids), pa.string()) if panel.reasons is None else panel.reasons
    return ScoredPanel(
        np.where(lacking, np.int8(Status.UNDEFINED), panel.status).astype(np.int8),
        values[:, None],
        reasons=pc.if_else(pa.array(lacking), pa.array(why, pa.string()), reasons),
        judged=np.where(panel.scored, panel.values[:, 0], np.nan),
    )


def _no_panel(is_asked: BoolArray) -> ScoredPanel:
    status = np.where(is_asked, np.int8(Status.MISSING), np.int8(Status.NOT_ASKED))
    return ScoredPanel(status, np.full((len(is_asked), 1), np.nan))


def _panel(query_ids: pa.StringArray, parts: Sequence[JudgedValues], is_asked: BoolArray) -> ScoredPanel:
    """The values of one metric for n queries in their order; `is_asked` is bool[n]."""
    ids = pa.chunked_array([part.query_ids for part in parts], pa.string())
    place = pc.index_in(ids, value_set=query_ids)
    if place.null_count or len(pc.unique(ids)) < len(ids):
        raise ValueError(f"{parts[0].metric}: judged values are of other queries, or two are of one")
    rows = np.full(len(query_ids), len(ids))
    rows[np.asarray(place)] = np.arange(len(ids))
    values = np.concatenate([*(part.values for part in parts), [np.nan]])[rows]
    status = np.concatenate([*(part.status for part in parts), [np.int8(Status.FAILED)]])[rows]
    reasons = pa.chunked_array([*(part.reasons for part in parts), pa.array([NOT_JUDGED])], pa.string())
    texts = reasons.take(pa.array(rows)).combine_chunks()
    if not is_asked.all():
        status, texts = np.where(is_asked, status, np.int8(Status.NOT_ASKED)), pc.if_else(is_asked, texts, NOT_ASKED)
        values = np.where(is_asked, values, np.nan)
    return ScoredPanel(status, values[:, None], reasons=texts)
