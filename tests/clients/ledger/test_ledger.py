"""The ledger: what was added is found, by any process, after any accident, and nothing else ever is."""

import json
import pickle
import random
import signal
import subprocess
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import memory_filesystem
from support.campaigns import examples
from support.data import REPOSITORY
from support.processes import Process
from support.strategies import lists_up_to

from rankbeam.transforms.clients.ledger import LaneCounts, Ledger, LedgerEntry, LedgerWriter, Owner
from rankbeam.transforms.clients.ledger.rows import SCHEMA
from rankbeam.transforms.clients.ledger.survey import clear, survey
from rankbeam.transforms.records.calls.steps import SearchDepth
from rankbeam.transforms.records.errors import InputError

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
ANY = SearchDepth(0)
TEN = SearchDepth(10)


@pytest.fixture(params=["local", "elsewhere"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A ledger that does not exist yet, on this machine's disk and on another filesystem."""
    yield "mem://bucket/out/ledger" if request.param == "elsewhere" else str(tmp_path / "out [1]" / "ledger")
    memory_filesystem.FILES.clear()


def entry(number: int, answer: str = '"good"', depth: SearchDepth = TEN, seconds: float = 0.5) -> LedgerEntry:
    return LedgerEntry(f"key{number}", depth, answer, 1, seconds, BEGIN + timedelta(seconds=number))


def written(folder: str, *entries: LedgerEntry) -> list[Path]:
    """Entries in a part of their own; returns the parts there are."""
    writer = Ledger(folder).writer()
    for entry in entries:
        writer.add(entry)
    writer.close()
    return sorted(Path(folder).glob("calls-*.parquet"))


def matches(folder: str, *keys: str, depth: SearchDepth = ANY) -> dict[str, LedgerEntry]:
    entries = list(Ledger(folder).find(dict.fromkeys(keys, depth)))
    assert len({entry.key for entry in entries}) == len(entries)
    return {entry.key: entry for entry in entries}


def used(folder: str, run: str, hits: int, calls: int) -> None:
    Ledger(folder, Owner(run)).record("pool", 0, lambda: LaneCounts(hits, calls, calls)).write()


def in_process(code: str, *arguments: object) -> Process:
    head = (
        "import sys, time, json\nfrom datetime import UTC, datetime\nfrom rankbeam.transforms.clients.ledger import *\n"
    )
    head += "from rankbeam.transforms.records.calls.steps import SearchDepth\n"
    head += "from rankbeam.transforms.records.errors import InputError\n"
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return Process(head + textwrap.dedent(code), *map(str, arguments), cwd=REPOSITORY, **piped)


def test_what_was_added_is_found(folder: str) -> None:
    odd = ['"\\ud800 é😀"', json.dumps("\ud800", ensure_ascii=False), "null", json.dumps({"x": "y" * 100_000})]
    entries = [entry(number, answer, SearchDepth(3, 0.25)) for number, answer in enumerate(odd)]
    written(folder, *entries)
    near = SearchDepth(1, 0.1)
    assert matches(folder, *(item.key for item in entries), "other", depth=near) == {item.key: item for item in entries}
    assert [item.key for item in Ledger(folder).find({"key0": SearchDepth(3, 0.2), "key1": SearchDepth(4)})] == ["key0"]


def test_a_folder_that_is_not_there_holds_nothing_and_is_not_made(folder: str) -> None:
    ledger = pickle.loads(pickle.dumps(Ledger(folder)))  # noqa: S301  the test has just made it
    writer = ledger.writer()
    writer.flush()
    writer.close()
    writer.close()
    ledger.record("pool", 0, lambda: LaneCounts(0, 0, 0)).write()
    assert (list(ledger.find({"a": ANY})), list(ledger.find({}))) == ([], [])
    assert not Path(folder).parent.exists()
    assert not memory_filesystem.FILES
    assert survey(folder).files == clear(folder).files == 0


REACHES = st.builds(SearchDepth, st.integers(1, 3), st.none() | st.sampled_from([0.0, 0.5, 1.0]))


@settings(max_examples=examples(40))
@given(have=st.lists(REACHES, min_size=1, max_size=6), requested=REACHES)
def test_the_newest_answer_that_reaches_far_enough(
    tmp_path_factory: pytest.TempPathFactory, have: list[SearchDepth], requested: SearchDepth
) -> None:
    folder = str(tmp_path_factory.mktemp("ledger"))
    entries = [replace(entry(number, str(number), depth), key="k") for number, depth in enumerate(have)]
    written(folder, *entries)
    fitting = [candidate for candidate in entries if candidate.depth.covers(requested)]
    assert list(Ledger(folder).find({"k": requested})) == fitting[-1:]


STEPS = lists_up_to(40, st.tuples(st.sampled_from(["add", "add", "flush", "new"]), st.integers(0, 5)))


@pytest.mark.long
@settings(max_examples=examples(25))
@given(steps=STEPS)
def test_whatever_the_order_of_writing_a_dict_says_the_same(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    folder = str(tmp_path_factory.mktemp("ledger"))
    model: dict[str, LedgerEntry] = {}
    writers = [LedgerWriter(folder, flush_s=0.001)]
    for number, (step, key) in enumerate(steps):
        if step == "add":
            added = replace(entry(number, str(number)), key=f"k{key}")
            writers[key % len(writers)].add(added)
            model[added.key] = added
        elif step == "flush":
            for writer in writers:
                writer.flush()
            assert matches(folder, *(f"k{place}" for place in range(6))) == model
        else:
            writers[key % len(writers)].close()  # merges its parts
            writers[key % len(writers)] = LedgerWriter(folder, flush_s=0.001)
    for writer in writers:
        writer.close()
    assert matches(folder, *(f"k{place}" for place in range(6))) == model


def test_of_equally_new_answers_always_the_same(tmp_path: Path) -> None:
    twins = [replace(entry(0, str(number)), finished_at=BEGIN) for number in range(8)]
    chosen = []
    for name, order in (("a", twins), ("b", twins[::-1])):
        for item in order:
            written(str(tmp_path / name), item)
        chosen.append(matches(str(tmp_path / name), "key0"))
    assert chosen[0] == chosen[1]


@pytest.mark.long
def test_files_stay_few_and_nothing_is_lost(tmp_path: Path) -> None:
    writer = LedgerWriter(str(tmp_path), flush_s=60.0)
    most = 0
    for number in range(150):
        writer.add(entry(number))
        writer.flush()
        most = max(most, len(list(tmp_path.glob("calls-*"))))
    assert most <= 80  # 32 that are merged, and those that came meanwhile
    writer.close()
    assert len(list(tmp_path.iterdir())) == 1
    assert len(matches(str(tmp_path), *(f"key{number}" for number in range(150)))) == 150


def test_entries_wait_for_each_other_and_make_one_part(tmp_path: Path) -> None:
    parts: list[int] = []
    writer = LedgerWriter(str(tmp_path), flush_s=3600.0, before_part=lambda: parts.append(writer.unwritten))
    for number in range(2000):
        writer.add(entry(number))
    writer.flush()
    assert parts == [2000]
    writer.close()


def test_a_writer_that_is_closed_takes_nothing_more(tmp_path: Path) -> None:
    writer = LedgerWriter(str(tmp_path), flush_s=60.0)
    writer.add(entry(1))
    writer.close()
    assert matches(str(tmp_path), "key1") == {"key1": entry(1)}
    with pytest.raises(RuntimeError, match="closed"):
        writer.add(entry(2))


def test_a_killed_process_loses_no_answer(tmp_path: Path) -> None:
    code = """
    writer = Ledger(sys.argv[1]).writer()
    for number in range(10 ** 9):
        writer.add(LedgerEntry(f"k{number}", SearchDepth(1), json.dumps("x" * 2000), 1, 0.1, datetime.now(UTC)))
        print(number, flush=True)
        time.sleep(0.004)
    """
    with in_process(code, tmp_path) as process:
        assert process.stdout is not None
        added = [line.strip() for line, _ in zip(process.stdout, range(300), strict=False)]  # several parts, and more
        process.send_signal(signal.SIGKILL)
    assert set(matches(str(tmp_path), *(f"k{number}" for number in added))) == {f"k{number}" for number in added}


@pytest.mark.campaign
def test_two_processes_write_and_merge_while_a_third_reads(tmp_path: Path) -> None:
    code = """
    writer = LedgerWriter(sys.argv[1], flush_s=0.001)
    for number in range(300):
        writer.add(LedgerEntry(f"{sys.argv[2]}{number}", SearchDepth(1), "1", 1, 0.1, datetime.now(UTC)))
        writer.flush()
    writer.close()
    """
    keys = [f"{name}{number}" for name in "ab" for number in range(300)]
    seen: set[str] = set()
    with in_process(code, tmp_path, "a") as one, in_process(code, tmp_path, "b") as two:
        while one.poll() is None or two.poll() is None:
            now = set(matches(str(tmp_path), *keys))
            assert now >= seen  # what was there once is always there
            seen = now
    assert (one.returncode, two.returncode) == (0, 0)
    assert set(matches(str(tmp_path), *keys)) == set(keys)
    assert survey(str(tmp_path)).damaged == ()


def test_files_that_are_torn_or_of_others_are_left_out_and_named(tmp_path: Path) -> None:
    [part] = written(str(tmp_path), *(entry(number, json.dumps("x" * 500 + str(number))) for number in range(20)))
    whole = part.read_bytes()
    torn = {length: tmp_path / f"calls-{length:032x}.parquet" for length in (0, 3, 4, 200, len(whole) - 1)}
    for length, path in torn.items():
        path.write_bytes(whole[:length])
    foreign = tmp_path / f"calls-{'f' * 32}.parquet"
    pq.write_table(pa.table({"key": ["key1"]}), foreign)
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / f"calls-{'e' * 32}.parquet").mkdir()
    (tmp_path / f"calls-{'d' * 32}.parquet").symlink_to(tmp_path / "nowhere")
    assert len(matches(str(tmp_path), *(f"key{number}" for number in range(20)))) == 20
    seen = survey(str(tmp_path))
    assert {path for path, _ in seen.damaged} == {str(path) for path in [*torn.values(), foreign]}
    assert (seen.entries, seen.answers, seen.foreign) == (20, 20, (str(tmp_path / "notes.txt"),))
    assert clear(str(tmp_path), timedelta(days=36500)).files == 0
    assert clear(str(tmp_path)).answers == 20
    assert not part.exists()
    assert foreign.exists()
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert not any(path.exists() for path in torn.values())


@pytest.mark.long
def test_flipped_bits_never_make_an_answer(tmp_path: Path) -> None:
    entries = {f"key{number}": entry(number, json.dumps("word " * 20 + str(number))) for number in range(40)}
    [part] = written(str(tmp_path), *entries.values())
    whole = part.read_bytes()
    dice = random.Random(7)
    places = [*dice.sample(range(len(whole)), min(120, len(whole))), *range(len(whole) - 12, len(whole))]
    for place in places:
        part.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << dice.randrange(8)]) + whole[place + 1 :])
        assert matches(str(tmp_path), *entries).items() <= entries.items()
        survey(str(tmp_path))


