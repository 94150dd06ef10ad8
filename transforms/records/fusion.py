"""The plan of a fusion of rankings: which rankings are combined, and by which rule."""

from dataclasses import dataclass
from enum import StrEnum


class FusionMethod(StrEnum):
    """How several rankings are combined into one."""

    RRF = "rrf"
    WEIGHTED = "weighted"


class Normalisation(StrEnum):
    """How scores are made comparable between rankings."""

    MIN_MAX = "min_max"
    Z_SCORE = "z_score"
    SUM = "sum"
    NONE = "none"


@dataclass(frozen=True)
class FusionPart:
    """One of the rankings that are combined.

    Attributes:
        source: position of the source that the ranking comes from.
        top_k: only so many results per query; None for all.
        distance: only results nearer than this; None for all.
        weight: factor of its votes or scores.
        lower_is_better: whether its scores are distances.
    """

    source: int
    top_k: int | None
    distance: float | None = None
    weight: float = 1.0
    lower_is_better: bool = False


@dataclass(frozen=True)
class FusionPlan:
    """How a ranking is made from others.

    Attributes:
        parts: the rankings that are combined, at least two.
        method: the rule.
        c: the constant of reciprocal rank fusion: a result at rank r (from 1) gets weight / (c + r).
        normalisation: of scores, for weighted score fusion.
    """

    parts: tuple[FusionPart, ...]
    method: FusionMethod = FusionMethod.RRF
    c: float = 60.0
    normalisation: Normalisation = Normalisation.MIN_MAX
