"""Names of secrets, as services spell them; and names that only look like it."""

from pathlib import Path

import pytest
from support.remote import dataset, write_experiment

from rankbeam.pipelines.experiment.load import load_experiment
from rankbeam.transforms.clients.secrets import holds_secret, names_secret, names_secret_parameter
from rankbeam.transforms.records.errors import InputError

HEADERS = """
Authorization Proxy-Authorization X-Authorization Cookie X-API-Key api-key apikey X-Goog-Api-Key X-Algolia-API-Key
X-TYPESENSE-API-KEY X-Meili-API-Key Ocp-Apim-Subscription-Key X-RapidAPI-Key X-Subscription-Token X-Functions-Key
DD-API-KEY DD-APPLICATION-KEY X-Amz-Security-Token X-Auth X-Auth-Key X-Auth-Token X-Vespa-Auth-Token Private-Token
X-OpenAI-Api-Key X-Cohere-Api-Key X-Shopify-Access-Token Cf-Access-Client-Secret X-Vault-Token X-Jwt-Assertion
X-Hub-Signature-256 X-Secret X-Password X-Client-Credentials hapikey Key
"""
PARAMETERS = """
key api_key apiKey x-api-key subscription-key subscriptionKey access_key access_token auth authorization code jwt
sig signature X-Amz-Credential X-Amz-Signature X-Goog-Signature token auth_token client_secret password pass
x-algolia-api-key x-typesense-api-key license_key
"""
BODY_KEYS = """
token key secret password api_key apiKey accessToken client_secret clientSecret subscriptionKey jwt
"""
HARMLESS = """
Accept Accept-Language Content-Type X-Request-Id X-Tenant X-Algolia-Application-Id X-RapidAPI-Host X-Auth-Email
Idempotency-Key X-Routing-Key Surrogate-Key X-Max-Tokens max_tokens max_token maxTokens drop_tokens_threshold
token_separators token_type token_limit page_token pageToken next_page_token keyword keywords keys monkey author
authority sort_key sortKey partition_key access_key_id country_code language_code tokenizer passage compass index
collection q query size design signal
"""


@pytest.mark.parametrize("name", [spelled(name) for name in HEADERS.split() for spelled in (str, str.upper, str.lower)])
def test_headers_of_secrets(name: str) -> None:
    assert names_secret(name)


@pytest.mark.parametrize("name", PARAMETERS.split())
def test_parameters_of_secrets(name: str) -> None:
    assert names_secret_parameter(name)


@pytest.mark.parametrize("name", BODY_KEYS.split())
def test_keys_of_secrets_in_a_body(name: str) -> None:
    assert holds_secret([name], "literal")
    assert holds_secret(["credentials", name], "literal")


@pytest.mark.parametrize("name", HARMLESS.split())
def test_names_of_no_secrets(name: str) -> None:
    assert not names_secret(name)
    assert not names_secret_parameter(name)
    assert not holds_secret([name], "literal")


@pytest.mark.parametrize("value", ["city", "metadata.language", "meta-data.year_2", "_score"])
def test_a_key_inside_of_a_filter_is_the_name_of_a_field(value: str) -> None:
    assert not holds_secret(["filter", "must", 0, "key"], value)
    assert not holds_secret(["sort", 0, "key"], value)
    assert holds_secret(["key"], value)
    assert holds_secret(["auth", "key"], value)


@pytest.mark.parametrize("value", ["sk-proj-9a8b7c6d", "s3cr3t", "AIzaSyD9x8y7", "two words", "a" * 41])
def test_a_key_inside_of_a_filter_that_looks_like_no_field_is_a_secret(value: str) -> None:
    assert holds_secret(["filter", "must", 0, "key"], value)


def test_what_describes_a_credential_is_none() -> None:
    assert not holds_secret(["auth", "type"], "bearer")
    assert not holds_secret(["auth", "token_type"], "bearer")
    assert holds_secret(["auth", "value"], "s3cr3t")


REFUSED = [
    {"headers": {"X-Algolia-API-Key": "s3cr3t"}},
    {"headers": {"X-TYPESENSE-API-KEY": "s3cr3t"}},
    {"headers": {"Ocp-Apim-Subscription-Key": "s3cr3t"}},
    {"headers": {"X-RapidAPI-Key": "s3cr3t"}},
    {"headers": {"X-Auth": "s3cr3t"}},
    {"headers": {"Authorization": "Bearer s3cr3t ${env:RB_KEY}"}},
    {"headers": {"Authorization": "Bearer s3cr3t${env:RB_KEY}"}},
    {"headers": {"Authorization": "Bearer ${env:RB_KEY} s3cr3t"}},
    {"headers": {"Authorization": "s3cr3t ${env:RB_KEY}"}},
    {"headers": {"Cookie": "sid=${env:RB_KEY}; other=s3cr3t"}},
    {"params": {"subscription-key": "s3cr3t"}},
    {"params": {"access_key": "s3cr3t"}},
    {"params": {"code": "s3cr3t"}},
    {"params": {"jwt": "s3cr3t"}},
    {"params": {"token": 73117}},
    {"params": {"key": "s3cr3t-${env:RB_KEY}"}},
    {"body": {"q": "{query}", "token": "s3cr3t"}},
    {"body": {"q": "{query}", "key": "s3cr3t"}},
    {"body": {"q": "{query}", "secret": "s3cr3t"}},
    {"body": {"q": "{query}", "credentials": [{"value": "s3cr3t"}]}},
    {"url": "http://none.invalid/search?subscription-key=s3cr3t"},
    {"url": "http://${env:RB_KEY}:s3cr3t@none.invalid/search"},
    {"url": "http://s3cr3t:@none.invalid/search"},
]
ACCEPTED = [
    {"headers": {"Authorization": "Bearer ${env:RB_KEY}"}},
    {"headers": {"Authorization": "ApiKey ${env:RB_ID}:${env:RB_KEY}"}},
    {"headers": {"Authorization": 'Token token="${env:RB_KEY}"'}},
    {"headers": {"Cookie": "sid=${env:RB_KEY}; csrf=${secret:projects/p/secrets/s/versions/1}"}},
    {"params": {"key": "{query}"}},
    {"params": {"max_tokens": 5, "keyword": "{query}", "sort_key": "price", "token": True}},
    {"body": {"q": "{query}", "max_tokens": 5, "filter": {"must": [{"key": "city", "match": {"value": "Bern"}}]}}},
    {"url": "http://me:${env:RB_KEY}@none.invalid/search?sort_key=price"},
    {"url": "http://${env:RB_KEY}:@none.invalid/search"},
]


def _experiment(folder: Path, parameters: dict[str, object]) -> str:
    retriever = {"type": "http", "url": "http://none.invalid/search", "results": "hits", "id": "id", **parameters}
    configuration = {"name": "remote", "retriever": retriever, "top_k": 10}
    return write_experiment(folder, {"dataset": dataset(folder, 1), "configurations": [configuration]})


@pytest.mark.parametrize("parameters", REFUSED)
def test_a_literal_secret_is_refused_and_not_repeated(parameters: dict[str, object], tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load_experiment(_experiment(tmp_path, parameters))
    assert "the experiment's text is written to the runs table" in str(caught.value)
    assert "s3cr3t" not in str(caught.value)
    assert "73117" not in str(caught.value)


@pytest.mark.parametrize("parameters", ACCEPTED)
def test_references_and_harmless_literals_are_accepted(parameters: dict[str, object], tmp_path: Path) -> None:
    assert load_experiment(_experiment(tmp_path, parameters)).remote
