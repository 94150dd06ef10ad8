"""Folders that all runs of a user share: a ledger, and leases."""

import os
from pathlib import Path

from rankbeam.transforms.clients.storage import files

USER = "user"
LEDGER = "RANKBEAM_LEDGER"
"""The variable that names the ledger of experiments that name none: a folder, or "user"."""


def data_folder(name: str) -> str:
    """A folder below the user's data folder."""
    given = os.environ.get("XDG_DATA_HOME", "").strip()
    return str((Path(given) if given else Path.home() / ".local" / "share") / "rankbeam" / name)


def ledger_of(given: str | None, folder: str) -> tuple[str | None, bool]:
    """The ledger that an experiment names, and whether it is one on this machine for all of the user's runs."""
    if given is not None and given != USER:
        return files.below(folder, given), False
    variable = os.environ.get(LEDGER, "").strip()
    if given is None and not variable:
        return None, False
    named = variable if variable not in ("", USER) else data_folder("ledger")
    return files.absolute(named), files.is_local(named)
