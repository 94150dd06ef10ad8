"""Corpora of RAG Engine on the command line: built once, used again, shown, deleted; mistakes are messages."""

import json
import re
import shutil
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support import rag_corpora as rag
from support.cli import Outcome, rankbeam
from support.data import REPOSITORY
from support.remote import signalled
from support.runs import evaluated
from support.standins import Faults, Standin

from rankbeam.pipelines.results.find import find_run
from rankbeam.transforms.clients.corpora.rag_engine.corpus_client import CorpusClient
from rankbeam.transforms.clients.corpora.rag_engine.data_api import DataApi
from rankbeam.transforms.clients.corpora.rag_engine.description import CorpusDescription
from rankbeam.transforms.clients.corpora.rag_engine.parameters import RagEngineCorpus
from rankbeam.transforms.clients.corpora.rag_engine.work import NeededCorpus
from rankbeam.transforms.clients.ledger import Ledger

DOCUMENTS = 9


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Standin]:
    with rag.rag_engine(tmp_path, monkeypatch, broken="broken") as server:
        yield server


def evaluate(folder: Path, server: Standin, documents: int = DOCUMENTS, **more: Any) -> Outcome:
    return rankbeam("evaluate", rag.experiment(folder, server, rag.dataset(folder, documents), **more))


def there(server: Standin) -> list[dict[str, Any]]:
    corpora: list[dict[str, Any]] = server.stats().extra["corpora"]
    return corpora


@pytest.mark.long
def test_a_corpus_is_built_asked_and_used_again_until_it_expires(tmp_path: Path, server: Standin) -> None:
    path = rag.experiment(tmp_path, server, rag.dataset(tmp_path, DOCUMENTS))
    before = rankbeam("plan", path)
    first = rankbeam("evaluate", path)
    calls = server.stats().calls
    run, after = evaluated(path), rankbeam("plan", path)
    (corpus,) = there(server)

    assert re.search(r"imports: 9 documents, about \d\d chunks · \d s at the quota of embeddings", before.stdout)
    assert first.status == 0
    assert re.search(r"corpus  kb: projects/p/\S+, 9 files, expires \d{4}-\d\d-\d\d \d\d:\d\d UTC", first.stdout)
    assert [row["mean"] for row in run.table("configuration_metrics").to_pylist() if row["metric"] == "R@10"] == [1.0]
    assert server.stats().calls == calls + 3  # both list the corpora once, and the run lists files
    assert f"exists: {corpus['name']}, nothing to import" in after.stdout
    assert "0 calls to make · 3 of 3 are in the ledger" in after.stdout
    (row,) = run.table("corpora").to_pylist()
    assert (row["state"], row["files"], row["imported_files"], row["failed_files"]) == ("reused", 9, 0, 0)
    assert json.loads(corpus["description"])["identity"] == row["identity"]


@pytest.mark.long
def test_the_grid_makes_a_corpus_of_each_chunking_and_of_each_model(tmp_path: Path, server: Standin) -> None:
    grid = {"chunk_size": [12, 16], "embedding_model": ["text-embedding-004", "text-embedding-005"], "top_k": [5, 10]}
    done = evaluate(tmp_path, server, grid=grid, corpus={"keep": "always"})
    run = find_run(str(tmp_path / "out"))

    assert done.status == 0
    assert len(there(server)) == 4
    assert len(run.configurations) == 8
    assert server.stats().extra["uploads"] == DOCUMENTS + 1 + 2 * 4  # a probe; the use and the result of each import
    assert "corpus  kb (12/4, text-embedding-004): " in done.stdout
    assert "kept until you delete it" in done.stdout


@pytest.mark.long
def test_what_is_kept_for_the_run_leaves_nothing(tmp_path: Path, server: Standin) -> None:
    done = evaluate(tmp_path, server, corpus={"keep": "run"})
    assert done.status == 0
    assert "corpus  " not in done.stdout
    assert (there(server), server.stats().extra["objects"]) == ([], [])


