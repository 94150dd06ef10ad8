"""`fusion` in experiment files: the rankings of its parts, and every mistake with its line."""

import json
from pathlib import Path

import pytest
from support.experiments import experiment, load, problems
from support.experiments import folder as folder

from rankbeam.transforms.records.stages import FusionMethod, FusionPart, FusionPlan

OLD, NEAR = "retriever: {type: run_file, path: old.run}", "retriever: {type: near}, top_k: 50"


def fused(parts: str, more: str = "") -> str:
    return f"retriever: {{type: fusion, parts: [{parts}]{more}}}"


def test_a_fusion_is_made_of_sources_that_are_there(folder: Path) -> None:
    weights = ", method: weighted, weights: [2, 1]"
    loaded = load(folder, experiment({"fused": fused("old, near", weights), "old": OLD, "near": NEAR}))
    source = loaded.evaluation.sources[0]
    assert source.fusion == FusionPlan(
        (FusionPart(1, None, None, 2.0, lower_is_better=False), FusionPart(2, 50, None, 1.0, lower_is_better=True)),
        FusionMethod.WEIGHTED,
    )
    assert (source.path, source.pool, source.top_k) == (None, None, None)
    assert list(loaded.calls.pools) == ["near"]


def test_a_part_may_be_one_cell_of_a_grid(folder: Path) -> None:
    text = experiment({"old": OLD, "near": NEAR, "fused": fused("'old:top_k=5', 'near:top_k=10'")})
    evaluation = load(folder, text + "grid: {top_k: [5, 10]}\n").evaluation
    plan = evaluation.sources[2].fusion
    assert plan is not None
    assert [(part.source, part.top_k) for part in plan.parts] == [(0, 5), (1, 10)]
    assert evaluation.sources[2].top_k == 10
    small, large = evaluation.configurations[4:]
    assert (small.name, small.derived_from) == ("fused:top_k=5", large.config_id)


def test_a_name_stands_for_the_widest_of_its_cells(folder: Path) -> None:
    text = experiment({"old": OLD, "near": NEAR, "fused": fused("old, near")})
    evaluation = load(folder, text + "grid: {top_k: [5, 20, 10], vector_distance_threshold: [0.5, 0.7]}\n").evaluation
    plan = evaluation.sources[2].fusion
    assert plan is not None
    assert [(part.source, part.top_k, part.distance) for part in plan.parts] == [(0, 20, None), (1, 20, 0.7)]


def test_a_name_of_several_rankings_is_refused(folder: Path) -> None:
    text = experiment({"old": OLD, "near": NEAR, "fused": fused("old, near")}, "grid: {model: [m, n]}\n")
    assert problems(folder, text) == [
        (
            "6: configurations[2].retriever.parts[1]: 'near' has several rankings; "
            "name one of: near:model=m, near:model=n"
        )
    ]


def test_a_sweep_over_the_rule_is_one_source_a_rule(folder: Path) -> None:
    text = experiment({"old": OLD, "near": NEAR, "fused": fused("old, near")})
    evaluation = load(folder, text + "grid: {c: [10, 60], top_k: [5, 10]}\n").evaluation
    assert [(configuration.name, configuration.source) for configuration in evaluation.configurations[4:]] == [
        ("fused:c=10,top_k=5", 2), ("fused:c=10,top_k=10", 2), ("fused:c=60,top_k=5", 3), ("fused:c=60,top_k=10", 3),
    ]  # fmt: skip
    assert [source.fusion.c for source in evaluation.sources if source.fusion is not None] == [10.0, 60.0]


def config_id(folder: Path, text: str) -> str:
    return load(folder, text).evaluation.configurations[-1].config_id


def test_the_config_id_depends_on_the_parts_and_not_on_their_names(folder: Path) -> None:
    parts = {"old": OLD, "near": NEAR}
    expected = config_id(folder, experiment({**parts, "fused": fused("old, near")}))
    renamed = experiment({"a": OLD, "b": NEAR, "fused": fused("a, b")})
    assert config_id(folder, renamed) == expected
    changed = [
        experiment({"old": OLD, "near": "retriever: {type: near, model: n}, top_k: 50", "fused": fused("old, near")}),
        experiment({"old": OLD, "near": "retriever: {type: near}, top_k: 49", "fused": fused("old, near")}),
        experiment({**parts, "fused": fused("old, near", ", c: 61")}),
        experiment({**parts, "fused": fused("old, near", ", weights: [1, 2]")}),
    ]
    assert len({expected, *(config_id(folder, text) for text in changed)}) == 5


def test_parts_are_the_same_whatever_the_dialects(folder: Path) -> None:
    text = experiment({"old": OLD, "near": NEAR, "fused": fused("old, near")})
    plain, spoken = (load(folder, text + line).evaluation for line in ("", "dialects: [trec_eval, pytrec_eval]\n"))
    assert spoken.sources == plain.sources
    assert [configuration.name for configuration in spoken.configurations[4:]] == [
        "fused:dialect=trec_eval",
        "fused:dialect=pytrec_eval",
    ]
    first, second = (json.loads(configuration.parameters)["retriever"] for configuration in spoken.configurations[4:])
    assert first == second == json.loads(plain.configurations[2].parameters)["retriever"]


def test_every_source_has_an_owner(folder: Path) -> None:
    evaluation = load(folder, experiment({"fused": fused("old, near"), "old": OLD, "near": NEAR})).evaluation
    assert [evaluation.owner(source) for source in range(3)] == [0, 1, 2]


def test_a_source_that_is_only_a_part_is_owned_by_what_is_fused_of_it(folder: Path) -> None:
    evaluation = load(folder, experiment({"fused": fused("old, near"), "old": OLD, "near": NEAR})).evaluation
    alone = type(evaluation)(evaluation.configurations[:1], evaluation.metrics, evaluation.sources)
    assert [alone.primary(source) for source in range(3)] == [0, None, None]
    assert [alone.owner(source) for source in range(3)] == [0, 0, 0]


AT = "6: configurations[2].retriever.parts"
MISTAKES = [
    ("old, naer", f"{AT}[1]: no configuration is named 'naer'; did you mean 'near'?"),
    ("old, 'near:top_k=5'", f"{AT}[1]: no configuration is named 'near:top_k=5'; valid are: near, old"),
    ("old, fused", f"{AT}[1]: a fusion cannot be a part of itself"),
    ("old, other", f"{AT}[1]: a fusion cannot be a part of another"),
]


@pytest.mark.parametrize(("parts", "expected"), MISTAKES)
def test_a_mistake(folder: Path, parts: str, expected: str) -> None:
    other = fused("near, old")
    assert problems(folder, experiment({"old": OLD, "near": NEAR, "fused": fused(parts), "other": other})) == [expected]


def test_one_ranking_under_two_names_is_refused(folder: Path) -> None:
    text = experiment({"old": OLD, "near": NEAR, "fused": fused("old, 'old:top_k=5'")}, "grid: {top_k: [5]}\n")
    (problem,) = problems(folder, text)
    assert problem.startswith(f"{AT}[1]: 'old:top_k=5' is the same ranking as 'old'")


def test_a_broken_part_is_reported_once(folder: Path) -> None:
    text = experiment({"old": OLD, "near": "retriever: {type: near, modl: m}", "fused": fused("old, near")})
    expected = ["5: configurations[1].retriever.modl: unknown key; did you mean 'model'?"]
    assert problems(folder, text + "baseline: fused\n") == expected
