"""Sweeps over remote retrievers: what is asked once, what is derived, and what tells configurations apart."""

import json
from pathlib import Path

import pytest
from support.experiments import experiment, load, problems
from support.experiments import folder as folder

from rankbeam.transforms.records.metrics.evaluation import Configuration


def derived(configurations: tuple[Configuration, ...]) -> dict[str, str | None]:
    """By name, the name of the configuration that each one is derived from."""
    names = {configuration.config_id: configuration.name for configuration in configurations}
    return {
        configuration.name: None if configuration.derived_from is None else names[configuration.derived_from]
        for configuration in configurations
    }


def test_a_threshold_is_part_of_a_configuration_only_where_it_is_set(folder: Path) -> None:
    text = experiment({"a": "retriever: {type: near}", "b": "retriever: {type: near}, vector_distance_threshold: 1"})
    plain, near = load(folder, text).evaluation.configurations
    assert (plain.distance, near.distance) == (None, 1.0)
    assert "vector_distance_threshold" not in json.loads(plain.parameters)
    assert json.loads(near.parameters)["vector_distance_threshold"] == 1.0
    assert (near.derived_from, near.source) == (plain.config_id, plain.source)


@pytest.mark.parametrize(
    "content",
    [
        "retriever: {type: near, vector_distance_threshold: 1}",
        "retriever: {type: near, vector_distance_threshold: 1.0}, vector_distance_threshold: 1",
    ],
)
def test_a_threshold_may_stand_inside_the_retriever(folder: Path, content: str) -> None:
    beside = experiment({"a": "retriever: {type: near}, vector_distance_threshold: 1.0"})
    expected = load(folder, beside).evaluation.configurations
    assert load(folder, experiment({"a": content})).evaluation.configurations == expected


def test_a_grid_is_one_call_at_the_largest(folder: Path) -> None:
    grid = "grid: {top_k: [5, 100], vector_distance_threshold: [0.3, 0.5]}\n"
    evaluation = load(folder, experiment({"a": "retriever: {type: near}"}, grid)).evaluation
    widest = "a:top_k=100,vector_distance_threshold=0.5"
    assert derived(evaluation.configurations) == {
        "a:top_k=5,vector_distance_threshold=0.3": widest,
        "a:top_k=5,vector_distance_threshold=0.5": widest,
        "a:top_k=100,vector_distance_threshold=0.3": widest,
        widest: None,
    }
    assert [(source.top_k, source.distance) for source in evaluation.sources] == [(100, 0.5)]


def test_no_threshold_is_the_loosest(folder: Path) -> None:
    grid = "grid: {vector_distance_threshold: [0.3, null]}\n"
    evaluation = load(folder, experiment({"a": "retriever: {type: near}"}, grid)).evaluation
    assert [source.distance for source in evaluation.sources] == [None]
    assert derived(evaluation.configurations)["a:vector_distance_threshold=0.3"] == "a:vector_distance_threshold=None"


def test_where_no_cell_goes_as_far_as_the_call_the_one_with_most_results_is_asked(folder: Path) -> None:
    both = {
        "deep": "retriever: {type: near}, top_k: 100, vector_distance_threshold: 0.5",
        "loose": "retriever: {type: near}, top_k: 5",
    }
    evaluation = load(folder, experiment(both)).evaluation
    assert derived(evaluation.configurations) == {"deep": None, "loose": None}  # a cut of neither holds the other
    assert [(source.top_k, source.distance) for source in evaluation.sources] == [(100, None)]


def test_a_reranker_is_asked_for_every_cell(folder: Path) -> None:
    grid = "grid: {top_k: [5, 100], vector_distance_threshold: [0.3, 0.5]}\n"
    evaluation = load(folder, experiment({"a": "retriever: {type: near, rerank: true}"}, grid)).evaluation
    assert set(derived(evaluation.configurations).values()) == {None}
    depths = [(5, 0.3), (5, 0.5), (100, 0.3), (100, 0.5)]
    assert [(source.top_k, source.distance) for source in evaluation.sources] == depths
    assert [configuration.source for configuration in evaluation.configurations] == [0, 1, 2, 3]


def test_a_grid_of_thresholds_applies_to_those_that_have_distances(folder: Path) -> None:
    both = {"a": "retriever: {type: near}", "b": "retriever: {type: words}"}
    loaded = load(folder, experiment(both, "grid: {vector_distance_threshold: [0.5]}\n"))
    assert [configuration.name for configuration in loaded.evaluation.configurations] == [
        "a:vector_distance_threshold=0.5",
        "b",
    ]


def test_minimum_scores_are_cut_from_one_call_that_is_not_told_of_them(folder: Path) -> None:
    both = {"a": "retriever: {type: words}, top_k: 10", "b": "retriever: {type: near}, top_k: 10"}
    loaded = load(folder, experiment(both, "grid: {min_score: [0.5, 0, null]}\n"))
    widest = "a:min_score=None"
    expected = {"a:min_score=0.5": widest, "a:min_score=0": widest, widest: None, "b": None}
    assert derived(loaded.evaluation.configurations) == expected
    stated = [json.loads(one.parameters).get("min_score") for one in loaded.evaluation.configurations]
    assert stated == [0.5, 0.0, None, None]
    low = load(folder, experiment({"a": both["a"]}, "grid: {min_score: [0.5, 0.2]}\n")).evaluation
    assert derived(low.configurations) == {"a:min_score=0.5": "a:min_score=0.2", "a:min_score=0.2": None}
    assert [(source.top_k, source.distance) for source in low.sources] == [(10, None)]


