"""Plan the calls that embed texts: those of documents or chunks, and of queries."""

from collections.abc import Iterable, Iterator, Mapping

from rankbeam.transforms.clients.calls.task_batches import TaskBatch, batches_of
from rankbeam.transforms.clients.models.base import Role
from rankbeam.transforms.clients.models.embeddings import STAGE, Embed
from rankbeam.transforms.clients.retrievers.base import RetrieverParameters
from rankbeam.transforms.clients.storage.batches import Bucketed, SourceRows
from rankbeam.transforms.records.calls.outcomes import FailedTask
from rankbeam.transforms.records.calls.steps import Subject, Task
from rankbeam.transforms.records.documents import Documents

Searching = tuple[Embed, RetrieverParameters, Documents]
"""A retriever that compares embeddings, with the model that makes them, and what it searches."""


def tasks_of_documents(element: Searching) -> Iterator[TaskBatch]:
    embed, retriever, documents = element
    return _tasks(embed, retriever.embedded(documents))


def tasks_of_queries(element: Bucketed, models: Mapping[str, Embed]) -> Iterator[TaskBatch]:
    texts = [text for text in element[1]["text"].to_pylist() if text.strip()]
    for embed in models.values():
        yield from _tasks(embed.as_role(Role.QUERY), texts)


def tasks_of_rewritten(element: SourceRows, models: Mapping[int, Embed]) -> Iterator[TaskBatch]:
    """The tasks that embed the texts that one source is asked instead of queries."""
    _, (source, queries) = element
    if source in models:
        texts = [text for text in queries["text"].to_pylist() if text.strip()]
        yield from _tasks(models[source], texts)


def _tasks(embed: Embed, texts: Iterable[str]) -> Iterator[TaskBatch]:
    subjects = (Subject(STAGE, "", 0, ()),)
    tasks = (Task(embed.call(text).key or "", embed.name, text, subjects) for text in texts)
    for batch in batches_of(tasks):
        yield embed.name, batch


def warning_of(failed: list[FailedTask]) -> Iterator[str]:
    """That texts could not be embedded, and why the first of them, by the message."""
    if failed:
        reason = min(failed_task.failure.message for failed_task in failed)
        texts = "1 text" if len(failed) == 1 else f"{len(failed):,} texts"
        yield f"{texts} could not be embedded (first error: {reason}); retried on the next run"
