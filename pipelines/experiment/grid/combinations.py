"""Combinations of the grid's values: the configuration from each, and its problems."""

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from rankbeam.pipelines.config.sections import problem_of
from rankbeam.pipelines.config.yaml_lines import Place, YamlDocument
from rankbeam.pipelines.experiment.file.corpora import ComponentSettings, Corpus, Model
from rankbeam.pipelines.experiment.file.generate import (
    GenerateParameters,
    ModelRerankParameters,
    RewriteParameters,
    TemplateFile,
    answer_template,
)
from rankbeam.pipelines.experiment.file.models import DISTANCE, MIN_SCORE, TOP_K
from rankbeam.pipelines.experiment.file.read import ExperimentFile
from rankbeam.pipelines.experiment.file.services import ConfiguredService
from rankbeam.pipelines.experiment.grid.cells import Cell
from rankbeam.pipelines.experiment.grid.components import (
    ANSWERS,
    Generating,
    Reranking,
    Retrieval,
    RewritingQueries,
)
from rankbeam.pipelines.experiment.grid.settings import (
    CONFIGURATION,
    ConfigurationSettings,
    Grid,
    Target,
    stated_limits,
)
from rankbeam.transforms.clients.corpora.base import CorpusParameters
from rankbeam.transforms.clients.models.rewriting import NUMBER, QUERY, default_template
from rankbeam.transforms.clients.parameters import Parameters
from rankbeam.transforms.clients.retrievers.base import RetrieverParameters, Route
from rankbeam.transforms.clients.retrievers.rerankers import Reranker
from rankbeam.transforms.records.calls.prompt import FENCE, variables_of
from rankbeam.transforms.records.conversations import HISTORY
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.stages import RewriteKind
from rankbeam.transforms.records.wrong_values import in_one

_SIMILARITY = "vector_similarity_threshold"
_Swept = Mapping[Target, tuple[str, Any]]
"""The name in the grid and the value of every parameter that the grid replaces."""


def cells_of(file: ExperimentFile, settings: ConfigurationSettings, grid: Grid) -> Iterator[Cell]:
    """A configuration with each combination of the grid's values; ends at the first with a problem."""
    located, item = file.located, settings.item
    limits = stated_limits(located, settings)
    targets = {name: settings.targets[name][0] for name in grid if name in settings.targets}
    combinations = list(itertools.product(*(grid[name] for name in targets)))
    located.problems.extend(_wrong_beside(located, settings, _swept(targets, combinations[0])))
    if TOP_K in targets and item.top_k is not None:
        place, retriever = (*settings.place, TOP_K), settings.retriever
        located.problems.extend(_beyond_most(located, place, retriever.kind, retriever.model, item.top_k))
    for values in combinations:
        labels = [*settings.labels, *(f"{name}={label}" for name, (label, _) in zip(targets, values, strict=True))]
        name = f"{settings.name}:{','.join(labels)}" if labels else settings.name
        own = replace(located, problems=[])  # those of this combination alone
        cell = _Combination(own, file, settings, _swept(targets, values)).cell(name, limits)
        located.problems.extend(own.problems)
        if cell is None:
            return
        yield cell


def _swept(targets: Mapping[str, Target], values: Sequence[tuple[str, Any]]) -> _Swept:
    return {target: (name, value) for (name, target), (_, value) in zip(targets.items(), values, strict=True)}


def _swept_values(swept: _Swept, role: str) -> dict[str, Any]:
    return {inside: value for (owner, inside), (_, value) in swept.items() if owner == role}


def _wrong_beside(located: YamlDocument, settings: ConfigurationSettings, swept: _Swept) -> Iterator[InputError]:
    """Validate the parameters that the grid replaces in every cell."""
    for component in settings.all:
        replacing = _swept_values(swept, component.role)
        if not replacing.keys() & component.values.keys():
            continue
        try:
            component.model.model_validate({**replacing, **component.values})
        except ValidationError as error:
            for detail in in_one(error.errors()):
                if {*detail["loc"][:1]} & replacing.keys() & component.values.keys():
                    yield problem_of(located, component.model, detail, at=component.place)


