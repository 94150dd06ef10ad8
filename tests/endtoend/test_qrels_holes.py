"""Holes in the judgements are filled within a run: values, intervals, comparisons, audit, gates and refusals."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from support.campaigns import in_campaigns
from support.cli import rankbeam
from support.inputs import write
from support.runs import evaluated
from support.standin_answers import model, write_experiment
from support.standins import Faults, serve

from rankbeam.pipelines.gates.checks import check, known_of
from rankbeam.pipelines.gates.gates import located_gates
from rankbeam.pipelines.holes import judge_grades
from rankbeam.pipelines.results.audit import audit_in, changed_pairs
from rankbeam.pipelines.results.find import find_run
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.results.tables import InFolder
from rankbeam.transforms.records.scores.rows import Comparison
from rankbeam.transforms.records.slices import ALL

HELPDESK = Path("examples/helpdesk").absolute()
METRICS = ["nDCG@5", "P(rel=2)@5", "R@3"]
GATES = [{"metric": "nDCG(holes=llm)@5", "at_least": 0.01}, {"metric": "nDCG@5", "at_least": 0.01}]


def experiment(folder: Path, name: str, changes: Mapping[str, Any] | None = None, **dataset: Any) -> str:
    text = {
        "name": name,
        "dataset": {
            "queries": str(HELPDESK / "queries.jsonl"),
            "corpus": str(HELPDESK / "corpus.jsonl"),
            "qrels": str(HELPDESK / "qrels" / "test.tsv"),
            **dataset,
        },
        "services": {"overlap": {"type": "lexical"}},
        "judge": {"service": "overlap"},
        "configurations": [
            {"name": kind, "retriever": {"type": kind}, "top_k": 5} for kind in ("bm25", "tfidf", "lsa")
        ],
        "metrics": METRICS,
        "slices": ["intent"],
        "output": {"path": name},
        **(changes or {}),
    }
    return write(folder / f"{name}.yaml", yaml.safe_dump({key: value for key, value in text.items() if value}))


def refused(path: str) -> str:
    outcome = rankbeam("evaluate", path)
    assert outcome.status == 2, outcome.stderr
    assert not (Path(path).with_suffix("") / "verdicts").exists()
    return str(outcome.stderr)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A run with gates, one of which is missed."""
    path = experiment(tmp_path_factory.mktemp("holes"), "first", {"gates": GATES}, qrels_holes={"depth": 5})
    outcome = rankbeam("evaluate", path)
    assert outcome.status == 3, outcome.stderr
    return find_run(str(Path(path).with_suffix("")))


def filled_name(metric: str) -> str:
    return f"{metric[:-3]},holes=llm){metric[-2:]}" if ")" in metric else f"{metric[:-2]}(holes=llm){metric[-2:]}"


def per_query(results: Results, metric: str) -> dict[tuple[str, str], float]:
    names = {row["config_id"]: row["name"] for row in results.configurations}
    return {
        (names[row["config_id"]], row["query_id"]): cell["value"]
        for row in results.table("query_metrics").to_pylist()
        for cell in row["metrics"]
        if cell["metric"] == metric
    }


def test_values_are_those_of_a_second_run_with_the_filled_file(run: Results, tmp_path: Path) -> None:
    assert rankbeam("holes", run.output).status == 0
    path = Path(run.output) / "holes" / f"{run.run_id}.tsv"
    second = evaluated(experiment(tmp_path, "second", {"judge": None, "services": None}, qrels=str(path)))
    for metric in METRICS:
        name = filled_name(metric)
        assert per_query(run, name) == pytest.approx(per_query(second, metric), abs=1e-12)
        ours, theirs = (
            {
                (row["name"], part): results.means[row["config_id"], part, metric_name]
                for row in results.configurations
                for part in results.slices
            }
            for results, metric_name in ((run, name), (second, metric))
        )
        assert ours.keys() == theirs.keys()
        for key, mean in ours.items():
            other = theirs[key]
            assert (mean.mean, mean.ci_low, mean.ci_high) == pytest.approx(
                (other.mean, other.ci_low, other.ci_high), abs=1e-9
            )
        differences = [
            sorted(
                (row.slice, row.config_id[:4], row.difference, row.p_value)
                for row in results.comparisons
                if row.metric == metric_name
            )
            for results, metric_name in ((run, name), (second, metric))
        ]
        assert [row[2] for row in differences[0]] == pytest.approx([row[2] for row in differences[1]], abs=1e-9)
        assert [row[3] for row in differences[0]] == pytest.approx([row[3] for row in differences[1]], abs=1e-9)
    assert any(per_query(run, metric) != per_query(run, filled_name(metric)) for metric in METRICS)


