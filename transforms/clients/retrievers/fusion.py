"""The `fusion` retriever: combines the rankings of other configurations, and makes no calls of its own."""

import math
from dataclasses import replace
from typing import Annotated, ClassVar

from pydantic import Field, field_validator, model_validator

from rankbeam.transforms.clients.retrievers.base import RetrieverParameters, Route
from rankbeam.transforms.records.stages import FusionMethod, FusionPart, FusionPlan, Normalisation

Weight = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]


class Fusion(RetrieverParameters):
    """Reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009) or a weighted sum of normalised scores.

    Attributes:
        parts: names of the configurations whose scored rankings are combined.
        weights: weight of each part; 1 by default.
        method: formula to sum over the parts. "rrf" sums weight / (c + rank), "weighted" sums weight × normalised
            score, and "mnz" (CombMNZ) multiplies this sum by the number of parts that have the document.
        c: rank constant of "rrf": a larger value reduces the advantage of the first ranks. Other methods ignore it.
        normalisation: normalisation of scores, for each part and query: "min_max" scales them to 0–1, "z_score" to
            standard deviations from the mean, "sum" to start at 0 and add up to 1, and "none" leaves them unchanged.
            "rrf" ignores it.
    """

    parts: tuple[Annotated[str, Field(min_length=1)], ...] = Field(min_length=2)
    weights: tuple[Weight, ...] | None = None
    method: FusionMethod = FusionMethod.RRF
    c: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] = 60.0
    normalisation: Normalisation = Normalisation.MIN_MAX

    needs: ClassVar[tuple[str, ...]] = ()
    default_top_k: ClassVar[int | None] = None
    route: ClassVar[Route] = Route.FUSED

    @field_validator("parts")
    @classmethod
    def _refuse_duplicates(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(value)) < len(value):
            raise ValueError("a part is named twice; give it a weight instead")
        return value

    @model_validator(mode="after")
    def _weights_fit(self) -> "Fusion":
        if self.weights is None:
            return self
        if len(self.weights) != len(self.parts):
            raise ValueError(f"{len(self.weights)} weights for {len(self.parts)} parts; give one weight per part")
        if not math.fsum(self.weights) > 0:
            raise ValueError("all weights are 0; at least one part must count")
        return self

    @model_validator(mode="after")
    def _not_negative(self) -> "Fusion":
        if self.method == FusionMethod.MNZ and self.normalisation not in (Normalisation.MIN_MAX, Normalisation.SUM):
            raise ValueError("method mnz multiplies, and scores below 0 would fall; use normalisation min_max or sum")
        return self

    def plan(self, parts: tuple[FusionPart, ...]) -> FusionPlan:
        weights = self.weights or (1.0,) * len(parts)
        weighted = tuple(replace(part, weight=weight) for part, weight in zip(parts, weights, strict=True))
        return FusionPlan(weighted, self.method, self.c, self.normalisation)
