"""A checkout, what is built from it, and programs that are run beside it."""

import os
import subprocess
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

PACKAGES = ("pipelines", "transforms")
BESIDE = ("rankbeam", "deploy", "tests", "examples", "LICENSE", "Makefile", "README.md", "pyproject.toml", "setup.py")


@dataclass
class Built:
    """A checkout and what was built from it; archives are path in the archive → content."""

    checkout: Path
    sdist: Mapping[str, bytes]
    wheel: Mapping[str, bytes]
    wheel_file: Path

    @property
    def project(self) -> dict[str, Any]:
        """The table `project` of pyproject.toml."""
        project: dict[str, Any] = tomllib.loads((self.checkout / "pyproject.toml").read_text())["project"]
        return project

    @property
    def sources(self) -> set[str]:
        """Every file of the package, by its path in the archives, where what is a link here is a folder."""
        package = self.checkout / "rankbeam"
        files = [path for path in package.glob("*") if path.is_file()]
        files += [path for name in PACKAGES for path in (package / name).rglob("*") if path.is_file()]
        files += [path for name in ("bigquery", "duckdb") for path in (package / "deploy" / name).glob("*.sql")]
        files += [path for path in (package / "examples").glob("*/**/*") if path.is_file()]
        return {path.relative_to(self.checkout).as_posix() for path in files}

    @property
    def modules(self) -> dict[str, str]:
        """Every module, and its file."""
        files = [PurePosixPath(path) for path in self.sources if path.endswith(".py")]
        dotted = {path: ".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in files}
        return {dotted[path]: str(path) for path in files}


def run(*command: str | Path, cwd: Path, status: int = 0) -> str:
    """The output of a command that must end with a status; it sees no setting of Python's, such as PYTHONPATH."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout
