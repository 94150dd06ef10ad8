"""What a pipeline is asked to do, as plain values: the stages read these and never the command line."""

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

import numpy as np

from rankbeam.transforms.kernels.arrays import BoolArray, HashArray
from rankbeam.transforms.records.fusion import FusionPlan
from rankbeam.transforms.records.generation import Generation
from rankbeam.transforms.records.metrics.dialects import RANKBEAM, Dialect
from rankbeam.transforms.records.metrics.names import Metric
from rankbeam.transforms.records.race import Race
from rankbeam.transforms.records.scores.panels import AnyMetric, Panel, panels_of
from rankbeam.transforms.records.slices import attributes_of

_MOST_NAMED = 4


@dataclass(frozen=True)
class Source:
    """Where rankings come from: a run to read, a retriever to ask, or others to combine, for all that is cut from it.

    Attributes:
        path: the run that is read; None where a retriever is asked.
        top_k: results per query that the configurations need at most; None for all.
        refuse_repeats: a document given twice for one query is an error, not two chunks of it.
        keep_rankings: its rankings are written, not only their scores.
        distance: results nearer than this are all that the configurations need; None for all.
        lower_is_better: its scores are distances, for tools that order answers by score.
        pool: the quota pool that pays for asking it; None where that costs nothing.
        fusion: of which other sources it is made; None where it is read or asked.
        replayed: its rankings are the contexts of answers that exist already, and may not be known.
    """

    path: str | None
    top_k: int | None
    refuse_repeats: bool
    keep_rankings: bool = True
    distance: float | None = None
    lower_is_better: bool = False
    pool: str | None = None
    fusion: FusionPlan | None = None
    replayed: bool = False


@dataclass(frozen=True)
class Configuration:
    """One system under test.

    Attributes:
        config_id: hash of its canonical parameters.
        name: for people.
        source: position of the source that its rankings are cut from.
        retriever: the retriever's type.
        parameters: canonical parameters, JSON.
        top_k: results looked at per query; None for all.
        derived_from: config_id of the configuration that is really asked, where this one is a prefix of it.
        dialect: the tool by whose rules the rankings are scored.
        distance: only results nearer than this are looked at; None for all.
        generation: how a model answers from its rankings; None where none does.
        judged: names of the judged metrics that it has values of.
        dropped_at: how many queries it was asked until a race dropped it; None where it is asked all of them.
        last: the highest place of these queries, in the order of `race.order_of`.
    """

    config_id: str
    name: str
    source: int
    retriever: str
    parameters: str
    top_k: int | None
    derived_from: str | None
    dialect: Dialect = RANKBEAM
    distance: float | None = None
    generation: Generation | None = None
    judged: frozenset[str] = frozenset()
    dropped_at: int | None = None
    last: int | None = None

    def asked(self, order: HashArray) -> BoolArray:
        """Which queries it is asked.

        Args:
            order: uint64[n], their places.
        """
        is_asked: BoolArray = np.ones(len(order), bool) if self.last is None else order <= np.uint64(self.last)
        return is_asked


@dataclass(frozen=True)
class Statistics:
    """How intervals and comparisons are made.

    Attributes:
        replicates: of the bootstrap; with 0, intervals of differences are Student's, and there are no joint ones.
        confidence: of intervals.
        seed: of the bootstrap's weights and the randomisation test's signs.
        all_pairs: configurations are also compared with each other, not only with the baseline.
        min_slice: slices of fewer queries have means, but no interval and no comparison.
    """

    replicates: int = 1000
    confidence: float = 0.95
    seed: int = 0
    all_pairs: bool = False
    min_slice: int = 10


