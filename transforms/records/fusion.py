"""The plan of a fusion of rankings: which rankings are combined, and by which rule."""

from dataclasses import dataclass
from enum import StrEnum


class FusionMethod(StrEnum):
    """The way of combining several rankings into one."""

    RRF = "rrf"
    WEIGHTED = "weighted"


class Normalisation(StrEnum):
    """The normalization of scores, which makes rankings comparable."""

    MIN_MAX = "min_max"
    Z_SCORE = "z_score"
    SUM = "sum"
    NONE = "none"


@dataclass(frozen=True)
class FusionPart:
    """One of the rankings that are combined."""

    source: int
    top_k: int | None  # maximum results per query; None for all
    distance: float | None = None  # only results nearer than this; None for all
    weight: float = 1.0
    lower_is_better: bool = False


@dataclass(frozen=True)
class FusionPlan:
    """The recipe of a fused ranking."""

    parts: tuple[FusionPart, ...]  # the rankings that are combined, at least two
    method: FusionMethod = FusionMethod.RRF
    c: float = 60.0  # the constant of reciprocal rank fusion: a result at rank r (from 1) gets weight / (c + r)
    normalisation: Normalisation = Normalisation.MIN_MAX
