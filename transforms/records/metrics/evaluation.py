"""The settings of a pipeline as plain values: the stages read these and never the command line."""

import json
import math
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, replace

import numpy as np

from rankbeam.transforms.kernels.arrays import BoolArray, HashArray
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.records.holes import Holes
from rankbeam.transforms.records.metrics.dialects import RANKBEAM, Dialect
from rankbeam.transforms.records.metrics.names import Metric
from rankbeam.transforms.records.metrics.panels import AnyMetric, Panel, panels_of
from rankbeam.transforms.records.race import Race
from rankbeam.transforms.records.slices import attributes_of
from rankbeam.transforms.records.stages import FusionPlan, Generation, RerankPlan, RewrittenQuery, added_pairs

_MOST_NAMED = 4


@dataclass(frozen=True)
class Source:
    """Source of rankings: a run to read, a retriever to call, or other sources to combine or rerank."""

    path: str | None  # the run to read; None if a retriever is called
    top_k: int | None  # most results per query that the configurations need; None for all
    refuse_repeats: bool
    keep_rankings: bool = True
    distance: float | None = None  # the configurations need only results nearer than this; None for all
    lower_is_better: bool = False
    pool: str | None = None  # the quota pool that pays for its calls; None if they cost nothing
    fusion: FusionPlan | None = None
    replayed: bool = False
    rerank: RerankPlan | None = None
    rewrite: RewrittenQuery | None = None  # None if it receives the queries themselves

    @property
    def origins(self) -> tuple[int, ...]:
        """The other sources from which its rankings are made directly."""
        fused = () if self.fusion is None else tuple(part.source for part in self.fusion.parts)
        return fused if self.rerank is None else (*fused, self.rerank.source)


@dataclass(frozen=True)
class Configuration:
    """One system under test."""

    config_id: str
    name: str
    source: int
    retriever: str
    parameters: str
    top_k: int | None  # results looked at per query; None for all
    derived_from: str | None
    dialect: Dialect = RANKBEAM
    distance: float | None = None  # only results nearer than this are looked at; None for all
    generation: Generation | None = None
    judged: frozenset[str] = frozenset()
    dropped_at: int | None = None
    last: int | None = None

    def query_mask(self, order: HashArray) -> BoolArray:
        """bool[n]: the queries that it receives; `order` is uint64[n], from `order_of`."""
        is_asked: BoolArray = np.ones(len(order), bool) if self.last is None else order <= np.uint64(self.last)
        return is_asked


_PAIRS_AT_ONCE = 1_000


@dataclass(frozen=True)
class Statistics:
    """The settings of intervals and comparisons."""

    replicates: int = 1000
    confidence: float = 0.95
    seed: int = 0
    all_pairs: bool = False
    min_slice: int = 10
    cluster: str | None = None  # queries with one value of this attribute are not independent; None if all are

    def as_json(self) -> str:
        """The settings, for the `runs` table; without clusters, as releases that lacked them wrote it."""
        values = {name: value for name, value in asdict(self).items() if value is not None}
        return json.dumps(values, sort_keys=True)


