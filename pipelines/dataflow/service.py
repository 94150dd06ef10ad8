"""The state of a job, its counters and its errors, from Dataflow's API."""

from collections import Counter as Tally
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
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

from rankbeam.pipelines.dataflow.record import DataflowJob
from rankbeam.pipelines.dataflow.remedies import SERVICE
from rankbeam.pipelines.manage.job_progress import JobSnapshot
from rankbeam.pipelines.manage.jobs import LONGEST_NAME, plain
from rankbeam.transforms.clients.storage.remedies import remedy
from rankbeam.transforms.records.counters import NAMESPACE, Counter, Counts
from rankbeam.transforms.records.errors import InputError, RankbeamError, visible

DONE = "done"
RUN_LABEL = "rankbeam-run-id"
_MOST_NAMESAKES = 50
_TIMEOUT_S, _PATIENCE_S = 30.0, 60.0


class DataflowError(RankbeamError):
    """Dataflow does not respond, or refuses a request: exit status 1."""


class DataflowService:
    """Client of Dataflow's API, which retries for `patience_s` while the API fails."""

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
        self._call = {"timeout": _TIMEOUT_S, "retry": Retry(timeout=patience_s)}  # retries what Google calls transient

    def with_job_id(self, job: DataflowJob) -> DataflowJob:
        """The job with its id, which a template's launcher does not know: then its name and its label identify it.

        A schedule starts every job under the same name, and the label names the run.
        """
        if job.job_id:
            return job
        label = plain(job.run_id, "_")[:LONGEST_NAME]
        client = dataflow.JobsV1Beta3Client(**self._client)
        with translate_errors(job.job_name, job.project):
            request = dataflow.ListJobsRequest(project_id=job.project, location=job.region, name=job.job_name)
            named = [other for other in client.list_jobs(request, **self._call) if other.name == job.job_name]
            for other in sorted(named, key=lambda other: str(other.create_time), reverse=True)[:_MOST_NAMESAKES]:
                place = {"project_id": job.project, "location": job.region, "job_id": other.id}
                whole = client.get_job(dataflow.GetJobRequest(place), **self._call)  # a list has no labels
                if whole.labels.get(RUN_LABEL) == label:
                    return replace(job, job_id=other.id)
        problem = f"Dataflow has no job of this name for run {job.run_id} in region {job.region} of {job.project}"
        raise InputError(f"{problem}; a job launched just now appears after a minute", path=job.job_name)

    def snapshot(self, job: DataflowJob) -> JobSnapshot:
        job = self.with_job_id(job)
        place = {"project_id": job.project, "location": job.region, "job_id": job.job_id}
        with translate_errors(job.job_id, job.project):
            state = self._state(place)
            request = dataflow.GetJobMetricsRequest(place)
            metrics = dataflow.MetricsV1Beta3Client(**self._client).get_job_metrics(request, **self._call).metrics
            snapshot = JobSnapshot(state, counts_of(metrics, is_final=state == DONE))
            return replace(snapshot, problems=self._problems(place)) if snapshot.has_failed else snapshot

    def cancel(self, job: DataflowJob) -> None:
        """Request cancellation; the job continues for a while."""
        job = self.with_job_id(job)
        cancelled = dataflow.Job(requested_state=dataflow.JobState.JOB_STATE_CANCELLED)
        place = {"project_id": job.project, "location": job.region, "job_id": job.job_id}
        with translate_errors(job.job_id, job.project):
            request = dataflow.UpdateJobRequest(job=cancelled, **place)
            dataflow.JobsV1Beta3Client(**self._client).update_job(request, **self._call)

    def _state(self, place: dict[str, str]) -> str:
        request = dataflow.GetJobRequest(place)
        try:
            job = dataflow.JobsV1Beta3Client(**self._client).get_job(request, **self._call)
        except NotFound as error:
            problem = (
                f"Dataflow has no such job in region {place['location']} of {place['project_id']}: {error.message}"
            )
            raise InputError(problem, path=place["job_id"]) from error
        name = getattr(job.current_state, "name", str(job.current_state))  # a state newer than this client has no name
        return name.removeprefix("JOB_STATE_").lower()

    def _problems(self, place: dict[str, str]) -> tuple[str, ...]:
        least = dataflow.JobMessageImportance.JOB_MESSAGE_ERROR
        request = dataflow.ListJobMessagesRequest({**place, "minimum_importance": least})
        messages = dataflow.MessagesV1Beta3Client(**self._client).list_job_messages(request, **self._call)
        return tuple(visible(message.message_text) for message in messages if message.message_importance == least)


def counts_of(metrics: "Iterable[dataflow.MetricUpdate]", *, is_final: bool) -> Counts:
    """Sum rankbeam's counters over all steps.

    While a job runs, Dataflow has two values for each counter: a committed one of finished bundles, and a tentative one
    of all bundles, running and failed ones included. A lane is one bundle for hours, so the larger value is closer to
    the truth. For a finished job only the committed value is right.
    """
    by_step: dict[tuple[str, str], dict[bool, int]] = {}
    for metric in metrics:
        context = metric.name.context
        if metric.name.origin == "user" and context.get("namespace") == NAMESPACE:
            is_tentative = context.get("tentative") == "true"
            by_step.setdefault((metric.name.name, context.get("step", "")), {})[is_tentative] = int(metric.scalar or 0)
    total: Counts = Tally()
    for (name, _), values in by_step.items():
        with suppress(ValueError):  # a counter of another version of rankbeam
            total[Counter(name), ""] += values.get(False, 0) if is_final else max(values.values())
    return total


@contextmanager
def translate_errors(about: str, project: str | None = None) -> Iterator[None]:
    """Translate errors of Google's libraries, and say what to do about them."""
    try:
        yield
    except (GoogleAPIError, GoogleAuthError, RequestException) as error:
        reason = error.message if isinstance(error, GoogleAPICallError) else error
        advice = remedy(error, SERVICE, project)
        more = f"; {advice}" if advice else ""
        raise DataflowError(f"{about}: a request to Google Cloud failed: {reason}{more}") from error
