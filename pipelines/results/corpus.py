"""Texts of a run: its corpus, its queries with their conversations, and the texts that models wrote or judged."""

from collections.abc import Collection, Iterator

from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.clients.formats import sources, texts
from rankbeam.transforms.clients.formats.cases.source import CaseSource
from rankbeam.transforms.clients.formats.cases.tools import checked_columns
from rankbeam.transforms.records.conversations import as_dialogue, history_of


def corpus_texts(run: Results) -> Iterator[tuple[str, str]]:
    """The documents of the run's corpus with their texts, titles included; none without a corpus."""
    corpus = run.run["versions"].get("dataset.corpus")
    for _, entry in () if corpus is None else texts.entries_in(corpus, "corpus"):
        yield entry.id, entry.titled_text


def stored_texts(run: Results, hashes: Collection[str | None] | None = None) -> dict[str, str]:
    """Texts of answers, claims and contexts that a run stored, by hash; by default all."""
    return {row["text_hash"]: row["text"] for row in run.stream("texts", ("text_hash", "text"), hashes, "text_hash")}


def texts_of_queries(run: Results, query_ids: Collection[str] | None = None) -> dict[str, str | None]:
    """The texts of queries, by default of all, by id; None where a query has none."""
    return {row["query_id"]: row["text"] for row in run.stream("query_metrics", ("query_id", "text"), query_ids)}


def histories(run: Results, query_ids: Collection[str]) -> Iterator[tuple[str, str]]:
    """Queries with earlier turns, each with these turns as one text."""
    queries = _queries(run)
    for part in [] if queries is None else sources.expand(queries):
        for entry in texts.read_chosen(part, "queries", query_ids):
            if history := history_of(entry.attributes):
                yield entry.id, as_dialogue(history)


def _queries(run: Results) -> str | None:
    """The path of the queries, or the experiment's source for a file of questions and answers."""
    path: str | None = run.run["versions"].get("dataset.queries")
    dataset = run.experiment_file.value.get("dataset") or {}
    if path is None or "file" not in dataset:
        return path
    return CaseSource(path, checked_columns(dataset.get("columns") or {}), dataset.get("groups") == "flatten").text
