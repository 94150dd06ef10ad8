"""One execution of an experiment."""

from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa


@dataclass(frozen=True)
class Run:
    """One execution of an experiment."""

    run_id: str
    experiment: str
    started_at: datetime  # when it began, in UTC
    experiment_yaml: str

    def stamp(self, table: pa.Table, schema: pa.Schema) -> pa.Table:
        """Add the common columns, and bring the columns into the order and types of the schema."""
        values = {"run_id": self.run_id, "experiment": self.experiment, "started_at": self.started_at}
        arrays = [
            pa.repeat(pa.scalar(values[field.name], field.type), table.num_rows)
            if field.name in values
            else table[field.name].cast(field.type)
            for field in schema
        ]
        return pa.Table.from_arrays(arrays, schema=schema)
