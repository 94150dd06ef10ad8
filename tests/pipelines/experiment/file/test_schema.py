"""The JSON Schema takes what rankbeam takes, and marks the mistakes that an editor should mark."""

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.cli import rankbeam
from support.data import REPOSITORY

from rankbeam.transforms.clients.corpora.base import CORPORA
from rankbeam.transforms.clients.models.base import MODELS
from rankbeam.transforms.clients.retrievers.base import RETRIEVERS

jsonschema = pytest.importorskip("jsonschema", reason="jsonschema, of the extra `test`, is not installed")

EXAMPLES = sorted(
    path
    for path in (REPOSITORY / "examples").rglob("*.yaml")
    if "configurations:" in path.read_text(encoding="utf-8") and "out" not in path.parts
)
BASE: dict[str, Any] = {
    "name": "e",
    "dataset": {"qrels": "qrels", "queries": "queries"},
    "configurations": [{"name": "a", "retriever": {"type": "rag_engine"}, "generate": {"service": "m"}}],
    "services": {"m": {"type": "openai", "model": "x", "base_url": "http://localhost"}},
    "corpora": {"parts": {"type": "chunks"}},
    "output": {"path": "out"},
}

Change = Callable[[Any], object]
GOOD: dict[str, Change] = {
    "as it is": lambda e: e,
    "parameters that the grid gives": lambda e: e.update(grid={"corpus": ["projects/p/locations/l/ragCorpora/1"]}),
    "the name of a corpus": lambda e: e["configurations"][0].update(retriever={"type": "bm25", "corpus": "parts"}),
    "a threshold inside": lambda e: e["configurations"][0]["retriever"].update(vector_distance_threshold=0.5),
    "a query in place of a path": lambda e: e["dataset"].update(qrels={"query": "SELECT 1", "project": "p"}),
    "the attribute of reference answers": lambda e: e["dataset"].update(answers="answer"),
    "a criterion that is its question": lambda e: e.update(judge={"service": "m", "criteria": {"Tone": "Polite?"}}),
    "quotas": lambda e: e.update(quotas={"rag_engine": {"lanes": 1}, "rag_engine_import": {"concurrent_calls": 1}}),
}
WRONG: dict[str, Change] = {
    "an unknown key": lambda e: e.update(metric=["nDCG@10"]),
    "an unknown type of retriever": lambda e: e["configurations"][0].update(retriever={"type": "bm52"}),
    "a parameter of another type": lambda e: e["configurations"][0].update(retriever={"type": "bm25", "url": "x"}),
    "a value that is none of those": lambda e: e["configurations"][0].update(
        retriever={"type": "bm25", "method": "best"}
    ),
    "a retriever without a type": lambda e: e["configurations"][0].update(retriever={"k1": 0.9}),
    "a service without its model": lambda e: e.update(services={"m": {"type": "gemini"}}),
    "a corpus of another kind": lambda e: e["corpora"].update(parts={"type": "bm25"}),
    "a limit of a quota": lambda e: e.update(quotas={"http": {"requests_per_minute": 0}}),
    "no dataset": lambda e: e.pop("dataset"),
}


@pytest.fixture(scope="module")
def schema() -> Any:
    outcome = rankbeam("schema")
    assert (outcome.status, outcome.stderr) == (0, "")
    schema = json.loads(outcome.stdout)
    jsonschema.Draft7Validator.check_schema(schema)
    return schema


@pytest.fixture(scope="module")
def validator(schema: Any) -> Any:
    return jsonschema.Draft7Validator(schema)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_it_takes_every_example(validator: Any, path: Path) -> None:
    assert [error.message for error in validator.iter_errors(yaml.safe_load(path.read_text("utf-8")))] == []


@pytest.mark.parametrize("name", GOOD)
def test_it_takes_what_is_right(validator: Any, name: str) -> None:
    experiment = copy.deepcopy(BASE)
    GOOD[name](experiment)
    assert [error.message for error in validator.iter_errors(experiment)] == []


@pytest.mark.parametrize("name", WRONG)
def test_it_marks_what_is_wrong(validator: Any, name: str) -> None:
    experiment = copy.deepcopy(BASE)
    WRONG[name](experiment)
    assert not validator.is_valid(experiment)


def test_every_type_is_there_and_every_reference_leads_somewhere(schema: Any) -> None:
    text = json.dumps(schema)
    assert set(re.findall(r'"#/\$defs/([^"]+)"', text)) <= set(schema["$defs"])
    for kind in (RETRIEVERS, MODELS, CORPORA):
        for name in kind.types:
            assert schema["$defs"][f"{kind.name}.{name}"]["properties"]["type"] == {"const": name}


def test_keys_have_the_meanings_of_the_documentation(schema: Any) -> None:
    assert schema["properties"]["name"]["description"] == "name of the experiment."
    assert "Attributes:" not in json.dumps(schema)
