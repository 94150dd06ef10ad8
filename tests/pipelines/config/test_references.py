"""References to variables: each string of a file may hold one, whatever is not set is named, and secrets stay away."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from rankbeam.pipelines.config.references import resolve_references
from rankbeam.pipelines.config.yaml_lines import load
from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.experiment.file.schema import experiment_schema
from rankbeam.pipelines.experiment.load import load_experiment, parse_experiment
from rankbeam.pipelines.gates.gates import KnownNames, located_gates
from rankbeam.pipelines.goldens.load import load_goldens
from rankbeam.transforms.clients.models.base import MODELS
from rankbeam.transforms.clients.retrievers.base import RETRIEVERS
from rankbeam.transforms.clients.retrievers.rerankers import RERANKERS
from rankbeam.transforms.clients.secrets import is_secret
from rankbeam.transforms.records.errors import InputErrors

NAME = "RB_VALUE"
REFERENCE = f"${{env:{NAME}}}"
OF_MANAGER = "${secret:projects/p/secrets/s/versions/latest}"
EXAMPLES = Path(__file__).parents[3] / "examples"


def strings(schema: Any, node: Any, value: Any, depth: int = 0) -> Iterator[Any]:
    """Documents of a schema that hold the value in one place each."""
    if "$ref" in node:
        if depth < 12:
            yield from strings(schema, schema["$defs"][node["$ref"].rpartition("$defs/")[2]], value, depth + 1)
        return
    for option in (*node.get("anyOf", ()), *node.get("oneOf", ()), *node.get("allOf", ())):
        yield from strings(schema, option, value, depth + 1)
    if node.get("type") == "string" and "const" not in node:
        yield value
    kind = node.get("properties", {}).get("type", {}).get("const")
    fixed = {} if kind is None else {"type": kind}
    for name, inner in node.get("properties", {}).items():
        yield from ({**fixed, name: item} for item in strings(schema, inner, value, depth + 1))
    if isinstance(node.get("additionalProperties"), dict):
        yield from ({"any": item} for item in strings(schema, node["additionalProperties"], value, depth + 1))
    if isinstance(node.get("items"), dict):
        yield from ([item] for item in strings(schema, node["items"], value, depth + 1))


def own(document: Any) -> bool:
    """Return whether the component of a document's string resolves references itself."""
    service = document.get("services", {}).get("any")
    if isinstance(service, dict) and "type" in service:
        return bool(MODELS.load(service["type"]).referring & service.keys())
    reranker = (document.get("configurations") or [{}])[0].get("rerank")
    if isinstance(reranker, dict) and "type" in reranker:
        return bool(RERANKERS.load(reranker["type"]).referring & reranker.keys())
    retriever = (document.get("configurations") or [{}])[0].get("retriever")
    if isinstance(retriever, dict) and "type" in retriever:
        return bool(RETRIEVERS.load(retriever["type"]).referring & retriever.keys())
    return False


def test_every_string_of_the_schema_may_hold_a_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "value")
    schema = experiment_schema()
    documents = list(strings(schema, schema, REFERENCE))
    assert len(documents) > 100
    for document in documents:
        located = resolve_references(load(yaml.safe_dump(document), "e.yaml"))
        assert located.problems == []
        assert (REFERENCE in json.dumps(located.value)) == own(document), document


@pytest.mark.long
@pytest.mark.parametrize("bad", [OF_MANAGER, "${env:MY_API_KEY}", "${env:RB_UNSET}", "${RB_VALUE}"])
def test_no_string_of_the_schema_stays_literal(bad: str) -> None:
    schema = experiment_schema()
    for document in strings(schema, schema, bad):
        problems = resolve_references(load(yaml.safe_dump(document), "e.yaml")).problems
        answers = (document.get("configurations") or [{}])[0].get("answers") or {}
        has_secret = is_secret(bad) and not {"headers", "params", "body"}.isdisjoint(answers)
        assert bool(problems) != (own(document) or has_secret), document
        assert all(problem.line is not None for problem in problems)


