"""The corpora of one project and region, and all operations on them, at the pace of their quota.

The process that submits a pipeline makes the calls before the pipeline begins: an import may take hours, and Beam would
think that a bundle that only waits has hung.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from rankbeam.transforms.clients.calls.fanout import SingleService
from rankbeam.transforms.clients.clock import SYSTEM_CLOCK, Clock
from rankbeam.transforms.clients.corpora.rag_engine import work
from rankbeam.transforms.clients.corpora.rag_engine.claims import end_use, register_use
from rankbeam.transforms.clients.corpora.rag_engine.data_api import (
    SERVICE,
    DataApi,
    ListedFile,
    Operation,
    StartedOperation,
)
from rankbeam.transforms.clients.corpora.rag_engine.description import CorpusDescription
from rankbeam.transforms.clients.corpora.rag_engine.importing import FilledCorpus, ImportFiles, Track, lacking_files
from rankbeam.transforms.clients.corpora.rag_engine.staging import StagedFiles
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.clients.ledger.leases.lease import Holder
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.calls.steps import Steps, Usage
from rankbeam.transforms.records.errors import CallError

DATA_QUOTA = Quota(requests_per_minute=60, timeout_s=60.0)
"""The documented quota of a project and region: https://cloud.google.com/vertex-ai/generative-ai/docs/quotas"""
_MOST_OPERATIONS = 64


class CorpusClient:
    """A client for the corpora of one project and region."""

    def __init__(self, api: DataApi, ledger: Ledger, quota: Quota = DATA_QUOTA, clock: Clock = SYSTEM_CLOCK) -> None:
        self.api, self.clock, self._ledger = api, clock, ledger
        self._alone = SingleService(api, f"{SERVICE} {api.location}", quota, ledger, clock)
        self.usage: list[Usage] = self._alone.usage
        self.warnings: list[str] = self._alone.warnings

    def find(
        self, needed: Sequence[work.NeededCorpus] = (), watch: Callable[[Operation], None] = lambda _: None
    ) -> tuple[work.ExistingCorpus, ...]:
        """All of rankbeam's corpora, preferred ones first, after imports into needed ones have ended."""
        existing: tuple[work.ExistingCorpus, ...] = self._alone.one(work.FindCorpora(self.api, watch), needed)
        return existing

    def files(self, corpus: str) -> tuple[ListedFile, ...]:
        files: tuple[ListedFile, ...] = self._alone.one(work.DataSteps(self.api, steps=work.listed_files), corpus)
        return files

    def locations(self) -> tuple[str, ...]:
        locations: tuple[str, ...] = self._alone.one(work.DataSteps(self.api, steps=work.listed_locations), None)
        return locations

    def create(self, needed: Sequence[work.NeededCorpus]) -> "list[str | CallError]":
        """Create corpora; returns for each the name of the resource, or the error."""
        return self._alone.done(work.CreateCorpus(self.api), needed)

    def fill(self, tracks: Sequence[Track], importing: ImportFiles) -> list[FilledCorpus]:
        """Import files, into one corpus of each track at a time."""
        done: list[FilledCorpus] = []
        for outcome in self._alone.done(importing, tracks):
            if isinstance(outcome, CallError):
                raise outcome
            done += outcome
        return done

    def lacking(self, resources: Sequence[str], staged: StagedFiles) -> "list[Mapping[str, str] | CallError]":
        return self._done(lambda resource: lacking_files(resource, staged), resources)

    def update(self, corpora: Sequence[tuple[str, CorpusDescription]]) -> "list[str | CallError]":
        return self._done(lambda corpus: work.update_corpus(*corpus), corpora)

    def register(self, resources: Sequence[str], me: Holder) -> "list[str | CallError]":
        return self._done(partial(register_use, me), resources)

    def end_use(self, resources: Sequence[str], me: Holder) -> "list[tuple[str, ...] | CallError]":
        return self._done(partial(end_use, me), resources)

    def delete(self, resources: Sequence[str]) -> "list[str | CallError]":
        return self._done(work.delete_corpus, resources)

    def _done(self, steps: Callable[[Any], Steps[Any]], items: Sequence[Any]) -> list[Any]:
        return self._alone.done(work.DataSteps(self.api, steps=steps), items)

    def operations(self, kind: str, identity: str) -> tuple[str, ...]:
        """The operations that earlier runs began on a corpus, from the ledger; "" for one with an unknown name."""
        keys = [work.operation_key(kind, self.api.location, identity, number) for number in range(_MOST_OPERATIONS)]
        known = {entry.key: entry.answer for entry in self._ledger.find(dict.fromkeys(keys))}
        names = []
        for key in keys:
            if key not in known:
                break
            started = self.api.read(known[key])
            names.append(started.operation if isinstance(started, StartedOperation) else "")
        return tuple(names)
