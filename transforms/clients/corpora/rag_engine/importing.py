"""The work that imports files into corpora, one corpus after another, and verifies that all files are there.

missing files ─► batches of ≤ 10,000 ─► import ─► wait ─► all imported? ─ yes ─► complete
      ▲                                                        │ no
      └──────────── list the corpus' files ◄───────────────────┘  at most three times: then the rest has failed
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain

from rankbeam.transforms.clients.corpora.rag_engine import work
from rankbeam.transforms.clients.corpora.rag_engine.claims import claim_corpus, is_claim
from rankbeam.transforms.clients.corpora.rag_engine.data_api import Operation
from rankbeam.transforms.clients.corpora.rag_engine.description import CorpusDescription
from rankbeam.transforms.clients.corpora.rag_engine.staging import StagedFiles
from rankbeam.transforms.clients.ledger.leases.lease import Holder
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.records.calls.quota import ImportQuota
from rankbeam.transforms.records.calls.steps import Steps, pause
from rankbeam.transforms.records.errors import CallError, FailureKind

MOST_FILES = 10_000  # the most files that one import takes
_MOST_IMPORTS = 3  # most imports of one file by one run
_MOST_LOST = 3
_LOOK_AGAIN_S = (1.0, 2.0, 4.0, 8.0)
NO_REASON = "it was not imported, and the service gives no reason"  # reason of a file's failure if nothing says more


@dataclass(frozen=True)
class UnfilledCorpus:
    """A corpus whose files are to be imported."""

    needed: work.NeededCorpus
    resource: str
    staged: StagedFiles
    without_text: int = 0
    distrusted: CorpusDescription | None = None

    def suffices(self, about: CorpusDescription) -> bool:
        return about.complete and about.failed <= self.needed.most_failures and about != self.distrusted


@dataclass(frozen=True)
class FilledCorpus:
    """A corpus after its files were imported."""

    about: CorpusDescription
    resource: str
    imported: int = 0
    failed: Mapping[str, str] = field(default_factory=dict)
    sinks: tuple[str, ...] = ()
    error: CallError | None = None  # None if the work came to its end
    by_others: bool = False


@dataclass(frozen=True)
class Track:
    """Corpora that are filled one after another, so that a track never has more than one import."""

    fillings: tuple[UnfilledCorpus, ...]
    embeddings_per_minute: int
    me: Holder
    stuck_s: float = work.STUCK_S


def tracks(fillings: Sequence[UnfilledCorpus], quota: ImportQuota, me: Holder) -> list[Track]:
    """Divide corpora among tracks; tracks with the same model share its embedding quota evenly."""
    most, budget = min(quota.concurrent_calls, len(fillings)), quota.embeddings_per_minute
    largest_first = sorted(fillings, key=lambda filling: -filling.staged.files)
    models = list(grouped((filling.needed.parameters.embedding_model, filling) for filling in largest_first).values())
    if len(models) >= most:  # each model is in one track, so that no two imports at a time share a quota
        dealt = [(tuple(chain.from_iterable(models[track::most])), budget) for track in range(most)]
    else:
        shares = [1] * len(models)
        for _ in range(most - len(models)):
            free = [i for i, model in enumerate(models) if shares[i] < min(len(model), budget)]
            if free:
                shares[max(free, key=lambda i: len(models[i]) / shares[i])] += 1
        dealt = [
            (tuple(model[track::number]), budget // number)
            for model, number in zip(models, shares, strict=True)
            for track in range(number)
        ]
    return [Track(staged, share, me, quota.give_up_after_s) for staged, share in dealt]


def fill_corpora(location: str, report: Callable[[str], None], track: Track) -> Steps[tuple[FilledCorpus, ...]]:
    """Import files into the corpora of a track; an error only ends the work on one corpus."""
    filled = []
    for filling in track.fillings:
        file_import = _Import(location, report, filling, track)
        try:
            filled.append((yield from file_import.steps()))
        except CallError as error:
            filled.append(FilledCorpus(filling.needed.about, filling.resource, error=error))
            with suppress(CallError):  # the claim ends with this process
                yield from file_import.released()
    return tuple(filled)


def lacking_files(resource: str, staged: StagedFiles) -> Steps[Mapping[str, str]]:
    """The files that a corpus lacks, with the service's reasons."""
    names = staged.names()
    lacking = dict.fromkeys(sorted(names), NO_REASON)
    for listed in (yield from work.listed_files(resource)):
        for name in staged.names_of(listed) & names:
            if listed.state == "ERROR":
                lacking[name] = listed.error or NO_REASON
            else:
                lacking.pop(name, None)
    return lacking


