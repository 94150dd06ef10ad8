"""Corpora of RAG Engine from files as they are: in a bucket without an upload, or uploaded from this machine."""

import json
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support import rag_corpora as rag
from support.cli import Outcome, rankbeam, rankbeam_process
from support.document_files import pdf
from support.remote import signalled
from support.runs import evaluated
from support.standins import Faults, Standin

from rankbeam.pipelines.results.find import find_run
from rankbeam.transforms.clients.corpora.rag_engine.objects import Objects
from rankbeam.transforms.clients.retrievers.rag_engine import RagEngine
from rankbeam.transforms.records.corpora import SearchedCorpus
from rankbeam.transforms.records.errors import CallError

FOLDER = f"gs://{rag.BUCKET}/hand book"
FILES: Mapping[str, bytes] = {
    "guides/start.md": b"# Start\n\namber number0 begins here",
    "help/start.md": b"basil number1 is elsewhere",
    "100% \xc3\xbc.html".encode("latin-1").decode(): b"<p>cedar number2 and more",
    "manual.pdf": pdf(["delta number3"]),
    "odd.txt.txt": b"\xff\xfeember number4",
}
LEFT_OUT = {"logo.png": b"\x89PNG", ".git/config.txt": b"hidden"}


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Standin]:
    with rag.rag_engine(tmp_path, monkeypatch, broken="broken") as server:
        yield server


def fill(contents: Mapping[str, bytes], folder: Path | None = None) -> None:
    """Write files to the bucket, or to a folder of this machine."""
    for name, content in contents.items():
        if folder is None:
            Objects(FOLDER).put(f"{FOLDER}/{name}", content)
        else:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)


def experiment(folder: Path, server: Standin, where: str, names: list[str], **more: Any) -> str:
    """An experiment whose query number n is about file number n."""
    files = rag.dataset(folder, len(names), queries=len(names))
    judgements = "".join(f"q{number}\t{name}\t1\n" for number, name in enumerate(names))
    Path(files["qrels"]).write_text(f"query-id\tcorpus-id\tscore\n{judgements}", encoding="utf-8")
    del files["corpus"]
    own = {"folder": where, **more.pop("corpus", {})}
    dataset = {**files, **more.pop("dataset", {})}
    return rag.experiment(folder, server, dataset, corpus=own, **more)


def evaluate(folder: Path, server: Standin, where: str = FOLDER, **more: Any) -> Outcome:
    return rankbeam("evaluate", experiment(folder, server, where, list(FILES), **more))


def ranked(folder: Path) -> dict[str, list[str]]:
    rows = find_run(str(folder / "out")).table("rankings").to_pylist()
    return {row["query_id"]: [document["doc_id"] for document in row["documents"]] for row in rows}


def recall(folder: Path) -> float:
    rows = find_run(str(folder / "out")).table("configuration_metrics").to_pylist()
    return next(row["mean"] for row in rows if row["metric"] == "R@10")


@pytest.mark.long
def test_a_folder_in_a_bucket_is_imported_in_place_and_nothing_in_it_is_touched(
    tmp_path: Path, server: Standin
) -> None:
    fill({**FILES, **LEFT_OUT})
    before = set(server.stats().extra["objects"])
    path = experiment(tmp_path, server, FOLDER, list(FILES), corpus={"keep": "run"})
    planned = rankbeam("plan", path)
    done = rankbeam("evaluate", path)
    extra = server.stats().extra

    assert f"from the files of {FOLDER}" in planned.stdout
    assert "imports: 5 documents" in planned.stdout
    assert done.status == 0, done.stderr
    note = f"{FOLDER}: 1 of 6 files are not imported: 1 .png (logo.png); `glob` names the files that are"
    assert note in planned.stderr
    assert note in done.stderr
    assert recall(tmp_path) == 1.0
    assert {name for names in ranked(tmp_path).values() for name in names} == set(FILES)
    assert set(extra["objects"]) == before
    assert not [uri for uri in extra["deleted_objects"] if uri in before]
    assert extra["corpora"] == []


@pytest.mark.long
def test_a_folder_of_this_machine_gives_the_same_documents_and_is_uploaded_once(
    tmp_path: Path, server: Standin
) -> None:
    fill(FILES)
    fill({**FILES, **LEFT_OUT}, tmp_path / "here" / "hand book")
    (tmp_path / "there").mkdir()
    evaluated(experiment(tmp_path / "there", server, FOLDER, list(FILES)))
    evaluated(experiment(tmp_path / "here", server, "hand book", list(FILES)))
    rankings, uploads = ranked(tmp_path / "here"), server.stats().extra["uploads"]
    evaluated(experiment(tmp_path / "here", server, "hand book", list(FILES), corpus={"chunk_size": 20}))

    assert rankings == ranked(tmp_path / "there")
    assert server.stats().extra["uploads"] == uploads + 3  # a probe, the use and the result of the other corpus
    staged = [uri for uri in server.stats().extra["objects"] if "/documents/" in uri]
    contents = {uri.rpartition("/")[2]: Objects(rag.STAGING).read(uri) for uri in staged}
    assert contents["manual.pdf"] == FILES["manual.pdf"]
    assert sorted(contents.values()) == sorted(FILES.values())  # type: ignore[type-var]
    documents = {json.loads(corpus["description"])["documents"] for corpus in server.stats().extra["corpora"]}
    assert len(documents) == 1


