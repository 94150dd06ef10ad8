"""The queries of one bucket, scored for every configuration: the input of the stages after scoring."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rankbeam.transforms.kernels.arrays import BoolArray, FloatArray
from rankbeam.transforms.records.metrics.names import split_name
from rankbeam.transforms.records.metrics.panels import Panel
from rankbeam.transforms.records.slices import ranked_by, slices_by_rank

PartAndWhole: TypeAlias = tuple[int, int]  # the sizes of a part and of the whole


class Status(IntEnum):
    """The status of a query in one panel.

    OK and EMPTY (nothing was retrieved: the value is 0) have values. The others have none: FAILED because a call
    failed, MISSING because the query is not in the run, has no judgements, or has an answer whose ranking is not known,
    UNDEFINED because the metric has no value, such as the share of supported claims of an answer that makes no claim,
    NOT_ASKED because a race had dropped the configuration before.
    """

    OK = 0
    EMPTY = 1
    FAILED = 2
    MISSING = 3
    UNDEFINED = 4
    NOT_ASKED = 5

    @property
    def label(self) -> str:
        return self.name.lower()


LABELS = tuple(status.label for status in Status)  # the label of each status, by its number


@dataclass(frozen=True)
class ScoredPanel:
    """The values of n queries by the metrics of one panel."""

    status: npt.NDArray[np.int8]
    values: FloatArray  # float64[n, m], one column per metric; NaN for a query without a value
    # float64[2, n, m], the lowest and the highest value over all orders of tied documents; None if they were not
    # computed, or are not known.
    tie_bounds: FloatArray | None = None
    reasons: pa.StringArray | None = None
    # float64[2, n, m], the lowest and the highest value by assumptions about unjudged documents; NaN for metrics
    # without such bounds. None if no bounds were computed.
    unjudged_bounds: FloatArray | None = None
    # float64[n], the judge's values if `values` are human ones, NaN if missing. None for other metrics.
    judged: FloatArray | None = None

    @property
    def scored(self) -> BoolArray:
        """bool[n]: the query has values."""
        scored: BoolArray = self.status <= Status.EMPTY
        return scored


@dataclass(frozen=True)
class ScoredConfiguration:
    """The scores of n queries under one configuration."""

    configuration: int
    panels: tuple[ScoredPanel, ...]
    documents: pa.ListArray | None = None  # per query a list of `tables.DOCUMENT`; None if rankings are not stored
    has_results: bool = False
    has_judged: bool = False
    examples: tuple[str, str] | None = None

    @property
    def retrieval(self) -> ScoredPanel:
        """The panel of rankings, whose status is also the query's."""
        return self.panels[0]


@dataclass(frozen=True)
class ScoredPartition:
    """Scored queries."""

    queries: pa.RecordBatch
    # Per slice, which of the queries belong to it: bool[n], or bool[k, n] for the rank under each of k configurations.
    slices: dict[str, BoolArray]
    configurations: tuple[ScoredConfiguration, ...]  # one each, in the experiment's order
    unjudged: int = 0  # number of rankings of queries without judgements, which are not scored
    failures: int = 0  # number of failed calls
    # By source, the number of its results without a known position in their document, and of all; only if evidence
    # spans are the judgements.
    unplaced: Mapping[int, PartAndWhole] = field(default_factory=dict)
    unranked: Mapping[int, int] = field(default_factory=dict)  # by source, its answers whose ranking is not known
    audited: pa.RecordBatch | None = None

    def members(self, name: str, *positions: int) -> BoolArray:
        """bool[n]: the queries of a slice; of a slice by rank, those that belong to it under all configurations."""
        chosen = self.slices[name]
        shared: BoolArray = chosen if chosen.ndim == 1 else np.logical_and.reduce(chosen[list(positions)])
        return shared


def ranking_metric(name: str, metrics: Sequence[str]) -> str | None:
    """The metric of slices by rank: the one with the name and cutoff, whatever its options; None without one.

    >>> ranking_metric("rank(ContextRR)", ["RR", "ContextRR(judge=lexical)"])
    'ContextRR(judge=lexical)'
    """
    sought = split_name(ranked_by(name) or name)
    return next((text for text in metrics if _name_and_cutoff(text) == (sought.name, sought.cutoff)), None)


def _name_and_cutoff(text: str) -> tuple[str, int | None]:
    written = split_name(text)
    return written.name, written.cutoff


def rank_slices(
    configurations: Sequence[ScoredConfiguration], panels: Sequence[Panel], names: Sequence[str]
) -> Iterator[tuple[str, BoolArray]]:
    """The slices by rank among the names, each with bool[k, n]: its queries under each configuration."""
    for name in filter(ranked_by, names):
        values = [values_of(scored, panels, name) for scored in configurations]
        yield from slices_by_rank(name, np.array(values).reshape(len(configurations), -1))


def values_of(scored: ScoredConfiguration, panels: Sequence[Panel], name: str) -> FloatArray:
    """float64[n]: the reciprocal ranks of slices by rank; NaN for queries without a value."""
    metric = ranking_metric(name, [str(metric) for panel in panels for metric in panel.metrics])
    for panel, scores in zip(panels, scored.panels, strict=True):
        for column, candidate in enumerate(map(str, panel.metrics)):
            if candidate == metric:
                values: FloatArray = np.where(scores.scored, scores.values[:, column], np.nan)
                return values
    return np.full(len(scored.retrieval.status), np.nan)
