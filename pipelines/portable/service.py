"""A job server's API: the state of a job, its counters, and its end."""

from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import grpc
from apache_beam.metrics import monitoring_infos
from apache_beam.portability.api import beam_job_api_pb2, beam_job_api_pb2_grpc
from apache_beam.runners.runner import PipelineState

from rankbeam.transforms.clients.clock import SYSTEM_CLOCK, Clock
from rankbeam.transforms.records.counters import NAMESPACE, Counter, Counts
from rankbeam.transforms.records.errors import RankbeamError

Answer = TypeVar("Answer")
PAUSE_S = 0.25
_TIMEOUT_S = 10.0


def poll_until(poll: Callable[[], Answer | None], within_s: float, clock: Clock = SYSTEM_CLOCK) -> Answer | None:
    """Poll until the first answer that is not None; return None after `within_s`."""
    deadline, condition = clock.monotonic() + within_s, clock.condition()
    with condition, clock.at_work():
        while (answer := poll()) is None and (left := deadline - clock.monotonic()) > 0:
            condition.wait(min(PAUSE_S, left))
    return answer


class JobServerError(RankbeamError):
    """The job server does not answer, or refuses a request: exit status 1."""


class JobService:
    """Client of Beam's Job API; an external server outlives this process."""

    def __init__(self, channel: grpc.Channel, endpoint: str, is_external: bool = True) -> None:
        self._stub = beam_job_api_pb2_grpc.JobServiceStub(channel)
        self.endpoint, self.is_external = endpoint, is_external

    def options(self) -> Sequence[Any]:
        with self._translated():
            request = beam_job_api_pb2.DescribePipelineOptionsRequest()
            described: Sequence[Any] = self._stub.DescribePipelineOptions(request, timeout=_TIMEOUT_S).options
            return described

    def state(self, job_id: str) -> str:
        """A job's state, by its name in `PipelineState`."""
        with self._translated():
            request = beam_job_api_pb2.GetJobStateRequest(job_id=job_id)
            state = self._stub.GetState(request, timeout=_TIMEOUT_S).state
            return str(beam_job_api_pb2.JobState.Enum.Name(state))

    def counts(self, job_id: str) -> Counts:
        """Rankbeam's counters, summed over all steps; none where the engine reports them at the end only.

        Prism's attempted counters lack bundles that ended between two reports, and its committed ones those at work.
        """
        with self._translated():
            request = beam_job_api_pb2.GetJobMetricsRequest(job_id=job_id)
            metrics = self._stub.GetJobMetrics(request, timeout=_TIMEOUT_S).metrics
            return counts_of(metrics.attempted) | counts_of(metrics.committed)

    def cancel(self, job_id: str) -> None:
        """Request cancellation; the job continues for a while."""
        with self._translated():
            self._stub.Cancel(beam_job_api_pb2.CancelJobRequest(job_id=job_id), timeout=_TIMEOUT_S)

    def wait_until_ended(self, job_id: str, within_s: float) -> str | None:
        """Wait for the end of a job; return its last state, or None if it still runs."""

        def ended() -> str | None:
            return state if PipelineState.is_terminal(state := self.state(job_id)) else None

        return poll_until(ended, within_s)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except grpc.RpcError as error:
            reason = error.details() if isinstance(error, grpc.Call) else error
            raise JobServerError(f"the job server at {self.endpoint} refused a request: {reason}") from error


def counts_of(infos: Iterable[Any]) -> Counts:
    """Sum rankbeam's counters over all steps, from Beam's `MonitoringInfo` messages."""
    total: Counts = Tally()
    for info in infos:
        if info.urn == monitoring_infos.USER_COUNTER_URN and info.labels.get("NAMESPACE") == NAMESPACE:
            with suppress(ValueError):  # a counter of another version of rankbeam
                total[Counter(info.labels["NAME"]), ""] += monitoring_infos.extract_counter_value(info)
    return total