@dataclass(frozen=True)
class Evaluation:
    """Everything that the stages after reading need to know.

    Attributes:
        configurations: in the experiment's order.
        metrics: in the experiment's order.
        sources: where their rankings come from.
        slices: names of query attributes, or crossings of them.
        baseline: position of the configuration that the others are compared with.
        ties: also find how far each value depends on the order of documents with equal scores.
        statistics: how intervals and comparisons are made.
        allow_disjoint: rankings and corpora may share no query, or no document, with the judgements.
        notes: on names of metrics that other tools define differently.
        spans: evidence spans are the judgements, and rankings are of chunks.
        race: when configurations are dropped; None for never.
    """

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
    race: Race | None = None

    @property
    def raced(self) -> tuple[int, int]:
        """Positions of the panel that the metric of the race belongs to, and of the metric in it."""
        name = None if self.race is None else self.race.metric
        panels = [[str(each) for each in panel.metrics] for panel in self.panels]
        return next((i, names.index(name)) for i, names in enumerate(panels) if name in names)

    def with_dropped(self, positions: Collection[int], queries: int, last: int) -> "Evaluation":
        """The evaluation after a look of a race.

        Args:
            positions: of the configurations that are dropped.
            queries: how many were asked.
            last: the highest place of these.
        """
        configurations = tuple(
            replace(each, dropped_at=queries, last=last) if position in positions else each
            for position, each in enumerate(self.configurations)
        )
        return replace(self, configurations=configurations)

    def last_of(self, source: int) -> int | None:
        """The highest place of a query that some configuration needs a source for; None where one needs all."""
        lasts = [self.configurations[i].last for i in self.users(source)]
        return None if None in lasts else max((last for last in lasts if last is not None), default=None)

    def users(self, source: int) -> tuple[int, ...]:
        """Positions of the configurations whose rankings are cut from a source, or fused from it."""
        known = enumerate(self.configurations)
        return tuple(i for i, each in known if each.source == source or self._uses(i, source))

    @property
    def panels(self) -> tuple[Panel, ...]:
        """The groups of metrics that share a status: that of rankings first, then one for each judged metric."""
        return panels_of(self.metrics)

    @property
    def retrieval(self) -> tuple[Metric, ...]:
        """The metrics of rankings, in the experiment's order."""
        return tuple(metric for metric in self.metrics if isinstance(metric, Metric))

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Positions of the configurations that are compared, each with the one that is its baseline."""
        others = [i for i in range(len(self.configurations)) if i != self.baseline]
        pairs = [(i, self.baseline) for i in others]
        if self.statistics.all_pairs:
            pairs += [(others[b], others[a]) for b in range(len(others)) for a in range(b)]
        return tuple(pairs)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes of queries that the slices are by, each once."""
        return tuple(dict.fromkeys(name for each in self.slices for name in attributes_of(each)))

    def cut_short(self) -> dict[Metric, tuple[int, ...]]:
        """The metrics that look at more documents than `top_k` leaves, with the positions of these configurations."""
        short = {
            metric: tuple(i for i, each in enumerate(self.configurations) if metric.exceeds(each.top_k))
            for metric in self.retrieval
        }
        return {metric: positions for metric, positions in short.items() if positions}

    def warnings(self) -> Iterator[str]:
        """What users should know before anything is asked."""
        yield from self.notes
        metrics: dict[tuple[int, ...], list[str]] = {}
        for metric, positions in self.cut_short().items():
            metrics.setdefault(positions, []).append(str(metric))
        for positions, names in metrics.items():
            some = [f"{self.configurations[i].name} ({self.configurations[i].top_k})" for i in positions[:_MOST_NAMED]]
            more = f" and {len(positions) - _MOST_NAMED:,} more" if len(positions) > _MOST_NAMED else ""
            verb = "looks" if len(names) == 1 else "look"
            yield f"{', '.join(names)} {verb} at more documents than top_k leaves of {', '.join(some)}{more}"

    @property
    def highest_grade(self) -> tuple[float, str]:
        """The highest grade that every metric can be computed with, and the metric that sets it."""
        computed = {each.dialect.metric(metric) for each in self.configurations for metric in self.retrieval}
        return min(((metric.highest_grade, str(metric)) for metric in computed), default=(math.inf, ""))

    def primary(self, source: int) -> int | None:
        """Position of the configuration that a source is asked for; its others are cut from that one.

        None for a source that is only part of a fusion.
        """
        of_source = (i for i, each in enumerate(self.configurations) if each.source == source)
        return next((i for i in of_source if self.configurations[i].derived_from is None), None)

    def owner(self, source: int) -> int:
        """Position of the configuration that a source is asked for, or else of the first that is fused from it."""
        primary = self.primary(source)
        return next(i for i in range(len(self.configurations)) if self._uses(i, source)) if primary is None else primary

    def with_threshold(self, source: int) -> int:
        """Position of the configuration that has the widest of the distance thresholds of a source."""
        distances = {i: each.distance for i, each in enumerate(self.configurations) if each.source == source}
        return max(distances, key=lambda i: distances[i] or 0.0)

    def parts(self, position: int) -> tuple[int, ...]:
        """Positions of the configurations that are asked for what one is fused of; none where it is no fusion."""
        return tuple(dict.fromkeys(self.owner(source) for source in self._fused(position)))

    def _uses(self, position: int, source: int) -> bool:
        return source in self._fused(position)

    def _fused(self, position: int) -> tuple[int, ...]:
        """The sources that a configuration is fused of."""
        fusion = self.sources[self.configurations[position].source].fusion
        return () if fusion is None else tuple(part.source for part in fusion.parts)
