"""Files of labels: a folder of Parquet files, or one of them."""

import io

import pyarrow as pa
import pyarrow.parquet as pq

from rankbeam.transforms.clients.storage import files, matching, parquet
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.labels import LABELS, Label, Labels, text_hash

FOLDER = "labels"
"""The folder of labels and tasks inside an output folder."""


def read_labels(path: str) -> Labels:
    """The labels of a file or of all files of a folder.

    Raises:
        InputError: a file is not a file of labels, or two files hold different decisions of one annotator on an item.
    """
    rows: dict[Label, None] = {}
    known: dict[tuple[str, str], tuple[str, str]] = {}
    for name in matching.expand(path):
        with parquet.open_file(name) as file:
            if missing := [column for column in LABELS.names if column not in file.schema_arrow.names]:
                problem = f"has no column {missing[0]}; labels are what `rankbeam label OUT --apply FILE` writes"
                raise InputError(problem, path=name)
            table = file.read(LABELS.names)
        for row in Labels.of(table).rows:
            rows[row] = None
            decision, place = known.setdefault((row.item_id, row.annotator), (row.decision, name))
            if decision != row.decision:
                problem = (
                    f"{row.annotator!r} decided {row.decision!r} on item {row.item_id}, and {decision!r} in {place}"
                )
                raise InputError(f"{problem}; remove one of the two files", path=name)
    return Labels(tuple(rows))


def save_labels(folder: str, rows: list[Label]) -> str:
    """Write labels to a file of their own; equal labels have the same file, so saving them again changes nothing."""
    ordered = sorted(rows, key=lambda row: (row.item_id, row.annotator, row.owner_hash or "", row.position or 0))
    table = pa.Table.from_pylist([vars(row) for row in ordered], schema=LABELS)
    content = io.BytesIO()
    pq.write_table(table, content)
    digest = text_hash("\n".join(f"{row.item_id} {row.annotator} {row.decision}" for row in ordered))
    path = files.join(folder, f"labels-{digest[:16]}.parquet")
    files.make_folder(folder)
    files.write(path, content.getvalue())
    return path
