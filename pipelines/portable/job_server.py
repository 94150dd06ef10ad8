"""Beam's job server: the one that --job_endpoint names, or one that this process starts.

Beam's runners start their job server with a handler of SIGINT of its own, in the process group of this process, where
Ctrl-C stops the server before it can cancel the job. Here the server has its own session, and ends with the run, also
where this process is killed.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO
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

from rankbeam.pipelines.local.interrupt import silence_threads
from rankbeam.pipelines.portable import engine, guard
from rankbeam.pipelines.portable.loopback import workers_by_connection
from rankbeam.pipelines.portable.service import JobService
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


@contextmanager
def job_server(options: PipelineOptions) -> Iterator[JobService]:
    """Connect to the job server, or start one, and name it in the options."""
    _refuse_no_job(options)
    portable = options.view_as(PortableOptions)
    if runner_name(options) == "FlinkRunner":
        flink = options.view_as(FlinkRunnerOptions)
        flink.flink_master = FlinkRunner.add_http_scheme(flink.flink_master)
        engine.refuse_unreachable(options)
    with workers_by_connection(), ExitStack() as stack:
        is_external = portable.job_endpoint is not None
        if not is_external:
            if runner_name(options) not in _SERVERS:
                raise InputError(f"--runner={runner_name(options)} needs --job_endpoint=HOST:PORT, Beam's job server")
            portable.job_endpoint = stack.enter_context(_started(options))
        _refuse_closed(portable.job_endpoint)
        channel = stack.enter_context(grpc.insecure_channel(portable.job_endpoint))
        try:
            grpc.channel_ready_future(channel).result(timeout=_CONNECTING_S)
        except grpc.FutureTimeoutError as error:
            problem = f"no job server answers at {portable.job_endpoint} within {_CONNECTING_S:.0f} s"
            raise InputError(f"{problem}; check --job_endpoint") from error
        yield JobService(channel, portable.job_endpoint, is_external)


def _refuse_closed(endpoint: str) -> None:
    """Refuse an endpoint that no process listens on: gRPC would retry until its deadline."""
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
def _started(options: PipelineOptions) -> Iterator[str]:
    """Start a job server at a free port of this machine."""
    with tempfile.TemporaryDirectory(prefix="rankbeam-job-server-", ignore_cleanup_errors=True) as folder:
        server = options.view_as(JobServerOptions)
        server.artifacts_dir = server.artifacts_dir or f"{folder}/artifacts"
        command, endpoint = _command(options)
        log = Path(folder, "log.txt")
        with log.open("wb") as file:
            process = _process(command, file)
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


def _process(command: list[str], log: IO[bytes]) -> "subprocess.Popen[bytes]":
    if shutil.which(command[0]) is None:
        raise InputError(f"Beam's job server cannot be started: {command[0]} is not installed, or not executable")
    guarded = [sys.executable, "-I", "-S", guard.__file__, *command]
    return subprocess.Popen(  # noqa: S603  Beam's own command
        guarded, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True, env={**_JAVA, **os.environ}
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
