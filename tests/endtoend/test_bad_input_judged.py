"""Mistakes in experiments with answers and judges, through the command line: each with its line, and what to do."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.cli import rankbeam
from support.inputs import write
from support.standin_answers import write_experiment

MODEL = {"type": "openai", "base_url": "http://localhost:1/v1", "model": "m-001"}
BM25 = {"name": "rag", "retriever": {"type": "bm25"}, "top_k": 5}


def generate(**settings: Any) -> dict[str, Any]:
    return {"configurations": [BM25 | {"generate": {"service": "m", **settings}}]}


def judge(**settings: Any) -> dict[str, Any]:
    return {"judge": {"service": "m", **settings}}


def without(key: str) -> dict[str, Any]:
    """Value that makes `experiment` leave out a key of the dataset."""
    return {"left_out": key}


CASES: Mapping[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any], str, str]] = {
    # what differs in the model, in its quota, in the experiment; what the named line holds; what is said
    "template that is not there": ({}, {}, generate(template="no.txt"), "template: no.txt", r"no\.txt"),
    "no references": ({}, {}, without("answers") | {"metrics": ["ClaimRecall"]}, "- ClaimRecall", "answers: ATTRIBUTE"),
    "no nuggets": ({}, {}, {"metrics": ["NuggetVital"]}, "- NuggetVital", "nuggets"),
    "no embeddings": ({}, {}, {"metrics": ["AnswerSimilarity"]}, "- AnswerSimilarity", "embeddings: NAME"),
    "no texts": ({}, {}, without("corpus"), "dataset:", r"dataset\.corpus: is missing"),
    "no such metric": ({}, {}, {"metrics": ["Faithfullness"]}, "- Faithfullness", "did you mean 'Faithfulness'"),
    "no judge": ({}, {}, {"judge": None}, "- Faithfulness", "judge:"),
    "no such service": ({}, {}, judge(service="n"), "service: n", "services: has no 'n'"),
    "no price": ({}, {}, {"max_cost": 5}, "max_cost: 5", "price_per_million"),
    "alias": ({"model": "gpt-latest"}, {}, {}, "  m:", "allow_alias: true"),
    "answer above the window": (
        {}, {"tokens_per_minute": 4500}, generate(max_output_tokens=5000), "tokens_per_minute: 4500",
        r"4,500, and an answer \(generate\.max_output_tokens\) takes up to 5,000: such a call could never begin",
    ),
    "verdict above the window": (
        {}, {"tokens_per_minute": 4000}, {}, "tokens_per_minute: 4000",
        r"4,000, and an answer \(judge\.max_output_tokens\) takes up to 4,096.*raise it, or lower max_output_tokens",
    ),
    "verdict above the window of a lane": (
        {}, {"tokens_per_minute": 8000, "lanes": 2}, {}, "tokens_per_minute: 8000",
        "8,000, of which each of 2 lanes has 4,000",
    ),
}  # fmt: skip


def experiment(folder: Path, model: dict[str, Any], quota: dict[str, Any], more: dict[str, Any]) -> str:
    """An experiment of which keys are added, replaced, or with None removed."""
    write(folder / "t.txt", "Answer {query}\nin {langauge} from {contexts}.\n")
    path = Path(write_experiment(folder, MODEL | model, quota, **more))
    content = {key: value for key, value in yaml.safe_load(path.read_text()).items() if value is not None}
    content["dataset"].pop(content.pop("left_out", ""), None)
    return write(path, yaml.safe_dump(content, sort_keys=False))


def lines_with(path: str, text: str) -> set[int]:
    lines = Path(path).read_text().splitlines()
    return {number for number, line in enumerate(lines, start=1) if text in line}


@pytest.mark.parametrize("case", CASES)
def test_a_mistake_is_refused_with_its_line_and_what_to_do(case: str, tmp_path: Path) -> None:
    model, quota, more, named, message = CASES[case]
    path = experiment(tmp_path, model, quota, more)
    outcome = rankbeam("validate", path)
    assert (outcome.status, outcome.stdout) == (2, "")
    problems = re.findall(rf"{re.escape(path)}:(\d+): (.*)", outcome.stderr)
    (problem,) = problems  # and nothing that follows from it
    assert int(problem[0]) in lines_with(path, named)
    assert re.search(message, problem[1]), problem
    assert rankbeam("plan", path).stderr == outcome.stderr


def test_an_unknown_variable_is_refused_with_its_line_in_the_template(tmp_path: Path) -> None:
    outcome = rankbeam("validate", experiment(tmp_path, {}, {}, generate(template="t.txt")))
    assert outcome.status == 2
    assert outcome.stderr.endswith("t.txt:2: unknown variable {langauge}; valid are: contexts, fence, query\n")


@pytest.mark.long
def test_a_prompt_that_is_longer_than_the_quota_of_a_minute_is_found_by_the_plan(tmp_path: Path) -> None:
    path = experiment(tmp_path, {}, {"tokens_per_minute": 4200}, {})
    assert rankbeam("validate", path).status == 0
    outcome = rankbeam("plan", path)
    (line,) = lines_with(path, "tokens_per_minute")
    assert outcome.status == 2
    message = rf"{re.escape(path)}:{line}: quotas\.m\.tokens_per_minute: is 4,200, and a prompt of this dataset"
    assert re.search(
        rf"{message} and its answer take up to [45],\d\d\d: such a call could never begin; raise it", outcome.stderr
    )
    enough = experiment(tmp_path, {}, {"tokens_per_minute": 6000}, {})
    assert rankbeam("plan", enough).status == 0


def test_without_a_price_a_plan_says_tokens_and_no_cost(tmp_path: Path) -> None:
    outcome = rankbeam("plan", experiment(tmp_path, {}, {}, {}))
    assert outcome.status == 0
    assert re.search(r"about [\d,]+ to [\d,]+ input and [\d,]+ to [\d,]+ output tokens", outcome.stdout)
    assert outcome.stdout.count("cost") == outcome.stdout.count("shows the cost") == 1


def test_an_alias_that_is_allowed_is_accepted(tmp_path: Path) -> None:
    assert rankbeam("validate", experiment(tmp_path, {"model": "gpt-latest", "allow_alias": True}, {}, {})).status == 0
