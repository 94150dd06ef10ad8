"""The first columns of every table."""

import pyarrow as pa

COMMON = (
    pa.field("run_id", pa.string(), nullable=False),
    pa.field("experiment", pa.string(), nullable=False),
    pa.field("started_at", pa.timestamp("us", "UTC"), nullable=False),
)
"""Columns of every table, so that each can be partitioned and clustered without a join."""


def required(name: str, kind: pa.DataType) -> pa.Field:
    """A column that is never null."""
    return pa.field(name, kind, nullable=False)
