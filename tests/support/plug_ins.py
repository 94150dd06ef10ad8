"""Packages with plug-ins as pip installs them, for commands in processes of their own."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from support import processes


def install(site: Path, groups: Mapping[str, Mapping[str, str]], package: str = "own") -> None:
    """Write the entry points of a package as pip does."""
    info = site / f"{package}-1.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n")
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in of.items()) for group, of in groups.items()
    ]
    (info / "entry_points.txt").write_text("".join(lines))


def run(folder: Path, *arguments: str, site: str = "site") -> subprocess.CompletedProcess[str]:
    """Run a command with the packages in a folder `site`; entry points are read once in a process."""
    code = f"import sys; sys.path.insert(0, {str(folder / site)!r}); {processes.COMMAND}"
    return processes.run(code, *arguments, cwd=folder, env={**os.environ, "COLUMNS": "200"})