def test_ctrl_c_while_corpora_of_a_finished_run_are_deleted_keeps_its_results(tmp_path: Path, server: Standin) -> None:
    path = rag.experiment(tmp_path, server, rag.dataset(tmp_path, DOCUMENTS), corpus={"keep": "run"})
    deleting = lambda: server.stats().queries.get("DeleteRagCorpus", 0) > 0  # noqa: E731
    ended = signalled(["evaluate", path], signal.SIGINT, deleting, tmp_path)
    assert (ended.status, there(server), server.stats().extra["objects"]) == (130, [], [])
    assert find_run(str(tmp_path / "out")).table("configuration_metrics").num_rows > 0


@pytest.mark.long
def test_a_corpus_that_says_it_is_complete_and_is_empty_is_filled(tmp_path: Path, server: Standin) -> None:
    path = rag.experiment(tmp_path, server, rag.dataset(tmp_path, DOCUMENTS))
    evaluated(path)
    (before,) = there(server)
    assert rankbeam("corpora", "delete", path, before["name"], "--yes").status == 0
    about = json.loads(before["description"])
    del about["rankbeam"]
    parameters = RagEngineCorpus(location=rag.LOCATION, staging=rag.STAGING, embedding_model="text-embedding-005")
    site = CorpusClient(DataApi(rag.LOCATION, server.url), Ledger(str(tmp_path / "other")))
    site.create([NeededCorpus(CorpusDescription(**about), parameters)])
    assert [corpus["files"] for corpus in there(server)] == [0]

    done = rankbeam("evaluate", path)
    assert done.status == 0, done.stderr
    assert f"lacks {DOCUMENTS} of {DOCUMENTS} files, and says that it is complete" in done.stderr
    assert [corpus["files"] for corpus in there(server)] == [DOCUMENTS]


@pytest.mark.campaign
def test_titles_are_imported_where_fields_name_them(tmp_path: Path, server: Standin) -> None:
    plain = evaluate(tmp_path, server)
    titled = evaluate(tmp_path, server, corpus={"fields": ["title", "text"]})
    without, with_titles = there(server)
    assert (plain.status, titled.status) == (0, 0)
    warning = "titles of 9 documents are not imported into corpora: kb; with `fields: [title, text]` they are"
    assert warning in plain.stderr
    assert "have titles" not in titled.stderr
    assert "fields" not in json.loads(without["description"])["specification"]  # as before there were fields
    assert json.loads(with_titles["description"])["specification"]["fields"] == ["title", "text"]


@pytest.mark.campaign
def test_evidence_counts_from_the_text_where_titles_are_imported(tmp_path: Path, server: Standin) -> None:
    title = "A title that is much longer than the chunks of the corpus are, word after word after word " * 2
    text = "amber fees are due in May"
    files = rag.dataset(tmp_path, 3, queries=1)
    with Path(files["corpus"]).open("a", encoding="utf-8") as file:
        file.write(json.dumps({"_id": "fees", "title": title, "text": text}) + "\n")
    evidence = {"query_id": "q0", "doc_id": "fees", "start": 6, "end": 18, "quote": text[6:18]}
    (tmp_path / "evidence.jsonl").write_text(json.dumps(evidence) + "\n", encoding="utf-8")
    del files["qrels"]
    (tmp_path / "queries.jsonl").write_text(json.dumps({"_id": "q0", "text": "fees due"}) + "\n", encoding="utf-8")
    path = rag.experiment(
        tmp_path,
        server,
        {**files, "evidence": str(tmp_path / "evidence.jsonl"), "unit": "span"},
        corpus={"fields": ["title", "text"], "chunk_size": 64, "chunk_overlap": 0},
        metrics=["RR", "SpanRecall@5"],
    )
    done = rankbeam("evaluate", path)
    assert done.status == 0, done.stderr
    rows = find_run(str(tmp_path / "out")).table("configuration_metrics").to_pylist()
    assert {row["metric"]: row["mean"] for row in rows} == {"RR": 1.0, "SpanRecall@5": 1.0}


