"""The corpora of services that a run needs: built before its pipeline, and deleted after it with `keep: run`.

The process that submits the pipeline makes all requests, on any runner: an import can take hours, in which a worker
would only wait. The pipeline gets the names of the resources.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, partial

import pyarrow as pa

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.experiment.file.corpora import Corpus
from rankbeam.pipelines.experiment.file.models import SPAN
from rankbeam.pipelines.run.folders import owner_of
from rankbeam.transforms.clients.corpora.rag_engine.build import Builder, Request
from rankbeam.transforms.clients.corpora.rag_engine.claims import claimant
from rankbeam.transforms.clients.corpora.rag_engine.corpus_client import CorpusClient
from rankbeam.transforms.clients.corpora.rag_engine.data_api import DataApi
from rankbeam.transforms.clients.corpora.rag_engine.description import RUN
from rankbeam.transforms.clients.corpora.rag_engine.parameters import RagEngineCorpus
from rankbeam.transforms.clients.corpora.rag_engine.results import Problem, Uses
from rankbeam.transforms.clients.corpora.rag_engine.staging import (
    StagedDocuments,
    read_documents,
    read_originals,
    refuse_parsed,
)
from rankbeam.transforms.clients.corpora.rag_engine.work import ExistingCorpus, preferred_corpora
from rankbeam.transforms.clients.formats.documents.files import FolderSource
from rankbeam.transforms.clients.formats.overlap import corpus_warnings, hash_ids
from rankbeam.transforms.clients.ledger import Ledger, Owner
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.corpora import BuiltCorpus, TemporaryCorpora
from rankbeam.transforms.records.errors import CallError, InputError, RankbeamError, pluralize
from rankbeam.transforms.records.run import Run

_logger = logging.getLogger(__name__)


class CorporaFailed(RankbeamError):
    """Corpora could not be built: exit status 1. A later run continues where this one ended."""


@dataclass(frozen=True)
class DocumentsSource:
    """Origin of a corpus's files: documents of the dataset, or a folder whose files are imported unchanged."""

    titled: bool
    original: FolderSource | None


@dataclass(frozen=True)
class NeededCorpora:
    """The corpora that an experiment needs in one project and region."""

    api: DataApi
    source: DocumentsSource
    requests: Mapping[Corpus, Request]


def needed_corpora(experiment: Experiment) -> list[NeededCorpora]:
    """The corpora that an experiment needs, by project and region, and by the imported parts of the documents."""
    grouped: dict[tuple[DataApi, DocumentsSource], dict[Corpus, Request]] = {}
    shared = [service.name for service in experiment.served]
    for corpus in experiment.served:
        parameters = corpus.parameters
        if isinstance(parameters, RagEngineCorpus):
            settings = f"{parameters.chunk_size}/{parameters.chunk_overlap}, {parameters.embedding_model}"
            settings += ", with titles" if parameters.titled else ""
            name = corpus.name if shared.count(corpus.name) == 1 else f"{corpus.name} ({settings})"
            api = DataApi(parameters.location, parameters.api_endpoint)
            source = DocumentsSource(parameters.titled, parameters.original)
            grouped.setdefault((api, source), {})[corpus] = Request(name, parameters)
    return [NeededCorpora(api, source, requests) for (api, source), requests in grouped.items()]


