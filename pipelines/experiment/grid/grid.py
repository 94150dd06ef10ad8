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
from rankbeam.transforms.clients.retrievers.rerankers.base import Reranker
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
        wrong = [problem for draft in drafts.all for problem in _wrong_parameters(located, draft, targets, values)]
        generator = None if wrong else _generating(context, drafts.generate, targets, values, wrong)
        retriever = None if wrong else _retrieving(context, drafts, targets, values, wrong)
        rewriter = None if wrong else _rewriting(context, drafts.rewrite, targets, values, wrong)
        reranker = None if wrong else _reranking(context, drafts.rerank, targets, values, wrong)
        problems += wrong
        if wrong or retriever is None:
            return
        top_k, distance = chosen_reach({**base, **_chosen(CONFIGURATION, targets, values)})
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


def _chosen(role: str, targets: Mapping[str, Target], values: Mapping[str, Any]) -> dict[str, Any]:
    return {inside: values[name] for name, (owner, inside) in targets.items() if owner == role}


def _wrong_parameters(
    located: Located, draft: Draft, targets: Mapping[str, Target], values: Mapping[str, Any]
) -> Iterator[InputError]:
    """Validate a component; report a problem at the place of its parameter, in the grid or in the component."""
    try:
        draft.parameters(_chosen(draft.role, targets, values))
    except ValidationError as error:
        names = {inside: name for name, (owner, inside) in targets.items() if owner == draft.role}
        for detail in in_one(error.errors()):
            first = str(next(iter(detail["loc"]), ""))
            if first in names:
                swept = {**detail, "loc": (names[first], *detail["loc"][1:])}
                yield problem_of(located, draft.model, swept, at=("grid",))
            else:
                yield problem_of(located, draft.model, detail, at=draft.place)


def _retrieving(
    context: GridContext,
    drafts: Drafts,
    targets: Mapping[str, Target],
    values: Mapping[str, Any],
    problems: list[InputError],
) -> Retrieving | None:
    """Resolve the retriever with its corpus and its service; None if the service is unknown."""
    draft = drafts.retriever
    parameters = drafts.model.model_validate({**draft.values, **_chosen(draft.role, targets, values)})
    corpus = drafts.searched(_chosen(CORPUS, targets, values))
    retrieving = Retrieving(draft.role, draft.place, draft.kind, parameters, corpus).searching()
    named = parameters.service
    service = None if named is None else getattr(parameters, named)
    if named is None or service is None:
        return retrieving
    swept = [name for name, target in targets.items() if target == (draft.role, named)]
    at: Place = ("grid", swept[0]) if swept else (*draft.place, named)
    problems += context.services.not_embedding(context.located, at, service)
    embedder = context.services.valid.get(service)
    return None if embedder is None else replace(retrieving, embedder=embedder)


def _reranking(
    context: GridContext,
    draft: Draft | None,
    targets: Mapping[str, Target],
    values: Mapping[str, Any],
    problems: list[InputError],
) -> Reranking | None:
    """Resolve the reranker; None if absent or invalid."""
    if draft is None:
        return None
    parameters = draft.parameters(_chosen(RERANK, targets, values))
    if not isinstance(parameters, ModelRerankParameters):
        assert isinstance(parameters, Reranker)  # noqa: S101  the types of rerankers
        return Reranking(draft.place, draft.kind, parameters)
    swept = [name for name, target in targets.items() if target == (RERANK, "service")]
    at: Place = ("grid", swept[0]) if swept else (*draft.place, "service")
    problems += context.services.not_reranking(context.located, at, parameters.service)
    service = context.services.valid.get(parameters.service)
    if service is None:
        return None
    reranking = Reranking(draft.place, service.kind, parameters, service)
    for name in sorted({"max_output_tokens", "thinking"} & parameters.model_fields_set):
        if not reranking.is_called:
            problem = (
                f"has no use: {service.name!r} scores texts in this process and does not generate any; leave it out"
            )
            problems.append(context.located.error((*draft.place, name), problem))
    return reranking


def _generating(
    context: GridContext,
    draft: Draft | None,
    targets: Mapping[str, Target],
    values: Mapping[str, Any],
    problems: list[InputError],
) -> Generating | None:
    """Resolve the generator; None if absent or invalid."""
    if draft is None:
        return None
    parameters = GenerateParameters.model_validate({**draft.values, **_chosen(GENERATE, targets, values)})
    places = _places(draft, targets)
    service = _writer(context, parameters, places, problems)
    file = _template(context, parameters.template, default(), places, problems)
    return None if service is None or file is None else Generating(parameters, service, file)


def _places(draft: Draft, targets: Mapping[str, Target]) -> dict[str, Place]:
    """The place of each parameter of a component that names something: in the grid, or in the component."""
    swept: dict[str, Place] = {inside: ("grid", name) for name, (role, inside) in targets.items() if role == draft.role}
    return {name: swept.get(name, (*draft.place, name)) for name in ("service", "temperature", "template")}


def _writer(
    context: GridContext,
    parameters: GenerateParameters | RewriteParameters,
    places: Mapping[str, Place],
    problems: list[InputError],
) -> ConfiguredService | None:
    """The model that writes; None if it is unknown."""
    problems += context.services.not_writing(context.located, places["service"], parameters.service)
    service = context.services.valid.get(parameters.service)
    if service is not None and "temperature" in parameters.model_fields_set and service.sets_temperature:
        problem = f"services: {service.name} sets a temperature, too; keep one"
        problems.append(context.located.error(places["temperature"], problem))
    return service


def _template(
    context: GridContext,
    path: str | None,
    own: TemplateFile,
    places: Mapping[str, Place],
    problems: list[InputError],
) -> TemplateFile | None:
    """A template file, by default rankbeam's own; None if it cannot be read."""
    try:
        return own if path is None else context.templates.read(path)
    except InputError as error:
        problems.append(context.located.error(places["template"], str(error)))
        return None


def _rewriting(
    context: GridContext,
    draft: Draft | None,
    targets: Mapping[str, Target],
    values: Mapping[str, Any],
    problems: list[InputError],
) -> RewritingQueries | None:
    """Resolve the model that rewrites queries; None if absent or invalid."""
    if draft is None:
        return None
    parameters = RewriteParameters.model_validate({**draft.values, **_chosen(REWRITE, targets, values)})
    places = _places(draft, targets)
    service = _writer(context, parameters, places, problems)
    own = TemplateFile(None, default_template(parameters.kind))
    file = _template(context, parameters.template, own, places, problems)
    if service is None or file is None:
        return None
    file = replace(file, own=frozenset({QUERY, FENCE, HISTORY, NUMBER}))
    if parameters.kind is RewriteKind.STANDALONE and HISTORY in file.own - variables_of(file.text):
        problems.append(context.located.error(places["template"], "has no {history}, which kind: standalone is about"))
    return RewritingQueries(draft.place, parameters, service, file)


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
