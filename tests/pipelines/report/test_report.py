"""The HTML report without a browser: its content, its restrictions, and the escaping of texts."""

import base64
import hashlib
import itertools
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.data import REPOSITORY
from support.memory_filesystem import FILES
from support.pages import HOSTILE, ArrayRun, Page, hostile_run, large_run
from support.runs import rankbeam, run_experiment

from rankbeam.pipelines import report
from rankbeam.pipelines.report import data as report_data
from rankbeam.pipelines.report import leaderboard
from rankbeam.pipelines.report.coverage import slice_tables
from rankbeam.pipelines.report.data import page_data
from rankbeam.pipelines.report.parameters import Parameter, heat_maps, sweeps
from rankbeam.pipelines.report.rankings import shown_rankings
from rankbeam.pipelines.report.study import Study
from rankbeam.pipelines.results.run import Results

EXAMPLE = REPOSITORY / "examples" / "helpdesk" / "experiment.yaml"
CONTROLS = re.compile("[\x00-\x08\x7f-\x9f\u202a-\u202e]")
SECTIONS = ("leaderboard", "comparisons", "queries", "slices", "coverage", "method", "downloads")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Results:
    output = tmp_path_factory.mktemp("out") / "helpdesk"
    assert rankbeam("evaluate", EXAMPLE, "--output", output, "--run-id", "demo").exit_code == 0
    return Results(str(output), "demo")


def ids(page: Page) -> set[str | None]:
    return {attributes["id"] for _, attributes in page.elements if "id" in attributes}


def array_run(values: np.ndarray, names: tuple[str, ...], documents: list[str] | None = None) -> ArrayRun:
    queries = [(f"q{place}", f"text {place}") for place in range(values.shape[1])]
    return ArrayRun(queries, names, ["AP"], values, documents, ("kind", ["a"] * len(queries)), "words")


def test_the_demo_has_every_section_and_the_numbers_of_its_tables(demo: Results) -> None:
    page = Page.of(report.build(demo))
    assert set(SECTIONS) <= ids(page)
    for row in demo.configurations:
        for metric in demo.metrics:
            assert f"{demo.means[row['config_id'], 'all', metric].mean:.4f}" in page.text
    assert demo.run["dataset_fingerprint"] in page.text
    assert demo.run["experiment_yaml"].strip() in page.text
    assert demo.run["versions"]["apache-beam"] in page.text
    assert "bm25 differs significantly from every other configuration" in page.text
    assert page.data["total"] == len(page.data["ids"]) == 64
    assert not page.data["sampled"]
    assert page.data["pair"] == [2, 0]  # the second minus bm25, which is best and the baseline
    assert len(page.data["rankings"]["lists"]) == 3


def test_the_values_in_the_page_are_those_of_the_tables_bit_by_bit(demo: Results) -> None:
    data = page_data(Study(demo))
    for configuration, row in enumerate(demo.configurations):
        expected = {query["query_id"]: query["metrics"] for query in demo.query_metrics(row["config_id"])}
        for metric, name in enumerate(demo.metrics):
            column = data["values"][metric][configuration]
            distinct = np.frombuffer(base64.b64decode(column["values"]), "<f8")
            codes = np.frombuffer(base64.b64decode(column["codes"]), f"<u{column['bytes']}")
            assert distinct[codes].tolist() == [expected[query_id][name] for query_id in data["ids"]]


def test_the_same_run_gives_the_same_page(demo: Results) -> None:
    assert report.build(demo) == report.build(Results(demo.output, demo.run_id))


def test_a_single_configuration_is_not_compared(tmp_path: Path) -> None:
    page = Page.of(report.build(array_run(np.random.default_rng(0).random((1, 20, 1)), ("only",)).write(tmp_path)))
    assert "comparisons" not in ids(page)
    assert not {"one", "other", "outcome", "histogram"} & ids(page)
    assert "nothing is compared with only" in page.text


def test_a_failed_configuration_is_last_and_said_to_have_failed(tmp_path: Path) -> None:
    values = np.random.default_rng(0).random((3, 20, 1))
    values[0] = np.nan
    page = Page.of(report.build(array_run(values, ("broken", "good", "better")).write(tmp_path)))
    assert page.data["order"][-1] == 0
    assert "broken" in page.text
    assert "failed" in page.text
    assert "1 failure, by kind" in page.text


def test_a_run_in_which_everything_failed_has_a_page(tmp_path: Path) -> None:
    page = Page.of(report.build(array_run(np.full((2, 5, 1), np.nan), ("a", "b"), ["text"]).write(tmp_path)))
    assert "No configuration has a value of AP" in page.text


