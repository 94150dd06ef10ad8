"""Build the corpora of an experiment in one project and region: what exists is reused, what is missing is imported.

documents ─► find ─┬─ complete ───────────────────────────────────────────────────► use
                   └─ incomplete, none ─► create ─► stage files ─► import, verify ───┘

Corpora are made first, since that shows whether the service takes the embedding model: what it refuses leaves nothing.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from rankbeam.transforms.clients.corpora.rag_engine.about import About, expiry
from rankbeam.transforms.clients.corpora.rag_engine.answers import Operation
from rankbeam.transforms.clients.corpora.rag_engine.importing import Filled, Filling, ImportFiles, tracks
from rankbeam.transforms.clients.corpora.rag_engine.objects import Objects
from rankbeam.transforms.clients.corpora.rag_engine.parameters import RagEngineCorpus
from rankbeam.transforms.clients.corpora.rag_engine.results import (
    KIND,
    Problem,
    failed_documents,
    failures_of,
    filled_corpus,
    reused,
)
from rankbeam.transforms.clients.corpora.rag_engine.site import Site
from rankbeam.transforms.clients.corpora.rag_engine.staged import Documents
from rankbeam.transforms.clients.corpora.rag_engine.uses import Use, Uses
from rankbeam.transforms.clients.corpora.rag_engine.work import Existing, Wanted
from rankbeam.transforms.records.calls.quota import ImportQuota
from rankbeam.transforms.records.corpora import BuiltCorpus, corpus_identity, document_of
from rankbeam.transforms.records.errors import CallError, InputError
from rankbeam.transforms.records.failures import Failure

_REPORT_EVERY_PERCENT = 10


@dataclass(frozen=True)
class Request:
    """A corpus that an experiment needs.

    Attributes:
        name: what the experiment calls it.
        parameters: of it.
    """

    name: str
    parameters: RagEngineCorpus

    @property
    def specification(self) -> dict[str, object]:
        """All that decides its content besides the documents."""
        return {"type": KIND, **self.parameters.specification()}

    def identity(self, documents: Documents) -> str:
        """What identifies it."""
        return corpus_identity(self.specification, documents.fingerprint)

    def most_failures(self, documents: Documents) -> int:
        """How many of the documents it may lack."""
        return self.parameters.most_failures(documents.fingerprint.documents)


@dataclass(frozen=True)
class Built:
    """What came of the corpora of an experiment.

    Attributes:
        corpora: those that can be used.
        problems: why others cannot.
    """

    corpora: tuple[BuiltCorpus, ...]
    problems: tuple[Problem, ...] = ()


class Builder:
    """Builds corpora.

    Args:
        site: where.
        documents: of which.
        quota: of imports.
        run: the id of the run that needs them.
        now: when it began.
        report: takes lines of progress.
    """

    def __init__(
        self,
        site: Site,
        documents: Documents,
        quota: ImportQuota,
        run: str,
        now: datetime,
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._site, self._documents, self._quota = site, documents, quota
        self._run, self._now, self._report = run, now, report
        self._shown: dict[str, int] = {}
        self._new: dict[str, str] = {}  # identities of corpora that were made just now, by resource

    def existing(self, requests: Sequence[Request]) -> dict[str, Existing]:
        """Those of some corpora that exist now, by identity.

        Raises:
            CallError: the service cannot be asked.
        """
        return _preferred(self._site.find(), {each.identity(self._documents) for each in requests})

    def build(self, requests: Sequence[Request]) -> Built:
        """Build corpora, or find them built.

        Raises:
            InputError: documents cannot be staged.
            CallError: the service cannot be asked at all.
        """
        named = {each.identity(self._documents): each for each in requests}
        wanted = {identity: self._wanted(identity, each) for identity, each in named.items()}
        before = self._settled(self._site.find(tuple(wanted.values())), wanted)
        complete = {
            identity: each for identity, each in before.items() if each.suffices(wanted[identity].most_failures)
        }
        self._report(f"corpora: {len(wanted)} needed, {len(complete)} of them exist")
        lacking = [identity for identity in wanted if identity not in complete]
        staging = {identity: named[identity].parameters.staging for identity in lacking}
        for folder in sorted(set(staging.values())):
            Objects(folder).probe()
        made, problems = self._create({each: wanted[each] for each in lacking if each not in before}, named)
        if problems:
            return Built((), tuple(problems))
        self._stage(staging)
        names = {**{each: before[each].corpus.name for each in lacking if each in before}, **made}
        fillings = [self._filling(wanted[each], names[each], named[each]) for each in lacking]
        results = [*self._fill(fillings, named), *self._reuse(complete, named)]
        return Built(
            tuple(each for each in results if isinstance(each, BuiltCorpus)),
            tuple(each for each in results if isinstance(each, Problem)),
        )

    def _wanted(self, identity: str, request: Request) -> Wanted:
        keep = request.parameters.keep
        own = About(
            identity,
            request.name,
            str(self._documents.fingerprint),
            request.specification,
            self._run,
            self._now.isoformat(timespec="seconds"),
            keep,
            expiry(keep, self._now),
            staging=request.parameters.staging,
        )
        creations, imports = (self._site.operations(kind, identity) for kind in ("create", "import"))
        most = request.most_failures(self._documents)
        return Wanted(own, request.parameters.vector_database(), creations, imports, most)

    def _use(self, identity: str, failed: Mapping[str, str]) -> Use:
        folders = tuple(each.name for each in self._documents.folders)
        written = self._now.isoformat(timespec="seconds")
        return Use(self._site.api.location, identity, folders, written, failed)

    def _stage(self, folders: Mapping[str, str]) -> None:
        """Upload the documents. If that is refused, corpora made just now are deleted, with what was uploaded.

        Args:
            folders: for each corpus, by identity, the folder of its staging.

        Raises:
            InputError: it is refused.
        """
        try:
            for folder in sorted(set(folders.values())):
                self._upload(folder, [identity for identity, own in folders.items() if own == folder])
        except InputError:
            self._site.delete(sorted(self._new))
            for folder in sorted(set(folders.values())):
                self._unstage(folder)
            raise

    def _unstage(self, folder: str) -> None:
        """Delete the documents that only corpora needed that were made just now; what cannot be deleted is said."""
        try:
            there = {each.about.identity for each in self._site.find()}
            uses = Uses(folder)
            gone = set(self._new.values()) - there
            uses.delete(uses.needless(self._site.api.location, gone, there), ())
        except (CallError, InputError) as error:
            self._report(f"corpora: documents that were uploaded just now are still there: {error}")

    def _upload(self, folder: str, identities: Sequence[str]) -> None:
        """Upload the documents to a folder, for some corpora."""
        uses = Uses(folder)
        for identity in identities:
            uses.save(self._use(identity, {}))
        uploaded = Objects(folder).upload(self._documents, self._documents.staged(folder))
        self._report(f"corpora: {uploaded:,} documents uploaded to {folder}")

    def _create(
        self, missing: Mapping[str, Wanted], named: Mapping[str, Request]
    ) -> tuple[dict[str, str], list[Problem]]:
        """Make corpora; returns the name of each resource.

        If one of them cannot be made, those that were made just now are deleted again: they hold nothing.
        """
        outcomes = dict(zip(missing, self._site.create(tuple(missing.values())), strict=True))
        refused = {each: error for each, error in outcomes.items() if isinstance(error, CallError)}
        made = {each: name for each, name in outcomes.items() if isinstance(name, str)}
        if refused:
            self._site.delete(list(made.values()))
            return {}, [Problem.of(named[identity].name, error) for identity, error in refused.items()]
        self._new |= {name: identity for identity, name in made.items()}
        if made:
            chosen = self._settled(self._site.find(), made)
            made |= {identity: each.corpus.name for identity, each in chosen.items()}
        return made, []

    def _settled(self, existing: Sequence[Existing], identities: Collection[str]) -> dict[str, Existing]:
        """One corpus of each identity; what was made besides it, because an answer was lost, is deleted."""
        chosen = _preferred(existing, identities)
        surplus = [each for each in existing if each.about.identity in identities and each not in chosen.values()]
        self._site.delete([each.corpus.name for each in surplus if not each.about.complete])
        return chosen

    def _filling(self, wanted: Wanted, resource: str, request: Request) -> Filling:
        parameters, documents = request.parameters, self._documents
        return Filling(
            wanted.about,
            resource,
            resource in self._new,
            documents.staged(parameters.staging),
            parameters.import_config(),
            len(wanted.imports),
            request.most_failures(documents),
            len(documents.without_text),
        )

    def _fill(self, fillings: Sequence[Filling], named: Mapping[str, Request]) -> "list[BuiltCorpus | Problem]":
        if not fillings:
            return []
        quota = self._quota
        dealt = tracks(fillings, quota.concurrent_calls, quota.embeddings_per_minute, self._run)
        filled = self._site.fill(dealt, ImportFiles(self._site.api, self._watch))
        return [self._result(each, named[each.about.identity]) for each in filled]

    def _result(self, filled: Filled, request: Request) -> "BuiltCorpus | Problem":
        if filled.error is not None:
            return Problem.with_corpus(request.name, filled.resource, filled.error)
        objects = Objects(request.parameters.staging)
        results = objects.names(self._documents.staged(request.parameters.staging).results(filled.resource))
        if failed := failed_documents(filled, objects):
            Uses(request.parameters.staging).save(self._use(filled.about.identity, failed))  # for runs that reuse it
        objects.delete(sorted(results))  # also those of runs that were killed
        failures = failures_of(failed, self._documents)
        return filled_corpus(filled, failures, request.most_failures(self._documents))

    def _reuse(self, complete: Mapping[str, Existing], named: Mapping[str, Request]) -> "list[BuiltCorpus | Problem]":
        used = {each: complete[each].about.used(named[each].parameters.keep, self._now) for each in complete}
        changed = [
            (complete[each].corpus.name, own) for each, own in used.items() if complete[each].about.ends_before(own)
        ]
        outcomes = dict(zip((name for name, _ in changed), self._site.update(changed), strict=True))
        lacking = self._lacking(complete)
        results: list[BuiltCorpus | Problem] = []
        for identity, own in used.items():
            resource, failures = complete[identity].corpus.name, lacking[identity]
            updated = outcomes.get(resource, "")
            if isinstance(failures, CallError):
                results.append(Problem.with_corpus(named[identity].name, resource, failures))
            elif isinstance(updated, CallError):
                results.append(Problem.with_corpus(named[identity].name, resource, updated))
            else:
                results.append(reused(resource, own, failures, self._documents.fingerprint.documents))
        return results

    def _lacking(self, complete: Mapping[str, Existing]) -> "dict[str, tuple[Failure, ...] | CallError]":
        """For each complete corpus the documents that it lacks; it is asked for them only where there are some."""
        without_text = len(self._documents.without_text)
        some = [identity for identity, each in complete.items() if each.about.failed > without_text]
        names = frozenset(name for folder in self._documents.folders for name in folder.names)
        resources = [complete[identity].corpus.name for identity in some]
        lacking: dict[str, tuple[Failure, ...] | CallError] = dict.fromkeys(complete, failures_of({}, self._documents))
        for identity, files in zip(some, self._site.lacking(resources, names), strict=True):
            lacking[identity] = (
                files if isinstance(files, CallError) else self._failures(complete[identity].about, files)
            )
        return lacking

    def _failures(self, own: About, files: Mapping[str, str]) -> tuple[Failure, ...]:
        """The documents that a corpus lacks, with the reasons that were known when files were imported."""
        known = _known_reasons(own)
        documents = {document_of(name): reason for name, reason in files.items()}
        return failures_of({doc_id: known.get(doc_id, reason) for doc_id, reason in documents.items()}, self._documents)

    def _watch(self, operation: Operation) -> None:
        """Report an import now and then."""
        step = operation.progress // _REPORT_EVERY_PERCENT
        if operation.is_import and not operation.done and step > self._shown.get(operation.name, 0):
            self._shown[operation.name] = step
            self._report(f"corpora: {operation.name.partition('/operations/')[0]}: {operation.progress}% imported")


def _known_reasons(own: About) -> Mapping[str, str]:
    """Why documents of a corpus could not be imported; none where its staging folder cannot be read any more."""
    try:
        return Uses(own.staging).failed(own.identity) if own.staging else {}
    except InputError:
        return {}


def _preferred(existing: Sequence[Existing], identities: Collection[str]) -> dict[str, Existing]:
    """The preferred corpus of each identity; `existing` has the preferred ones first."""
    return {each.about.identity: each for each in reversed(existing) if each.about.identity in identities}
