"""Models by PROVIDER:MODEL: the services that they become, and mistakes."""

from pathlib import Path

import pytest
from support.cli import rankbeam
from support.inputs import write
from support.standin_answers import write_experiment
from support.standins import serve

from rankbeam.pipelines.config.references import PROVIDERS, service_of_name, with_providers
from rankbeam.pipelines.config.yaml_lines import load
from rankbeam.transforms.clients.models.base import MODELS

TEXT = """
services:
  local: {type: lexical}
judge: {service: "openai:gpt-x", embeddings: local}
configurations:
  - {name: a, generate: {service: "ollama:llama3.2:3b"}}
grid:
  generate.service: ["vllm:m", "local"]
dataset: {queries: "openai:not-a-service"}
"""


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_provider_is_a_valid_service(provider: str) -> None:
    service = service_of_name(f"{provider}:some-model")
    assert service is not None
    parameters = {name: value for name, value in service.items() if name != "type"}
    if provider == "azure":
        parameters["base_url"] = parameters["base_url"].replace("${env:AZURE_OPENAI_ENDPOINT}", "https://a.example.com")
    model = MODELS.load(service["type"]).model_validate(parameters)
    assert model.model_dump()["model"] == "some-model"


def test_services_are_added_where_they_are_named() -> None:
    located = with_providers(load(TEXT, "e.yaml"))
    assert not located.problems
    assert set(located.value["services"]) == {"local", "openai:gpt-x", "ollama:llama3.2:3b", "vllm:m"}
    assert located.value["services"]["ollama:llama3.2:3b"]["model"] == "llama3.2:3b"
    assert located.lines["services", "openai:gpt-x"] == 4


def test_models_without_parameters_need_no_entry(tmp_path: Path) -> None:
    write(tmp_path / "answers.jsonl", '{"question": "Who pays?", "answer": "Owners pay.", "contexts": ["Owners pay."]}')
    path = write(
        tmp_path / "experiment.yaml",
        """
name: a
dataset: {file: answers.jsonl}
configurations: [{name: lexical, answers: {type: replay}}]
judge: {service: lexical, embeddings: hashed}
metrics: [Faithfulness, AnswerRelevance]
output: {path: out}
""",
    )
    outcome = rankbeam("evaluate", path)
    assert outcome.status == 0, outcome.stderr
    assert "Faithfulness(judge=lexical)" in outcome.stdout


@pytest.mark.parametrize(
    ("text", "services"),
    [
        ("grid: {generate.service: [extractive, 'vllm:m']}", {"extractive", "vllm:m"}),
        ("judge: [lexical, m]", {"lexical"}),
        ("writer: extractive\nreviews: {duplicates: {embedding_model: hashed}}", {"extractive", "hashed"}),
        ("services: {lexical: {type: openai}}\njudge: {service: lexical, embeddings: hashed}", {"lexical", "hashed"}),
    ],
)
def test_models_without_parameters_are_added_where_services_are_named(text: str, services: set[str]) -> None:
    located = with_providers(load(text, "e.yaml"))
    assert set(located.value["services"]) == services
    assert located.value["services"].get("hashed", {"type": "hashed"}) == {"type": "hashed"}


def test_a_configuration_of_their_name_adds_no_service() -> None:
    located = load("configurations: [{name: hashed}]\nbaseline: hashed\njudge: {service: a}", "e.yaml")
    assert with_providers(located) is located


@pytest.mark.parametrize(
    "text", ["", "name: a", "services: 3", "- judge", "judge: {service: 'a:b'}", "judge: 'openai:'"]
)
def test_other_documents_stay_as_they_are(text: str) -> None:
    located = load(text, "e.yaml")
    assert with_providers(located) is located


def test_a_name_with_a_colon_is_refused() -> None:
    (problem,) = with_providers(load("services:\n  'openai:m': {type: lexical}", "e.yaml")).problems
    assert str(problem).startswith("e.yaml:2: services.openai:m: has a colon, like PROVIDER:MODEL")


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("opnai:m", "no provider is called 'opnai'; did you mean 'openai'?"),
        ("openai:", "name a model behind the colon, such as openai:MODEL"),
    ],
)
def test_unknown_providers_are_refused_with_their_line(tmp_path: Path, name: str, advice: str) -> None:
    path = write_experiment(tmp_path, {"type": "lexical"}, {}, judge={"service": name}, quotas={})
    done = rankbeam("validate", path)
    line = next(i for i, text in enumerate(Path(path).read_text().splitlines(), 1) if name in text)
    assert done.status == 2
    assert f"experiment.yaml:{line}: judge.service: services: has no {name!r}; {advice}" in done.stderr


@pytest.mark.long
def test_a_missing_key_ends_the_run_before_any_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    path = write_experiment(tmp_path, {"type": "extractive"}, {}, judge={"service": "openai:m"}, quotas={})
    done = rankbeam("evaluate", path)
    assert done.status == 2
    assert "needs the environment variable OPENAI_API_KEY, which is not set here" in done.stderr


@pytest.mark.long
def test_a_provider_judges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Azure's service is wherever its variable says; quotas and prices name it as the experiment does."""
    with serve("openai") as server:
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", server.url)
        monkeypatch.setenv("AZURE_OPENAI_API_KEY", "the-secret-key")
        quotas = {"azure:m-001": {"requests_per_minute": 60_000}}
        judge = {"service": "azure:m-001", "repeat_share": 0}
        done = rankbeam("evaluate", write_experiment(tmp_path, {"type": "extractive"}, {}, judge=judge, quotas=quotas))
        assert done.status == 0, done.stderr
        assert {request["headers"]["api-key"] for request in server.stats().requests} == {"the-secret-key"}
    assert "Faithfulness" in done.stdout
    assert "the-secret-key" not in Path(tmp_path / "out" / "ledger").as_posix() + done.stdout + done.stderr
