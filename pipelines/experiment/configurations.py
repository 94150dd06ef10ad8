"""From `configurations:` and `grid:` to the systems under test, and the sources their rankings are cut from."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rankbeam.pipelines.experiment import fusions
from rankbeam.pipelines.experiment.cells import Cell, Given, Grid
from rankbeam.pipelines.experiment.grid import Around, cells, check_names
from rankbeam.pipelines.experiment.sources import PlannedSource
from rankbeam.pipelines.experiment.template_files import TemplateFile
from rankbeam.transforms.clients.retrievers.base import Route
from rankbeam.transforms.records.calls.reach import Reach
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.evaluation import Configuration, Source
from rankbeam.transforms.records.metrics.dialects import Dialect


@dataclass(frozen=True)
class Expanded:
    """The result of `expand`."""

    cells: tuple[Cell, ...]  # every configuration, in order
    configurations: tuple[Configuration, ...]
    sources: tuple[PlannedSource, ...]

    @property
    def templates(self) -> dict[TemplateFile, bool]:
        """The templates, and whether all configurations with a template generate without contexts, too."""
        templates: dict[TemplateFile, bool] = {}
        for each in (cell.generator for cell in self.cells):
            if each is not None:
                templates[each.file] = templates.get(each.file, True) and each.parameters.without_contexts
        return templates


def expand(
    around: Around,
    given: Sequence[Given],
    grid: Grid,
    dialects: Sequence[Dialect],
    unit: str,
    problems: list[InputError],
) -> Expanded:
    """Cross every configuration with the grid, and group what one ranking can serve."""
    located = around.located
    base = fusions.with_parts(located, cells(around, given, grid, problems), [each.name for each in given], problems)
    all_cells = [variant for cell in base for variant in cell.in_dialects(dialects)]
    check_names(located, all_cells, problems)
    groups: dict[str, list[Cell]] = {}
    asked_by_cell = [cell.asked for cell in all_cells]
    for cell, asked in zip(all_cells, asked_by_cell, strict=True):
        groups.setdefault(asked, []).append(cell)
    primary = {asked: max(group, key=lambda cell: cell.width) for asked, group in groups.items()}
    positions = {asked: position for position, asked in enumerate(groups)}
    return Expanded(
        cells=tuple(all_cells),
        configurations=tuple(
            _configuration(cell, positions[asked], primary[asked])
            for cell, asked in zip(all_cells, asked_by_cell, strict=True)
        ),
        sources=tuple(
            PlannedSource(_source(group, positions, unit), primary[asked].retriever) for asked, group in groups.items()
        ),
    )


def _configuration(cell: Cell, source: int, primary: Cell) -> Configuration:
    return Configuration(
        config_id=cell.config_id,
        name=cell.name,
        source=source,
        retriever=cell.retriever.kind,
        parameters=cell.canonical,
        top_k=cell.top_k,
        derived_from=None if cell == primary or not _covers(primary, cell) else primary.config_id,
        dialect=cell.dialect,
        distance=cell.cut,
        generation=None if cell.generator is None else cell.generator.generation,
    )


def _covers(primary: Cell, cell: Cell) -> bool:
    """Whether one cell's results contain those of another: a source may return more than any cell needs."""
    return primary.cut is None or (cell.cut is not None and cell.cut <= primary.cut)


def _source(group: Sequence[Cell], positions: Mapping[str, int], unit: str) -> Source:
    """The request for a group of cells: as far as any of them goes."""
    all_there_is = any(cell.top_k is None for cell in group)
    reach = functools.reduce(Reach.joined, (Reach(cell.top_k or 0, cell.distance) for cell in group))
    return Source(
        path=None,
        top_k=None if all_there_is else reach.results,
        refuse_repeats=group[0].retriever.parameters.refuses_repeats(unit),
        distance=reach.distance,
        lower_is_better=group[0].lower_is_better,
        fusion=fusions.plan_of(group[0], positions),
        replayed=group[0].retriever.route is Route.REPLAYED,
    )
