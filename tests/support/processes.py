"""Processes of the code under test that start at once: forked from a server that has imported what they need.

Each has its own memory, folder, environment, streams, signals and exit status, and runs the code that a new Python
would run. A test of the start itself, of imports or of Python's own options starts a new Python instead.
"""

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock, Thread
from types import TracebackType
from typing import IO, Any, Self

COMMAND = "from rankbeam.__main__ import command; command()"
TESTS = Path(__file__).parents[1]
# With one thread in the server, a fork copies all of it. BLAS and Arrow's allocator would start threads of their own.
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}

_lock = Lock()
_servers: dict[int, socket.socket] = {}
"""The connection to the server, by the process that started it: a forked test process starts its own."""


class Process:
    """A forked process; as far as it goes, with the methods of `subprocess.Popen`.

    Args:
        code: Python code to run as `python -c` does.
        arguments: its arguments.
        cwd: the folder it works in; by default that of this process.
        env: its environment; by default that of this process.
        stdin: a file, or `subprocess.PIPE`; by default that of this process. So are the other two.
    """

    def __init__(
        self,
        code: str,
        *arguments: str,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: Any = None,
        stdout: Any = None,
        stderr: Any = None,
    ) -> None:
        self.returncode: int | None = None
        self.stdin: IO[str] | None = None
        self.stdout: IO[str] | None = None
        self.stderr: IO[str] | None = None
        theirs = []
        for number, (name, stream) in enumerate((("stdin", stdin), ("stdout", stdout), ("stderr", stderr))):
            if stream == subprocess.PIPE:
                reading, writing = os.pipe()
                theirs.append(writing if number else reading)
                setattr(self, name, os.fdopen(*((reading, "r") if number else (writing, "w")), encoding="utf-8"))
            elif stream == subprocess.DEVNULL:
                theirs.append(os.open(os.devnull, os.O_RDWR))
            else:
                theirs.append(os.dup(number if stream is None else stream.fileno()))
        request = {
            "code": code,
            "arguments": [str(argument) for argument in arguments],
            "cwd": str(cwd or Path.cwd()),
            "environment": dict(os.environ if env is None else env),
        }
        self._answers, answers = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with answers, _lock:
            socket.send_fds(_server(), [json.dumps(request).encode()], [*theirs, answers.fileno()])
        for descriptor in theirs:
            os.close(descriptor)
        self.pid: int = self._answer(None)

    def _answer(self, timeout: float | None) -> Any:
        self._answers.settimeout(timeout)
        try:
            answer = self._answers.recv(64)
        except (TimeoutError, BlockingIOError) as error:
            raise subprocess.TimeoutExpired("forked", timeout or 0.0) from error
        if not answer:
            raise RuntimeError("the fork server ended; its standard error says why")
        return json.loads(answer)

    def wait(self, timeout: float | None = None) -> int:
        """Its status when it ends; of one that a signal ended, the negative number of the signal."""
        if self.returncode is None:
            self.returncode = os.waitstatus_to_exitcode(self._answer(timeout))
            self._answers.close()
        return self.returncode

    def poll(self) -> int | None:
        """Its status if it has ended."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Close its input; return all that it writes to pipes until it ends."""
        if self.stdin is not None:
            self.stdin.close()
        texts = {"stdout": "", "stderr": ""}

        def read(name: str, pipe: IO[str]) -> None:
            texts[name] = pipe.read()

        deadline = None if timeout is None else time.monotonic() + timeout
        pipes = [(name, pipe) for name in texts if (pipe := getattr(self, name)) is not None]
        readers = [Thread(target=read, args=arguments, daemon=True) for arguments in pipes]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(None if deadline is None else max(deadline - time.monotonic(), 0.0))
            if reader.is_alive():
                raise subprocess.TimeoutExpired("forked", timeout or 0.0)
        self.wait(None if deadline is None else max(deadline - time.monotonic(), 0.0))
        return texts["stdout"], texts["stderr"]

    def send_signal(self, number: signal.Signals) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        for pipe in (self.stdout, self.stderr, self.stdin):
            if pipe is not None:
                pipe.close()
        if error is not None:
            self.kill()
        self.wait()


def run(code: str, *arguments: str, timeout: float | None = None, **more: Any) -> "subprocess.CompletedProcess[str]":
    """Run code in a forked process, and capture what it prints; after the timeout it is killed."""
    with Process(code, *arguments, **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}) as process:
        try:
            stdout, stderr = process.communicate(timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(["-c", code, *arguments], process.wait(), stdout, stderr)


def _server() -> socket.socket:
    """The connection to the server of this process, which is started when it is first needed."""
    if os.getpid() not in _servers:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        path = [str(TESTS), os.environ.get("PYTHONPATH")]
        with theirs:
            server = subprocess.Popen(
                [sys.executable, "-m", "support.fork_server", str(theirs.fileno())],
                env={**os.environ, **ONE_THREAD, "PYTHONPATH": os.pathsep.join(filter(None, path))},
                cwd=TESTS, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            )  # fmt: skip
        _servers[os.getpid()] = ours
        atexit.register(_stop, os.getpid(), server)
    return _servers[os.getpid()]


def _stop(starter: int, server: "subprocess.Popen[bytes]") -> None:
    """End the server, in the process that started it."""
    if os.getpid() == starter:
        _servers.pop(starter).close()
        server.wait()


def as_nobody(function: Callable[[], Any]) -> Any:
    """The result of a function, such as JSON can be, without root's permissions; None if it fails."""
    import apache_beam.io.localfilesystem  # noqa: F401  only root may read Python's own folder

    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        try:
            if os.geteuid() == 0:
                os.setuid(65534)
            os.write(writer, json.dumps(function()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as output:
        return json.loads(output.read() or b"null")
