"""Aggregates of scores, and of differences, over some queries of a run: values that merge, used by a CombineFn.

The state of all slices at once may be hundreds of megabytes: 40 configurations with 12 metrics are 8 MB per slice. So
slices are split before anything is shuffled, and each is merged on its own.
"""

from collections import Counter as Tally
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import product
from typing import Any, TypeVar

import numpy as np
import pyarrow.compute as pc

from rankbeam.transforms.kernels.arrays import BoolArray, FloatArray, HashArray, IntArray
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.kernels.hashing import hash_strings
from rankbeam.transforms.kernels.statistics.bootstrap import LIMIT, Replicates
from rankbeam.transforms.kernels.statistics.corrections import detectable_difference, effect_size
from rankbeam.transforms.kernels.statistics.estimates import DifferenceEstimate
from rankbeam.transforms.kernels.statistics.intervals import student_p_value
from rankbeam.transforms.kernels.statistics.moments import ClusterMoments, ClusterStatistics, Moments
from rankbeam.transforms.kernels.statistics.randomisation import Blocks
from rankbeam.transforms.records.metrics.evaluation import Evaluation, Statistics
from rankbeam.transforms.records.metrics.panels import Range
from rankbeam.transforms.records.scores.judged import LABELLED_IN_PART, NOTHING_TO_LABEL, UNDEFINED_BY_PEOPLE
from rankbeam.transforms.records.scores.labelled import LabelledMoments
from rankbeam.transforms.records.scores.means import Part, QueryAggregate, SumLayout, drawn_hashes, or_null
from rankbeam.transforms.records.scores.rows import Difference
from rankbeam.transforms.records.scores.scored import PartAndWhole, ScoredPanel, ScoredPartition
from rankbeam.transforms.records.slices import ALL, slice_values


@dataclass(frozen=True)
class PairedAggregate:
    """The differences of two configurations over the queries scored for both, for all metrics of a panel."""

    moments: Moments
    wins: tuple[int, ...]  # per metric, queries in which the difference is above 0
    losses: tuple[int, ...]  # per metric, queries in which it is below 0
    blocks: Blocks
    unpaired: int = 0

    @classmethod
    def of(cls, differences: FloatArray, hashes: HashArray, units: IntArray, unpaired: int = 0) -> "PairedAggregate":
        """The state of n queries, with differences float64[n, m], and these as whole numbers, int64[n, m]."""
        wins, losses = (differences > 0).sum(axis=0), (differences < 0).sum(axis=0)
        blocks = Blocks.of(hashes, units)
        return cls(Moments.of(differences), tuple(wins.tolist()), tuple(losses.tolist()), blocks, unpaired)

    def merge(self, other: "PairedAggregate") -> "PairedAggregate":
        return PairedAggregate(
            self.moments.merge(other.moments),
            tuple(a + b for a, b in zip(self.wins, other.wins, strict=True)),
            tuple(a + b for a, b in zip(self.losses, other.losses, strict=True)),
            self.blocks.merge(other.blocks),
            self.unpaired + other.unpaired,
        )

    def estimates(
        self, ranges: Sequence[Range], clusters: Sequence[ClusterStatistics] | None = None
    ) -> list[DifferenceEstimate]:
        """The estimate of every metric's mean difference; by clusters if there are any."""
        moments = self.moments
        columns = zip(
            moments.means(),
            moments.standard_errors(),
            moments.lowest,
            moments.highest,
            [None if highest is None else highest - lowest for lowest, highest in ranges],
            self.wins,
            self.losses,
            strict=True,
        )
        estimates = [
            DifferenceEstimate(moments.count, mean, error, low, high, width, wins + losses)
            for mean, error, low, high, width, wins, losses in columns
        ]
        if clusters is None:
            return estimates
        return [
            DifferenceEstimate(by.count, plain.mean, by.standard_error, by.lowest, by.highest, plain.width, by.events)
            for plain, by in zip(estimates, clusters, strict=True)
        ]

    def result(
        self,
        ranges: Sequence[Range],
        replicates: FloatArray,
        statistics: Statistics,
        clusters: Sequence[ClusterStatistics] | None = None,
    ) -> list[Difference]:
        """Difference, interval and tests of every metric.

        Args:
            ranges: per metric, the values that a query can have.
            replicates: float64[m, b], the bootstrap's differences; without any, intervals are Student's.
            statistics: confidence and seed.
            clusters: per metric, the statistics by cluster; None without clusters.
        """
        count = self.moments.count
        tested = self.blocks.test(statistics.seed)
        estimates, plain_errors = self.estimates(ranges, clusters), self.moments.standard_errors()
        rows = zip(
            estimates, plain_errors, self.wins, self.losses, tested.p_values, tested.methods, replicates, strict=True
        )
        differences = []
        for estimate, plain_error, wins, losses, p_value, method, means in rows:
            mean, error = estimate.mean, estimate.standard_error
            low, high = estimate.interval(means, statistics.confidence)
            differences.append(
                Difference(
                    difference=or_null(mean),
                    ci_low=or_null(low),
                    ci_high=or_null(high),
                    std_error=or_null(error),
                    p_value=or_null(float(p_value)),
                    t_p_value=or_null(student_p_value(mean, error, estimate.count)),
                    effect_size=or_null(effect_size(mean, plain_error, count)),
                    detectable=or_null(detectable_difference(error, estimate.count)),
                    queries=count,
                    unpaired=self.unpaired,
                    wins=wins,
                    ties=count - wins - losses,
                    losses=losses,
                    p_method=method,
                    clusters=None if clusters is None else estimate.count,
                )
            )
        return differences


