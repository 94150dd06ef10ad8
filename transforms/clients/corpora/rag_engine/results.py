"""Results of building corpora: what is known of each, the documents that it lacks, and why one cannot be used."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from rankbeam.transforms.clients.corpora.rag_engine.about import About
from rankbeam.transforms.clients.corpora.rag_engine.data_api import ListedFile
from rankbeam.transforms.clients.corpora.rag_engine.importing import NO_REASON, Filled
from rankbeam.transforms.clients.corpora.rag_engine.objects import Objects, reasons
from rankbeam.transforms.clients.corpora.rag_engine.staged import Staged, StagedDocuments
from rankbeam.transforms.records.corpora import BuiltCorpus, document_of
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.failures import Failure, FailureKind

KIND = "rag_engine"
IMPORT = "import"
"""The stage of failures of documents."""
_NO_TEXT = "the document has no text"
_REFUSED = {FailureKind.INVALID, FailureKind.PERMISSION, FailureKind.NOT_FOUND}


@dataclass(frozen=True)
class Problem:
    """The reason why a corpus cannot be used."""

    name: str
    message: str
    is_refusal: bool = False

    @classmethod
    def of(cls, name: str, error: CallError) -> "Problem":
        """The problem behind an error."""
        return cls(name, error.message, error.kind in _REFUSED)

    @classmethod
    def with_corpus(cls, name: str, resource: str, error: CallError) -> "Problem":
        """The problem behind an error of a request about a corpus that was there: others may have deleted it."""
        if error.kind is not FailureKind.NOT_FOUND:
            return cls.of(name, error)
        return cls(name, f"{resource} was deleted in the meantime; run again to rebuild it ({error.message})")


@dataclass(frozen=True)
class Built:
    """Results of building an experiment's corpora."""

    corpora: tuple[BuiltCorpus, ...]
    problems: tuple[Problem, ...] = ()


def failed_documents(filled: Filled, objects: Objects, staged: Staged) -> dict[str, str]:
    """For each document that could not be imported the reason, from the results of imports where lists give none."""
    failed = dict(filled.failed)
    if NO_REASON in failed.values():
        for sink in filled.sinks:
            by_uri = reasons(objects.read(sink) or b"")
            files = ((ListedFile(uri, ""), reason) for uri, reason in by_uri.items())
            explanations = {name: reason for file, reason in files for name in staged.names_of(file)}
            unexplained = [name for name, reason in failed.items() if reason == NO_REASON and name in explanations]
            failed |= {name: explanations[name] for name in unexplained}
    return {document_of(name, staged.root): reason for name, reason in failed.items()}


def failures_of(failed: Mapping[str, str], documents: StagedDocuments) -> tuple[Failure, ...]:
    """A failure for each document that a corpus lacks, with its id as `query_id`."""
    missing = [Failure(IMPORT, FailureKind.UNAVAILABLE, doc_id, 1, reason) for doc_id, reason in failed.items()]
    empty = [Failure(IMPORT, FailureKind.INVALID, doc_id, 0, _NO_TEXT) for doc_id in documents.without_text]
    return (*missing, *empty)


def filled_corpus(filled: Filled, failures: Sequence[Failure], most: int) -> "BuiltCorpus | Problem":
    """The result for a corpus whose files were imported; a problem where it lacks too many documents."""
    if len(failures) > most:
        first = failures[0]
        problem = (
            f"{len(failures):,} documents could not be imported, and max_import_failures is {most:,}: "
            f"{first.query_id!r}: {first.message}; run again to import only those that are missing"
        )
        return Problem(filled.about.name, problem)
    return _corpus(filled.resource, filled.about, "built", filled.imported, tuple(failures))


def reused(resource: str, about: About, failures: Sequence[Failure], documents: int) -> BuiltCorpus:
    """The result for a corpus that was complete before."""
    counted = replace(about, files=documents - len(failures), failed=len(failures))
    return _corpus(resource, counted, "reused", 0, tuple(failures))


def _corpus(resource: str, about: About, state: str, imported: int, failures: tuple[Failure, ...]) -> BuiltCorpus:
    return BuiltCorpus(
        about.name,
        KIND,
        about.identity,
        about.specification,
        about.documents,
        resource,
        state,
        about.files,
        about.failed,
        imported,
        failures,
        about.keep,
        datetime.fromisoformat(about.expires) if about.expires else None,
    )
