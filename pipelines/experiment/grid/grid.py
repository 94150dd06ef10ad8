"""The grid of an experiment: every configuration for each combination of swept parameters."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from rankbeam.pipelines.config.yaml_lines import YamlDocument
from rankbeam.pipelines.experiment.file.models import ExperimentModel
from rankbeam.pipelines.experiment.file.read import ExperimentFile
from rankbeam.pipelines.experiment.grid.cells import Cell, ExpandedGrid, with_sources
from rankbeam.pipelines.experiment.grid.combinations import cells_of
from rankbeam.pipelines.experiment.grid.settings import (
    STAGES,
    Grid,
    settings_of,
    wrong_in_grid,
    wrong_stages,
)
from rankbeam.transforms.judge.metrics import JudgedMetric
from rankbeam.transforms.records.errors import InputError, did_you_mean
from rankbeam.transforms.records.metrics.dialects import RANKBEAM, Dialect, parse_dialect
from rankbeam.transforms.records.metrics.names import Metric

_SIGNS = ",:="  # characters that separate the parts of a configuration name


def _wrong_labels(located: YamlDocument) -> Iterator[InputError]:
    """Labels that would make a name ambiguous."""
    grid = located.value.get("grid")
    for name, values in (grid if isinstance(grid, dict) else {}).items():
        for label in values if isinstance(values, dict) else ():
            if not str(label).strip() or any(sign in str(label) for sign in _SIGNS):
                problem = (
                    f"the label {label!r} is empty, or has one of {' '.join(_SIGNS)}, which separate parts of names"
                )
                yield located.error(("grid", str(name), label), problem)


def expand(file: ExperimentFile, metrics: Iterable[Metric | JudgedMetric]) -> ExpandedGrid:
    """Every configuration with each combination of the grid's values, in order, and once for each dialect.

    A parameter of the grid applies to the configurations that have a component with it; `top_k` to all that retrieve,
    `vector_distance_threshold` to those that have distances, and `min_score` to the others.
    """
    located, model = file.located, file.model
    items = model.configurations or ()
    dialects = list(_dialects(located, model))
    grid: Grid = {name: values for name, values in model.grid.items() if name not in STAGES}
    located.problems.extend(_wrong_labels(located))
    wrong = list(wrong_stages(located, items, model.grid))
    broken = replace(located, problems=[])  # reported after the mistakes of the grid itself
    configured = list(settings_of(broken, file.corpora, items, {} if wrong else model.grid))
    wrong += wrong_in_grid(located, file.corpora, configured, grid)
    located.problems.extend([*wrong, *broken.problems])
    cells = [cell for settings in configured for cell in cells_of(file, settings, {} if wrong else grid)]
    cells = _with_parts(located, cells, [item.name for item in items])
    cells = [_in_dialect(cell, dialect) for cell in cells for dialect in dialects] if dialects else cells
    _check_names(located, cells)
    return with_sources(cells, model.dataset.unit, [metric for metric in metrics if isinstance(metric, JudgedMetric)])


def _dialects(located: YamlDocument, model: ExperimentModel) -> Iterator[Dialect]:
    for i, name in enumerate(model.dialects or ()):
        try:
            yield parse_dialect(name)
        except InputError as error:
            located.report(("dialects", i), error.problem)


def _in_dialect(cell: Cell, dialect: Dialect) -> Cell:
    """The configuration with the dialect in its name, except for rankbeam's own dialect."""
    suffix = "" if dialect == RANKBEAM else f"{',' if ':' in cell.name else ':'}dialect={dialect.name}"
    return replace(cell, name=f"{cell.name}{suffix}", dialect=dialect)


def _check_names(located: YamlDocument, cells: Sequence[Cell]) -> None:
    """Refuse two cells with the same name, and one configuration with two names."""
    names: dict[str, Cell] = {}
    ids: dict[str, Cell] = {}
    for cell in cells:
        if cell.name in names:
            located.report((*cell.place, "name"), f"two configurations are named {cell.name!r}")
        elif cell.config_id in ids:
            other = ids[cell.config_id].name
            located.report(cell.place, f"{cell.name!r} is the same configuration as {other!r}")
        names[cell.name] = ids[cell.config_id] = cell


def _with_parts(located: YamlDocument, cells: Sequence[Cell], item_names: Sequence[str]) -> list[Cell]:
    """All cells, with each fusion's parts; a fusion with an unknown part is left out.

    A part is the name of a cell, such as "bm25:top_k=10", or a name under `configurations:`, which means the
    widest of its cells if all of them are cut from one ranking.
    """
    complete = []
    for cell in cells:
        if (fusion := cell.retriever.fusion) is None:
            complete.append(cell)
            continue
        parts = _parts(located, cell, fusion.parts, cells, item_names)
        if len(parts) == len(fusion.parts):
            complete.append(replace(cell, parts=parts))
    return complete


def _parts(
    located: YamlDocument, fusion: Cell, names: Sequence[str], cells: Sequence[Cell], item_names: Sequence[str]
) -> tuple[Cell, ...]:
    """The parts of a fusion; wrong ones are reported."""
    parts, first = [], dict[str, str]()
    for place, name in enumerate(names):
        named = [cell for cell in cells if cell.name == name] or [cell for cell in cells if cell.item_name == name]
        problem = _wrong_part(name, named, fusion, cells, item_names)
        part = max(named, key=lambda cell: cell.width, default=None)
        if problem is None and part is not None and first.setdefault(part.name, name) != name:
            problem = f"{name!r} is the same ranking as {first[part.name]!r}; give one of them a weight instead"
        if problem is not None:
            located.report((*fusion.retriever.place, "parts", place), problem)
        elif part is not None:
            parts.append(part)
    return tuple(parts)


def _wrong_part(
    name: str, parts: Sequence[Cell], fusion: Cell, cells: Sequence[Cell], item_names: Sequence[str]
) -> str | None:
    """The problem of a name, and of the cells that have it."""
    if not parts:
        if name.partition(":")[0] in item_names and not any(cell.item_name == name.partition(":")[0] for cell in cells):
            return None  # that configuration is broken, and was reported
        plain_cells = [cell for cell in cells if cell.retriever.fusion is None]
        names = dict.fromkeys([*(cell.item_name for cell in plain_cells), *(cell.name for cell in plain_cells)])
        return f"no configuration is named {name!r}; {did_you_mean(name, names)}"
    if any(cell.retriever.fusion is not None for cell in parts):
        itself = any(cell.item_name == fusion.item_name for cell in parts)
        return f"a fusion cannot be a part of {'itself' if itself else 'another'}"
    if len({cell.request for cell in parts}) > 1:
        return f"{name!r} has several rankings; name one of: {', '.join(cell.name for cell in parts)}"
    if fusion.reranker is not None and any(cell.reranker is not None for cell in parts):
        return f"{name!r} is reranked, and so is {fusion.name!r}, which fuses it; rerank only one of them"
    return None
