"""The corpora of one project and region, and everything that is done to them, at the pace of their quota.

The calls are made by the process that submits a pipeline, before the pipeline begins: an import may take hours, and a
bundle of Beam's that only waits would be taken for one that hangs.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rankbeam.transforms.clients.calls.alone import Alone
from rankbeam.transforms.clients.clock import SYSTEM_CLOCK, Clock
from rankbeam.transforms.clients.corpora.rag_engine.about import About
from rankbeam.transforms.clients.corpora.rag_engine.claims import EndUse, RegisterUse
from rankbeam.transforms.clients.corpora.rag_engine.data_api import SERVICE, DataApi, ListedFile, Operation, Started
from rankbeam.transforms.clients.corpora.rag_engine.importing import Filled, FindLacking, ImportFiles, Track
from rankbeam.transforms.clients.corpora.rag_engine.staged import Staged
from rankbeam.transforms.clients.corpora.rag_engine.work import (
    CreateCorpus,
    DeleteCorpus,
    Existing,
    FindCorpora,
    ListFiles,
    ListLocations,
    NeededCorpus,
    UpdateCorpus,
    operation_key,
)
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.clients.ledger.leases import Holder
from rankbeam.transforms.records.calls.outcomes import Usage
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.errors import CallError

DATA_QUOTA = Quota(requests_per_minute=60, timeout_s=60.0)
"""The documented quota of a project and region: https://cloud.google.com/vertex-ai/generative-ai/docs/quotas"""
_MOST_OPERATIONS = 64


class CorpusClient:
    """Client of the corpora of one project and region."""

    def __init__(self, api: DataApi, ledger: Ledger, quota: Quota = DATA_QUOTA, clock: Clock = SYSTEM_CLOCK) -> None:
        self.api, self.clock, self._ledger = api, clock, ledger
        self._alone = Alone(api, f"{SERVICE} {api.location}", quota, ledger, clock)
        self.usage: list[Usage] = self._alone.usage
        self.warnings: list[str] = self._alone.warnings

    def find(
        self, needed: Sequence[NeededCorpus] = (), watch: Callable[[Operation], None] = lambda _: None
    ) -> tuple[Existing, ...]:
        """All corpora of rankbeam's, the preferred ones first, after imports into needed ones have ended."""
        existing: tuple[Existing, ...] = self._alone.one(FindCorpora(self.api, watch), needed)
        return existing

    def files(self, corpus: str) -> tuple[ListedFile, ...]:
        """All files of a corpus, rankbeam's or another one."""
        files: tuple[ListedFile, ...] = self._alone.one(ListFiles(self.api), corpus)
        return files

    def locations(self) -> tuple[str, ...]:
        """All locations of the project, with RAG Engine or without."""
        locations: tuple[str, ...] = self._alone.one(ListLocations(self.api), None)
        return locations

    def create(self, needed: Sequence[NeededCorpus]) -> "list[str | CallError]":
        """Make corpora; returns for each of them the name of the resource, or why it could not be made."""
        return self._alone.done(CreateCorpus(self.api), needed)

    def fill(self, tracks: Sequence[Track], work: ImportFiles) -> list[Filled]:
        """Import files, one corpus of each track at a time."""
        return [filled for filling in self._alone.done(work, tracks) for filled in _value(filling)]

    def lacking(self, resources: Sequence[str], staged: Staged) -> "list[Mapping[str, str] | CallError]":
        """For each corpus the files that it lacks, with the reason, or why these are not known."""
        return self._alone.done(FindLacking(self.api), [(resource, staged) for resource in resources])

    def update(self, corpora: Sequence[tuple[str, About]]) -> "list[str | CallError]":
        return self._alone.done(UpdateCorpus(self.api), corpora)

    def register(self, resources: Sequence[str], me: Holder) -> "list[str | CallError]":
        """Write into corpora with `keep: run` that a run needs them until it ends."""
        return self._alone.done(RegisterUse(self.api, me=me), resources)

    def end_use(self, resources: Sequence[str], me: Holder) -> "list[tuple[str, ...] | CallError]":
        """Delete corpora that no other run needs; returns for each the runs that need it, none where it is deleted."""
        return self._alone.done(EndUse(self.api, me=me), resources)

    def delete(self, resources: Sequence[str]) -> "list[str | CallError]":
        """Delete corpora, which must be rankbeam's; returns for each its name, or why it is still there."""
        return self._alone.done(DeleteCorpus(self.api), resources)

    def operations(self, kind: str, identity: str) -> tuple[str, ...]:
        """The operations that earlier runs began on a corpus, as the ledger knows them; "" for one of unknown name."""
        keys = [operation_key(kind, self.api.location, identity, number) for number in range(_MOST_OPERATIONS)]
        known = {entry.key: entry.answer for entry in self._ledger.find(dict.fromkeys(keys))}
        names = []
        for key in keys:
            if key not in known:
                break
            started = self.api.read(known[key])
            names.append(started.operation if isinstance(started, Started) else "")
        return tuple(names)


def _value(outcome: Any) -> Any:
    if isinstance(outcome, CallError):
        raise outcome
    return outcome
