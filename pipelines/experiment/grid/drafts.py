"""Components of a configuration as the file has them, before the grid replaces any of their parameters."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from rankbeam.pipelines.config.problems import problem_of
from rankbeam.pipelines.config.yaml_lines import Located, Place
from rankbeam.pipelines.experiment.file.corpora import CORPUS, Corpora, Corpus, Entry
from rankbeam.pipelines.experiment.file.generate import GenerateParameters, RewriteParameters
from rankbeam.pipelines.experiment.file.keys import DISTANCE, MOST, SIMILARITY, TOP_K
from rankbeam.pipelines.experiment.file.models import ConfigurationModel
from rankbeam.pipelines.experiment.grid.cells import Cell
from rankbeam.pipelines.experiment.grid.components import (
    ANSWERS,
    GENERATE,
    RERANK,
    RETRIEVER,
    REWRITE,
    Reranking,
    RewritingQueries,
)
from rankbeam.pipelines.experiment.grid.stages import Variant, reranker_model
from rankbeam.transforms.clients.parameters import Parameters
from rankbeam.transforms.clients.retrievers.applications.ask import APPLICATIONS
from rankbeam.transforms.clients.retrievers.applications.callables import CALLABLE, CallableApplication
from rankbeam.transforms.clients.retrievers.base import RETRIEVERS, RetrieverParameters, Route
from rankbeam.transforms.clients.retrievers.replay import TRACES, Replay, Traced
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.suggestions import did_you_mean
from rankbeam.transforms.records.wrong_values import in_one

CONFIGURATION = ""
"""Role of the keys of the configuration itself: `top_k` and the distance threshold."""

_REPLAY = "replay"
"""The type under `answers:` of answers that exist already."""

Target = tuple[str, str]
"""Target of a parameter of the grid: the role of a component, and the name of the parameter there."""


@dataclass(frozen=True)
class Draft:
    """A component of a configuration."""

    role: str
    place: Place
    kind: str  # empty where there is one only
    model: type[Parameters]
    values: Mapping[str, Any]
    fixed: frozenset[str] = frozenset()

    @property
    def sweepable(self) -> set[str]:
        """The parameters that the grid can replace."""
        return {*self.model.model_fields} - self.fixed

    def parameters(self, chosen: Mapping[str, Any]) -> Parameters:
        return self.model.model_validate({**self.values, **chosen})

    def wrong_beside(self, located: Located, first: Mapping[str, Any]) -> Iterator[InputError]:
        """Validate the parameters that the grid replaces in every cell."""
        try:
            self.model.model_validate({**first, **self.values})
        except ValidationError as error:
            for detail in in_one(error.errors()):
                if {*detail["loc"][:1]} & {*first} & {*self.values}:
                    yield problem_of(located, self.model, detail, at=self.place)


@dataclass(frozen=True)
class Drafts:
    """The components of one configuration."""

    place: Place
    name: str
    retriever: Draft
    model: type[RetrieverParameters]
    inside: Any
    generate: Draft | None
    entry: Entry | None = None  # None if none is named
    rewrite: Draft | None = None
    rerank: Draft | None = None
    labels: tuple[str, ...] = ()  # of the stages that the grid gives it

    @property
    def all(self) -> list[Draft]:
        entry = self.entry
        corpus = None if entry is None else Draft(CORPUS, entry.place, entry.kind, entry.model, entry.values)
        return [
            draft for draft in (self.retriever, corpus, self.rewrite, self.rerank, self.generate) if draft is not None
        ]

    def owners(self, name: str) -> list[Target]:
        """Targets of a parameter of the grid: a bare name in any component, `ROLE.NAME` in that one."""
        role, dot, inside = name.partition(".")
        if dot:
            return [(draft.role, inside) for draft in self.all if draft.role == role and inside in draft.sweepable]
        beside = [(CONFIGURATION, name)] if name in self.reach else []
        return [*beside, *((draft.role, name) for draft in self.all if name in draft.sweepable)]

    @property
    def reach(self) -> tuple[str, ...]:
        """Keys that the configuration may have beside its components."""
        if self.retriever.role == ANSWERS:
            return ()
        return (TOP_K, DISTANCE) if self.model.has_distances else (TOP_K,)

    @property
    def default_top_k(self) -> int | None:
        """Number of results where none is given: with a reranker all that it scores."""
        return self.model.default_top_k if self.rerank is None else None

    @property
    def sweepable(self) -> set[str]:
        """Every name that a grid may have for this configuration."""
        dotted = (f"{draft.role}.{name}" for draft in self.all for name in draft.sweepable)
        return {*self.reach, *(name for draft in self.all for name in draft.sweepable), *dotted}

    def searched(self, chosen: Mapping[str, Any]) -> Corpus | None:
        """The corpus with some of its parameters replaced; None if the configuration has none."""
        return None if self.entry is None else self.entry.corpus(chosen)


def drafts_of(located: Located, corpora: Corpora, variant: Variant, problems: list[InputError]) -> Drafts | None:
    """The components of a configuration; None after reporting an unknown one."""
    place, item = variant.configuration, variant.item
    role, values = (RETRIEVER, item.retriever) if item.answers is None else (ANSWERS, item.answers)
    if values is None:
        return None
    values = dict(values)
    kind = values.pop("type", None)
    try:
        model = _model(located, (*place, role), kind)
        rerank = _rerank(located, variant)
    except InputError as error:
        problems.append(error)
        return None
    inside = values.pop(DISTANCE, None) if DISTANCE not in model.model_fields else None
    is_named = bool(model.searches) and corpora.is_named(values.get(CORPUS))
    entry, wrong = _entry(located, corpora, (*place, role, CORPUS), str(kind), model, values)
    if wrong or (is_named and entry is None):  # the entry itself has a problem, reported at its place
        problems += wrong
        return None
    generate = None
    if item.generate is not None:
        generate = Draft(GENERATE, (*place, GENERATE), "", GenerateParameters, item.generate)
    name = item.name or f"{place[0]}[{variant.position}]"  # an invalid name is reported already
    fixed = frozenset() if entry is None else frozenset({CORPUS})
    fixed |= {*model.model_fields} if model is Traced else fixed  # the traces are read already
    retriever = Draft(role, (*place, role), str(kind), model, values, fixed)
    rewrite = (
        None if item.rewrite is None else Draft(REWRITE, variant.place(REWRITE), "", RewriteParameters, item.rewrite)
    )
    return Drafts(place, name, retriever, model, inside, generate, entry, rewrite, rerank, variant.labels)


def _rerank(located: Located, variant: Variant) -> Draft | None:
    values, place = variant.item.rerank, variant.place(RERANK)
    if values is None:
        return None
    kind, model = reranker_model(located, place, values)
    return Draft(RERANK, place, kind, model, {name: value for name, value in values.items() if name != "type"})


def _entry(
    located: Located,
    corpora: Corpora,
    place: Place,
    kind: str,
    model: type[RetrieverParameters],
    values: dict[str, Any],
) -> tuple[Entry | None, list[InputError]]:
    """Take the entry of `corpora:` that a retriever names out of its values; return it and the problems of the name."""
    if CORPUS not in values or not model.searches:
        return None, []
    wrong = list(corpora.wrong_name(located, place, kind, model, values[CORPUS]))
    if wrong or not corpora.is_named(values[CORPUS]):
        return None, wrong
    return corpora.entries.get(values.pop(CORPUS)), []


def _model(located: Located, place: Place, kind: Any) -> type[RetrieverParameters]:
    if not isinstance(kind, str):
        raise located.error((*place, "type"), "is missing" if kind is None else "is not a word")
    if place[-1] == ANSWERS:
        types: dict[str, type[RetrieverParameters]] = {
            _REPLAY: Replay,
            TRACES: Traced,
            **APPLICATIONS,
            CALLABLE: CallableApplication,
        }
        if kind not in types:
            raise located.error(
                (*place, "type"), f"unknown type {kind!r}; {did_you_mean(kind, [_REPLAY, TRACES, *APPLICATIONS])}"
            )
        return types[kind]
    try:
        return RETRIEVERS.load(kind)
    except InputError as error:
        raise located.error((*place, "type"), error.problem) from error


def stated_reach(
    located: Located, item: ConfigurationModel, drafts: Drafts, problems: list[InputError]
) -> dict[str, Any]:
    """`top_k` and distance threshold of a configuration, or else of its type of retriever."""
    wrong = list(_wrong_stated_reach(located, item, drafts))
    problems += wrong
    return {
        TOP_K: drafts.default_top_k if item.top_k is None else item.top_k,
        DISTANCE: None if wrong else item.vector_distance_threshold or drafts.inside,
    }


def chosen_reach(values: Mapping[str, Any]) -> tuple[int | None, float | None]:
    """The most results and the largest distance of one cell."""
    distance = values[DISTANCE]
    return values[TOP_K], None if distance is None else float(distance)


def beyond_most(
    located: Located, at: Place, kind: str, model: type[RetrieverParameters], top_k: int
) -> Iterator[InputError]:
    """Refuse more results than one call to a service can return."""
    if model.most_results is not None and top_k > model.most_results:
        yield located.error(at, f"a {kind} retriever returns at most {model.most_results} results, found {top_k}")


def wrong_reach(located: Located, cell: Cell, chosen: Mapping[str, Any]) -> Iterator[InputError]:
    """Refuse parameters that the service would refuse, and texts that nothing would be asked."""
    if cell.rewriter is not None:
        yield from _wrong_rewrite(located, cell, cell.rewriter)
    if cell.retriever.parameters.joins_history:
        yield from _wrong_history(located, cell)
    if cell.reranker is not None:
        yield from _wrong_depth(located, cell, chosen, cell.reranker)
    if cell.retriever.route is not Route.CALLED or cell.retriever.role == ANSWERS:
        return
    kind, parameters = cell.retriever.kind, cell.retriever.parameters
    at: Place = ("grid", TOP_K) if TOP_K in chosen else (*cell.place, TOP_K)
    if cell.reranker is not None:
        pass  # the depth counts
    elif cell.top_k is None:
        yield located.error(at, f"is missing; a {kind} retriever needs the number of results to request")
    else:
        yield from beyond_most(located, at, kind, type(parameters), cell.top_k)
    if cell.distance is not None and getattr(parameters, SIMILARITY, None) is not None:
        at = ("grid", DISTANCE) if DISTANCE in chosen else (*cell.retriever.place, SIMILARITY)
        yield located.error(at, f"a retriever takes {DISTANCE} or {SIMILARITY}, not both; keep one")


def _wrong_rewrite(located: Located, cell: Cell, rewriter: RewritingQueries) -> Iterator[InputError]:
    """Refuse to rewrite the queries of rankings that exist already, are fused, or are by vectors of a file."""
    route, own = cell.retriever.route, cell.retriever.parameters.inputs()
    if route not in (Route.OPENED, Route.CALLED):
        others = "rewrite the queries of its parts" if route is Route.FUSED else "leave it out"
        problem = f"a {cell.retriever.kind} retriever receives no queries; {others}"
        yield located.error(rewriter.place, problem)
    elif "query_vectors" in own:
        yield located.error(rewriter.place, "the vectors of queries come from a file; remove query_vectors")


def _wrong_history(located: Located, cell: Cell) -> Iterator[InputError]:
    """Refuse to join the history where no text is asked, or another one."""
    own, place = cell.retriever, (*cell.retriever.place, "query")
    if own.role == ANSWERS:
        yield located.error(
            place, "existing answers have no query to join; applications take {history} in their request"
        )
    elif own.route not in (Route.OPENED, Route.CALLED):
        yield located.error(place, f"a {own.kind} retriever receives no queries; leave it out")
    elif "query_vectors" in own.parameters.inputs():
        yield located.error(place, "the vectors of queries come from a file; remove query_vectors")
    elif cell.rewriter is not None:
        yield located.error(place, "the model of rewrite: writes the queries; leave it out")


def _wrong_depth(located: Located, cell: Cell, chosen: Mapping[str, Any], reranker: Reranking) -> Iterator[InputError]:
    """Refuse a reranker that is given fewer results than remain, or more than the retriever returns."""
    if cell.top_k is not None and cell.top_k > reranker.depth:
        at: Place = ("grid", TOP_K) if TOP_K in chosen else (*cell.place, TOP_K)
        problem = f"is {cell.top_k}, and the reranker of {cell.name!r} scores {reranker.depth} results"
        yield located.error(at, f"{problem}; raise rerank.depth, or lower top_k")
    swept = next((name for name in ("depth", "rerank.depth") if name in chosen), None)
    at = (*reranker.place, "depth") if swept is None else ("grid", swept)
    if cell.retriever.route is Route.CALLED:
        yield from beyond_most(located, at, cell.retriever.kind, type(cell.retriever.parameters), reranker.depth)


def wrong_in_grid(located: Located, name: str, values: Sequence[Any]) -> Iterator[InputError]:
    """Validate swept `top_k` or distance thresholds."""
    if name == TOP_K and not all(type(value) is int and 1 <= value <= MOST for value in values):
        yield located.error(("grid", name), f"must be whole numbers from 1 to {MOST:,}, found {values!r}")
    elif name == DISTANCE and not all(value is None or _is_distance(value) for value in values):
        yield located.error(("grid", name), f"must be numbers greater than 0, or null, found {values!r}")


def _wrong_stated_reach(located: Located, item: ConfigurationModel, drafts: Drafts) -> Iterator[InputError]:
    """Validate `top_k` and the distance threshold of a configuration, which may also be inside `retriever:`."""
    if drafts.retriever.role == ANSWERS and item.retriever is None:  # both are reported already
        for name in (TOP_K, DISTANCE):
            if getattr(item, name) is not None:
                yield located.error((*drafts.place, name), "answers have no ranking to cut; leave it out")
        return
    beside, inside = item.vector_distance_threshold, drafts.inside
    at = (*drafts.place, DISTANCE) if inside is None else (*drafts.retriever.place, DISTANCE)
    if inside is None and beside is None:
        return
    if not drafts.model.has_distances:
        yield located.error(at, "this type of retriever has no distances; leave it out")
    elif inside is not None and not _is_distance(inside):
        yield located.error(at, f"must be a number greater than 0, found {inside!r}")
    elif None not in (inside, beside) and inside != beside:
        yield located.error(at, f"is {inside!r} here and {beside!r} beside the retriever; keep one")


def _is_distance(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value < math.inf
