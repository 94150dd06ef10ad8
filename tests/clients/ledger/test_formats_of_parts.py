"""Parts of the first format, of this one, and of those to come: all are read, merged and cleared side by side."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaigns import examples
from support.data import REPOSITORY

from rankbeam.transforms.clients.ledger import Ledger, LedgerEntry, store
from rankbeam.transforms.clients.ledger.merging import compact
from rankbeam.transforms.clients.ledger.rows import ADDED, FIRST, SCHEMA, WRITTEN, PartLayout, table_of
from rankbeam.transforms.clients.ledger.survey import clear, survey
from rankbeam.transforms.records.calls.steps import SearchDepth
from rankbeam.transforms.records.reply import Tokens

RELEASED = REPOSITORY / "tests" / "support" / "first_release_ledger" / "ledger"
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
TOKENS = Tokens(1200, 1000, 30)


def ranking(number: int) -> LedgerEntry:
    return LedgerEntry(f"key{number}", SearchDepth(10), '"a ranking"', 1, 0.5, BEGIN + timedelta(seconds=number))


def judgement(number: int) -> LedgerEntry:
    moment = BEGIN + timedelta(seconds=number)
    return LedgerEntry(f"key{number}", None, '"a verdict"', 2, 1.5, moment, TOKENS, "gemini")


def written(folder: Path, *entries: LedgerEntry) -> Path:
    """The path of a new part."""
    before = {part.path for part in store.parts_in(str(folder))}
    writer = Ledger(str(folder)).writer()
    for entry in entries:
        writer.add(entry)
    writer.close()
    [path] = {part.path for part in store.parts_in(str(folder))} - before
    return Path(path)


def rewritten(path: Path, change: Callable[[pa.Table], pa.Table]) -> bytes:
    """A part with other columns, written as another program would; returns its bytes."""
    pq.write_table(change(pq.read_table(path)), path)
    return path.read_bytes()


def whole(folder: Path, *entries: LedgerEntry) -> Iterator[LedgerEntry]:
    return Ledger(str(folder)).find({entry.key: entry.depth for entry in entries})


def released(folder: Path) -> list[LedgerEntry]:
    """A copy of the first release's part in a folder; returns its entries."""
    folder.mkdir(exist_ok=True)
    [part] = RELEASED.glob("calls-*")
    shutil.copy(part, folder)
    keys = pq.read_table(part).column("key").to_pylist()
    entries = list(Ledger(str(folder)).find(dict.fromkeys(keys, SearchDepth(10))))
    assert len(entries) == len(keys) == 3
    return entries


def test_tokens_services_and_whole_answers_come_back(tmp_path: Path) -> None:
    entries = [ranking(0), judgement(1), replace(ranking(2), depth=SearchDepth(5, 0.5)), judgement(3)]
    path = written(tmp_path, *entries)
    assert list(whole(tmp_path, *entries)) == entries
    schema = pq.read_schema(path)
    assert schema.metadata[b"rankbeam.ledger.format"] == b"2"
    assert schema.names == [*FIRST.names, *ADDED.names]
    assert all(schema.field(name).nullable for name in ADDED.names)
    row = pq.read_table(path).to_pylist()[1]
    assert (row["results"], row["distance"], row["input_tokens"], row["service"]) == (0, None, 1200, "gemini")


def test_a_whole_answer_and_a_ranking_do_not_stand_for_each_other(tmp_path: Path) -> None:
    written(tmp_path, ranking(0), judgement(1))
    ledger = Ledger(str(tmp_path))
    assert list(ledger.find({"key0": None, "key1": SearchDepth(1)})) == []
    assert list(ledger.find({"key0": None, "key1": None})) == [judgement(1)]
    assert list(ledger.find({"key0": SearchDepth(10, 0.5), "key1": None})) == [ranking(0), judgement(1)]


def test_the_first_release_reads_its_own_columns_as_it_wrote_them(tmp_path: Path) -> None:
    for entry in released(tmp_path):
        assert entry.depth == SearchDepth(10)
        assert (entry.tokens, entry.service) == (Tokens(), "")
    [path] = tmp_path.glob("calls-*")
    assert pq.read_schema(path).names == FIRST.names
    assert PartLayout(pq.read_schema(path)).version == 1


def test_rows_without_new_values_have_the_hash_of_the_first_format(tmp_path: Path) -> None:
    entries = released(tmp_path)
    [path] = tmp_path.glob("calls-*")
    assert table_of(entries).select(FIRST.names).equals(pq.read_table(path).cast(FIRST))


