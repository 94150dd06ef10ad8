"""Workers in the submitting process: `--environment_type LOOPBACK`."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from apache_beam.runners.worker import worker_pool_main
from apache_beam.runners.worker.sdk_worker import SdkHarness
from apache_beam.utils.sentinel import Sentinel

from rankbeam.pipelines.portable.worker_pool import workers_to_stop


class LoopbackPool(worker_pool_main.BeamFnExternalWorkerPoolServicer):
    """Beam's pool of workers in this process, in which a worker belongs to the connection that has started it.

    Beam's own knows them by their number alone. Of two TaskManagers that have a worker 1-1 each, the first to stop its
    own would end the other's: "SDK harness closed connection".
    """

    def __init__(self, *arguments: Any, **named_arguments: Any) -> None:
        super().__init__(*arguments, **named_arguments)
        self._lock = threading.Lock()
        self._harnesses: list[tuple[str, str, SdkHarness]] = []

    def StartWorker(self, request: Any, context: Any) -> Any:  # noqa: N802  gRPC's name
        """Start a worker for a TaskManager."""
        with self._lock:
            response = super().StartWorker(request, context)
            if (harness := self._worker_threads.pop(request.worker_id, None)) is not None:
                self._harnesses.append((request.worker_id, context.peer(), harness))
        return response

    def StopWorker(self, request: Any, context: Any) -> Any:  # noqa: N802  gRPC's name
        """Stop the worker of this number that the same TaskManager has started."""
        with self._lock:
            stopped = workers_to_stop(self._harnesses, request.worker_id, context.peer())
            self._harnesses = [harness for harness in self._harnesses if harness not in stopped]
        for *_, harness in stopped:
            harness._responses.put(Sentinel.sentinel)  # as Beam's pool ends a thread
        return super().StopWorker(request, context)


@contextmanager
def workers_by_connection() -> Iterator[None]:
    """Have Beam start this pool for jobs whose workers are in this process; Beam has no option for it."""
    names = vars(worker_pool_main)
    beams = names["BeamFnExternalWorkerPoolServicer"]
    names["BeamFnExternalWorkerPoolServicer"] = LoopbackPool
    try:
        yield
    finally:
        names["BeamFnExternalWorkerPoolServicer"] = beams