def prepare_corpora(experiment: Experiment, execution: Run, *, waits: bool = True) -> Experiment:
    """Build or reuse an experiment's corpora; return the experiment with the names of their resources."""
    if not waits:
        refuse_unwatched(experiment)
    read = cache(partial(documents_of, experiment))
    requests = needed_corpora(experiment)
    warnings = dict.fromkeys(
        warning for corpora in requests for warning in _warnings(experiment, read(corpora.source), corpora)
    )
    for warning in warnings:
        _logger.warning("%s", warning)
    built: list[BuiltCorpus] = []
    problems: list[Problem] = []
    bindings: dict[Corpus, tuple[str, str]] = {}
    usage = []
    cost = 0.0
    for corpora in requests:
        documents = read(corpora.source)
        client = site_of(experiment, corpora.api, execution)
        builder = Builder(
            client,
            documents,
            experiment.calls.corpus_quotas.imports,
            execution.run_id,
            execution.started_at,
            _logger.info,
        )
        with translate_errors():
            results = builder.build(list(corpora.requests.values()))
        usable = [result for result in results if isinstance(result, BuiltCorpus)]
        built += usable
        cost += _cost(experiment, usable, documents)
        problems += (result for result in results if isinstance(result, Problem))
        usage += client.usage
        resources = {corpus.identity: corpus.resource for corpus in usable}
        for corpus, request in corpora.requests.items():
            identity = request.identity(documents)
            bindings[corpus] = (identity, resources.get(identity, ""))
    if problems:
        raise _failure(problems)
    ready = replace(experiment.searching(bindings), built=tuple(built), corpus_usage=tuple(usage))
    if (limit := experiment.calls.max_cost) is None:
        return ready
    return replace(ready, calls=replace(ready.calls, max_cost=max(0.0, limit - cost)))


def refuse_unwatched(experiment: Experiment) -> None:
    """Refuse corpora that must be deleted after a run that this process does not wait for."""
    for corpus in experiment.served:
        if isinstance(corpus.parameters, RagEngineCorpus) and corpus.parameters.keep == RUN:
            raise InputError(
                f"corpora.{corpus.name}.keep: run deletes the corpus when the run has ended, but this process does "
                "not wait for that; follow the job with --wait, or keep the corpus for some days, such as 1d"
            )


def _cost(experiment: Experiment, built: Sequence[BuiltCorpus], documents: StagedDocuments) -> float:
    """The approximate cost of embedding the imported documents."""
    cost = 0.0
    for corpus in built:
        _, tokens = documents.chunks(corpus.specification["chunk_size"], corpus.specification["chunk_overlap"])
        share = corpus.imported / max(1, len(documents.tokens))
        cost += share * tokens * (experiment.calls.corpus_quotas.imports.price_per_million or 0.0) / 1e6
    return cost


def temporary(experiment: Experiment) -> tuple[TemporaryCorpora, ...]:
    """The corpora that exist until the end of the run; their identities depend on the documents."""
    parts = []
    for corpora in needed_corpora(experiment):
        requests = [request for request in corpora.requests.values() if request.parameters.keep == RUN]
        if requests:
            documents = documents_of(experiment, corpora.source)
            identities = tuple(sorted({request.identity(documents) for request in requests}))
            parts.append(TemporaryCorpora(corpora.api.location, corpora.api.api_endpoint, identities))
    return tuple(parts)


def release(corpora: Sequence[TemporaryCorpora], ledger: Ledger, quota: Quota) -> None:
    """Delete the corpora that exist only for the run, and the documents that no other corpus needs.

    A failure is only a warning: the run already has its result.
    """
    for part in corpora:
        try:
            _release(part, ledger, quota)
        except (CallError, InputError) as error:
            _logger.warning("a corpus could not be deleted: %s; `rankbeam corpora list` shows what is left", error)


def _release(corpora: TemporaryCorpora, ledger: Ledger, quota: Quota) -> None:
    client = CorpusClient(DataApi(corpora.location, corpora.api_endpoint), ledger, quota)
    ended = corpora.identities
    ours = [corpus for corpus in client.find() if corpus.about.identity in ended and corpus.about.keep == RUN]
    claim = claimant(ledger.owner.run_id, datetime.fromisoformat(ledger.owner.started))
    outcomes = client.end_use([corpus.resource for corpus in ours], claim)
    for corpus, users in zip(ours, outcomes, strict=True):
        if isinstance(users, tuple) and users:
            _logger.info("%s is kept: %s needs it, and deletes it at the end", corpus.resource, ", ".join(users))
    unstage(corpora.location, ours, client.find())
    if (failed := next((outcome for outcome in outcomes if isinstance(outcome, CallError)), None)) is not None:
        raise failed


