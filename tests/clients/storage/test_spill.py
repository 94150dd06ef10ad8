# ruff: noqa: F811  fixtures are named as what they give
"""Batches between stages: what a pickle holds, where a large one lies, and that nothing stays behind."""

import gc
import pickle
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.spilled import (
    ROWS,
    run_python,
    scratch,  # noqa: F401  pytest finds it by name
    spilled_bytes,
    strings,
)

from rankbeam.transforms.clients.storage import batches, spill
from rankbeam.transforms.records import columns


@pytest.fixture(params=["in memory", "spilled"])
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    """Both ways that a batch can take."""
    if request.param == "in memory":
        yield request.param
    else:
        with spill.spilling():
            yield request.param


def passed_on(batch: pa.RecordBatch) -> pa.RecordBatch:
    received: pa.RecordBatch = read(pickle.dumps(batch, protocol=5))
    return received


def read(pickled: bytes) -> Any:
    return pickle.loads(pickled)  # noqa: S301  the test has just made it


def nested(count: int = ROWS) -> pa.RecordBatch:
    documents = [
        [{"doc_id": f"😀{number}-{rank}", "score": rank / 3} for rank in range(number % 4)] for number in range(count)
    ]
    return pa.RecordBatch.from_arrays(
        [pa.array([f"q{number}" for number in range(count)]), pa.array(documents, columns.RANKINGS.field(1).type)],
        schema=columns.RANKINGS,
    )


def encoded(count: int = ROWS) -> pa.RecordBatch:
    names = pa.array([f"name {number % 7}" for number in range(count)]).dictionary_encode()
    return pa.record_batch(
        {"name": names, "number": pa.array([None if n % 5 else n for n in range(count)], pa.int32())}
    )


def odd_types(count: int = ROWS) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "large": pa.array([f"{number}" if number % 3 else None for number in range(count)], pa.large_string()),
            "yes": pa.array([number % 2 == 0 for number in range(count)]),
            "struct": pa.array([{"a": [number], "b": None} for number in range(count)]),
            "map": pa.array([[(str(number), 1.0)] for number in range(count)], pa.map_(pa.string(), pa.float64())),
            "null": pa.nulls(count),
            "bytes": pa.array([bytes(8)] * count, pa.binary(8)),
            "time": pa.array(list(range(count)), pa.timestamp("us", "UTC")),
        }
    )


def with_metadata(count: int = ROWS) -> pa.RecordBatch:
    return strings(count).replace_schema_metadata({"from": "file"})


KINDS = pytest.mark.parametrize("make", [strings, nested, encoded, odd_types, with_metadata])


def assert_same(actual: pa.RecordBatch, expected: pa.RecordBatch) -> None:
    actual.validate(full=True)
    assert actual.schema.equals(expected.schema, check_metadata=True)
    assert actual.equals(expected)


