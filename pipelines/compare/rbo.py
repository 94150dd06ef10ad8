"""Compare the rankings of run files with each other, without judgements."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.pipelines.show.tabular import WHOLE, Screen, Table, interval
from rankbeam.transforms.clients.formats import rows, sources
from rankbeam.transforms.kernels.arrays import FloatArray, IntArray
from rankbeam.transforms.kernels.ranking.orders import order_by_score
from rankbeam.transforms.kernels.ranking.rankings import RankedRows
from rankbeam.transforms.kernels.ranking.similarity import rank_biased_overlap
from rankbeam.transforms.kernels.statistics.intervals import student_interval
from rankbeam.transforms.records.errors import InputError, json_text

_MOST_SHOWN = 5


@dataclass(frozen=True)
class RunOverlap:
    """Rank-biased overlap of two runs."""

    run: str  # path; the baseline's is a path, too
    baseline: str
    queries: pa.Array  # ids of the queries in both runs, lowest overlap first
    overlap: FloatArray  # of each of these queries
    only_run: int  # number of queries in this run only, which are left out
    only_baseline: int

    @property
    def values(self) -> dict[str, float]:
        """Overlap by query, lowest first."""
        return dict(zip(self.queries.to_pylist(), self.overlap.tolist(), strict=True))

    @property
    def mean(self) -> float:
        return float(np.mean(self.overlap))

    @property
    def interval(self) -> tuple[float | None, float | None]:
        """Student's 95% interval of the mean, limited to 0 to 1; None, None for one query."""
        count = len(self.queries)
        if count < 2:
            return None, None
        error = float(np.std(self.overlap, ddof=1)) / count**0.5
        low, high = student_interval(self.mean, error, count)
        return max(0.0, low), min(1.0, high)


@dataclass(frozen=True)
class Overlaps:
    """Rank-biased overlap of some runs with the first one."""

    p: float
    runs: Sequence[RunOverlap] = field(default_factory=tuple)
    part_warnings: Sequence[str] = ()

    @property
    def warnings(self) -> list[str]:
        return list(self.part_warnings) + [
            f"left out queries that one run lacks: {overlap.only_run:,} of {overlap.run}, "
            f"{overlap.only_baseline:,} of {overlap.baseline}"
            for overlap in self.runs
            if overlap.only_run or overlap.only_baseline
        ]

    def as_text(self, screen: Screen = WHOLE) -> str:
        """A table with a row for each run, then the queries that differ most."""
        means = [
            [overlap.run, f"{overlap.mean:.4f}", interval(*overlap.interval, ".4f"), f"{len(overlap.queries):,}"]
            for overlap in self.runs
        ]
        title = f"RBO(p={self.p:g}) with {self.runs[0].baseline}"
        parts = [screen.table(Table(["run", title, "95% interval", "queries"], means))]
        for overlap in self.runs:
            first = zip(overlap.queries[:_MOST_SHOWN].to_pylist(), overlap.overlap[:_MOST_SHOWN], strict=True)
            lowest = [[query, f"{value:.4f}"] for query, value in first]
            parts.append(screen.table(Table([f"{overlap.run}: queries that differ most", "RBO"], lowest)))
        return "\n\n".join(parts)

    def as_json(self) -> str:
        return json_text(
            [
                {
                    "run": overlap.run,
                    "baseline": overlap.baseline,
                    "p": self.p,
                    "mean": overlap.mean,
                    "interval": overlap.interval,
                    "queries": len(overlap.queries),
                    "only_run": overlap.only_run,
                    "only_baseline": overlap.only_baseline,
                    "values": overlap.values,
                }
                for overlap in self.runs
            ]
        )


@dataclass(frozen=True)
class _Run:
    """The ranked documents of a run."""

    queries: pa.Array  # ids, sorted
    query: IntArray  # int64[m], position of each document's query
    doc_id: pa.Array  # Arrow strings [m]
    rank: IntArray  # int64[m]

    @classmethod
    def read(cls, path: str) -> "_Run":
        batches = [batch for name in sources.expand(path) for batch in rows.read_run(name)]
        table = pa.Table.from_batches(batches).combine_chunks()
        names = pc.unique(table["query_id"])
        queries = names.take(pc.sort_indices(names))
        query = pc.index_in(table["query_id"], value_set=queries).to_numpy().astype(np.int64)
        doc_id = table["doc_id"].combine_chunks()
        doc_id = doc_id.chunk(0) if isinstance(doc_id, pa.ChunkedArray) else doc_id
        order = order_by_score(query, table["score"].to_numpy(), doc_id)
        ranked = RankedRows.of(order, query, doc_id, len(queries)).deduplicated(len(queries))
        return cls(queries, ranked.query, doc_id.take(pa.array(ranked.row)), ranked.rank)

    def upto(self, depth: int | None) -> "_Run":
        within = np.flatnonzero(self.rank <= (depth or self.rank.max(initial=0)))
        return _Run(self.queries, self.query[within], self.doc_id.take(pa.array(within)), self.rank[within])

    def of(self, queries: pa.Array) -> tuple[pa.Table, IntArray]:
        """The documents of some queries, by the query's position in `queries`, and the length of each ranking."""
        position = pc.index_in(self.queries.take(pa.array(self.query)), value_set=queries)
        table = pa.table({"query": position, "doc_id": self.doc_id, "rank": self.rank}).filter(position.is_valid())
        return table, np.bincount(table["query"].to_numpy(), minlength=len(queries))


def overlaps_of(paths: Sequence[str], p: float, depth: int | None) -> Overlaps:
    """Rank-biased overlap of runs with the first one; a document that occurs twice has its better rank."""
    names = [PurePosixPath(path).name for path in paths]
    labels = names if len(set(names)) == len(names) else list(paths)
    runs = (_Run.read(path).upto(depth) for path in paths)
    baseline = next(runs)
    overlaps = [_overlap(run, baseline, label, labels[0], p) for label, run in zip(labels[1:], runs, strict=True)]
    return Overlaps(p, overlaps, [*sources.part_warnings(file for path in paths for file in sources.expand(path))])


def _overlap(run: _Run, baseline: _Run, name: str, baseline_name: str, p: float) -> RunOverlap:
    common = run.queries.filter(pc.is_in(run.queries, value_set=baseline.queries))
    if not len(common):
        here, there = run.queries[0].as_py(), baseline.queries[0].as_py()
        raise InputError(f"shares no query with {baseline_name}: {here!r} here, {there!r} there", path=name)
    values = _values(run, baseline, common, p)
    order = np.argsort(values, kind="stable")
    return RunOverlap(
        name,
        baseline_name,
        common.take(pa.array(order)),
        values[order],
        len(run.queries) - len(common),
        len(baseline.queries) - len(common),
    )


def _values(run: _Run, baseline: _Run, queries: pa.Array, p: float) -> FloatArray:
    (first, lengths), (second, other_lengths) = run.of(queries), baseline.of(queries)
    shared = first.join(second, ["query", "doc_id"], join_type="inner", right_suffix="_there")
    query, rank, rank_there = (shared[column].to_numpy().astype(np.int64) for column in ("query", "rank", "rank_there"))
    return rank_biased_overlap(query, rank, rank_there, lengths, other_lengths, p)
