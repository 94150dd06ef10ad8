"""From `configurations:` and `grid:` to the systems under test, and the sources their rankings are cut from."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from rankbeam.pipelines.config.yaml_lines import Located, Place
from rankbeam.pipelines.experiment import fusions
from rankbeam.pipelines.experiment.cells import Cell, Given, Grid
from rankbeam.pipelines.experiment.grid import cells, check_names
from rankbeam.transforms.clients.retrievers.base import RetrieverParameters
from rankbeam.transforms.clients.retrievers.run_file import RunFile
from rankbeam.transforms.records.calls.reach import Reach
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.evaluation import Configuration, Source
from rankbeam.transforms.records.metrics.dialects import Dialect


@dataclass(frozen=True)
class Expanded:
    """The result of `expand`.

    Attributes:
        cells: every configuration, in order.
        primary: per source, the cell that goes farthest; the others are cut from its ranking.
        configurations: the cells, as the stages see them.
        sources: where rankings come from.
    """

    cells: tuple[Cell, ...]
    primary: tuple[Cell, ...]
    configurations: tuple[Configuration, ...]
    sources: tuple[Source, ...]

    @property
    def retrievers(self) -> tuple[RetrieverParameters, ...]:
        """Per source, its parameters."""
        return tuple(cell.parameters for cell in self.primary)

    @property
    def places(self) -> tuple[Place, ...]:
        """Per source, where in the document its retriever stands."""
        return tuple(cell.place for cell in self.primary)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Per source, the retriever's type."""
        return tuple(cell.kind for cell in self.primary)


def expand(
    located: Located,
    given: Sequence[Given],
    grid: Grid,
    dialects: Sequence[Dialect],
    unit: str,
    problems: list[InputError],
) -> Expanded:
    """Cross every configuration with the grid, and group what one ranking can serve.

    Args:
        located: the document, for messages.
        given: the configurations.
        grid: parameters and their values.
        dialects: by which every configuration is scored; none for rankbeam's own alone.
        unit: the dataset's unit.
        problems: what is wrong is added here.
    """
    base = fusions.with_parts(located, cells(located, given, grid, problems), [each.name for each in given], problems)
    found = [spoken for cell in base for spoken in cell.in_dialects(dialects)]
    check_names(located, found, problems)
    groups: dict[str, list[Cell]] = {}
    for cell in found:
        groups.setdefault(cell.asked, []).append(cell)
    primary = {asked: max(group, key=lambda cell: cell.width) for asked, group in groups.items()}
    return Expanded(
        cells=tuple(found),
        primary=tuple(primary.values()),
        configurations=tuple(
            _configuration(cell, list(groups).index(cell.asked), primary[cell.asked]) for cell in found
        ),
        sources=tuple(_source(group, list(groups), unit) for group in groups.values()),
    )


def _configuration(cell: Cell, source: int, primary: Cell) -> Configuration:
    return Configuration(
        config_id=cell.config_id,
        name=cell.name,
        source=source,
        retriever=cell.kind,
        parameters=cell.canonical,
        top_k=cell.top_k,
        derived_from=None if cell == primary or not _covers(primary, cell) else primary.config_id,
        dialect=cell.dialect,
        distance=cell.cut,
    )


def _covers(primary: Cell, cell: Cell) -> bool:
    """Whether one cell's results hold those of another: a source may be asked for more than any cell needs."""
    return primary.cut is None or (cell.cut is not None and cell.cut <= primary.cut)


def _source(group: Sequence[Cell], asked: Sequence[str], unit: str) -> Source:
    """What is asked for a group of cells: as far as any of them goes."""
    all_there_is = any(cell.top_k is None for cell in group)
    reach = functools.reduce(Reach.joined, (Reach(cell.top_k or 0, cell.distance) for cell in group))
    return Source(
        path=None,
        top_k=None if all_there_is else reach.results,
        refuse_repeats=_refuses_repeats(group[0].parameters, unit),
        distance=reach.distance,
        lower_is_better=group[0].lower_is_better,
        fusion=fusions.plan_of(group[0], asked),
    )


def _refuses_repeats(parameters: RetrieverParameters, unit: str) -> bool:
    return parameters.duplicates == "refuse" if isinstance(parameters, RunFile) else unit == "chunk"