@pytest.mark.long
def test_files_that_fail_or_are_empty_are_failures_with_their_paths(tmp_path: Path, server: Standin) -> None:
    fill({**FILES, "a/broken.pdf": b"%PDF", "b/broken.pdf": b"%PDF-", "empty.md": b""})
    refused = evaluate(tmp_path, server)
    done = evaluate(tmp_path, server, corpus={"max_import_failures": 3})
    rows = find_run(str(tmp_path / "out")).table("failures").to_pylist()

    assert refused.status == 1
    assert (
        "corpus kb: 3 documents could not be imported, and max_import_failures is 0: 'a/broken.pdf'" in refused.stderr
    )
    assert done.status == 0, done.stderr
    assert {(row["doc_id"], row["kind"], row["message"]) for row in rows if row["stage"] == "import"} == {
        ("a/broken.pdf", "unavailable", "the file is broken"),
        ("b/broken.pdf", "unavailable", "the file is broken"),
        ("empty.md", "invalid", "the document has no text"),
    }


@pytest.mark.long
def test_a_changed_file_makes_another_corpus_and_an_unchanged_folder_none(tmp_path: Path, server: Standin) -> None:
    fill(FILES)
    evaluated(experiment(tmp_path, server, FOLDER, list(FILES)))
    imports = server.stats().queries["ImportRagFiles"]
    fill({"manual.pdf": FILES["manual.pdf"]})  # the same content, written later
    evaluated(experiment(tmp_path, server, FOLDER, list(FILES)))
    assert server.stats().queries["ImportRagFiles"] == imports
    fill({"manual.pdf": FILES["manual.pdf"].replace(b"delta", b"gamma")})  # of equal size
    evaluated(experiment(tmp_path, server, FOLDER, list(FILES)))
    assert server.stats().queries["ImportRagFiles"] == imports + 1
    assert len(server.stats().extra["corpora"]) == 2


@pytest.mark.campaign
def test_a_glob_alone_decides_where_there_is_one(tmp_path: Path, server: Standin) -> None:
    fill({**FILES, **LEFT_OUT})
    done = evaluate(tmp_path, server, corpus={"glob": "*.p*"})
    assert done.status == 0, done.stderr
    assert "not imported" not in done.stderr
    (corpus,) = server.stats().extra["corpora"]
    assert corpus["files"] == 2
    assert "4 of the 5 judged documents" in done.stderr or "not in the corpus" in done.stderr


EVIDENCE = {"query_id": "q0", "doc_id": "guides/start.md", "start": 9, "end": 14, "quote": "amber"}
REFUSED: Mapping[str, tuple[dict[str, Any], str]] = {
    "staging in the folder": (
        {"corpus": {"staging": f"{FOLDER.replace(' ', '')}/x", "folder": FOLDER.replace(" ", "")}},
        "folder and staging must not contain each other",
    ),
    "folder in staging": ({"corpus": {"folder": f"{rag.STAGING}/documents"}}, "must not contain each other"),
    "titles": (
        {"corpus": {"fields": ["title", "text"]}},
        "files of a folder are imported as they are; take fields out",
    ),
    "glob alone": ({"corpus": {"folder": None, "glob": "*"}}, "glob needs folder, whose files it names"),
    "no match": ({"corpus": {"glob": "*.docx"}}, "no file in the folder matches '*.docx'"),
    "no folder": ({"corpus": {"folder": "gs://bucket/nothing"}}, "no file in the folder is of a type that is imported"),
    "no bucket": ({"corpus": {"folder": "gs://no-such-bucket/x"}}, "cannot be listed: Not Found; does the bucket"),
    "no place here": ({"corpus": {"folder": "nowhere"}}, "nowhere: cannot be looked up: No such file"),
}


@pytest.mark.long
@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_work_is_refused_and_leaves_nothing(case: str, tmp_path: Path, server: Standin) -> None:
    fill(FILES)
    before = server.stats().extra["objects"]
    more, message = REFUSED[case]
    done = evaluate(tmp_path, server, **more)
    assert done.status == 2
    assert message in " ".join(done.stderr.split())
    assert (server.stats().extra["corpora"], server.stats().extra["objects"]) == ([], before)


