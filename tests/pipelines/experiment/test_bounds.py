"""Experiments whose values are out of all bounds: refused by `rankbeam validate`, and never a traceback."""

from pathlib import Path

import pytest
from support.cli import rankbeam
from support.inputs import json_texts, trec_qrels, trec_run, write

TEXT = """\
name: small
dataset: {qrels: qrels, queries: queries.jsonl, corpus: corpus.jsonl}
configurations:
  - name: bm25
    retriever: {type: bm25, k1: 1.2}
    top_k: 10
metrics: [RR]
output: {path: out}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "qrels", trec_qrels([("q1", "d1", 1.0)]))
    write(tmp_path / "a.run", trec_run([("q1", "d1", 1.0)]))
    write(tmp_path / "queries.jsonl", json_texts([("q1", "alpha")]))
    write(tmp_path / "corpus.jsonl", json_texts([("d1", "alpha")]))
    return tmp_path


def problems(folder: Path, text: str) -> list[str]:
    path = write(folder / "e.yaml", text)
    outcome = rankbeam("validate", path)
    assert (outcome.status, outcome.stdout) == (2, "")
    return [line.strip().removeprefix(f"{path}:") for line in outcome.stderr.removeprefix("rankbeam: ").splitlines()]


HUGE = "100000000000000000000"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("top_k: 10", "top_k: 1:30", "6: configurations[0].top_k: must be a whole number, found '1:30'"),
        ("top_k: 10", "top_k: 010", "6: configurations[0].top_k: must be a whole number, found '010'"),
        ("top_k: 10", "top_k: 1.0e+20", "6: configurations[0].top_k: must be a whole number, found 1e+20"),
        (
            "top_k: 10",
            f"top_k: {HUGE}",
            f"6: configurations[0].top_k: must be at most 2147483647, found {HUGE}",
        ),
        (
            "output:",
            f"grid: {{top_k: [{HUGE}]}}\noutput:",
            f"8: grid.top_k: must be whole numbers from 1 to 2,147,483,647, found [{HUGE}]",
        ),
        (
            "output:",
            f"grid: {{k1: {list(range(200))}, top_k: {list(range(1, 201))}}}\noutput:",
            "8: grid: makes 40,000 configurations; at most 10,000 are possible",
        ),
    ],
)  # fmt: skip
def test_a_number_out_of_bounds(folder: Path, old: str, new: str, expected: str) -> None:
    assert problems(folder, TEXT.replace(old, new)) == [expected]


def test_a_depth_out_of_bounds_on_the_command_line(folder: Path) -> None:
    outcome = rankbeam("score", str(folder / "qrels"), str(folder / "a.run"), "-M", HUGE)
    assert (outcome.status, outcome.stdout) == (2, "")
    assert "at most 2147483647" in outcome.stderr


def test_a_parameter_is_checked_though_the_grid_replaces_it(folder: Path) -> None:
    text = TEXT.replace("k1: 1.2", "k1: banana").replace("output:", "grid: {k1: [0.9, 1.2]}\noutput:")
    (problem,) = problems(folder, text)
    assert problem.startswith("5: configurations[0].retriever.k1: must be a number")


def test_a_depth_is_checked_though_the_grid_replaces_it(folder: Path) -> None:
    place = "projects/p/locations/global/collections/default_collection/engines/e/servingConfigs/c"
    retriever = f"{{type: vertex_search, serving_config: {place}}}"
    text = TEXT.replace("{type: bm25, k1: 1.2}", retriever).replace("top_k: 10", "top_k: 5000")
    assert "6: configurations[0].top_k: a vertex_search retriever returns at most 100 results, found 5000" in problems(
        folder, text.replace("output:", "grid: {top_k: [10, 20]}\noutput:")
    )


def test_a_configuration_without_a_name_beside_a_fusion(folder: Path) -> None:
    others = "  - {name: other, retriever: {type: bm25, k1: 0.9}}\n  - {name: '', retriever: {type: bm25, k1: high}}\n"
    fusion = "  - {name: both, retriever: {type: fusion, parts: [bm25, other]}}\n"
    first, second = problems(folder, TEXT.replace("metrics:", f"{others}{fusion}metrics:"))
    assert first == "8: configurations[2].name: must not be empty, found ''"
    assert second.startswith("8: configurations[2].retriever.k1: must be a number")


def test_a_part_of_a_fusion_without_a_name(folder: Path) -> None:
    fusion = "  - {name: both, retriever: {type: fusion, parts: [bm25, '']}}\nmetrics:"
    text = TEXT.replace("metrics:", "  - {name: '', retriever: {type: bm25, k1: 0.9}}\n" + fusion)
    assert problems(folder, text)[0] == "7: configurations[1].name: must not be empty, found ''"


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("k1: 1.2", "k1: true", "5: configurations[0].retriever.k1: must be a number, found True"),
        ("output:", "grid: {b: [true, 0.4]}\noutput:", "8: grid.b: must be a number, found True"),
        (
            "output:",
            "services:\n  s: {type: gemini, model: m, project: p, location: l, dimensions: true}\noutput:",
            "9: services.s.dimensions: must be a whole number",
        ),
        (
            "output:",
            "corpora:\n  c: {type: chunks, chunk_size: true}\noutput:",
            "9: corpora.c.chunk_size: must be a whole number, found True",
        ),
    ],
)
def test_a_boolean_is_no_number(folder: Path, old: str, new: str, place: str) -> None:
    assert any(line.startswith(place) for line in problems(folder, TEXT.replace(old, new)))


def test_a_folder_is_no_experiment(folder: Path) -> None:
    outcome = rankbeam("validate", str(folder))
    assert (outcome.status, outcome.stderr) == (2, f"rankbeam: {folder}: is a folder; an experiment is a YAML file\n")
