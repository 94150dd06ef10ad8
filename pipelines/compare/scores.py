"""The scores of finished runs, rebuilt from `query_metrics` in the form of the scoring stage, aligned by query."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.judge.metrics import JudgedMetric
from rankbeam.transforms.kernels.arrays import FloatArray
from rankbeam.transforms.records import columns
from rankbeam.transforms.records.metrics.panels import Panel, panels_of
from rankbeam.transforms.records.scores.judged import LABELLED_IN_PART, NOTHING_TO_LABEL, UNDEFINED_BY_PEOPLE
from rankbeam.transforms.records.scores.scored import (
    LABELS,
    ScoredConfiguration,
    ScoredPanel,
    ScoredPartition,
    Status,
    rank_slices,
)
from rankbeam.transforms.records.slices import slices_of

_ROWS_READ = 1 << 16
_QUERIES_AT_ONCE = 50_000
_STATUSES = pa.array(LABELS)
_WITHOUT_LABEL = (LABELLED_IN_PART, NOTHING_TO_LABEL, UNDEFINED_BY_PEOPLE)
_REASONS = {np.int8(len(LABELS) + i): reason for i, reason in enumerate(_WITHOUT_LABEL)}
"""Separate statuses for the reasons why a query lacks a human value."""


@dataclass(frozen=True)
class Member:
    """One configuration of one run."""

    results: Results
    config_id: str
    name: str


@dataclass
class _Scores:
    """One configuration's scores, as parallel parts in the order of reading."""

    queries: list[npt.NDArray[np.int32]]  # n positions among the queries of the run in each part
    status: list[npt.NDArray[np.int8]]  # int8[n, p], one column for each panel
    values: list[FloatArray]  # float64[n, m], one column for each metric, panel by panel


@dataclass
class _RunScores:
    """The scores of a run's configurations."""

    query_ids: list[pa.Array]  # ids in the order of reading, once for each batch of rows
    attributes: list[pa.Array]  # attributes of these queries, if needed
    by_config: dict[str, _Scores]  # scores by config_id


def partitions_of(
    members: Sequence[Member], panels: Sequence[Panel], slices: Sequence[str], *, with_attributes: bool
) -> Iterator[ScoredPartition]:
    """The scored queries of configurations, which may belong to several runs, in batches.

    A query that a run lacks is MISSING there; its attributes come from the first run that has it.
    """
    with_attributes, own_panels, panels = with_attributes or bool(slices), panels, _with_judged(panels)
    runs = list(dict.fromkeys((member.results.output, member.results.run_id) for member in members))
    scores = {}
    for run in runs:
        group = [member for member in members if (member.results.output, member.results.run_id) == run]
        ids = {member.config_id for member in group}
        scores[run] = _read_scores(group[0].results, ids, panels, with_attributes=with_attributes)
    everyone = pa.chunked_array([ids for run in scores.values() for ids in run.query_ids], pa.string())
    query_ids = everyone.unique().sort()
    attributes = pa.nulls(len(query_ids), columns.ATTRIBUTES)
    if with_attributes:
        parts = pa.chunked_array([part for run in scores.values() for part in run.attributes], columns.ATTRIBUTES)
        attributes = parts.take(pc.index_in(query_ids, everyone)).combine_chunks()
    aligned = {}
    for run, of_run in scores.items():
        places = pc.index_in(pa.chunked_array(of_run.query_ids, pa.string()), query_ids).to_numpy()
        for config_id, own in of_run.by_config.items():
            aligned[(*run, config_id)] = _align_scores(own, places, len(query_ids), panels)
    rows = [aligned[member.results.output, member.results.run_id, member.config_id] for member in members]
    for first in range(0, len(query_ids), _QUERIES_AT_ONCE):
        batch = slice(first, first + _QUERIES_AT_ONCE)
        texts = pa.nulls(len(query_ids[batch]), pa.string())
        queries = pa.RecordBatch.from_arrays([query_ids[batch], texts, attributes[batch]], schema=columns.QUERIES)
        configurations = tuple(
            ScoredConfiguration(position, tuple(_split(status[batch], values[batch], panels))[: len(own_panels)])
            for position, (status, values) in enumerate(rows)
        )
        by_rank = rank_slices(configurations, own_panels, slices)
        yield ScoredPartition(queries, {**dict(slices_of(queries, slices)), **dict(by_rank)}, configurations)


def judged_alone(panel: Panel) -> list[JudgedMetric]:
    """The judge's own metrics, on which a panel's metrics by labels and judge rest."""
    judged = (metric for metric in panel.metrics if isinstance(metric, JudgedMetric))
    return [replace(metric, labels=False) for metric in judged if metric.labels]


def _with_judged(panels: Sequence[Panel]) -> Sequence[Panel]:
    """The panels, and panels of the judge's own values if metrics by labels and judge need them."""
    known = {str(metric) for panel in panels for metric in panel.metrics}
    judged = {str(plain): plain for panel in panels for plain in judged_alone(panel)}
    return (*panels, *panels_of([metric for name, metric in judged.items() if name not in known])[1:])