UNMET = "--allow-disjoint takes this for good"
"""The end of a warning about paid results that share no document with the judgements."""

Key = TypeVar("Key", str, tuple[int, int, str], tuple[int, int, int, str])
State = TypeVar("State", QueryAggregate, PairedAggregate, Replicates, ClusterMoments, LabelledMoments)
LabelledKey = tuple[int, int, int, str]
"""Configuration, the configuration it is compared with (NO_OTHER for its own mean), panel and slice."""
NO_OTHER = -1


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """Facts about some queries of a run besides their scores."""

    unjudged: int = 0
    failures: int = 0
    with_results: frozenset[int] = frozenset()
    with_judged: frozenset[int] = frozenset()
    examples: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    unplaced: Mapping[int, PartAndWhole] = field(default_factory=dict)
    unranked: Mapping[int, int] = field(default_factory=dict)

    def facts_with(self, other: "RunFacts") -> dict[str, Any]:
        """The facts about both sets of queries; associative and commutative, with `RunFacts()` neutral."""
        return {
            "unjudged": self.unjudged + other.unjudged,
            "failures": self.failures + other.failures,
            "with_results": self.with_results | other.with_results,
            "with_judged": self.with_judged | other.with_judged,
            "examples": _first_of_both(self.examples, other.examples),
            "unplaced": _sums(self.unplaced, other.unplaced),
            "unranked": dict(Tally(self.unranked) + Tally(other.unranked)),
        }


@dataclass(frozen=True)
class RunAggregate(RunFacts):
    """The aggregate over some queries of a run: of all slices, or of one of them."""

    queries: Mapping[tuple[int, int, str], QueryAggregate] = field(default_factory=dict)
    pairs: Mapping[tuple[int, int, int, str], PairedAggregate] = field(default_factory=dict)
    replicates: Mapping[str, Replicates] = field(default_factory=dict)
    clusters: Mapping[str, ClusterMoments] = field(default_factory=dict)  # made from whole clusters, so not by `of`
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
            ours, theirs = (partition.configurations[config].panels[number] for config in (one, other))
            both, either, differences = known & also, known | also, ours.values - theirs.values
            if evaluation.panels[number].has_labels:
                both, differences = _labelled_pair(ours, theirs)
            for name in slices:
                chosen = partition.members(name, one, other)
                selected, unpaired = both & chosen, int((either & ~both & chosen).sum())
                state = PairedAggregate.of(differences[selected], drawn[selected], (units - others)[selected], unpaired)
                pairs[one, other, number, name] = state
        return cls(
            queries,
            pairs,
            _replicates(partition, evaluation, layout, parts, drawn) if evaluation.statistics.replicates else {},
            unjudged=partition.unjudged,
            failures=partition.failures,
            with_results=frozenset(scored.configuration for scored in partition.configurations if scored.has_results),
            with_judged=frozenset(scored.configuration for scored in partition.configurations if scored.has_judged),
            examples={scored.configuration: scored.examples for scored in partition.configurations if scored.examples},
            unplaced=partition.unplaced,
            unranked=partition.unranked,
            labelled=dict(_labelled_moments(partition, evaluation)),
        )

    def by_slice(self) -> Iterator[tuple[str, "RunAggregate"]]:
        """The state of each slice; that of all queries also has the facts. Merged, they are the state itself."""
        queries, pairs, labelled = _by_slice(self.queries), _by_slice(self.pairs), _by_slice(self.labelled)
        for name in queries:
            state = replace(
                self if name == ALL else RunAggregate(),
                queries=queries[name],
                pairs=pairs.get(name, {}),
                replicates={key: state for key, state in self.replicates.items() if key == name},
                clusters={key: state for key, state in self.clusters.items() if key == name},
                labelled=labelled.get(name, {}),
            )
            yield name, state

    def merge(self, other: "RunAggregate") -> "RunAggregate":
        """The state of both sets of queries; associative and commutative, with `RunAggregate()` neutral."""
        return RunAggregate(
            _merge_all(self.queries, other.queries),
            _merge_all(self.pairs, other.pairs),
            _merge_all(self.replicates, other.replicates),
            _merge_all(self.clusters, other.clusters),
            _merge_all(self.labelled, other.labelled),
            **self.facts_with(other),
        )


