"""The report of a run with answers shows every answer, what was judged of it, and who judged."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from support.offline_experiment import answered
from support.pages import Page
from support.runs import query_values, run_experiment

from rankbeam.pipelines import report
from rankbeam.pipelines.report import answers as shown_answers
from rankbeam.pipelines.results.run import Results

OFFLINE = "word overlap, no language model"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("answered")
    return run_experiment(folder, answered(folder))


@pytest.fixture(scope="module")
def page(results: Results) -> Page:
    return Page.of(report.build(results))


def shown(page: Page) -> list[tuple[str, str, dict[str, Any]]]:
    """Configuration, query, and the answer that the page holds."""
    return [
        (page.data["configurations"][int(configuration)], page.data["ids"][int(query)], answer)
        for configuration, of_query in page.data["answers"]["lists"].items()
        for query, answer in of_query.items()
    ]


def test_every_claim_is_marked_where_it_stands_and_counts_as_it_is_shown(page: Page, results: Results) -> None:
    values = query_values(results)
    assert len(shown(page)) == 6
    for configuration, query, answer in shown(page):
        assert all(answer["text"][start:end] == text for text, start, end, _ in answer["claims"])
        for metric, claims in (("Faithfulness", answer["claims"]), ("ContextRecall", answer["referenceClaims"])):
            by_contexts = [
                [context_verdict for context_verdict in verdicts[:-1] if context_verdict] for *_, verdicts in claims
            ]
            supported = [any(verdict == "supported" for verdict, _ in cell) for cell in by_contexts]
            value = values[configuration][query][f"{metric}(judge=lexical)"]
            assert value == pytest.approx(sum(supported) / len(supported))
        assert 1 <= len(answer["contexts"]) <= int(configuration[-1])


def test_the_page_says_who_judged_by_which_prompt_and_that_it_is_no_language_model(
    page: Page, results: Results
) -> None:
    for row in results.table("verdicts").to_pylist():
        assert row["prompt_hash"] in page.text
    assert f"judge=lexical: {OFFLINE}" in page.data["offline"]
    assert page.text.count(f"judge=lexical: {OFFLINE}") > len(page.data["metrics"])
    assert f"lexical: {OFFLINE}. Its numbers" in page.text


def test_long_texts_are_cut(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown_answers, "_MOST_LETTERS_OF_ALL", 10)
    data = Page.of(report.build(results)).data
    assert max(map(len, data["answers"]["texts"])) == 61


def test_a_report_without_the_tables_of_answers_has_all_the_rest(results: Results, tmp_path: Path) -> None:
    shutil.copytree(results.output, tmp_path / "out")
    for name in ("answers", "claims", "verdicts", "texts", "judge_quality"):
        shutil.rmtree(tmp_path / "out" / name)
    page = Page.of(report.build(Results(str(tmp_path / "out"), results.run_id)))
    assert page.data["answers"] is None
    assert "Answers and judge" not in page.text
    assert "Leaderboard" in page.text