def test_values_by_people_and_of_judged_documents_do_not_depend_on_the_judge(run: Results, tmp_path: Path) -> None:
    only = [
        f"{metric.replace(')', ',judged_only=True)')}" if ")" in metric else metric.replace("@", "(judged_only=True)@")
        for metric in METRICS
    ]
    plain = evaluated(experiment(tmp_path, "plain", {"judge": None, "services": None, "metrics": [*METRICS, *only]}))
    for name in (*METRICS, *only):
        assert per_query(run, name) == per_query(plain, name)
    assert {row["config_id"] for row in run.configurations} == {row["config_id"] for row in plain.configurations}


def test_each_document_says_where_its_grade_is_from(run: Results) -> None:
    lines = (HELPDESK / "qrels" / "test.tsv").read_text(encoding="utf-8").splitlines()[1:]
    people = {(query, doc): float(grade) for query, doc, grade in (line.split("\t") for line in lines)}
    sources = set()
    for row in run.table("rankings").to_pylist():
        for document in row["documents"]:
            place = row["query_id"], document["doc_id"]
            sources.add(document["grade_source"])
            if place in people:
                assert (document["grade"], document["grade_source"]) == (people[place], "human")
            else:
                assert document["grade_source"] == "llm"
                assert document["grade"] in (0.0, 2.0, 3.0)
    assert sources == {"human", "llm"}


def test_the_audit_is_that_of_the_command(run: Results) -> None:
    assert rankbeam("holes", run.output).status == 0
    facts = json.loads((Path(run.output) / "holes" / f"{run.run_id}.json").read_text(encoding="utf-8"))
    audit = audit_in(run)
    assert audit is not None
    assert [list(row) for row in audit.counts] == facts["audit"]["counts"]
    assert audit.kappa == pytest.approx(facts["audit"]["kappa"], abs=1e-12)
    assert list(audit.interval or ()) == pytest.approx(facts["audit"]["interval"], abs=1e-12)
    assert (audit.overrated, audit.not_relevant) == (facts["audit"]["overrated"], facts["audit"]["not_relevant"])
    (row,) = [row for row in run.table("agreement").to_pylist() if row["step"] == "qrels_holes"]
    assert (row["items"], row["unmatched"]) == (audit.pairs, facts["filled"])
    assert {f"holes=llm: {warning}" for warning in audit.warnings} <= set(run.run["warnings"])


class Counted(list[Comparison]):
    """Counts how often all comparisons are read."""

    reads = 0

    def __iter__(self) -> Iterator[Comparison]:
        self.reads += 1
        return super().__iter__()


def test_comparisons_are_read_once_for_all_pairs(run: Results) -> None:
    """They were read three times for each pair and metric: half a minute for all pairs of 40 configurations."""
    results = Results(run.output, run.run_id)
    comparisons = Counted(results.comparisons)
    vars(results)["comparisons"] = comparisons
    assert changed_pairs(results) == changed_pairs(run)
    assert comparisons.reads == 1


@pytest.mark.campaign
def test_pairs_that_compare_otherwise_are_listed(run: Results, tmp_path: Path) -> None:
    expected = set()
    names = {row["name"]: row["config_id"] for row in run.configurations}
    for metric in METRICS:
        filled = filled_name(metric)
        for one, other in (("bm25", "tfidf"), ("bm25", "lsa"), ("tfidf", "lsa")):
            by_people, by_both = (
                run.means[names[one], ALL, name].mean > run.means[names[other], ALL, name].mean  # type: ignore[operator]
                for name in (metric, filled)
            )
            expected |= {(metric, one, other)} if by_people != by_both else set()
    assert expected
    assert expected <= {(pair.metric, pair.first, pair.second) for pair in changed_pairs(run)}
    page = (Path(run.output) / "report.html").read_text(encoding="utf-8")
    assert "order or significance differs" in page
    assert "Holes filled by the judge, audit: " in page
    shown = rankbeam("evaluate", f"{run.output}.yaml", "--output", str(tmp_path))  # other tests read the first run
    assert all(pair.sentence in " ".join(shown.stdout.split()) for pair in changed_pairs(run)[:10])
    assert "holes=llm · audit: " in shown.stdout