_COLUMN_BYTES = 16 << 20  # of the bootstrap's columns at once, unless LIMIT queries have more


def _replicates(
    partition: ScoredPartition,
    evaluation: Evaluation,
    layout: SumLayout,
    parts: Sequence[Sequence[Part]],
    drawn: HashArray,
) -> dict[str, Replicates]:
    """The bootstrap's state of every slice. All pairs have many columns, so queries are summed some at a time."""
    statistics = evaluation.statistics
    step = max(LIMIT, _COLUMN_BYTES // (8 * len(layout.weights)))

    def states_of(queries: slice) -> dict[str, Replicates]:
        some_parts = [[(units[queries], known[queries]) for units, known in config] for config in parts]
        columns, states = layout.columns(some_parts), {}
        for name, chosen in partition.slices.items():
            rows, slice_columns = layout.within(some_parts, columns, chosen[..., queries])
            states[name] = Replicates.of(drawn[queries][rows], slice_columns, statistics.replicates, statistics.seed)
        return states

    return reduce(_merge_all, (states_of(slice(start, start + step)) for start in range(0, max(1, len(drawn)), step)))


def _labelled_moments(
    partition: ScoredPartition, evaluation: Evaluation
) -> Iterator[tuple[LabelledKey, LabelledMoments]]:
    """The state of labels and judged values: of each configuration, and of the differences of each pair."""
    numbers = [number for number, panel in enumerate(evaluation.panels) if panel.has_labels]
    strata = _strata(partition, evaluation) if numbers else None
    singles = [(place, NO_OTHER) for place in range(len(partition.configurations))]
    for (one, other), number in product([*singles, *evaluation.pairs] if numbers else [], numbers):
        labels, judged, in_part, certain = _human_and_judged(partition.configurations[one].panels[number])
        if other != NO_OTHER:
            theirs = _human_and_judged(partition.configurations[other].panels[number])
            labels, judged = labels - theirs[0], judged - theirs[1]
            in_part, certain = in_part | theirs[2], certain & theirs[3]
        for name in partition.slices:
            chosen = partition.members(name, one, one if other == NO_OTHER else other)
            yield (one, other, number, name), LabelledMoments.of(labels, judged, in_part, certain, chosen, strata)


def _labelled_pair(ours: ScoredPanel, theirs: ScoredPanel) -> tuple[BoolArray, FloatArray]:
    """Queries labelled for either configuration and with a human value for both; and all differences, float64[n, 1]."""
    (labels, _, _, certain), (others, _, _, also) = map(_human_and_judged, (ours, theirs))
    differences = labels - others
    return ~np.isnan(differences) & ~(certain & also), differences[:, None]


def _strata(partition: ScoredPartition, evaluation: Evaluation) -> dict[str, BoolArray] | None:
    """The queries of each stratum from which queries to label were drawn; None without strata."""
    if evaluation.strata is None:
        return None
    values = np.array(slice_values(partition.queries, evaluation.strata), object)
    return {str(value): values == value for value in dict.fromkeys(values.tolist())}


def _human_and_judged(panel: ScoredPanel) -> tuple[FloatArray, FloatArray, BoolArray, BoolArray]:
    """Human values, which are the judge's if there is nothing to label; judged values; and masks of two reasons."""
    assert panel.judged is not None  # noqa: S101  the panel of a metric with labels has judged values
    assert panel.reasons is not None  # noqa: S101  and reasons
    in_part, undefined, certain = (
        np.asarray(pc.fill_null(pc.equal(panel.reasons, reason), fill_value=False))
        for reason in (LABELLED_IN_PART, UNDEFINED_BY_PEOPLE, NOTHING_TO_LABEL)
    )
    labels = np.where(panel.scored, panel.values[:, 0], np.where(certain, panel.judged, np.nan))
    return labels, panel.judged, in_part | undefined, certain


def _by_slice(states: Mapping[Key, State]) -> dict[str, dict[Key, State]]:
    """The states of each slice, which is the last part of a key."""
    named = grouped((key[-1], (key, state)) for key, state in states.items())
    return {name: dict(items) for name, items in named.items()}


def _merge_all(one: Mapping[Key, State], other: Mapping[Key, State]) -> dict[Key, State]:
    return {**one, **{key: one[key].merge(state) if key in one else state for key, state in other.items()}}


def _sums(one: Mapping[int, PartAndWhole], other: Mapping[int, PartAndWhole]) -> dict[int, PartAndWhole]:
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