@dataclass(frozen=True)
class _Combination:
    """The components of a configuration with one value of the grid for each target."""

    located: YamlDocument  # the document, with the problems of this combination alone
    file: ExperimentFile
    settings: ConfigurationSettings
    swept: _Swept

    def cell(self, name: str, limits: Mapping[str, Any]) -> Cell | None:
        """The configuration; `limits` are set by no grid. None after reporting a wrong component."""
        settings, problems = self.settings, self.located.problems
        retrieve, corpus = self._parse_parameters(settings.retriever), self._parse_parameters(settings.corpus)
        rewrite, rerank = self._parse_parameters(settings.rewrite), self._parse_parameters(settings.rerank)
        generate = self._parse_parameters(settings.generate)
        generator = None if problems else self._generator(generate)
        retriever = None if problems else self._retriever(retrieve, corpus)
        rewriter = None if problems else self._rewriter(rewrite)
        reranker = None if problems else self._reranker(rerank)
        if problems or retriever is None:
            return None
        limits = {**limits, **_swept_values(self.swept, CONFIGURATION)}
        depth = None if reranker is None else reranker.depth
        cell = Cell(
            name=name,
            item_name=settings.name,
            place=settings.place,
            retriever=retriever,
            top_k=depth if limits[TOP_K] is None else limits[TOP_K],
            distance=_threshold(limits),
            generator=generator,
            rewriter=rewriter,
            reranker=reranker,
        )
        problems.extend(_wrong_limits(self.located, cell, [name for name, _ in self.swept.values()]))
        return cell

    def _parse_parameters(self, component: ComponentSettings[Model] | None) -> Model | None:
        """The parameters of a component; None if absent, or after reporting each wrong one where it is written."""
        if component is None:
            return None
        try:
            return component.model.model_validate({**component.values, **_swept_values(self.swept, component.role)})
        except ValidationError as error:
            for detail in in_one(error.errors()):
                place, target = component.place, (component.role, str(next(iter(detail["loc"]), "")))
                if target in self.swept:
                    place, detail = ("grid",), {**detail, "loc": (self.swept[target][0], *detail["loc"][1:])}
                self.located.problems.append(problem_of(self.located, component.model, detail, at=place))
            return None

    def _retriever(
        self, parameters: RetrieverParameters | None, corpus_parameters: CorpusParameters | None
    ) -> Retrieval | None:
        if parameters is None:
            return None
        component, described = self.settings.retriever, self.settings.corpus
        corpus = None
        if described is not None and corpus_parameters is not None:
            corpus = Corpus(str(described.place[-1]), described.kind, corpus_parameters)
        retrieving = Retrieval(component.role, component.place, component.kind, parameters, corpus).searching()
        named = parameters.service
        service = None if named is None else getattr(parameters, named)
        if named is None or service is None:
            return retrieving
        embedder = self.file.services.embedder(self.located, self._place(component, named), service)
        return None if embedder is None else replace(retrieving, embedder=embedder)

    def _reranker(self, parameters: Reranker | ModelRerankParameters | None) -> Reranking | None:
        component = self.settings.rerank
        if component is None or parameters is None:
            return None
        if isinstance(parameters, Reranker):
            return Reranking(component.place, component.kind, parameters)
        service = self.file.services.reranker(self.located, self._place(component, "service"), parameters.service)
        if service is None:
            return None
        reranking = Reranking(component.place, service.kind, parameters, service)
        unused = set() if reranking.is_called else {"max_output_tokens", "thinking"} & parameters.model_fields_set
        for name in sorted(unused):
            problem = f"has no effect: {service.name!r} scores texts in this process and does not generate any"
            self.located.report((*component.place, name), f"{problem}; leave it out")
        return reranking

    def _generator(self, parameters: GenerateParameters | None) -> Generating | None:
        component = self.settings.generate
        if component is None or parameters is None:
            return None
        service = self._writer(component, parameters)
        template = self._template(component, parameters.template, answer_template())
        return None if service is None or template is None else Generating(parameters, service, template)

    def _rewriter(self, parameters: RewriteParameters | None) -> RewritingQueries | None:
        component = self.settings.rewrite
        if component is None or parameters is None:
            return None
        service = self._writer(component, parameters)
        default_file = TemplateFile(None, default_template(parameters.kind))
        template = self._template(component, parameters.template, default_file)
        if service is None or template is None:
            return None
        template = replace(template, own=frozenset({QUERY, FENCE, HISTORY, NUMBER}))
        if parameters.kind is RewriteKind.STANDALONE and HISTORY in template.own - variables_of(template.text):
            problem = "has no {history}, which kind: standalone needs"
            self.located.report(self._place(component, "template"), problem)
        return RewritingQueries(component.place, parameters, service, template)

    def _writer(
        self, component: ComponentSettings[Parameters], parameters: GenerateParameters | RewriteParameters
    ) -> ConfiguredService | None:
        service = self.file.services.writer(self.located, self._place(component, "service"), parameters.service)
        if service is not None and "temperature" in parameters.model_fields_set and service.sets_temperature:
            problem = f"services: {service.name} sets a temperature, too; keep one"
            self.located.report(self._place(component, "temperature"), problem)
        return service

    def _template(
        self, component: ComponentSettings[Parameters], path: str | None, default_file: TemplateFile
    ) -> TemplateFile | None:
        """A template file, by default rankbeam's own; None if it cannot be read."""
        try:
            return default_file if path is None else self.file.templates(path)
        except InputError as error:
            self.located.report(self._place(component, "template"), str(error))
            return None

    def _place(self, component: ComponentSettings[Parameters], inside: str) -> Place:
        """The place of a component's parameter: in the grid, or in the component."""
        name, _ = self.swept.get((component.role, inside), (None, None))
        return (*component.place, inside) if name is None else ("grid", name)


