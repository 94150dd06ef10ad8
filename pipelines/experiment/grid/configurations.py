"""Expand `configurations:` and `grid:` into the systems under test and the sources of their rankings."""

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rankbeam.pipelines.config.yaml_lines import Located
from rankbeam.pipelines.experiment.file.models import ConfigurationModel
from rankbeam.pipelines.experiment.file.template_files import TemplateFile
from rankbeam.pipelines.experiment.grid.cells import Cell, Grid, PlannedSource
from rankbeam.pipelines.experiment.grid.components import ANSWERS
from rankbeam.pipelines.experiment.grid.grid import GridContext, cells, check_names
from rankbeam.transforms.clients.retrievers.fusion import Fusion
from rankbeam.transforms.records.calls.call import Reach
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.metrics.dialects import Dialect
from rankbeam.transforms.records.metrics.evaluation import Configuration, Source
from rankbeam.transforms.records.stages import FusionPart, FusionPlan, RerankPlan
from rankbeam.transforms.records.suggestions import did_you_mean


@dataclass(frozen=True)
class Expanded:
    """The result of `expand`."""

    cells: tuple[Cell, ...]  # every configuration, in order
    configurations: tuple[Configuration, ...]
    sources: tuple[PlannedSource, ...]

    @property
    def templates(self) -> dict[TemplateFile, bool]:
        """The templates, and whether all configurations with a template generate without contexts, too."""
        rewriters = [cell.rewriter for cell in self.cells if cell.rewriter is not None]
        templates = {rewriter.file: True for rewriter in rewriters}
        for entry in (cell.generator for cell in self.cells):
            if entry is not None:
                templates[entry.file] = templates.get(entry.file, True) and entry.parameters.without_contexts
        return templates


def expand(
    context: GridContext,
    items: Sequence[ConfigurationModel],
    grid: Grid,
    dialects: Sequence[Dialect],
    unit: str,
    problems: list[InputError],
) -> Expanded:
    """Cross every configuration with the grid, and group what one ranking can serve."""
    located = context.located
    base = with_parts(located, cells(context, items, grid, problems), [item.name for item in items], problems)
    all_cells = [variant for cell in base for variant in cell.in_dialects(dialects)]
    check_names(located, all_cells, problems)
    asked_by_cell = [cell.asked for cell in all_cells]
    shown = _groups(zip(all_cells, asked_by_cell, strict=True))
    hidden = [one for cell in all_cells for one in cell.hidden]
    groups = _groups([*zip(all_cells, asked_by_cell, strict=True), *((cell, cell.asked) for cell in hidden)])
    primary = {source_key: max(group, key=lambda cell: cell.width) for source_key, group in shown.items()}
    positions = {source_key: position for position, source_key in enumerate(groups)}
    return Expanded(
        cells=tuple(all_cells),
        configurations=tuple(
            _configuration(cell, positions[source_key], primary[source_key])
            for cell, source_key in zip(all_cells, asked_by_cell, strict=True)
        ),
        sources=tuple(
            PlannedSource(
                _source(group, positions, unit),
                (primary[source_key] if source_key in primary else group[0]).origin,
                group[0].reranker,
            )
            for source_key, group in groups.items()
        ),
    )


def _groups(cells: Iterable[tuple[Cell, str]]) -> dict[str, list[Cell]]:
    groups: dict[str, list[Cell]] = {}
    for cell, source_key in cells:
        groups.setdefault(source_key, []).append(cell)
    return groups


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
    """Return whether one cell's results contain those of another: a source may return more than any cell needs."""
    return primary.cut is None or (cell.cut is not None and cell.cut <= primary.cut)


def _source(group: Sequence[Cell], positions: Mapping[str, int], unit: str) -> Source:
    """One request for a group of cells, as deep as the deepest of them."""
    all_there_is = any(cell.top_k is None for cell in group)
    reach = functools.reduce(Reach.joined, (Reach(cell.top_k or 0, cell.distance) for cell in group))
    return Source(
        path=None,
        top_k=None if all_there_is else reach.results,
        refuse_repeats=group[0].retriever.parameters.refuses_repeats(unit),
        distance=None if group[0].reranker is not None else reach.distance,
        lower_is_better=group[0].lower_is_better,
        fusion=plan_of(group[0], positions),
        replayed=group[0].retriever.role == ANSWERS,
        rerank=_rerank_plan(group[0], positions),
        rewrite=group[0].rewritten,
    )


