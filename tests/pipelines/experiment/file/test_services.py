"""`services:`: models that are named once, the pools that pay for them, and every mistake with its line."""

from pathlib import Path

import pytest
from support.experiments import experiment, load, problems
from support.experiments import folder as folder

NEAR = {"near": "retriever: {type: near}"}
GEMINI = "gemini: {type: remote_model, model: m}"


def text(services: str, more: str = "") -> str:
    """An experiment with services in line 7."""
    return experiment(NEAR, f"services: {{{services}}}\n{more}")


def test_a_service_that_nothing_uses_has_no_pool(folder: Path) -> None:
    assert set(load(folder, text(GEMINI)).calls.pools) == {"near"}


MISTAKES = [
    ("a: {type: remot_model, model: m}", "",
     "7: services.a.type: unknown model type 'remot_model'; did you mean 'remote_model'?"),
    ("a: {model: m}", "", "7: services.a.type: is missing; a service is {type: …, parameters of the type}"),
    ("a: remote_model", "", "7: services.a.type: is missing; a service is {type: …, parameters of the type}"),
    ("a: {type: near}", "", "7: services.a.type: unknown model type 'near'; valid are: "),
    ("a: {type: remote_model}", "", "7: services.a.model: is missing"),
    ("a: {type: remote_model, model: m, projekt: p}", "",
     "7: services.a.projekt: unknown key; did you mean 'project'?"),
    ("a: {type: remote_model, model: m, api_key: 5}", "", "7: services.a.api_key: must be a text"),
    ("a: {type: remote_model, model: m, api_key: '${env:UNSET}'}", "",
     "7: services.a.api_key: the environment has no UNSET"),
    ("near: {type: remote_model, model: m}", "",
     "7: services.near: is a type of retriever, and quotas: could mean either; choose another name"),
    (GEMINI, "quotas: {gemni: {}}\n",
     "8: quotas.gemni: is not a service or a remote type, and no retriever names it; did you mean 'gemini'?"),
    (GEMINI, "quotas: {gemini: {price_per_million: {input: 1}}}\n",
     "8: quotas.gemini.price_per_million.output: is missing"),
    (GEMINI, "quotas: {gemini: {price_per_million: {inptu: 1, output: 1, input: 1}}}\n",
     "8: quotas.gemini.price_per_million.inptu: unknown key; did you mean 'input'?"),
    (GEMINI, "quotas: {gemini: {tokens_per_minute: 0}}\n",
     "8: quotas.gemini.tokens_per_minute: must be greater than 0, found 0"),
    (f"{GEMINI}, other: {{type: remote_model, model: m}}", "quotas: {gemini: {}, other: {}}\n",
     "8: quotas.other: shares the pool of 'gemini', which calls the same model; keep one budget"),
]  # fmt: skip


@pytest.mark.parametrize(("services", "more", "expected"), MISTAKES)
def test_a_mistake(folder: Path, services: str, more: str, expected: str) -> None:
    (problem,) = problems(folder, text(services, more))
    assert problem.startswith(expected)


def test_what_is_refused_in_a_service_may_be_a_secret_and_is_not_shown(folder: Path) -> None:
    (problem,) = problems(folder, text("a: {type: remote_model, model: m, api_key: 5551234}"))
    assert "5551234" not in problem


def test_a_broken_service_is_reported_once(folder: Path) -> None:
    messages = problems(folder, text("a: {type: remote_model}", "quotas: {a: {requests_per_minute: 1}}\n"))
    assert messages == ["7: services.a.model: is missing"]


def test_a_retriever_does_not_call_with_the_budget_of_a_service(folder: Path) -> None:
    near = {"near": "retriever: {type: near, quota: gemini}"}
    (problem,) = problems(folder, experiment(near, f"services: {{{GEMINI}}}\nquotas: {{gemini: {{}}}}\n"))
    assert problem == (
        "4: configurations[0].retriever.quota: 'gemini' is a service, with a pool of its own; name another"
    )
