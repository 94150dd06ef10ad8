"""Holes of a run are filled with its judge's grades, through the command line."""

import json
import shutil
from contextlib import ExitStack
from pathlib import Path

import pytest
from support import runs
from support.campaigns import in_campaigns
from support.cli import rankbeam
from support.exported_tables import rewritten
from support.helpdesk import few
from support.inputs import json_texts, trec_qrels, write
from support.json_server import Respond, responding

from rankbeam.pipelines.holes import effects_of, fill, judge_grades
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.slices import ALL

QUERIES = 24
UNJUDGED = "h001"  # by people
METRICS = ["nDCG@5", "P(rel=2)@5", "AP"]
EXPERIMENT = """name: holes
dataset: {{queries: {queries}, qrels: {qrels}, corpus: {corpus}}}
services: {{overlap: {{type: lexical}}}}
judge: {{service: overlap}}
configurations:
  - {{name: bm25, retriever: {{type: bm25}}, top_k: 5}}
  - {{name: tfidf, retriever: {{type: tfidf}}, top_k: 5}}
metrics: [{metrics}]
output: {{path: out}}
"""


def experiment(folder: Path, qrels: Path | str, *metrics: str) -> str:
    place = few(folder, QUERIES)
    paths = {"queries": place / "queries.jsonl", "corpus": place / "corpus.jsonl", "qrels": qrels}
    return write(folder / "experiment.yaml", EXPERIMENT.format(metrics=", ".join(metrics), **paths))


def evaluated(folder: Path, qrels: Path | str, *metrics: str) -> Results:
    return runs.evaluated(experiment(folder, qrels, *metrics))


def means(run: Results, *metrics: str) -> list[float | None]:
    return [run.means[row["config_id"], ALL, metric].mean for metric in metrics for row in run.configurations]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Results:
    only = [f"{metric.replace('@', '(judged_only=True)@')}" for metric in METRICS[:1]]
    folder = tmp_path_factory.mktemp("holes")
    lines = (few(folder, QUERIES) / "qrels" / "test.tsv").read_text("utf-8").splitlines(keepends=True)
    qrels = write(folder / "qrels.tsv", "".join(line for line in lines if not line.startswith(UNJUDGED)))
    return evaluated(folder / "first", qrels, *METRICS, *only, "ContextRelevance@5")


@pytest.mark.long
def test_means_are_those_of_runs_with_the_two_files(run: Results, tmp_path: Path) -> None:
    filling = fill(run)
    effects = [effect for effect in filling.effects if effect.metric in METRICS]
    assert [effect.human for effect in effects] == pytest.approx(means(run, *METRICS), abs=1e-12)
    judged_only = [effect.judged_only for effect in effects if effect.metric == "nDCG@5"]
    assert judged_only == pytest.approx(means(run, "nDCG(judged_only=True)@5"), abs=1e-12)
    second = evaluated(tmp_path / "second", filling.path, *METRICS, "Judged@5")
    assert [effect.filled for effect in effects] == pytest.approx(means(second, *METRICS), abs=1e-12)
    assert means(second, "Judged@5") == [1.0, 1.0]


def test_means_leave_out_failed_queries_and_are_rounded_once(tmp_path: Path) -> None:
    """Failed queries counted as 0, and equal means differed in the last digit, so pairs changed their order."""

    def service(ranks: list[int]) -> Respond:
        def respond(query: str) -> tuple[int, bytes]:
            number = int(query)
            ids = [{"id": f"d{number}" if rank == ranks[number] else f"x{rank}"} for rank in range(1, 21)]
            return (400, b"") if number == 20 else (200, json.dumps(ids).encode())

        return respond

    human = {(f"q{number}", f"d{number}"): 1.0 for number in range(21)}
    ranks = [*range(1, 21), 1]
    with ExitStack() as stack:
        urls = [stack.enter_context(responding(service(some)))[0] for some in (ranks, [*ranks[19::-1], 1])]
        retrievers = [{"type": "http", "url": url, "results": "@", "id": "id"} for url in urls]
        texts = json_texts([(query_id, query_id[1:]) for query_id, _ in human])
        qrels = trec_qrels([(*pair, grade) for pair, grade in human.items()])
        content = {
            "dataset": {
                "queries": write(tmp_path / "queries.jsonl", texts),
                "qrels": write(tmp_path / "qrels", qrels),
            },
            "configurations": [
                {"name": name, "retriever": retriever} for name, retriever in zip("ab", retrievers, strict=True)
            ],
            "dialects": ["rankbeam", "notebook"],
            "metrics": ["RR", "P@2"],
            "quotas": {"http": {"requests_per_minute": 60_000}},
            "max_failure_rate": 1,
        }
        run = runs.run_experiment(tmp_path, content)
    effects = effects_of(run, human, {})
    assert [effect.human for effect in effects if effect.metric == "RR"] == means(run, "RR")
    assert [effect.configuration for effect in effects if effect.metric == "P@2"] == ["a", "b"]  # notebook's is chunk_P


