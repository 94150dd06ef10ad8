"""The different rankings that are cut from the rows of one source."""

from collections import defaultdict
from typing import NamedTuple

from rankbeam.transforms.records.evaluation import Evaluation
from rankbeam.transforms.records.metrics.dialects import RANKBEAM, Dialect


class Cut(NamedTuple):
    """What the rows of a source are ranked for, once."""

    dialect: Dialect
    distance: float | None
    top_k: int | None
    configurations: tuple[int, ...]


def cuts_of(evaluation: Evaluation, number: int) -> list[Cut]:
    """The different rankings of a source, each with the positions of its configurations.

    A tool that orders answers by score orders what it was given: the first `top_k`, as the service gave them.
    """
    source = evaluation.sources[number]
    is_given = source.path is None and source.fusion is None
    positions: defaultdict[tuple[Dialect, float | None, int | None], list[int]] = defaultdict(list)
    for position, each in enumerate(evaluation.configurations):
        if each.source == number:
            top_k = each.top_k if is_given and each.dialect.by_score else None
            positions[each.dialect, each.distance, top_k].append(position)
    if not positions and source.refuse_repeats:
        positions[RANKBEAM, None, None] = []  # it is only part of a fusion: ranked to be checked
    return [Cut(*cut, tuple(found)) for cut, found in positions.items()]
