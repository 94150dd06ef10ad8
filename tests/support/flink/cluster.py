"""A standalone Flink cluster: a JobManager, TaskManagers and a pool of Python workers, each a process of its own.

The Flink of PyPI has neither `bin/` nor `conf/`, so this starts the classes that Flink's own scripts start. Every
process has a folder below the cluster's for its configuration, its data and its log.
"""

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.flink import programs
from support.flink.processes import free_ports, kill, start

STARTING_S, PAUSE_S, SLOTS = 120.0, 0.2, 2
RESTART = """restart-strategy.type: fixed-delay
restart-strategy.fixed-delay.attempts: 5
restart-strategy.fixed-delay.delay: 3s
"""
_JOB_MANAGER = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
_TASK_MANAGER = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
_OPENED = "lang net io nio lang.reflect text time util util.concurrent util.concurrent.atomic util.concurrent.locks"
_OPENS = [f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in _OPENED.split()]
_OPENS += ["--add-opens=java.base/sun.nio.ch=ALL-UNNAMED", "--add-exports=java.base/sun.net.util=ALL-UNNAMED"]
_MEMORY = {  # Flink's scripts work these out; without them a TaskManager refuses to start
    "cpu.cores": "2",
    "memory.task.heap.size": "700m",
    "memory.task.off-heap.size": "64m",
    "memory.network.min": "384m",
    "memory.network.max": "384m",
    "memory.managed.size": "384m",
    "memory.framework.heap.size": "128m",
    "memory.framework.off-heap.size": "128m",
    "memory.jvm-metaspace.size": "512m",
    "memory.jvm-overhead.min": "192m",
    "memory.jvm-overhead.max": "192m",
}
_CONFIGURATION = """jobmanager.rpc.address: localhost
jobmanager.rpc.port: {rpc}
jobmanager.bind-host: localhost
rest.port: {rest}
rest.address: localhost
rest.bind-address: localhost
blob.server.port: {blob}
blob.storage.directory: {folder}/blob
io.tmp.dirs: {folder}/tmp
taskmanager.host: localhost
taskmanager.bind-host: localhost
taskmanager.numberOfTaskSlots: {slots}
parallelism.default: 1
taskmanager.network.sort-shuffle.min-buffers: 64
heartbeat.timeout: 20000
pekko.ask.timeout: 60 s
cluster.uncaught-exception-handling: FAIL
{more}"""
_LOGGING = """rootLogger.level=INFO
rootLogger.appenderRef.f.ref=F
appender.f.name=F
appender.f.type=FILE
appender.f.fileName={folder}/log.txt
appender.f.layout.type=PatternLayout
appender.f.layout.pattern=%d{{HH:mm:ss,SSS}} %-5p %c{{1}} %m%n
"""


@dataclass
class Cluster:
    """A running cluster.

    Attributes:
        address: host and port of Flink's REST API and dashboard.
        pool: host and port of the pool of Python workers.
        folder: folder for all its files.
        processes: by name: `jobmanager`, `taskmanager-1`, …, `workers`.
    """

    address: str
    pool: str
    folder: Path
    processes: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    def get(self, path: str) -> Any:
        """An answer of Flink's REST API."""
        with urllib.request.urlopen(f"http://{self.address}{path}", timeout=10) as answer:
            return json.load(answer)

    def jobs(self) -> list[dict[str, Any]]:
        """The jobs that the cluster knows, the latest last."""
        return sorted(self.get("/jobs/overview")["jobs"], key=lambda job: int(job["start-time"]))

    def kill(self, name: str) -> None:
        """Kill a process at once."""
        kill(self.processes.pop(name))

    def options(self, *, external: bool = False, parallelism: int = SLOTS) -> list[str]:
        """The options with which rankbeam submits a job to this cluster."""
        options = ["--runner=FlinkRunner", f"--flink_master={self.address}", "--flink_version=1.19"]
        options += [f"--flink_job_server_jar={programs.JOB_SERVER}", f"--parallelism={parallelism}"]
        workers = ["EXTERNAL", f"--environment_config={self.pool}"] if external else ["LOOPBACK"]
        return [*options, f"--environment_type={workers[0]}", *workers[1:]]


@contextmanager
def cluster(
    folder: Path,
    task_managers: int = 2,
    more: str = "",
    environment: Mapping[str, str] | None = None,
    heap_mb: int = 1200,
) -> Iterator[Cluster]:
    """A cluster for as long as the block lasts.

    Args:
        folder: an empty folder for its files.
        task_managers: number of task managers with two slots each.
        more: lines of Flink's configuration.
        environment: variables that the Python workers have in addition.
        heap_mb: most memory of the objects of a Java process; its buffers may have as much, and at least 900 MB.
    """
    rpc, rest, blob, pool = free_ports(4)
    running = Cluster(f"localhost:{rest}", f"localhost:{pool}", folder)
    ports = {
        "rpc": rpc,
        "rest": rest,
        "blob": blob,
        "slots": SLOTS,
        "more": more,
        "heap_mb": heap_mb,
        "direct_mb": max(900, heap_mb),
    }
    try:
        running.processes["jobmanager"] = _java(
            folder / "jobmanager", _JOB_MANAGER, ["--executionMode", "cluster"], ports
        )
        memory = [word for name, size in _MEMORY.items() for word in ("-D", f"taskmanager.{name}={size}")]
        for number in range(1, task_managers + 1):
            name = f"taskmanager-{number}"
            named = ["-D", f"taskmanager.resource-id={name}"]
            running.processes[name] = _java(folder / name, _TASK_MANAGER, [*memory, *named], ports)
        running.processes["workers"] = _workers(folder / "workers", pool, environment or {})
        _wait_for(running, task_managers)
        yield running
    finally:
        for process in running.processes.values():
            kill(process)


def _java(folder: Path, main: str, arguments: list[str], values: Mapping[str, object]) -> "subprocess.Popen[bytes]":
    (folder / "tmp").mkdir(parents=True)
    (folder / "config.yaml").write_text(_CONFIGURATION.format(folder=folder, **values))
    (folder / "log4j.properties").write_text(_LOGGING.format(folder=folder))
    memory = [
        f"-Xmx{values['heap_mb']}m",
        f"-XX:MaxDirectMemorySize={values['direct_mb']}m",
        "-XX:MaxMetaspaceSize=512m",
    ]
    logging = f"-Dlog4j.configurationFile={folder}/log4j.properties"
    command = ["java", *memory, *_OPENS, logging, "-cp", f"{programs.LIBRARIES}/*", main, "--configDir", str(folder)]
    return start([*command, *arguments], folder / "out.txt")


def _workers(folder: Path, port: int, environment: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    folder.mkdir(parents=True)
    command = [sys.executable, "-m", "rankbeam.pipelines.portable.worker_pool", f"--port={port}"]
    return start(command, folder / "out.txt", environment, cwd=folder)


def _wait_for(running: Cluster, task_managers: int) -> None:
    deadline = time.monotonic() + STARTING_S
    while time.monotonic() < deadline:
        with suppress(OSError):
            if running.get("/overview")["slots-total"] == task_managers * SLOTS:  # known after the TaskManagers
                return
        for name, process in running.processes.items():
            if process.poll() is not None:
                raise RuntimeError(f"{name} ended:\n{(running.folder / name / 'out.txt').read_text()[-2000:]}")
        time.sleep(PAUSE_S)
    raise RuntimeError(f"the cluster did not start within {STARTING_S:.0f} s; its logs are in {running.folder}")
