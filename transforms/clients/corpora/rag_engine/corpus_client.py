"""The corpora of one project and region, and all operations on them, at the pace of their quota.

The process that submits a pipeline makes the calls before the pipeline begins: an import may take hours, and Beam would
think that a bundle that only waits has hung.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from rankbeam.transforms.clients.calls.fanout import SingleService
from rankbeam.transforms.clients.clock import SYSTEM_CLOCK, Clock
from rankbeam.transforms.clients.corpora.lists import DataWork
from rankbeam.transforms.clients.corpora.rag_engine import work
from rankbeam.transforms.clients.corpora.rag_engine.claims import end_use, register_use
from rankbeam.transforms.clients.corpora.rag_engine.data_api import SERVICE, DataApi, ListedFile, StartedOperation
from rankbeam.transforms.clients.corpora.rag_engine.description import CorpusDescription
from rankbeam.transforms.clients.corpora.rag_engine.importing import FilledCorpus, Track, fill_corpora, lacking_files
from rankbeam.transforms.clients.corpora.rag_engine.staging import StagedFiles
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.clients.ledger.leases.lease import Holder
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.calls.steps import Steps, Usage, results_or_raise
from rankbeam.transforms.records.errors import CallError

Value = TypeVar("Value")
Watch = Callable[[Any], None]  # called with the value of each answer
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
        self, needed: Sequence[work.NeededCorpus] = (), watch: Watch | None = None
    ) -> tuple[work.ExistingCorpus, ...]:
        """All of rankbeam's corpora, preferred ones first, after imports into needed ones have ended."""
        return self._one(work.find_corpora, needed, watch)

    def files(self, corpus: str) -> tuple[ListedFile, ...]:
        return self._one(work.listed_files, corpus)

    def locations(self) -> tuple[str, ...]:
        return self._one(work.listed_locations, None)

    def create(self, needed: Sequence[work.NeededCorpus]) -> "list[str | CallError]":
        """Create corpora; returns for each the name of the resource, or the error."""
        return self._done(partial(work.create_corpus, self.api.location), needed)

    def fill(self, tracks: Sequence[Track], watch: Watch, report: Callable[[str], None]) -> list[FilledCorpus]:
        """Import files, into one corpus of each track at a time."""
        filled = self._done(partial(fill_corpora, self.api.location, report), tracks, watch)
        return list(chain.from_iterable(results_or_raise(filled)))

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

    def _done(
        self, steps: Callable[[Any], Steps[Value]], items: Sequence[Any], watch: Watch | None = None
    ) -> "list[Value | CallError]":
        return self._alone.done(DataWork(self.api, SERVICE, work.STAGE, steps, watch), items)

    def _one(self, steps: Callable[[Any], Steps[Value]], item: Any, watch: Watch | None = None) -> Value:
        value: Value = self._alone.one(DataWork(self.api, SERVICE, work.STAGE, steps, watch), item)
        return value

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