def test_without_rankings_the_page_says_how_to_have_them(tmp_path: Path) -> None:
    page = Page.of(report.build(array_run(np.random.default_rng(0).random((2, 20, 1)), ("a", "b")).write(tmp_path)))
    assert page.data["rankings"] is None
    assert "rankings: true" in page.text


def test_groups_without_a_significant_difference_are_said_in_words(tmp_path: Path) -> None:
    lines = [f"q{query} 0 d{query % 7} 1\n" for query in range(40)]
    (tmp_path / "qrels.txt").write_text("".join(lines))
    shifts = {"one": lambda query: query % 2, "two": lambda query: (query + 1) % 2, "bad": lambda _: 3}
    for name, shift in shifts.items():
        rows = [
            f"q{query} Q0 d{(query + rank + shift(query)) % 7} 0 {9 - rank} t\n"
            for query in range(40)
            for rank in range(7)
        ]
        (tmp_path / f"{name}.run").write_text("".join(rows))
    configurations = [
        {"name": name, "retriever": {"type": "run_file", "path": f"{name}.run"}, "top_k": top_k}
        for name, top_k in (("one", 7), ("two", 7), ("bad", 7))
    ]
    results = run_experiment(
        tmp_path,
        {"dataset": {"qrels": "qrels.txt"}, "configurations": configurations, "metrics": ["RR"]},
    )
    verdicts = [results.means[row["config_id"], "all", "RR"].may_be_best for row in results.configurations]
    assert verdicts == [True, True, False]
    page = Page.of(report.build(results))
    assert "two shows no significant difference from the best at 95% confidence." in page.text
    assert "The other 1 configuration differs significantly from it." in page.text


def test_sweeps_join_configurations_that_differ_in_one_parameter(tmp_path: Path) -> None:
    grid = {
        "dataset": {name: str(EXAMPLE.parent / path) for name, path in DATASET.items()},
        "configurations": [{"name": "bm25", "retriever": {"type": "bm25"}}],
        "grid": {"top_k": [1, 5, 10], "b": [0.0, 0.75]},
        "metrics": ["nDCG@10"],
    }
    study = Study(run_experiment(tmp_path, grid))
    lines = {
        parameter: {label: [(value, study.names[place]) for value, place in points] for label, points in lines}
        for parameter, lines in sweeps(study).items()
    }
    assert lines == {
        "top_k": {f"bm25, b {b:g}": [(float(k), f"bm25:b={b},top_k={k}") for k in (1, 5, 10)] for b in (0.0, 0.75)},
        "retriever.b": {f"bm25, top_k {k}": [(b, f"bm25:b={b},top_k={k}") for b in (0.0, 0.75)] for k in (1, 5, 10)},
    }
    page = Page.of(report.build(study.results))
    assert "nDCG@10 along top_k" in page.text
    assert "sweeps" in ids(page)


DATASET = {"queries": "queries.jsonl", "qrels": "qrels/test.tsv", "corpus": "corpus.jsonl"}


@pytest.mark.parametrize("names", [("v1", "v2"), ("gpt-4", "gpt-5"), ("rag-256", "rag-512", "rag-1024")])
def test_a_number_in_a_name_is_no_sweep(tmp_path: Path, names: tuple[str, ...]) -> None:
    run = array_run(np.random.default_rng(0).random((len(names), 20, 1)), names).write(tmp_path)
    for place, row in enumerate(run.configurations):
        row["parameters"] = f'{{"retriever": {{"corpus": "c{place}"}}}}'
    assert sweeps(Study(run)) == {}
    assert "sweeps" not in ids(Page.of(report.build(run)))


def test_configurations_that_differ_in_a_number_of_the_experiment_are_a_sweep(tmp_path: Path) -> None:
    names = ("small", "large", "other")
    run = array_run(np.random.default_rng(0).random((3, 20, 1)), names).write(tmp_path)
    for row, chunk in zip(run.configurations, (256, 512, None), strict=True):
        row["parameters"] = f'{{"retriever": {{"chunk": {json.dumps(chunk)}}}}}'
    ((parameter, lines),) = sweeps(Study(run)).items()
    assert parameter == "retriever.chunk"
    assert [value for value, _ in lines[0][1]] == [256.0, 512.0]


@pytest.mark.parametrize("best", [0, 1, 2])
def test_queries_are_compared_in_the_direction_of_the_comparisons(tmp_path: Path, best: int) -> None:
    values = np.random.default_rng(0).random((3, 20, 1)) / 2
    values[best] += 0.5
    study = Study(array_run(values, ("one", "two", "three")).write(tmp_path))
    assert study.baseline == 0
    one, other = study.pair
    assert other == study.baseline  # "configuration minus baseline", as the comparisons are
    assert one == (best or study.order("AP")[1])
    comparison = study.overall[one, other, "AP"]
    assert comparison.difference == pytest.approx((values[one] - values[other]).mean())


