"""Make a benchmark: rounds of writing, screening, searching and grading, until the quotas are met.

    plan ──► write ──► screen ──► search ──► grade ──► accepted ──┐
      ▲                                                           │  what is lacking, at most four rounds
      └───────────────────────────────────────────────────────────┘

A round depends only on the outcomes of the rounds before it. The ledger has every answer, so a run that is repeated, or
was killed, goes through the same rounds without a call that was paid for.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from apache_beam.options.pipeline_options import PipelineOptions

from rankbeam.pipelines.goldens.finding import Finding, failed
from rankbeam.pipelines.goldens.goldens import Goldens
from rankbeam.pipelines.goldens.stages import StageResults, batched_stage, run_stage
from rankbeam.transforms.clients.calls.stage import Stage
from rankbeam.transforms.clients.ledger import Ledger, Owner
from rankbeam.transforms.goldens.library import library_of
from rankbeam.transforms.goldens.planning import ROUNDS, GoldensPlan, Likeness, graded, screened
from rankbeam.transforms.goldens.records.items import Made, Pooled, State, WritingTask
from rankbeam.transforms.records.calls.outcomes import Usage


@dataclass
class RoundProgress:
    """Items so far."""

    made: list[Made] = field(default_factory=list)
    ranks: dict[str, int | None] = field(default_factory=dict)
    pooled: dict[str, Pooled] = field(default_factory=dict)
    usage: list[Usage] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    rounds: int = 0
    stages: int = 0

    @property
    def accepted(self) -> list[Made]:
        """The items that are in, in the order of the plan."""
        return [item for item in self.made if item.state is State.ACCEPTED]

    @property
    def failed(self) -> list[Made]:
        """The items of which a call failed that may succeed later."""
        return [item for item in self.made if item.state is State.FAILED]

    def add(self, results: StageResults) -> None:
        """Add what a stage used, and its warnings."""
        self.usage += results.usage
        self.warnings += [warning for warning in results.warnings if warning not in self.warnings]


@dataclass(frozen=True)
class Making:
    """A benchmark that is being made."""

    goldens: Goldens
    plan: GoldensPlan
    options: PipelineOptions
    owner: Owner
    keep: Callable[[RoundProgress], None]

    def run(self) -> RoundProgress:
        """All rounds."""
        progress = RoundProgress()
        finding = Finding(self.goldens, self.plan.library, partial(self._done, progress), progress.warnings)
        for number in range(1, ROUNDS + 1):
            sources = self.plan.round(number, progress.made, {item.item_id for item in progress.accepted})
            sources = finding.with_context(sources, number)
            if not sources or progress.failed:  # what failed one item would fail others, too
                break
            progress.rounds = number
            written = self._written(progress, sources, number)
            new = self._screened(progress, finding, written, number)
            progress.made += self._graded(progress, finding, new, number)
            self.keep(progress)
        return progress

    def _written(self, progress: RoundProgress, sources: Sequence[WritingTask], number: int) -> list[Made]:
        """Outcomes of a round's candidates, in the order of the plan."""
        tasks = [(source.name, source) for source in sources]
        records = self._done(progress, self.goldens.writing(), tasks, number, Made)
        by_id = {record.item_id: record for record in records}  # a bundle that was repeated wrote some twice
        return [by_id[candidate.item_id] for source in sources for candidate in source.candidates]

    def _screened(self, progress: RoundProgress, finding: Finding, written: Sequence[Made], number: int) -> list[Made]:
        """New items without near-duplicates and those above the quotas."""
        candidates = [item for item in (*progress.accepted, *written) if item.state is State.ACCEPTED]
        vectors, missing = finding.vectors(candidates, number)
        new = [failed(item, missing) for item in written]
        least = 1.0 if self.goldens.duplicates is None else self.goldens.duplicates.cosine
        return screened(self.plan, progress.made, progress.accepted, new, Likeness(vectors, least))

    def _graded(self, progress: RoundProgress, finding: Finding, new: Sequence[Made], number: int) -> list[Made]:
        """New items, once other documents that may answer them are graded."""
        searched, missing = finding.found([item for item in new if item.state is State.ACCEPTED], number)
        new = [failed(item, missing) for item in new]
        progress.ranks |= {ranking.pool.item_id: ranking.rank for ranking in searched}
        pools = [(ranking.pool.item_id, ranking.pool) for ranking in searched if ranking.pool.passages]
        if not pools:
            return new
        records = self._done(progress, self.goldens.grading(), pools, number, Pooled)
        pooled = {record.item_id: record for record in records}
        progress.pooled |= pooled
        return graded(new, pooled)

    def _done(
        self, progress: RoundProgress, stage: Stage, items: Sequence[tuple[str, Any]], number: int, record: type[Any]
    ) -> list[Any]:
        """Do the tasks of a stage, with what is left of the budget."""
        progress.stages += 1
        folder = self.goldens.work_folder(number, f"{stage.name}-{progress.stages}")
        # Each stage is a run of its own to the ledger, which looks for calls of lost bundles by the run's name.
        owner = replace(self.owner, run_id=f"{self.owner.run_id}-{number}-{stage.name}-{progress.stages}")
        ledger = Ledger(self.goldens.ledger, owner)
        stage = stage.after(progress.usage)
        run = partial(run_stage, ledger=ledger, items=items, folder=folder, record=record, options=self.options)
        with batched_stage(self.goldens, stage, ledger, run, progress.warnings) as last:
            results = run(last)
        progress.add(results)
        return results.records


def plan_of(goldens: Goldens) -> GoldensPlan:
    """Read the documents, and plan."""
    gathered = goldens.origin.gather(Ledger(goldens.ledger))
    return GoldensPlan(
        library_of(gathered, goldens.span_tokens, goldens.language, goldens.origin.place), goldens.wanted
    )
