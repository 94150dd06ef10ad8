"""Arrow batches between stages: what they are keyed by, and how Beam carries them.

Beam has no coder for Arrow and would pickle, which writes the whole parent buffer of every slice; this one writes
Arrow's own stream format. A stage that passes batches on calls `register`.
"""

import pyarrow as pa
from apache_beam import coders

Bucketed = tuple[int, pa.RecordBatch]
"""A bucket of queries, and rows of it."""

SourceRows = tuple[int, tuple[int, pa.RecordBatch]]
"""A bucket, the source its rows come from, and the rows."""


class RecordBatchCoder(coders.Coder):
    """Encodes a record batch with its schema."""

    def encode(self, value: pa.RecordBatch) -> bytes:
        """The batch as an Arrow stream."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, value.schema) as stream:
            stream.write_batch(value)
        encoded: bytes = sink.getvalue().to_pybytes()
        return encoded

    def decode(self, encoded: bytes) -> pa.RecordBatch:
        """The batch of an Arrow stream."""
        with pa.ipc.open_stream(encoded) as stream:
            return stream.read_next_batch()

    def is_deterministic(self) -> bool:
        """False: equal batches may differ in their buffers."""
        return False

    def to_type_hint(self) -> type:
        """The type this coder is for."""
        hint: type = pa.RecordBatch
        return hint


def register() -> None:
    """Make Beam use this coder for record batches."""
    coders.registry.register_coder(pa.RecordBatch, RecordBatchCoder)
