"""Where and with what the figures were measured."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

PACKAGES = ("rankbeam", "apache-beam", "pyarrow", "numpy", "duckdb")
PEERS = ("pytrec-eval-terrier", "ir-measures", "ranx", "beir", "pandas", "polars", "numba")


def described() -> list[str]:
    """Date, machine, and versions, in lines."""
    cores, memory = os.cpu_count(), os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    hardware = f"{_processor()}, {cores} cores, {memory:.0f} GB of memory, {platform.system()} {platform.release()}"
    today = f"{datetime.now(UTC):%Y-%m-%d}, load {os.getloadavg()[0]:.1f}"
    versions = [f"{name} {found}" for name in PACKAGES + PEERS if (found := _version(name))]
    return [today, hardware, f"Python {platform.python_version()}, {', '.join(versions)}{_commit()}"]


def _processor() -> str:
    """The processor's name: platform.processor() does not know it on Linux."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _commit() -> str:
    """The commit of this checkout, if it is one."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f"; commit {found}"