def test_grades_of_people_stay_and_each_line_names_its_source(run: Results) -> None:
    outcome = rankbeam("holes", run.output)
    assert outcome.status == 0, outcome.stderr
    assert "lower end of quadratic kappa" in outcome.stderr
    path = Path(run.output) / "holes" / f"{run.run_id}.tsv"
    header, *lines = [line.split("\t") for line in path.read_text("utf-8").splitlines()]
    qrels = Path(run.run["versions"]["dataset.qrels"])
    original = [line.split("\t") for line in qrels.read_text("utf-8").splitlines()[1:]]
    assert header == ["query-id", "corpus-id", "score", "source"]
    assert sorted([*line, "human"] for line in original) == sorted(line for line in lines if line[3] == "human")
    filled = [line for line in lines if line[3] == "llm"]
    assert filled
    assert {line[2] for line in filled} <= {"0", "2", "3"}
    assert f"{len(original)} judgements by people, {len(filled)} by lexical" in outcome.stdout
    facts = json.loads(path.with_suffix(".json").read_text("utf-8"))
    assert facts["judge"]["prompt_hash"]
    assert (facts["human"], facts["filled"], facts["scale"]) == (len(original), len(filled), [0, 0, 2, 3])
    assert sum(map(sum, facts["audit"]["counts"])) == min(200, facts["audit"]["population"])
    graded = {
        (row["query_id"], row["right_hash"]) for row in run.table("verdicts").to_pylist() if not row["is_sentinel"]
    }
    assert UNJUDGED in dict(graded)
    assert facts["audit"]["population"] + len(filled) == sum(query_id != UNJUDGED for query_id, _ in graded)


def test_grades_count_as_the_option_says(run: Results) -> None:
    outcome = rankbeam("holes", run.output, "--grades", "0,1,1,3")
    assert outcome.status == 0, outcome.stderr
    lines = (Path(run.output) / "holes" / f"{run.run_id}.tsv").read_text("utf-8").splitlines()
    assert {line.split("\t")[2] for line in lines if line.endswith("\tllm")} <= {"0", "1", "3"}


def test_a_text_that_one_of_two_judges_failed_on_stays_a_hole(run: Results, tmp_path: Path) -> None:
    """The other judge's grade filled it, where the majority has no value."""
    shutil.copytree(run.output, tmp_path / "two")
    results = Results(str(tmp_path / "two"), run.run_id)
    alone, verdicts = dict(judge_grades(run).by_text), run.table("verdicts").to_pylist()
    lost = next(row for row in verdicts if row["step"] == "grade")
    alone.pop((lost["query_id"], lost["right_hash"]))
    others = [{**row, "judge": "other"} for row in verdicts if row["item_id"] != lost["item_id"]]
    rewritten(results, "verdicts", [*verdicts, *others])
    quality = run.table("judge_quality").to_pylist()
    rewritten(results, "judge_quality", [*quality, *({**row, "judge": "other"} for row in quality)])
    assert judge_grades(results).by_text == alone


def test_grades_of_a_run_without_quality_of_its_judge_are_their_lower_median(run: Results, tmp_path: Path) -> None:
    shutil.copytree(run.output, tmp_path / "older")
    results, verdicts = Results(str(tmp_path / "older"), run.run_id), run.table("verdicts").to_pylist()
    higher = [{**row, "judge": "other", "grade": None if row["grade"] is None else 3} for row in verdicts]
    rewritten(results, "verdicts", [*verdicts, *higher])
    rewritten(results, "judge_quality", [])
    assert judge_grades(results).by_text == judge_grades(run).by_text


@pytest.mark.parametrize("written", ["0,1,2", "0,1,2,x", "0,0,3,2", "", "0,0,1,1.5", "0,,1,2,3"])
def test_a_wrong_scale_is_refused(run: Results, written: str) -> None:
    outcome = rankbeam("holes", run.output, "--grades", written)
    assert outcome.status == 2
    assert "write four whole numbers in ascending order" in outcome.stderr


def test_a_run_without_grades_of_a_judge_is_refused(tmp_path: Path) -> None:
    run = evaluated(tmp_path / "plain", few(tmp_path, QUERIES) / "qrels" / "test.tsv", "nDCG@5")
    outcome = rankbeam("holes", run.output)
    assert outcome.status == 2
    assert "add ContextRelevance@10 to the metrics" in outcome.stderr
    assert not (Path(run.output) / "holes").exists()


