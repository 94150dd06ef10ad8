"""Survey a ledger's size, age, use and damage, for people; clear it, wholly or in part."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.transforms.clients.ledger import store, uses
from rankbeam.transforms.clients.ledger.lookup import adopt_journals
from rankbeam.transforms.clients.ledger.parts import Encoder, ForeignPart, PartError, PartReader, PartVanished
from rankbeam.transforms.clients.ledger.rows import FIRST, IMPOSSIBLE, are_possible
from rankbeam.transforms.clients.storage import files, whole_files
from rankbeam.transforms.clients.storage.whole_files import StoredFile
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.records.errors import InputError


@dataclass(frozen=True)
class RunUse:
    """Use of the ledger by one run."""

    run_id: str
    hits: int
    calls: int
    last: datetime


@dataclass(frozen=True)
class LedgerSurvey:
    """The content of a ledger."""

    folder: str
    entries: int
    answers: int
    bytes: int  # bytes of all parts
    files: int
    oldest: datetime | None
    newest: datetime | None
    seconds: float
    runs: tuple[RunUse, ...]
    damaged: tuple[tuple[str, str], ...]
    foreign: tuple[str, ...]
    services: tuple[str, ...] = ()  # names of models, and of configurations for their retrievers and rerankers
    lost: int = 0  # calls that killed runs had in flight; only the first survey counts them

    @property
    def hits(self) -> int:
        return sum(run.hits for run in self.runs)

    @property
    def calls(self) -> int:
        return sum(run.calls for run in self.runs)


_NO_ROWS = FIRST.empty_table().select(["key", "seconds", "finished_at"])


def survey(folder: str) -> LedgerSurvey:
    """Survey a ledger: read every page, and verify its checksum."""
    lost = adopt_journals(folder)
    parts = store.parts_in(folder)
    contents = [_content(part) for part in parts]
    rows = pa.concat_tables([_NO_ROWS, *(rows for content, _ in contents for rows in content)])
    moments = pc.min_max(rows.column("finished_at")).as_py()
    runs, unreadable = _runs(folder)
    damaged = [(part.path, damage) for part, (_, damage) in zip(parts, contents, strict=True) if damage]
    return LedgerSurvey(
        folder=folder,
        entries=pc.count_distinct(rows.column("key")).as_py(),
        answers=rows.num_rows,
        bytes=sum(part.bytes for part in parts),
        files=len(parts),
        oldest=moments["min"],
        newest=moments["max"],
        seconds=pc.sum(rows.column("seconds")).as_py() or 0.0,
        runs=runs,
        damaged=(*damaged, *unreadable),
        foreign=tuple(stored.path for stored in store.foreign_in(folder)),
        services=tuple(services_in(folder)),
        lost=lost,
    )


def _content(part: StoredFile) -> tuple[list[pa.Table], str]:
    """The rows of a part without their answers, and its damage, "" if there is none."""
    content: list[pa.Table] = []
    damage = ""
    try:
        with PartReader(part.path) as reader:
            for group in range(reader.groups):
                try:
                    rows = reader.rows(group)
                except PartVanished:
                    raise
                except PartError as error:  # other row groups may be good
                    damage = str(error)
                    continue
                possible = rows.select(_NO_ROWS.column_names).filter(are_possible(rows))
                if possible.num_rows < rows.num_rows:
                    damage = IMPOSSIBLE
                content.append(possible)
    except PartVanished:
        pass
    except PartError as error:
        damage = str(error)
    return content, damage


def _runs(folder: str) -> tuple[tuple[RunUse, ...], list[tuple[str, str]]]:
    records = [(stored.path, uses.read(stored)) for stored in store.uses_in(folder)]
    unreadable = [(path, "not a record of how a run used the ledger") for path, use in records if use is None]
    runs = grouped((use.run_id, use) for _, use in records if use is not None)
    run_uses = [
        RunUse(run_id, uses.count_saved(lanes), sum(use.calls for use in lanes), max(use.at for use in lanes))
        for run_id, lanes in runs.items()
    ]
    return tuple(sorted(run_uses, key=lambda run: (run.last, run.run_id), reverse=True)), unreadable


@dataclass(frozen=True)
class ClearResult:
    """The amounts that were removed."""

    files: int
    answers: int
    bytes: int  # bytes by which the parts shrank

    def __add__(self, other: "ClearResult") -> "ClearResult":
        return ClearResult(self.files + other.files, self.answers + other.answers, self.bytes + other.bytes)


def clear(folder: str, older_than: timedelta | None = None, service: str | None = None) -> ClearResult:
    """Remove the content of a ledger, or only the answers of one service. Other programs' files stay."""
    adopt_journals(folder)
    begin = datetime.now(UTC)
    limit = None if older_than is None else begin - older_than
    if service is None:
        _clear_uses(folder, limit)
    cleared, passed = ClearResult(0, 0, 0), set[StoredFile]()
    while parts := [part for part in store.parts_in(folder) if part not in passed]:
        passed.update(parts)
        results = [_clear_part(folder, part, limit, service) for part in parts]
        cleared = sum(filter(None, results), cleared)
        if not any(result is None or result.files for result in results):
            break
        limit = limit or begin  # again for rows that a merge has moved, without new answers of a run at work
    return cleared