def referring(value: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A document with a reference, to a variable of its own, in the place of every string."""
    if isinstance(value, dict):
        keys = ("url", "headers", "params", "body", "api_key")
        return {key: item if key in keys else referring(item, monkeypatch) for key, item in value.items()}
    if isinstance(value, list):
        return [referring(item, monkeypatch) for item in value]
    if not isinstance(value, str):
        return value
    name = f"RB_{value.encode().hex()}"
    monkeypatch.setenv(name, value)
    return f"${{env:{name}}}"


def same(a: Experiment, b: Experiment) -> bool:
    ids = [configuration.config_id for configuration in a.evaluation.configurations] == [
        configuration.config_id for configuration in b.evaluation.configurations
    ]
    keys = [configuration.retriever.decisive() for configuration in a.sources] == [
        configuration.retriever.decisive() for configuration in b.sources
    ]
    return ids and keys and (a.calls.services, a.calls.pools, a.output) == (b.calls.services, b.calls.pools, b.output)


@pytest.mark.parametrize(
    "name",
    ["gemini.yaml", "http.yaml", "openai.yaml", "rag_engine.yaml", "rag_engine_corpora.yaml", "vertex_search.yaml"],
)
def test_an_experiment_of_references_is_the_experiment(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = EXAMPLES / name
    plain = path.read_text()
    text = yaml.safe_dump(referring(yaml.safe_load(plain), monkeypatch))
    experiment = parse_experiment(text, str(path))
    assert same(experiment, parse_experiment(plain, str(path)))
    assert experiment.text == text  # what runs stores


def test_all_unset_variables_are_in_one_message(tmp_path: Path) -> None:
    text = """name: one
dataset: {qrels: "${env:RB_QRELS}"}
configurations:
  - {name: a, retriever: {type: run_file, path: "${env:RB_RUN}"}}
output:
  path: ${env:RB_OUT}
"""
    with pytest.raises(InputErrors) as raised:
        parse_experiment(text, str(tmp_path / "e.yaml"))
    for line, name, place in (2, "RB_QRELS", "dataset.qrels"), (4, "RB_RUN", "retriever.path"), (6, "RB_OUT", "output"):
        (error,) = [problem for problem in raised.value.errors if name in problem.problem]
        assert error.line == line
        assert place in error.problem
    assert "not set here" in str(raised.value)


def test_a_name_by_a_reference_names_the_folder_of_results(monkeypatch: pytest.MonkeyPatch) -> None:
    path = EXAMPLES / "helpdesk" / "experiment.yaml"
    value = yaml.safe_load(path.read_text()) | {"name": "${env:RB_NAME}"}
    del value["output"]
    monkeypatch.setenv("RB_NAME", "mine")
    assert parse_experiment(yaml.safe_dump(value), str(path)).output == str(path.parent / "out" / "mine")


def test_the_folder_of_the_command_line_replaces_an_unset_one(tmp_path: Path) -> None:
    path = EXAMPLES / "helpdesk" / "experiment.yaml"
    value = yaml.safe_load(path.read_text()) | {"output": {"path": "${env:RB_OUT}"}}
    assert parse_experiment(yaml.safe_dump(value), str(path), str(tmp_path)).output == str(tmp_path)


def test_secrets_stay_references_where_they_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEARCH_API_KEY", "s3cr3t")
    assert "s3cr3t" not in repr(load_experiment(str(EXAMPLES / "http.yaml")))


def test_a_secret_in_another_field_says_where_secrets_belong() -> None:
    (problem,) = resolve_references(load("output: {path: '${env:MY_TOKEN}'}", "e.yaml")).problems
    assert "${env:MY_TOKEN} names a secret, and this field takes none" in problem.problem
    assert "api_key" in problem.problem


def test_an_application_takes_secrets_in_its_request_and_other_references_anywhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("APP_HOST", "APP_CODE", "APP_INDEX"):
        monkeypatch.setenv(name, f"http://{name.lower()}")
    answers = {
        "type": "http",
        "url": "${env:APP_HOST}/ask",
        "headers": {"Authorization": "Bearer ${env:APP_KEY}", "X-Code": "${env:APP_CODE}"},
        "params": {"code": "${env:APP_CODE}", "index": "${env:APP_INDEX}"},
        "answer": "answer",
    }
    grid = {"body": {"one": {"q": "{query}", "token": "${env:APP_CODE}", "index": "${env:APP_INDEX}"}}}
    document = {
        "name": "a",
        "dataset": {"queries": str(EXAMPLES / "helpdesk" / "queries.jsonl"), "answers": "answer"},
        "services": {"overlap": {"type": "lexical"}},
        "configurations": [{"name": "a", "answers": answers}],
        "grid": grid,
        "judge": {"service": "overlap"},
        "metrics": ["ClaimRecall"],
        "output": {"path": "out"},
    }
    (application,) = parse_experiment(yaml.safe_dump(document), "e.yaml").applications.values()
    assert application.url == "http://app_host/ask"
    assert application.headers == answers["headers"]  # a variable that is a secret in one place is one everywhere
    assert application.params == {"code": "${env:APP_CODE}", "index": "http://app_index"}
    assert application.body == {"q": "{query}", "token": "${env:APP_CODE}", "index": "http://app_index"}
    assert set(application.secret_places()) == {"${env:APP_KEY}", "${env:APP_CODE}"}

    document["grid"] = {
        "answers.headers": {"one": {"Authorization": "Bearer ${env:APP_KEY}"}},
        "answers.url": ["http://h/ask?key=${env:APP_CODE}"],
    }
    document["configurations"] = [{"name": "a", "answers": {"type": "http", "answer": "answer"}}]
    (application,) = parse_experiment(yaml.safe_dump(document), "e.yaml").applications.values()
    assert set(application.secret_places()) == {"${env:APP_KEY}", "${env:APP_CODE}"}


def test_a_file_of_goldens(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = EXAMPLES / "goldens" / "helpdesk.yaml"
    value = yaml.safe_load(path.read_text())
    plain = load_goldens(str(path))
    copy = tmp_path / "g.yaml"
    value["documents"] = str(path.parent / value["documents"])
    copy.write_text(yaml.safe_dump(referring(value, monkeypatch)))
    goldens = load_goldens(str(copy))
    assert (goldens.name, goldens.calls.services, goldens.split) == (plain.name, plain.calls.services, plain.split)
    copy.write_text(yaml.safe_dump({**value, "writer": "${env:RB_UNSET}"}))
    with pytest.raises(InputErrors, match="RB_UNSET"):
        load_goldens(str(copy))


def test_gates(monkeypatch: pytest.MonkeyPatch) -> None:
    known = KnownNames(["bm25"], ["nDCG@10"], [], None)
    located = load("gates:\n- {metric: '${env:RB_METRIC}', at_least: 0.5}", "gates.yaml")
    with pytest.raises(InputErrors, match=r"gates.yaml:2: gates.0..metric: .*RB_METRIC"):
        located_gates(located, known)
    monkeypatch.setenv("RB_METRIC", "nDCG@10")
    assert located_gates(located, known)[0].metric == "nDCG@10"


def test_a_value_is_part_of_the_identity_of_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (EXAMPLES / "rag_engine.yaml").read_text()
    value = yaml.safe_load(text)
    value["configurations"][0]["retriever"]["corpus"] = REFERENCE

    def identity(name: str) -> Any:
        monkeypatch.setenv(NAME, f"projects/p/locations/us-central1/ragCorpora/{name}")
        source = parse_experiment(yaml.safe_dump(value), str(EXAMPLES / "rag_engine.yaml")).sources[0]
        assert source.retriever.remote is not None
        return source.retriever.remote.identity("rag_engine")

    assert identity("1") == identity("1") != identity("2")
