"""`output:` of an experiment: its schema, and the folders and the dataset that it names."""

import os
import re
from pathlib import Path
from typing import Any, Literal

from rankbeam.pipelines.config.sections import Section, Word
from rankbeam.pipelines.config.yaml_lines import YamlDocument
from rankbeam.transforms.clients.bigquery.names import DatasetName
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.clients.storage.other_filesystems import problem_of_scheme
from rankbeam.transforms.records.errors import InputError

_PLAIN_NAME = re.compile(r"\w[\w.-]*")
USER = "user"
LEDGER = "RANKBEAM_LEDGER"
"""Environment variable for the ledger of experiments that do not name one: a folder, or "user"."""


class OutputModel(Section):
    """`output:`.

    Attributes:
        path: folder for all results, by default out/NAME.
        rankings: if true, write all rankings, not only their scores. By default only rankings from called retrievers
            are written; those of an existing run are already in its file.
        ledger: folder that stores the answers of remote services, so that no call is paid for twice; experiments may
            share it. "user" is one folder in the user's data directory, for all of the user's runs. By default the
            folder named by RANKBEAM_LEDGER, or else `ledger` in `path`. A shared ledger does not hide answers that are
            already in `path`'s own `ledger`: both are read.
        leases: place where runs record which of them may call a quota pool: "ledger" for the ledger's folder, or "user"
            for one folder of the user, so that runs with different ledgers respect one quota together.
        private: if true, only the owner can read the files and folders of results and ledger; otherwise the umask
            decides.
        bigquery: dataset project.dataset into which the run is loaded after all its files are written.
    """

    path: Word
    rankings: bool | None = None
    ledger: Word | None = None
    leases: Literal["ledger", "user"] = "ledger"
    private: bool = False
    bigquery: Word | None = None


def set_path(value: dict[str, Any], output: str | None) -> None:
    """Set the folder for results: the option's, else out/NAME if the experiment does not name one."""
    section = value.get("output") or {}
    if not isinstance(section, dict) or (output is None and "path" in section):
        return
    name = value.get("name")
    if output is not None or (name is not None and _PLAIN_NAME.fullmatch(str(name))):
        value["output"] = {**section, "path": output or f"out/{name}"}


def output_of(located: YamlDocument, model: OutputModel) -> tuple[str | None, bool, str | None, DatasetName | None]:
    """The ledger and whether it is shared, as `_ledger` returns them, the folder of leases, and the dataset."""
    for key, place in (("path", model.path), ("ledger", model.ledger)):
        if (problem := problem_of_scheme(place or "")) is not None:
            located.report(("output", key), problem)
    leases = data_folder("leases") if model.leases == USER else None
    return *_ledger(located, model.ledger), leases, _dataset(located, model)


def _dataset(located: YamlDocument, model: OutputModel) -> DatasetName | None:
    if model.bigquery is None:
        return None
    from rankbeam.transforms.clients.bigquery.tables import destination  # few experiments need it

    try:
        return destination(model.bigquery)
    except InputError as error:
        located.report(("output", "bigquery"), str(error))
        return None


def data_folder(name: str) -> str:
    """A folder below the user's data folder."""
    folder = os.environ.get("XDG_DATA_HOME", "").strip()
    return str((Path(folder) if folder else Path.home() / ".local" / "share") / "rankbeam" / name)


def _ledger(located: YamlDocument, path: str | None) -> tuple[str | None, bool]:
    """The ledger that an experiment names, and whether all of the user's runs on this machine share it."""
    if path is not None and path != USER:
        return located.below(path), False
    variable = os.environ.get(LEDGER, "").strip()
    if path is None and not variable:
        return None, False
    named = variable if variable not in ("", USER) else data_folder("ledger")
    return files.absolute(named), files.is_local(named)