class _Import:
    def __init__(self, location: str, report: Callable[[str], None], filling: UnfilledCorpus, track: Track) -> None:
        self._location, self._report, self._filling, self._track = location, report, filling, track
        self._needed = filling.needed
        self._claimed: CorpusDescription | None = None
        config, limit = self._needed.parameters.import_config(), track.embeddings_per_minute
        self._config = {**config, "max_embedding_requests_per_min": limit}
        self._next, self._sinks = len(self._needed.imports), list[str]()
        self._reasons: dict[str, str] = {}

    def steps(self) -> Steps[FilledCorpus]:
        staged, resource, me = self._filling.staged, self._filling.resource, self._track.me
        try:
            about = yield from claim_corpus(resource, me, self._filling.suffices, self._report)
        except CallError as error:
            if error.kind is not FailureKind.NOT_FOUND:
                raise
            return FilledCorpus(self._needed.about, resource, error=error, by_others=True)
        if not is_claim(about, me):
            return FilledCorpus(about, resource, by_others=True)
        self._claimed = about
        missing: AbstractSet[str] = yield from self._missing_files()
        before = staged.files - len(missing)
        for _ in range(_MOST_IMPORTS):
            is_sure = True
            for uris, files in batches(staged, missing):
                operation = yield from self._import(uris)
                is_sure &= operation.imported == files
            if not missing:
                break
            missing = frozenset() if is_sure else (yield from self._missing_files())
        failed = {name: self._reasons.get(name, NO_REASON) for name in sorted(missing)}
        files = staged.files - len(failed)
        failures = len(failed) + self._filling.without_text
        users = {**about.users, **self._needed.about.users}
        final = replace(self._needed.about, complete=True, files=files, failed=failures, claim=None, users=users)
        if failures <= self._needed.most_failures:
            yield from work.update_corpus(resource, final)
        else:
            yield from self.released()
        return FilledCorpus(final, resource, files - before, failed, tuple(self._sinks))

    def released(self) -> Steps[None]:
        """Give up the claim if this run has not finished, so that other runs can import."""
        if self._claimed is not None:
            yield from work.update_corpus(self._filling.resource, replace(self._claimed, claim=None))

    def _beat(self) -> Steps[None]:
        """Show runs on other machines that this run is alive; if the service is busy, that shows it, too."""
        if self._claimed is not None and self._claimed.claim is not None:
            beat = str(int(self._claimed.claim["beat"]) + 1)
            self._claimed = replace(self._claimed, claim={**self._claimed.claim, "beat": beat})
            yield [work.update_request(self._filling.resource, self._claimed)]

    def _missing_files(self) -> Steps[AbstractSet[str]]:
        lacking = yield from lacking_files(self._filling.resource, self._filling.staged)
        self._reasons |= {name: reason for name, reason in lacking.items() if reason != NO_REASON}
        return lacking.keys()

    def _import(self, uris: Sequence[str]) -> Steps[Operation]:
        operation = yield from work.wait_for_end((yield from self._start(uris)), self._track.stuck_s, self._beat)
        if (error := operation.error) is not None and not error.kind.is_transient:
            raise error
        return operation

    def _start(self, uris: Sequence[str]) -> Steps[str]:
        resource = self._filling.resource
        for _ in range(_MOST_LOST):
            number, self._next = self._next, self._next + 1
            key = work.operation_key("import", self._location, self._needed.about.identity, number)
            sink = self._filling.staged.result(self._track.me.run_id, resource, number)
            config = {
                **self._config,
                "gcs_source": {"uris": list(uris)},
                "import_result_gcs_sink": {"output_uri_prefix": sink},
            }
            started = yield from work.patiently(work.request("import", key, corpus=resource, config=config), _is_full)
            self._sinks.append(sink)
            if name := str(started.operation):
                return name
            for seconds in _LOOK_AGAIN_S:
                yield [pause(seconds)]
                for operation in (yield from work.running_imports(resource)):
                    return operation  # no other run imports into a corpus that this run has claimed
        raise CallError(FailureKind.UNAVAILABLE, f"the answers were lost: {started.unsure}")


def _is_full(error: BaseException) -> bool:
    """Return whether an import was refused because others are running."""
    return work.is_busy(error) or (isinstance(error, CallError) and error.kind is FailureKind.QUOTA)


def batches(staged: StagedFiles, missing: AbstractSet[str]) -> Iterator[tuple[list[str], int]]:
    """URIs of missing files, and their numbers of files; a folder of uploads that are all missing is one URI."""
    uris: list[str] = []
    files = 0
    for folder in staged.folders:
        lacking = [name for name in folder.names if name in missing]
        if files + len(lacking) > MOST_FILES:
            yield uris, files
            uris, files = [], 0
        files += len(lacking)
        place = staged.uri(folder)
        is_whole = len(lacking) == len(folder.names) and not staged.root
        uris += [place] if is_whole else [f"{place}/{name}" for name in lacking]
    if files:
        yield uris, files
