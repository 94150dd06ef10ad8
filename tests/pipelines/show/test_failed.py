"""A configuration whose every call failed may be any good: it only has no value."""

from collections.abc import Iterator

import pytest
import yaml
from support.finished import experiment, install, ranks
from support.pages import Page
from support.runs import evaluated

from rankbeam.pipelines import report, show
from rankbeam.pipelines.report.leaderboard import board
from rankbeam.pipelines.report.study import Study
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.show.exports import as_markdown
from rankbeam.transforms.clients.parameters import entry_points_of

FAILED = {"c": ranks(-1), "d": ranks(-2)}
RUNS = {
    "unclear": {"a": ranks(1, 2), "b": ranks(2, 1)} | FAILED,
    "clear": {"a": ranks(1), "b": ranks(7)} | FAILED,
    "alone": {"a": ranks(1, 2), "b": ranks(-1, -2)} | FAILED,
    "none": FAILED,
}
BEST = {"unclear": ("a", "b"), "clear": ("a",), "alone": (), "none": ()}
NO_VALUE = {
    "unclear": "2 of 4 have no value: c, d.",
    "clear": "2 of 4 have no value: c, d.",
    "alone": "3 of 4 have no value: b, c, d.",
    "none": "2 of 2 have no value: c, d.",
}
BEFORE = {
    "unclear": "By RR, 2 of 2 show no significant difference from the best at 95%: a, b. ",
    "clear": "corrected for picking the best of 2. ",
    "alone": "By RR, ",
    "none": "By RR, ",
}
PAGES = {
    "unclear": "b shows no significant difference from the best at 95% confidence. 2 of 4 have no value: c, d.",
    "clear": "every other configuration with a value at 95% confidence. 2 of 4 have no value: c, d.",
    "alone": "3 of 4 have no value: b, c, d.",
    "none": "No configuration has a value of RR: every query failed.",
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Results]]:
    folder = tmp_path_factory.mktemp("failed")
    output = {}
    with pytest.MonkeyPatch.context() as monkeypatch:
        install(folder, monkeypatch)
        for run_id, configurations in RUNS.items():
            content = {"name": run_id, "output": {"path": "out"}, **experiment(folder, configurations, slices=[])}
            path = folder / "experiment.yaml"
            path.write_text(yaml.safe_dump(content), encoding="utf-8")
            output[run_id] = evaluated(path, run_id)
        yield output
    entry_points_of.cache_clear()


@pytest.mark.parametrize("run_id", RUNS)
def test_it_is_no_worse_and_no_better(runs: dict[str, Results], run_id: str) -> None:
    results = runs[run_id]
    for row in results.configurations:
        mean = results.means[row["config_id"], "all", "RR"]
        expected = None if mean.mean is None or not BEST[run_id] else row["name"] in BEST[run_id]
        assert mean.may_be_best is expected
        assert (mean.joint_low is None) is (expected is None)


@pytest.mark.parametrize("run_id", RUNS)
def test_the_sentence_names_it(runs: dict[str, Results], run_id: str) -> None:
    results = runs[run_id]
    assert BEFORE[run_id] + NO_VALUE[run_id] in show.as_text(results)
    assert f"\n\n{NO_VALUE[run_id]}\n\n" in as_markdown(results)
    sentences = board(Study(results), "RR")["verdict"]
    assert PAGES[run_id] in " ".join(sentences)
    assert all(sentence in Page.of(report.build(results)).text for sentence in sentences)
