"""Make a benchmark: rounds of writing, screening, searching and grading, until the quotas are met.

    plan ──► write ──► screen ──► search ──► grade ──► accepted ──┐
      ▲                                                           │  missing questions, at most four rounds
      └───────────────────────────────────────────────────────────┘

A round only depends on the outcomes of earlier rounds. The ledger has every answer, so a run that is repeated, or was
killed, goes through the same rounds without paying for a call again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain
from typing import Any

from apache_beam.options.pipeline_options import PipelineOptions

from rankbeam.pipelines.goldens.folder import GoldensFolder
from rankbeam.pipelines.goldens.goldens import Goldens
from rankbeam.pipelines.goldens.stages import StageResults, batched_stage, run_stage
from rankbeam.transforms.clients.calls.stage import Stage
from rankbeam.transforms.clients.ledger import Ledger, Owner
from rankbeam.transforms.clients.models.base import Role
from rankbeam.transforms.clients.models.embeddings import Embed, KeptEmbeddings, embeddings_of
from rankbeam.transforms.clients.retrievers.base import Retriever
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.goldens.distilling import EnlargeClues, EnlargedClue
from rankbeam.transforms.goldens.library import Library, library_of
from rankbeam.transforms.goldens.parts import json_lines
from rankbeam.transforms.goldens.planning import ROUNDS, GoldensPlan, apply_grades, screen_items
from rankbeam.transforms.goldens.previous import take_over
from rankbeam.transforms.goldens.records.items import PooledPassages, SourceSpan, State, WritingTask, WrittenItem
from rankbeam.transforms.goldens.searching import (
    EmbedTexts,
    GradePassages,
    GradingPool,
    PassageSearch,
    PoolRetriever,
    Rankings,
    TextEmbedding,
    UnansweredCall,
)
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.kernels.search.nearest import Vectors
from rankbeam.transforms.records.calls.steps import Usage
from rankbeam.transforms.records.errors import FailureKind, InputError, pluralize
from rankbeam.transforms.records.labels import text_hash
from rankbeam.transforms.records.queries import Documents

Do = Callable[[Stage, Sequence[tuple[str, Any]], int, type[Any]], Sequence[Any]]
"""Does a stage's tasks in a round; returns their records."""

_FINAL = frozenset({FailureKind.BLOCKED, FailureKind.TRUNCATED})


@dataclass
class RoundProgress:
    """Items, and other results, so far."""

    items: list[WrittenItem] = field(default_factory=list)
    ranks: dict[str, int | None] = field(default_factory=dict)
    pooled: dict[str, PooledPassages] = field(default_factory=dict)
    usage: list[Usage] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    rounds: int = 0
    stages: int = 0

    @property
    def accepted(self) -> list[WrittenItem]:
        """The accepted items, in the order of the plan."""
        return [item for item in self.items if item.state is State.ACCEPTED]

    @property
    def failed(self) -> list[WrittenItem]:
        """The items with a failed call that may succeed later."""
        return [item for item in self.items if item.state is State.FAILED]

    def ungraded(self, pool: GradingPool) -> GradingPool:
        """A pool without the documents that are graded for its question already."""
        pooled = self.pooled.get(pool.item_id)
        graded = () if pooled is None else {grade.doc_id for grade in pooled.grades}
        return replace(pool, passages=tuple(passage for passage in pool.passages if passage.doc_id not in graded))

    def add_grades(self, records: Iterable[PooledPassages]) -> None:
        for record in records:
            earlier = self.pooled.get(record.item_id)
            grades = record.grades if earlier is None else (*earlier.grades, *record.grades)
            self.pooled[record.item_id] = replace(record, grades=grades)

    def add(self, results: StageResults) -> None:
        self.usage += results.usage
        self.warnings += [warning for warning in results.warnings if warning not in self.warnings]


