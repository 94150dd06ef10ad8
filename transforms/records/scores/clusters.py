"""Clusters of queries: their sums of the columns that the bootstrap sums, and the statistics of these."""

from collections.abc import Iterator

import pyarrow as pa

from rankbeam.transforms.kernels.arrays import HashArray
from rankbeam.transforms.kernels.hashing import hash_strings
from rankbeam.transforms.kernels.statistics.clusters import Clustered, ClusterMoments, ClusterTotals
from rankbeam.transforms.records.cluster_summary import cluster_hashes
from rankbeam.transforms.records.metrics.evaluation import Evaluation
from rankbeam.transforms.records.scores.resampled import SumLayout
from rankbeam.transforms.records.scores.scored import ScoredPartition

_PARTS = 64  # by cluster, that are merged apart


def drawn_hashes(queries: pa.RecordBatch, evaluation: Evaluation) -> HashArray:
    """uint64[n], the hash by which the bootstrap and the randomisation test draw: the cluster's, else the query's."""
    attribute = evaluation.statistics.cluster
    return hash_strings(queries["query_id"]) if attribute is None else cluster_hashes(queries, attribute)


def cluster_totals(
    partition: ScoredPartition, evaluation: Evaluation
) -> Iterator[tuple[tuple[str, int], ClusterTotals]]:
    """The sums by cluster of each slice of some scored queries, keyed by slice and part; none without clusters."""
    if evaluation.statistics.cluster is None:
        return
    layout = SumLayout.of(evaluation)
    parts = [
        [layout.part(number, panel) for number, panel in enumerate(item.panels)] for item in partition.configurations
    ]
    columns = layout.columns(parts)
    hashes = drawn_hashes(partition.queries, evaluation)
    for name, chosen in partition.slices.items():
        rows, own = layout.within(parts, columns, chosen)
        for part, totals in ClusterTotals.of(hashes[rows], own).shares(_PARTS):
            yield (name, part), totals


def cluster_moments(totals: ClusterTotals, evaluation: Evaluation) -> ClusterMoments:
    return ClusterMoments.of(totals, SumLayout.of(evaluation).weights)


def means_by_cluster(moments: ClusterMoments, evaluation: Evaluation, position: int, panel: int) -> list[Clustered]:
    return _results(moments, SumLayout.of(evaluation), position, panel)


def differences_by_cluster(
    moments: ClusterMoments, evaluation: Evaluation, pair: tuple[int, int], panel: int
) -> list[Clustered]:
    layout = SumLayout.of(evaluation)
    return _results(moments, layout, layout.group_of(pair), panel)


def _results(moments: ClusterMoments, layout: SumLayout, group: int, panel: int) -> list[Clustered]:
    return [moments.result(column, scale) for column, scale in layout.places(group, panel)]