@pytest.mark.campaign
def test_answers_belong_to_the_corpus_and_not_to_its_resource(tmp_path: Path, server: Standin) -> None:
    path = rag.experiment(tmp_path, server, rag.dataset(tmp_path, DOCUMENTS))
    evaluated(path)
    (corpus,) = there(server)
    assert rankbeam("corpora", "delete", path, corpus["name"], "--yes").status == 0  # as somebody else may do
    done = rankbeam("evaluate", path)

    (anew,) = there(server)
    assert anew["name"] != corpus["name"]
    assert done.status == 0
    assert find_run(str(tmp_path / "out")).run["ledger_hits"] == 3


@pytest.mark.campaign
def test_documents_that_cannot_be_imported_are_failures_and_too_many_end_the_run(
    tmp_path: Path, server: Standin
) -> None:
    files = rag.dataset(tmp_path, DOCUMENTS)
    with Path(files["corpus"]).open("a", encoding="utf-8") as file:
        file.write(json.dumps({"_id": "a broken one", "text": "never imported"}) + "\n")
        file.write(json.dumps({"_id": "an empty one", "text": ""}) + "\n")
    refused = rankbeam("evaluate", rag.experiment(tmp_path, server, files))
    done = rankbeam("evaluate", rag.experiment(tmp_path, server, files, corpus={"max_import_failures": 2}))
    failures = find_run(str(tmp_path / "out")).table("failures").to_pylist()

    assert refused.status == 1
    assert "corpus kb: 2 documents could not be imported, and max_import_failures is 0" in refused.stderr
    assert "'a broken one': the file is broken; run again to import only those that are missing" in refused.stderr
    assert done.status == 0
    assert "1 of 11 documents have no text, such as 'an empty one'" in done.stderr
    assert {(row["stage"], row["kind"], row["corpus"], row["doc_id"], row["config_id"]) for row in failures} == {
        ("import", "unavailable", "kb", "a broken one", None),
        ("import", "invalid", "kb", "an empty one", None),
    }
    assert {times for files in server.stats().extra["imports"].values() for times in files.values()} == {1}


