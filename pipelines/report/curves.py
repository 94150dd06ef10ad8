"""Curves of every configuration: precision by recall, metrics by their cutoff k, and the trend over runs."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.pipelines.report import words
from rankbeam.pipelines.report.plots import Curve, LinePlot, line_plot
from rankbeam.pipelines.report.sources import DatasetFiles
from rankbeam.pipelines.report.study import Study
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.kernels.arrays import FloatArray
from rankbeam.transforms.kernels.ranking.curves import LEVELS, interpolated_precision
from rankbeam.transforms.kernels.statistics.intervals import student_interval
from rankbeam.transforms.records.errors import InputError, pluralize
from rankbeam.transforms.records.holes import LLM
from rankbeam.transforms.records.slices import ALL

TITLE = "Interpolated precision at 11 levels of recall (trec_eval's iprec_at_recall), mean over queries"
MOST_QUERIES = 20_000
_RELEVANT = 1
_BATCH_ROWS = 1 << 12


def precision_recall(study: Study) -> LinePlot | None:
    """A curve for each configuration; None without rankings or judgements, or if there are too many queries."""
    ids = study.values.ids
    if len(ids) > MOST_QUERIES:
        return None
    judged = DatasetFiles(study.results).relevant(ids)
    relevant = {query: sum(grade >= _RELEVANT for _, grade in own) for query, own in judged.items()}
    values = _values(study, relevant) if any(relevant.values()) else {}
    curves = [
        Curve(study.titles[place], _points(np.concatenate(values[study.ids[place]]), study.level))
        for place in study.order(study.metrics[0])
        if study.ids[place] in values
    ]
    return line_plot(TITLE, "recall", curves)


def _values(study: Study, relevant: Mapping[str, int]) -> dict[str, list[FloatArray]]:
    """The queries' values at each level of recall, by config_id."""
    values: defaultdict[str, list[FloatArray]] = defaultdict(list)
    try:
        for batch in study.results.batches("rankings", ["config_id", "query_id", "documents"], _BATCH_ROWS):
            for config_id in pc.unique(batch["config_id"]):
                rankings = batch.filter(pc.equal(batch["config_id"], config_id))
                values[config_id.as_py()].append(_precision_by_query(rankings, relevant))
    except InputError:  # the files may have been deleted; the rest of the report is not affected
        return {}
    return values


def _precision_by_query(rankings: pa.RecordBatch, relevant: Mapping[str, int]) -> FloatArray:
    query = pc.list_parent_indices(rankings["documents"]).to_numpy().astype(np.int64)
    documents = rankings["documents"].flatten()
    grades = pc.fill_null(documents.field("grade"), 0.0).to_numpy(zero_copy_only=False)
    if documents.type.get_field_index("grade_source") >= 0:  # older runs lack it
        grades = np.where(np.asarray(pc.fill_null(pc.equal(documents.field("grade_source"), LLM), False)), 0.0, grades)
    counts = np.array([relevant.get(query_id, 0) for query_id in rankings["query_id"].to_pylist()], np.int64)
    return interpolated_precision(query, grades >= _RELEVANT, counts)


def _points(values: FloatArray, confidence: float) -> list[tuple[float, float, float, float, str]]:
    count = len(values)
    errors = values.std(axis=0, ddof=1) / np.sqrt(count) if count > 1 else np.zeros(len(LEVELS))
    points = []
    for level, mean, error in zip(LEVELS, values.mean(axis=0).tolist(), errors.tolist(), strict=True):
        low, high = student_interval(mean, error, count, confidence) if count > 1 else (mean, mean)
        points.append((level, mean, max(0.0, low), min(1.0, high), f"recall {level:g}"))
    return points


def against_k(study: Study) -> list[LinePlot]:
    """A plot for each metric that the run has at several cutoffs, with a line for each configuration."""
    families: defaultdict[str, dict[int, str]] = defaultdict(dict)
    for metric in study.metrics:
        name, by_cutoff, cutoff = metric.rpartition("@")
        if by_cutoff and cutoff.isdecimal():
            families[name][int(cutoff)] = metric
    return [
        plot
        for name, by_cutoff in families.items()
        if len(by_cutoff) > 1 and (plot := line_plot(f"{name} against k", "k", _curves(study, by_cutoff))) is not None
    ]


def _curves(study: Study, by_cutoff: dict[int, str]) -> Iterable[Curve]:
    for place in study.order(study.metrics[0]):
        rows = [(cutoff, study.mean(place, metric)) for cutoff, metric in sorted(by_cutoff.items())]
        points = [(float(k), row.mean, *row.ends, f"k = {k}") for k, row in rows if row.mean is not None]
        yield Curve(study.titles[place], points)


def trend(study: Study, metric: str, runs: list[Results]) -> LinePlot | None:
    """A metric over the runs up to this one, with a line for each of its configurations; None for a first run."""
    if len(runs) < 2:
        return None
    curves = [Curve(study.titles[place], _run_points(study.ids[place], metric, runs)) for place in study.order(metric)]
    return line_plot(f"{metric} over the runs of this folder", "run, the latest last", curves)


def changes(study: Study, metric: str) -> list[str]:
    """The changes since the baseline run: one sentence for each configuration."""
    names = dict(zip(study.ids, study.names, strict=True))
    return [
        f"{names[row['config_id']]}: {_change(row)} since the baseline run {row['baseline_run']}"
        for row in study.monitor
        if row["metric"] == metric and row["config_id"] in names
    ]


def _change(row: dict[str, Any]) -> str:
    if row["change"] is None:
        return "no night counts yet"
    alarm = "alarm, " if row["alarm"] else ""
    nights = f"over {pluralize(row['nights'], 'night')}" if row["mode"] == "fresh" else "query by query"
    interval = words.interval(row["low"], row["high"], sign=True)
    return f"{alarm}{row['state']}, {words.signed(row['change'])} ({interval}) {nights}"


def _run_points(config_id: str, metric: str, runs: list[Results]) -> list[tuple[float, float, float, float, str]]:
    points = []
    for number, run in enumerate(runs, start=1):
        row = run.means.get((config_id, ALL, metric))
        if row is not None and row.mean is not None:
            points.append((float(number), row.mean, *row.ends, f"{run.run_id} ({run.execution[1]:%Y-%m-%d %H:%M})"))
    return points
