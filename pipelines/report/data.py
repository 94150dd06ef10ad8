"""The data for the page's script, by column and of limited size."""

import base64
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from rankbeam.pipelines.report.answers import read_answers
from rankbeam.pipelines.report.rankings import are_written, cut, read_rankings, shown_rankings
from rankbeam.pipelines.report.sources import DatasetFiles
from rankbeam.pipelines.report.study import MOST_ROWS, Study
from rankbeam.pipelines.report.values import QueryValues, chosen_queries, slices_of
from rankbeam.pipelines.results.leaderboard import offline_words
from rankbeam.transforms.kernels.arrays import FloatArray
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.scores.rows import Comparison, ConfigurationMetric
from rankbeam.transforms.records.scores.scored import LABELS
from rankbeam.transforms.records.slices import ALL

MOST_QUERIES, _MOST_VALUES = 20_000, 4_000_000
_MOST_LETTERS = 500
_BINS = 40
_KEYS = {"run_id", "experiment", "started_at", "config_id", "baseline", "slice", "metric"}
_ESCAPES = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029\x7f"}


def page_data(study: Study, most_queries: int = MOST_QUERIES) -> dict[str, Any]:
    values = study.values
    others = [name for name in study.order(study.metrics[0]) if name != study.baseline]
    most_queries = min(most_queries, max(1, _MOST_VALUES // (len(study.ids) * len(study.metrics))))
    chosen = chosen_queries(values, others, study.baseline, most_queries)
    sampled = len(chosen) < len(values)
    pairs = list(dict.fromkeys([study.pair, *((other, study.baseline) for other in others)])) if others else []
    shown = values.taken(chosen) if sampled else values
    written = are_written(study.results)
    cells = shown_rankings(shown, pairs)
    rankings = read_rankings(study.results, shown.ids, cells) if written else None
    return {
        "experiment": study.results.run["experiment"],
        "runId": study.results.run_id,
        "confidence": study.confidence,
        "metrics": study.metrics,
        "signs": [*map(study.results.sign_of, study.metrics)],
        "configurations": study.names,
        "configurationIds": study.ids,
        "order": study.order(study.metrics[0]),
        "baseline": study.baseline,
        "pair": list(study.pair),
        "total": len(values),
        "sampled": sampled,
        **_queries(shown),
        "histograms": _histograms(study, others) if sampled else None,
        "attributes": DatasetFiles(study.results).attributes(shown.ids.to_pylist()),
        "rankings": rankings,
        "answers": read_answers(study.results, shown.ids, cells),
        "offline": next(filter(None, map(offline_words, study.metrics)), ""),
        "isWhole": study.has_all_comparisons and len(study.results.means) <= MOST_ROWS,
        "leaderboard": _means(study),
        "comparisons": _comparisons(study),
    }


def _queries(values: QueryValues) -> dict[str, Any]:
    texts = [None if text is None else cut(text, _MOST_LETTERS) for text in values.rows["text"].to_pylist()]
    all_ok = not values.status.any()
    judged = {str(metric): [_positions(column) for column in status] for metric, status in values.judged.items()}
    return {
        "ids": values.ids.to_pylist(),
        "texts": texts if any(texts) else None,
        "values": [[_numbers(column) for column in metric] for metric in values.values],
        "statuses": LABELS,
        "status": None if all_ok else [_positions(column) for column in values.status],
        "judgedStatus": judged,
        "slices": [{"name": name, **_words(column)} for name, column in slices_of(values.rows).items()],
    }


def _means(study: Study) -> dict[str, Any]:
    """The table `configuration_metrics`; without slices if there are too many rows."""
    columns = [name for name in tables.CONFIGURATION_METRICS.names if name not in _KEYS]
    rows = list(study.results.means.values())
    rows = rows if len(rows) <= MOST_ROWS else [row for row in rows if row.slice == ALL]
    places = {config_id: position for position, config_id in enumerate(study.ids)}
    return _columns(rows, columns, configuration=[places[row.config_id] for row in rows])


def _comparisons(study: Study) -> dict[str, Any]:
    columns = [name for name in tables.COMPARISONS.names if name not in _KEYS]
    pairs = study.comparisons
    places = {"configuration": [pair.one for pair in pairs], "baseline": [pair.other for pair in pairs]}
    return _columns([pair.row for pair in pairs], columns, **places)


def _columns(rows: Sequence[ConfigurationMetric | Comparison], names: list[str], **places: list[int]) -> dict[str, Any]:
    """A table: positions of configurations, then slice, metric and all columns that are not empty."""
    values = {name: [getattr(row, name) for row in rows] for name in ("slice", "metric", *names)}
    known = {name: column for name, column in values.items() if any(value is not None for value in column)}
    return {"positions": places, "columns": known}


def _histograms(study: Study, others: list[int]) -> list[dict[str, Any]]:
    """All queries' differences from the baseline, for a page that does not contain all queries."""
    return [
        {
            "metric": metric,
            "configuration": other,
            **_histogram(study.values.differences(metric, other, study.baseline)),
        }
        for metric in range(len(study.metrics))
        for other in others
    ]


def _histogram(differences: FloatArray) -> dict[str, Any]:
    defined = differences[~np.isnan(differences)]
    largest = float(np.abs(defined).max(initial=0.0)) or 1.0
    counts, _ = np.histogram(defined[defined != 0.0], bins=_BINS, range=(-largest, largest))
    return {
        "reach": largest,
        "counts": counts.tolist(),
        "mean": float(defined.mean()) if len(defined) else None,
        "wins": int((defined > 0).sum()),
        "ties": int((defined == 0).sum()),
        "losses": int((defined < 0).sum()),
    }


def as_json(document: Any) -> str:
    r"""JSON without characters that have a meaning in HTML, or end a line in JavaScript.

    >>> as_json("</script>\u2028")
    '"\\u003c/script\\u003e\\u2028"'
    """
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")).translate(_ESCAPES)


def _numbers(column: FloatArray) -> dict[str, Any]:
    """A column of exact numbers: the distinct ones, and each row's position among them; NaN for a missing value."""
    distinct, codes = np.unique(column, return_inverse=True)
    return {"values": _base64(distinct.astype("<f8")), **_positions(codes)}


def _words(column: list[str]) -> dict[str, Any]:
    """A column of words: the distinct ones, and each row's position among them."""
    distinct = list(dict.fromkeys(column))
    places = {value: position for position, value in enumerate(distinct)}
    return {"values": distinct, **_positions(np.array([places[value] for value in column], np.int64))}


def _positions(codes: Any) -> dict[str, Any]:
    """Positions in base64, each with one, two or four bytes."""
    largest = int(codes.max(initial=0))
    width = 1 if largest < 1 << 8 else 2 if largest < 1 << 16 else 4
    return {"codes": _base64(codes.astype(f"<u{width}")), "bytes": width}


def _base64(array: Any) -> str:
    return base64.b64encode(array.tobytes()).decode("ascii")
