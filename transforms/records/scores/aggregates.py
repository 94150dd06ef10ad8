"""The aggregate over some queries of a run: a value that merges, which a CombineFn forwards to.

The state of all slices at once may be hundreds of megabytes: 40 configurations with 12 metrics are 8 MB a slice. So
slices are split before anything is shuffled, and each is merged on its own.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TypeVar

import numpy as np
import pyarrow.compute as pc

from rankbeam.transforms.kernels.arrays import BoolArray, FloatArray
from rankbeam.transforms.kernels.hashing import hash_strings
from rankbeam.transforms.kernels.statistics.bootstrap import Replicates
from rankbeam.transforms.kernels.statistics.clusters import ClusterMoments
from rankbeam.transforms.records.metrics.evaluation import Evaluation
from rankbeam.transforms.records.scores.clusters import drawn_hashes
from rankbeam.transforms.records.scores.differences import PairedAggregate
from rankbeam.transforms.records.scores.judged import LABELLED_IN_PART
from rankbeam.transforms.records.scores.labelled import LabelledMoments
from rankbeam.transforms.records.scores.means import QueryAggregate
from rankbeam.transforms.records.scores.resampled import SumLayout
from rankbeam.transforms.records.scores.scored import Counts, ScoredPanel, ScoredPartition
from rankbeam.transforms.records.slices import ALL, slice_values

UNMET = "--allow-disjoint takes this for good"
"""The end of a warning about paid results that share no document with the judgements."""

Key = TypeVar("Key", str, tuple[int, int, str], tuple[int, int, int, str])
State = TypeVar("State", QueryAggregate, PairedAggregate, Replicates, ClusterMoments, LabelledMoments)
LabelledKey = tuple[int, int, int, str]
"""Configuration, the one it is compared with (NO_OTHER for its own mean), panel and slice."""
NO_OTHER = -1


@dataclass(frozen=True)
class RunAggregate:
    """The aggregate over some queries of a run: of all slices, or of one of them."""

    queries: Mapping[tuple[int, int, str], QueryAggregate] = field(default_factory=dict)
    pairs: Mapping[tuple[int, int, int, str], PairedAggregate] = field(default_factory=dict)
    replicates: Mapping[str, Replicates] = field(default_factory=dict)
    unjudged: int = 0
    failures: int = 0
    with_results: frozenset[int] = frozenset()
    with_judged: frozenset[int] = frozenset()
    examples: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    unplaced: Mapping[int, Counts] = field(default_factory=dict)
    clusters: Mapping[str, ClusterMoments] = field(default_factory=dict)  # from whole clusters, so not from `of`
    labelled: Mapping[LabelledKey, LabelledMoments] = field(default_factory=dict)

    @classmethod
    def of(cls, partition: ScoredPartition, evaluation: Evaluation) -> "RunAggregate":
        layout, slices = SumLayout.of(evaluation), partition.slices
        hashes = hash_strings(partition.queries["query_id"])
        drawn = drawn_hashes(partition.queries, evaluation)
        parts = [
            [layout.part(number, panel) for number, panel in enumerate(scored.panels)]
            for scored in partition.configurations
        ]
        compared = hashes if len(partition.configurations) > 1 else None
        queries = {
            (scored.configuration, number, name): QueryAggregate.of(
                panel, partition.members(name, scored.configuration), compared
            )
            for scored in partition.configurations
            for number, panel in enumerate(scored.panels)
            for name in slices
        }
        pairs = {}
        for (one, other), number in product(evaluation.pairs, range(len(layout.panels))):
            (units, known), (others, also) = parts[one][number], parts[other][number]
            ours, theirs = (partition.configurations[config].panels[number].values for config in (one, other))
            both, either, differences = known & also, known | also, ours - theirs
            for name in slices:
                chosen = partition.members(name, one, other)
                here, unpaired = both & chosen, int((either & ~both & chosen).sum())
                state = PairedAggregate.of(differences[here], drawn[here], (units - others)[here], unpaired)
                pairs[one, other, number, name] = state
        replicates = {}
        if resampled := evaluation.statistics.replicates:
            columns, seed = layout.columns(parts), evaluation.statistics.seed
            for name, chosen in slices.items():
                rows, own = layout.within(parts, columns, chosen)
                replicates[name] = Replicates.of(drawn[rows], own, resampled, seed)
        return cls(
            queries,
            pairs,
            replicates,
            partition.unjudged,
            partition.failures,
            frozenset(
                configuration.configuration for configuration in partition.configurations if configuration.has_results
            ),
            frozenset(
                configuration.configuration for configuration in partition.configurations if configuration.has_judged
            ),
            {
                configuration.configuration: configuration.examples
                for configuration in partition.configurations
                if configuration.examples is not None
            },
            partition.unplaced,
            labelled=dict(_labelled(partition, evaluation)),
        )

    def by_slice(self) -> Iterator[tuple[str, "RunAggregate"]]:
        """The state of each slice, by its name; that of all queries also counts queries outside slices.

        Merged again they are the state itself.
        """
        for name in dict.fromkeys(name for *_, name in self.queries):
            rest = self if name == ALL else RunAggregate()
            yield (
                name,
                replace(
                    rest,
                    queries={key: state for key, state in self.queries.items() if key[-1] == name},
                    pairs={key: state for key, state in self.pairs.items() if key[-1] == name},
                    replicates={key: state for key, state in self.replicates.items() if key == name},
                    clusters={key: state for key, state in self.clusters.items() if key == name},
                    labelled={key: state for key, state in self.labelled.items() if key[-1] == name},
                ),
            )

    def merge(self, other: "RunAggregate") -> "RunAggregate":
        """The state of both sets of queries; associative and commutative, with `RunAggregate()` neutral."""
        return RunAggregate(
            _merge_all(self.queries, other.queries),
            _merge_all(self.pairs, other.pairs),
            _merge_all(self.replicates, other.replicates),
            self.unjudged + other.unjudged,
            self.failures + other.failures,
            self.with_results | other.with_results,
            self.with_judged | other.with_judged,
            _first_of_both(self.examples, other.examples),
            _sums(self.unplaced, other.unplaced),
            _merge_all(self.clusters, other.clusters),
            _merge_all(self.labelled, other.labelled),
        )


def _labelled(partition: ScoredPartition, evaluation: Evaluation) -> Iterator[tuple[LabelledKey, LabelledMoments]]:
    """The state of labels and judged values: of each configuration, and of the differences of each pair."""
    numbers = [number for number, panel in enumerate(evaluation.panels) if panel.has_labels]
    strata = _strata(partition, evaluation) if numbers else None
    own = [(place, NO_OTHER) for place in range(len(partition.configurations))]
    for (one, other), number in product([*own, *evaluation.pairs] if numbers else [], numbers):
        labels, judged, in_part = _human_and_judged(partition.configurations[one].panels[number])
        if other != NO_OTHER:
            their_labels, their_judged, also = _human_and_judged(partition.configurations[other].panels[number])
            labels, judged, in_part = labels - their_labels, judged - their_judged, in_part | also
        for name in partition.slices:
            chosen = partition.members(name, one, one if other == NO_OTHER else other)
            yield (one, other, number, name), LabelledMoments.of(labels, judged, in_part, chosen, strata)


def _strata(partition: ScoredPartition, evaluation: Evaluation) -> dict[str, BoolArray] | None:
    """The queries of each stratum from which queries to label were drawn; None without strata."""
    if evaluation.strata is None:
        return None
    values = np.array(slice_values(partition.queries, evaluation.strata), object)
    return {str(value): values == value for value in dict.fromkeys(values.tolist())}


def _human_and_judged(panel: ScoredPanel) -> tuple[FloatArray, FloatArray, BoolArray]:
    assert panel.judged is not None  # noqa: S101  the panel of a metric with labels has judged values
    assert panel.reasons is not None  # noqa: S101  and reasons
    in_part = np.asarray(pc.fill_null(pc.equal(panel.reasons, LABELLED_IN_PART), fill_value=False))
    return np.where(panel.scored, panel.values[:, 0], np.nan), panel.judged, in_part


def _merge_all(one: Mapping[Key, State], other: Mapping[Key, State]) -> dict[Key, State]:
    merged = dict(one)
    for key, state in other.items():
        merged[key] = merged[key].merge(state) if key in merged else state
    return merged


def _sums(one: Mapping[int, Counts], other: Mapping[int, Counts]) -> dict[int, Counts]:
    merged = dict(one)
    for source, (part, whole) in other.items():
        known = merged.get(source, (0, 0))
        merged[source] = known[0] + part, known[1] + whole
    return merged


def _first_of_both(
    one: Mapping[int, tuple[str, str]], other: Mapping[int, tuple[str, str]]
) -> dict[int, tuple[str, str]]:
    merged = dict(one)
    for position, (retrieved, judged) in other.items():
        known = merged.get(position, (retrieved, judged))
        merged[position] = min(known[0], retrieved), min(known[1], judged)
    return merged