def _read_scores(
    results: Results, config_ids: Collection[str], panels: Sequence[Panel], *, with_attributes: bool
) -> _RunScores:
    """The scores of a run's configurations, read in batches, as there may be millions of rows."""
    names = ["config_id", "query_id", "status", "metrics", *(["slices"] if with_attributes else [])]
    run = _RunScores([], [], {config_id: _Scores([], [], []) for config_id in config_ids})
    count = 0
    for batch in results.batches("query_metrics", names, _ROWS_READ):
        batch = batch.filter(pc.is_in(batch["config_id"], pa.array(config_ids, pa.string())))
        query_ids = batch["query_id"].unique()
        place = count + pc.index_in(batch["query_id"], query_ids).to_numpy()
        count += len(query_ids)
        run.query_ids.append(query_ids)
        if with_attributes:
            first = pc.index_in(query_ids, batch["query_id"])
            run.attributes.append(batch["slices"].take(first).cast(columns.ATTRIBUTES))
        for config_id in pc.unique(batch["config_id"]).to_pylist():
            of_config = pc.equal(batch["config_id"], config_id)
            rows, scores = batch.filter(of_config), run.by_config[config_id]
            status, values = _values(rows["metrics"], panels)
            status[:, 0] = pc.index_in(rows["status"], _STATUSES).to_numpy()
            scores.queries.append(place[of_config.to_numpy(zero_copy_only=False)].astype(np.int32))
            scores.status.append(status)
            scores.values.append(values)
    return run


def _values(lists: pa.ListArray, panels: Sequence[Panel]) -> tuple[npt.NDArray[np.int8], FloatArray]:
    """Status and values, as in `_Scores`, from n lists of metrics; the caller fills in the status of rankings.

    If a list lacks a metric, its value is NaN and its status MISSING.
    """
    metrics = [str(metric) for panel in panels for metric in panel.metrics]
    values = np.full((len(lists), len(metrics)), np.nan)
    status = np.full((len(lists), len(panels)), Status.MISSING, np.int8)
    flat = lists.flatten()
    column = pc.fill_null(pc.index_in(flat.field("metric"), pa.array(metrics, pa.string())), -1).to_numpy()
    row = np.repeat(np.arange(len(lists)), lists.value_lengths().to_numpy())
    is_known = column >= 0
    values[row[is_known], column[is_known]] = flat.field("value").to_numpy(zero_copy_only=False)[is_known]
    if len(panels) > 1:  # runs without judged metrics may be too old for a status of metrics
        judged = column >= len(panels[0].metrics)
        labels = pc.index_in(flat.field("status").filter(pa.array(judged)), _STATUSES)
        own_status = labels.to_numpy(zero_copy_only=False)
        if flat.type.get_field_index("reason") >= 0:
            reasons = flat.field("reason").filter(pa.array(judged))
            for code, reason in _REASONS.items():
                own_status = np.where(pc.fill_null(pc.equal(reasons, reason), False), code, own_status)
        status[row[judged], 1 + column[judged] - len(panels[0].metrics)] = own_status
    return status, values


def _split(status: npt.NDArray[np.int8], values: FloatArray, panels: Sequence[Panel]) -> Iterator[ScoredPanel]:
    """One configuration's panels, from the columns of all panels."""
    names = [panel.name for panel in panels]
    starts = np.cumsum([0, *(len(panel.metrics) for panel in panels)])
    for place, panel in enumerate(panels):
        scored = ScoredPanel(status[:, place], values[:, starts[place] : starts[place + 1]])
        for judge_metric in judged_alone(panel):
            judge = names.index(str(judge_metric))
            judged = np.where(status[:, judge] <= Status.EMPTY, values[:, starts[judge]], np.nan)
            reasons = pa.array([_REASONS.get(code) for code in scored.status], pa.string())
            codes = np.where(reasons.is_valid(), np.int8(Status.UNDEFINED), scored.status).astype(np.int8)
            scored = replace(scored, status=codes, judged=judged, reasons=reasons)
        yield scored


def _align_scores(
    scores: _Scores, places: npt.NDArray[np.int32], queries: int, panels: Sequence[Panel]
) -> tuple[npt.NDArray[np.int8], FloatArray]:
    """Status and values in the order of all queries, where each of the run's queries has a place."""
    status = np.full((queries, len(panels)), Status.MISSING, np.int8)
    values = np.full((queries, sum(len(panel.metrics) for panel in panels)), np.nan)
    if scores.queries:
        place = places[np.concatenate(scores.queries)]
        status[place], values[place] = np.concatenate(scores.status), np.concatenate(scores.values)
    scores.queries, scores.status, scores.values = [], [], []  # release the memory for the next one
    return status, values
