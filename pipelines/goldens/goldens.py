"""A benchmark that can be made."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rankbeam.pipelines.experiment.services import Service
from rankbeam.transforms.clients.calls.stage import Stage
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.goldens.asking import Asking
from rankbeam.transforms.goldens.grading import GradePassages
from rankbeam.transforms.goldens.origins import Origin
from rankbeam.transforms.goldens.planning import Wanted
from rankbeam.transforms.goldens.writing import Reviews, WriteItems
from rankbeam.transforms.judge.models import Model
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.calls.steps import Work


@dataclass(frozen=True)
class Goldens:
    """A benchmark that can be made.

    Attributes:
        name: its name.
        text: the YAML that it comes from.
        origin: where the documents are.
        language: of the texts.
        span_tokens: of a span, at most.
        writer, checker: the models.
        wanted: what is to be made.
        reviews: what is checked.
        pool: how many documents of a ranking are graded.
        split: shares of the splits.
        pools: the budget of every quota pool.
        max_cost: of all calls; None for no limit.
        output: the folder of the benchmark.
        ledger: the folder of the answers.
    """

    name: str
    text: str
    origin: Origin
    language: str
    span_tokens: int
    writer: Service
    checker: Service
    wanted: Wanted
    reviews: Reviews
    pool: int
    split: Mapping[str, float]
    pools: Mapping[str, Quota]
    max_cost: float | None
    output: str
    ledger: str

    @property
    def asking(self) -> Asking:
        """The models, as works ask them."""
        writer, checker = (Model(each.name, each.kind, each.parameters) for each in (self.writer, self.checker))
        return Asking(writer, checker)

    def writing(self, spent: float = 0.0) -> Stage:
        """The stage that writes, with what is left of the budget."""
        return self._stage(WriteItems(self.asking, self.reviews, self.wanted.dimensions), spent)

    def grading(self, spent: float = 0.0) -> Stage:
        """The stage that grades, with what is left of the budget."""
        return self._stage(GradePassages(self.asking), spent)

    def work_folder(self, round_number: int, stage: str) -> str:
        """The folder of the results of a stage of a round, as they come."""
        return files.join(self.output, "work", f"round-{round_number}-{stage}")

    def _stage(self, work: Work[Any], spent: float) -> Stage:
        services = {each.name: each for each in (self.writer, self.checker) if each.name in work.services}
        left = math.inf if self.max_cost is None else max(0.0, self.max_cost - spent)
        return Stage(
            work.stage,
            {work.stage: work},
            {name: each.parameters for name, each in services.items()},
            {name: each.pool or "" for name, each in services.items()},
            self.pools,
            {each.pool or "": each.account for each in services.values()},
            budget=left,
        )