@dataclass
class RoundSearches:
    """Searches for the context, duplicates and pools of a round."""

    goldens: Goldens
    library: Library
    folder: str
    do: Do
    warnings: list[str] = field(default_factory=list)

    def with_context(self, sources: Sequence[WritingTask], number: int) -> list[WritingTask]:
        """Add to sources passages of other documents about the same matter, retrieved by the span's text."""
        rules = self.goldens.context
        if not rules.passages or not sources:
            return list(sources)
        clues = {source.name: source.spans[0].text for source in sources}
        failures = 0
        if rules.enlarged:
            tasks = [(source.name, source) for source in sources]
            enlarged = self.do(self.goldens.stage(EnlargeClues(self.goldens.asking)), tasks, number, EnlargedClue)
            failures = sum(bool(clue.failure) for clue in enlarged)
            clues |= {clue.name: clue.text for clue in enlarged if not clue.failure}
        rankings: Mapping[str, Rankings] = {}
        if rules.by == "pool":
            for embed in self.goldens.pool.embedders:
                failures += len(self._embed(embed.as_role(Role.QUERY), list(clues.values()), number))
            rankings = self._rankings(clues, number)
            failures += sum(ranking.missing is not None for ranking in rankings.values())
        if failures:
            calls = pluralize(failures, "call")
            self.warnings.append(f"{calls} for the context of spans failed; run the same command again to complete it")
        return [
            replace(source, context=self._context(source, clues[source.name], rankings.get(source.name)))
            for source in sources
        ]

    def _context(self, source: WritingTask, text: str, rankings: Rankings | None) -> tuple[SourceSpan, ...]:
        rules = self.goldens.context
        own_ids = {span.doc_id for span in source.spans}
        best = self._search.best(text)
        if rankings is not None:
            every = self.goldens.pool.retrievers
            names = [entry.name for entry in every if entry.remote is None or entry.name in rankings.doc_ids]
            best = self._search.pooled(text, best, rules.passages + len(own_ids), rankings.doc_ids, names)
        chosen = [span for span in best if span.doc_id not in own_ids][: rules.passages]
        return tuple(self._widen(span) for span in chosen)

    def _widen(self, span: SourceSpan) -> SourceSpan:
        """A passage with its neighbours in the document."""
        around = self.goldens.context.neighbours
        if not around:
            return span
        passages = self._passages_of[span.doc_id]
        place = next((at for at, passage in enumerate(passages) if passage.start >= span.start), len(passages) - 1)
        start, end = passages[max(0, place - around)].start, passages[min(len(passages) - 1, place + around)].end
        return SourceSpan(span.doc_id, start, end, self._texts[span.doc_id][start:end], span.title)

    @cached_property
    def _passages_of(self) -> Mapping[str, Sequence[SourceSpan]]:
        return grouped((span.doc_id, span) for span in self.library.passages)

    @cached_property
    def _texts(self) -> Mapping[str, str]:
        return {document.id: document.text for document in self.library.documents}

    def vectors(self, items: Sequence[WrittenItem], number: int) -> tuple[Vectors, dict[str, UnansweredCall]]:
        """The embeddings of questions, if they are used to find duplicates."""
        if self.goldens.duplicates is None:
            return {}, {}
        embed = self.goldens.duplicates.embed.as_role(Role.SIMILARITY)
        questions = [item.question for item in items]
        missing = self._embed(embed, questions, number)
        stored = KeptEmbeddings(embed, ledger=self.goldens.ledger).vectors(questions, [])
        vectors = {text: vector for text, vector in zip(questions, stored, strict=True) if vector is not None}
        return vectors, _by_item(items, missing)

    def pools_of(
        self, items: Sequence[WrittenItem], number: int
    ) -> tuple[list[GradingPool], dict[str, UnansweredCall]]:
        if not items:
            return [], {}
        pool = self.goldens.pool
        failed: dict[str, UnansweredCall] = {}
        for embed in pool.embedders:
            missing = self._embed(embed.as_role(Role.QUERY), [item.question for item in items], number)
            failed |= _by_item(items, missing)
        rankings = self._rankings({item.item_id: item.question for item in items}, number)
        failed |= {name: ranked.missing for name, ranked in rankings.items() if ranked.missing is not None}
        names = [retriever.name for retriever in pool.retrievers]
        searches = [
            self._search.grading_pool(item, pool.documents, rankings[item.item_id].doc_ids, names)
            for item in items
            if item.item_id not in failed
        ]
        return searches, failed

    def _rankings(self, questions: Mapping[str, str], number: int) -> Mapping[str, Rankings]:
        """The rankings of retrievers that are services, by item."""
        if not self.goldens.pool.services:
            return {item_id: Rankings(item_id) for item_id in questions}
        tasks = [(item[0], item) for item in questions.items()]
        rankings = {ranked.item_id: ranked for ranked in self.do(self.goldens.searching(), tasks, number, Rankings)}
        for retriever in self.goldens.pool.services:
            unknown = {
                name
                for ranking in rankings.values()
                for name in self._search.unknown(ranking.doc_ids.get(retriever.name, ()))
            }
            if unknown:
                problem = f"{retriever.kind} returns {pluralize(len(unknown), 'id')} of no document: {min(unknown)}"
                self.warnings.append(f"{problem}: they are not graded; set doc_id to change how ids are read")
        return rankings

    def _embed(self, embed: Embed, texts: Sequence[str], number: int) -> dict[str, UnansweredCall]:
        """Embed texts; return failures that may succeed later, by name of the text."""
        tasks = [(text_hash(text), text) for text in dict.fromkeys(texts)]
        records = self.do(self.goldens.stage(EmbedTexts(embed)), tasks, number, TextEmbedding) if tasks else ()
        missing = {record.name: record.missing for record in records if record.missing is not None}
        return {name: call for name, call in missing.items() if call.failure not in _FINAL}

    @cached_property
    def _search(self) -> PassageSearch:
        path = files.join(self.folder, "passages.jsonl")
        lines = ({"_id": span.id, "title": span.title, "text": span.text} for span in self.library.passages)
        files.write(path, json_lines(lines))
        local = [retriever for retriever in self.goldens.pool.retrievers if retriever.remote is None]
        opened = {retriever.name: self._open(retriever, path) for retriever in local}
        pooled = opened.values() if self.goldens.pool.documents else ()
        notes = chain(*(getattr(retriever, "warnings", ()) for retriever in pooled))
        self.warnings += [f"reviews.pool: {note}" for note in dict.fromkeys(notes)]
        return PassageSearch.of(path, self.library.passages, self.goldens.language, opened)

    def _open(self, retriever: PoolRetriever, path: str) -> Retriever:
        """A retriever over all passages; a model embeds them first if the retriever compares embeddings."""
        documents = Documents(path)
        if (embed := retriever.embedder) is None:
            return retriever.parameters.open(path)
        texts = retriever.parameters.embedded(documents) if embed.is_called else ()
        missing = self._embed(embed, list(texts), 0)
        if missing:
            call = next(iter(missing.values()))
            problem = f"{pluralize(len(missing), 'passage')} without embedding ({call.failure}: {call.message})"
            self.warnings.append(f"{problem}: {retriever.kind} does not find them; run the same command again")
        return retriever.parameters.search(Documents(path, embeddings=embeddings_of(embed, self.goldens.ledger)))


