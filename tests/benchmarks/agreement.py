"""Comparison of a tool's values with ours, query by query, and explanation of known departures.

Known are: a tool leaves out judged queries that the run does not have (we count them as 0), it lists queries without
judgements (we leave them out), it treats ties as its `Ties` says. Whatever else differs is unexplained.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from peers.values import ALL, METRICS
from tools import RANKBEAM, Ties, Tool

NAMES = pa.array(METRICS)
SORTED_BY_BEIR = ("RR", "Success@10")
"""The means that BEIR computes from its own order; the others come from pytrec_eval."""


@dataclass
class Values:
    """Query ids, and float64[queries, 12]."""

    queries: pa.Array
    values: np.ndarray


@dataclass
class Agreement:
    """Result of comparing a tool's values with ours.

    Attributes:
        queries: number of queries in both.
        differing: in how many of them a metric differs by more than the tool's tolerance.
        largest: the largest difference of all.
        known: departures with a known reason, in words.
        unexplained: departures without one, in words.
    """

    queries: int
    differing: int
    largest: float
    known: list[str]
    unexplained: list[str]


def read_values(tool: Tool, result: Path) -> Values:
    """Read what a tool left."""
    readers: dict[str, Callable[[Path], Values]] = {RANKBEAM: _read_tables, "trec_eval": _read_trec_eval}
    return readers.get(tool.name, _read_peer)(result)


def _read_peer(result: Path) -> Values:
    """The common form."""
    text = pacsv.ConvertOptions(column_types={"query_id": pa.string(), **dict.fromkeys(METRICS, pa.float64())})
    table = pacsv.read_csv(result, parse_options=pacsv.ParseOptions(delimiter="\t"), convert_options=text)
    return Values(table["query_id"].combine_chunks(), np.column_stack([table[name].to_numpy() for name in METRICS]))


def _read_tables(result: Path) -> Values:
    """The table `query_metrics` that rankbeam writes."""
    table = pq.read_table(result / "query_metrics", columns=["query_id", "metrics"])
    metrics = table["metrics"].combine_chunks()
    column, values = pc.index_in(metrics.flatten().field("metric"), NAMES), metrics.flatten().field("value")
    return _placed(table["query_id"].combine_chunks(), pc.list_parent_indices(metrics), column, values)


def _read_trec_eval(result: Path) -> Values:
    """Lines of metric, query, value; those of all queries come last."""
    lines = pacsv.read_csv(
        result,
        pacsv.ReadOptions(column_names=["metric", "query_id", "value"]),
        pacsv.ParseOptions(delimiter="\t"),
        pacsv.ConvertOptions(column_types=dict.fromkeys(["metric", "query_id", "value"], pa.string())),
    )
    lines = lines.set_column(0, "metric", pc.utf8_trim_whitespace(lines["metric"]))
    selected = pc.is_in(lines["metric"], pa.array(METRICS.values()))
    lines = lines.filter(pc.and_(selected, pc.not_equal(lines["query_id"], ALL)))
    queries = lines["query_id"].combine_chunks().dictionary_encode()
    column = pc.index_in(lines["metric"].combine_chunks(), pa.array(METRICS.values()))
    return _placed(queries.dictionary, queries.indices, column, lines["value"].combine_chunks().cast(pa.float64()))


def _placed(queries: pa.Array, row: pa.Array, column: pa.Array, values: pa.Array) -> Values:
    """Values that come one by one, in their places; NaN for absent ones."""
    placed = np.full((len(queries), len(METRICS)), np.nan)
    placed[row.to_numpy(), column.to_numpy()] = values.to_numpy(zero_copy_only=False)
    return Values(queries, placed)


def compare(ours: Values, theirs: Values, tool: Tool, run: Path) -> Agreement:
    """Compare a tool's values with ours.

    Args:
        ours: rankbeam's values.
        theirs: the tool's.
        tool: the tool that computed them.
        run: the run as Parquet, to look for the reasons of differences.
    """
    if theirs.queries[:2].to_pylist() == [ALL]:
        return _compare_means(ours, theirs, tool, run)
    place = pc.index_in(theirs.queries, ours.queries)
    both = pc.is_valid(place).to_numpy(zero_copy_only=False)
    distance = np.abs(theirs.values[both] - ours.values[place.drop_null().to_numpy()])
    # Not ">": a value that is missing is NaN, and differs.
    differs = ~(distance <= tool.tolerance).all(axis=1)
    result = Agreement(int(both.sum()), int(differs.sum()), float(np.max(distance, initial=0.0)), [], [])
    _explain_differences(result, tool, run, theirs.queries.filter(pa.array(both)).filter(pa.array(differs)))
    _explain_absent(result, run, ours.queries.filter(pc.invert(pc.is_in(ours.queries, theirs.queries))))
    if extra := int((~both).sum()):
        result.known.append(f"{extra:,} without judgements listed")
    return result


def _compare_means(ours: Values, theirs: Values, tool: Tool, run: Path) -> Agreement:
    """Compare means, over all judged queries or over those that are in the run: BEIR uses both."""
    present = pc.is_in(ours.queries, _queries_of(run, ours.queries)).to_numpy(zero_copy_only=False)
    means = np.stack([ours.values.mean(axis=0), ours.values[present].mean(axis=0)])
    distance = np.abs(means - theirs.values).min(axis=0)
    result = Agreement(0, 0, float(distance.max()), ["means only"], [])
    tied = {ties: len(_tied(run, ours.queries, ties)) / len(ours.queries) for ties in Ties}
    _explain_means(result, distance, tool, tied)
    return result


def _explain_means(result: Agreement, distance: np.ndarray, tool: Tool, tied: dict[Ties, float]) -> None:
    """Divide means that differ into those that ties can move so far, each query by 1 at most, and others."""
    for own, ties in ((True, Ties.FILE_ORDER), (False, tool.ties)):
        off = {name: far for name, far in zip(METRICS, distance, strict=True) if (name in SORTED_BY_BEIR) == own}
        off = {name: far for name, far in off.items() if not far <= tool.tolerance}
        if off:
            words = f"{', '.join(off)} differ by up to {max(off.values()):.1e}: {ties}"
            known = max(off.values()) <= tool.tolerance + tied[ties]
            (result.known if known else result.unexplained).append(words)


def _explain_differences(result: Agreement, tool: Tool, run: Path, differing: pa.Array) -> None:
    """Divide differing queries into those that have ties the tool orders in its own way, and others."""
    if not len(differing):
        return
    tied = _tied(run, differing, tool.ties)
    if len(tied):
        result.known.append(f"{len(tied):,} differ: {tool.ties}")
    if len(others := differing.filter(pc.invert(pc.is_in(differing, tied)))):
        result.unexplained.append(f"{len(others):,} differ, such as {others[0]}")


def _explain_absent(result: Agreement, run: Path, absent: pa.Array) -> None:
    """Divide queries the tool leaves out into those that are not in the run, and others."""
    retrieved = len(_queries_of(run, absent)) if len(absent) else 0
    if unretrieved := len(absent) - retrieved:
        result.known.append(f"{unretrieved:,} not in the run left out")
    if retrieved:
        result.unexplained.append(f"{retrieved:,} left out though in the run")


def _queries_of(run: Path, queries: pa.Array) -> pa.Array:
    """Those of the queries that are in the run."""
    rows = ds.dataset(run).to_table(columns=["query_id"], filter=ds.field("query_id").isin(queries))
    return rows["query_id"].unique()


def _tied(run: Path, queries: pa.Array, ties: Ties) -> pa.Array:
    """Those of the queries that have ties of this kind."""
    if ties == Ties.SAME:
        return queries[:0]
    rows = ds.dataset(run).to_table(columns=["query_id", "score"], filter=ds.field("query_id").isin(queries))
    query, score = rows["query_id"].combine_chunks().dictionary_encode(), rows["score"].to_numpy()
    order = np.lexsort((score, query.indices.to_numpy()))
    group, score = query.indices.to_numpy()[order], score[order]
    same, near = np.diff(score) == 0, np.diff(score.astype(np.float32)) == 0
    tied = {Ties.FLOAT32: near & ~same, Ties.UNSTABLE: same, Ties.FILE_ORDER: near}[ties] & (np.diff(group) == 0)
    return query.dictionary.take(pa.array(np.unique(group[1:][tied])))
