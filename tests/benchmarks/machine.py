"""Machine and versions with which the figures were measured."""

import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from tools import PEERS_PYTHON

PACKAGES = ("rankbeam", "apache-beam", "pyarrow", "numpy", "duckdb")
PEERS = ("pytrec-eval-terrier", "ir-measures", "ranx", "beir", "pandas", "polars", "numba")


def described() -> list[str]:
    """Date, machine, and versions, in lines."""
    cores, memory = os.cpu_count(), os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    hardware = f"{_processor()}, {cores} cores, {memory:.0f} GB of memory, {platform.system()} {platform.release()}"
    today = f"{datetime.now(UTC):%Y-%m-%d}, load {os.getloadavg()[0]:.1f}"
    installed = _versions(sys.executable, PACKAGES) | _versions(PEERS_PYTHON, PEERS)
    versions = [f"{name} {version}" for name, version in installed.items() if version is not None]
    return [today, hardware, f"Python {platform.python_version()}, {', '.join(versions)}{_commit()}"]


def _processor() -> str:
    """The processor's name: platform.processor() does not know it on Linux."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _versions(python: str, packages: tuple[str, ...]) -> dict[str, str | None]:
    """The versions of packages in the environment of a Python; None for what is not there."""
    look = (
        "import json; from importlib.metadata import distributions; "
        f"found = {{each.name.lower(): each.version for each in distributions()}}; "
        f"print(json.dumps({{name: found.get(name) for name in {packages!r}}}))"
    )
    versions: dict[str, str | None] = json.loads(subprocess.check_output([python, "-c", look]))
    return versions


def _commit() -> str:
    """The commit of this checkout, if it is one."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f"; commit {commit}"
