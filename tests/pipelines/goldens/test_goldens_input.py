"""Files and documents that no benchmark can be made from are refused, with lines and advice, before any call."""

import json
from pathlib import Path

import pytest
from support.cli import rankbeam
from support.goldens import corpus, documents, goldens_file, lines
from support.inputs import write

from rankbeam.transforms.clients.local_folders import FOLDER
from rankbeam.transforms.goldens.documents import read_chunks
from rankbeam.transforms.records.errors import InputError


def refused(path: str) -> str:
    outcome = rankbeam("goldens", path)
    assert outcome.status == 2
    return outcome.stderr


def test_all_mistakes_of_a_file_are_named_at_once_with_their_lines(tmp_path: Path) -> None:
    text = """name: x
documents: nowhere.jsonl
services: {a: {type: extractive}, b: {type: lexicl}}
writer: aa
checker: b
items: 0
typs: [lookup]
types: [lokup]
max_cost: 1
output: out
"""
    message = refused(write(tmp_path / "goldens.yaml", text))
    for line, problem in (
        (2, "documents: "),
        (3, "did you mean 'lexical'?"),
        (4, "writer: services: has no 'aa'; did you mean 'a'?"),
        (6, "items: "),
        (7, "typs: unknown key; did you mean 'types'?"),
        (8, "types: unknown type of question 'lokup'; did you mean 'lookup'?"),
    ):
        assert any(f"goldens.yaml:{line}: " in row and problem in row for row in message.splitlines()), (line, message)


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([], "empty"),
        ([{"_id": "d1", "text": "Too short."}], "none of 1 documents has a part of 12 words: too short for a question"),
        ([{"_id": "d1", "text": "x"}, {"_id": "d1", "text": "y"}], "document 'd1' is given twice"),
        ([{"_id": "a\tb", "text": "x"}], r"the id 'a\tb' has a tab"),
        ([{"_id": "a\u2028b", "text": "x"}], r"the id 'a\u2028b' has a tab, a line end"),
    ],
)
def test_documents_that_cannot_be_used_are_refused(rows: list[dict[str, str]], problem: str, tmp_path: Path) -> None:
    assert problem in refused(goldens_file(tmp_path, documents=corpus(tmp_path, rows)))


def test_a_chunk_that_is_given_twice_is_refused_with_its_lines(tmp_path: Path) -> None:
    chunks = [{"_id": "0", "doc_id": name, "text": "x"} for name in ("a", "b", "a")]
    with pytest.raises(InputError, match=r":3: chunk '0' of 'a' is given twice \(also at line 1\)"):
        read_chunks(corpus(tmp_path, chunks))


def test_a_file_of_profiles_with_mistakes_is_refused_by_line(tmp_path: Path) -> None:
    text = """{
  "parameters": {
    "Persona": {
      "descripton": "who asks",
      "values": {}
    }
  }
}
"""
    write(tmp_path / "profiles.json", text)
    message = refused(goldens_file(tmp_path, profiles="profiles.json"))
    assert "profiles.json:4: parameters.Persona.descripton: unknown key; did you mean 'description'?" in message
    assert "profiles.json:5: parameters.Persona.values: " in message
    write(tmp_path / "profiles.json", '{"parameters": {\n"a" 1}}')
    assert "profiles.json:2: is not valid JSON" in refused(goldens_file(tmp_path, profiles="profiles.json"))


def test_profiles_of_any_dimensions_are_assigned_evenly(tmp_path: Path) -> None:
    values = {name: {"description": name} for name in ("a", "b", "c")}
    dimensions = {name: {"description": name, "values": values} for name in ("Mood", "Reader type")}
    write(tmp_path / "profiles.json", json.dumps({"parameters": dimensions}, indent="\t"))
    path = goldens_file(tmp_path, profiles="profiles.json", types=["lookup"], items=6, reviews={"pool": 0})
    assert rankbeam("goldens", path).status == 0
    profiles = [row["metadata"] for row in lines(tmp_path / "out" / "queries.jsonl")]
    for name in ("profile_mood", "profile_reader_type"):
        assert sorted(row[name] for row in profiles) == ["a", "a", "b", "b", "c", "c"]


def test_the_plan_says_how_many_questions_the_documents_do_not_suffice_for(tmp_path: Path) -> None:
    path = goldens_file(tmp_path, documents=corpus(tmp_path, documents(1)), items=9, types=["why", "multi_hop"])
    assert "5 of these questions cannot be made: there are too few spans\n" in rankbeam("goldens", "plan", path).stdout


def test_one_document_makes_questions_of_one_text_and_says_so(tmp_path: Path) -> None:
    path = goldens_file(
        tmp_path, documents=corpus(tmp_path, documents(1)), items=3, types={"lookup": 2, "multi_hop": 1}
    )
    outcome = rankbeam("goldens", path)
    assert outcome.status == 3
    assert "there is one document: questions about two documents cannot be made" in outcome.stderr
    (missing,) = json.loads((tmp_path / "out" / "coverage.json").read_text())["shortfalls"]
    assert (missing["type"], missing["missing"]) == ("multi_hop", 1)