def _threshold(limits: Mapping[str, Any]) -> float | None:
    """The highest distance; a score counts as a distance below 0."""
    if limits[MIN_SCORE] is not None:
        return 0.0 - float(limits[MIN_SCORE])
    return None if limits[DISTANCE] is None else float(limits[DISTANCE])


def _beyond_most(
    located: YamlDocument, place: Place, kind: str, model: type[RetrieverParameters], top_k: int
) -> Iterator[InputError]:
    """Refuse more results than one call to a service can return."""
    if model.most_results is not None and top_k > model.most_results:
        yield located.error(place, f"a {kind} retriever returns at most {model.most_results} results, found {top_k}")


def _wrong_limits(located: YamlDocument, cell: Cell, swept: Collection[str]) -> Iterator[InputError]:
    """Refuse parameters that the service would refuse, and texts that no retriever would get."""
    yield from _wrong_query(located, cell)
    if cell.reranker is not None:
        yield from _wrong_depth(located, cell, swept, cell.reranker)
    direction = next((name for name in swept if name.rpartition(".")[2] == "lower_is_better"), None)
    if cell.distance is not None and direction is not None:
        yield located.error(("grid", direction), f"cannot be swept beside {DISTANCE} or {MIN_SCORE}")
    if cell.retriever.parameters.route is not Route.CALLED or cell.retriever.role == ANSWERS:
        return
    kind, parameters = cell.retriever.kind, cell.retriever.parameters
    place: Place = ("grid", TOP_K) if TOP_K in swept else (*cell.place, TOP_K)
    if cell.reranker is not None:
        pass  # the depth counts
    elif cell.top_k is None:
        yield located.error(place, f"is missing; a {kind} retriever needs the number of results to request")
    else:
        yield from _beyond_most(located, place, kind, type(parameters), cell.top_k)
    if cell.sent is not None and getattr(parameters, _SIMILARITY, None) is not None:
        place = ("grid", DISTANCE) if DISTANCE in swept else (*cell.retriever.place, _SIMILARITY)
        yield located.error(place, f"a retriever takes {DISTANCE} or {_SIMILARITY}, not both; keep one")


def _wrong_query(located: YamlDocument, cell: Cell) -> Iterator[InputError]:
    """Refuse to rewrite or to join a query that the retriever does not get as a text."""
    retriever, parameters = cell.retriever, cell.retriever.parameters
    problem, advice = "", ""
    if parameters.route not in (Route.OPENED, Route.CALLED):
        problem, advice = f"a {retriever.kind} retriever receives no queries", "leave it out"
    elif "query_vectors" in parameters.inputs():
        problem, advice = "the vectors of queries come from a file", "remove query_vectors"
    if cell.rewriter is not None and problem:
        of_parts = "rewrite the queries of its parts" if parameters.route is Route.FUSED else advice
        yield located.error(cell.rewriter.place, f"{problem}; {of_parts}")
    if parameters.query != HISTORY:
        return
    if retriever.role == ANSWERS:
        problem, advice = "existing answers have no query to join", "applications take {history} in their request"
    elif not problem and cell.rewriter is not None:
        problem, advice = "the model of rewrite: writes the queries", "leave it out"
    if problem:
        yield located.error((*retriever.place, "query"), f"{problem}; {advice}")


def _wrong_depth(
    located: YamlDocument, cell: Cell, swept: Collection[str], reranker: Reranking
) -> Iterator[InputError]:
    """Refuse a reranker that scores fewer results than `top_k`, or more than the retriever returns."""
    if cell.top_k is not None and cell.top_k > reranker.depth:
        place: Place = ("grid", TOP_K) if TOP_K in swept else (*cell.place, TOP_K)
        problem = f"is {cell.top_k}, and the reranker of {cell.name!r} scores {reranker.depth} results"
        yield located.error(place, f"{problem}; raise rerank.depth, or lower top_k")
    depth = next((name for name in ("depth", "rerank.depth") if name in swept), None)
    place = (*reranker.place, "depth") if depth is None else ("grid", depth)
    if cell.retriever.parameters.route is Route.CALLED:
        yield from _beyond_most(located, place, cell.retriever.kind, type(cell.retriever.parameters), reranker.depth)
