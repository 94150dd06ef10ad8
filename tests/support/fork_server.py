"""The process that `processes` forks others from: it imports once what they need, and then waits for requests.

A child runs the code of its request as the main module, after the code below has ended: what ends it, what it prints
then and its status are what Python makes of them. Only its memory is left to the system: half a second of CPU time goes
into taking apart what the server has imported.
"""

import atexit
import gc
import importlib
import io
import json
import os
import select
import signal
import socket
import sys
import tempfile
import types
from importlib.resources import files
from typing import Any

LOOK_AFTER_S = 0.5
REQUEST_BYTES = 1 << 20
PRELOADED = (
    "rankbeam.__main__",
    "rankbeam.pipelines.experiment.load",
    "rankbeam.pipelines.run.answers",
    "rankbeam.pipelines.run.evaluate",
    "rankbeam.pipelines.report.page",
    "rankbeam.pipelines.cli.outcome",
    "rankbeam.pipelines.manage.finish",
    "rankbeam.pipelines.plan.plan",
    "rankbeam.pipelines.run.calling",
    "rankbeam.pipelines.show.terminal",
    "rankbeam.transforms.clients.bigquery",
    "rankbeam.transforms.clients.calls.fanout",
    "rankbeam.transforms.clients.calls.lanes",
    "rankbeam.transforms.clients.models.offline",
    "rankbeam.transforms.clients.retrievers.lexical",
    "rankbeam.transforms.clients.retrievers.http_connection",
    "rankbeam.transforms.clients.warehouse.duckdb",
    "apache_beam.runners.portability.fn_api_runner.fn_runner",
    "rankbeam.transforms.judge.measure",
    "rankbeam.transforms.retrieve.replay",
    "pyarrow.dataset",
    "rich.table",
    "grpc.aio",
    "httpx",
    "support.standins.rag_engine",
    "support.standins.rag_corpora",
    "support.standins.evaluation",
    "support.standins.vertex_search",
    "support.standins.http",
    "support.standins.gemini",
    "support.standins.openai",
)


def serve(requests: socket.socket) -> dict[str, Any]:
    """Fork a child for every request until the tests are gone; only the children return, each with its request."""
    woken, wake = socket.socketpair()
    wake.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    parent, running = os.getppid(), dict[int, socket.socket]()
    while os.getppid() == parent:
        readable, _, _ = select.select([requests, woken], [], [], LOOK_AFTER_S)
        if woken in readable:
            woken.recv(1024)
        if requests in readable:
            message, descriptors, _, _ = socket.recv_fds(requests, REQUEST_BYTES, 4)
            if not message:
                break
            answers = socket.socket(fileno=descriptors.pop())
            if not (child := os.fork()):
                signal.set_wakeup_fd(-1)
                # Each by its object, which would otherwise close what has the same number later.
                for stream in (requests, woken, wake, answers, *running.values()):
                    stream.close()
                become_a_process_of_its_own(descriptors)
                return json.loads(message)  # type: ignore[no-any-return]
            running[child] = answers
            answers.send(json.dumps(child).encode())
            for descriptor in descriptors:
                os.close(descriptor)
        report_what_ended(running)
    os._exit(0)


def report_what_ended(running: dict[int, socket.socket]) -> None:
    """Say the status of every child that has ended."""
    while running:
        child, status = os.waitpid(-1, os.WNOHANG)
        if not child:
            return
        with running.pop(child) as answers:
            try:
                answers.send(json.dumps(status).encode())
            except BrokenPipeError:
                continue  # its process object is gone


def become_a_process_of_its_own(streams: list[int]) -> None:
    """Take the streams of the request, and what Python does with signals."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # ignored where the tests run under nohup
    atexit.register(gc.unfreeze)  # extensions report what is left at the end as leaks
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    files = [io.FileIO(number, mode, closefd=False) for number, mode in enumerate("rww")]
    sys.stdin = io.TextIOWrapper(io.BufferedReader(files[0]), "utf-8")
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(files[1]), "utf-8")
    sys.stderr = io.TextIOWrapper(io.BufferedWriter(files[2]), "utf-8", "backslashreplace", line_buffering=True)


def main_module(request: dict[str, Any]) -> dict[str, Any]:
    """Take folder, environment and arguments of the request; the namespace of a new main module."""
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    tempfile.tempdir = None  # TMPDIR may be another
    sys.argv = ["-c", *request["arguments"]]
    sys.path[:0] = ["", *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    return module.__dict__


class AtOnce:
    """Ends the process when Python has done all that code could notice: handlers of its end, waiting for threads."""

    def __init__(self) -> None:
        self.status: int | None = None
        atexit.register(self.leave)

    def __enter__(self) -> None:
        """The code that runs decides the status."""

    def __exit__(self, _kind: object, error: BaseException | None, _where: object) -> None:
        if isinstance(error, SystemExit):
            self.status = error.code if isinstance(error.code, int) else int(error.code is not None)
        elif not isinstance(error, KeyboardInterrupt):  # whose status is that of a signal
            self.status = int(error is not None)

    def leave(self) -> None:
        """Has to be the handler that was registered first, as it runs last."""
        if self.status is not None:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(self.status & 0xFF)


if __name__ == "__main__":
    AT_ONCE = AtOnce()
    for name in PRELOADED:
        importlib.import_module(name)
    from support import beam_habits

    from rankbeam.pipelines.report.page import environment

    beam_habits.make_cheap()
    for template in files("rankbeam.pipelines.report").joinpath("templates").iterdir():
        environment().get_template(template.name)  # which compiles it
    sys.path[:] = [path for path in sys.path[1:] if path not in os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    gc.collect()
    gc.freeze()
    REQUEST = serve(socket.socket(fileno=int(sys.argv[1])))
    with AT_ONCE:
        exec(compile(REQUEST["code"], "<string>", "exec"), main_module(REQUEST))  # noqa: S102  code of our tests
