"""Read a file of goldens, with the retrievers of its pool; one message reports all problems, each with its line."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rankbeam.pipelines.config.references import read_yaml, refuse_problems
from rankbeam.pipelines.config.sections import parse_model, parse_part
from rankbeam.pipelines.config.yaml_lines import Place, YamlDocument
from rankbeam.pipelines.experiment.file.quotas import quotas_of
from rankbeam.pipelines.experiment.file.services import ConfiguredService, Services, services_of
from rankbeam.pipelines.experiment.grid.components import RETRIEVER, Retrieval
from rankbeam.pipelines.experiment.pools import SourcePools, missing_prices, pools_of, wrong_batches
from rankbeam.pipelines.goldens.folder import MANIFEST, GoldensFolder
from rankbeam.pipelines.goldens.goldens import Duplicates, Goldens, Pooling
from rankbeam.pipelines.goldens.models import GoldensModel, PoolModel
from rankbeam.pipelines.goldens.profiles import PROFILES, read_profiles
from rankbeam.transforms.clients.formats import sources
from rankbeam.transforms.clients.formats.documents.files import (
    EVERYTHING,
    FolderSource,
    holds_documents,
    list_files,
    refuse_output,
    refuse_unreadable,
)
from rankbeam.transforms.clients.retrievers.base import RETRIEVERS, RetrieverParameters, Route
from rankbeam.transforms.clients.retrievers.lexical import LexicalParameters
from rankbeam.transforms.clients.storage import files, matching
from rankbeam.transforms.goldens.documents import lacks_documents
from rankbeam.transforms.goldens.planning import PlannedBenchmark
from rankbeam.transforms.goldens.records.items import DIMENSIONS, Dimension
from rankbeam.transforms.goldens.searching import PoolRetriever, words_of
from rankbeam.transforms.goldens.writing import Reviews
from rankbeam.transforms.records.errors import InputError, InputErrors

_PLACE: Place = ("reviews", "pool", "retrievers")
_NEEDS = {"queries", "corpus"}


def retrieving_of(located: YamlDocument, model: PoolModel, language: str, services: Services) -> list[Retrieval]:
    retrievers = [
        _parse_retriever(located, (*_PLACE, place), entry, language) for place, entry in enumerate(model.retrievers)
    ]
    valid = [retriever for retriever in retrievers if retriever is not None]
    return [_with_embedder(located, retriever, services) for retriever in valid]


def _parse_retriever(
    located: YamlDocument, place: Place, entry: str | dict[str, Any], language: str
) -> Retrieval | None:
    values = {"type": entry} if isinstance(entry, str) else dict(entry)
    kind = values.pop("type", None)
    if not isinstance(kind, str):
        located.report(place, "is a type, or a mapping with type and the parameters of that type")
        return None
    try:
        model = RETRIEVERS.load(kind)
    except InputError as error:
        located.report(place, error.problem)
        return None
    if model.route is Route.CALLED and model.service in values:
        problem = f"has no effect here: the pool asks {kind} with the text of a question; remove it, with the vector"
        located.report((*place, str(model.service)), problem)
        return None
    if model.route not in (Route.OPENED, Route.CALLED) or not {*model.needs} <= _NEEDS:
        problem = f"{kind} has no ranking for new questions; name a retriever that searches"
        located.report(place, problem)
        return None
    defaults = words_of(language) if issubclass(model, LexicalParameters) else {}
    if (parameters := parse_part(model, {**defaults, **values}, located, place)) is None:
        return None
    located.problems.extend(located.error((*place, *inside), problem) for inside, problem in parameters.unset())
    if parameters.lacks_corpus:
        located.report((*place, "corpus"), "is missing; give the full name of a corpus")
    return Retrieval(RETRIEVER, place, kind, parameters)


def _with_embedder(located: YamlDocument, retrieving: Retrieval, services: Services) -> Retrieval:
    parameters: RetrieverParameters = retrieving.parameters
    named = parameters.service
    service = None if named is None else getattr(parameters, named)
    if service is None:
        return retrieving
    embedder = services.embedder(located, (*retrieving.place, str(named)), service)
    return replace(retrieving, embedder=embedder)


def load_goldens(path: str, output: str | None = None, *, profiles: bool = True) -> Goldens:
    """Read a file of goldens and check everything that can be checked before any work starts.

    Without `profiles`, the default profiles are used and the file of profiles is not read.
    """
    (first, *_) = matching.expand(path)
    text = files.read_text(first, "write it as YAML in UTF-8", path)
    located = read_yaml(text, path, output)
    if not isinstance(located.value, dict):
        keys = "name, documents, services, writer, checker, items, output"
        raise InputErrors([located.error((), f"is a mapping with {keys}")])
    model = parse_model(GoldensModel, located)
    services = services_of(located, model.services or {})
    retrieving = retrieving_of(located, model.reviews.pool, model.documents.language, services)
    embedders = [retriever.embedder.name for retriever in retrieving if retriever.embedder is not None]
    used = list(dict.fromkeys([*_used_names(located, model, services), *embedders]))
    quotas = quotas_of(located, model.quotas)
    calls, pools = pools_of(located, quotas, retrieving, retrieving, services, used)
    if model.max_cost is not None:
        located.problems.extend(missing_prices(located, calls))
    located.problems.extend(wrong_batches(located, calls, is_raced=False))
    dimensions = _dimensions(located, model) if profiles else DIMENSIONS
    located.problems.extend(_missing_documents(located, _output(located, model, output)))
    located.problems.extend(_wrong_previous(located, model, output))
    located.problems.extend(_wrong_offline(located, model, services))
    refuse_problems(located)
    documents = model.documents
    models = {name: calls.services[name] for name in used}
    duplicates = model.reviews.duplicates
    return Goldens(
        name=model.name,
        text=text,
        origin=documents.origin(located.folder, model.seed),
        language=documents.language,
        span_tokens=documents.span_tokens,
        writer=models[model.writer],
        checker=models[model.checker],
        planned=PlannedBenchmark(model.items, model.types, dimensions, tuple(documents.attributes), model.seed),
        context=model.context,
        reviews=Reviews(model.reviews.critics, model.reviews.closed_book, documents.language),
        pool=Pooling(model.reviews.pool.documents, tuple(_pool_retrievers(retrieving, pools, models, located.folder))),
        duplicates=None
        if duplicates is None
        else Duplicates(models[duplicates.embedding_model].embed, duplicates.cosine),
        split=model.split,
        calls=replace(
            calls,
            services=models,
            max_cost=model.max_cost,
            ledger_path=None if model.output.ledger is None else located.below(model.output.ledger),
        ),
        profiles=located.below(model.profiles or PROFILES),
        output=_output(located, model, output),
        previous=None if model.previous is None else located.below(model.previous),
    )


def _output(located: YamlDocument, model: GoldensModel, output: str | None) -> str:
    return located.below(model.output.path or "") if output is None else output


def _wrong_previous(located: YamlDocument, model: GoldensModel, output: str | None) -> Iterator[InputError]:
    if not model.previous:
        return
    previous = located.below(model.previous)
    if not files.exists(GoldensFolder(previous).below(MANIFEST)):
        yield located.error(("previous",), f"{previous} holds no benchmark")
    elif files.is_same(previous, _output(located, model, output)):
        yield located.error(("previous",), "is the output itself; name another output")


def _used_names(located: YamlDocument, model: GoldensModel, services: Services) -> Iterator[str]:
    named: dict[Place, str] = {("writer",): model.writer, ("checker",): model.checker}
    if model.reviews.duplicates is not None:
        named["reviews", "duplicates"] = model.reviews.duplicates.embedding_model
    for place, name in named.items():
        if name:
            find = services.embedder if place == ("reviews", "duplicates") else services.service
            find(located, place, name)
            yield name


def _pool_retrievers(
    retrieving: Sequence[Retrieval], pools: SourcePools, models: Mapping[str, ConfiguredService], folder: str
) -> Iterator[PoolRetriever]:
    """The retrievers of the pool, independent of the file."""
    for number, (retriever, pool) in enumerate(zip(retrieving, pools, strict=True)):
        embedder = None if retriever.embedder is None else models[retriever.embedder.name].embed
        yield PoolRetriever(
            f"{retriever.kind}-{number}", retriever.kind, retriever.parameters.resolved(folder), embedder, pool
        )


def _dimensions(located: YamlDocument, model: GoldensModel) -> tuple[Dimension, ...]:
    if model.profiles is None:
        return DIMENSIONS
    try:
        (path, *_) = sources.expand(located.below(model.profiles))
        return read_profiles(path)
    except InputErrors as error:
        located.problems.extend(error.errors)
    except InputError as error:
        located.problems.append(error if error.line else located.error(("profiles",), str(error)))
    return DIMENSIONS


def _missing_documents(located: YamlDocument, output: str) -> Iterator[InputError]:
    """Problems of documents; found from the raw values, so they are reported even if the file is invalid otherwise."""
    documents = located.value.get("documents")
    values = {"path": documents} if isinstance(documents, str) else documents if isinstance(documents, dict) else {}
    for role in ("path", "folder", "chunks"):
        if not isinstance(values.get(role), str):
            continue
        where = located.below(values[role])
        place: Place = ("documents",) if isinstance(documents, str) else ("documents", role)
        try:
            if role == "folder" or (role == "path" and holds_documents(where)):
                glob = values.get("glob")
                source = FolderSource(where, glob if isinstance(glob, str) else EVERYTHING)
                refuse_unreadable(source, list_files(source))
                refuse_output(source, output)
            elif role == "path" and (problem := lacks_documents(where)) is not None:
                yield located.error(place, problem)
            else:
                sources.expand(where)
        except InputError as error:
            yield located.error(place, str(error))


def _wrong_offline(located: YamlDocument, model: GoldensModel, services: Services) -> Iterator[InputError]:
    """Problems of offline models that do not support the steps of their role."""
    wrong = {"writer": ("lexical", "hashed", "onnx"), "checker": ("extractive", "hashed", "onnx")}
    for role, kinds in wrong.items():
        service = services.valid.get(getattr(model, role) or "")
        if service is not None and service.kind in kinds:
            right = "extractive" if role == "writer" else "lexical"
            problem = f"the {service.kind} model cannot be a {role}; use {{type: {right}}} offline"
            yield located.error((role,), problem)
