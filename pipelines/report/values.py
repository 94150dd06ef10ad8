"""Every query's values as arrays, read column by column, so that a million rows do not become lists."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.kernels import hashing
from rankbeam.transforms.kernels.arrays import FloatArray, IntArray
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.scores.scored import LABELS, Status
from rankbeam.transforms.records.slices import ranked_by

_OF_QUERIES = ["text", "slices"]
_ROWS_AT_ONCE = 1 << 13


@dataclass(frozen=True)
class QueryValues:
    """The values of n queries under c configurations."""

    ids: pa.Array  # n query ids, in order
    values: FloatArray  # float64[m, c, n]; NaN for a missing value
    status: npt.NDArray[np.int8]  # int8[c, n], the `Status` of each ranking
    judged: Mapping[int, npt.NDArray[np.int8]]  # the same for each judged metric, by the metric's position
    rows: pa.Table  # one table row for each query, with its text and its slices
    sign: float  # -1 if lower values of the first metric are better, else 1

    def __len__(self) -> int:
        return len(self.ids)

    def taken(self, chosen: IntArray) -> "QueryValues":
        places = pa.array(chosen)
        judged = {metric: status[:, chosen] for metric, status in self.judged.items()}
        values, status = self.values[:, :, chosen], self.status[:, chosen]
        return QueryValues(self.ids.take(places), values, status, judged, self.rows.take(places), self.sign)

    def differences(self, metric: int, one: int, other: int) -> FloatArray:
        """float64[n]: the values of one configuration minus those of another."""
        differences: FloatArray = self.values[metric, one] - self.values[metric, other]
        return differences

    def extremes(self, one: int, other: int, worst: int, best: int) -> IntArray:
        """The queries on which one configuration loses and wins most against another, by the first metric."""
        differences = self.sign * self.differences(0, one, other)
        order = np.argsort(differences, kind="stable")[: np.count_nonzero(~np.isnan(differences))]
        chosen = np.concatenate([order[:worst], order[max(worst, len(order) - best) :]])
        differing: IntArray = chosen[differences[chosen] != 0.0]
        return differing

    def worst(self, configuration: int, most: int) -> IntArray:
        """The queries with the worst values of the first metric, in the order of their ids."""
        queries: IntArray = np.sort(np.argsort(self.sign * self.values[0, configuration], kind="stable")[:most])
        return queries


def read_values(results: Results) -> QueryValues:
    """Read `query_metrics` in batches: a row takes twenty times as much memory as its values."""
    configurations = pa.array([row["config_id"] for row in results.configurations])
    metrics = pa.array(results.metrics)
    ids = _ids(results)
    values = np.full((len(metrics), len(configurations), len(ids)), np.nan)
    status = np.full((len(configurations), len(ids)), Status.MISSING, np.int8)
    judged = {metric: status.copy() for metric, name in enumerate(results.metrics) if results.is_judged(name)}
    find, is_known = _finder(ids), np.zeros(len(ids), bool)
    places, rows = [np.empty(0, np.int64)], list[pa.Table]()
    columns = ["config_id", "query_id", "status", "metrics", *_OF_QUERIES]
    for batch in results.batches("query_metrics", columns, _ROWS_AT_ONCE):
        queries = find(batch["query_id"])
        owners = _positions(batch["config_id"], configurations)
        status[owners, queries] = _positions(batch["status"], pa.array(LABELS))
        row = pc.list_parent_indices(batch["metrics"]).to_numpy(zero_copy_only=False)
        items = batch["metrics"].flatten()
        metric = _positions(items.field("metric"), metrics)
        values[metric, owners[row], queries[row]] = items.field("value").to_numpy(zero_copy_only=False)
        if judged:
            all_statuses = _positions(items.field("status"), pa.array(LABELS), absent=Status.MISSING)
            for place, statuses in judged.items():
                is_metric = metric == place
                statuses[owners[row[is_metric]], queries[row[is_metric]]] = all_statuses[is_metric]
        new, first = np.unique(queries, return_index=True)
        first = first[~is_known[new]]
        is_known[queries] = True
        places.append(queries[first])
        rows.append(pa.Table.from_batches([batch.select(_OF_QUERIES).take(pa.array(first))]))
    order = pa.array(np.argsort(np.concatenate(places)))
    query_rows = pa.concat_tables(rows or [tables.QUERY_METRICS.empty_table().select(_OF_QUERIES)])
    return QueryValues(ids, values, status, judged, query_rows.take(order), results.sign_of(results.metrics[0]))


def _ids(results: Results) -> pa.Array:
    """The ids of all queries, sorted."""
    batches = (pc.unique(batch["query_id"]) for batch in results.batches("query_metrics", ["query_id"]))
    ids = pc.unique(pa.chunked_array(batches, pa.string()))
    return ids.take(pc.sort_indices(ids))


def _finder(ids: pa.Array) -> Callable[[pa.Array], IntArray]:
    """Return a function from ids to positions. It sorts hashes once, while Arrow would index all ids for each batch."""
    hashes = hashing.hash_strings(ids)
    order = np.argsort(hashes)
    ordered = hashes[order]
    if (ordered[1:] == ordered[:-1]).any():
        return lambda column: _positions(column, ids)
    return lambda column: order[np.searchsorted(ordered, hashing.hash_strings(column))]


def slices_of(rows: pa.Table) -> dict[str, list[str]]:
    """Every query's value of every attribute that the run is sliced by."""
    names: dict[str, list[str]] = {}
    for position, slices in enumerate(rows["slices"].to_pylist()):
        for item in slices:
            if ranked_by(item["name"]):
                continue  # each configuration has its own values
            names.setdefault(item["name"], [""] * rows.num_rows)[position] = item["value"]
    return names


def chosen_queries(values: QueryValues, configurations: Sequence[int], baseline: int, most: int) -> IntArray:
    """The queries on a page: all of them, or those that differ most from the baseline, in the order of their ids.

    If none differs, the queries with the worst values are chosen.
    """
    if len(values) <= most:
        return np.arange(len(values))
    share = max(1, most // (2 * max(1, len(configurations))))
    queries = [values.extremes(name, baseline, min(share, 500), min(share, 500)) for name in configurations]
    chosen: IntArray = np.unique(np.concatenate([np.empty(0, np.int64), *queries]))[:most]
    return chosen if len(chosen) else values.worst(baseline, most)


def _positions(column: pa.Array | pa.ChunkedArray, names: pa.Array, absent: int = -1) -> IntArray:
    places: IntArray = np.asarray(pc.fill_null(pc.index_in(column, value_set=names), absent)).astype(np.int64)
    return places