def _rerank_plan(cell: Cell, positions: Mapping[str, int]) -> RerankPlan | None:
    """Plan to rerank the ranking that a cell is made from; None without a reranker."""
    if cell.reranker is None or (base := cell.base) is None:
        return None
    return RerankPlan(positions[base.asked], cell.reranker.depth, base.cut)


def with_parts(
    located: Located, cells: Sequence[Cell], item_names: Sequence[str], problems: list[InputError]
) -> list[Cell]:
    """All cells, with the parts of every fusion; a fusion with an unknown part is left out.

    A part is the name of a cell, such as "bm25:top_k=10", or a name under `configurations:`, which means the
    widest of its cells if all of them are cut from one ranking.
    """
    whole = []
    for cell in cells:
        if (fusion := cell.retriever.fusion) is None:
            whole.append(cell)
            continue
        wrong = list(_wrong_parts(located, cell, fusion, cells, item_names))
        parts = [_widest(name, cells) for name in fusion.parts]
        known = tuple(part for part in parts if part is not None)
        problems += wrong
        if not wrong and len(known) == len(parts):
            whole.append(replace(cell, parts=known))
    return whole


def plan_of(cell: Cell, positions: Mapping[str, int]) -> FusionPlan | None:
    """Plan to fuse a cell from its parts; None if it is not a fusion."""
    parts = tuple(
        FusionPart(
            source=positions[part.asked],
            top_k=part.top_k,
            distance=part.cut,
            lower_is_better=part.lower_is_better,
        )
        for part in cell.lists or cell.parts
    )
    if cell.reranker is not None or not parts:
        return None
    return FusionPlan(parts) if (fusion := cell.retriever.fusion) is None else fusion.plan(parts)


def _named(name: str, cells: Sequence[Cell]) -> list[Cell]:
    return [cell for cell in cells if cell.name == name] or [cell for cell in cells if cell.item_name == name]


def _widest(name: str, cells: Sequence[Cell]) -> Cell | None:
    return max(_named(name, cells), key=lambda cell: cell.width, default=None)


def _wrong_parts(
    located: Located, fusion: Cell, parameters: Fusion, cells: Sequence[Cell], item_names: Sequence[str]
) -> Iterator[InputError]:
    first: dict[str, str] = {}
    for place, name in enumerate(parameters.parts):
        problem, part = _wrong_part(name, fusion, cells, item_names), _widest(name, cells)
        if problem is None and part is not None and first.setdefault(part.name, name) != name:
            problem = f"{name!r} is the same ranking as {first[part.name]!r}; give one of them a weight instead"
        if problem is not None:
            yield located.error((*fusion.retriever.place, "parts", place), problem)


def _wrong_part(name: str, fusion: Cell, cells: Sequence[Cell], item_names: Sequence[str]) -> str | None:
    parts = _named(name, cells)
    if not parts:
        if name.partition(":")[0] in item_names and not any(cell.item_name == name.partition(":")[0] for cell in cells):
            return None  # that configuration is broken, and was reported
        others = [cell for cell in cells if cell.retriever.fusion is None]
        names = dict.fromkeys([*(cell.item_name for cell in others), *(cell.name for cell in others)])
        return f"no configuration is named {name!r}; {did_you_mean(name, names)}"
    if any(cell.retriever.fusion is not None for cell in parts):
        itself = any(cell.item_name == fusion.item_name for cell in parts)
        return f"a fusion cannot be a part of {'itself' if itself else 'another'}"
    if len({cell.asked for cell in parts}) > 1:
        return f"{name!r} stands for several rankings; name one of: {', '.join(cell.name for cell in parts)}"
    if fusion.reranker is not None and any(cell.reranker is not None for cell in parts):
        return f"{name!r} is reranked, and so is {fusion.name!r}, which fuses it; rerank only one of them"
    return None
