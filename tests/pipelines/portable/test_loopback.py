"""Workers in the submitting process: two TaskManagers that each have one of the same number."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
from apache_beam.portability.api import beam_fn_api_pb2, beam_fn_api_pb2_grpc, endpoints_pb2
from apache_beam.runners.worker import worker_pool_main

from rankbeam.pipelines.portable.job_server import workers_by_connection

WITHIN_S = 30.0


class TaskManager(beam_fn_api_pb2_grpc.BeamFnControlServicer):
    """Knows when its worker has come and when it has left; gives it no work."""

    def __init__(self) -> None:
        self.came, self.left = threading.Event(), threading.Event()

    def Control(self, request_iterator: Iterator[Any], _: grpc.ServicerContext) -> Iterator[Any]:  # noqa: N802
        self.came.set()
        yield from (request for request in request_iterator if request is None)
        self.left.set()


@contextmanager
def task_manager(pool: str) -> Iterator[tuple[TaskManager, beam_fn_api_pb2_grpc.BeamFnExternalWorkerPoolStub]]:
    """A TaskManager whose worker has come, and its own connection to the pool."""
    task_manager, server = TaskManager(), grpc.server(ThreadPoolExecutor(4))
    beam_fn_api_pb2_grpc.add_BeamFnControlServicer_to_server(task_manager, server)
    control = endpoints_pb2.ApiServiceDescriptor(url=f"localhost:{server.add_insecure_port('localhost:0')}")
    server.start()
    with grpc.insecure_channel(pool, [("grpc.use_local_subchannel_pool", 1)]) as channel:
        stub = beam_fn_api_pb2_grpc.BeamFnExternalWorkerPoolStub(channel)
        request = beam_fn_api_pb2.StartWorkerRequest(worker_id="1-1", control_endpoint=control)
        assert not stub.StartWorker(request).error
        assert task_manager.came.wait(WITHIN_S)
        yield task_manager, stub
    server.stop(0).wait()


def test_a_task_manager_stops_its_own_worker() -> None:
    stop = beam_fn_api_pb2.StopWorkerRequest(worker_id="1-1")
    with workers_by_connection():
        address, server = worker_pool_main.BeamFnExternalWorkerPoolServicer.start()
    with task_manager(address) as (one, of_one), task_manager(address) as (other, of_other):
        of_one.StopWorker(stop)
        assert one.left.wait(WITHIN_S)
        assert not other.left.is_set()
        of_other.StopWorker(stop)
        assert other.left.wait(WITHIN_S)
    server.stop(0).wait()
