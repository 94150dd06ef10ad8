"""The grid of an experiment: every configuration for each combination of swept parameters."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import ValidationError

from rankbeam.pipelines.config.problems import problem_of
from rankbeam.pipelines.config.yaml_lines import Located, Place
from rankbeam.pipelines.experiment.file.corpora import CORPUS, Corpora
from rankbeam.pipelines.experiment.file.generate import GenerateParameters, ModelRerankParameters, RewriteParameters
from rankbeam.pipelines.experiment.file.keys import TOP_K
from rankbeam.pipelines.experiment.file.labels import Labels
from rankbeam.pipelines.experiment.file.models import ConfigurationModel
from rankbeam.pipelines.experiment.file.services import ConfiguredService, Services
from rankbeam.pipelines.experiment.file.template_files import TemplateFile, Templates, default
from rankbeam.pipelines.experiment.grid.cells import Cell, Grid
from rankbeam.pipelines.experiment.grid.components import (
    GENERATE,
    RERANK,
    REWRITE,
    Generating,
    Reranking,
    Retrieving,
    RewritingQueries,
)
from rankbeam.pipelines.experiment.grid.drafts import (
    CONFIGURATION,
    Draft,
    Drafts,
    Target,
    beyond_most,
    chosen_reach,
    drafts_of,
    stated_reach,
    wrong_in_grid,
    wrong_reach,
)
from rankbeam.pipelines.experiment.grid.stages import STAGES, variants, wrong_stages
from rankbeam.transforms.clients.models.rewriting import NUMBER, QUERY, default_template
from rankbeam.transforms.clients.retrievers.rerankers import Reranker
from rankbeam.transforms.records.calls.prompt import FENCE, variables_of
from rankbeam.transforms.records.conversations import HISTORY
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.stages import RewriteKind
from rankbeam.transforms.records.suggestions import did_you_mean
from rankbeam.transforms.records.wrong_values import in_one

MOST_CELLS = 10_000


@dataclass(frozen=True)
class GridContext:
    """Definitions that components may reference."""

    located: Located
    services: Services
    templates: Templates
    corpora: Corpora
    labels: Labels = field(default_factory=dict)


def cells(
    context: GridContext, items: Sequence[ConfigurationModel], grid: Grid, problems: list[InputError]
) -> list[Cell]:
    """Every configuration for each combination of the grid's values, in order.

    A parameter of the grid applies to the configurations that have a component with it; `top_k` to all that retrieve,
    and `vector_distance_threshold` to those that have distances.
    """
    drafts: list[InputError] = []
    wrong = list(wrong_stages(context.located, items, grid))
    every = variants(items, {} if wrong else grid, context.labels, context.located.value.get("grid"))
    drafted = [(variant.item, drafts_of(context.located, context.corpora, variant, drafts)) for variant in every]
    known = [(item, draft) for item, draft in drafted if draft is not None]
    grid = {name: values for name, values in grid.items() if name not in STAGES}
    wrong += _wrong_in_grid(context, [draft for _, draft in known], grid)
    problems += [*wrong, *drafts]
    return [cell for item, draft in known for cell in _cells(context, item, draft, {} if wrong else grid, problems)]


def check_names(located: Located, cells: Sequence[Cell], problems: list[InputError]) -> None:
    """Refuse two cells with one name, and one configuration with two names."""
    names: dict[str, Cell] = {}
    ids: dict[str, Cell] = {}
    for cell in cells:
        if cell.name in names:
            problems.append(located.error((*cell.place, "name"), f"two configurations are named {cell.name!r}"))
        elif cell.config_id in ids:
            other = ids[cell.config_id].name
            problems.append(located.error(cell.place, f"{cell.name!r} is the same configuration as {other!r}"))
        names[cell.name] = ids[cell.config_id] = cell


def _cells(
    context: GridContext, item: ConfigurationModel, drafts: Drafts, grid: Grid, problems: list[InputError]
) -> Iterator[Cell]:
    located = context.located
    base = stated_reach(located, item, drafts, problems)
    targets: dict[str, Target] = {name: owners[0] for name in grid if (owners := drafts.owners(name))}
    first = {name: grid[name][0] for name in targets}
    for draft in drafts.all:
        problems += draft.wrong_beside(located, _chosen(draft.role, targets, first))
    if TOP_K in first and item.top_k is not None:
        problems += beyond_most(located, (*drafts.place, TOP_K), drafts.retriever.kind, drafts.model, item.top_k)
    for places in itertools.product(*(range(len(grid[name])) for name in targets)):
        chosen = dict(zip(targets, places, strict=True))
        values = {name: grid[name][place] for name, place in chosen.items()}
        swept = (f"{name}={context.labels[name][place]}" for name, place in chosen.items())
        label = ",".join([*drafts.labels, *swept])
        wrong: list[InputError] = []
        combination = _Combination(context, targets, values, wrong)
        for draft in drafts.all:
            combination.check(draft)
        generator = None if wrong else combination.generating(drafts.generate)
        retriever = None if wrong else combination.retrieving(drafts)
        rewriter = None if wrong else combination.rewriting(drafts.rewrite)
        reranker = None if wrong else combination.reranking(drafts.rerank)
        problems += wrong
        if wrong or retriever is None:
            return
        top_k, distance = chosen_reach({**base, **combination.chosen(CONFIGURATION)})
        if reranker is not None and top_k is None:
            top_k = reranker.depth
        cell = Cell(
            name=f"{drafts.name}:{label}" if label else drafts.name,
            item_name=drafts.name,
            place=drafts.place,
            retriever=retriever,
            top_k=top_k,
            distance=distance,
            generator=generator,
            rewriter=rewriter,
            reranker=reranker,
        )
        problems += wrong_reach(located, cell, values)
        yield cell


@dataclass
class _Combination:
    """One combination of the grid's values; it adds what is wrong with a component to `problems`."""

    context: GridContext
    targets: Mapping[str, Target]
    values: Mapping[str, Any]
    problems: list[InputError]

    def chosen(self, role: str) -> dict[str, Any]:
        """The values of the grid for a component."""
        return _chosen(role, self.targets, self.values)

    def check(self, draft: Draft) -> None:
        """Report each wrong parameter of a component at its place, in the grid or in the component."""
        located = self.context.located
        try:
            draft.parameters(self.chosen(draft.role))
        except ValidationError as error:
            names = {inside: name for name, (owner, inside) in self.targets.items() if owner == draft.role}
            for detail in in_one(error.errors()):
                first = str(next(iter(detail["loc"]), ""))
                if first in names:
                    swept = {**detail, "loc": (names[first], *detail["loc"][1:])}
                    self.problems.append(problem_of(located, draft.model, swept, at=("grid",)))
                else:
                    self.problems.append(problem_of(located, draft.model, detail, at=draft.place))

    def retrieving(self, drafts: Drafts) -> Retrieving | None:
        """The retriever with its corpus and its service; None if the service is unknown."""
        draft = drafts.retriever
        parameters = drafts.model.model_validate({**draft.values, **self.chosen(draft.role)})
        corpus = drafts.searched(self.chosen(CORPUS))
        retrieving = Retrieving(draft.role, draft.place, draft.kind, parameters, corpus).searching()
        named = parameters.service
        service = None if named is None else getattr(parameters, named)
        if named is None or service is None:
            return retrieving
        self.problems += self.context.services.not_embedding(self.context.located, self._place(draft, named), service)
        embedder = self.context.services.valid.get(service)
        return None if embedder is None else replace(retrieving, embedder=embedder)

    def reranking(self, draft: Draft | None) -> Reranking | None:
        """The reranker; None if absent or invalid."""
        if draft is None:
            return None
        located, services = self.context.located, self.context.services
        parameters = draft.parameters(self.chosen(RERANK))
        if not isinstance(parameters, ModelRerankParameters):
            assert isinstance(parameters, Reranker)  # noqa: S101  the types of rerankers
            return Reranking(draft.place, draft.kind, parameters)
        self.problems += services.not_reranking(located, self._place(draft, "service"), parameters.service)
        service = services.valid.get(parameters.service)
        if service is None:
            return None
        reranking = Reranking(draft.place, service.kind, parameters, service)
        unused = set() if reranking.is_called else {"max_output_tokens", "thinking"} & parameters.model_fields_set
        for name in sorted(unused):
            problem = (
                f"has no use: {service.name!r} scores texts in this process and does not generate any; leave it out"
            )
            self.problems.append(located.error((*draft.place, name), problem))
        return reranking

    def generating(self, draft: Draft | None) -> Generating | None:
        """The generator; None if absent or invalid."""
        if draft is None:
            return None
        parameters = GenerateParameters.model_validate({**draft.values, **self.chosen(GENERATE)})
        service = self._writer(draft, parameters)
        file = self._template(draft, parameters.template, default())
        return None if service is None or file is None else Generating(parameters, service, file)

    def rewriting(self, draft: Draft | None) -> RewritingQueries | None:
        """The model that rewrites queries; None if absent or invalid."""
        if draft is None:
            return None
        parameters = RewriteParameters.model_validate({**draft.values, **self.chosen(REWRITE)})
        service = self._writer(draft, parameters)
        file = self._template(draft, parameters.template, TemplateFile(None, default_template(parameters.kind)))
        if service is None or file is None:
            return None
        file = replace(file, own=frozenset({QUERY, FENCE, HISTORY, NUMBER}))
        if parameters.kind is RewriteKind.STANDALONE and HISTORY in file.own - variables_of(file.text):
            problem = "has no {history}, which kind: standalone is about"
            self.problems.append(self.context.located.error(self._place(draft, "template"), problem))
        return RewritingQueries(draft.place, parameters, service, file)

    def _writer(self, draft: Draft, parameters: GenerateParameters | RewriteParameters) -> ConfiguredService | None:
        """The model that writes; None if it is unknown."""
        located, services = self.context.located, self.context.services
        self.problems += services.not_writing(located, self._place(draft, "service"), parameters.service)
        service = services.valid.get(parameters.service)
        if service is not None and "temperature" in parameters.model_fields_set and service.sets_temperature:
            problem = f"services: {service.name} sets a temperature, too; keep one"
            self.problems.append(located.error(self._place(draft, "temperature"), problem))
        return service

    def _template(self, draft: Draft, path: str | None, own: TemplateFile) -> TemplateFile | None:
        """A template file, by default rankbeam's own; None if it cannot be read."""
        try:
            return own if path is None else self.context.templates.read(path)
        except InputError as error:
            self.problems.append(self.context.located.error(self._place(draft, "template"), str(error)))
            return None

    def _place(self, draft: Draft, inside: str) -> Place:
        """The place of a component's parameter: in the grid, or in the component."""
        swept = [name for name, target in self.targets.items() if target == (draft.role, inside)]
        return ("grid", swept[-1]) if swept else (*draft.place, inside)


