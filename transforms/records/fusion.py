"""What a fusion of rankings is: which ones, and by which rule they become one."""

from dataclasses import dataclass
from enum import StrEnum


class FusionMethod(StrEnum):
    """How several rankings become one."""

    RRF = "rrf"
    WEIGHTED = "weighted"


class Normalisation(StrEnum):
    """How the scores of one ranking become comparable with those of another."""

    MIN_MAX = "min_max"
    Z_SCORE = "z_score"
    SUM = "sum"
    NONE = "none"


@dataclass(frozen=True)
class FusionPart:
    """One of the rankings that are combined.

    Attributes:
        source: position of the source it is cut from.
        top_k: results looked at per query; None for all.
        distance: only results nearer than this; None for all.
        weight: what its votes or scores are multiplied with.
        lower_is_better: its scores are distances.
    """

    source: int
    top_k: int | None
    distance: float | None = None
    weight: float = 1.0
    lower_is_better: bool = False


@dataclass(frozen=True)
class FusionPlan:
    """How a ranking is made of others.

    Attributes:
        parts: those that are combined, at least two.
        method: the rule.
        c: the constant of reciprocal rank fusion: a result at rank r (from 1) gets weight / (c + r).
        normalisation: of scores, for weighted score fusion.
    """

    parts: tuple[FusionPart, ...]
    method: FusionMethod = FusionMethod.RRF
    c: float = 60.0
    normalisation: Normalisation = Normalisation.MIN_MAX