def without_breaks(page: Page) -> list[tuple[str, ...]]:
    """The elements and their attributes, but for the places where a long name may break."""
    return [
        (name, *attributes) for name, attributes in page.elements if name != "wbr" and attributes.get("class") != "long"
    ]


def test_no_text_of_a_user_becomes_part_of_the_page(tmp_path: Path) -> None:
    hostile = report.build(hostile_run(tmp_path / "hostile"))
    plain = report.build(hostile_run(tmp_path / "plain", [f"plain{place}" for place in range(len(HOSTILE))]))
    attacked, harmless = Page.of(hostile), Page.of(plain)
    assert without_breaks(attacked) == without_breaks(harmless)
    for words in HOSTILE:
        assert CONTROLS.sub("\ufffd", words) in attacked.text
        assert any(words in text for text in attacked.data["texts"])
        assert any(words in text for _, text, _ in attacked.data["rankings"]["documents"])
    assert hostile.count("</script") == plain.count("</script") == 2
    assert not {"\u2028", "\u2029"} & set(hostile.partition('id="data"')[2])


def test_the_page_may_load_nothing_and_run_only_its_own_script(demo: Results) -> None:
    page = report.build(demo)
    policy = Page.of(page).elements
    (allowed,) = [meta["content"] for name, meta in policy if "http-equiv" in meta]
    assert allowed is not None
    rules = dict(rule.split(" ", 1) for rule in allowed.split("; "))
    for rule, element in (("style-src", "style"), ("script-src", "script")):
        text = page.partition(f"<{element}>")[2].partition(f"</{element}>")[0]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules.pop(rule) == f"'sha256-{digest}'"
    assert rules == {"default-src": "'none'", "img-src": "data:", "base-uri": "'none'", "form-action": "'none'"}
    for name, attributes in policy:
        assert not [meta for meta in attributes if meta.startswith("on") or meta in ("style", "src", "srcdoc")], name
        assert (attributes.get("href") or "#").startswith(("#", "data:,"))


def test_charts_have_names_and_tables_have_captions_and_scopes(demo: Results) -> None:
    page = report.build(demo)
    pictures = re.findall(r'<svg [^>]*role="img"[^>]*>(?:<title>)', page)
    assert pictures
    assert len(pictures) == len(re.findall(r'<svg [^>]*role="img"', page))
    assert page.count("<table") == page.count("<caption>")
    heads = [attributes for name, attributes in Page.of(page).elements if name == "th"]
    assert all(attributes.get("scope") in ("row", "col") for attributes in heads)


def test_a_large_run_keeps_the_queries_that_differ_most(tmp_path: Path) -> None:
    study = Study(large_run(tmp_path, 3_000, 3, 2))
    data = page_data(study, most_queries=400)
    assert data["sampled"]
    assert data["total"] == 3_000
    assert 200 <= len(data["ids"]) <= 400
    chosen = set(data["ids"])
    for other in (1, 2):
        differences = study.values.differences(0, other, 0)
        order = np.argsort(differences)
        extremes = [study.values.ids[int(place)].as_py() for place in (*order[:50], *order[-50:])]
        assert chosen.issuperset(extremes)
        stored = next(h for h in data["histograms"] if h["metric"] == 0 and h["configuration"] == other)
        assert stored["wins"] + stored["ties"] + stored["losses"] == 3_000
        assert sum(stored["counts"]) == stored["wins"] + stored["losses"]


def test_tables_with_pictures_show_the_best_of_many_configurations_and_the_baseline(tmp_path: Path) -> None:
    values = np.linspace(0.1, 0.9, 130)[:, np.newaxis, np.newaxis] + np.random.default_rng(0).random((130, 6, 2)) / 99
    names = [f"system {place:03}" for place in range(130)]
    queries = [(f"q{place}", "text") for place in range(6)]
    run = ArrayRun(queries, names, ["AP", "RR"], values, None, ("kind", ["a"] * 6), "many")
    results = run.write(tmp_path)
    page = Page.of(report.build(results))
    assert page.text.count("29 configurations are left out, see the data") == 4  # a leaderboard and comparisons each
    board = leaderboard.board(Study(results), "AP")
    assert [(place["rank"], place["name"]) for place in board["places"][-2:]] == [
        (100, "system 030"),
        (130, "system 000"),
    ]
    assert len(page.data["leaderboard"]["columns"]["mean"]) == 520  # over all queries, and over a slice


def test_pages_have_fewer_queries_of_more_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = Study(large_run(tmp_path, 300, 3, 2))
    monkeypatch.setattr(report_data, "_MOST_VALUES", 3 * 2 * 100)
    assert len(page_data(study)["ids"]) <= 100


