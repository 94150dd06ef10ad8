"""Paths of Flink's jars, Beam's job server and Prism: the Makefile fetches or builds them once per machine."""

import os
import shutil
from pathlib import Path

FLINK_VERSION, JOB_SERVER_VERSION, PRISM_VERSION = "1.19.3", "2.62.0", "v2.77.0"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rankbeam"
FLINK = CACHE / f"flink-{FLINK_VERSION}"
LIBRARIES, JOB_SERVER = FLINK / "lib", FLINK / f"job-server-{JOB_SERVER_VERSION}.jar"
PRISM = CACHE / f"prism-{PRISM_VERSION}"


def missing_flink() -> str | None:
    """The reason why no Flink cluster can be started; None if one can."""
    if shutil.which("java") is None:
        return "Java is not installed"
    fetched = any(LIBRARIES.glob("flink-dist-*.jar")) and JOB_SERVER.exists()
    return None if fetched else f"Flink's jars are not in {FLINK}: make flink-jars"


def missing_prism() -> str | None:
    """The reason why Prism cannot be started; None if it can."""
    return None if PRISM.exists() else f"Prism is not at {PRISM}: make prism"


def prism() -> str:
    """Prism's program."""
    return str(PRISM)
