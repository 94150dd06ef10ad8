"""A sample of documents: the same in any order, held alone, and named in a warning."""

import json
import random
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cli import rankbeam
from support.goldens import documents, goldens_file, lines
from support.inputs import json_texts, write
from support.strategies import lists_up_to

from rankbeam.transforms.clients.local_folders import FOLDER
from rankbeam.transforms.goldens.documents import Sample, read_documents, read_folder
from rankbeam.transforms.kernels.sampling import shuffled
from rankbeam.transforms.records.errors import InputError


def ids_of(path: str, sample: Sample) -> list[str]:
    return [document.id for document in read_documents(path, sample)[0]]


@given(lists_up_to(60, st.text("abc", min_size=1, max_size=4), 1).map(set), st.integers(1, 20), st.integers(0, 3))
def test_a_sample_is_the_first_of_an_order_by_hash(
    tmp_path_factory: pytest.TempPathFactory, names: set[str], size: int, seed: int
) -> None:
    order = sorted(names)
    random.Random(seed).shuffle(order)
    path = write(tmp_path_factory.mktemp("corpus") / "c.jsonl", json_texts([(name, "x") for name in order]))
    read, notes = read_documents(path, Sample(size, seed))
    assert [document.id for document in read] == sorted(shuffled(names, seed, "sample")[:size])
    assert bool(notes) == (len(names) > size)


def test_an_id_that_is_given_twice_is_refused_if_it_is_in_the_sample(tmp_path: Path) -> None:
    path = write(tmp_path / "c.jsonl", json_texts([("a", "x"), *[("b", str(number)) for number in range(50)]]))
    with pytest.raises(InputError, match="document 'b' is given twice"):
        read_documents(path, Sample(2, 0))


@pytest.mark.long
def test_memory_follows_the_sample_and_not_the_corpus(tmp_path: Path) -> None:
    peaks = []
    for count in (2_000, 20_000):
        path = write(tmp_path / f"{count}.jsonl", json_texts([(f"d{n}", f"{n} " * 200) for n in range(count)]))
        tracemalloc.start()
        assert len(ids_of(path, Sample(100, 0))) == 100
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0] + 12e6


def test_only_the_files_of_a_sample_are_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path / "kept"))
    for number in range(30):
        write(tmp_path / "docs" / f"{number}.md", f"text {number}")
    chosen = {name for _, name in sorted(Sample(5, 1).key(f"{number}.md") for number in range(30))[:5]}
    for name in {f"{number}.md" for number in range(30)} - chosen:
        (tmp_path / "docs" / name).write_bytes(b"\xff")  # would be counted as unreadable
    for number in range(30):
        write(tmp_path / "docs" / f"{number}.png", "no document")
    read, notes = read_folder(str(tmp_path / "docs"), sample=Sample(5, 1))
    assert {document.id for document in read} == chosen
    assert notes[0].startswith("a sample of 5 of 30 documents is read: ")
    assert "30 suffix .png is not read" in notes[1]


def test_a_benchmark_is_made_of_a_sample(tmp_path: Path) -> None:
    rows = documents(60)
    corpus = write(tmp_path / "corpus.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    path = goldens_file(tmp_path, documents={"path": corpus, "sample": 20}, seed=3)
    done = rankbeam("goldens", path)
    assert done.status == 0, done.stderr
    assert "a sample of 20 of 60 documents is read: questions and judgements are about these" in done.stderr
    written = {row["_id"] for row in lines(tmp_path / "out" / "corpus.jsonl")}
    assert written == set(shuffled([row["_id"] for row in rows], 3, "sample")[:20])
    refused = rankbeam("goldens", goldens_file(tmp_path, documents={"chunks": corpus, "sample": 20}))
    assert refused.status == 2
    assert "sample works only with path and folder" in refused.stderr
