"""Build the corpora of an experiment in one project and region: what exists is reused, the missing files are imported.

documents ─► find ─┬─ complete ───────────────────────────────────────────────────► use
                   └─ incomplete, none ─► create ─► stage files ─► import, verify ───┘

Corpora are created before staging: if the service refuses the embedding model, nothing has been uploaded yet.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from rankbeam.transforms.clients.corpora.rag_engine.claims import claimant, has_ended, holder_of, is_claim, user_of
from rankbeam.transforms.clients.corpora.rag_engine.corpus_client import CorpusClient
from rankbeam.transforms.clients.corpora.rag_engine.data_api import Operation
from rankbeam.transforms.clients.corpora.rag_engine.description import RUN, CorpusDescription, expiry
from rankbeam.transforms.clients.corpora.rag_engine.importing import FilledCorpus, UnfilledCorpus, tracks
from rankbeam.transforms.clients.corpora.rag_engine.objects import Objects
from rankbeam.transforms.clients.corpora.rag_engine.parameters import RagEngineCorpus
from rankbeam.transforms.clients.corpora.rag_engine.results import (
    KIND,
    CorpusUse,
    Problem,
    Uses,
    failed_documents,
    failures_of,
    filled_corpus,
    reasons_of,
    reused_corpus,
)
from rankbeam.transforms.clients.corpora.rag_engine.staging import StagedDocuments, has_changed, upload
from rankbeam.transforms.clients.corpora.rag_engine.work import ExistingCorpus, NeededCorpus, preferred_corpora
from rankbeam.transforms.records.calls.quota import ImportQuota
from rankbeam.transforms.records.corpora import BuiltCorpus, corpus_identity
from rankbeam.transforms.records.errors import CallError, Failure, FailureKind, InputError, pluralize

MOST_LISTED = 10_000  # the most files of a complete corpus that each run lists
_MOST_REBUILDS = 3
_REPORT_EVERY_S = 55.0  # polls are a minute apart
Lacked = Mapping[str, str] | CallError  # the files that a corpus lacks, with reasons; or why they are unknown


@dataclass(frozen=True)
class Request:
    """A corpus that an experiment needs."""

    name: str
    parameters: RagEngineCorpus

    @property
    def specification(self) -> dict[str, object]:
        return {"type": KIND, **self.parameters.specification()}

    def identity(self, documents: StagedDocuments) -> str:
        return corpus_identity(self.specification, documents.fingerprint)

    def most_failures(self, documents: StagedDocuments) -> int:
        return self.parameters.most_failures(documents.fingerprint.documents)


def _refuse_shared(requests: Iterable[Request]) -> None:
    """Refuse corpora that would share an index of a user's: each would find the other's chunks."""
    owned = set[str]()
    for request in requests:
        database = request.parameters.database
        index = None if isinstance(database, str) else database.resource
        if index in owned:
            problem = f"the index {index} can hold one corpus, and several would be built there"
            raise InputError(f"corpora: {request.name}: {problem}; name an index for each, or remove the grid")
        owned |= set() if index is None else {index}


class Builder:
    """Builds corpora."""

    def __init__(
        self,
        client: CorpusClient,
        documents: StagedDocuments,
        quota: ImportQuota,
        run: str,
        now: datetime,
        report: Callable[[str], None],
    ) -> None:
        self._client, self._documents, self._quota = client, documents, quota
        self._now, self._report = now, report
        self._me = claimant(run, now)
        self._rebuilds = _MOST_REBUILDS
        self._shown: dict[str, float] = {}
        self._new: dict[str, str] = {}  # identities of corpora created by this object, by resource

    def build(self, requests: Sequence[Request]) -> list[BuiltCorpus | Problem]:
        named = {request.identity(self._documents): request for request in requests}
        _refuse_shared(named.values())
        needed = {identity: self._needed_corpus(identity, request) for identity, request in named.items()}
        before = self._remove_duplicates(self._client.find(tuple(needed.values()), self._watch), needed)
        candidates = {
            identity: corpus for identity, corpus in before.items() if corpus.suffices(needed[identity].most_failures)
        }
        complete, lacked = self._verify_corpora(candidates)
        self._report(f"corpora: {len(needed)} needed, {len(complete)} of them exist")
        lacking = {identity: corpus for identity, corpus in needed.items() if identity not in complete}
        distrusted = {identity: corpus.about for identity, corpus in candidates.items()}
        filled, problems = self._import(lacking, before, distrusted) if lacking else ([], [])
        if problems:
            return problems
        results = [self._result(corpus, needed[corpus.about.identity]) for corpus in filled if not corpus.by_others]
        by_others = {corpus.about.identity: corpus for corpus in filled if corpus.by_others}
        finished = {
            identity: ExistingCorpus(other.resource, other.about)
            for identity, other in by_others.items()
            if other.error is None
        }
        lacked |= self._verify_corpora(finished)[1]
        used, gone = self._reuse({**complete, **finished}, lacked, needed)
        deleted = [identity for identity in by_others if identity not in finished]
        results += used
        if not self._rebuilds:
            results += [self._result(by_others[identity], needed[identity]) for identity in deleted]
        elif again := [*gone, *deleted]:  # another run has ended, and deleted the corpus
            self._rebuilds -= 1
            results += self.build([named[identity] for identity in again])
        return results

    def _import(
        self,
        lacking: Mapping[str, NeededCorpus],
        before: Mapping[str, ExistingCorpus],
        distrusted: Mapping[str, CorpusDescription],
    ) -> "tuple[list[FilledCorpus], list[BuiltCorpus | Problem]]":
        """Create corpora that do not exist, and import the files that corpora lack; or the problems that prevent it."""
        staging = {identity: needed.about.staging for identity, needed in lacking.items()}
        for folder in sorted(set(staging.values())):
            Objects(folder).probe()
        created, problems = self._create({key: needed for key, needed in lacking.items() if key not in before})
        if problems:
            return [], problems
        self._stage(staging)
        names = {key: before[key].resource for key in lacking if key in before} | created
        without_text = len(self._documents.without_text)
        fillings = [
            UnfilledCorpus(needed, names[key], self._documents.staged(staging[key]), without_text, distrusted.get(key))
            for key, needed in lacking.items()
        ]
        filled = self._client.fill(tracks(fillings, self._quota, self._me), self._watch, self._report)
        if not has_changed(self._documents):
            return filled, []
        self._discard_corpora(filled)
        problem = f"files in {self._documents.path} have changed during the import; run again"
        return [], [Problem(needed.about.name, problem) for needed in lacking.values()]

    def _needed_corpus(self, identity: str, request: Request) -> NeededCorpus:
        keep = request.parameters.keep
        about = CorpusDescription(
            identity,
            request.name,
            str(self._documents.fingerprint),
            request.specification,
            self._me.run_id,
            self._now.isoformat(timespec="seconds"),
            keep,
            expiry(keep, self._now),
            staging=request.parameters.staging,
            claim=asdict(self._me),
            users=user_of(self._me) if keep == RUN else {},
        )
        creations, imports = (self._client.operations(kind, identity) for kind in ("create", "import"))
        return NeededCorpus(about, request.parameters, creations, imports, request.most_failures(self._documents))

    def _use(self, identity: str, failed: Mapping[str, str]) -> CorpusUse:
        written = self._now.isoformat(timespec="seconds")
        return CorpusUse(self._client.api.location, identity, self._documents.uploaded_folders, written, failed)

    def _stage(self, folders: Mapping[str, str]) -> None:
        """Upload documents; on failure, roll back the corpora and files created here."""
        try:
            for folder in sorted(set(folders.values())):
                uses = Uses(folder)
                for identity in (identity for identity, staging in folders.items() if staging == folder):
                    uses.save(self._use(identity, {}))
                uploaded = upload(self._documents, folder)
                self._report(f"corpora: {pluralize(uploaded, 'document')} uploaded to {folder}")
        except InputError:
            mine = {corpus.resource for corpus in self._client.find() if is_claim(corpus.about, self._me)}
            self._client.delete(sorted(mine & self._new.keys()))
            for folder in sorted(set(folders.values())):
                self._unstage(folder)
            raise

    def _unstage(self, folder: str) -> None:
        """Delete files staged only for corpora that are rolled back; report leftovers."""
        try:
            there = {corpus.about.identity for corpus in self._client.find()}
            uses = Uses(folder)
            gone = set(self._new.values()) - there
            uses.delete(*uses.needless(self._client.api.location, gone, there))
        except (CallError, InputError) as error:
            self._report(f"corpora: documents that were uploaded just now are still there: {error}")

    def _create(self, missing: Mapping[str, NeededCorpus]) -> "tuple[dict[str, str], list[BuiltCorpus | Problem]]":
        """Create corpora; returns their names. If one is refused, the others, which are still empty, are deleted."""
        outcomes = dict(zip(missing, self._client.create(tuple(missing.values())), strict=True))
        refused = {identity: error for identity, error in outcomes.items() if isinstance(error, CallError)}
        created = {identity: name for identity, name in outcomes.items() if isinstance(name, str)}
        if refused:
            self._client.delete(list(created.values()))
            return {}, [Problem.of(missing[identity].about.name, error) for identity, error in refused.items()]
        self._new |= {name: identity for identity, name in created.items()}
        if created:
            chosen = self._remove_duplicates(self._client.find(), created)
            created |= {identity: corpus.resource for identity, corpus in chosen.items()}
        return created, []

    def _remove_duplicates(
        self, existing: Sequence[ExistingCorpus], identities: Collection[str]
    ) -> dict[str, ExistingCorpus]:
        """One corpus for each identity; deletes extra ones, which exist if an answer was lost."""
        known = [corpus for corpus in existing if corpus.about.identity in identities]
        chosen = preferred_corpora(known)
        surplus = [corpus for corpus in known if corpus not in chosen.values()]
        unused = [corpus for corpus in surplus if not corpus.about.complete and self._is_ours(corpus)]
        self._client.delete([corpus.resource for corpus in unused])
        return chosen

    def _is_ours(self, existing: ExistingCorpus) -> bool:
        """Return whether no other run that may still be alive imports into a corpus."""
        other = holder_of(existing.about)
        return other is None or is_claim(existing.about, self._me) or has_ended(other, self._me)

    def _discard_corpora(self, filled: Sequence[FilledCorpus]) -> None:
        """Delete corpora whose content is unknown, because their files changed during the import."""
        built = [corpus for corpus in filled if not corpus.by_others]
        self._client.delete([corpus.resource for corpus in built])
        for corpus in built:
            self._unstage(corpus.about.staging)
            objects, staged = Objects(corpus.about.staging), self._documents.staged(corpus.about.staging)
            objects.delete(sorted(objects.names(staged.results(corpus.resource))))

    def _result(self, filled: FilledCorpus, needed: NeededCorpus) -> "BuiltCorpus | Problem":
        if filled.error is not None:
            return Problem.with_corpus(needed.about.name, filled.resource, filled.error)
        staging = needed.about.staging
        objects, staged = Objects(staging), self._documents.staged(staging)
        results = objects.names(staged.results(filled.resource))
        if failed := failed_documents(filled, objects, staged):
            Uses(staging).save(self._use(filled.about.identity, failed))  # for runs that reuse it
        objects.delete(sorted(results))  # including those of killed runs
        failures = failures_of(failed, self._documents)
        return filled_corpus(filled, failures, needed.most_failures)

    def _reuse(
        self, complete: Mapping[str, ExistingCorpus], lacked: Mapping[str, Lacked], needed: Mapping[str, NeededCorpus]
    ) -> "tuple[list[BuiltCorpus | Problem], list[str]]":
        """Use complete corpora; returns the results, and the identities of corpora that were deleted meanwhile."""
        used = {key: corpus.about.used(needed[key].about.keep, self._now) for key, corpus in complete.items()}
        changed = [
            (complete[identity].resource, about)
            for identity, about in used.items()
            if complete[identity].about.ends_before(about)
        ]
        outcomes = dict(zip((name for name, _ in changed), self._client.update(changed), strict=True))
        shared = [complete[identity].resource for identity, about in used.items() if about.keep == RUN]
        outcomes |= zip(shared, self._client.register(shared, self._me), strict=True)
        lacking = {
            identity: files if isinstance(files, CallError) else self._failures(corpus.about, files)
            for identity, corpus in complete.items()
            for files in [lacked.get(identity, {})]
        }
        results: list[BuiltCorpus | Problem] = []
        gone: list[str] = []
        for identity, about in used.items():
            name, resource, failures = needed[identity].about.name, complete[identity].resource, lacking[identity]
            updated = outcomes.get(resource, "")
            errors = [error for error in (failures, updated) if isinstance(error, CallError)]
            if self._rebuilds and any(error.kind is FailureKind.NOT_FOUND for error in errors):
                gone.append(identity)
            elif isinstance(failures, CallError):
                results.append(Problem.with_corpus(name, resource, failures))
            elif isinstance(updated, CallError):
                results.append(Problem.with_corpus(name, resource, updated))
            else:
                results.append(reused_corpus(resource, about, failures, self._documents.fingerprint.documents))
        return results, gone

    def _verify_corpora(
        self, complete: Mapping[str, ExistingCorpus]
    ) -> tuple[dict[str, ExistingCorpus], dict[str, Lacked]]:
        staged = self._documents.staged("")
        listed = list(complete)
        if staged.files > MOST_LISTED:
            listed = [corpus for corpus in listed if complete[corpus].about.failed > len(self._documents.without_text)]
            for other in complete.keys() - listed:
                self._report(f"corpora: {complete[other].resource}: its {staged.files:,} files are not listed")
        resources = [complete[corpus].resource for corpus in listed]
        lacked = dict(zip(listed, self._client.lacking(resources, staged), strict=True))
        verified = {}
        for identity, corpus in complete.items():
            files, known = lacked.get(identity, {}), corpus.about.failed - len(self._documents.without_text)
            if isinstance(files, CallError) or len(files) <= max(0, known):
                verified[identity] = corpus
            else:
                problem = f"lacks {len(files):,} of {pluralize(staged.files, 'file')}, and says that it is complete"
                self._report(f"corpora: {corpus.resource} {problem}; the missing files are imported")
        return verified, lacked

    def _failures(self, about: CorpusDescription, files: Mapping[str, str]) -> tuple[Failure, ...]:
        """The documents that a corpus lacks, with the reasons recorded when files were imported."""
        known = reasons_of(about.staging, about.identity)
        documents = {self._documents.id_of(name): reason for name, reason in files.items()}
        return failures_of({doc_id: known.get(doc_id, reason) for doc_id, reason in documents.items()}, self._documents)

    def _watch(self, operation: Any) -> None:
        if not isinstance(operation, Operation):
            return
        now = self._client.clock.monotonic()
        shown = self._shown.setdefault(operation.name, now)
        if operation.is_import and not operation.done and now - shown >= _REPORT_EVERY_S:
            self._shown[operation.name] = now
            self._report(f"corpora: {operation.name.partition('/operations/')[0]}: {operation.progress}% imported")
