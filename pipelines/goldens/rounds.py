"""Make a benchmark: rounds of writing, screening, searching and grading, until the quotas are met.

    plan ──► write ──► screen ──► search ──► grade ──► accepted ──┐
      ▲                                                           │  what is lacking, at most four rounds
      └───────────────────────────────────────────────────────────┘

A round depends only on the outcomes of the rounds before it. The ledger has every answer, so a run that is repeated, or
was killed, goes through the same rounds without a call that was paid for.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from apache_beam.options.pipeline_options import PipelineOptions

from rankbeam.pipelines.goldens.goldens import Goldens
from rankbeam.pipelines.goldens.stages import Results, run_stage
from rankbeam.transforms.clients.calls.stage import Stage
from rankbeam.transforms.clients.ledger import Ledger, Owner
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.goldens.library import library_of
from rankbeam.transforms.goldens.parts import json_lines
from rankbeam.transforms.goldens.planning import ROUNDS, Plan
from rankbeam.transforms.goldens.screening import graded, screened
from rankbeam.transforms.goldens.searching import Search, found_for
from rankbeam.transforms.records.calls.outcomes import Usage
from rankbeam.transforms.records.failures import FailureKind
from rankbeam.transforms.records.goldens.items import Made, Pooled, State
from rankbeam.transforms.records.goldens.sources import Source

_REPLACED = (FailureKind.MALFORMED,)
"""Failures in whose place a later round writes another question; any other one ends the run, which is repeated."""


@dataclass
class Progress:
    """What was made so far.

    Attributes:
        made: every candidate, in the order of the plan.
        ranks: by item, the rank of its documents.
        pooled: by item, the grades of other passages.
        usage: of the pools.
        warnings: for users.
        rounds: how many were begun.
    """

    made: list[Made] = field(default_factory=list)
    ranks: dict[str, int | None] = field(default_factory=dict)
    pooled: dict[str, Pooled] = field(default_factory=dict)
    usage: list[Usage] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    rounds: int = 0

    @property
    def accepted(self) -> list[Made]:
        """The items that are in, in the order of the plan."""
        return [made for made in self.made if made.state is State.ACCEPTED]

    @property
    def failed(self) -> list[Made]:
        """The items of which a call failed that may succeed later."""
        return [made for made in self.made if made.state is State.FAILED]

    @property
    def is_interrupted(self) -> bool:
        """Whether some item failed for a reason that would fail others, too."""
        return any(made.failure not in _REPLACED for made in self.failed)

    def add(self, results: Results) -> None:
        """Add what a stage used, and its warnings."""
        self.usage += results.usage
        self.warnings += [warning for warning in results.warnings if warning not in self.warnings]


@dataclass(frozen=True)
class Making:
    """A benchmark that is being made.

    Attributes:
        goldens: what is to be made.
        plan: the quotas.
        options: Beam's.
        owner: the run.
        keep: is given what was made, after every round.
    """

    goldens: Goldens
    plan: Plan
    options: PipelineOptions
    owner: Owner
    keep: Callable[[Progress], None]

    def run(self) -> Progress:
        """All rounds."""
        progress = Progress()
        for number in range(1, ROUNDS + 1):
            sources = self.plan.round(number, progress.made, {made.item_id for made in progress.accepted})
            if not sources or progress.is_interrupted:
                break
            progress.rounds = number
            written = self._written(progress, sources, number)
            new = screened(self.plan, progress.made, progress.accepted, written)
            progress.made += self._graded(progress, new, number)
            self.keep(progress)
        return progress

    def _written(self, progress: Progress, sources: Sequence[Source], number: int) -> list[Made]:
        """What became of the candidates of a round, in the order of the plan."""
        stage = self.goldens.writing(self._spent(progress))
        results = self._run(stage, [(source.name, source) for source in sources], number, Made)
        progress.add(results)
        made = {each.item_id: each for each in results.records}  # a bundle that was repeated wrote some twice
        return [made[candidate.item_id] for source in sources for candidate in source.candidates]

    def _graded(self, progress: Progress, new: Sequence[Made], number: int) -> list[Made]:
        """New items, once other documents that may answer them are graded."""
        accepted = [made for made in new if made.state is State.ACCEPTED]
        found = list(found_for(self._search, accepted, self.goldens.pool))
        progress.ranks |= {each.pool.item_id: each.rank for each in found}
        pools = [(each.pool.item_id, each.pool) for each in found if each.pool.passages]
        if not pools:
            return list(new)
        results = self._run(self.goldens.grading(self._spent(progress)), pools, number, Pooled)
        progress.add(results)
        pooled = {each.item_id: each for each in results.records}
        progress.pooled |= pooled
        return graded(new, pooled)

    def _run(self, stage: Stage, items: Sequence[tuple[str, Any]], number: int, record: type[Any]) -> Results:
        folder = self.goldens.work_folder(number, stage.name)
        # Each stage is a run of its own to the ledger, which looks for calls of lost bundles by the run's name.
        owner = replace(self.owner, run_id=f"{self.owner.run_id}-{number}-{stage.name}")
        return run_stage(stage, Ledger(self.goldens.ledger, owner), items, folder, record, self.options)

    def _spent(self, progress: Progress) -> float:
        pools = self.goldens.pools
        return sum(pools[each.pool].cost(each.calls, each.tokens) or 0.0 for each in progress.usage)

    @cached_property
    def _search(self) -> Search:
        library = self.plan.library
        path = files.join(self.goldens.output, "work", "passages.jsonl")
        lines = ({"_id": span.id, "title": span.title, "text": span.text} for span in library.passages)
        files.write(path, json_lines(lines))
        return Search.of(path, library.passages, self.goldens.language)


def plan_of(goldens: Goldens) -> Plan:
    """Read the documents, and plan.

    Raises:
        InputError: the documents cannot be used.
    """
    gathered = goldens.origin.gather(Ledger(goldens.ledger))
    return Plan(library_of(gathered, goldens.span_tokens, goldens.language, goldens.origin.place), goldens.wanted)
