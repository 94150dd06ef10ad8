"""From the names under a fusion's `parts:` to the cells of the grid that they stand for."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from rankbeam.pipelines.config.yaml_lines import Located
from rankbeam.pipelines.experiment.cells import Cell
from rankbeam.transforms.clients.retrievers.fusion import Fusion
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.fusion import FusionPart, FusionPlan
from rankbeam.transforms.records.suggestions import did_you_mean


def with_parts(located: Located, cells: Sequence[Cell], given: Sequence[str], problems: list[InputError]) -> list[Cell]:
    """All cells, every fusion with the cells that it is made of; one whose parts cannot be found is left out.

    A part is the name of a cell, such as "bm25:top_k=10", or a name under `configurations:`. That stands for the
    widest of its cells, if all of them are cut from one ranking.
    """
    whole = []
    for cell in cells:
        if (fusion := cell.retriever.fusion) is None:
            whole.append(cell)
            continue
        wrong = list(_wrong_parts(located, cell, fusion, cells, given))
        parts = [_widest(name, cells) for name in fusion.parts]
        known = tuple(part for part in parts if part is not None)
        problems += wrong
        if not wrong and len(known) == len(parts):
            whole.append(replace(cell, parts=known))
    return whole


def plan_of(cell: Cell, positions: Mapping[str, int]) -> FusionPlan | None:
    """How a cell is fused of others; None where it is none."""
    if (fusion := cell.retriever.fusion) is None:
        return None
    return fusion.plan(
        tuple(
            FusionPart(
                source=positions[part.asked],
                top_k=part.top_k,
                distance=part.cut,
                lower_is_better=part.lower_is_better,
            )
            for part in cell.parts
        )
    )


def _named(name: str, cells: Sequence[Cell]) -> list[Cell]:
    """The cells that a name may stand for."""
    return [cell for cell in cells if cell.name == name] or [cell for cell in cells if cell.given == name]


def _widest(name: str, cells: Sequence[Cell]) -> Cell | None:
    return max(_named(name, cells), key=lambda cell: cell.width, default=None)


def _wrong_parts(
    located: Located, fusion: Cell, parameters: Fusion, cells: Sequence[Cell], given: Sequence[str]
) -> Iterator[InputError]:
    first: dict[str, str] = {}
    for place, name in enumerate(parameters.parts):
        problem, part = _wrong_part(name, fusion, cells, given), _widest(name, cells)
        if problem is None and part is not None and first.setdefault(part.name, name) != name:
            problem = f"{name!r} is the same ranking as {first[part.name]!r}; give one of them a weight instead"
        if problem is not None:
            yield located.error((*fusion.retriever.place, "parts", place), problem)


def _wrong_part(name: str, fusion: Cell, cells: Sequence[Cell], given: Sequence[str]) -> str | None:
    parts = _named(name, cells)
    if not parts:
        if name.partition(":")[0] in given and not any(cell.given == name.partition(":")[0] for cell in cells):
            return None  # that configuration is broken, and was reported
        others = [cell for cell in cells if cell.retriever.fusion is None]
        names = dict.fromkeys([*(cell.given for cell in others), *(cell.name for cell in others)])
        return f"no configuration is named {name!r}; {did_you_mean(name, names)}"
    if any(cell.retriever.fusion is not None for cell in parts):
        itself = any(cell.given == fusion.given for cell in parts)
        return f"a fusion cannot be a part of {'itself' if itself else 'another'}"
    if len({cell.asked for cell in parts}) > 1:
        return f"{name!r} stands for several rankings; name one of: {', '.join(cell.name for cell in parts)}"
    return None
