"""Corpora that need staged documents: one object for each corpus, beside the documents.

    STAGING/corpora/0123456789abcdef.json

It is written before the first document of a corpus is uploaded, and deleted after the corpus: folders of documents that
no object names are needed by none, in whatever project and region the corpora are.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from pydantic import TypeAdapter, ValidationError

from rankbeam.transforms.clients.corpora.rag_engine.objects import Objects
from rankbeam.transforms.clients.corpora.rag_engine.staged import Staged
from rankbeam.transforms.records.errors import InputError

_LONGEST_UNMADE = timedelta(days=1)  # between the first upload and the corpus


@dataclass(frozen=True)
class CorpusUse:
    """A corpus, and the staged documents that it was built from."""

    location: str
    identity: str
    folders: tuple[str, ...]
    written: str  # when, in ISO 8601
    failed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Needless:
    """Objects that nothing needs any more."""

    documents: tuple[str, ...]
    uses: tuple[str, ...]


_FORM = TypeAdapter(CorpusUse)


class Uses:
    """The uses of a staging folder."""

    def __init__(self, staging: str) -> None:
        self._objects, self._staged = Objects(staging), Staged(staging.rstrip("/"), ())

    def save(self, use: CorpusUse) -> None:
        """Write a use, before any document is uploaded for it."""
        self._objects.put(
            self._place(use.identity), json.dumps(_FORM.dump_python(use, mode="json"), ensure_ascii=False).encode()
        )

    def failed(self, identity: str) -> Mapping[str, str]:
        """Known reasons why documents of a corpus could not be imported."""
        content = self._objects.read(self._place(identity))
        return {} if content is None else _read(content, self._place(identity)).failed

    def needless(self, location: str, gone: Collection[str], there: Collection[str]) -> Needless:
        """Objects that nothing needs once some corpora are deleted."""
        now = datetime.now(UTC)
        ended, needed = [], set[str]()
        for uri in sorted(self._objects.names(self._folder)):
            if (content := self._objects.read(uri)) is None:
                continue
            use = _read(content, uri)
            is_left = use.identity in there or datetime.fromisoformat(use.written) > now - _LONGEST_UNMADE
            if use.location == location and (use.identity in gone or not is_left):
                ended.append(use)
            else:
                needed |= {*use.folders}
        folders = {folder for use in ended for folder in use.folders} - needed
        places = (f"{self._staged.staging}/documents/{folder}" for folder in sorted(folders))
        documents = [uri for place in places for uri in sorted(self._objects.names(place))]
        return Needless(tuple(documents), tuple(self._place(use.identity) for use in ended))

    def delete(self, needless: Needless, resources: Sequence[str], *, keep_documents: bool = False) -> None:
        """Delete what nothing needs, and the results of imports."""
        results = [uri for resource in resources for uri in sorted(self._objects.names(self._staged.results(resource)))]
        documents = () if keep_documents else needless.documents
        self._objects.delete([*results, *documents])
        self._objects.delete(list(needless.uses))  # last: as long as it is there, documents belong to something

    @property
    def _folder(self) -> str:
        return f"{self._staged.staging}/corpora"

    def _place(self, identity: str) -> str:
        return f"{self._folder}/{identity[:16]}.json"


def _read(content: bytes, place: str) -> CorpusUse:
    try:
        return _FORM.validate_json(content)
    except ValidationError as error:
        problem = "is not what rankbeam wrote; delete it, if no corpus needs its documents"
        raise InputError(problem, path=place) from error


def reasons_of(staging: str, identity: str) -> Mapping[str, str]:
    """Reasons why documents of a corpus could not be imported; none if its staging folder is gone."""
    try:
        return Uses(staging).failed(identity) if staging else {}
    except InputError:
        return {}