@pytest.mark.parametrize("form", ["tsv", *in_campaigns("trec")])
def test_a_judge_does_not_audit_itself(run: Results, tmp_path: Path, form: str) -> None:
    rows = [line.split("\t") for line in Path(fill(run).path).read_text("utf-8").splitlines()]
    first = next(number for number, row in enumerate(rows) if row[3] == "llm")
    if form == "tsv":
        path, number = write(tmp_path / "q.tsv", "".join("\t".join(row) + "\n" for row in rows)), first + 1
    else:
        lines = [f"{query} {source} {doc} {grade}\n" for query, doc, grade, source in rows[1:]]
        path, number = write(tmp_path / "q.txt", "".join(lines)), first
    filled = evaluated(tmp_path / "again", path, "nDCG@5", "ContextRelevance@5")
    outcome = rankbeam("holes", filled.output)
    assert outcome.status == 2
    assert f"{path}:{number}: already has grades from a judge" in outcome.stderr


def test_a_run_in_bigquery_is_refused_before_anything_is_read() -> None:
    with pytest.raises(InputError, match="in folders only"):
        fill(Results("bigquery://project.dataset", "run"))


@pytest.mark.campaign
def test_other_scales_of_people_need_the_option(tmp_path: Path) -> None:
    text = (few(tmp_path, QUERIES) / "qrels" / "test.tsv").read_text("utf-8").replace("\t3\n", "\t7\n")
    run = evaluated(tmp_path / "seven", write(tmp_path / "qrels.tsv", text), "nDCG@5", "ContextRelevance@5")
    outcome = rankbeam("holes", run.output)
    assert outcome.status == 2
    assert "the highest human grade is 7" in outcome.stderr
    assert rankbeam("holes", run.output, "--grades", "0,0,2,7").status == 0


@pytest.mark.long
def test_only_documents_that_the_judge_saw_are_filled_and_only_if_the_run_names_them(tmp_path: Path) -> None:
    """A document of the same text at a lower rank became a judgement, which it is not for `holes=llm`."""
    write(tmp_path / "queries.jsonl", json_texts([("q1", "who pays the fee")]))
    write(
        tmp_path / "corpus.jsonl",
        json_texts([("a", "owners pay the fee"), ("b", "tea"), ("twin", "owners pay the fee")]),
    )
    write(tmp_path / "qrels", "q1 0 b 1\n")
    write(
        tmp_path / "a.run", "".join(f"q1 Q0 {name} 0 {score} x\n" for name, score in (("a", 3), ("b", 2), ("twin", 1)))
    )
    names = {"queries": "queries.jsonl", "corpus": "corpus.jsonl", "qrels": "qrels"}
    content = {
        "dataset": {**names, "qrels_holes": {"depth": 1}},
        "services": {"overlap": {"type": "lexical"}},
        "judge": {"service": "overlap"},
        "configurations": [{"name": "a", "retriever": {"type": "run_file", "path": "a.run"}}],
        "metrics": ["R@1"],
    }
    unwritten = runs.run_experiment(tmp_path, content)
    with pytest.raises(InputError, match=r"the run wrote no rankings of a, .*rankings: true"):
        fill(unwritten)
    run = runs.run_experiment(tmp_path, {**content, "output": {"path": "with", "rankings": True}})
    filling = fill(run)
    lines = Path(filling.path).read_text("utf-8").splitlines()[1:]
    assert [line.split("\t")[1:] for line in lines] == [["b", "1", "human"], ["a", "1", "llm"]]
    assert [effect.filled for effect in filling.effects if effect.metric == "R@1"] == means(run, "R(holes=llm)@1")


def test_a_document_has_the_highest_grade_of_its_subtopics(tmp_path: Path) -> None:
    """The last line counted: the judge's grade replaced a relevant document's, and means were not those of the run."""
    write(tmp_path / "queries.jsonl", json_texts([("q1", "who pays the fee")]))
    write(tmp_path / "corpus.jsonl", json_texts([("a", "owners pay the fee"), ("b", "tea")]))
    write(tmp_path / "qrels", "q1 1 a 0\nq1 1 b 1\nq1 2 b 0\n")
    write(tmp_path / "a.run", "q1 Q0 b 0 2 x\nq1 Q0 a 0 1 x\n")
    content = {
        "dataset": {"queries": "queries.jsonl", "corpus": "corpus.jsonl", "qrels": "qrels"},
        "services": {"overlap": {"type": "lexical"}},
        "judge": {"service": "overlap"},
        "configurations": [{"name": "a", "retriever": {"type": "run_file", "path": "a.run"}}],
        "metrics": ["RR", "StRecall@2", "ContextRelevance@2"],
        "output": {"path": "out", "rankings": True},
    }
    run = runs.run_experiment(tmp_path, content)
    assert [effect.human for effect in fill(run).effects] == means(run, "RR") == [1.0]