@pytest.mark.parametrize("make", [ranking, judgement])
def test_parts_with_unknown_columns_are_read(tmp_path: Path, make: Callable[[int], LedgerEntry]) -> None:
    path = written(tmp_path, make(0), make(1))
    rewritten(
        path, lambda table: table.add_column(0, "model", pa.array(["m", "n"])).append_column("x", pa.array([5, 6]))
    )
    assert list(whole(tmp_path, make(0), make(1))) == [make(0), make(1)]
    assert survey(str(tmp_path)).damaged == ()


def test_a_foreign_column_that_is_named_as_a_later_one_makes_no_difference(tmp_path: Path) -> None:
    entries = released(tmp_path)
    [path] = tmp_path.glob("calls-*")
    content = rewritten(path, lambda table: table.append_column("service", pa.array([1, 2, 3])))
    assert list(whole(tmp_path, *entries)) == entries
    written(tmp_path, judgement(0))
    compact(str(tmp_path))
    assert path.read_bytes() == content  # two meanings of one name do not go into one part
    assert len(store.parts_in(str(tmp_path))) == 2


def test_merging_keeps_unknown_columns_metadata_and_all_formats(tmp_path: Path) -> None:
    old = released(tmp_path)
    new = [judgement(10), ranking(11)]
    written(tmp_path, *new)
    later = written(tmp_path, judgement(12), judgement(13))

    def extend(table: pa.Table) -> pa.Table:
        table = table.append_column(pa.field("model", pa.string(), nullable=False), pa.array(["m", "n"]))
        return table.replace_schema_metadata(
            {**table.schema.metadata, b"rankbeam.ledger.format": b"3", b"region": b"eu"}
        )

    rewritten(later, extend)
    assert compact(str(tmp_path)).files_after == 1
    entries = [*old, *new, judgement(12), judgement(13)]
    assert {entry.key: entry for entry in whole(tmp_path, *entries)} == {entry.key: entry for entry in entries}
    [part] = store.parts_in(str(tmp_path))
    table = pq.read_table(part.path)
    assert table.schema.metadata[b"region"] == b"eu"
    assert PartLayout(table.schema).version == 3
    models = dict(zip(table.column("key").to_pylist(), table.column("model").to_pylist(), strict=True))
    assert models == {**dict.fromkeys((entry.key for entry in (*old, *new)), None), "key12": "m", "key13": "n"}


def test_parts_whose_metadata_disagree_stay_apart(tmp_path: Path) -> None:
    regions = ("us", "eu", "eu", "eu")
    for number, region in enumerate(regions):
        path = written(tmp_path, judgement(number))
        place = {b"region": region.encode()}
        rewritten(path, lambda table, place=place: table.replace_schema_metadata({**table.schema.metadata, **place}))
        path.rename(path.with_name(f"calls-{number:032x}.parquet"))
    assert compact(str(tmp_path)).files_after == 2
    entries = list(map(judgement, range(len(regions))))
    assert {entry.key for entry in whole(tmp_path, *entries)} == {entry.key for entry in entries}
    assert compact(str(tmp_path)).files_after == 2