def test_many_configurations_are_bounded_and_the_page_says_so(tmp_path: Path) -> None:
    values = np.random.default_rng(0).random((60, 10, 3))
    names = [f"system {place:02}" for place in range(60)]
    queries = [(f"q{place}", "text") for place in range(10)]
    run = ArrayRun(queries, names, ["AP", "RR", "P@5"], values, None, ("kind", ["a"] * 10), "many", all_pairs=True)
    results = run.write(tmp_path)
    study = Study(results)
    assert study.baseline == 0
    assert {configuration for configuration, other, metric in study.overall if (other, metric) == (0, "RR")} == set(
        range(1, 60)
    )
    best = study.order("P@5")[:16]
    assert all((max(pair), min(pair), "P@5") in study.overall for pair in itertools.combinations(best, 2))
    assert len(study.comparisons) < results.table("comparisons").num_rows
    page = Page.of(report.build(results))
    assert "too large to stand in this page as a whole" in page.text
    assert f"{60 - len({0, *best})} configurations are left out" in page.text


def test_rankings_are_those_of_the_largest_differences(tmp_path: Path) -> None:
    values = Study(large_run(tmp_path, 3_000, 3, 2)).values
    pairs = [(2, 0), (1, 0)]
    rankings = shown_rankings(values, pairs)
    assert len(rankings) <= 2_000
    for one, other in pairs:
        order = np.argsort(values.differences(0, one, other)).tolist()
        assert {(place, query) for query in (*order[:50], *order[-20:]) for place in (one, other)} <= rankings


def test_a_large_run_of_one_configuration_keeps_its_worst_queries(tmp_path: Path) -> None:
    study = Study(large_run(tmp_path, 3_000, 1, 1))
    order = np.argsort(study.values.values[0, 0])
    assert set(page_data(study, most_queries=400)["ids"]) == {
        study.values.ids[int(place)].as_py() for place in order[:400]
    }
    assert shown_rankings(study.values, []) == {(0, query) for query in order[:2_000].tolist()}


@pytest.mark.campaign
def test_the_command_writes_the_run_that_started_last(tmp_path: Path) -> None:
    for run_id in ("z-first", "a-second"):
        assert rankbeam("evaluate", EXAMPLE, "--output", tmp_path, "--run-id", run_id).exit_code == 0
    done = rankbeam("report", tmp_path)
    assert (done.exit_code, done.stdout) == (0, f"{tmp_path / 'report.html'}\n")
    assert "run a-second" in Page.of((tmp_path / "report.html").read_text(encoding="utf-8")).text
    assert rankbeam("report", tmp_path, "--run-id", "z-first", "--output", tmp_path / "r.html").exit_code == 0
    assert "run z-first" in Page.of((tmp_path / "r.html").read_text(encoding="utf-8")).text
    assert not list(tmp_path.glob("*.part"))
    refused = rankbeam("report", tmp_path, "--run-id", "none")
    assert refused.exit_code == 2
    assert "a-second, z-first" in refused.stderr
    assert rankbeam("report", tmp_path / "nowhere").exit_code == 2


def test_a_report_that_cannot_be_written_is_refused(demo: Results, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    done = rankbeam("report", demo.output, "--output", tmp_path / "taken")
    assert done.exit_code == 2
    assert str(tmp_path / "taken") in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_a_report_goes_to_any_filesystem(demo: Results) -> None:
    assert report.write(demo, "mem://reports/report.html") == "mem://reports/report.html"
    assert FILES.pop("mem://reports/report.html").decode() == report.build(demo)


def test_the_page_holds_the_tables_that_its_csv_files_are_made_of(demo: Results) -> None:
    data = page_data(Study(demo))
    assert set(data["leaderboard"]["columns"]) >= {"slice", "metric", "mean", "ci_low", "ci_high", "queries"}
    assert set(data["comparisons"]["columns"]) >= {"slice", "metric", "difference", "wins", "ties", "losses"}
    assert len(data["leaderboard"]["columns"]["mean"]) == demo.table("configuration_metrics").num_rows


def test_fewer_steps_are_better_in_slices_and_heat_maps(tmp_path: Path) -> None:
    values = np.array([[[3.0]], [[2.0]], [[2.0]], [[2.0]], [[1.0]]])
    run = replace(array_run(values, tuple("abcde")), metrics=["Steps"]).write(tmp_path)
    study = Study(run)
    (table,) = slice_tables(study, "Steps")
    assert {name: cell["is_best"] for name, (cell,) in table["rows"]} == dict.fromkeys("abcd", False) | {"e": True}
    known = [Parameter("k", list("xxyyx"), ["x", "y"]), Parameter("n", list("pqpqp"), ["p", "q"])]
    (heat_map,) = heat_maps(study, "Steps", known, is_swept=False)
    assert heat_map["rows"][0][1][0][::2] == ("1.0000", "e")