def _clear_part(folder: str, part: StoredFile, limit: datetime | None, service: str | None) -> ClearResult | None:
    """Clear a part; None if it was deleted meanwhile: a merge may have moved its rows to another part."""
    keep, answers, any_left, is_partial = Encoder(), 0, False, limit is not None or service is not None
    try:
        with PartReader(part.path) as reader:
            keep = Encoder(reader.layout)
            for group in range(reader.groups):
                rows = reader.rows(group)
                others = _others(rows, limit, service)
                keep.add(others)
                answers += rows.num_rows - others.num_rows
                any_left = any_left or others.num_rows > 0
    except PartVanished:
        return None
    except ForeignPart:
        return ClearResult(0, 0, 0)
    except PartError:
        if is_partial:
            return ClearResult(0, 0, 0)
    if not answers and (any_left or is_partial):
        return ClearResult(0, 0, 0)
    smaller = store.put(folder, keep.finish()) if any_left else None
    if whole_files.delete(part.path):
        return ClearResult(1, answers, part.bytes - (0 if smaller is None else smaller.bytes))
    if smaller is not None:
        whole_files.delete(smaller.path)
    if files.exists(part.path):
        raise InputError("cannot be deleted; its answers stay. Grant permission to delete files", path=part.path)
    return None


def services_in(folder: str) -> list[str]:
    """The services that have answers in a ledger; the first release stored no names."""
    names = set[str | None]()
    for part in store.parts_in(folder):
        with suppress(PartError, PartVanished, ForeignPart), PartReader(part.path) as reader:
            for group in range(reader.groups):
                names.update(*(column.to_pylist() for column in reader.rows(group, ["service"]).columns))
    return sorted(filter(None, names))


def _others(rows: pa.Table, limit: datetime | None, service: str | None) -> pa.Table:
    """The rows that stay, including those with impossible times, whose age is unknown."""
    cleared = pa.repeat(True, rows.num_rows)
    if limit is not None:
        cleared = pc.and_(cleared, pc.fill_null(pc.less(rows.column("finished_at"), limit), False))
    if service is not None:  # the first release stored no names of services
        names = rows.column("service") if "service" in rows.column_names else pa.nulls(rows.num_rows, pa.string())
        cleared = pc.and_(cleared, pc.is_in(names, pa.array([service])))
    return rows.filter(pc.invert(cleared))


def _clear_uses(folder: str, limit: datetime | None) -> None:
    for stored in store.uses_in(folder):
        if limit is None or ((use := uses.read(stored)) is not None and use.at < limit):
            whole_files.delete(stored.path)
    if limit is None:
        for stored in [*store.unfinished_in(folder), *store.notes_in(folder)]:
            whole_files.delete(stored.path)