@pytest.mark.campaign
def test_spans_are_refused_where_the_service_extracts_texts_and_located_in_plain_files(
    tmp_path: Path, server: Standin
) -> None:
    fill(FILES)
    fill({name: content for name, content in FILES.items() if name.endswith(".md")}, tmp_path / "docs")
    (tmp_path / "evidence.jsonl").write_text(f"{json.dumps(EVIDENCE)}\n", encoding="utf-8")
    spans: dict[str, Any] = {"evidence": "evidence.jsonl", "unit": "span", "corpus": "docs", "qrels": None}
    refused = evaluate(tmp_path, server, dataset=spans, metrics=["SpanRecall@10"])
    done = evaluate(
        tmp_path, server, dataset=spans, metrics=["SpanRecall@10"], corpus={"glob": "**/*.md", "chunk_size": 64}
    )
    assert refused.status == 2
    assert "the service extracts the text of 2 files itself, such as 100% ü.html" in refused.stderr
    assert done.status == 0, done.stderr
    rows = find_run(str(tmp_path / "out")).table("configuration_metrics").to_pylist()
    assert [row["mean"] for row in rows] == [1.0]


def test_a_context_from_elsewhere_is_a_failure_and_no_document() -> None:
    retriever = RagEngine().searching(SearchedCorpus("0" * 32, rag.LOCATION, root="gs://b/kb"))
    context = {"uri": "gs://b/kb/a/b.pdf", "name": "b.pdf", "text": "x", "score": 0.1}
    assert retriever.read(json.dumps([context])).doc_ids == ("a/b.pdf",)
    with pytest.raises(CallError, match=r"a context is from gs://b/other/b.pdf, which is not in the folder gs://b/kb"):
        retriever.read(json.dumps([{**context, "uri": "gs://b/other/b.pdf"}]))


@pytest.mark.campaign
def test_files_that_change_during_an_import_are_noticed_and_the_corpus_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with rag.rag_engine(tmp_path, monkeypatch, seconds_per_file=0.5) as server:
        fill(FILES)
        change = threading.Thread(target=_change, args=[server])
        change.start()
        done = evaluate(tmp_path, server)
        change.join()
        left = server.stats().extra
        again = evaluate(tmp_path, server)

    assert done.status == 1
    assert f"corpus kb: files in {FOLDER} have changed during the import; run again" in done.stderr
    assert left["corpora"] == []
    assert set(left["objects"]) == {f"{FOLDER}/{name}" for name in FILES}
    assert again.status == 0, again.stderr


def _change(server: Standin) -> None:
    while not server.stats().queries.get("ImportRagFiles", 0):
        time.sleep(0.05)
    fill({"manual.pdf": pdf(["delta number3 and more"])})


@pytest.mark.campaign
def test_what_is_killed_three_times_is_imported_in_place_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    behaviour = {"lost_creates": 1, "lost_imports": 1, "failed_operations": 1, "failing": 0.02, "skipped": 0.02}
    faults = Faults(rate=0.06, kinds=("unavailable", "internal", "quota_hint", "reset", "malformed"), hint_s=0.5)
    with rag.rag_engine(
        tmp_path, monkeypatch, requests_per_minute=3000, faults=faults, seconds_per_file=0.005, **behaviour
    ) as server:
        names = [f"{number % 7}/{number} ü%2F.pdf" for number in range(60)]
        fill({name: rag.text(number).encode() for number, name in enumerate(names)})
        before = set(server.stats().extra["objects"])
        grid = {"chunk_size": [12, 16, 20], "chunk_overlap": [0, 4]}
        corpus = {"keep": "run", "max_import_failures": 0}
        path = experiment(tmp_path, server, FOLDER, names, corpus=corpus, grid=grid, requests_per_minute=3000)
        for moment in ("created", "imported", "complete"):
            ended = signalled(["evaluate", path], signal.SIGKILL, partial(_has_come, moment, server), tmp_path, 0.1)
            assert ended.status == -signal.SIGKILL, moment
        done = rankbeam_process("evaluate", path, timeout_s=600)
        extra = server.stats().extra

    assert done.status == 0, done.stderr
    assert recall(tmp_path) > 0.9
    rows = find_run(str(tmp_path / "out")).table("corpora").to_pylist()
    assert {(row["files"], row["failed_files"]) for row in rows} == {(60, 0)}
    assert {times for files in extra["imports"].values() for times in files.values()} == {1}
    assert extra["created"] == extra["deleted"] == 6
    assert set(extra["objects"]) == before
    assert not before & set(extra["deleted_objects"])


def _has_come(moment: str, server: Standin) -> bool:
    extra = server.stats().extra
    complete = [corpus for corpus in extra["corpora"] if '"complete": true' in corpus["description"]]
    begun = {"created": extra["created"] > 2, "imported": len(extra["imports"]) > 1, "complete": len(complete) > 2}
    return begun[moment]
