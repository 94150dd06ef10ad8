"""How far configurations go into a ranking: `top_k` and thresholds of distances, given or swept."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rankbeam.pipelines.config.yaml_lines import Located, Place
from rankbeam.pipelines.experiment.cells import DISTANCE, SIMILARITY, TOP_K, Cell, Given
from rankbeam.pipelines.experiment.components import ANSWERS
from rankbeam.pipelines.experiment.drafts import Drafts
from rankbeam.pipelines.experiment.keys import MOST
from rankbeam.transforms.clients.retrievers.base import RetrieverParameters, Route
from rankbeam.transforms.records.errors import InputError


def given_reach(located: Located, given: Given, drafts: Drafts, problems: list[InputError]) -> dict[str, Any]:
    """The reach of a configuration, given by itself or else by its type of retriever."""
    wrong = list(_wrong_given(located, given, drafts))
    problems += wrong
    return {
        TOP_K: drafts.model.default_top_k if given.top_k is None else given.top_k,
        DISTANCE: None if wrong else given.vector_distance_threshold or drafts.inside,
    }


def chosen_reach(values: Mapping[str, Any]) -> tuple[int | None, float | None]:
    """The most results and the largest distance of one cell."""
    distance = values[DISTANCE]
    return values[TOP_K], None if distance is None else float(distance)


def beyond_most(
    located: Located, at: Place, kind: str, model: type[RetrieverParameters], top_k: int
) -> Iterator[InputError]:
    """More results than one call to a service can bring."""
    if model.most_results is not None and top_k > model.most_results:
        yield located.error(at, f"a {kind} retriever returns at most {model.most_results} results, found {top_k}")


def wrong_reach(located: Located, cell: Cell, chosen: Mapping[str, Any]) -> Iterator[InputError]:
    """Parameters that the service behind a retriever would refuse."""
    if cell.retriever.route is not Route.CALLED:
        return
    kind, parameters = cell.retriever.kind, cell.retriever.parameters
    at: Place = ("grid", TOP_K) if TOP_K in chosen else (*cell.place, TOP_K)
    if cell.top_k is None:
        yield located.error(at, f"is missing; a {kind} retriever must be given how many results to ask for")
    else:
        yield from beyond_most(located, at, kind, type(parameters), cell.top_k)
    if cell.distance is not None and getattr(parameters, SIMILARITY, None) is not None:
        at = ("grid", DISTANCE) if DISTANCE in chosen else (*cell.retriever.place, SIMILARITY)
        yield located.error(at, f"a retriever takes {DISTANCE} or {SIMILARITY}, not both; keep one")


def wrong_in_grid(located: Located, name: str, values: Sequence[Any]) -> Iterator[InputError]:
    """What is wrong with the values of a key of the grid, where it is one of these two."""
    if name == TOP_K and not all(type(value) is int and 1 <= value <= MOST for value in values):
        yield located.error(("grid", name), f"input should be whole numbers from 1 to {MOST:,}, found {values!r}")
    elif name == DISTANCE and not all(value is None or _is_distance(value) for value in values):
        yield located.error(("grid", name), f"input should be numbers greater than 0, or null, found {values!r}")


def _wrong_given(located: Located, given: Given, drafts: Drafts) -> Iterator[InputError]:
    """What is wrong with a reach that is given beside the components, or with a threshold inside `retriever:`."""
    if drafts.retriever.role == ANSWERS and given.retriever is None:  # both are reported already
        for name in (TOP_K, DISTANCE):
            if getattr(given, name) is not None:
                yield located.error((*drafts.place, name), "replayed answers have no ranking to cut; leave it out")
        return
    beside, inside = given.vector_distance_threshold, drafts.inside
    at = (*drafts.place, DISTANCE) if inside is None else (*drafts.retriever.place, DISTANCE)
    if inside is None and beside is None:
        return
    if not drafts.model.has_distances:
        yield located.error(at, "this type of retriever has no distances; leave it out")
    elif inside is not None and not _is_distance(inside):
        yield located.error(at, f"input should be a number greater than 0, found {inside!r}")
    elif None not in (inside, beside) and inside != beside:
        yield located.error(at, f"is {inside!r} here and {beside!r} beside the retriever; keep one")


def _is_distance(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value < math.inf