def unstage(
    location: str, gone: Sequence[ExistingCorpus], there: Sequence[ExistingCorpus], *, keep_documents: bool = False
) -> int:
    """Delete the staged documents orphaned by deleting `gone` corpora; return their number."""
    deleted = 0
    for staging in sorted({corpus.about.staging for corpus in gone} - {""}):
        documents, uses = needless_in(staging, location, gone, there)
        documents = [] if keep_documents else documents
        names = [corpus.resource for corpus in gone if corpus.about.staging == staging]
        Uses(staging).delete(documents, uses, names)
        deleted += len(documents)
    return deleted


def needless_in(
    staging: str, location: str, gone: Sequence[ExistingCorpus], there: Sequence[ExistingCorpus]
) -> tuple[list[str], list[str]]:
    """Staged documents orphaned once `gone` corpora are deleted, and the uses of these corpora."""
    remaining = {corpus.about.identity for corpus in there}
    return Uses(staging).needless(location, {corpus.about.identity for corpus in gone} - remaining, remaining)


def documents_of(experiment: Experiment, source: DocumentsSource) -> StagedDocuments:
    """The documents of an experiment with corpora that a service builds."""
    if source.original is not None:
        documents = read_originals(source.original)
        if experiment.dataset.unit == SPAN:
            refuse_parsed(documents)
        return documents
    if experiment.dataset.corpus is None:
        raise InputError("corpora that a service builds need dataset.corpus")
    return read_documents(experiment.dataset.corpus, titled=source.titled)


def site_of(experiment: Experiment, api: DataApi, execution: Run | None = None) -> CorpusClient:
    """The corpora of one project and region, at the pace of the experiment's quota."""
    owner = Owner() if execution is None else owner_of(experiment.calls, execution)
    return CorpusClient(api, Ledger(experiment.ledger, owner), experiment.calls.corpus_quotas.data)


def find_existing(
    experiment: Experiment, corpora: NeededCorpora, documents: StagedDocuments
) -> dict[Corpus, ExistingCorpus]:
    """The experiment's corpora that exist, complete or not; nothing is built."""
    with translate_errors():
        by_identity = preferred_corpora(site_of(experiment, corpora.api).find())
    identities = {corpus: request.identity(documents) for corpus, request in corpora.requests.items()}
    return {corpus: by_identity[name] for corpus, name in identities.items() if name in by_identity}


@contextmanager
def translate_errors() -> Iterator[None]:
    """Turn a failed call into an error that the command line understands."""
    try:
        yield
    except CallError as error:
        raise _failure([Problem.of("", error)]) from error


def _failure(problems: Sequence[Problem]) -> RankbeamError:
    lines = [
        f"corpus {problem.name}: {problem.message}" if problem.name else f"corpora: {problem.message}"
        for problem in problems
    ]
    message = "\n".join(dict.fromkeys(lines))
    return InputError(message) if any(problem.is_refusal for problem in problems) else CorporaFailed(message)


def _warnings(experiment: Experiment, documents: StagedDocuments, needed: NeededCorpora) -> Iterator[str]:
    yield from title_warnings(documents, needed)
    yield from _without_text(documents)
    if documents.left_out:
        yield documents.left_out
    yield from corpus_warnings(experiment.dataset.judgements, hash_ids(pa.array(documents.ids(), pa.string())))


def title_warnings(documents: StagedDocuments, needed: NeededCorpora) -> Iterator[str]:
    """A warning about corpora that leave out their documents' titles."""
    if documents.with_title and not documents.titled:
        names = ", ".join(dict.fromkeys(corpus.name for corpus in needed.requests))
        yield (
            f"titles of {pluralize(documents.with_title, 'document')} are not imported into corpora: {names}; with "
            "`fields: [title, text]` they are imported, into a newly built corpus"
        )


def _without_text(documents: StagedDocuments) -> Iterator[str]:
    if number := len(documents.without_text):
        examples = ", ".join(map(repr, documents.without_text[:3]))
        yield f"{number:,} of {documents.fingerprint.documents:,} documents have no text, such as {examples}"
