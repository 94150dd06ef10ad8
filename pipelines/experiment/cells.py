"""The cells of a grid: every configuration of an experiment file, for each combination of swept parameters."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from rankbeam.pipelines.config.yaml_lines import Place
from rankbeam.pipelines.experiment.components import GENERATE, Generating, Retrieving
from rankbeam.pipelines.experiment.corpora import CORPUS
from rankbeam.transforms.records.metrics.dialects import RANKBEAM, Dialect

TOP_K, DISTANCE, SIMILARITY = "top_k", "vector_distance_threshold", "vector_similarity_threshold"

Grid = Mapping[str, Sequence[Any]]


class Given(Protocol):
    """An item of `configurations:` as it was given; invalid values are None, and already reported."""

    name: str
    retriever: dict[str, Any] | None
    answers: dict[str, Any] | None
    generate: dict[str, Any] | None
    top_k: int | None
    vector_distance_threshold: float | None


@dataclass(frozen=True)
class Cell:
    """One configuration of the grid."""

    name: str
    given: str
    place: Place
    retriever: Retrieving
    top_k: int | None  # results per query; None for all
    distance: float | None = None  # only results nearer than this; None for all
    generator: Generating | None = None
    dialect: Dialect = RANKBEAM
    parts: tuple["Cell", ...] = ()

    @property
    def canonical(self) -> str:
        """All that determines its scores, as JSON values."""
        return _canonical(self._decisive)

    @property
    def config_id(self) -> str:
        """Its identifier for programs."""
        return hashlib.sha256(self.canonical.encode()).hexdigest()[:12]

    @property
    def asked(self) -> str:
        """The request for a ranking: cells with equal requests are cut from one ranking."""
        reach = {TOP_K: self.top_k, DISTANCE: self.distance} if self._asks_exactly else {}
        return _canonical({self.retriever.role: self._retriever, **self._corpus, **reach})

    @property
    def cut(self) -> float | None:
        """Only results nearer than this count; None where the service returns only these."""
        return None if self._asks_exactly else self.distance

    @property
    def lower_is_better(self) -> bool:
        """Whether its scores are distances."""
        parameters = self.retriever.parameters
        return bool(getattr(parameters, "lower_is_better", parameters.has_distances))

    @property
    def width(self) -> tuple[bool, int, bool, float]:
        """How far the cell goes into the ranking: by results, then by distance."""
        return self.top_k is None, self.top_k or 0, self.distance is None, self.distance or 0.0

    def in_dialects(self, dialects: Sequence[Dialect]) -> list["Cell"]:
        """This cell, once for each dialect, with the dialect in its name; rankbeam's own keeps the plain name."""
        return [replace(self, name=self._name_in(each), dialect=each) for each in dialects] or [self]

    def _name_in(self, dialect: Dialect) -> str:
        if dialect == RANKBEAM:
            return self.name
        return f"{self.name}{',' if ':' in self.name else ':'}dialect={dialect.name}"

    @property
    def _asks_exactly(self) -> bool:
        """Whether results of a shorter reach cannot be cut from those of a longer one."""
        return not self.retriever.parameters.is_prefix()

    @property
    def _decisive(self) -> dict[str, Any]:
        distance = {} if self.distance is None else {DISTANCE: self.distance}
        generate = {} if self.generator is None else {GENERATE: self.generator.decisive()}
        dialect = {} if self.dialect == RANKBEAM else {"dialect": self.dialect.name}
        own = {self.retriever.role: self._retriever, **self._corpus, TOP_K: self.top_k}
        return {**own, **distance, **generate, **dialect}

    @property
    def _corpus(self) -> dict[str, Any]:
        """The corpus that is searched, where the experiment describes it."""
        return {} if self.retriever.corpus is None else {CORPUS: self.retriever.corpus.decisive()}

    @property
    def _retriever(self) -> dict[str, Any]:
        parts = {"parts": [part._decisive for part in self.parts]} if self.parts else {}
        return {**self.retriever.decisive(), **parts}


def _canonical(value: dict[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
