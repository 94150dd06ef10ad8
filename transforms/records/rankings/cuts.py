"""The different rankings that are made from the rows of one source."""

from collections import defaultdict
from typing import NamedTuple

from rankbeam.transforms.records.metrics.dialects import RANKBEAM, Dialect
from rankbeam.transforms.records.metrics.evaluation import Evaluation


class Cut(NamedTuple):
    """One ranking of a source's rows, and the configurations that share it."""

    dialect: Dialect
    distance: float | None
    top_k: int | None
    configurations: tuple[int, ...]


def cuts_of(evaluation: Evaluation, number: int) -> list[Cut]:
    """The different rankings of a source, each with the positions of its configurations.

    A tool that orders answers by score orders only what it received: the first `top_k` results in the service's order.
    """
    source = evaluation.sources[number]
    is_given = source.path is None and source.fusion is None
    positions: defaultdict[tuple[Dialect, float | None, int | None], list[int]] = defaultdict(list)
    for position, configuration in enumerate(evaluation.configurations):
        if configuration.source == number:
            top_k = configuration.top_k if is_given and configuration.dialect.by_score else None
            positions[configuration.dialect, configuration.distance, top_k].append(position)
    if not positions and source.refuse_repeats:
        positions[RANKBEAM, None, None] = []  # only part of a fusion: ranked to check it for repeated documents
    return [Cut(*cut, tuple(configurations)) for cut, configurations in positions.items()]
