"""Refusals of Google Cloud name the command that mends them, by the exceptions that its libraries raise."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import requests
from apache_beam.io.filesystem import BeamIOError
from google.api_core import exceptions
from google.auth.exceptions import DefaultCredentialsError, RefreshError, TransportError
from google.cloud.exceptions import from_http_response
from google.cloud.storage.exceptions import InvalidResponse

from rankbeam.pipelines.dataflow.service import DataflowError, translate_errors
from rankbeam.transforms.clients.bigquery.errors import BigQueryError
from rankbeam.transforms.clients.bigquery.errors import bigquery_error as of_bigquery
from rankbeam.transforms.clients.bigquery.names import DatasetName
from rankbeam.transforms.clients.storage import gcs

SIGN_IN = "`gcloud auth application-default login`"
EXPIRED = RefreshError(
    "Reauthentication is needed. Please run `gcloud auth application-default login` to reauthenticate."
)
REVOKED = RefreshError(
    "invalid_grant: Token has been expired or revoked.",
    {"error": "invalid_grant", "error_description": "Token has been expired or revoked."},
)
NONE = DefaultCredentialsError("Your default credentials were not found.")


def answer(status: int, message: str, reason: str, details: list[dict[str, Any]] | None = None) -> requests.Response:
    """A refusal as Google's JSON APIs send it."""
    response = requests.Response()
    response.status_code = status
    errors = [{"message": message, "domain": "global", "reason": reason}]
    body = {"error": {"code": status, "message": message, "errors": errors, "details": details or []}}
    response._content = json.dumps(body).encode()
    response.headers["Content-Type"] = "application/json"
    response.request = requests.Request("POST", "https://api.googleapis.com/v1").prepare()
    return response


def disabled(service: str, title: str) -> exceptions.GoogleAPICallError:
    page = f"https://console.developers.google.com/apis/api/{service}/overview?project=123"
    message = (
        f"{title} has not been used in project 123 before or it is disabled. Enable it by visiting {page} then retry."
    )
    about = {"reason": "SERVICE_DISABLED", "domain": "googleapis.com", "metadata": {"service": service}}
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", **about}
    return from_http_response(answer(403, message, "accessNotConfigured", [info]))


def quota(status: int, message: str, reason: str) -> exceptions.GoogleAPICallError:
    return from_http_response(answer(status, message, reason))


def dataflow_says(error: Exception) -> str:
    with pytest.raises(DataflowError) as refusal, translate_errors("job-1", "my-project"):
        raise error
    return str(refusal.value)


def bigquery_says(error: Exception) -> str:
    refusal = of_bigquery(error)
    assert isinstance(refusal, BigQueryError)
    return refusal.advice(DatasetName("my-project", "search"))


def storage_says(error: Exception) -> str:
    return gcs.error_text(BeamIOError("Match operation failed", {"gs://b/out": error}), "gs://b/out")


@pytest.fixture(autouse=True)
def signed_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Credentials are configured, and what becomes of them is what the tests are about."""
    from google.auth import credentials

    monkeypatch.setattr("google.auth.default", lambda *_, **__: (credentials.AnonymousCredentials(), "my-project"))
    gcs._has_credentials.cache_clear()
    yield
    gcs._has_credentials.cache_clear()


@pytest.mark.parametrize("says", [dataflow_says, bigquery_says, storage_says])
@pytest.mark.parametrize(
    "error", [EXPIRED, REVOKED, NONE, exceptions.Unauthenticated("Request had invalid authentication credentials.")]
)
def test_credentials_that_are_missing_or_expired(says: Any, error: Exception) -> None:
    assert says(error).endswith(f"sign in with {SIGN_IN}, or set GOOGLE_APPLICATION_CREDENTIALS to a key file")


@pytest.mark.parametrize(
    ("says", "service", "title", "project"),
    [
        (dataflow_says, "dataflow.googleapis.com", "Dataflow API", "my-project"),
        (dataflow_says, "compute.googleapis.com", "Compute Engine API", "my-project"),
        (bigquery_says, "bigquery.googleapis.com", "BigQuery API", "my-project"),
        (bigquery_says, "bigquerystorage.googleapis.com", "BigQuery Storage API", "my-project"),
        (storage_says, "storage.googleapis.com", "Cloud Storage JSON API", "123"),
    ],
)
def test_an_api_that_is_disabled(says: Any, service: str, title: str, project: str) -> None:
    expected = f"enable it with `gcloud services enable {service} --project {project}`, and repeat the command"
    assert expected in says(disabled(service, title))


@pytest.mark.parametrize(
    ("says", "error", "service", "project"),
    [
        (
            dataflow_says,
            exceptions.TooManyRequests("Quota exceeded for quota metric 'Create requests' of service 'dataflow'."),
            "dataflow.googleapis.com",
            "my-project",
        ),
        (
            dataflow_says,
            exceptions.ResourceExhausted("The project has too many running jobs: 25."),
            "dataflow.googleapis.com",
            "my-project",
        ),
        (
            bigquery_says,
            quota(403, "Quota exceeded: Your project exceeded quota for load jobs per day.", "quotaExceeded"),
            "bigquery.googleapis.com",
            "my-project",
        ),
        (
            storage_says,
            quota(429, "The object exceeded the rate limit for object mutation operations.", "rateLimitExceeded"),
            "storage.googleapis.com",
            "PROJECT",
        ),
        (
            storage_says,
            InvalidResponse(answer(429, "Rate limit exceeded", "rateLimitExceeded"), "Request failed: rate limit"),
            "storage.googleapis.com",
            "PROJECT",
        ),
    ],
)
def test_a_quota_that_is_used_up(says: Any, error: Exception, service: str, project: str) -> None:
    command = f"`gcloud beta quotas info list --service {service} --project {project}` shows the quotas"
    assert f"wait until it is renewed, and repeat the command; {command}" in says(error)


@pytest.mark.parametrize("says", [dataflow_says, bigquery_says, storage_says])
def test_other_errors_get_none_of_this_advice(says: Any) -> None:
    for error in (
        TransportError("Max retries exceeded: Name or service not known"),
        exceptions.Forbidden("p@example lacks storage.objects.list"),
        exceptions.InternalServerError("Internal error encountered."),
    ):
        message = says(error)
        assert "gcloud services enable" not in message
        assert "gcloud beta quotas" not in message
        assert "application-default login" not in message