def test_a_damaged_answer_is_replaced_by_an_older_copy(tmp_path: Path) -> None:
    older, newer = entry(1, '"older"'), replace(entry(1, json.dumps("newer" * 50)), finished_at=BEGIN + timedelta(1))
    [first] = written(str(tmp_path), older)
    [part] = set(written(str(tmp_path), newer)) - {first}
    content = bytearray(part.read_bytes())
    meta = pq.ParquetFile(part).metadata.row_group(0).column(SCHEMA.names.index("answer"))
    content[meta.data_page_offset + meta.total_compressed_size - 3] ^= 8
    part.write_bytes(content)
    assert matches(str(tmp_path), "key1") == {"key1": older}
    assert [path for path, _ in survey(str(tmp_path)).damaged] == [str(part)]


@pytest.mark.parametrize(
    "bad",
    [
        {"answer": "no JSON"},
        {"seconds": -1.0},
        {"seconds": float("nan")},
        {"attempts": -1},
        {"depth": SearchDepth(-1)},
        {"depth": SearchDepth(1, float("nan"))},
    ],
)
def test_rows_that_cannot_be_are_left_out(tmp_path: Path, bad: dict[str, object]) -> None:
    written(str(tmp_path), replace(entry(1), **bad), entry(2))  # type: ignore[arg-type]
    requests = {"key1": SearchDepth(-5), "key2": ANY}
    assert list(Ledger(str(tmp_path)).find(requests)) == [entry(2)]