def _chosen(role: str, targets: Mapping[str, Target], values: Mapping[str, Any]) -> dict[str, Any]:
    return {inside: values[name] for name, (owner, inside) in targets.items() if owner == role}


def _wrong_in_grid(context: GridContext, drafts: Sequence[Drafts], grid: Grid) -> Iterator[InputError]:
    located = context.located
    known = {TOP_K}.union(*(draft.sweepable for draft in drafts))
    owners = [{name: draft.owners(name) for name in grid} for draft in drafts]
    count = sum(math.prod(len(values) for name, values in grid.items() if owner[name]) for owner in owners)
    if count > MOST_CELLS:
        yield located.error(("grid",), f"makes {count:,} configurations; {MOST_CELLS:,} are the most")
    for name, values in grid.items():
        several = next((owner[name] for owner in owners if len(owner[name]) > 1), None)
        if name.rpartition(".")[2] == CORPUS and any(map(context.corpora.is_named, values)):
            problem = (
                "names an entry of corpora:; name it in the retriever, and sweep the corpus's own parameters, such "
                "as chunk_size"
            )
            yield located.error(("grid", name), problem)
        elif name not in known:
            hint = did_you_mean(name, [cell for cell in known if ("." in cell) == ("." in name)])
            yield located.error(("grid", name), f"no configuration has this parameter; {hint}")
        elif several is not None:
            dotted = " or ".join(f"{role}.{inside}" for role, inside in several)
            yield located.error(("grid", name), f"several components of one configuration have it; write {dotted}")
        elif not values:
            yield located.error(("grid", name), "lists no value")
        else:
            yield from wrong_in_grid(located, name, values)
