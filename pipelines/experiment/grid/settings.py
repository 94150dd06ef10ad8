"""Components of a configuration as the file has them, before the grid replaces any of their parameters.

The stages around a retriever, `rewrite:` and `rerank:`, may come from the grid as a whole.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rankbeam.pipelines.config.sections import MOST
from rankbeam.pipelines.config.yaml_lines import Place, YamlDocument, format_place
from rankbeam.pipelines.experiment.file.corpora import CORPUS, ComponentSettings, Corpora
from rankbeam.pipelines.experiment.file.generate import GenerateParameters, ModelRerankParameters, RewriteParameters
from rankbeam.pipelines.experiment.file.models import DISTANCE, MIN_SCORE, TOP_K, ConfigurationModel
from rankbeam.pipelines.experiment.grid.components import ANSWERS, GENERATE, RERANK, RETRIEVER, REWRITE
from rankbeam.transforms.clients.corpora.base import CorpusParameters
from rankbeam.transforms.clients.parameters import Base, Parameters
from rankbeam.transforms.clients.retrievers.applications.ask import APPLICATIONS
from rankbeam.transforms.clients.retrievers.applications.callables import CALLABLE, CallableApplication
from rankbeam.transforms.clients.retrievers.base import RETRIEVERS, RetrieverParameters, Route
from rankbeam.transforms.clients.retrievers.replay import TRACES, Replay, Traced
from rankbeam.transforms.clients.retrievers.rerankers import RERANKERS, Reranker
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.records.errors import InputError, did_you_mean

MOST_CELLS = 10_000
Grid = Mapping[str, Sequence[tuple[str, Any]]]
"""The values of each parameter of the grid, with the labels that replace them in names."""

CONFIGURATION = ""  # role of the keys of the configuration itself: `top_k` and the threshold of scores

_REPLAY = "replay"  # the type under `answers:` of existing answers

Target = tuple[str, str]
"""Target of a parameter of the grid: the role of a component, and the name of the parameter there."""

STAGES = (REWRITE, RERANK)  # components that the grid can replace as a whole, too

_Stage = tuple[str, Any, Place]  # a stage from the grid: its label, the component, and its place


def _can_have(role: str, item: ConfigurationModel) -> bool:
    """Return whether the grid can give a configuration this stage.

    Existing answers have no stages, and only a retriever that receives the query itself can get a rewritten one.
    """
    values = item.retriever
    if values is None or role != REWRITE:
        return values is not None
    if not isinstance(kind := values.get("type"), str) or kind not in RETRIEVERS.types:
        return True  # its type is refused elsewhere
    is_asked = RETRIEVERS.load(kind).route in (Route.OPENED, Route.CALLED)
    return is_asked and values.get("query_vectors") is None and values.get("query") != "history"


def wrong_stages(located: YamlDocument, items: Sequence[ConfigurationModel], grid: Grid) -> Iterator[InputError]:
    """Report stages in the grid that no configuration can have, and values that cannot be a stage."""
    for role in STAGES:
        if role in grid and not grid[role]:
            yield located.error(("grid", role), "lists no value")
        elif role in grid and items and not any(_can_have(role, item) for item in items):
            requirement = "a retriever that receives the query" if role == REWRITE else "a retriever"
            yield located.error(("grid", role), f"no configuration can have it: none has {requirement}")
        for _, value in grid.get(role, ()):
            if value is not None and not isinstance(value, dict):
                problem = f"must be mappings such as {{service: NAME}}, or null, found {value!r}"
                yield located.error(("grid", role), problem)


@dataclass(frozen=True)
class ConfigurationSettings:
    """The components of one configuration."""

    item: ConfigurationModel
    place: Place
    name: str
    labels: tuple[str, ...]  # of the stages that the grid gives it
    inside: Any  # the `vector_distance_threshold` inside `retriever:`
    retriever: ComponentSettings[RetrieverParameters]
    corpus: ComponentSettings[CorpusParameters] | None
    rewrite: ComponentSettings[RewriteParameters] | None
    rerank: ComponentSettings[Reranker | ModelRerankParameters] | None
    generate: ComponentSettings[GenerateParameters] | None

    @property
    def all(self) -> list[ComponentSettings[Parameters]]:
        components = (self.retriever, self.corpus, self.rewrite, self.rerank, self.generate)
        return [component for component in components if component is not None]

    @cached_property
    def targets(self) -> Mapping[str, Sequence[Target]]:
        """Targets of each name in the grid: a bare name may be here or in any component, `ROLE.NAME` in that one."""
        parts = [
            (written, (component.role, name))
            for component in self.all
            for name in component.model.model_fields.keys() - component.fixed
            for written in (name, f"{component.role}.{name}")
        ]
        return grouped(parts) | {name: [(CONFIGURATION, name)] for name in self.own_keys}

    @property
    def own_keys(self) -> tuple[str, ...]:
        """Keys that the configuration may have beside its components."""
        if self.retriever.role == ANSWERS:
            return ()
        return (TOP_K, DISTANCE if self.has_distances else MIN_SCORE)

    @property
    def has_distances(self) -> bool:
        """True if scores are distances."""
        return bool(self.retriever.values.get("lower_is_better", self.retriever.model.has_distances))


def settings_of(
    located: YamlDocument, corpora: Corpora, items: Sequence[ConfigurationModel], grid: Grid
) -> Iterator[ConfigurationSettings]:
    """The components of every configuration, with each combination of the grid's stages that it can have."""
    stages = {role: list(_stages(located, role, grid[role])) for role in grid if role in STAGES}
    for position, item in enumerate(items):
        roles = [role for role in stages if _can_have(role, item)]
        for combination in itertools.product(*(stages[role] for role in roles)):
            swept = dict(zip(roles, combination, strict=True))
            if (settings := _components(located, corpora, ("configurations", position), item, swept)) is not None:
                yield settings


