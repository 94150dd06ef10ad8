"""A pool of Python workers that several TaskManagers may share: `--environment_type EXTERNAL`.

    python -m rankbeam.pipelines.portable.worker_pool --port 50000

This pool improves on Beam's in three ways. First, every TaskManager numbers its workers 1-1, 2-1, …, and Beam's pool
identifies them by number only: a TaskManager that stops its worker kills another's with the same number, and that job
fails with "CANCELLED: client cancelled". Here a worker belongs to the connection that started it. Second, this pool
reports which environment variables it lacks (workers have the pool's variables), so that a job that needs them is
refused before it is submitted. Third, workers are forked from a process that has imported Beam and rankbeam, because
Flink starts new ones for many steps, and imports take most of a worker's start.
"""

import argparse
import json
import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

import grpc
from apache_beam.portability.api import beam_fn_api_pb2, beam_fn_api_pb2_grpc
from apache_beam.utils.thread_pool_executor import shared_unbounded_instance

VARIABLES = "/rankbeam.WorkerPool/Unset"
"""The method that takes a JSON list of names of variables, and returns those that are not set in the pool."""

_PRELOADED = ["apache_beam.runners.worker.sdk_worker", "rankbeam.pipelines.run.build"]
_NO_THREAD = {"JE_ARROW_MALLOC_CONF": "background_thread:false"}
"""Arrow's allocator would start a thread, and a fork copies none. OpenBLAS ends its own before a fork."""
_ENDING_S = 10.0
_REMEMBERED = 1000  # workers that have ended
_OPTIONS = [("grpc.http2.max_pings_without_data", 0), ("grpc.http2.max_ping_strikes", 0), ("grpc.so_reuseport", 0)]

Handle = TypeVar("Handle")
Worker = tuple[str, str, BaseProcess]  # the number of a worker, the connection that started it, and its process


class WorkerPool(beam_fn_api_pb2_grpc.BeamFnExternalWorkerPoolServicer):
    """Starts workers, each from the address of its control service and its number, and stops them."""

    def __init__(self, start: Callable[[str, str], BaseProcess]) -> None:
        self._start, self._lock = start, threading.Lock()
        self._workers: list[Worker] = []
        self._ended: deque[tuple[str, str]] = deque(maxlen=_REMEMBERED)

    def StartWorker(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802  gRPC's name
        with self._lock:
            try:
                process = self._start(request.control_endpoint.url, request.worker_id)
            except OSError as error:
                return beam_fn_api_pb2.StartWorkerResponse(error=str(error))
            self._workers.append((request.worker_id, context.peer(), process))
        return beam_fn_api_pb2.StartWorkerResponse()

    def StopWorker(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802  gRPC's name
        """Stop the worker of this number that the same TaskManager started."""
        with self._lock:
            alive = [worker for worker in self._workers if worker[2].is_alive()]
            self._ended += [worker[:2] for worker in self._workers if worker not in alive]
            # A worker ends with its TaskManager's stream, often before this request. Another may have its number.
            is_over = (request.worker_id, context.peer()) in self._ended
            stopped = [] if is_over else workers_to_stop(alive, request.worker_id, context.peer())
            self._workers = [worker for worker in alive if worker not in stopped]
        for *_, process in stopped:
            _stop(process)
        return beam_fn_api_pb2.StopWorkerResponse()

    def close(self) -> None:
        with self._lock:
            workers, self._workers, self._start = self._workers, [], _refuse
        for *_, process in workers:
            _stop(process)


def workers_to_stop(
    workers: Iterable[tuple[str, str, Handle]], worker_id: str, peer: str
) -> list[tuple[str, str, Handle]]:
    """Workers of this number that the peer started.

    A TaskManager may have reconnected since it started its worker. Then the worker is identified if it is the only one
    of that number; one of several ends by itself when its TaskManager closes its stream.
    """
    same = [worker for worker in workers if worker[0] == worker_id]
    own = [worker for worker in same if worker[1] == peer]
    return own or (same if len(same) == 1 else [])


def start_server(port: int, start: Callable[[str, str], BaseProcess]) -> tuple[grpc.Server, WorkerPool, int]:
    """Start a server with a pool at a port, 0 for a free one; raise RuntimeError if the port is taken."""
    server = grpc.server(shared_unbounded_instance(), options=_OPTIONS)
    pool = WorkerPool(start)
    beam_fn_api_pb2_grpc.add_BeamFnExternalWorkerPoolServicer_to_server(pool, server)
    _, service, method = VARIABLES.split("/")
    handlers = {method: grpc.unary_unary_rpc_method_handler(_unset)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    bound = server.add_insecure_port(f"[::]:{port}")
    server.start()
    return server, pool, bound


def start_worker(control: str, worker_id: str) -> BaseProcess:
    """Start a worker; what it prints goes where the pool prints."""
    process = _fork_context().Process(
        target=_work, args=(control, worker_id)
    )  # a daemon could start none, as plug-ins may
    process.start()
    return process


def _fork_context() -> "multiprocessing.context.ForkServerContext":
    """Processes that are forked from one that has the modules of a worker."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    for name, value in _NO_THREAD.items():
        os.environ.setdefault(name, value)
    return context


def _work(control: str, worker_id: str) -> None:
    """Run a worker until its TaskManager no longer needs it."""
    from apache_beam.runners.worker.sdk_worker import SdkHarness

    SdkHarness(control, worker_id=worker_id, state_cache_size=0, data_buffer_time_limit_ms=-1).run()


def _refuse(_: str, __: str) -> BaseProcess:
    raise OSError("the pool of workers has ended")


def _stop(process: BaseProcess) -> None:
    """End a process, and give it some seconds for that."""
    process.terminate()
    process.join(_ENDING_S)
    if process.is_alive():
        process.kill()
        process.join()


def _unset(request: bytes, _: grpc.ServicerContext) -> bytes:
    return json.dumps([name for name in json.loads(request) if not os.environ.get(name, "").strip()]).encode()


def main() -> None:
    """Serve until SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, required=True, help="for --environment_config=HOST:PORT")
    arguments = parser.parse_args()
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    try:
        server, pool, port = start_server(arguments.port, start_worker)
    except RuntimeError:
        sys.exit(f"rankbeam: port {arguments.port} is in use; choose another --port")
    sys.stderr.write(f"rankbeam: workers at port {port}\n")
    ended.wait()
    server.stop(0)
    pool.close()


if __name__ == "__main__":
    main()
