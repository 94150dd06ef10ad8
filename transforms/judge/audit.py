"""The audit of a judge that fills holes: its grades of documents that people judged, too, as a row of `agreement`."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rankbeam.transforms.judge.agreement import PEOPLE
from rankbeam.transforms.kernels.arrays import IntArray
from rankbeam.transforms.kernels.statistics import raters
from rankbeam.transforms.records import holes, tables
from rankbeam.transforms.records.answer_tables import AGREEMENT

STEP = "qrels_holes"
"""The name of the row: grades on the scale of people, not the judge's 0 to 3 of the step `grade`."""
_QUADRATIC = 2


def audit_table(parts: Sequence[pa.RecordBatch], judge: str, confidence: float = 0.95) -> pa.Table:
    """One row of `answer_tables.AGREEMENT`, without the common columns, from all batches of `holes.AUDITED`."""
    return pa.Table.from_pylist([audit_row(parts, judge, confidence)], tables.own_columns(AGREEMENT))


def audit_row(parts: Sequence[pa.RecordBatch], judge: str, confidence: float = 0.95) -> dict[str, Any]:
    """The row: `unmatched` are documents that the judge alone graded."""
    table = pa.Table.from_batches(parts, holes.AUDITED).combine_chunks()
    both = table.filter(table["human"].is_valid())
    first = np.round(both["human"].to_numpy()).astype(np.int64)
    second = both["judge"].to_numpy()
    queries = np.unique(np.array(both["query_id"].to_pylist(), object), return_inverse=True)[1].astype(np.int64)
    size = max(1, int(first.max(initial=0)), int(second.max(initial=0))) + 1
    counts = raters.confusion(first, second, size)
    drawn = raters.resampled_confusions(first, second, queries, size)
    formulas: dict[str, Callable[[IntArray], float | None]] = {
        "agreement": raters.observed_agreement,
        "kappa": lambda matrix: raters.cohen(matrix, _QUADRATIC),
        "ac": lambda matrix: raters.gwet_of(matrix, _QUADRATIC),
        "bias": _bias,
    }
    row: dict[str, Any] = {
        "step": STEP,
        "first": PEOPLE,
        "second": judge,
        "items": len(first),
        "queries": len(np.unique(queries)),
        "unmatched": table.num_rows - len(first),
        "weights": "quadratic",
        "confusion": [
            {"first": str(one), "second": str(other), "items": int(count)}
            for (one, other), count in np.ndenumerate(counts)
            if count
        ],
    }
    tails = (50.0 * (1.0 - confidence), 50.0 * (1.0 + confidence))
    for name, formula in formulas.items() if len(first) else ():
        known = [value for matrix in drawn if (value := formula(matrix)) is not None]
        low, high = np.percentile(known, tails).tolist() if known else (None, None)
        row |= {name: formula(counts), f"{name}_low": low, f"{name}_high": high}
    return row


def _bias(matrix: IntArray) -> float | None:
    """Mean grade of the judge minus that of people."""
    grades, total = np.arange(len(matrix)), int(matrix.sum())
    return float((matrix * (grades[None, :] - grades[:, None])).sum()) / total if total else None
