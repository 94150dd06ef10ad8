"""The `dense` retriever: the nearest embeddings, exactly, in process."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, ClassVar, Literal, TypeGuard

import numpy as np
import pyarrow as pa
from pydantic import Field, model_validator

from rankbeam.transforms.clients.retrievers.base import Retriever, RetrieverParameters
from rankbeam.transforms.clients.search.collection import collection_of, content_of, lacking_documents
from rankbeam.transforms.clients.search.matrix import Matrix, repeated_id, vectors_in, write_all, write_of_file
from rankbeam.transforms.clients.search.units import Units, units_of
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.kernels.arrays import IntArray, SingleArray
from rankbeam.transforms.kernels.search.nearest import nearest, unit_length
from rankbeam.transforms.records.errors import CallError, FailureKind, InputError
from rankbeam.transforms.records.queries import Documents, Embeddings, Query, Ranking, mixed_lengths

File = Annotated[str, Field(min_length=1)]
_VECTORS, _PART, _CUT, _WARNINGS = "vectors", "part", "cut.npy", "warnings.json"
_UNITS_AT_ONCE = 4096


class Dense(RetrieverParameters):
    """Exhaustive search by the cosine of embeddings, which a model makes or Parquet files hold.

    Attributes:
        embedding_model: name of the model under `services:` that embeds queries and documents or chunks: one in this
            process (`type: onnx`), or a service, whose calls are paced and stored in the ledger like all others.
        vectors: Parquet file of document or chunk vectors, with columns `id` (`doc#start-end` for a chunk) and
            `vector`, instead of a model.
        query_vectors: Parquet file of query vectors with the same columns, instead of a model.
        fields: parts of a document that are embedded; chunks are embedded with their document's title.
    """

    embedding_model: Annotated[str, Field(min_length=1)] | None = None
    vectors: File | None = None
    query_vectors: File | None = None
    fields: tuple[Literal["title", "text"], ...] = Field(("title", "text"), min_length=1)

    needs: ClassVar[tuple[str, ...]] = ("queries", "corpus")
    searches: ClassVar[frozenset[str]] = frozenset({"chunks"})
    service: ClassVar[str | None] = "embedding_model"

    @model_validator(mode="after")
    def _known_vectors(self) -> "Dense":
        if self.embedding_model is None and (self.vectors is None or self.query_vectors is None):
            raise ValueError("give embedding_model, the name of a service, or vectors and query_vectors")
        if self.embedding_model is not None and self.vectors is not None and self.query_vectors is not None:
            raise ValueError("embedding_model is not used if vectors and query_vectors are set; remove it")
        return self

    def inputs(self) -> dict[str, str]:
        paths = {"vectors": self.vectors, "query_vectors": self.query_vectors}
        return {name: path for name, path in paths.items() if path is not None}

    def resolved(self, folder: str) -> "Dense":
        return self.model_copy(update={name: files.below(folder, path) for name, path in self.inputs().items()})

    def embedded(self, documents: Documents) -> Iterator[str]:
        """The texts of documents or chunks that the model embeds: those whose vectors no file has, and none keeps."""
        if self.vectors is not None:
            return
        units = _units(documents)
        folder = units.collection.indexes.find(_VECTORS, _parameters(self, documents))
        rows = np.arange(len(units)) if folder is None else Matrix.of(folder).missing
        yield from filter(str.strip, _texts(units, self.fields, rows))

    def prepare(self, documents: Documents) -> None:
        self.search(documents).close()

    def search(self, documents: Documents) -> Retriever:
        return _open_index(self, documents)


@dataclass(frozen=True)
class DenseIndex:
    """Vectors that are compared with those of queries."""

    parameters: Dense
    units: Units  # documents or chunks to rank
    vectors: SingleArray  # float32[u, d], of length 1; zeros where one is missing. They are mapped into memory
    embeddings: Embeddings | None
    queries: Mapping[str, SingleArray]
    is_searchable: bool  # whether any document or chunk has a vector
    # About documents or chunks without vectors, relevant documents that are not there, and texts that a model sees in
    # part.
    warnings: list[str]
    cut: list[tuple[int, int]] = field(default_factory=list)  # of the queries so far

    @property
    def cut_queries(self) -> tuple[int, int]:
        """The number of queries of which the model saw a part only, and of all."""
        return sum(number for number, _ in self.cut), sum(total for _, total in self.cut)

    def retrieve(self, query: Query, top_k: int) -> Ranking:
        (ranking,) = self.retrieve_all([query], top_k)
        if isinstance(ranking, CallError):
            raise ranking
        return ranking

    def retrieve_all(self, queries: Sequence[Query], top_k: int) -> list[Ranking | CallError]:
        vectors = enumerate(self._vectors(queries))
        known = {place: vector for place, vector in vectors if _is_usable(vector)}
        lacking = "the query has no embedding" if self.is_searchable else "no document or chunk has an embedding"
        answers: list[Ranking | CallError] = [CallError(FailureKind.UNAVAILABLE, lacking)] * len(queries)
        if known and self.is_searchable:
            self.refuse_other_width(known.values())
            neighbours = nearest(self.vectors, unit_length(np.stack(list(known.values()))), top_k)
            for place, (units, scores) in zip(known, neighbours, strict=True):
                answers[place] = self.units.ranking(units, scores)
        return answers

    def refuse_other_width(self, queries: Iterable[SingleArray]) -> None:
        width = self.vectors.shape[1]
        for vector in queries:
            if self.is_searchable and len(vector) != width:
                if self.parameters.query_vectors is None and self.parameters.vectors is None:
                    raise mixed_lengths(width, len(vector), self.parameters.embedding_model or "")
                widths = f"vectors of queries have {len(vector):,} components, and those of documents {width:,}"
                raise InputError(widths, path=self.parameters.query_vectors or self.parameters.vectors)

    def _vectors(self, queries: Sequence[Query]) -> Iterable[SingleArray | None]:
        if self.embeddings is None or self.parameters.query_vectors is not None:
            return [self.queries.get(query.query_id) for query in queries]
        model, cut = self.embeddings.of_queries(), list[int]()
        vectors = list(model.vectors([query.text for query in queries], cut))
        self.cut.append((sum(cut), len(queries)))
        return vectors

    def close(self) -> None:
        """Do nothing: the next bundle of this process uses the vectors again."""


def _open_index(parameters: Dense, documents: Documents) -> DenseIndex:
    units = _units(documents)
    known = documents.embeddings
    if parameters.vectors is None and known is None:
        raise InputError("a dense retriever with embedding_model runs in an experiment, which has services")

    def make(folder: Path) -> None:
        if parameters.vectors is not None:
            write_of_file(folder, pa.array(_ids(units), pa.string()), parameters.vectors)
        elif known is not None and known.is_kept:
            write_all(folder, len(units), known.vectors(_texts(units, parameters.fields, np.arange(len(units))), []))
        elif known is not None:
            cut: list[int] = []
            write_all(folder, len(units), _in_parts(units, parameters.fields, known, key, cut))
            warnings = [known.cut_warning("documents or chunks", sum(cut), len(units))] if any(cut) else []
            (folder / _WARNINGS).write_text(json.dumps(warnings), encoding="utf-8")
            for first in range(0, len(units), _UNITS_AT_ONCE):
                indexes.drop(_PART, [key, first])

    def is_current(folder: Path) -> bool:
        """Return whether no vector has come that was missing before."""
        missing = Matrix.of(folder).missing
        if parameters.vectors is not None or known is None or not len(missing):
            return True
        return not any(map(_is_usable, known.vectors(_texts(units, parameters.fields, missing), [])))

    indexes, key = units.collection.indexes, _parameters(parameters, documents)
    folder = indexes.get(_VECTORS, key, make, is_current)
    matrix, noted = Matrix.of(folder), folder / _WARNINGS
    what, missing = "documents" if documents.chunking is None else "chunks", len(matrix.missing)
    warnings = [*lacking_documents(units.collection, documents.judgements)]
    warnings += json.loads(noted.read_text(encoding="utf-8")) if noted.exists() else []
    if missing:
        warnings.append(f"{missing:,} of {len(units):,} {what} have no embedding, and are not ranked")
    queries = _table(parameters.query_vectors) if parameters.query_vectors is not None else {}
    index = DenseIndex(parameters, units, matrix.vectors, known, queries, missing < len(units), warnings)
    index.refuse_other_width(queries.values())
    return index


def _in_parts(
    units: Units, fields: Sequence[str], model: Embeddings, key: list[object], cut: list[int]
) -> Iterator[SingleArray | None]:
    """The vectors of units; parts are kept until all are computed, so that a stopped run continues where it was."""
    for first in range(0, len(units), _UNITS_AT_ONCE):
        rows = np.arange(first, min(first + _UNITS_AT_ONCE, len(units)))

        def make(folder: Path, rows: IntArray = rows) -> None:
            own: list[int] = []
            write_all(folder, len(rows), model.vectors(_texts(units, fields, rows), own))
            np.save(folder / _CUT, own)

        folder = units.collection.indexes.get(_PART, [key, first], make)
        matrix = Matrix.of(folder)
        missing = frozenset(matrix.missing.tolist())
        yield from (None if row in missing else vector for row, vector in enumerate(matrix.vectors))
        cut += np.load(folder / _CUT).tolist()


def _units(documents: Documents) -> Units:
    return units_of(replace(documents, embeddings=None), collection_of(documents))


def _parameters(parameters: Dense, documents: Documents) -> list[object]:
    """All that decides the vectors besides the documents, as JSON values."""
    chunking = documents.chunking
    cut = None if chunking is None else chunking.identity
    if parameters.vectors is not None:
        return ["file", content_of(parameters.vectors), cut]
    return ["model", "" if documents.embeddings is None else documents.embeddings.identity, parameters.fields, cut]


def _is_usable(vector: SingleArray | None) -> TypeGuard[SingleArray]:
    """Return whether there is a vector, and any of it differs from 0: zeros have no direction to compare."""
    return vector is not None and bool(vector.any())


def _texts(units: Units, fields: Sequence[str], rows: IntArray) -> Iterator[str]:
    is_cut = units.documents.chunking is not None
    titles = units.collection.rows["title"]
    for first in range(0, len(rows), _UNITS_AT_ONCE):
        places = rows[first : first + _UNITS_AT_ONCE]
        owners = units.row[places]
        texts = units.texts(places) if is_cut else units.collection.rows["text"].take(owners).to_pylist()
        for title, text in zip(titles.take(owners).to_pylist(), texts, strict=True):
            parts = {"title": title, "text": text}
            yield "\n".join(parts[field] for field in fields if parts[field])


def _ids(units: Units) -> Iterator[str]:
    """The id of each unit: of a document, or of a chunk with its span."""
    names = units.collection.doc_ids.take(units.row).to_pylist()
    if units.documents.chunking is None:
        yield from names
        return
    chunks = units.documents.as_chunks()
    for name, start, end in zip(names, units.start.tolist(), units.end.tolist(), strict=True):
        yield chunks.name(name, start, end)


def _table(path: str) -> dict[str, SingleArray]:
    table: dict[str, SingleArray] = {}
    for ids, vectors in vectors_in(path):
        for name, vector in zip(ids.to_pylist(), vectors, strict=True):
            if table.setdefault(name, vector) is not vector:
                raise repeated_id(name, path)
    return table