def test_clearing_what_is_old_keeps_unknown_columns(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    path = written(
        tmp_path, replace(judgement(0), finished_at=now - timedelta(9)), replace(judgement(1), finished_at=now)
    )
    rewritten(path, lambda table: table.append_column("model", pa.array(["m", "n"])))
    assert clear(str(tmp_path), timedelta(5)).answers == 1
    [part] = store.parts_in(str(tmp_path))
    assert pq.read_table(part.path).select(["key", "model"]).to_pylist() == [{"key": "key1", "model": "n"}]
    assert [entry.key for entry in whole(tmp_path, judgement(0), judgement(1))] == ["key1"]


@pytest.mark.parametrize("name", ADDED.names)
@pytest.mark.parametrize("other", [None, "changed"])
def test_a_changed_value_in_a_new_column_is_damage(tmp_path: Path, name: str, other: object) -> None:
    path = written(tmp_path, replace(judgement(0), via="batch"))
    field = SCHEMA.field(name)
    value = None if other is None else {"service": "other", "via": "other"}.get(name, 7)

    def change(table: pa.Table) -> pa.Table:
        return table.set_column(table.schema.get_field_index(name), field, pa.array([value], field.type))

    rewritten(path, change)
    assert list(whole(tmp_path, judgement(0))) == []


def test_a_known_column_of_another_type_is_another_programs(tmp_path: Path) -> None:
    path = written(tmp_path, judgement(0))
    rewritten(path, lambda table: table.set_column(11, "service", pa.array([1])))
    assert SCHEMA.names[11] == "service"
    assert list(whole(tmp_path, judgement(0))) == []
    [(_, reason)] = survey(str(tmp_path)).damaged
    assert "another program's" in reason
    assert clear(str(tmp_path)).files == 0


def test_a_later_formats_hash_may_cover_columns_that_are_unknown_here(tmp_path: Path) -> None:
    path = written(tmp_path, judgement(0))
    checked = b" ".join([b"model", pq.read_schema(path).metadata[b"rankbeam.ledger.checked"]])

    def extend(table: pa.Table) -> pa.Table:
        table = table.append_column("model", pa.array(["m"]))
        return table.replace_schema_metadata({**table.schema.metadata, b"rankbeam.ledger.checked": checked})

    rewritten(path, extend)
    assert list(whole(tmp_path, judgement(0))) == []  # the row's hash does not cover the model that is there
    nothing = pa.array([None], pa.string())
    rewritten(path, lambda table: table.set_column(table.schema.get_field_index("model"), "model", nothing))
    assert list(whole(tmp_path, judgement(0))) == [judgement(0)]


def test_a_covered_column_that_this_version_does_not_write_is_read_and_merged(tmp_path: Path) -> None:
    path = written(tmp_path, judgement(0), judgement(1))
    checked = pq.read_schema(path).metadata[b"rankbeam.ledger.checked"] + b" texts"

    def extend(table: pa.Table) -> pa.Table:
        table = table.append_column("texts", pa.nulls(2, pa.list_(pa.string())))
        return table.replace_schema_metadata({**table.schema.metadata, b"rankbeam.ledger.checked": checked})

    rewritten(path, extend)
    entries = [judgement(0), judgement(1), judgement(2)]
    written(tmp_path, judgement(2))
    for files in (2, 1):
        assert len(store.parts_in(str(tmp_path))) == files
        assert sorted(whole(tmp_path, *entries), key=lambda entry: entry.key) == entries
        compact(str(tmp_path))


COLUMNS = st.dictionaries(st.sampled_from("abc"), st.sampled_from([pa.int64(), pa.string()]), max_size=2)
METADATA = st.dictionaries(st.sampled_from([b"x", b"y"]), st.sampled_from([b"1", b"2"]), max_size=2)


def layout(columns: dict[str, pa.DataType], metadata: dict[bytes, bytes], base: pa.Schema = SCHEMA) -> PartLayout:
    fields = [*base, *(pa.field(name, kind, nullable=False) for name, kind in columns.items())]
    return PartLayout(pa.schema(fields, {**(base.metadata or {}), **metadata}))


@settings(max_examples=examples(60), deadline=None)
@given(columns=st.tuples(COLUMNS, COLUMNS), metadata=st.tuples(METADATA, METADATA), first=st.booleans())
def test_two_layouts_are_joined_unless_they_contradict_each_other(
    columns: tuple[dict[str, pa.DataType], ...], metadata: tuple[dict[bytes, bytes], ...], first: bool
) -> None:
    ours = layout(columns[0], metadata[0], FIRST if first else SCHEMA)
    theirs = layout(columns[1], metadata[1])
    joined = ours.joined(theirs)
    types = [
        {name: kind for name, kind in fields.items() if name in columns[1 - i]} for i, fields in enumerate(columns)
    ]
    facts = [
        {name: fact for name, fact in fields.items() if name in metadata[1 - i]} for i, fields in enumerate(metadata)
    ]
    assert (joined is None) == (types[0] != types[1] or facts[0] != facts[1])
    if joined is not None:
        assert set(joined.schema.names) == {*SCHEMA.names, *columns[0], *columns[1]}
        assert {*metadata[0].items(), *metadata[1].items()} <= set(joined.schema.metadata.items())
        assert (joined.version, joined.checked) == (2, sorted(ADDED.names))
        assert joined.is_ours()
        assert all(joined.schema.field(name).nullable for name in (*columns[0], *columns[1]))
        rows = joined.align_columns(FIRST.empty_table())
        assert rows.schema.equals(joined.schema, check_metadata=True)


def test_a_part_without_rows_of_its_own_format_says_its_version() -> None:
    assert (WRITTEN.version, PartLayout(FIRST).version) == (2, 1)
    assert PartLayout(FIRST.with_metadata({"rankbeam.ledger.format": "two"})).version == 1
    assert pc.all(pc.is_valid(table_of([judgement(0)]).column("service"))).as_py()