def test_a_full_disk_is_said_until_there_is_room(tmp_path: Path) -> None:
    code = """
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 200_000))
    writer = LedgerWriter(sys.argv[1], flush_s=0.01)
    writer.add(LedgerEntry("small", SearchDepth(1), "1", 1, 0.1, datetime.now(UTC)))
    writer.flush()
    import random
    def large(n):
        text = json.dumps("%x" % random.getrandbits(4_000_000))
        return LedgerEntry(f"large{n}", SearchDepth(1), text, 1, 0.1, datetime.now(UTC))
    for step in (lambda: writer.add(large(0)) or writer.flush(), lambda: writer.problem, writer.close):
        try:
            print(step() or "no error")
        except InputError as error:
            print(error)
    """
    with in_process(code, tmp_path / "ledger") as process:
        out, err = process.communicate(timeout=60)
    lines = out.splitlines()
    assert len(lines) == 3, err
    assert all("ledger of finished calls cannot be written: File too large" in line for line in lines), out
    assert "Traceback" not in err
    assert set(matches(str(tmp_path / "ledger"), "small", "large0")) == {"small"}
    assert [path.name[:6] for path in (tmp_path / "ledger").iterdir()] == ["calls-"]


def test_what_could_not_be_written_is_written_when_there_is_room(tmp_path: Path) -> None:
    obstacle = tmp_path / "ledger"
    obstacle.write_text("a file in the way")
    writer = LedgerWriter(str(obstacle), flush_s=60.0)
    writer.add(entry(1))
    with pytest.raises(InputError, match="cannot be written"):
        writer.flush()
    writer.add(entry(2))
    assert "cannot be written" in str(writer.problem)
    assert writer.unwritten == 2
    obstacle.unlink()
    writer.close()
    assert matches(str(obstacle), "key1", "key2") == {"key1": entry(1), "key2": entry(2)}


