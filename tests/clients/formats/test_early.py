"""Files whose reading begins before a pipeline asks for them."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from support.data import REPOSITORY

from rankbeam.transforms.clients.formats import early, rows
from rankbeam.transforms.records.errors import InputError

LINES = 50


@pytest.fixture
def qrels(tmp_path: Path) -> str:
    path = tmp_path / "qrels.txt"
    path.write_text("".join(f"q{line} 0 d{line} 1\n" for line in range(LINES)))
    return str(path)


@pytest.fixture
def run(tmp_path: Path) -> str:
    path = tmp_path / "a.run"
    path.write_text("".join(f"q{line} Q0 d{line} 1 0.5 tag\n" for line in range(LINES)))
    return str(path)


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    yield
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith(("early", "ahead"))] == []
    assert early._begun == {}


def test_a_reader_goes_on_from_what_was_read_early_and_a_second_one_reads_anew(qrels: str, run: str) -> None:
    expected = list(rows.read_qrels(qrels)), list(rows.read_run(run))
    with rows.reading(qrels, run):
        early._begun["run", run]._waiting[0].result()
        Path(run).rename(f"{run}.moved")  # a reader that began anew would not find it
        assert (list(rows.read_qrels(qrels)), list(rows.read_run(run))) == expected
        with pytest.raises(InputError, match="No such file"):
            list(rows.read_run(run))


def test_more_batches_than_are_kept_come_in_order() -> None:
    batches = [pa.record_batch({"row": [number]}) for number in range(3 * early._MOST_BATCHES)]
    with early.reading({("run", "a"): iter(batches), ("run", "b"): iter(batches)}):
        second, first = early.begun(("run", "b")), early.begun(("run", "a"))
        assert second is not None
        assert first is not None
        assert (list(second), list(first)) == (batches, batches)
        assert early.begun(("run", "a")) is None


def test_the_reader_who_asks_gets_the_error(qrels: str, tmp_path: Path) -> None:
    bad = tmp_path / "bad.run"
    bad.write_text("q1 Q0 d1 1 0.5 tag\nq1 Q0 d2 2 best tag\n")
    with rows.reading(qrels, str(bad)):
        with pytest.raises(InputError, match=r"bad\.run:2: the score 'best' is not a number"):
            list(rows.read_run(str(bad)))
        assert len(list(rows.read_qrels(qrels))) == 1


def test_what_nobody_asks_for_ends_with_the_block() -> None:
    ended = []

    def without_end() -> Iterator[pa.RecordBatch]:
        try:
            while True:
                yield pa.record_batch({"row": [1]})
        finally:
            ended.append(True)

    with early.reading({("run", "a"): without_end()}):
        early._begun["run", "a"]._waiting[-1].result()
    assert ended == [True]


def test_only_files_of_this_machine_are_begun(tmp_path: Path) -> None:
    with rows.reading("gs://bucket/qrels", str(tmp_path)):
        assert early._begun == {}


def test_local_files_are_read_before_beam_is_imported(run: str) -> None:
    probe = (
        "import sys; from rankbeam.transforms.clients.formats import rows; "
        "print(len(list(rows.read_run(sys.argv[1]))), "
        "*({'apache_beam', 'google.cloud.bigquery'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", probe, run], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.stdout == "1\n", done.stderr


def test_reading_waits_at_its_budget_until_a_pipeline_asks_for_any_of_the_files(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(early, "_MOST_BYTES", 64)
    large = pa.record_batch({"row": range(8)})
    made: list[int] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(3):
            made.append(number)
            yield large

    others = [pa.record_batch({"row": [number]}) for number in range(3)]
    with early.reading({("qrels", "a"): batches(), ("run", "b"): iter(others)}):
        early._begun["qrels", "a"]._waiting[0].result()
        assert made == [0]
        run = early.begun(("run", "b"))
        assert run is not None
        assert list(run) == others
        qrels = early.begun(("qrels", "a"))
        assert qrels is not None
        assert list(qrels) == [large] * 3


def test_a_reader_that_waits_ends_with_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early, "_MOST_BYTES", 64)
    large = pa.record_batch({"row": range(8)})
    with early.reading({("run", "a"): iter([large] * 3)}):
        early._begun["run", "a"]._waiting[0].result()