REFUSED = {
    "no bucket": (
        {"staging": "gs://no-such-bucket/x"},
        "gs://no-such-bucket/x: cannot be written to: Not Found; does the bucket",
    ),
    "no model": (
        {"embedding_model": "unheard-of"},
        "corpus kb: INVALID_ARGUMENT: The embedding model unheard-of does not",
    ),
    "overlap": ({"chunk_overlap": 16}, "chunk_overlap: is not less than chunk_size, 16"),
    "staging": (
        {"staging": "local/x"},
        "staging: is not a folder of Cloud Storage, from which the service reads; give gs://",
    ),
    "keep": (
        {"keep": "2 weeks"},
        "keep: says how long the corpus is kept: run, always, or a number of days such as 14d",
    ),
    "location": ({"location": "us-central1"}, "location: is not a location; give projects/PROJECT/locations/REGION"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_work_is_refused_and_leaves_nothing(case: str, tmp_path: Path, server: Standin) -> None:
    corpus, message = REFUSED[case]
    done = evaluate(tmp_path, server, corpus=corpus)
    assert done.status == 2
    assert message in done.stderr
    assert (there(server), server.stats().extra["objects"]) == ([], [])


def test_equal_ids_are_refused_before_anything_is_made(tmp_path: Path, server: Standin) -> None:
    files = rag.dataset(tmp_path, DOCUMENTS)
    corpus = Path(files["corpus"])
    corpus.write_text(corpus.read_text(encoding="utf-8") * 2, encoding="utf-8")
    done = rankbeam("evaluate", rag.experiment(tmp_path, server, files))
    assert done.status == 2
    assert "corpus.jsonl:10: document 'kb/0 ü%2F.txt' is given twice (also at line 1); ids must differ" in done.stderr
    assert server.stats().calls == 0


def test_a_corpus_that_is_gone_at_retrieval_ends_the_run_at_the_first_call(tmp_path: Path, server: Standin) -> None:
    path = rag.experiment(
        tmp_path,
        server,
        rag.dataset(tmp_path, DOCUMENTS),
        configurations=[
            {
                "name": "gone",
                "retriever": {
                    "type": "rag_engine",
                    "corpus": f"{rag.LOCATION}/ragCorpora/1",
                    "api_endpoint": server.url,
                },
            },
            {"name": "rag", "retriever": {"type": "rag_engine", "corpus": "kb"}},
        ],
    )
    done = rankbeam("evaluate", path)
    assert done.status == 2
    words = " ".join(done.stderr.split())
    assert f"{rag.LOCATION}/ragCorpora/1" in words
    assert "refused the first call" in words


@pytest.mark.long
def test_corpora_are_listed_shown_and_deleted_after_a_question(tmp_path: Path, server: Standin) -> None:
    grid = {"chunk_size": [12, 16]}
    path = rag.experiment(tmp_path, server, rag.dataset(tmp_path, DOCUMENTS), grid=grid)
    evaluated(path)
    listed = json.loads(rankbeam("corpora", "list", path, "--format", "json").stdout)
    first, second = (corpus["resource"] for corpus in listed)
    place = (rag.LOCATION, "--api-endpoint", server.url)

    assert rankbeam("corpora", "list", *place).stdout.count("9 files   expires") == 2
    shown = rankbeam("corpora", "show", path, first.rpartition("/")[2]).stdout
    assert '"chunk_size": 12' in shown
    assert rankbeam("corpora", "delete", path, first).status == 1  # there is no answer to the question
    assert "Delete this corpus" in rankbeam("corpora", "delete", path, first).stderr
    assert rankbeam("corpora", "delete", *place, "--expired").stdout == f"nothing to delete in {rag.LOCATION}\n"
    assert second in rankbeam("corpora", "delete", path, second, "--dry-run").stdout
    assert len(there(server)) == 2
    assert rankbeam("corpora", "delete", path, first, "--yes").stdout.endswith(f"deleted: {first}\n")
    assert [corpus["name"] for corpus in there(server)] == [second]
    assert rankbeam("corpora", "delete", path, first, "--yes").status == 2
    assert rankbeam("corpora", "delete", path).status == 2


def test_ctrl_c_during_a_deletion_leaves_no_staged_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Faults(only="DeleteRagCorpus", kinds=("hang",), hang_s=3.0)
    with rag.rag_engine(tmp_path, monkeypatch, faults=slow) as server:
        path = rag.experiment(tmp_path, server, rag.dataset(tmp_path, DOCUMENTS), grid={"chunk_size": [12, 16]})
        evaluated(path)
        names = [corpus["name"] for corpus in there(server)]
        deleting = lambda: server.stats().queries.get("DeleteRagCorpus", 0) > 0  # noqa: E731
        ended = signalled(["corpora", "delete", path, *names, "--yes"], signal.SIGINT, deleting, tmp_path)
        assert ended.status == 130
        assert (there(server), server.stats().extra["objects"]) == ([], [])


@pytest.mark.long
def test_corpora_that_could_not_be_deleted_are_named_after_ctrl_c_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with rag.rag_engine(tmp_path, monkeypatch, faults=Faults(only="DeleteRagCorpus", kinds=("permission",))) as server:
        files = rag.dataset(tmp_path, DOCUMENTS)
        evaluated(rag.experiment(tmp_path, server, files, grid={"chunk_size": [12, 16]}))
        path = rag.experiment(tmp_path, server, files, quotas={"rag_engine_data": {"requests_per_minute": 120}})
        names = [corpus["name"] for corpus in there(server)]
        deleting = lambda: server.stats().queries.get("DeleteRagCorpus", 0) > 0  # noqa: E731
        ended = signalled(["corpora", "delete", path, *names, "--yes"], signal.SIGINT, deleting, tmp_path)
        assert rankbeam("corpora", "delete", path, *names, "--yes").status == 1
    assert ended.status == 130
    assert all(f"{name}: PERMISSION_DENIED" in ended.stderr for name in names), ended.stderr


@pytest.mark.long
def test_corpora_that_no_run_of_a_folder_searched_are_deleted(tmp_path: Path, server: Standin) -> None:
    grid = {"chunk_size": [16, 20]}
    path = rag.experiment(tmp_path, server, rag.dataset(tmp_path, DOCUMENTS), grid=grid)
    evaluated(path)
    path = rag.experiment(tmp_path, server, rag.dataset(tmp_path, DOCUMENTS))
    used = evaluated(path, output=tmp_path / "kept").table("corpora").to_pylist()[0]["resource"]
    assert len(there(server)) == 2

    done = rankbeam("corpora", "delete", path, "--unused-by", str(tmp_path / "kept"), "--yes")
    assert done.status == 0
    assert [corpus["name"] for corpus in there(server)] == [used]


def test_the_cost_of_embeddings_is_planned_and_limited(tmp_path: Path, server: Standin) -> None:
    quotas = {
        "rag_engine": {"requests_per_minute": 6000, "price_per_1000": 1.0},
        "rag_engine_data": {"requests_per_minute": 6000},
        "rag_engine_import": {"embeddings_per_minute": 150, "price_per_million": 1000.0},
    }
    files = rag.dataset(tmp_path, DOCUMENTS)
    planned = rankbeam("plan", rag.experiment(tmp_path, server, files, quotas=quotas))
    dear = rankbeam("evaluate", rag.experiment(tmp_path, server, files, quotas=quotas, max_cost=0.5))
    del quotas["rag_engine_import"]["price_per_million"]
    unknown = rankbeam("evaluate", rag.experiment(tmp_path, server, files, quotas=quotas, max_cost=0.5))

    assert "about 700 chunks" not in planned.stdout
    assert re.search(r"at the quota of embeddings · cost \d+\.\d\d", planned.stdout)
    assert (dear.status, unknown.status) == (2, 2)
    assert "the calls are planned to cost" in dear.stderr
    assert (
        "max_cost: needs the price of every call, including embeddings; give quotas: {rag_engine_import"
        in unknown.stderr
    )
    assert there(server) == []


def test_a_retriever_without_a_corpus_is_refused_with_its_line(tmp_path: Path, server: Standin) -> None:
    done = evaluate(tmp_path, server, configurations=[{"name": "rag", "retriever": {"type": "rag_engine"}}])
    assert done.status == 2
    assert "corpus: is missing; name an entry of corpora:, or give the full name of a corpus" in done.stderr


@pytest.mark.long
def test_the_example_of_the_guide_runs(tmp_path: Path, server: Standin) -> None:
    shutil.copytree(REPOSITORY / "examples" / "helpdesk", tmp_path / "helpdesk")
    queries = tmp_path / "helpdesk" / "queries.jsonl"
    lines = queries.read_text(encoding="utf-8").splitlines(keepends=True)[:2]
    queries.write_text("".join(lines), encoding="utf-8")
    text = (REPOSITORY / "examples" / "rag_engine_corpora.yaml").read_text(encoding="utf-8")
    text = text.replace("gs://my-bucket/rankbeam", rag.STAGING).replace("minute: 60}", "minute: 6000}")
    text = text.replace("    keep: 14d", f"    api_endpoint: {server.url}\n    keep: 14d")
    (tmp_path / "example.yaml").write_text(text, encoding="utf-8")
    assert evaluated(str(tmp_path / "example.yaml")).run["state"] == "done"
    assert {row["files"] for row in there(server)} == {len(read_documents(tmp_path))}
    assert len(there(server)) == 4


def read_documents(folder: Path) -> list[str]:
    return (folder / "helpdesk" / "corpus.jsonl").read_text(encoding="utf-8").splitlines()


@pytest.mark.campaign
def test_ctrl_c_during_an_import_ends_at_once_and_the_next_run_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with rag.rag_engine(tmp_path, monkeypatch, seconds_per_file=0.5) as server:
        path = rag.experiment(tmp_path, server, rag.dataset(tmp_path, DOCUMENTS))
        begun = partial(_has_begun, server)
        ended = signalled(["evaluate", path], signal.SIGINT, begun, tmp_path)
        done = rankbeam("evaluate", path)
        imports = server.stats().extra["imports"]

    assert ended.status == 130
    assert "the same command continues from there without paying again" in ended.stderr
    assert done.status == 0
    assert {times for files in imports.values() for times in files.values()} == {1}


def _has_begun(server: Standin) -> bool:
    return server.stats().queries.get("ImportRagFiles", 0) > 0