def test_clearing_while_a_run_writes_harms_nothing(tmp_path: Path) -> None:
    writer = LedgerWriter(str(tmp_path), flush_s=0.001)
    for number in range(100):
        writer.add(entry(number))
        if number % 10 == 0:
            clear(str(tmp_path))
    writer.flush()
    clear(str(tmp_path))
    writer.add(entry(1000))
    writer.close()
    assert set(matches(str(tmp_path), "key1000")) == {"key1000"}
    assert list(tmp_path.glob("calls-*"))


def test_the_survey_counts_what_is_there(folder: str) -> None:
    written(folder, entry(1, seconds=2.0), entry(2))
    written(folder, replace(entry(2), finished_at=BEGIN + timedelta(days=1)))
    for run, hits, calls in (("first", 0, 3), ("first", 2, 0), ("second", 5, 1)):
        used(folder, run, hits, calls)
    seen = survey(folder)
    assert (seen.entries, seen.answers, seen.files, seen.seconds) == (2, 3, 2, 3.0)
    assert (seen.oldest, seen.newest) == (BEGIN + timedelta(seconds=1), BEGIN + timedelta(days=1))
    assert {(run.run_id, run.hits, run.calls) for run in seen.runs} == {("first", 2, 3), ("second", 5, 1)}
    assert (seen.hits, seen.calls, seen.damaged, seen.foreign) == (7, 4, (), ())
    assert seen.bytes > 0
    assert (clear(folder).files, survey(folder).runs, survey(folder).files) == (2, (), 0)


def test_clearing_what_is_old(folder: str) -> None:
    now = datetime.now(UTC)
    written(folder, replace(entry(1), finished_at=now - timedelta(days=9)))
    written(folder, replace(entry(2), finished_at=now - timedelta(days=9)), replace(entry(3), finished_at=now))
    before = survey(folder).bytes
    cleared = clear(folder, timedelta(days=5))
    assert (cleared.files, cleared.answers, cleared.bytes) == (2, 2, before - survey(folder).bytes)
    assert set(matches(folder, "key1", "key2", "key3")) == {"key3"}
    assert clear(folder, timedelta(days=5)).files == 0


def test_clearing_the_answers_of_one_service(folder: str) -> None:
    now = datetime.now(UTC)
    written(folder, replace(entry(1), service="judge"), replace(entry(2), service="search"), entry(3))
    written(folder, replace(entry(4), service="judge", finished_at=now))
    used(folder, "first", 2, 3)
    assert clear(folder, service="none").files == 0
    assert clear(folder, timedelta(days=5), "judge").answers == 1
    assert set(matches(folder, "key1", "key2", "key3", "key4")) == {"key2", "key3", "key4"}
    assert clear(folder, service="judge").answers == 1
    assert set(matches(folder, "key1", "key2", "key3", "key4")) == {"key2", "key3"}
    assert len(survey(folder).runs) == 1


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder in which nothing can be made, of Linux")
def test_answers_whose_folder_vanishes_again_and_again_do_not_count_as_written() -> None:
    writer = LedgerWriter("/proc/rankbeam/ledger", flush_s=60.0)
    writer.add(entry(1))
    with pytest.raises(InputError, match="its folder keeps disappearing"):
        writer.flush()
    assert writer.unwritten == 1
    with pytest.raises(InputError, match="its folder keeps disappearing"):
        writer.close()