@pytest.mark.long
def test_a_folder_of_markdown_and_a_table_of_chunks_are_documents(tmp_path: Path) -> None:
    rows = documents(4)
    for row in rows:
        write(tmp_path / "texts" / "deep" / f"{row['_id']}.md", f"# {row['title']}\n\n{row['text']}\n")
    path = goldens_file(tmp_path, documents="texts", items=2, types=["lookup"], reviews={"pool": 0})
    assert rankbeam("goldens", path).status == 0
    read = lines(tmp_path / "out" / "corpus.jsonl")
    assert [(row["_id"], row["title"]) for row in read] == [(f"deep/{row['_id']}.md", row["title"]) for row in rows]
    parts = [
        {"_id": f"{row['_id']}-{number}", "doc_id": row["_id"], "text": row["text"][start : start + 300]}
        for row in rows
        for number, start in enumerate((0, 300))
    ]
    write(tmp_path / "chunks.jsonl", "".join(json.dumps(part) + "\n" for part in parts))
    path = goldens_file(
        tmp_path, "chunked", documents={"chunks": "chunks.jsonl"}, items=2, types=["lookup"], output="o"
    )
    assert rankbeam("goldens", path).status == 0
    texts = {row["_id"]: row["text"] for row in lines(tmp_path / "o" / "corpus.jsonl")}
    spans = lines(tmp_path / "o" / "chunks.jsonl")
    assert [texts[span["doc_id"]][span["start"] : span["end"]] for span in spans] == [part["text"] for part in parts]


def test_missing_parts_of_documents_are_named(tmp_path: Path) -> None:
    Path(corpus(tmp_path, documents(24))).rename(tmp_path / "part-00000-of-00002.jsonl")
    chunks = [{**row, "doc_id": row["_id"]} for row in documents(24)]
    write(tmp_path / "chunks-00000-of-00002.jsonl", "".join(json.dumps(row) + "\n" for row in chunks))
    for place, name in (("part-*", "part"), ({"chunks": "chunks-*"}, "chunks")):
        outcome = rankbeam("goldens", "plan", goldens_file(tmp_path, documents=place))
        message = f"{name}-00000-of-00002.jsonl is one of several files, and others are not read"
        assert (outcome.status, message in " ".join(outcome.stderr.split())) == (0, True), outcome.stderr


@pytest.mark.parametrize("name", ["corpus.jsonl", "qrels/dev.tsv"])
def test_files_of_people_in_the_output_are_not_overwritten(tmp_path: Path, name: str) -> None:
    documents_path = corpus(tmp_path, documents(24))
    own = tmp_path / "data" / name
    write(own, Path(documents_path).read_text())
    message = refused(goldens_file(tmp_path, documents=documents_path, output="data"))
    assert f"{name}: does not belong to a benchmark and would be overwritten; choose another output" in message
    assert own.read_text() == Path(documents_path).read_text()
    assert [path.name for path in (tmp_path / "data").rglob("*") if path.is_file()] == [own.name]


def test_what_costs_more_than_max_cost_is_refused_before_any_call(tmp_path: Path) -> None:
    path = goldens_file(
        tmp_path,
        services={"model": {"type": "openai", "base_url": "http://localhost:1/v1", "model": "m-1"}},
        writer="model",
        checker="model",
        max_cost=0.001,
        quotas={"model": {"price_per_million": {"input": 1.0, "output": 2.0}}},
    )
    message = refused(path)
    assert "max_cost: is 0.001, and the calls are planned to cost" in message
    assert not (tmp_path / "out" / "ledger").exists()


def test_a_word_that_is_neither_a_command_nor_a_path_is_refused() -> None:
    outcome = rankbeam("goldens", "reviw", "out/goldens")
    assert outcome.status == 2
    assert "No such command 'reviw'" in outcome.stderr
    assert rankbeam("goldens", "nowhere.yaml").stderr == "rankbeam: nowhere.yaml: no such file\n"


def test_dataflow_is_refused_before_documents_are_read(tmp_path: Path) -> None:
    outcome = rankbeam("goldens", goldens_file(tmp_path), "--runner=DataflowRunner", "--project=p")
    assert outcome.status == 2
    assert "goldens do not run on Dataflow: each stage of each round would be a job" in outcome.stderr


@pytest.mark.long
def test_files_of_a_folder_that_are_not_read_are_named_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path / "kept"))
    folder = tmp_path / "kb"
    for number, row in enumerate(documents(24)):
        write(folder / f"a{number}.md", f"# {row['title']}\n\n{row['text']}")
    path = goldens_file(tmp_path, documents="kb", types=["lookup"])
    assert "not read" not in rankbeam("goldens", "plan", path).stderr
    for name in ("b.png", "c.PNG", "sub/e.docx", "README", ".hidden/f.pdf"):
        write(folder / name, "x")
    message = "4 of 28 files are not read: 2 suffix .png is not read (b.png, c.PNG); 1 suffix (none) is not read"
    for place in ("kb", {"folder": "kb"}):
        path = goldens_file(tmp_path, documents=place, types=["lookup"])
        for command in (["goldens", "plan", path], *([["goldens", path]] if place == "kb" else [])):
            outcome = rankbeam(*command)
            assert outcome.status == 0
            assert message in " ".join(outcome.stderr.split())
    globbed = goldens_file(tmp_path, documents={"folder": "kb", "glob": "*.md"}, types=["lookup"])
    assert "not read" not in rankbeam("goldens", "plan", globbed).stderr


def test_a_folder_of_files_that_are_not_read_is_refused_by_name(tmp_path: Path) -> None:
    write(tmp_path / "kb" / "a.png", "x")
    message = refused(goldens_file(tmp_path, documents="kb"))
    assert "goldens.yaml:" in message
    assert "none of its files can be read; .txt, .md" in message
    refusal = refused(goldens_file(tmp_path, documents={"folder": "kb"}))
    assert "none of its 1 files can be read, such as a.png" in refusal
    write(tmp_path / "kb" / "b.txt", "x")
    within = refused(goldens_file(tmp_path, documents="kb", output="kb/out"))
    assert f"documents: {tmp_path}/kb: contains the output {tmp_path}/kb/out" in within
    assert "no file in the folder matches '*.md'" in refused(
        goldens_file(tmp_path, documents={"folder": "kb", "glob": "*.md"})
    )
