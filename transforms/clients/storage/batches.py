"""Arrow batches between stages: their keys, and their encoding for Beam.

Beam has no coder for Arrow, so it pickles batches, and the pickle of a slice holds its whole parent buffer. With this
module, a pickle holds Arrow's own stream format, or the place of a spilled batch. Registering a coder would not work:
Beam ignores it inside the unions that CoGroupByKey makes. A stage that passes batches on calls `register`.
"""

import copyreg
import weakref
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from rankbeam.transforms.clients.storage import spill

Bucketed = tuple[int, pa.RecordBatch]  # a bucket of queries, and its rows

SourceRows = tuple[int, tuple[int, pa.RecordBatch]]  # a bucket, the source of its rows, and the rows

JUDGED, RANKINGS, FAILURES, REPLAYED = "judged", "rankings", "failures", "replayed"
VALUES, GRADES = "values", "grades"
"""Names of a bucket's parts: batches of its queries; rows of each source (a prefix of names); pairs of a source and a
failure; pairs of a source and existing answers; values of judged metrics; and a judge's grades, which fill holes."""

_places: dict[int, bytes] = {}
"""The places of batches that were read from a spill file, by identity, while the batches are in use."""


def register() -> None:
    """Make this process's pickles of record batches small and self-contained."""
    copyreg.pickle(pa.RecordBatch, _reduce)


def _reduce(batch: pa.RecordBatch) -> tuple[Callable[[bytes], pa.RecordBatch], tuple[bytes]]:
    known = _places.get(id(batch))
    if known is not None and spill.holds(known):
        return decode_spilled, (known,)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    encoded = sink.getvalue()
    place = spill.write(encoded)
    return (decode, (encoded.to_pybytes(),)) if place is None else (decode_spilled, (place,))


@dataclass(frozen=True)
class SpilledBatch:
    """A batch in the spill file. If Beam pickles it between two stages, the next stage gets the batch."""

    place: bytes

    def __reduce__(self) -> tuple[Callable[[bytes], pa.RecordBatch], tuple[bytes]]:
        return decode_spilled, (self.place,)


def spill_batch(batch: pa.RecordBatch) -> pa.RecordBatch | SpilledBatch:
    """Spill a batch that a stage only passes on; return it unchanged if it is small, or if batches are not spilled."""
    read, (encoded,) = _reduce(batch)
    return SpilledBatch(encoded) if read is decode_spilled else batch


def unspill_batch(batch: pa.RecordBatch | SpilledBatch) -> pa.RecordBatch:
    """The batch itself, for a step that reads rows in the stage that spilled them."""
    return decode_spilled(batch.place) if isinstance(batch, SpilledBatch) else batch


@dataclass(frozen=True)
class Reference:
    """A batch that is read when it is needed; until then it takes no memory, unless it is small."""

    rows: int
    encoded: bytes
    is_spilled: bool

    @classmethod
    def to(cls, batch: pa.RecordBatch) -> "Reference":
        """Refer to a batch; a large batch is spilled, unless it has been already."""
        read, (encoded,) = _reduce(batch)
        return cls(batch.num_rows, encoded, read is decode_spilled)

    def batch(self) -> pa.RecordBatch:
        return decode_spilled(self.encoded) if self.is_spilled else decode(self.encoded)


def decode(encoded: bytes | pa.Buffer) -> pa.RecordBatch:
    with pa.ipc.open_stream(encoded) as stream:
        return stream.read_next_batch()


def decode_spilled(place: bytes) -> pa.RecordBatch:
    """Read a spilled batch; a stage that only passes it on does not spill it again."""
    batch = decode(spill.read(place))
    _places[id(batch)] = place
    weakref.finalize(batch, _places.pop, id(batch), None).atexit = False
    return batch
