"""The queries that two runs with different datasets share."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.pipelines.results.run import Results


@dataclass(frozen=True)
class SharedQueries:
    """Queries of two runs with different datasets, scored or not."""

    both: int  # number of queries with the same id in both runs
    only_run: int  # number of queries only in this run
    only_other: int  # number of queries only in the baseline's run
    reworded: int  # number of queries in both runs whose texts differ
    rejudged: str  # parts of the datasets that differ although all queries are the same; "" if queries differ

    @property
    def is_most(self) -> bool:
        """Return whether the baseline's run has at least half of this run's queries, with the same texts."""
        return self.both - self.reworded >= (self.both + self.only_run) / 2

    @property
    def sentence(self) -> str:
        over = f"the datasets differ: differences are over the {self.both:,} queries that both runs have"
        if self.rejudged:
            return f"{over}; their {self.rejudged} differ, so differences may not be due to the configurations"
        only = f"{self.only_run:,} only in this run, {self.only_other:,} only in the baseline's"
        return f"{over}; {only}" + (f"; {self.reworded:,} of both have another text" if self.reworded else "")


def shared_queries(run: Results, other: Results | None) -> SharedQueries | None:
    """Count the queries that two runs share; None without another run, or with the same dataset."""
    if other is None or run.run["dataset_fingerprint"] == other.run["dataset_fingerprint"]:
        return None
    ours, theirs = _queries(run), _queries(other)
    place = pc.index_in(ours["query_id"], theirs["query_id"])
    both = len(place) - place.null_count
    reworded = pc.sum(pc.not_equal(ours["text_first"], theirs["text_first"].take(place))).as_py() or 0
    return SharedQueries(both, len(ours) - both, len(theirs) - both, reworded, changed_parts(run, other))


def changed_parts(run: Results, other: Results) -> str:
    """The parts of two datasets that differ, by fingerprint, if their queries are the same; else ""."""
    (qrels, texts, *references), (others, same, *theirs) = (
        side.run["dataset_fingerprint"].split("-") for side in (run, other)
    )
    if texts != same:
        return ""
    parts = {"judgements": qrels != others, "reference answers": references != theirs}
    return " and ".join(name for name, differs in parts.items() if differs)


def _queries(run: Results) -> pa.Table:
    """The id and text of every query in a run, as query_id and text_first."""
    names = ["query_id", "text"]
    parts = [
        pa.table([batch[name] for name in names], names).group_by(names).aggregate([])
        for batch in run.batches("query_metrics", names)
    ]
    return pa.concat_tables(parts).group_by("query_id", use_threads=False).aggregate([("text", "first")])
