"""The queries of one bucket, scored for every configuration: where the stages after scoring begin."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rankbeam.transforms.kernels.arrays import BoolArray, FloatArray


class Status(IntEnum):
    """What became of a query; MISSING ones are not in the run, and the dialect leaves such out of the mean."""

    OK = 0
    EMPTY = 1
    FAILED = 2
    MISSING = 3


@dataclass(frozen=True)
class ScoredConfiguration:
    """The scores of n queries under one configuration.

    Attributes:
        configuration: its position in the experiment.
        status: int8[n], a `Status` each.
        values: float64[n, m], one column a metric; NaN where there is none.
        documents: per query a list of `tables.DOCUMENT`; None where rankings are not kept.
        tie_bounds: float64[2, n, m], the lowest and the highest value over all orders of tied documents; None where
            nobody asked, or nothing is known.
        has_results: something was retrieved.
        has_judged: something that was retrieved is judged.
        examples: the first id, in order, of what was retrieved and of what is judged; None where one of them has both.
    """

    configuration: int
    status: npt.NDArray[np.int8]
    values: FloatArray
    documents: pa.ListArray | None
    tie_bounds: FloatArray | None = None
    has_results: bool = False
    has_judged: bool = False
    examples: tuple[str, str] | None = None

    @property
    def scored(self) -> BoolArray:
        """bool[n]: the query has values."""
        scored: BoolArray = (self.status != Status.FAILED) & (self.status != Status.MISSING)
        return scored


@dataclass(frozen=True)
class ScoredPartition:
    """Scored queries.

    Attributes:
        queries: query_id, text and attributes of n queries.
        slices: per slice, which of the queries belong to it: bool[n].
        configurations: one each, in the experiment's order.
        unjudged: how many rankings were of queries without judgements, and so were not scored.
        failures: how many calls failed.
    """

    queries: pa.RecordBatch
    slices: dict[str, BoolArray]
    configurations: tuple[ScoredConfiguration, ...]
    unjudged: int = 0
    failures: int = 0
