"""The audit of a judge that fills holes: its grades of documents that people judged, too, as a row of `agreement`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rankbeam.transforms.judge.agreement import PEOPLE
from rankbeam.transforms.kernels.arrays import BoolArray, FloatArray, IntArray
from rankbeam.transforms.kernels.statistics import raters
from rankbeam.transforms.kernels.statistics.agreement import wilson_interval
from rankbeam.transforms.records import holes, tables
from rankbeam.transforms.records.answer_tables import AGREEMENT
from rankbeam.transforms.records.labels import text_hash

STEP = "qrels_holes"
"""The name of the row: grades on the scale of people, not the judge's 0 to 3 of the step `grade`."""
_QUADRATIC = 2


def audit_table(
    parts: Sequence[pa.RecordBatch], judge: str, confidence: float = 0.95, most: int = holes.MOST_AUDITED
) -> pa.Table:
    """One row of `answer_tables.AGREEMENT`, without the common columns, from all batches of `holes.AUDITED`."""
    return pa.Table.from_pylist([audit_row(parts, judge, confidence, most)], tables.own_columns(AGREEMENT))


def audit_row(
    parts: Sequence[pa.RecordBatch], judge: str, confidence: float = 0.95, most: int = holes.MOST_AUDITED
) -> dict[str, Any]:
    """The row: `unmatched` are documents that the judge alone graded.

    At most `most` documents are compared, about equally many of each grade of the judge, in the order of a hash. Shares
    and coefficients weigh them, so that they are estimates of those of all documents that both graded.
    """
    table = pa.Table.from_batches(parts, holes.AUDITED).combine_chunks()
    graded = table.filter(table["human"].is_valid())
    drawn, weight = stratified_sample(graded["judge"].to_numpy(), _order(graded), most)
    both, weight = graded.filter(pa.array(drawn)), weight[drawn]
    first = np.round(both["human"].to_numpy()).astype(np.int64)
    second = both["judge"].to_numpy()
    queries = np.unique(np.array(both["query_id"].to_pylist(), object), return_inverse=True)[1].astype(np.int64)
    size = max(1, int(first.max(initial=0)), int(second.max(initial=0))) + 1
    counts = raters.confusion(first, second, size)
    weighted = np.zeros((size, size))
    np.add.at(weighted, (first, second), weight)
    replicates = raters.resampled_confusions(first, second, queries, size, weight=weight)
    formulas: dict[str, Callable[[raters.Counts], float | None]] = {
        "agreement": raters.observed_agreement,
        "kappa": lambda matrix: raters.cohen(matrix, _QUADRATIC),
        "ac": lambda matrix: raters.gwet_of(matrix, _QUADRATIC),
        "bias": _bias,
        "overrating": _overrating,
    }
    row: dict[str, Any] = {
        "step": STEP,
        "first": PEOPLE,
        "second": judge,
        "items": len(first),
        "queries": len(np.unique(queries)),
        "unmatched": table.num_rows - graded.num_rows,
        "weights": "quadratic",
        "sampled_from": graded.num_rows,
        "confusion": [
            {"first": str(one), "second": str(other), "items": int(count)}
            for (one, other), count in np.ndenumerate(counts)
            if count
        ],
    }
    tails = (50.0 * (1.0 - confidence), 50.0 * (1.0 + confidence))
    for name, formula in formulas.items() if len(first) else ():
        known = [value for matrix in replicates if (value := formula(matrix)) is not None]
        low, high = np.percentile(known, tails).tolist() if known else (None, None)
        row |= {name: formula(weighted), f"{name}_low": low, f"{name}_high": high}
    if row.get("overrating") is not None:
        row |= _widened(row, weight[first == 0], confidence)
    return row


def _widened(row: Mapping[str, Any], weight: FloatArray, confidence: float) -> dict[str, float]:
    """The interval of the overrating: Wilson's, for the effective number of documents, or the wider bootstrap.

    Where all decisions are equal, the bootstrap has no width. Documents of equal weights are Wilson's alone.
    """
    effective = float(weight.sum() ** 2 / (weight**2).sum())
    low, high = wilson_interval(row["overrating"] * effective, effective, confidence)
    if np.ptp(weight) and row["overrating_low"] is not None:
        low, high = min(low, row["overrating_low"]), max(high, row["overrating_high"])
    return {"overrating_low": low, "overrating_high": high}


def stratified_sample(stratum: IntArray, order: IntArray, most: int) -> tuple[BoolArray, FloatArray]:
    """Draw about equally many items of each stratum, with weights so that they represent all items.

    Args:
        stratum: int64[n].
        order: int64[n], random ranks; the lowest of each stratum are drawn.
        most: number of items to draw in all. What a small stratum lacks, larger ones have more.

    Returns:
        bool[n], the drawn items; float64[n], their weights: items of the stratum by drawn ones, 0 for the others.

    >>> drawn, weight = stratified_sample(np.array([0, 0, 0, 1]), np.array([2, 0, 1, 3]), 3)
    >>> drawn.tolist(), weight.tolist()
    ([False, True, True, True], [0.0, 1.5, 1.5, 1.0])
    """
    drawn, weight = np.zeros(len(stratum), bool), np.zeros(len(stratum))
    values, sizes = np.unique(stratum, return_counts=True)
    left = most
    for done, place in enumerate(np.argsort(sizes, kind="stable")):
        count = min(int(sizes[place]), left // (len(values) - done))
        left -= count
        own = np.flatnonzero(stratum == values[place])
        chosen = own[np.argsort(order[own], kind="stable")[:count]]
        drawn[chosen] = True
        weight[chosen] = sizes[place] / max(1, count)
    return drawn, weight


def _order(graded: pa.Table) -> IntArray:
    """Random ranks of pairs of query and document, which depend on these alone."""
    pairs = zip(graded["query_id"].to_pylist(), graded["doc_id"].to_pylist(), strict=True)
    digests = np.array([text_hash("\0".join(pair)) for pair in pairs], str)
    return np.argsort(np.argsort(digests, kind="stable"), kind="stable").astype(np.int64)


def _overrating(matrix: raters.Counts) -> float | None:
    """The share of the documents without relevance, by people, to which the judge gives more."""
    total = float(matrix[0].sum())
    return float(matrix[0, 1:].sum()) / total if total else None


def _bias(matrix: raters.Counts) -> float | None:
    """Mean grade of the judge minus that of people."""
    grades, total = np.arange(len(matrix)), float(matrix.sum())
    return float((matrix * (grades[None, :] - grades[:, None])).sum()) / total if total else None
