"""The terms of all documents, mapped into memory: opening them takes no time, however many they are."""

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from rankbeam.transforms.clients.retrievers.index.analysis import Analysis
from rankbeam.transforms.clients.retrievers.index.collection import Collection
from rankbeam.transforms.clients.retrievers.index.tokens import tokens_of

_FILE = "vocabulary.arrow"


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Every term, in the order of their bytes."""

    terms: pa.LargeStringArray

    def __len__(self) -> int:
        """The number of terms."""
        return len(self.terms)

    def place(self, term: str) -> int | None:
        """The position of a term; None where no document has it."""
        encoded = term.encode()
        place = bisect_left(self._bytes, encoded, key=lambda entry: entry.as_py())
        return place if place < len(self) and self._bytes[place].as_py() == encoded else None

    def some(self, number: int) -> list[str]:
        """About `number` of the terms, evenly chosen."""
        terms: list[str] = self.terms[:: max(1, len(self) // number)].to_pylist()
        return terms

    @cached_property
    def _bytes(self) -> pa.LargeBinaryArray:
        return self.terms.view(pa.large_binary())


def vocabulary_of(collection: Collection, analysis: Analysis) -> Vocabulary:
    """The terms of a collection, made from its tokens or read from its indexes."""

    def make(into: Path) -> None:
        terms = pa.array(tokens_of(collection, analysis).vocabulary, pa.large_string())
        with pa.OSFile(str(into / _FILE), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            writer.write_batch(pa.record_batch([terms], schema=schema))

    schema = pa.schema([("term", pa.large_string())])
    folder = collection.indexes.get("vocabulary", analysis.parameters, make)
    opened = pa.ipc.open_file(pa.memory_map(str(folder / _FILE)))
    return Vocabulary(opened.get_batch(0)["term"])