def _stages(located: YamlDocument, role: str, values: Sequence[tuple[str, Any]]) -> Iterator[_Stage]:
    is_labelled = isinstance(located.value["grid"][role], dict)
    for number, (label, value) in enumerate(values):
        yield label, value, ("grid", role, label if is_labelled else number)


def _components(
    located: YamlDocument, corpora: Corpora, place: Place, item: ConfigurationModel, swept: Mapping[str, _Stage]
) -> ConfigurationSettings | None:
    """The components of a configuration, with the grid's stages; None after reporting an unknown one."""
    item = item.model_copy(update={role: value for role, (_, value, _) in swept.items()})
    places = {role: (*place, role) for role in STAGES} | {role: stage for role, (_, _, stage) in swept.items()}
    role, values = (RETRIEVER, item.retriever) if item.answers is None else (ANSWERS, item.answers)
    if values is None:
        return None
    values = dict(values)
    kind = values.pop("type", None)
    try:
        model = _type_of(located, _answers if role == ANSWERS else RETRIEVERS.load, (*place, role), kind)
        rerank = _rerank(located, places[RERANK], item.rerank)
    except InputError as error:
        located.problems.append(error)
        return None
    inside = values.pop(DISTANCE, None) if DISTANCE not in model.model_fields else None
    corpus = None
    if model.searches and CORPUS in values:
        wrong = list(corpora.wrong_name(located, (*place, role, CORPUS), str(kind), model, values[CORPUS]))
        located.problems.extend(wrong)
        is_named = corpora.is_named(values[CORPUS])
        corpus = corpora.valid.get(values.pop(CORPUS)) if is_named else None
        if wrong or (is_named and corpus is None):  # the corpus itself has a problem, reported at its place
            return None
    fixed = frozenset() if corpus is None else frozenset({CORPUS})
    fixed |= {*model.model_fields} if model is Traced else fixed  # the traces are read already
    retriever = ComponentSettings(role, (*place, role), str(kind), model, values, fixed)
    rewrite = generate = None
    if item.rewrite is not None:
        rewrite = ComponentSettings(REWRITE, places[REWRITE], "", RewriteParameters, item.rewrite)
    if item.generate is not None:
        generate = ComponentSettings(GENERATE, (*place, GENERATE), "", GenerateParameters, item.generate)
    name = item.name or format_place(place)  # an invalid name is reported already
    labels = tuple(f"{role}={label}" for role, (label, _, _) in swept.items())
    return ConfigurationSettings(item, place, name, labels, inside, retriever, corpus, rewrite, rerank, generate)


def _rerank(
    located: YamlDocument, place: Place, values: Mapping[str, Any] | None
) -> ComponentSettings[Reranker] | ComponentSettings[ModelRerankParameters] | None:
    """A `rerank:`, by its type or by a model under `services:`."""
    if values is None:
        return None
    if ("type" in values) == ("service" in values):
        problem = "has a type and a service; keep one" if "type" in values else "is missing, and so is service"
        raise located.error((*place, "type"), problem)
    if "service" in values:
        return ComponentSettings(RERANK, place, "", ModelRerankParameters, values)
    parameters = {name: value for name, value in values.items() if name != "type"}
    return ComponentSettings(
        RERANK, place, values["type"], _type_of(located, RERANKERS.load, place, values["type"]), parameters
    )


