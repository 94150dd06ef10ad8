"""The queries that two runs share, where their datasets differ: a dataset that grew is compared over what both have."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.pipelines.results.run import Results


@dataclass(frozen=True)
class Shared:
    """Queries of two runs, scored or not."""

    both: int
    only_run: int
    only_other: int

    @property
    def sentence(self) -> str:
        """The counts in words."""
        only = f"{self.only_run:,} only in this run, {self.only_other:,} only in the baseline's"
        return f"the datasets differ: differences are over the {self.both:,} queries that both runs have; {only}"


def shared_queries(run: Results, other: Results | None) -> Shared | None:
    """Count the queries that two runs share; None where the other is the same run, or of the same dataset."""
    if other is None or run.run["dataset_fingerprint"] == other.run["dataset_fingerprint"]:
        return None
    ours, theirs = _query_ids(run), _query_ids(other)
    both = pc.sum(pc.is_in(ours, theirs)).as_py() or 0
    return Shared(both, len(ours) - both, len(theirs) - both)


def _query_ids(run: Results) -> pa.Array:
    parts = [pc.unique(batch["query_id"]) for batch in run.batches("query_metrics", ["query_id"])]
    return pa.chunked_array(parts, pa.string()).unique()
