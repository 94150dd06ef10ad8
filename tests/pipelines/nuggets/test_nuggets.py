"""Nuggets of a collection that has none, from the command line to the next run, which reads the file."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from support.cli import rankbeam
from support.helpdesk import few
from support.inputs import write
from support.runs import evaluated
from support.standin_answers import model, write_experiment
from support.standins import Faults, Standin, serve

from rankbeam.pipelines.goldens import stages
from rankbeam.pipelines.nuggets.make import pools_of
from rankbeam.pipelines.results.find import find_run
from rankbeam.pipelines.run.folders import WORK, owner_files
from rankbeam.transforms.records.slices import ALL

QUERIES = 16
EXPERIMENT = """name: nuggets
dataset: {{queries: {folder}/queries.jsonl, corpus: {folder}/corpus.jsonl{more}}}
services: {{overlap: {{type: lexical}}}}
judge: {{service: overlap}}
configurations:
{configurations}
metrics: [{metrics}]
output: {{path: {output}}}
"""
BM25, TFIDF = (f"  - {{name: {kind}, retriever: {{type: {kind}}}, top_k: 5}}" for kind in ("bm25", "tfidf"))


def experiment(folder: Path, output: str, more: str = "", metrics: str = "ContextRelevance@5", *lines: str) -> str:
    place, configurations = few(folder, QUERIES), "\n".join(lines or (BM25, TFIDF))
    text = EXPERIMENT.format(folder=place, more=more, metrics=metrics, output=output, configurations=configurations)
    return write(folder / f"{output}.yaml", text)


def done(*words: str, status: int = 0) -> Any:
    outcome = rankbeam(*words)
    assert outcome.status == status, outcome.stderr
    return outcome


def rows_of(path: Path) -> dict[str, dict[str, Any]]:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len({row["query_id"] for row in rows}) == len(rows)
    return {row["query_id"]: row for row in rows}


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp("nuggets")
    path = experiment(folder, "out")
    evaluated(path)
    done("nuggets", path)
    return path, folder / "out" / "nuggets" / "answers.jsonl"


@pytest.mark.long
def test_the_next_run_reads_the_file(collected: tuple[str, Path], tmp_path: Path) -> None:
    rows = rows_of(collected[1])
    documents = (few(tmp_path, QUERIES) / "corpus.jsonl").read_text("utf-8").splitlines()
    corpus = {row["_id"]: row for row in map(json.loads, documents)}
    for row in rows.values():
        assert 1 <= len(row["nuggets"]) <= 30
        for nugget in row["nuggets"]:
            assert len(nugget["text"].split()) <= 12
            texts = [f"{corpus[name]['title']}\n{corpus[name]['text']}" for name in row["evidence"][nugget["text"]]]
            assert any(nugget["text"] in " ".join(text.split()) for text in texts)
    answered = BM25.replace("top_k: 5", "top_k: 5, generate: {service: answers}")
    path = experiment(tmp_path, "second", f", answers: {{path: {collected[1]}}}", "NuggetAll, NuggetVital", answered)
    text = Path(path).read_text(encoding="utf-8").replace("{overlap:", "{answers: {type: extractive}, overlap:")
    evaluated(write(Path(path), text))
    run = find_run(str(tmp_path / "second"))
    (configuration,) = run.configurations
    mean = run.means[configuration["config_id"], ALL, "NuggetAll(judge=lexical)"]
    assert (mean.queries, mean.undefined) == (len(rows), QUERIES - len(rows))
    assert 0.0 < (mean.mean or 0.0) <= 1.0


def test_queries_without_relevant_contexts_have_no_nuggets_and_are_counted(collected: tuple[str, Path]) -> None:
    path, written = collected
    run = find_run(str(Path(path).parent / "out"))
    relevant = {row["query_id"] for row in run.table("verdicts").to_pylist() if row["grade"] in (2, 3)}
    queries = {row["query_id"] for row in run.table("query_metrics").to_pylist()}
    assert rows_of(written).keys() == relevant < queries
    outcome = done("nuggets", path)
    assert f"{len(queries - relevant)} have no relevant context, and so no nuggets" in outcome.stdout
    assert f"{len(relevant)} queries with nuggets already, or unanswerable" in outcome.stdout
    assert "0 calls" in outcome.stdout


@pytest.mark.campaign
def test_pools_do_not_depend_on_the_order_of_configurations(collected: tuple[str, Path], tmp_path: Path) -> None:
    other = experiment(tmp_path, "other", "", "ContextRelevance@5", TFIDF, BM25)
    evaluated(other)
    pools = [pools_of(find_run(str(folder)), 10) for folder in (Path(collected[0]).parent / "out", tmp_path / "other")]
    by_query = [{pool.query_id: pool.contexts for pool in one.pools} for one in pools]
    assert by_query[0] == by_query[1]
    assert all(len(set(contexts)) == len(contexts) for contexts in by_query[0].values())


def test_a_collection_at_work_has_the_file_that_names_its_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = experiment(tmp_path, "working")
    evaluated(path)
    owners, build = list[int](), stages.new_pipeline

    def look(options: PipelineOptions) -> beam.Pipeline:
        owners.append(len(owner_files(str(tmp_path / "working"), WORK)))
        return build(options)

    monkeypatch.setattr(stages, "new_pipeline", look)
    done("nuggets", path)
    assert owners == [1]


def test_grades_of_people_come_before_those_of_the_judge(tmp_path: Path) -> None:
    qrels = few(tmp_path, QUERIES) / "qrels" / "test.tsv"
    lines = qrels.read_text(encoding="utf-8").splitlines()[1:]
    people = {(query, doc): int(grade) for query, doc, grade in (line.split("\t") for line in lines)}
    path = experiment(tmp_path, "people", f", qrels: {qrels}", "nDCG@5, ContextRelevance@5")
    evaluated(path)
    run = find_run(str(tmp_path / "people"))
    pools = pools_of(run, 5)
    retrieved = {
        (row["query_id"], document["doc_id"])
        for row in run.table("rankings").to_pylist()
        for document in row["documents"]
    }
    pooled = {(pool.query_id, doc) for pool in pools.pools for docs in pools.doc_ids[pool.query_id] for doc in docs}
    assert {pair for pair in retrieved if people.get(pair, 0) > 0} <= pooled
    assert not {pair for pair in pooled if people.get(pair) == 0}
    assert any(pair not in people for pair in pooled)  # the judge's


def test_passages_of_a_shared_document_belong_to_the_query_that_retrieved_them(tmp_path: Path) -> None:
    passages = {"q1": ("Owners pay.", "Cards are accepted."), "q2": ("Guests may read.",)}
    answers = [
        {"query_id": name, "answer": "?", "contexts": [{"doc_id": "manual", "text": text} for text in texts]}
        for name, texts in passages.items()
    ]
    write(tmp_path / "answers.jsonl", "".join(json.dumps(row) + "\n" for row in answers))
    write(tmp_path / "queries.jsonl", "".join(f'{{"_id": "{name}", "text": "{name}?"}}\n' for name in passages))
    write(tmp_path / "qrels.tsv", "query-id\tcorpus-id\tscore\nq1\tmanual\t1\nq2\tmanual\t1\n")
    replayed = "  - {name: prod, answers: {type: replay, path: answers.jsonl}}"
    text = Path(experiment(tmp_path, "out", ", qrels: qrels.tsv", "Success@1", replayed)).read_text("utf-8")
    evaluated(write(tmp_path / "out.yaml", re.sub("queries: .*?, corpus: .*?,", "queries: queries.jsonl,", text)))
    pools = {pool.query_id: set(pool.contexts) for pool in pools_of(find_run(str(tmp_path / "out")), 10).pools}
    assert pools == {name: set(texts) for name, texts in passages.items()}


@pytest.mark.campaign
def test_rows_that_people_edited_are_kept_and_missing_ones_are_added(tmp_path: Path) -> None:
    path = experiment(tmp_path, "out")
    evaluated(path)
    done("nuggets", path)
    written = tmp_path / "out" / "nuggets" / "answers.jsonl"
    rows = rows_of(written)
    first, second, *_ = rows
    rows[first] = {"query_id": first, "nuggets": [{"text": "Edited", "vital": False}], "reviewed_by": "ann"}
    removed = rows.pop(second)
    write(written, "".join(json.dumps(row) + "\n" for row in rows.values()))
    outcome = done("nuggets", path)
    assert "of 1 query" in outcome.stdout
    assert "0 calls, 2 more from the ledger" in outcome.stdout
    assert rows_of(written)[first] == rows[first]
    assert rows_of(written)[second] == removed


def test_reference_answers_stay_beside_the_nuggets(tmp_path: Path) -> None:
    answers = [
        {"query_id": "h001", "answer": "Under Billing."},
        {"query_id": "h002", "answerable": False},
        {"query_id": "h003", "nuggets": [{"text": "Use SAML", "vital": True}]},
    ]
    source = write(tmp_path / "answers.jsonl", "".join(json.dumps(row) + "\n" for row in answers))
    path = experiment(tmp_path, "out", f", answers: {{path: {source}}}")
    few(tmp_path, 3)
    evaluated(path)
    done("nuggets", path)
    rows = rows_of(tmp_path / "out" / "nuggets" / "answers.jsonl")
    assert rows["h001"]["answer"] == "Under Billing."
    assert rows["h001"]["nuggets"]
    assert rows["h002"] == answers[1]
    assert rows["h003"] == answers[2]


def test_what_cannot_be_pooled_is_refused(tmp_path: Path) -> None:
    path = Path(experiment(tmp_path, "out"))
    qrels = write(tmp_path / "qrels.tsv", "query-id\tcorpus-id\tscore\nh001\tsso-overview\t0\n")
    text = path.read_text(encoding="utf-8").replace("corpus.jsonl}", f"corpus.jsonl, qrels: {qrels}}}")
    text = text.replace("[ContextRelevance@5]", "[Success@5]").replace("top_k: 5", "top_k: 1")
    evaluated(write(path, text))
    for change, problem in (
        (("judge: {service: overlap}\n", ""), "names no judge"),
        (("", ""), "add ContextRelevance@10 to the metrics"),
        (("path: out", "path: elsewhere"), "holds no finished run"),
    ):
        outcome = done("nuggets", write(path, text.replace(*change)), status=2)
        assert problem in outcome.stderr
        assert not (tmp_path / "out" / "nuggets").exists()


def test_a_damaged_file_is_refused_before_anything_is_paid(collected: tuple[str, Path], tmp_path: Path) -> None:
    path = shutil.copytree(Path(collected[0]).parent, tmp_path, dirs_exist_ok=True) / "out.yaml"
    write(tmp_path / "out" / "nuggets" / "answers.jsonl", '{"query_id": "h001", "nuggets": [{"txt": "a"}]}\n')
    outcome = done("nuggets", str(path), status=2)
    assert "answers.jsonl:1" in outcome.stderr


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKBEAM_TEST_KEY", "k")


def remote(folder: Path, server: Standin, quota: dict[str, Any] | None = None, **more: Any) -> str:
    configurations = [{"name": "bm25", "retriever": {"type": "bm25"}, "top_k": 5}]
    experiment = {"metrics": ["nDCG@5", "ContextRelevance@5"], "configurations": configurations} | more
    return write_experiment(folder, model(server, "openai"), quota or {}, **experiment)


@pytest.mark.long
@pytest.mark.usefixtures("key")
def test_the_forecast_holds_a_lower_max_cost_is_refused_and_nothing_is_paid_twice(tmp_path: Path) -> None:
    prices = {"price_per_million": {"input": 1.0, "output": 1.0}}
    with serve("openai") as server:
        path = remote(tmp_path, server, prices)
        evaluated(path)
        before = server.stats().calls
        forecast = done("nuggets", path, "--plan").stdout
        text = Path(path).read_text(encoding="utf-8")
        dear = done("nuggets", write(Path(path), f"{text}max_cost: 1.0e-5\n"), status=2)
        write(Path(path), text)
        assert "the calls are planned to cost" in dear.stderr
        assert "no call was made" in dear.stderr
        assert server.stats().calls == before
        outcome = done("nuggets", path)
        calls = server.stats().calls - before
        assert f"{calls:,} calls, 0 more" in outcome.stdout
        (tmp_path / "out" / "nuggets" / "answers.jsonl").unlink()
        again = done("nuggets", path)
        assert server.stats().calls == before + calls
    queries = len(rows_of(tmp_path / "out" / "nuggets" / "answers.jsonl"))
    assert f"nuggets: {queries} calls" in forecast
    assert calls == 2 * queries  # one window, and one call that weighs
    assert f"0 calls, {calls:,} more from the ledger" in again.stdout


@pytest.mark.long
@pytest.mark.usefixtures("key")
def test_batch_jobs_make_the_calls_and_a_limit_is_compared_with_their_price(tmp_path: Path) -> None:
    prices = {"price_per_million": {"input": 1000.0, "output": 1000.0}}
    with serve("openai_batches") as server:
        path = remote(tmp_path, server, prices)
        evaluated(path)
        batched = {**model(server, "openai"), "batch": {"min_calls": 2}}
        remote(tmp_path, server, prices, services={"m": batched})
        forecast = done("nuggets", path, "--plan").stdout
        planned = re.search(r"cost ([\d.]+) to .* · ([\d.]+) to .* with batch jobs", forecast)
        assert planned is not None
        full, half = map(float, planned.groups())
        assert half == pytest.approx(full / 2, rel=0.01)
        remote(tmp_path, server, prices, services={"m": batched}, max_cost=0.9 * half)
        refused = done("nuggets", path, status=2)
        (least,) = re.findall(r"the calls are planned to cost ([\d.]+) to", refused.stderr)
        assert float(least) == pytest.approx(half, rel=0.01)
        remote(tmp_path, server, prices, services={"m": batched})
        outcome = done("nuggets", path)
        stats = server.stats()
    assert stats.extra["jobs"] == 2  # nuggets, and weights
    queries = len(rows_of(tmp_path / "out" / "nuggets" / "answers.jsonl"))
    assert f"{2 * queries} calls, 0 more from the ledger" in outcome.stdout
    assert stats.extra["rows"] == 2 * queries


@pytest.mark.campaign
@pytest.mark.usefixtures("key")
def test_queries_whose_calls_fail_are_counted_and_tried_again(tmp_path: Path) -> None:
    with serve("openai") as server:
        evaluated(remote(tmp_path, server))
    once = {"attempts": 1, "give_up_after_s": 0.5}
    with serve("openai", faults=Faults(rate=0.4, kinds=("internal",))) as server:
        outcome = done("nuggets", remote(tmp_path, server, once), status=3)
    first = rows_of(tmp_path / "out" / "nuggets" / "answers.jsonl")
    assert "without nuggets because a call failed" in outcome.stderr
    assert "unavailable" in outcome.stderr
    with serve("openai") as server:
        done("nuggets", remote(tmp_path, server))
    whole = rows_of(tmp_path / "out" / "nuggets" / "answers.jsonl")
    assert {query: row for query, row in whole.items() if "nuggets" in first[query]} == {
        query: row for query, row in first.items() if "nuggets" in row
    }
    assert all("nuggets" in row for row in whole.values() if row["query_id"] in first)