def _type_of(located: YamlDocument, load: Callable[[str], type[Base]], place: Place, name: Any) -> type[Base]:
    if not isinstance(name, str):
        raise located.error((*place, "type"), "is missing" if name is None else "is not a word")
    try:
        return load(name)
    except InputError as error:
        raise located.error((*place, "type"), error.problem) from error


def _answers(name: str) -> type[RetrieverParameters]:
    """The type of existing answers, or of an application's answers."""
    types: dict[str, type[RetrieverParameters]] = {
        _REPLAY: Replay,
        TRACES: Traced,
        **APPLICATIONS,
        CALLABLE: CallableApplication,
    }
    if name not in types:
        raise InputError(f"unknown type {name!r}; {did_you_mean(name, [_REPLAY, TRACES, *APPLICATIONS])}")
    return types[name]


def stated_limits(located: YamlDocument, settings: ConfigurationSettings) -> dict[str, Any]:
    """A configuration's `top_k` and thresholds, or else those of its retriever's type."""
    wrong, item = list(_wrong_stated_limits(located, settings)), settings.item
    located.problems.extend(wrong)
    is_reranked = settings.rerank is not None  # a reranker returns all that it scores
    default = None if is_reranked else settings.retriever.model.default_top_k
    return {
        TOP_K: default if item.top_k is None else item.top_k,
        DISTANCE: None if wrong else item.vector_distance_threshold or settings.inside,
        MIN_SCORE: None if wrong else item.min_score,
    }


def _wrong_stated_limits(located: YamlDocument, settings: ConfigurationSettings) -> Iterator[InputError]:
    """Validate a configuration's `top_k` and thresholds; a distance threshold may also be inside `retriever:`."""
    item = settings.item
    if settings.retriever.role == ANSWERS and item.retriever is None:  # both are reported already
        for name in (TOP_K, DISTANCE, MIN_SCORE):
            if getattr(item, name) is not None:
                yield located.error((*settings.place, name), "answers have no ranking to cut; leave it out")
        if settings.inside is not None:
            yield located.error((*settings.retriever.place, DISTANCE), "answers have no ranking to cut; leave it out")
        return
    if settings.has_distances and item.min_score is not None:
        yield located.error((*settings.place, MIN_SCORE), f"its scores are distances; use {DISTANCE} instead")
    threshold, inside = item.vector_distance_threshold, settings.inside
    place = (*settings.place, DISTANCE) if inside is None else (*settings.retriever.place, DISTANCE)
    if inside is None and threshold is None:
        return
    if not settings.has_distances:
        yield located.error(place, f"the scores of this retriever are not distances; use {MIN_SCORE} instead")
    elif inside is not None and not _is_distance(inside):
        yield located.error(place, f"must be a number greater than 0, found {inside!r}")
    elif None not in (inside, threshold) and inside != threshold:
        yield located.error(place, f"is {inside!r} here and {threshold!r} beside the retriever; keep one")


def wrong_in_grid(
    located: YamlDocument, corpora: Corpora, settings: Sequence[ConfigurationSettings], grid: Grid
) -> Iterator[InputError]:
    """Report parameters that no component has, or several have, and values that cannot be swept."""
    targets = [configuration.targets for configuration in settings]
    known = {TOP_K}.union(*targets)
    count = sum(math.prod(len(values) for name, values in grid.items() if name in own) for own in targets)
    if count > MOST_CELLS:
        yield located.error(("grid",), f"makes {count:,} configurations; at most {MOST_CELLS:,} are possible")
    for name, values in grid.items():
        several = next((own[name] for own in targets if len(own.get(name, ())) > 1), None)
        if name.rpartition(".")[2] == CORPUS and any(corpora.is_named(value) for _, value in values):
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
            yield from _wrong_values(located, name, [value for _, value in values])


def _wrong_values(located: YamlDocument, name: str, values: Sequence[Any]) -> Iterator[InputError]:
    """Validate swept `top_k` or thresholds."""
    if name == TOP_K and not all(type(value) is int and 1 <= value <= MOST for value in values):
        yield located.error(("grid", name), f"must be whole numbers from 1 to {MOST:,}, found {values!r}")
    elif name == DISTANCE and not all(value is None or _is_distance(value) for value in values):
        yield located.error(("grid", name), f"must be numbers greater than 0, or null, found {values!r}")
    elif name == MIN_SCORE and not all(value is None or _is_score(value) for value in values):
        yield located.error(("grid", name), f"must be numbers or null, found {values!r}")


def _is_distance(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value < math.inf


def _is_score(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)
