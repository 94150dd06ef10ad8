"""Labels in a run: agreement with the judge, and means by labels and judge, held against plain Python."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from support.cli import rankbeam
from support.inputs import write
from support.labelled import by_words, decided, tasks
from support.runs import evaluated

from rankbeam.pipelines.results.decisions import judge_decisions
from rankbeam.pipelines.results.find import find_run
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.show import judge_line
from rankbeam.transforms.kernels.statistics.ppi import LabelledSample, Spread, estimate
from rankbeam.transforms.records.slices import ALL

EXAMPLE = Path("examples/helpdesk/answers.yaml").absolute()
FAITHFULNESS = "Faithfulness(labels=True,judge=lexical)"
RELEVANCE = "ContextRelevance(labels=True,judge=lexical)@3"
BOTH = ("--configurations", "bm25,bm25-exact-words")
JUDGED = "ContextRelevance(judge=lexical)@3"
NOTHING = 12


def grade(task: Any) -> str:
    """A person's grade: the share of the words of the query in the text."""
    words = {word.strip("?.,").lower() for word in task["query"].split()}
    return str(min(3, round(4 * sum(word in task["text"].lower() for word in words) / len(words))))


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was labelled for two metrics, and run again with the labels; twelve queries retrieve nothing."""
    folder = tmp_path_factory.mktemp("labels")
    out = folder / "out"
    text = EXAMPLE.read_text("utf-8").replace("top_k: 100", "top_k: 5").replace("  qrels: qrels/test.tsv", "")
    more = "".join(f'{{"_id": "x{number}", "text": "Qwyjibo?"}}\n' for number in range(NOTHING))
    queries = write(folder / "queries.jsonl", (EXAMPLE.parent / "queries.jsonl").read_text("utf-8") + more)
    text = text.replace(" queries.jsonl", f" {queries}")
    before = "metrics: [nDCG@10, R@10, Faithfulness, ContextRecall, ClaimRecall]"
    assert before in text
    text = text.replace(before, "metrics: [ContextRelevance@3, Faithfulness]")
    text = text.replace(" corpus.jsonl", f" {EXAMPLE.parent / 'corpus.jsonl'}")
    first = write(folder / "first.yaml", text)
    assert evaluated(first, "first", out).run["state"] == "done"
    assert rankbeam("label", str(out), "--sample", "32", "--metric", "Faithfulness").status == 0
    assert rankbeam("label", str(out), "--sample", "64", "--metric", "ContextRelevance@3", *BOTH).status == 0
    rows = tasks(out, 2)
    assert len({row["query"] for row in rows}) == 64  # as many as asked for, of those with something to decide
    for number, (path, task_rows, decide) in enumerate(
        [("f.jsonl", tasks(out), by_words), ("g.jsonl", rows[: len(rows) * 2 // 3], grade)]
    ):
        outcome = rankbeam("label", str(out), "--apply", decided(folder / path, task_rows, decide))
        assert outcome.status == 0, (number, outcome.stderr)
    text = text.replace("service: overlap}", f"service: overlap, labels: {out / 'labels'}}}")
    text = text.replace("metrics: [", "metrics: [Faithfulness(labels=True), ContextRelevance(labels=True)@3, ")
    assert evaluated(write(folder / "second.yaml", text), "second", out).run["state"] == "done"
    return out


def values(run: Results, metric: str, config_id: str) -> dict[str, float]:
    return {
        row["query_id"]: cell["value"]
        for row in run.table("query_metrics").to_pylist()
        if row["config_id"] == config_id
        for cell in row["metrics"]
        if cell["metric"] == metric and cell["value"] is not None
    }


@pytest.mark.parametrize("name", ["bm25", "bm25-exact-words"])
def test_means_are_those_of_plain_python(out: Path, name: str) -> None:
    run = find_run(str(out))
    config_id = next(row["config_id"] for row in run.configurations if row["name"] == name)
    human, judged = values(run, RELEVANCE, config_id), values(run, JUDGED, config_id)
    assert 20 <= len(human) < 64
    nothing = {query: value for query, value in judged.items() if query.startswith("x")}
    assert nothing == {f"x{number}": 0.0 for number in range(NOTHING)}
    sample = LabelledSample.of(
        np.array(list(human.values())),
        np.array([judged[query] for query in human]),
        np.array([value for query, value in judged.items() if query not in human and query not in nothing]),
    ).with_known(Spread(NOTHING, 0.0, 0.0))
    expected, row = estimate(sample), run.means[config_id, ALL, RELEVANCE]
    assert row.queries == len(human)
    assert (row.mean, row.std_error) == pytest.approx((expected.mean, expected.standard_error), abs=1e-12)
    assert (row.ci_low, row.ci_high) == pytest.approx(expected.interval(), abs=1e-12)
    assert (row.judge_power, row.effective_labels) == pytest.approx(
        (expected.power, expected.effective_labels), rel=1e-9
    )


def test_human_values_are_those_of_the_decisions(out: Path) -> None:
    run = find_run(str(out))
    texts = {row["query_id"]: row["text"] for row in run.table("query_metrics").to_pylist()}
    contexts = {row["text_hash"]: row["text"] for row in run.table("texts").to_pylist()}
    (config_id,) = (row["config_id"] for row in run.configurations if row["name"] == "bm25")
    human = values(run, RELEVANCE, config_id)
    for row in run.table("answers").to_pylist():
        if row["config_id"] == config_id and row["query_id"] in human:
            grades = [
                int(grade({"query": texts[row["query_id"]], "text": contexts[context["text_hash"]]}))
                for context in row["contexts"][:3]
            ]
            assert human[row["query_id"]] == pytest.approx(sum(grades) / 9)


def test_a_difference_is_that_of_plain_python(out: Path) -> None:
    run = find_run(str(out))
    ids = {row["name"]: row["config_id"] for row in run.configurations}
    pair = (ids["bm25-exact-words"], ids["bm25"])
    ours, theirs = ((values(run, RELEVANCE, name), values(run, JUDGED, name)) for name in pair)
    labelled = [query for query in ours[0] if query in theirs[0]]
    rest = [query for query in ours[1] if query in theirs[1] and query not in labelled]
    sample = LabelledSample.of(
        np.array([ours[0][query] - theirs[0][query] for query in labelled]),
        np.array([ours[1][query] - theirs[1][query] for query in labelled]),
        np.array([ours[1][query] - theirs[1][query] for query in rest if not query.startswith("x")]),
    ).with_known(Spread(NOTHING, 0.0, 0.0))
    expected = estimate(sample, -1.0, 1.0)
    (row,) = (
        row
        for row in run.comparisons
        if (row.config_id, row.baseline, row.metric, row.slice) == (*pair, RELEVANCE, ALL)
    )
    assert (row.difference, row.std_error) == pytest.approx((expected.mean, expected.standard_error), abs=1e-12)
    assert (row.ci_low, row.ci_high) == pytest.approx(expected.interval(), abs=1e-12)
    assert row.p_value is not None
    assert (row.p_value < 0.05) == (row.ci_low > 0 or row.ci_high < 0)


def test_a_configuration_that_was_not_drawn_has_no_mean_and_a_warning(out: Path) -> None:
    run = find_run(str(out))
    (config_id,) = (row["config_id"] for row in run.configurations if row["name"] == "bm25-body-only")
    assert run.means[config_id, ALL, FAITHFULNESS].mean is None
    assert any("bm25-body-only" in text and "rankbeam label" in text for text in run.run["warnings"])


def test_agreement_counts_every_labelled_item(out: Path) -> None:
    rows = {row["step"]: row for row in find_run(str(out)).table("agreement").to_pylist()}
    assert rows["support"]["items"] == len(tasks(out))
    assert rows["grade"]["weights"] == "quadratic"
    for row in rows.values():
        assert sum(cell["items"] for cell in row["confusion"]) == row["items"]
        equal = sum(cell["items"] for cell in row["confusion"] if cell["first"] == cell["second"])
        assert row["agreement"] == pytest.approx(equal / row["items"])
        assert row["agreement_low"] <= row["agreement"] <= row["agreement_high"]
    assert rows["support"]["bias"] > 0  # the offline judge takes half of a claim's words for support


def test_the_terminal_shows_how_far_the_judge_agrees_with_people(out: Path) -> None:
    run = find_run(str(out))
    _, *lines = judge_line(run).splitlines()
    rows = run.table("agreement").to_pylist()
    for row, line in zip(rows, lines, strict=True):
        assert f" agrees with people in {row['agreement']:.1%} of {row['items']} decisions ({row['step']}) · " in line
        assert f"kappa {row['kappa']:.2f} ({row['kappa_low']:.2f} to {row['kappa_high']:.2f})" in line
    assert ["quadratic kappa" in line for line in lines] == [row["step"] == "grade" for row in rows]
    assert len(rows) == 2


def test_the_report_shows_agreement_and_what_the_judge_is_worth(out: Path) -> None:
    page = Path(rankbeam("report", str(out)).stdout.strip()).read_text("utf-8")
    assert "Agreement on labelled items" in page
    assert "Means by labels and judge together" in page
    assert "does the judge alone decide" in page


def test_decisions_of_the_judge_stand_beside_those_with_labels(out: Path) -> None:
    run = find_run(str(out))
    (decisions,) = (one for one in judge_decisions(run) if one.metric == JUDGED)
    tested: dict[str, dict[str, float]] = {}
    for row in run.comparisons:
        if row.slice == ALL and row.metric in (RELEVANCE, JUDGED) and row.p_value is not None:
            is_significant = (row.p_value if row.p_adjusted is None else row.p_adjusted) <= 0.05
            tested.setdefault(row.config_id, {})[row.metric] = np.sign(row.difference) * is_significant
    pairs = [signs for signs in tested.values() if len(signs) == 2]
    assert decisions.agreement.pairs == len(pairs) > 0
    assert decisions.agreement.equal == sum(signs[RELEVANCE] == signs[JUDGED] for signs in pairs)
    assert decisions.tau_b is None  # three configurations


@pytest.mark.long
def test_metrics_with_labels_alone_are_left_out_of_comparisons_of_runs_with_a_reason(out: Path, tmp_path: Path) -> None:
    text = (out.parent / "second.yaml").read_text("utf-8").replace("@3, ContextRelevance@3, Faithfulness]", "@3, R@5]")
    content = yaml.safe_load(text.replace("dataset:", f"dataset:\n  qrels: {EXAMPLE.parent}/qrels/test.tsv"))
    content["configurations"] = content["configurations"][:2]
    path = write(tmp_path / "e.yaml", yaml.safe_dump(content))
    for run_id in ("one", "two"):
        assert evaluated(path, output=str(tmp_path / "o"), run_id=run_id).run["state"] == "done"
    reason = f"{FAITHFULNESS} is left out: there is no metric Faithfulness(judge=lexical), whose values"
    compared = rankbeam("compare", str(tmp_path / "o"), str(tmp_path / "o"), "--baseline-run-id", "one")
    watched = rankbeam("monitor", str(tmp_path / "o"))
    for outcome in (compared, watched):
        assert outcome.status == 0, outcome.stderr
        assert "R@5" in outcome.stdout
        assert reason in " ".join(outcome.stderr.split())
    refused = rankbeam("compare", str(tmp_path / "o"), "-m", "Faithfulness(labels=True)")
    assert (refused.status, "there is no metric Faithfulness" in refused.stderr) == (2, True)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{service: overlap}", "{service: overlap}", "needs human labels"),
        ("{service: overlap}", "{service: overlap, labels: absent}", "absent"),
        ("Faithfulness(labels=True)", "AnswerRelevance(labels=True)", "cannot be labelled"),
        ("Faithfulness(labels=True)", "Faithfulness(labels=yes)", "neither True nor False"),
    ],
)
def test_what_cannot_be_labelled_is_refused_before_any_work(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = EXAMPLE.read_text("utf-8").replace("metrics: [", "metrics: [Faithfulness(labels=True), ")
    for name in ("queries.jsonl", "corpus.jsonl", "qrels/test.tsv"):
        text = text.replace(f" {name}", f" {EXAMPLE.parent / name}")
    outcome = rankbeam("evaluate", write(tmp_path / "e.yaml", text.replace(old, new)), "--output", str(tmp_path / "o"))
    assert outcome.status == 2
    assert message in outcome.stderr
    assert not (tmp_path / "o").exists()
