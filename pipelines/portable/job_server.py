"""Beam's job server: the one that --job_endpoint names, or one that this process starts.

Beam's runners start their job server with its own handler of SIGINT, in the process group of this process, so Ctrl-C
stops the server before it can cancel the job. Here the server has its own session, and ends with the run, even if this
process is killed.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any
from urllib.error import URLError

import grpc
from apache_beam.options.pipeline_options import (
    FlinkRunnerOptions,
    JobServerOptions,
    PipelineOptions,
    PortableOptions,
    SparkRunnerOptions,
)
from apache_beam.runners.portability.flink_runner import FlinkJarJobServer, FlinkRunner
from apache_beam.runners.portability.job_server import SubprocessJobServer
from apache_beam.runners.portability.prism_runner import PrismJobServer
from apache_beam.runners.portability.spark_runner import SparkJarJobServer
from apache_beam.runners.worker import log_handler, sdk_worker, worker_pool_main
from apache_beam.runners.worker.sdk_worker import SdkHarness
from apache_beam.utils.sentinel import Sentinel

from rankbeam.pipelines.local.interrupt import silence_threads
from rankbeam.pipelines.local.runner import quiet_beam
from rankbeam.pipelines.portable import engine, guard
from rankbeam.pipelines.portable.service import JobService
from rankbeam.pipelines.portable.worker_pool import workers_to_stop
from rankbeam.pipelines.run.options import runner_name
from rankbeam.transforms.records.errors import InputError

_SERVERS: dict[str, Callable[[PipelineOptions], SubprocessJobServer]] = {
    "FlinkRunner": FlinkJarJobServer,
    "PrismRunner": PrismJobServer,
    "SparkRunner": SparkJarJobServer,
}
_CONNECTING_S, _STARTING_S = 8.0, 120.0
_SHOWN = 600  # characters of a job server's log
_JAVA = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"}
"""A job server runs for one job: it would spend more CPU time on the optimisation of its code than on its work."""
_FLINK = "taskmanager.runtime.large-record-handler: true\n"
"""Flink joins values of a key before it sends them, all tasks of a lane have one key, and by default Flink refuses a
record that does not fit into a sort buffer of a few megabytes."""


@contextmanager
def job_server(options: PipelineOptions) -> Iterator[JobService]:
    """Connect to the job server, or start one, name it in the options, and silence what Beam prints meanwhile."""
    _refuse_no_job(options)
    portable = options.view_as(PortableOptions)
    if runner_name(options) == "FlinkRunner":
        flink = options.view_as(FlinkRunnerOptions)
        flink.flink_master = FlinkRunner.add_http_scheme(flink.flink_master)
        engine.refuse_unreachable(options)
    with _quiet(), workers_by_connection(), ExitStack() as stack:
        is_external = portable.job_endpoint is not None
        if not is_external:
            if runner_name(options) not in _SERVERS:
                raise InputError(f"--runner={runner_name(options)} needs --job_endpoint=HOST:PORT, Beam's job server")
            portable.job_endpoint = stack.enter_context(_start_server(options))
        _refuse_closed(portable.job_endpoint)
        channel = stack.enter_context(grpc.insecure_channel(portable.job_endpoint))
        try:
            grpc.channel_ready_future(channel).result(timeout=_CONNECTING_S)
        except grpc.FutureTimeoutError as error:
            problem = f"no job server answers at {portable.job_endpoint} within {_CONNECTING_S:.0f} s"
            raise InputError(f"{problem}; check --job_endpoint") from error
        yield JobService(channel, portable.job_endpoint, is_external)


def _refuse_closed(endpoint: str) -> None:
    """Refuse an endpoint without a listening process, because gRPC would retry until its deadline."""
    host, _, port = endpoint.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECTING_S).close()
    except ValueError as error:
        raise InputError(f"--job_endpoint must be HOST:PORT; found {endpoint!r}") from error
    except OSError as error:
        problem = f"no job server answers at {endpoint}: {error.strerror or error}"
        raise InputError(f"{problem}; check --job_endpoint") from error


def _refuse_no_job(options: PipelineOptions) -> None:
    if options.view_as(PortableOptions).output_executable_path:
        raise InputError("--output_executable_path writes a jar instead of running a job")
    flink, spark = options.view_as(FlinkRunnerOptions), options.view_as(SparkRunnerOptions)
    for name, is_set in {"flink": flink.flink_submit_uber_jar, "spark": spark.spark_submit_uber_jar}.items():
        if is_set:
            raise InputError(f"leave out --{name}_submit_uber_jar: rankbeam follows and cancels jobs at a job server")


@contextmanager
def _start_server(options: PipelineOptions) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="rankbeam-job-server-", ignore_cleanup_errors=True) as folder:
        server = options.view_as(JobServerOptions)
        server.artifacts_dir = server.artifacts_dir or f"{folder}/artifacts"
        command, endpoint = _command(options)
        log = Path(folder, "log.txt")
        for name in ("flink-conf.yaml", "config.yaml"):  # until Flink 1.20, and from Flink 2.0
            Path(folder, name).write_text(_FLINK)
        with log.open("wb") as file:
            process = _process(command, file, {**_JAVA, "FLINK_CONF_DIR": folder})
        try:
            _wait_for(endpoint, process, log)
            yield endpoint
        finally:
            silence_threads()  # workers in this process lose their connection to it
            _stop(process)


def _command(options: PipelineOptions) -> tuple[list[str], str]:
    """The command that starts the server, and its address; Beam downloads the server's jar or program."""
    try:
        command, endpoint = _SERVERS[runner_name(options)](options).subprocess_cmd_and_endpoint()
    except (ValueError, RuntimeError, URLError, OSError) as error:
        raise InputError(f"Beam's job server cannot be fetched: {error}") from error
    return [str(word) for word in command], endpoint


