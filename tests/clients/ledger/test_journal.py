"""The journal of a ledger's writer: answers of killed processes that are in no part yet."""

import signal
import textwrap
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.processes import Process

from rankbeam.transforms.clients.ledger import Ledger, LedgerEntry, LedgerWriter
from rankbeam.transforms.clients.ledger.journal import left_in
from rankbeam.transforms.clients.ledger.survey import clear, survey
from rankbeam.transforms.records.calls.steps import SearchDepth
from rankbeam.transforms.records.reply import Tokens

NUMBER = 5
ENTRIES = {
    f"k{number}": LedgerEntry(
        f"k{number}", SearchDepth(3, 0.5) if number % 2 else None, '"\ud800 é\\n"', number, 0.25,
        datetime(2026, 1, 1, 0, 0, number, number, tzinfo=UTC), Tokens(number, 0, 7), "s" * number,
    )
    for number in range(NUMBER)
}  # fmt: skip
HEAD = """
import os, signal, sys
from datetime import UTC, datetime
from rankbeam.transforms.clients.ledger import LedgerEntry, LedgerWriter
from rankbeam.transforms.clients.ledger.journal import Journal
from rankbeam.transforms.records.calls.steps import SearchDepth
from rankbeam.transforms.records.reply import Tokens

folder = sys.argv[1]
entries = [
    LedgerEntry(f"k{n}", SearchDepth(3, 0.5) if n % 2 else None, '"\\ud800 é\\\\n"', n, 0.25,
                datetime(2026, 1, 1, 0, 0, n, n, tzinfo=UTC), Tokens(n, 0, 7), "s" * n)
    for n in range(5)
]
"""
ADD = """
writer = LedgerWriter(folder, flush_s=1000.0)
for entry in entries:
    writer.count_in_flight(1)
    writer.add(entry)
for _ in range(3):
    writer.count_in_flight(-1)
"""


def killed(folder: Path, code: str) -> None:
    """Run code in a process that kills itself at the end."""
    with Process(HEAD + textwrap.dedent(code) + "os.kill(os.getpid(), signal.SIGKILL)", str(folder)) as process:
        assert process.wait(60) == -signal.SIGKILL


def journals(folder: Path) -> list[Path]:
    return sorted(folder.glob("_journal-*"))


def stored(folder: Path) -> dict[str, LedgerEntry]:
    return {
        entry.key: entry for entry in Ledger(str(folder)).find({key: None for key in ENTRIES if int(key[1]) % 2 == 0})
    } | {
        entry.key: entry
        for entry in Ledger(str(folder)).find({key: SearchDepth(3, 0.5) for key in ENTRIES if int(key[1]) % 2})
    }


def test_answers_of_a_killed_process_are_in_the_ledger_and_calls_in_flight_are_counted_once(tmp_path: Path) -> None:
    killed(tmp_path, ADD)
    assert not list(tmp_path.glob("calls-*"))
    lookup = Ledger(str(tmp_path)).lookup()
    lookup.refresh()
    (warning,) = lookup.warnings()
    assert warning.startswith("2 calls in flight when a run was killed")
    assert stored(tmp_path) == ENTRIES
    assert not journals(tmp_path)
    assert survey(str(tmp_path)).lost == 0


def test_an_answer_that_is_in_a_part_and_in_a_journal_counts_once(tmp_path: Path) -> None:
    killed(tmp_path, "journal = Journal(folder)\nfor entry in entries: journal.add(entry)\n")
    writer = LedgerWriter(str(tmp_path))
    for entry in list(ENTRIES.values())[:3]:
        writer.add(entry)
    writer.close()
    assert (survey(str(tmp_path)).answers, survey(str(tmp_path)).lost) == (NUMBER, 0)
    assert stored(tmp_path) == ENTRIES


@pytest.mark.parametrize("lost", [1, 40, 10_000])
def test_an_incomplete_line_is_left_out(tmp_path: Path, lost: int) -> None:
    killed(tmp_path, ADD)
    (path,) = journals(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[: max(9, len(content) - lost)] + b"\n00000000[]\nx")
    lines = content.split(b"\n")[1:]
    whole = path.read_bytes().split(b"\n")
    assert len(stored(tmp_path)) == sum(line in whole for line in lines) < NUMBER


def test_the_journal_of_a_running_writer_is_left_alone_and_ends_with_it(tmp_path: Path) -> None:
    writer = LedgerWriter(str(tmp_path), flush_s=1000.0)
    for entry in ENTRIES.values():
        writer.count_in_flight(1)
        writer.add(entry)
    with left_in(str(tmp_path)) as left:
        assert left == ([], 0)
    assert stored(tmp_path) == {}
    assert len(journals(tmp_path)) == 1
    writer.flush()
    assert stored(tmp_path) == ENTRIES
    writer.close()
    assert not journals(tmp_path)


def test_a_ledger_that_is_cleared_has_no_journal(tmp_path: Path) -> None:
    killed(tmp_path, ADD)
    assert clear(str(tmp_path)).answers == NUMBER
    assert list(tmp_path.glob("*.*")) == []


def test_a_survey_counts_what_a_killed_process_left(tmp_path: Path) -> None:
    killed(tmp_path, ADD)
    counts = survey(str(tmp_path))
    assert (counts.answers, counts.lost, counts.foreign) == (NUMBER, 2, ())