# --- Contents ----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("way")
@KINDS
@pytest.mark.parametrize(("offset", "length"), [(0, ROWS), (0, 0), (ROWS, 0), (1, 1), (3, ROWS - 3), (4001, 12_003)])
def test_batches_and_slices_arrive_as_they_were(make: Callable[[], pa.RecordBatch], offset: int, length: int) -> None:
    batch = make().slice(offset, length)
    received = passed_on(batch)
    assert_same(received, batch)
    assert_same(passed_on(received), batch)
    assert_same(passed_on(received.slice(length // 3)), batch.slice(length // 3))


@pytest.mark.parametrize("columns_kept", [["name"], ["value"], []])
@pytest.mark.usefixtures("way")
def test_batches_of_few_columns(columns_kept: list[str]) -> None:
    batch = strings().select(columns_kept)
    assert_same(passed_on(batch), batch)


@pytest.mark.usefixtures("way")
def test_several_batches_in_one_pickle() -> None:
    parts = {make.__name__: [make().slice(start, 9000) for start in (0, 500, 11_000)] for make in (nested, encoded)}
    group = (7, {**parts, "again": parts["nested"][:1], "none": []})
    bucket, received = read(pickle.dumps(group))
    assert (bucket, list(received), received["none"]) == (7, ["nested", "encoded", "again", "none"], [])
    for name, expected in parts.items():
        for one, other in zip(received[name], expected, strict=True):
            assert_same(one, other)
    assert_same(received["again"][0], parts["nested"][0])


def test_what_was_read_outlives_the_folder() -> None:
    batch = nested()
    with spill.spilling():
        received = passed_on(batch)
        assert spilled_bytes() > 0
    assert_same(received, batch)


def test_what_was_read_can_be_passed_on_after_the_folder_is_gone() -> None:
    with spill.spilling():
        received = passed_on(strings())
    assert_same(passed_on(received), strings())


# --- Sizes -------------------------------------------------------------------------------------------------------


@KINDS
def test_a_slice_does_not_carry_its_parent(make: Callable[[], pa.RecordBatch]) -> None:
    batch = make()
    small, whole = pickle.dumps(batch.slice(10_000, 5)), pickle.dumps(batch)
    assert len(small) < 10_000 < 50_000 < len(whole)
    assert read(small).nbytes < 2000
    with spill.spilling():
        assert pickle.dumps(batch.slice(10_000, 5)) == small  # too small for a file
        assert spilled_bytes() == 0
        pickle.dumps(batch.slice(10_000, 8000))
        assert spilled_bytes() < len(whole) * 3 // 5


def test_a_spilled_batch_is_a_place_in_the_pickle() -> None:
    batch = strings()
    in_memory = len(pickle.dumps(batch))
    assert in_memory > batch.nbytes
    with spill.spilling():
        assert len(pickle.dumps(batch)) < 500
        assert in_memory - 500 < spilled_bytes() < in_memory + 500


def test_many_small_batches_take_no_memory_and_no_mappings() -> None:
    """A judged run passes on tens of thousands of them, and a process may have 65,530 mappings."""
    with spill.spilling():
        pickled = [pickle.dumps(strings(200)) for _ in range(100)]
        assert sum(map(len, pickled)) < 100 * 500
        received = [read(one) for one in pickled]
        assert "rankbeam-spill-" not in Path("/proc/self/maps").read_text()
        large = passed_on(strings())
        assert "rankbeam-spill-" in Path("/proc/self/maps").read_text()
    for batch in received:
        assert_same(batch, strings(200))
    assert_same(large, strings())


def test_what_is_passed_on_is_not_spilled_twice() -> None:
    with spill.spilling():
        received = passed_on(strings())
        once = spilled_bytes()
        for _ in range(3):
            received = passed_on(received)
        group = read(pickle.dumps([received, (1, received)]))
        assert_same(passed_on(group[1][1]), strings())
        assert spilled_bytes() == once
        passed_on(received.slice(1))  # this is another batch
        assert spilled_bytes() > once


def test_nothing_is_remembered_of_batches_that_are_gone() -> None:
    remembered = len(batches._places)
    with spill.spilling():
        received = [passed_on(strings()) for _ in range(5)]
        assert len(batches._places) == remembered + 5
        received.clear()
        gc.collect()
        assert len(batches._places) == remembered
        # Another batch may now have the address of one that is gone.
        for number in range(50):
            batch = strings().slice(number)
            assert_same(passed_on(batch), batch)


# --- The folder --------------------------------------------------------------------------------------------------


def test_the_folder_is_gone_afterwards(scratch: Path) -> None:
    assert spill.folder() is None
    for _ in range(2):
        with spill.spilling():
            pickle.dumps(strings())
            assert [str(path) for path in scratch.iterdir()] == [spill.folder()]
        assert (list(scratch.iterdir()), spill.folder()) == ([], None)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_the_folder_is_gone_when_the_run_fails(scratch: Path, error: type[BaseException]) -> None:
    def fail() -> None:
        with spill.spilling():
            pickle.dumps(strings())
            assert list(scratch.iterdir()) != []
            raise error

    with pytest.raises(error):
        fail()
    assert (list(scratch.iterdir()), spill.folder()) == ([], None)
    assert len(pickle.dumps(strings())) > strings().nbytes  # nothing is spilled any more


HOLD = """
    import sys
    from rankbeam.transforms.clients.storage import spill
    with spill.spilling():
        print(spill.folder(), flush=True)
        sys.stdin.read()
"""


@pytest.mark.parametrize("killed", [True, False])
def test_only_abandoned_folders_are_removed(scratch: Path, killed: bool) -> None:
    with run_python(HOLD, scratch) as other:
        assert other.stdout is not None
        theirs = Path(other.stdout.readline().strip())
        assert theirs.is_dir()
        assert theirs.parent == scratch
        if killed:
            other.kill()
            other.wait()
        (theirs / "1.arrows").write_bytes(bytes(1000))
        with spill.spilling():
            assert theirs.exists() is not killed
        assert theirs.exists() is not killed
        assert (list(scratch.iterdir()) == []) is killed
        other.communicate()
    assert list(scratch.iterdir()) == []
    assert other.returncode == (-signal.SIGKILL if killed else 0)


def test_other_peoples_folders_stay(scratch: Path) -> None:
    for name in ("rankbeam-1", "rankbeam-spill", "other-spill-x"):
        (scratch / name).mkdir()
        (scratch / name / "lock").touch()
    (scratch / "rankbeam-spill-file").touch()
    before = sorted(scratch.rglob("*"))
    with spill.spilling():
        pass
    assert sorted(scratch.rglob("*")) == before


# --- Several at once ---------------------------------------------------------------------------------------------


@pytest.mark.long
def test_threads_write_at_once() -> None:
    results: dict[int, list[tuple[pa.RecordBatch, bytes]]] = {}

    def write(number: int) -> None:
        own = [strings().slice(number * 100 + place, 9000 + place) for place in range(20)]
        start.wait(30)
        results[number] = [(batch, pickle.dumps(batch)) for batch in own]

    start = threading.Barrier(4)
    with spill.spilling():
        threads = [threading.Thread(target=write, args=[number]) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(results) == [0, 1, 2, 3]
        for pairs in results.values():
            for batch, pickled in pairs:
                assert len(pickled) < 500
                assert_same(read(pickled), batch)


READ = """
    import pickle, sys
    from pathlib import Path
    from rankbeam.transforms.clients.storage import batches
    batches.register()
    batch = pickle.loads(Path(sys.argv[1]).read_bytes())
    Path(sys.argv[2]).write_bytes(pickle.dumps([batch, batch.slice(5)]))
"""


def test_another_process_reads_and_passes_on(tmp_path: Path, scratch: Path) -> None:
    batch = nested()
    with spill.spilling():
        (tmp_path / "there").write_bytes(pickle.dumps(batch))
        mine = spilled_bytes()
        with run_python(READ, scratch, str(tmp_path / "there"), str(tmp_path / "back")) as other:
            _, stderr = other.communicate()
        assert (other.returncode, stderr) == (0, "")
        whole, part = read((tmp_path / "back").read_bytes())
        assert_same(whole, batch)
        assert_same(part, batch.slice(5))
        # The whole batch lies where it lay; the slice is in the file of the process that made it.
        assert mine < spilled_bytes() < 2 * mine + 1000
        folder = spill.folder()
        assert folder is not None
        assert len(list(Path(folder).glob("*.arrows"))) == 2
    assert list(scratch.iterdir()) == []
