"""In a narrow terminal tables leave columns out by priority and say so; in a pipe, or with --wide, they are whole."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from support.cli import rankbeam
from support.offline_experiment import answered
from support.runs import run_experiment

from rankbeam.pipelines.show.tabular import WHOLE, Screen, Table, pieces

LEFT_OUT = re.compile(r"Left out to fit \d+ characters: (.*?)\. --wide shows all columns\.", re.DOTALL)
NUMBERS = ["difference", "interval", "p", "queries"]

texts = st.text(st.sampled_from("ab日, :=-é"), max_size=60)


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder: Path = tmp_path_factory.mktemp("answered")
    return run_experiment(folder, answered(folder)).output


def in_terminal(columns: int, *arguments: str) -> list[str]:
    """The lines that a command prints on a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")}
    command = [sys.executable, "-m", "rankbeam", *arguments]
    started = subprocess.Popen(command, stdout=theirs, stdin=subprocess.DEVNULL, env=environment, close_fds=True)
    os.close(theirs)
    content = b""
    try:
        while part := os.read(ours, 1 << 16):
            content += part
    except OSError:  # Linux says so that the other end is closed
        pass
    os.close(ours)
    assert started.wait() == 0
    return re.sub(r"\x1b\[[0-9;]*m", "", content.decode()).splitlines()


@pytest.mark.long
@pytest.mark.parametrize("columns", [80, 40])
def test_a_comparison_fits_the_terminal_and_names_what_it_leaves_out(columns: int, output: str) -> None:
    lines = in_terminal(columns, "compare", output)
    assert max(map(len, lines)) <= columns
    (left_out,) = LEFT_OUT.findall(" ".join(lines))
    whole = rankbeam("compare", output).stdout.splitlines()
    headings = re.split(r"\s{3,}", whole[0])
    assert set(left_out.split(", ")) < set(headings)
    shown = " ".join(lines[: next(place for place, line in enumerate(lines) if line.startswith("─"))]).split()
    assert sorted(shown) == sorted(" ".join(set(headings) - set(left_out.split(", "))).split())


def test_wide_shows_all_columns(output: str) -> None:
    assert Screen(80, wide=True).table(sheet(["x" * 50])).splitlines()[0].split() == ["name", *NUMBERS]
    assert "--wide" in rankbeam("runs", "--help").stdout
    assert rankbeam("runs", output, "--wide").stdout == rankbeam("runs", output).stdout


def sheet(names: list[str]) -> Table:
    rows = [[name, *("1234567890" for _ in NUMBERS)] for name in names]
    return Table(["name", *NUMBERS], rows, drop=["queries", "p"])


@given(st.lists(texts, min_size=1, max_size=4), st.integers(24, 120))
def test_a_table_fits_and_holds_every_letter_of_a_name(names: list[str], width: int) -> None:
    shown = Screen(width).table(sheet(names))
    assert max(map(cell_len, shown.splitlines())) <= width
    written = re.sub(r"[\s\d]", "", LEFT_OUT.sub("", shown))
    for name in names:
        assert re.sub(r"\s", "", name) in written


@given(texts, st.integers(2, 30))
def test_pieces_of_a_text_are_short_and_make_it_up(text: str, most: int) -> None:
    cut = pieces(text, most)
    assert max(map(cell_len, cut)) <= most
    assert re.sub(r"\s", "", "".join(cut)) == re.sub(r"\s", "", text)


def test_columns_go_in_the_order_of_their_priority() -> None:
    shown = {width: Screen(width).table(sheet(["bm25"])).splitlines() for width in (60, 50, 40)}
    assert [lines[0].split() for lines in shown.values()] == [
        ["name", *NUMBERS],
        ["name", *NUMBERS[:3]],
        ["name", *NUMBERS[:2]],
    ]
    assert shown[60][-1].startswith("bm25")
    assert " ".join(shown[40][-2:]) == "Left out to fit 40 characters: p, queries. --wide shows all columns."


@given(st.lists(st.text("abc/", min_size=1, max_size=50), max_size=20))
def test_sentences_break_at_blanks_only(words: list[str]) -> None:
    text = " ".join(words)
    lines = Screen(30).prose(text, indent="  ").splitlines()
    assert " ".join(line.strip() for line in lines) == text
    assert all(len(line) <= 30 or " " not in line.strip() for line in lines)
    assert WHOLE.prose(text) == text
