"""What `rankbeam runs --prune --indexes` does: list the indexes beside an output that nothing uses, and delete them."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from rankbeam.pipelines.show.screen import WHOLE, Screen
from rankbeam.pipelines.show.tabular import Table
from rankbeam.transforms.clients.bigquery.read_source import is_table
from rankbeam.transforms.clients.retrievers.index import unused as kept
from rankbeam.transforms.clients.storage import files, gcs
from rankbeam.transforms.records.errors import InputError

FOLDER = "indexes"
DAYS = 30.0
"""An index that no run has used for so long is not needed, by default."""


def unused(output: str, days: float, now: datetime | None = None) -> list[kept.KeptIndex]:
    """The indexes beside an output that no run has used for some days."""
    if is_table(output):
        raise InputError("is no folder, beside which indexes are kept", path=output)
    before = (now or datetime.now(UTC)) - timedelta(days=days)
    try:
        return [index for index in kept.kept_indexes(files.join(output, FOLDER)) if index.used < before]
    except files.errors(output) as error:
        raise InputError(f"cannot be listed: {gcs.explained(error, output)}", path=output) from error


def delete(indexes: Sequence[kept.KeptIndex]) -> None:
    """Delete indexes; a run that needs one builds it again."""
    for index in indexes:
        try:
            kept.delete([index])
        except files.errors(index.folder) as error:
            raise InputError(f"cannot be deleted: {gcs.explained(error, index.folder)}", path=index.folder) from error


def as_text(indexes: Sequence[kept.KeptIndex], screen: Screen = WHOLE) -> str:
    """Indexes as a table."""
    if not indexes:
        return "every index there was used since; nothing to delete"
    rows = [[index.folder, f"{index.used:%Y-%m-%d %H:%M:%S}", f"{index.size / 1e6:,.1f}"] for index in indexes]
    return screen.table(Table(["index", "used (UTC)", "MB"], rows, 2))


def as_json(indexes: Sequence[kept.KeptIndex]) -> str:
    """Indexes as JSON."""
    rows = [{"folder": index.folder, "used": index.used.isoformat(), "bytes": index.size} for index in indexes]
    return json.dumps({"indexes": rows}, indent=2, ensure_ascii=False)