def _process(command: list[str], log: IO[bytes], defaults: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    if shutil.which(command[0]) is None:
        raise InputError(f"Beam's job server cannot be started: {command[0]} is not installed, or not executable")
    guarded = [sys.executable, "-I", "-S", guard.__file__, *command]
    return subprocess.Popen(  # noqa: S603  Beam's own command
        guarded, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True, env={**defaults, **os.environ}
    )


def _wait_for(endpoint: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + _STARTING_S
    with grpc.insecure_channel(endpoint) as channel:
        ready = grpc.channel_ready_future(channel)
        while time.monotonic() < deadline:
            try:
                ready.result(timeout=0.2)
            except grpc.FutureTimeoutError:
                if process.poll() is None:
                    continue
                last = log.read_text(errors="replace").strip()[-_SHOWN:]
                raise InputError(f"Beam's job server ended at once, with status {process.poll()}: {last}") from None
            return
    raise InputError(f"Beam's job server does not answer within {_STARTING_S:.0f} s")


def _stop(process: "subprocess.Popen[bytes]") -> None:
    process.communicate()  # closes its input, which ends the guard


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence Beam: errors come back with the job, and rankbeam reports them.

    Beam's workers print every traceback, besides returning it; a name in their module hides Python's `print` from them.
    """
    modules = [vars(log_handler), vars(sdk_worker)]
    for names in modules:
        names["print"] = lambda *_, **__: None
    try:
        with quiet_beam():
            yield
    finally:
        for names in modules:
            names.pop("print", None)


class LoopbackPool(worker_pool_main.BeamFnExternalWorkerPoolServicer):
    """Beam's pool of workers in this process, but each worker belongs to the connection that started it.

    Beam's pool identifies workers by number only. If two TaskManagers each have a worker 1-1, the first one to stop its
    worker would end the other's: "SDK harness closed connection".
    """

    def __init__(self, *arguments: Any, **named_arguments: Any) -> None:
        super().__init__(*arguments, **named_arguments)
        self._lock = threading.Lock()
        self._harnesses: list[tuple[str, str, SdkHarness]] = []

    def StartWorker(self, request: Any, context: Any) -> Any:  # noqa: N802  gRPC's name
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