@dataclass
class BenchmarkMaker:
    """A benchmark that is being made."""

    goldens: Goldens
    plan: GoldensPlan
    options: PipelineOptions
    owner: Owner
    folder: str

    def __post_init__(self) -> None:
        self._progress = RoundProgress(pooled=self.plan.previous.pooled)
        library, warnings = self.plan.library, self._progress.warnings
        self._searches = RoundSearches(self.goldens, library, self.folder, self._do, warnings)

    def run(self) -> Iterator[RoundProgress]:
        """Yield the progress after each round, and once more at the end."""
        progress = self._progress
        progress.items = self._grade(self.plan.previous.items, 0)
        for number in range(1, ROUNDS + 1):
            sources = self.plan.round(number, progress.items, {item.item_id for item in progress.accepted})
            sources = self._searches.with_context(sources, number)
            if not sources or progress.failed:  # a failure of one item would probably repeat for others
                break
            progress.rounds = number
            new = self._screen(self._write(sources, number), number)
            progress.items += self._grade(new, number)
            yield progress
        yield progress

    def _write(self, sources: Sequence[WritingTask], number: int) -> list[WrittenItem]:
        """The outcomes of a round's candidates, in the order of the plan."""
        tasks = [(source.name, source) for source in sources]
        records = self._do(self.goldens.stage(self.goldens.writing), tasks, number, WrittenItem)
        by_id = {record.item_id: record for record in records}  # a repeated bundle wrote some items twice
        return [by_id[candidate.item_id] for source in sources for candidate in source.candidates]

    def _screen(self, written: Sequence[WrittenItem], number: int) -> list[WrittenItem]:
        """Reject new items that are near-duplicates or exceed the quotas."""
        progress = self._progress
        candidates = [item for item in (*progress.accepted, *written) if item.state is State.ACCEPTED]
        vectors, missing = self._searches.vectors(candidates, number)
        new = [mark_failed(item, missing) for item in written]
        least = 1.0 if self.goldens.duplicates is None else self.goldens.duplicates.cosine
        return screen_items(self.plan, progress.items, progress.accepted, new, vectors, least)

    def _grade(self, new: Sequence[WrittenItem], number: int) -> list[WrittenItem]:
        """Grade other documents that may answer new items, and reject items that they answer."""
        progress = self._progress
        accepted = [item for item in new if item.state is State.ACCEPTED]
        searched, missing = self._searches.pools_of(accepted, number)
        new = [mark_failed(item, missing) for item in new]
        progress.ranks |= {pool.item_id: pool.rank for pool in searched}
        pools = [(pool.item_id, progress.ungraded(pool)) for pool in searched]
        pools = [(item_id, pool) for item_id, pool in pools if pool.passages]
        stage = self.goldens.stage(GradePassages(self.goldens.asking))
        progress.add_grades(self._do(stage, pools, number, PooledPassages) if pools else ())
        return apply_grades(new, progress.pooled)

    def _do(self, stage: Stage, items: Sequence[tuple[str, Any]], number: int, record: type[Any]) -> list[Any]:
        """Do the tasks of a stage with the remaining budget."""
        progress = self._progress
        progress.stages += 1
        folder = files.join(self.folder, f"round-{number}-{stage.name}-{progress.stages}")
        # For the ledger, each stage is a separate run: it looks for calls of lost bundles by the run's name.
        owner = replace(self.owner, run_id=f"{self.owner.run_id}-{number}-{stage.name}-{progress.stages}")
        ledger = Ledger(self.goldens.ledger, owner)
        stage = stage.after(progress.usage)
        run = partial(run_stage, ledger=ledger, items=items, folder=folder, record=record, options=self.options)
        with batched_stage(self.goldens.calls, stage, ledger, run, progress.warnings) as last:
            results = run(last)
        progress.add(results)
        return results.records