@dataclass(frozen=True)
class Evaluation:
    """Everything that the stages after reading need to know."""

    configurations: tuple[Configuration, ...]
    metrics: tuple[AnyMetric, ...]
    sources: tuple[Source, ...]
    slices: tuple[str, ...] = ()
    baseline: int = 0
    ties: bool = False
    statistics: Statistics = Statistics()
    allow_disjoint: bool = False
    notes: tuple[str, ...] = ()
    spans: bool = False
    race: Race | None = None  # rules for dropping configurations; None for never
    holes: Holes | None = None  # rules for filling holes in the judgements; None to leave them
    strata: str | None = None  # attribute by which queries to label were drawn; None for none
    own_pairs: tuple[tuple[int, int], ...] = ()  # the pairs to compare; by default those of its statistics

    @property
    def raced(self) -> tuple[int, int]:
        """Positions of the panel of the race's metric, and of the metric in the panel."""
        name = None if self.race is None else self.race.metric
        panels = [[str(metric) for metric in panel.metrics] for panel in self.panels]
        return next((i, names.index(name)) for i, names in enumerate(panels) if name in names)

    def with_dropped(self, positions: Collection[int], queries: int, last: int) -> "Evaluation":
        configurations = tuple(
            replace(configuration, dropped_at=queries, last=last) if position in positions else configuration
            for position, configuration in enumerate(self.configurations)
        )
        return replace(self, configurations=configurations)

    def last_of(self, *sources: int) -> int | None:
        """The highest `order_of` of the queries for which sources are needed; None if a configuration needs all."""
        lasts = [self.configurations[i].last for source in sources for i in self.users(source)]
        return None if None in lasts else max((last for last in lasts if last is not None), default=None)

    def users(self, source: int) -> tuple[int, ...]:
        """Positions of the configurations whose rankings are cut from a source, or made from it."""
        return tuple(i for i in range(len(self.configurations)) if self._uses(i, source))

    @property
    def panels(self) -> tuple[Panel, ...]:
        """The groups of metrics that share a status: rankings first, then one for each judged metric."""
        return panels_of(self.metrics)

    @property
    def retrieval(self) -> tuple[Metric, ...]:
        """The metrics of rankings, in the experiment's order."""
        return tuple(metric for metric in self.metrics if isinstance(metric, Metric))

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Positions of compared configurations, each with its baseline: for a stage, the one that lacks only it."""
        if self.own_pairs:
            return self.own_pairs
        others = [i for i in range(len(self.configurations)) if i != self.baseline]
        pairs = [(i, self.baseline) for i in others]
        if self.statistics.all_pairs:
            pairs += [(others[b], others[a]) for b in range(len(others)) for a in range(b)]
        stage_pairs = added_pairs(tuple(configuration.parameters for configuration in self.configurations))
        return tuple(dict.fromkeys([*pairs, *stage_pairs])) if stage_pairs else tuple(pairs)

    def pieces(self) -> list["Evaluation"]:
        """The evaluation with some of its pairs at a time: the sums of a pair's differences take tens of kilobytes."""
        if len(self.pairs) <= _PAIRS_AT_ONCE:
            return [self]
        starts = range(0, len(self.pairs), _PAIRS_AT_ONCE)
        return [replace(self, own_pairs=self.pairs[start : start + _PAIRS_AT_ONCE]) for start in starts]

    def lower_is_better(self, metric: AnyMetric) -> bool:
        """Return whether lower values of one of its metrics are better; of stored runs, the run itself says so."""
        return metric.lower_is_better

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes of queries that define slices, clusters and strata, each once."""
        slice_attributes = (name for slice_ in self.slices for name in attributes_of(slice_))
        others = (name for name in (self.statistics.cluster, self.strata) if name is not None)
        return tuple(dict.fromkeys([*slice_attributes, *others]))

    @property
    def subtopics(self) -> bool:
        """True if a metric needs the subtopics of judgements."""
        return any(metric.definition.subtopics for metric in self.retrieval)

    def cut_short(self) -> dict[Metric, tuple[int, ...]]:
        """The metrics that look at more documents than `top_k` leaves, with the configurations' positions."""
        short = {
            metric: tuple(
                i for i, configuration in enumerate(self.configurations) if metric.exceeds(configuration.top_k)
            )
            for metric in self.retrieval
        }
        return {metric: positions for metric, positions in short.items() if positions}

    def warnings(self) -> Iterator[str]:
        """Warnings for users before any call is made."""
        yield from self.notes
        metrics = grouped((positions, str(metric)) for metric, positions in self.cut_short().items())
        for positions, names in metrics.items():
            shown = [f"{self.configurations[i].name} ({self.configurations[i].top_k})" for i in positions[:_MOST_NAMED]]
            more = f" and {len(positions) - _MOST_NAMED:,} more" if len(positions) > _MOST_NAMED else ""
            verb = "looks" if len(names) == 1 else "look"
            yield f"{', '.join(names)} {verb} at more documents than top_k leaves of {', '.join(shown)}{more}"

    @property
    def highest_grade(self) -> tuple[float, str]:
        """The highest grade with which every metric can be computed, and the metric that sets this limit."""
        computed = {
            configuration.dialect.metric(metric) for configuration in self.configurations for metric in self.retrieval
        }
        return min(((metric.highest_grade, str(metric)) for metric in computed), default=(math.inf, ""))

    @property
    def max_rel(self) -> tuple[float, str]:
        """The lowest grade as which some metric counts higher grades, and that metric."""
        return min(((metric.max_rel, str(metric)) for metric in self.retrieval), default=(math.inf, ""))

    def primary(self, source: int) -> int | None:
        """Position of the configuration for which a source is called; None if it is only part of others."""
        users = (i for i, configuration in enumerate(self.configurations) if configuration.source == source)
        return next((i for i in users if self.configurations[i].derived_from is None), None)

    def owner(self, source: int) -> int:
        """Position of the configuration for which a source is called, or else of the first that is made from it."""
        primary = self.primary(source)
        return next(i for i in range(len(self.configurations)) if self._uses(i, source)) if primary is None else primary

    def callers(self, source: int) -> tuple[int, ...]:
        """Positions of the configurations that have the failed calls of a source.

        That is the one for which the source is called, or else each that is made from it and from no other of these.
        """
        primary = self.primary(source)
        if primary is not None:
            return (primary,)
        users = [i for i in self.users(source) if self.configurations[i].derived_from is None]
        return tuple(i for i in users if not any(part in users for part in self.parts(i)))

    def with_threshold(self, source: int) -> int:
        """Position of the configuration with the widest threshold of a source."""
        distances = {
            i: configuration.distance
            for i, configuration in enumerate(self.configurations)
            if configuration.source == source and configuration.distance is not None
        }
        return max(distances, key=lambda i: distances[i], default=self.owner(source))

    def parts(self, position: int) -> tuple[int, ...]:
        """Positions of the configurations whose rankings are fused or reranked into this one's."""
        source = self.configurations[position].source
        primaries = (self.primary(origin) for origin in sorted(self.origins(source) - {source}))
        return tuple(primary for primary in primaries if primary is not None)

    def origins(self, source: int) -> frozenset[int]:
        """All sources from which the rankings of a source are made, itself included."""
        return frozenset({source}).union(*(self.origins(origin) for origin in self.sources[source].origins))

    def _uses(self, position: int, source: int) -> bool:
        return source in self.origins(self.configurations[position].source)
