"""Files: blocks of whole lines, compression by content, patterns, and paths on any filesystem."""

import gzip
import os
import re
import signal
import subprocess
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import processes
from support.inputs import write, write_table
from support.strategies import lists_up_to

from rankbeam.transforms.clients.formats import sources
from rankbeam.transforms.clients.storage import files, matching
from rankbeam.transforms.records.errors import InputError

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
CONTENTS = lists_up_to(200, st.integers(0, 255)).map(bytes) | st.lists(
    st.sampled_from([b"\n", b"a", b"bc", b"\r\n", b" "])
).map(b"".join)


@given(content=CONTENTS, block_bytes=st.integers(1, 50), packed=st.booleans())
def test_blocks_hold_whole_lines_and_join_to_the_content(
    content: bytes, block_bytes: int, packed: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    # A byte order mark or gzip's magic number in front would rightly not come out as it went in.
    content = b"#" + content
    path = tmp_path_factory.mktemp("blocks") / "file.txt"
    path.write_bytes(gzip.compress(content, 1) if packed else content)
    blocks = list(files.read_blocks(str(path), block_bytes))
    assert b"".join(blocks) == content
    assert all(block.endswith(b"\n") for block in blocks[:-1])
    assert all(blocks)


@given(lines=st.lists(st.integers(0, 30), min_size=1), block_bytes=st.integers(1, 40))
def test_a_block_is_about_as_large_as_asked(
    lines: list[int], block_bytes: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    content = b"".join(b"x" * length + b"\n" for length in lines)
    path = write(tmp_path_factory.mktemp("blocks") / "file.txt", content)
    sizes = [len(block) for block in files.read_blocks(path, block_bytes)]
    assert max(sizes) <= block_bytes + max(lines) + 1


def test_an_empty_file_has_no_block(tmp_path: Path) -> None:
    assert list(files.read_blocks(write(tmp_path / "empty", b""))) == []
    assert list(files.read_blocks(write(tmp_path / "empty.gz", b""))) == []


@pytest.mark.parametrize("name", ["run.txt", "run.gz", "run.bz2"])
def test_gzip_is_recognised_by_content(tmp_path: Path, name: str) -> None:
    packed, plain = tmp_path / "packed" / name, tmp_path / "plain" / name
    packed.parent.mkdir()
    plain.parent.mkdir()
    packed.write_bytes(gzip.compress(b"a\nb\n"))
    plain.write_bytes(b"a\nb\n")
    assert files.read_all(str(packed)) == files.read_all(str(plain)) == b"a\nb\n"


def test_gzip_files_may_be_concatenated(tmp_path: Path) -> None:
    path = write(tmp_path / "run", gzip.compress(b"a\nb") + gzip.compress(b"c\nd\n"))
    assert files.read_all(path) == b"a\nbc\nd\n"


@pytest.mark.parametrize("name", ["file.txt", "file.txt.gz"])
def test_a_byte_order_mark_is_dropped_once(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, BYTE_ORDER_MARK + b"a\n" + BYTE_ORDER_MARK + b"b\n")
    assert files.read_all(path) == b"a\n" + BYTE_ORDER_MARK + b"b\n"


def test_the_head_ends_with_a_line(tmp_path: Path) -> None:
    path = write(tmp_path / "file.txt", b"one\ntwo\nthree\n")
    assert files.read_head(path, bytes_wanted=9) == b"one\ntwo\n"
    assert files.read_head(path, bytes_wanted=2) == b"one\n"


@pytest.mark.parametrize("share", [0.05, 0.5, 0.99])
def test_a_gzip_file_cut_short_is_refused(tmp_path: Path, share: float) -> None:
    packed = gzip.compress(b"".join(b"line %d\n" % number for number in range(2000)))
    path = write(tmp_path / "run", packed[: int(len(packed) * share)])
    with pytest.raises(InputError, match="gzip file is cut short") as caught:
        list(files.read_blocks(path))
    assert caught.value.path == path


@pytest.mark.parametrize("block_bytes", [100, files.BLOCK_BYTES])
def test_the_line_where_a_gzip_file_is_cut_is_named(tmp_path: Path, block_bytes: int) -> None:
    # Two members: all of the first can be read, nothing of the second.
    whole = gzip.compress(b"".join(b"line %d\n" % number for number in range(1, 1001)))
    path = write(tmp_path / "run", whole + gzip.compress(b"line 1001\n")[:12])
    with pytest.raises(InputError) as caught:
        list(files.read_blocks(path, block_bytes))
    assert caught.value.line == 1001


def test_a_damaged_gzip_file_is_refused(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(b"".join(b"%d\n" % (number * number) for number in range(2000))))
    packed[len(packed) // 2] ^= 0xFF
    with pytest.raises(InputError, match="damaged"):
        files.read_all(write(tmp_path / "run", bytes(packed)))


def test_a_pattern_names_its_files_sorted(tmp_path: Path) -> None:
    written = [write(tmp_path / name, b"x") for name in ("b.txt", "a.txt", "c.csv", "below/d.txt")]
    assert matching.expand(str(tmp_path / "b.txt")) == [written[0]]
    assert matching.expand(str(tmp_path / "*.txt")) == [written[1], written[0]]


def test_a_folder_names_the_parquet_files_below_it(tmp_path: Path) -> None:
    for name in ("z.parquet", "a.parquet"):
        write_table(tmp_path / "flat" / name, {"x": [1]})
    write(tmp_path / "flat" / "_SUCCESS", b"")
    write_table(tmp_path / "deep" / "date=1" / "p.parquet", {"x": [1]})
    flat, deep = str(tmp_path / "flat"), str(tmp_path / "deep")
    assert matching.expand(flat) == matching.expand(flat + "/") == [f"{flat}/a.parquet", f"{flat}/z.parquet"]
    assert matching.expand(deep) == [f"{deep}/date=1/p.parquet"]


@pytest.mark.parametrize("name", ["run[1].txt", "run [v2.txt", "what?.txt", "a*b.txt", "ä ö.txt"])
def test_a_file_is_found_by_its_exact_name(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, b"abc")
    assert matching.expand(path) == [path]
    assert sources.size(path) == 3


def test_an_exact_name_is_stronger_than_a_pattern(tmp_path: Path) -> None:
    exact = write(tmp_path / "run[1].txt", b"meant")
    write(tmp_path / "run1.txt", b"not meant")
    assert matching.expand(exact) == [exact]


def test_a_folder_of_parquet_may_have_brackets_in_its_name(tmp_path: Path) -> None:
    path = write_table(tmp_path / "export[1]" / "p.parquet", {"x": [1]})
    assert matching.expand(str(tmp_path / "export[1]")) == [path]


@pytest.mark.parametrize("name", ["a[1]", "a*", "a?"])
def test_only_the_named_file_or_folder_is_deleted(tmp_path: Path, name: str) -> None:
    for folder in (name, "a1", "ab"):
        write(tmp_path / folder / "x", b"")
    files.make_writable_folder(str(tmp_path / name))
    files.delete(str(tmp_path / name / "x"))
    assert sorted(path.parent.name for path in tmp_path.glob("*/x")) == ["a1", "ab"]
    files.delete(str(tmp_path / name))
    files.delete(str(tmp_path / name))
    (tmp_path / "link").symlink_to(tmp_path / "ab")
    files.delete(str(tmp_path / "link"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a1", "ab"]


def test_a_link_to_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(InputError, match="link: cannot be opened: No such file"):
        matching.version(str(tmp_path / "link"))


@pytest.mark.parametrize("name", ["missing.txt", "*.txt", "missing/", "empty", "file/below.txt"])
def test_what_is_not_there_is_refused_by_its_name(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    write(tmp_path / "file", b"")
    pattern = str(tmp_path) + "/" + name
    with pytest.raises(InputError, match=r"no such file|is an empty folder") as caught:
        matching.expand(pattern)
    assert caught.value.path == pattern


def test_a_folder_of_other_files_says_how_to_name_them(tmp_path: Path) -> None:
    write(tmp_path / "part-0", b"")
    with pytest.raises(InputError, match=re.escape(f"without Parquet files; write {tmp_path}/* for all its files")):
        matching.expand(str(tmp_path))


def test_the_size_is_that_of_all_files_as_stored(tmp_path: Path) -> None:
    write(tmp_path / "a.txt", b"123")
    write(tmp_path / "b.txt", b"12345")
    assert sources.size(str(tmp_path / "*.txt")) == 8


def test_a_missing_file_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be opened"):
        files.open_raw(str(tmp_path / "missing"))


def test_a_folder_is_made_and_left_empty(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    files.make_writable_folder(str(folder))
    files.make_writable_folder(str(folder))
    assert folder.is_dir()
    assert list(folder.iterdir()) == []


def test_several_runs_make_one_folder_at_once(tmp_path: Path) -> None:
    folders = [str(tmp_path / f"{number}" / "out") for number in range(20)]
    begin = threading.Barrier(8)

    def make(folder: str) -> None:
        begin.wait()
        files.make_writable_folder(folder)

    with ThreadPoolExecutor(8) as threads:
        for folder in folders:
            list(threads.map(make, [folder] * 8))
    assert [list(Path(folder).iterdir()) for folder in folders] == [[]] * 20


@pytest.mark.parametrize("name", ["file", "file/below", "file/far/below"])
def test_a_folder_that_cannot_be_written_to_is_refused(tmp_path: Path, name: str) -> None:
    write(tmp_path / "file", b"content")
    with pytest.raises(InputError, match=r"cannot be (made|written)") as caught:
        files.make_writable_folder(str(tmp_path / name))
    assert str(tmp_path / name) in str(caught.value)
    assert (tmp_path / "file").read_bytes() == b"content"


def test_delete_takes_files_and_folders_and_nothing_else(tmp_path: Path) -> None:
    write(tmp_path / "folder" / "deep" / "file", b"")
    remaining = write(tmp_path / "folder2" / "file", b"")
    files.delete(str(tmp_path / "folder"))
    files.delete(str(tmp_path / "folder"))
    assert matching.expand(str(tmp_path / "*" / "*")) == [remaining]


def test_write_replaces_what_was_there(tmp_path: Path) -> None:
    path = str(tmp_path / "below" / "file.gz")
    files.write(path, b"a longer first content")
    files.write(path, b"second")
    assert Path(path).read_bytes() == b"second"
    assert [entry.name for entry in (tmp_path / "below").iterdir()] == ["file.gz"]
    Path(path).chmod(0o600)
    files.write(path, b"third")
    assert Path(path).stat().st_mode & 0o777 == 0o600
    files.write(str(tmp_path / ("n" * 255)), b"a name as long as names may be")


@pytest.mark.parametrize(
    ("mode", "folder_mode", "expected"), [(0o666, 0o755, b"new"), (0o666, 0o1777, b"new"), (0o444, 0o777, b"old")]
)
def test_permissions_decide_whether_a_file_is_written_not_those_of_its_folder(
    mode: int, folder_mode: int, expected: bytes
) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(write(Path(name) / "file", b"old"))
        path.chmod(mode)
        path.parent.chmod(folder_mode)
        processes.as_nobody(lambda: files.write(str(path), b"new"))
        assert ([entry.name for entry in path.parent.iterdir()], path.read_bytes()) == (["file"], expected)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can write files of others")
def test_the_owner_and_the_group_of_a_file_stay(tmp_path: Path) -> None:
    path = Path(write(tmp_path / "file", b"old"))
    os.chown(path, 65534, 65533)
    files.write(str(path), b"new")
    assert (path.stat().st_uid, path.stat().st_gid, path.read_bytes()) == (65534, 65533, b"new")
    assert list(tmp_path.iterdir()) == [path]


def test_a_killed_write_leaves_no_half_file(tmp_path: Path) -> None:
    code = "import sys; from rankbeam.transforms.clients.storage import files; files.write(sys.argv[1], bytes(8 << 20))"
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)); {code}"
    fatal = f"import signal; signal.signal(signal.SIGXFSZ, signal.SIG_DFL); {limited}"
    assert processes.run(fatal, tmp_path / "new").returncode == -signal.SIGXFSZ
    assert not (tmp_path / "new").exists()


def test_write_keeps_links_and_writes_to_pipes(tmp_path: Path) -> None:
    place, link, pipe = tmp_path / "place", tmp_path / "link", tmp_path / "pipe"
    link.symlink_to(place)
    os.mkfifo(pipe)
    files.write(str(link), b"to the place")
    reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
    files.write(str(pipe), b"to the reader")
    assert (reader.communicate()[0], pipe.is_fifo()) == (b"to the reader", True)
    assert (place.read_bytes(), link.is_symlink()) == (b"to the place", True)
    code = "from rankbeam.transforms.clients.storage import files; files.write('/dev/stdout', b'to the reader')"
    assert processes.run(code).stdout == "to the reader"


@pytest.mark.parametrize(
    ("folder", "names", "expected"),
    [
        ("out", ["runs", "part.parquet"], "out/runs/part.parquet"),
        ("out/", ["runs"], "out/runs"),
        ("/out", ["a"], "/out/a"),
        ("", ["a"], "a"),
        ("gs://bucket/out", ["runs", "a"], "gs://bucket/out/runs/a"),
        ("gs://bucket/out/", ["a"], "gs://bucket/out/a"),
        ("gs://bucket", ["a"], "gs://bucket/a"),
        ("s3://bucket/out", ["a"], "s3://bucket/out/a"),
    ],
)
def test_join(folder: str, names: list[str], expected: str) -> None:
    assert files.join(folder, *names) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("e.yaml", ""),
        ("a/e.yaml", "a"),
        ("/e.yaml", "/"),
        ("/a/b/e.yaml", "/a/b"),
        ("gs://bucket/e.yaml", "gs://bucket"),
        ("gs://bucket/a/e.yaml", "gs://bucket/a"),
    ],
)
def test_parent(path: str, expected: str) -> None:
    assert files.parent(path) == expected


@pytest.mark.parametrize(
    ("folder", "path", "expected"),
    [
        ("/data", "q.tsv", "/data/q.tsv"),
        ("/data", "a/q.tsv", "/data/a/q.tsv"),
        ("/data", "/q.tsv", "/q.tsv"),
        ("/data", "gs://b/q.tsv", "gs://b/q.tsv"),
        ("", "q.tsv", "q.tsv"),
        ("gs://b/e", "q.tsv", "gs://b/e/q.tsv"),
        ("gs://b/e", "gs://c/q.tsv", "gs://c/q.tsv"),
        ("gs://b/e", "/q.tsv", "/q.tsv"),
    ],
)
def test_below(folder: str, path: str, expected: str) -> None:
    assert files.below(folder, path) == expected


@pytest.mark.parametrize("folder", ["/data", "gs://bucket/e"])
def test_a_tilde_is_the_home_folder(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert files.below(folder, "~/q.tsv") == "/home/ada/q.tsv"


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="pipe: is a pipe"):
        files.open_raw(str(tmp_path / "pipe"))


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("s3://bucket/e.yaml", "run pip install 'apache-beam[aws]'"),
        ("hdfs://host/e.yaml", "run pip install 'apache-beam[hadoop]'"),
        ("https://host/e.yaml", "cannot be looked up: no filesystem begins with https://; name a local path"),
    ],
)
def test_filesystems_that_are_not_installed(path: str, problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files.beam(), "_pipeline_options", None)  # as before the first pipeline
    with pytest.raises(InputError) as caught:
        files.exists(path)
    assert problem in str(caught.value)


def test_no_empty_file_is_written_to_try_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = list[bytes]()
    monkeypatch.setattr(files, "write", lambda _, content: written.append(content))  # S3 takes no empty files
    files.make_writable_folder(str(tmp_path / "out"))
    assert all(written)
    assert written


def test_a_text_that_is_not_utf_8_is_refused_at_its_line(tmp_path: Path) -> None:
    path = str(write(tmp_path / "a.txt", "é\nü\n".encode() + b"\n\xfc\n"))
    with pytest.raises(InputError) as caught:
        files.read_text(path, "save it as UTF-8", "named.txt")
    assert str(caught.value) == "named.txt:4: is not UTF-8; save it as UTF-8"
