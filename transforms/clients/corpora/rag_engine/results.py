"""Results of building corpora: their descriptions, the documents that they lack, and why one cannot be used."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from pydantic import TypeAdapter, ValidationError

from rankbeam.transforms.clients.corpora.rag_engine.data_api import ListedFile
from rankbeam.transforms.clients.corpora.rag_engine.description import CorpusDescription
from rankbeam.transforms.clients.corpora.rag_engine.importing import NO_REASON, FilledCorpus
from rankbeam.transforms.clients.corpora.rag_engine.objects import Objects, reasons
from rankbeam.transforms.clients.corpora.rag_engine.staging import StagedDocuments, StagedFiles
from rankbeam.transforms.records.corpora import BuiltCorpus, document_of
from rankbeam.transforms.records.errors import CallError, Failure, FailureKind, InputError, pluralize

KIND = "rag_engine"
IMPORT = "import"  # the stage of documents' failures
_NO_TEXT = "the document has no text"
_REFUSED = {FailureKind.INVALID, FailureKind.PERMISSION, FailureKind.NOT_FOUND}
_LONGEST_UNMADE = timedelta(days=1)  # most time between the first upload and the corpus


@dataclass(frozen=True)
class Problem:
    """The reason why a corpus cannot be used."""

    name: str
    message: str
    is_refusal: bool = False

    @classmethod
    def of(cls, name: str, error: CallError) -> "Problem":
        return cls(name, error.message, error.kind in _REFUSED)

    @classmethod
    def with_corpus(cls, name: str, resource: str, error: CallError) -> "Problem":
        """The problem if a request about an existing corpus failed: another run may have deleted the corpus."""
        if error.kind is not FailureKind.NOT_FOUND:
            return cls.of(name, error)
        return cls(name, f"{resource} was deleted in the meantime; run again to rebuild it ({error.message})")


def failed_documents(filled: FilledCorpus, objects: Objects, staged: StagedFiles) -> dict[str, str]:
    """The reason for each document that could not be imported; from the results of imports if lists give none."""
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


def filled_corpus(filled: FilledCorpus, failures: Sequence[Failure], most: int) -> "BuiltCorpus | Problem":
    """The result for a corpus whose files were imported; a problem if it lacks too many documents."""
    if len(failures) > most:
        first = failures[0]
        problem = (
            f"{pluralize(len(failures), 'document')} could not be imported, and max_import_failures is {most:,}: "
            f"{first.query_id!r}: {first.message}; run again to import only those that are missing"
        )
        return Problem(filled.about.name, problem)
    return _corpus(filled.resource, filled.about, "built", filled.imported, tuple(failures))


def reused_corpus(resource: str, about: CorpusDescription, failures: Sequence[Failure], documents: int) -> BuiltCorpus:
    """The result for a corpus that was complete before."""
    counted = replace(about, files=documents - len(failures), failed=len(failures))
    return _corpus(resource, counted, "reused", 0, tuple(failures))


def _corpus(
    resource: str, about: CorpusDescription, state: str, imported: int, failures: tuple[Failure, ...]
) -> BuiltCorpus:
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


@dataclass(frozen=True)
class CorpusUse:
    """A corpus, and the staged documents from which it was built."""

    location: str
    identity: str
    folders: tuple[str, ...]
    written: str  # when this was written, in ISO 8601
    failed: Mapping[str, str] = field(default_factory=dict)


_FORM = TypeAdapter(CorpusUse)


class Uses:
    """The uses of a staging folder: an object STAGING/corpora/IDENTITY.json for each corpus.

    It is written before the first document of a corpus is uploaded, and deleted after the corpus. So if no object names
    a folder of documents, no corpus needs it, in any project and region.
    """

    def __init__(self, staging: str) -> None:
        self._objects, self._staged = Objects(staging), StagedFiles(staging.rstrip("/"), ())

    def save(self, use: CorpusUse) -> None:
        self._objects.put(
            self._place(use.identity), json.dumps(_FORM.dump_python(use, mode="json"), ensure_ascii=False).encode()
        )

    def failed(self, identity: str) -> Mapping[str, str]:
        content = self._objects.read(self._place(identity))
        return {} if content is None else _parse_use(content, self._place(identity)).failed

    def needless(self, location: str, gone: Collection[str], there: Collection[str]) -> tuple[list[str], list[str]]:
        """The documents and uses that nothing needs once some corpora are deleted."""
        now = datetime.now(UTC)
        ended, needed = [], set[str]()
        for uri in sorted(self._objects.names(self._folder)):
            if (content := self._objects.read(uri)) is None:
                continue
            use = _parse_use(content, uri)
            is_needed = use.identity in there or datetime.fromisoformat(use.written) > now - _LONGEST_UNMADE
            if use.location == location and (use.identity in gone or not is_needed):
                ended.append(use)
            else:
                needed |= {*use.folders}
        folders = {folder for use in ended for folder in use.folders} - needed
        places = (f"{self._staged.staging}/documents/{folder}" for folder in sorted(folders))
        documents = [uri for place in places for uri in sorted(self._objects.names(place))]
        return documents, [self._place(use.identity) for use in ended]

    def delete(self, documents: Sequence[str], uses: Sequence[str], resources: Sequence[str] = ()) -> None:
        """Delete documents, uses, and the results of imports into some corpora."""
        results = [uri for resource in resources for uri in sorted(self._objects.names(self._staged.results(resource)))]
        self._objects.delete([*results, *documents])
        self._objects.delete(list(uses))  # last: until then, the documents belong to a corpus

    @property
    def _folder(self) -> str:
        return f"{self._staged.staging}/corpora"

    def _place(self, identity: str) -> str:
        return f"{self._folder}/{identity[:16]}.json"


def _parse_use(content: bytes, place: str) -> CorpusUse:
    try:
        return _FORM.validate_json(content)
    except ValidationError as error:
        problem = "is not what rankbeam wrote; delete it, if no corpus needs its documents"
        raise InputError(problem, path=place) from error


def reasons_of(staging: str, identity: str) -> Mapping[str, str]:
    """Recorded reasons why documents of a corpus could not be imported; empty if its staging folder cannot be read."""
    try:
        return Uses(staging).failed(identity) if staging else {}
    except InputError:
        return {}
