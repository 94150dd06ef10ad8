"""What Dataflow says of a job: its state, what was counted in it, and what went wrong."""

from collections import Counter as Tally
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from apache_beam.internal.gcp.auth import get_service_credentials
from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions
from google.api_core.client_options import ClientOptions
from google.api_core.exceptions import GoogleAPICallError, GoogleAPIError, NotFound
from google.api_core.retry import Retry
from google.auth.credentials import AnonymousCredentials
from google.auth.exceptions import GoogleAuthError
from google.cloud import dataflow
from requests.exceptions import RequestException

from rankbeam.pipelines.dataflow.record import Job
from rankbeam.transforms.records.counters import NAMESPACE, Counter, Counts
from rankbeam.transforms.records.errors import InputError, RankbeamError
from rankbeam.transforms.records.visible import visible

DONE = "done"
_FAILED = frozenset({"failed", "cancelled", "updated", "drained"})
_TIMEOUT_S, _PATIENCE_S = 30.0, 60.0


class ServiceError(RankbeamError):
    """Dataflow does not answer, or refuses to: exit status 1."""


@dataclass(frozen=True)
class Snapshot:
    """A job at one moment.

    Attributes:
        state: in Dataflow's words, such as "running".
        counts: what rankbeam counted; the pool is always "", for Dataflow adds up all of them.
        problems: of a job that failed, the error messages in their order.
    """

    state: str
    counts: Counts
    problems: tuple[str, ...] = ()

    @property
    def has_failed(self) -> bool:
        """Whether it ended without being done."""
        return self.state in _FAILED

    @property
    def has_ended(self) -> bool:
        """Whether nothing will change any more."""
        return self.state == DONE or self.has_failed


def gist(problem: str) -> str:
    """What an error message says, without the way there.

    >>> gist("Traceback (most recent call last):\\n  File 'a.py', line 1\\nValueError: no [while running 'Read']\\n")
    "ValueError: no [while running 'Read']"
    """
    lines = problem.strip().splitlines()
    return lines[-1] if "Traceback (most recent call last)" in problem else "\n".join(lines)


class Service:
    """Dataflow's API.

    Args:
        endpoint: where it is; None for Google's own.
        options: Beam's options, which say as whom it is asked.
        patience_s: how long it may fail to answer.
    """

    def __init__(
        self, endpoint: str | None, options: PipelineOptions | None = None, patience_s: float = _PATIENCE_S
    ) -> None:
        options = PipelineOptions([]) if options is None else options
        anonymous = options.view_as(GoogleCloudOptions).no_auth
        credentials = None if anonymous else get_service_credentials(options)
        self._client: dict[str, Any] = {
            "credentials": credentials or AnonymousCredentials(),
            "client_options": ClientOptions(api_endpoint=endpoint),
            "transport": "rest",
        }
        self._call = {"timeout": _TIMEOUT_S, "retry": Retry(timeout=patience_s)}  # of what Google calls transient

    def look(self, job: Job) -> Snapshot:
        """A job as it is now.

        Raises:
            InputError: there is no such job.
            ServiceError: Dataflow does not say.
        """
        place = {"project_id": job.project, "location": job.region, "job_id": job.job_id}
        with translated(job.job_id):
            state = self._state(place)
            request = dataflow.GetJobMetricsRequest(place)
            metrics = dataflow.MetricsV1Beta3Client(**self._client).get_job_metrics(request, **self._call).metrics
            found = Snapshot(state, counts_of(metrics, is_final=state == DONE))
            return Snapshot(state, found.counts, self._problems(place)) if found.has_failed else found

    def _state(self, place: dict[str, str]) -> str:
        request = dataflow.GetJobRequest(place)
        try:
            job = dataflow.JobsV1Beta3Client(**self._client).get_job(request, **self._call)
        except NotFound as error:
            problem = (
                f"Dataflow knows no such job in region {place['location']} of {place['project_id']}: {error.message}"
            )
            raise InputError(problem, path=place["job_id"]) from error
        name = getattr(job.current_state, "name", str(job.current_state))  # one that this client does not know yet
        return name.removeprefix("JOB_STATE_").lower()

    def _problems(self, place: dict[str, str]) -> tuple[str, ...]:
        least = dataflow.JobMessageImportance.JOB_MESSAGE_ERROR
        request = dataflow.ListJobMessagesRequest({**place, "minimum_importance": least})
        messages = dataflow.MessagesV1Beta3Client(**self._client).list_job_messages(request, **self._call)
        return tuple(visible(each.message_text) for each in messages if each.message_importance == least)


def counts_of(metrics: "Iterable[dataflow.MetricUpdate]", *, is_final: bool) -> Counts:
    """What rankbeam counted, over all steps.

    While a job runs, Dataflow has two values of each counter: what bundles that are done have counted, and what all
    have, those at work and those that failed included. A lane is one bundle for hours, so the larger one tells more;
    of a job that is done, only the first is right.

    Args:
        metrics: as Dataflow has them.
        is_final: whether the job is done.
    """
    seen: dict[tuple[str, str], dict[bool, int]] = {}
    for each in metrics:
        context = each.name.context
        if each.name.origin == "user" and context.get("namespace") == NAMESPACE:
            is_tentative = context.get("tentative") == "true"
            seen.setdefault((each.name.name, context.get("step", "")), {})[is_tentative] = int(each.scalar or 0)
    total: Counts = Tally()
    for (name, _), values in seen.items():
        with suppress(ValueError):  # a counter of another version of rankbeam
            total[Counter(name), ""] += values.get(False, 0) if is_final else max(values.values())
    return total


@contextmanager
def translated(about: str) -> Iterator[None]:
    """Raise what Google's libraries raise as an error of ours.

    Args:
        about: the job that it is about.

    Raises:
        ServiceError: something went wrong.
    """
    try:
        yield
    except (GoogleAPIError, GoogleAuthError, RequestException) as error:
        told = error.message if isinstance(error, GoogleAPICallError) else error
        raise ServiceError(f"{about}: Google Cloud does not do as it is asked: {told}") from error