@pytest.mark.long
def test_a_gate_on_filled_means_needs_a_judge_that_agrees_with_people(
    run: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = run.table("gates").to_pylist()
    assert {row["metric"]: row["met"] for row in rows} == {"nDCG(holes=llm)@5": False, "nDCG@5": True}
    assert "lower end of quadratic kappa" in next(row["reason"] for row in rows if not row["met"])
    assert rankbeam("gate", run.output).status == 3
    reads: list[str] = []
    plain = InFolder.table

    def counted(tables: InFolder, name: str, columns: Sequence[str] | None) -> pa.Table:
        reads.append(name)
        return plain(tables, name, columns)

    monkeypatch.setattr(InFolder, "table", counted)
    check(run, located_gates(run.experiment_file, known_of(run, None)))
    assert reads.count("agreement") == 1  # in BigQuery, each read is a query

    by_judge = judge_grades(run).by_pair
    lines = [
        f"{query}\t{doc}\t{(0, 0, 2, 3)[grade]}\n"
        for place, ((query, doc), grade) in enumerate(by_judge.items())
        if place % 3
    ]
    qrels = write(tmp_path / "agreeing.tsv", "query-id\tcorpus-id\tscore\n" + "".join(lines))
    agreeing = evaluated(experiment(tmp_path, "good", {"gates": GATES}, qrels=qrels, qrels_holes={"depth": 5}))
    audit = audit_in(agreeing)
    assert audit is not None
    assert (audit.kappa, audit.doubt) == (1.0, "")
    assert all(row["met"] for row in agreeing.table("gates").to_pylist())


@pytest.mark.parametrize("form", ["tsv", *in_campaigns("trec")])
def test_lines_of_a_judge_are_refused_where_it_would_audit_itself_and_marked_elsewhere(
    form: str, tmp_path: Path
) -> None:
    rows = [("h001", "billing-download-invoices", "human"), ("h002", "billing-cancel-monthly", "LLM")]
    header = "query-id\tcorpus-id\tscore\tsource\n" if form == "tsv" else ""
    line = "{0}\t{1}\t1\t{2}\n" if form == "tsv" else "{0} {2} {1} 1\n"
    path = write(tmp_path / f"qrels.{form}", header + "".join(line.format(*row) for row in rows))
    message = refused(experiment(tmp_path, "filled", qrels=path, qrels_holes="llm"))
    assert f"qrels.{form}:{3 if header else 2}: already has grades from a judge" in message
    marked = evaluated(experiment(tmp_path, "marked", {"judge": None, "services": None}, qrels=path))
    assert any("has 1 grade from a judge" in text for text in marked.run["warnings"])


@pytest.mark.parametrize(
    ("grade", "option", "problem"),
    [
        (
            "5",
            "llm",
            "the highest human grade is 5, but the judge grades from 0 to 3; set dataset.qrels_holes",
        ),
        ("0.5", {"grades": [0, 0, 1, 1]}, "grades that are not whole numbers: 1; dataset.qrels_holes"),
    ],
)
def test_grades_on_another_scale_are_refused_before_anything_is_asked(
    grade: str, option: object, problem: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "q.tsv", f"query-id\tcorpus-id\tscore\nh001\tbilling-download-invoices\t{grade}\n")
    assert problem in refused(experiment(tmp_path, "scaled", qrels=path, qrels_holes=option))


@pytest.mark.campaign
def test_an_own_scale_is_used(tmp_path: Path) -> None:
    path = write(tmp_path / "q.tsv", "query-id\tcorpus-id\tscore\nh001\tbilling-download-invoices\t5\n")
    own = evaluated(experiment(tmp_path, "own", qrels=path, qrels_holes={"depth": 5, "grades": [0, 1, 4, 5]}))
    grades = {
        document["grade"]
        for row in own.table("rankings").to_pylist()
        for document in row["documents"]
        if document["grade_source"] == "llm"
    }
    assert grades == {0.0, 1.0, 4.0, 5.0}


@pytest.mark.parametrize(
    ("changes", "dataset", "problem"),
    [
        ({"metrics": ["nDCG(holes=llm)@5"]}, {}, "fills holes; write dataset: {qrels_holes: llm}"),
        ({"metrics": ["nDCG(holes=llm)@20"]}, {"qrels_holes": "llm"}, "needs a cutoff up to 10"),
        ({"metrics": ["nDCG(holes=human)@5"]}, {"qrels_holes": "llm"}, "write holes=llm"),
        ({"metrics": ["nDCG(holes=llm,judged_only=True)@5"]}, {"qrels_holes": "llm"}, "remove one of the two"),
        ({"metrics": ["AP"]}, {"qrels_holes": "llm"}, "add a metric such as nDCG@10"),
        ({"judge": None}, {"qrels_holes": "llm"}, "is filled by a judge; name its model"),
        ({}, {"qrels_holes": "people"}, "is llm, or a mapping with depth, grades and audit"),
        ({}, {"qrels_holes": {"depth": 0}}, "must be at least 1"),
        ({}, {"qrels_holes": {"grades": [0, 2, 1, 3]}}, "in ascending order"),
        ({}, {"qrels_holes": "llm", "qrels": None}, "dataset.qrels"),
    ],
)
def test_what_cannot_be_filled_is_refused(
    changes: dict[str, Any], dataset: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    path = experiment(tmp_path, "wrong", changes, **dataset)
    if "qrels" in dataset:
        value = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        del value["dataset"]["qrels"]
        write(Path(path), yaml.safe_dump(value))
    assert problem in refused(path)


@pytest.mark.campaign
def test_documents_whose_grade_failed_stay_holes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKBEAM_TEST_KEY", "k")
    configurations = [{"name": kind, "retriever": {"type": kind}, "top_k": 5} for kind in ("bm25", "tfidf")]
    quota = {"attempts": 1, "give_up_after_s": 0.5}
    with serve("openai", faults=Faults(rate=0.3, kinds=("internal",))) as server:
        path = write_experiment(
            tmp_path, model(server, "openai"), quota, metrics=["nDCG@5", "Judged@5"], configurations=configurations
        )
        value = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        value["dataset"]["qrels_holes"] = {"depth": 5}
        outcome = rankbeam("evaluate", write(Path(path), yaml.safe_dump(value)))
    assert outcome.status == 3  # the judged values that are missing
    results = find_run(str(tmp_path / "out"))
    documents = [document for row in results.table("rankings").to_pylist() for document in row["documents"]]
    assert {document["grade_source"] for document in documents} == {"human", "llm", None}
    assert all((document["grade"] is None) == (document["grade_source"] is None) for document in documents)
    for row in results.configurations:
        assert results.means[row["config_id"], ALL, "nDCG@5"].failed == 0
        assert results.means[row["config_id"], ALL, "nDCG(holes=llm)@5"].failed == 0
        assert results.means[row["config_id"], ALL, "ContextRelevance@5"].failed > 0


@pytest.mark.long
def test_the_first_documents_are_graded_however_few_of_them_a_generator_receives(tmp_path: Path) -> None:
    """Only its contexts were graded, and the other documents stayed holes without a word."""
    generate = {"service": "quoting", "contexts": 2}
    configuration = {"name": "bm25", "retriever": {"type": "bm25"}, "top_k": 11, "generate": generate}
    services = {"overlap": {"type": "lexical"}, "quoting": {"type": "extractive"}}
    changes = {"configurations": [configuration], "services": services, "slices": None}
    results = evaluated(experiment(tmp_path, "generated", changes, qrels_holes={"depth": 10}))
    sources = {
        (document["rank"], document["grade_source"])
        for row in results.table("rankings").to_pylist()
        for document in row["documents"]
    }
    assert {rank for rank, source in sources if source is None} == {11}
    assert {len(row["contexts"]) for row in results.table("answers").to_pylist()} == {2}
