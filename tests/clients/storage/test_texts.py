"""The text store: what was put is found by its hash, by any process, whatever is damaged, and nothing else ever is."""

import hashlib
import pickle
import random
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import memory_filesystem

from rankbeam.transforms.clients.storage import text_parts
from rankbeam.transforms.clients.storage.texts import TextStore
from rankbeam.transforms.records.errors import InputError


@pytest.fixture(params=["local", "elsewhere"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    yield "mem://bucket/out/texts" if request.param == "elsewhere" else str(tmp_path / "out [1]" / "texts")
    memory_filesystem.FILES.clear()


def name_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def parts(folder: str | Path) -> list[str]:
    return [stored.path for stored in text_parts.parts_in(str(folder))]


def test_texts_come_back_by_their_hash_in_any_process(folder: str) -> None:
    texts = ["é😀", "", "half \ud800 a pair", "x" * 700_000, "é😀"]
    store = TextStore(folder)
    assert store.put(texts) == [name_of(text) for text in texts]
    assert len(parts(folder)) == 1
    for reader in (store, TextStore(folder), pickle.loads(pickle.dumps(TextStore(folder)))):  # noqa: S301  made here
        assert [reader.get(name_of(text)) for text in texts] == texts
        assert dict(reader.read(map(name_of, texts))) == {name_of(text): text for text in texts}


def test_a_folder_that_is_not_there_holds_nothing_and_is_not_made(folder: str) -> None:
    store = TextStore(folder)
    assert store.put([]) == []
    with pytest.raises(InputError, match=f"holds no text {name_of('a')}: it was cleared or damaged; run it again"):
        store.get(name_of("a"))
    assert not Path(folder).parent.exists()
    assert (store.clear().files, store.keep([], datetime.now(UTC)).files) == (0, 0)


def test_what_is_there_is_not_stored_again(folder: str) -> None:
    TextStore(folder).put(["a", "b"])
    store = TextStore(folder)
    store.put(["b", "a"])
    store.put(["a", "c", "c"])
    rows = [row for path in parts(folder) for row in rows_of(path)]
    assert sorted(row.text for row in rows) == [b"a", b"b", b"c"]


def rows_of(path: str) -> list[text_parts.Row]:
    with text_parts.reading(path) as part:
        return [row for group in range(part.groups) for row in part.rows(group)]


@settings(max_examples=25, deadline=None)
@given(
    steps=st.lists(st.tuples(st.integers(0, 1), st.lists(st.integers(0, 9), max_size=5)), max_size=8),
    cache_bytes=st.sampled_from([0, 10, 1 << 20]),
)
def test_two_writers_and_a_dict_say_the_same(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, list[int]]], cache_bytes: int
) -> None:
    folder = str(tmp_path_factory.mktemp("texts"))
    stores = [TextStore(folder, cache_bytes) for _ in range(2)]
    model: dict[str, str] = {}
    for number, texts in steps:
        added = [f"text {text}" for text in texts]
        model.update(zip(stores[number].put(added), added, strict=True))
        assert dict(stores[1 - number].read(model)) == model
    assert all(stores[0].get(name) == text for name, text in model.items())


def test_threads_that_put_and_read_at_once(tmp_path: Path) -> None:
    store = TextStore(str(tmp_path), 100)
    wrong: list[str] = []

    def work(first: int) -> None:
        for number in range(first, first + 10):
            texts = [f"text {number}", f"text {number + 5}"]
            wrong.extend(text for name, text in zip(store.put(texts), texts, strict=True) if store.get(name) != text)

    threads = [threading.Thread(target=work, args=(first,)) for first in (0, 5, 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_torn_part_is_left_out_and_its_texts_are_stored_again(tmp_path: Path) -> None:
    TextStore(str(tmp_path)).put(["a", "b"])
    [path] = parts(tmp_path)
    Path(path).write_bytes(Path(path).read_bytes()[:-20])
    (tmp_path / "notes.txt").write_text("mine")
    store = TextStore(str(tmp_path))
    assert store.put(["a"]) == [name_of("a")]
    assert store.get(name_of("a")) == "a"
    assert set(store.damage) == {path}
    with pytest.raises(InputError):
        store.get(name_of("b"))


def test_flipped_bits_never_make_a_text_and_are_mended_by_the_next_put(tmp_path: Path) -> None:
    texts = [f"{'word ' * 20}{number}" for number in range(20)]
    names = TextStore(str(tmp_path)).put(texts)
    [path] = parts(tmp_path)
    content, dice = Path(path).read_bytes(), random.Random(3)
    for _ in range(60):
        place = dice.randrange(len(content))
        for each in parts(tmp_path):
            Path(each).unlink()
        Path(path).write_bytes(
            content[:place] + bytes([content[place] ^ 1 << dice.randrange(8)]) + content[place + 1 :]
        )
        for name, text in zip(names, texts, strict=True):
            try:
                assert TextStore(str(tmp_path)).get(name) == text
            except InputError:
                continue
        assert TextStore(str(tmp_path)).put(texts) == names
        assert dict(TextStore(str(tmp_path)).read(names)) == dict(zip(names, texts, strict=True))


def test_a_row_of_another_text_is_dropped_and_the_others_stay(tmp_path: Path) -> None:
    names = TextStore(str(tmp_path)).put(["a", "b", "c"])
    [path] = parts(tmp_path)
    table = pq.read_table(path)
    pq.write_table(table.set_column(2, table.schema.field("text"), pa.array([b"a", b"other", b"c"])), path)
    store = TextStore(str(tmp_path))
    with pytest.raises(InputError):
        store.get(names[1])
    assert not Path(path).exists()
    assert [store.get(names[0]), TextStore(str(tmp_path)).get(names[2])] == ["a", "c"]
    assert TextStore(str(tmp_path)).put(["b"]) == [names[1]]
    assert store.get(names[1]) == "b"


def test_a_part_with_more_columns_is_read(tmp_path: Path) -> None:
    [name] = TextStore(str(tmp_path)).put(["a"])
    [path] = parts(tmp_path)
    pq.write_table(pq.read_table(path).add_column(0, "language", pa.array(["en"])), path)
    assert TextStore(str(tmp_path)).get(name) == "a"


def test_what_is_used_or_new_is_kept(folder: str) -> None:
    store = TextStore(folder)
    names = store.put(["used", "unused"])
    between = datetime.now(UTC) + timedelta(microseconds=1)
    assert store.keep(names, between).texts == 0
    assert store.keep([], between - timedelta(hours=1)).texts == 0
    removed = store.keep(names[:1], between)
    assert (removed.files, removed.texts) == (1, 1)
    assert store.get(names[0]) == "used"
    with pytest.raises(InputError):
        TextStore(folder).get(names[1])
    assert store.clear().texts == 1
    assert parts(folder) == []
    with pytest.raises(InputError):
        TextStore(folder).get(names[0])


def test_many_texts_become_parts_and_row_groups_of_bounded_size(tmp_path: Path) -> None:
    dice = random.Random(1)
    texts = [dice.randbytes(50_000).hex() for _ in range(200)]  # 20 MB
    names = TextStore(str(tmp_path)).put(iter(texts))
    assert len(parts(tmp_path)) == 2
    for path in parts(tmp_path):
        file = pq.ParquetFile(path)
        assert max(file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)) == 5
    store = TextStore(str(tmp_path), 1 << 20)
    assert dict(store.read(names)) == dict(zip(names, texts, strict=True))
    assert store._cached_bytes <= 1 << 20