def plan_of(goldens: Goldens) -> GoldensPlan:
    gathered = goldens.origin.gather(Ledger(goldens.ledger))
    library = library_of(gathered, goldens.span_tokens, goldens.language, goldens.origin.place)
    if goldens.previous is None:
        return GoldensPlan(library, goldens.planned)
    folder = GoldensFolder(goldens.previous)
    texts = {doc_id: document["text"] for doc_id, document in folder.documents().items()}
    previous = take_over(folder.items(), folder.reviews(), texts, library, folder.about().get("pool", 0))
    if (count := len(previous.goldens)) > goldens.planned.items:
        problem = f"has {count:,} questions to take over, and items is {goldens.planned.items:,}; raise items"
        raise InputError(problem, path=goldens.previous)
    return GoldensPlan(library, goldens.planned, previous)


def mark_failed(item: WrittenItem, missing: Mapping[str, UnansweredCall]) -> WrittenItem:
    """Mark an item as failed if a call that it needs has failed."""
    if item.item_id not in missing:
        return item
    call = missing[item.item_id]
    return replace(item, state=State.FAILED, detail=f"{call.failure}: {call.message}", failure=call.failure)


def _by_item(items: Sequence[WrittenItem], missing: Mapping[str, UnansweredCall]) -> dict[str, UnansweredCall]:
    named = {item.item_id: text_hash(item.question) for item in items}
    return {item_id: missing[name] for item_id, name in named.items() if name in missing}