def test_the_direction_of_scores_cannot_be_swept_beside_a_threshold(folder: Path) -> None:
    http = "retriever: {type: http, url: 'http://h/s', results: r, id: i, score: s}, min_score: 0.5"
    text = experiment({"a": http}, "grid: {lower_is_better: [true, false]}\n")
    problem = "7: grid.lower_is_better: cannot be swept beside vector_distance_threshold or min_score"
    assert problem in problems(folder, text)


def test_what_changes_no_answer_is_no_part_of_a_configuration(folder: Path) -> None:
    both = {"a": "retriever: {type: near}", "b": "retriever: {type: near, endpoint: elsewhere}"}
    assert problems(folder, experiment(both)) == ["5: configurations[1]: 'b' is the same configuration as 'a'"]


def test_what_reads_an_answer_is_part_of_a_configuration_and_asks_nothing_more(folder: Path) -> None:
    both = {"a": "retriever: {type: near}", "b": "retriever: {type: near, id: uri}"}
    loaded = load(folder, experiment(both))
    one, other = loaded.evaluation.configurations
    assert (one.source, other.source) == (0, 1)
    assert one.config_id != other.config_id
    assert [loaded.remote[source].identity("near") for source in (0, 1)] == [loaded.remote[0].identity("near")] * 2


def test_sources_by_how_they_are_had(folder: Path) -> None:
    both = {
        "old": "retriever: {type: run_file, path: old.run}",
        "near": "retriever: {type: near}",
        "fused": "retriever: {type: fusion, parts: [old, near]}",
    }
    loaded = load(folder, experiment(both))
    assert (list(loaded.remote), list(loaded.local)) == ([1], [])
    assert [source.retriever.kind for source in loaded.sources] == ["run_file", "near", "fusion"]


MISTAKES = [
    ("retriever: {type: words}, vector_distance_threshold: 0.5", "", [
        ("4: configurations[0].vector_distance_threshold: the scores of this retriever are not distances; "
        "use min_score instead"),
    ]),
    ("retriever: {type: words, vector_distance_threshold: 0.5}", "", [
        ("4: configurations[0].retriever.vector_distance_threshold: the scores of this retriever are not distances; "
        "use min_score instead"),
    ]),
    ("retriever: {type: near}, min_score: 0.5", "", [
        "4: configurations[0].min_score: its scores are distances; use vector_distance_threshold instead",
    ]),
    ("retriever: {type: words}, min_score: .inf", "", [
        "4: configurations[0].min_score: must be a finite number, found inf",
    ]),
    ("retriever: {type: words}", "grid: {min_score: [0.5, high]}\n", [
        "7: grid.min_score: must be numbers or null, found [0.5, 'high']",
    ]),
    ("answers: {type: replay, path: old.run}, min_score: 1", "", [
        "4: configurations[0].min_score: answers have no ranking to cut; leave it out",
    ]),
    ("answers: {type: http, url: 'http://h/', answer: a, vector_distance_threshold: 0.5}", "", [
        "4: configurations[0].answers.vector_distance_threshold: answers have no ranking to cut; leave it out",
    ]),
    ("retriever: {type: near}, vector_distance_threshold: 0", "", [
        "4: configurations[0].vector_distance_threshold: must be greater than 0, found 0",
    ]),
    ("retriever: {type: near, vector_distance_threshold: near}", "", [
        ("4: configurations[0].retriever.vector_distance_threshold: must be a number greater than 0, "
        "found 'near'"),
    ]),
    ("retriever: {type: near, vector_distance_threshold: 0.5}, vector_distance_threshold: 0.4", "", [
        "4: configurations[0].retriever.vector_distance_threshold: is 0.5 here and 0.4 beside the retriever; keep one",
    ]),
    ("retriever: {type: near, vector_similarity_threshold: 0.5}, vector_distance_threshold: 0.4", "", [
        ("4: configurations[0].retriever.vector_similarity_threshold: a retriever takes vector_distance_threshold or "
        "vector_similarity_threshold, not both; keep one"),
    ]),
    ("retriever: {type: near, vector_similarity_threshold: 0.5}", "grid: {vector_distance_threshold: [0.1, 0.2]}\n", [
        ("7: grid.vector_distance_threshold: a retriever takes vector_distance_threshold or "
        "vector_similarity_threshold, not both; keep one"),
    ]),
    ("retriever: {type: near}", "grid: {vector_distance_threshold: [0.5, -1]}\n", [
        "7: grid.vector_distance_threshold: must be numbers greater than 0, or null, found [0.5, -1]",
    ]),
    ("retriever: {type: words}", "grid: {vector_distance_threshold: [0.5]}\n", [
        ("7: grid.vector_distance_threshold: no configuration has this parameter; valid are: min_score, query, quota, "
         "top_k, version"),
    ]),
    ("retriever: {type: near}, top_k: 201", "", [
        "4: configurations[0].top_k: a near retriever returns at most 200 results, found 201",
    ]),
    ("retriever: {type: near}", "grid: {top_k: [5, 201]}\n", [
        "7: grid.top_k: a near retriever returns at most 200 results, found 201",
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("content", "lines", "expected"), MISTAKES)
def test_a_mistake(folder: Path, content: str, lines: str, expected: list[str]) -> None:
    assert problems(folder, experiment({"a": content}, lines)) == expected
