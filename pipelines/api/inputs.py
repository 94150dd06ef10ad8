"""Judgements and runs from memory, written to Parquet files that a pipeline can read."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.errors import InputError, InputErrors

_NUMBERS = {"qrels": "grade", "run": "score"}
_SHAPES = {"qrels": "{query: {document: grade}}", "run": "{query: {document: score}}"}


@dataclass
class Inputs:
    """Inputs as paths; a folder holds the inputs from memory."""

    folder: str
    labels: dict[str, str] = field(default_factory=dict)

    def qrels(self, source: Any) -> str:
        return self._path(source, "qrels", "qrels")

    def runs(self, sources: Any) -> tuple[list[str], list[str] | None]:
        """The paths of runs, and their names; None if they are named after their files."""
        if is_path(sources):
            return [text_path(sources)], None
        if isinstance(sources, Mapping):
            names = [_text(name, "runs: the name") for name in sources]
            if "" in names:
                raise InputError("runs: a name is empty; name every run")
            if any(_holds_numbers(run) for run in sources.values()):
                raise InputError(f"runs: a name is missing; give {{name: {_SHAPES['run']}}}")
            paths = [self._path(run, "run", f"run {name!r}") for name, run in sources.items()]
        elif isinstance(sources, Sequence) and all(is_path(path) for path in sources):
            names, paths = None, [text_path(path) for path in sources]
        else:
            raise InputError(f"runs are {type(sources).__name__}; give paths, or {{name: path, dict or table}}")
        if not paths:
            raise InputError("runs: none given; give at least one")
        return paths, names

    def named(self) -> AbstractContextManager[None]:
        """Name inputs from memory, not their files, in messages."""
        return reword_errors(self._label_paths)

    def _label_paths(self, error: InputError) -> InputError:
        text = str(error)
        for path, label in self.labels.items():
            text = text.replace(path, label)
        return error if text == str(error) else InputError(text)

    def _path(self, source: Any, role: str, label: str) -> str:
        if is_path(source):
            return text_path(source)
        table = _table_in_memory(source, role, label)
        path = files.join(self.folder, f"{len(self.labels)}.parquet")
        try:
            pq.write_table(table, path)
        except pa.ArrowException as error:
            raise InputError(f"{label}: the table cannot be written as Parquet ({error})") from error
        self.labels[path] = label
        return path


@contextmanager
def reword_errors(change: Callable[[InputError], InputError]) -> Iterator[None]:
    """Raise an input's problems after `change` has reworded them."""
    try:
        yield
    except InputErrors as errors:
        raise InputErrors([change(error) for error in errors.errors]) from errors
    except InputError as error:
        raise change(error) from error


def is_path(value: Any) -> bool:
    return isinstance(value, str | os.PathLike)


def folder_of(output: str | os.PathLike[str]) -> str:
    """The absolute path of a folder for results."""
    if not (path := text_path(output)).strip():
        raise InputError("output is empty; name a folder for the results, such as output='out'")
    return files.absolute(path)


def of_python(value: Any) -> Any:
    """A NumPy number or array as a Python number or list; other values unchanged."""
    return value.tolist() if hasattr(value, "tolist") else value


def text_path(path_like: Any) -> str:
    path = os.fspath(path_like) if is_path(path_like) else path_like
    if not isinstance(path, str):
        raise InputError(f"{path!r} is not text; give a path as str or Path")
    return path


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise InputError(f"{what} {value!r} is {type(value).__name__}; use str")
    return value


def _holds_numbers(run: Any) -> bool:
    return isinstance(run, Mapping) and any(isinstance(value, Real) for value in run.values())


def table_of(value: Any, label: str, shape: str) -> pa.Table:
    """A table from anything that exports its columns as Arrow: pandas, polars, DuckDB, Arrow itself."""
    try:
        if hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__"):
            return _with_plain_categories(pa.table(value))
    except (pa.ArrowException, TypeError, ValueError) as error:  # columns of mixed types, for instance
        words = "; ".join(map(str, error.args))
        raise InputError(f"{label}: the table cannot be converted to Arrow ({words})") from error
    problem = f"is {type(value).__name__}; give a path, {shape}, a DataFrame or an Arrow table"
    raise InputError(f"{label}: {problem}")


def _with_plain_categories(table: pa.Table) -> pa.Table:
    """The table with Polars' categories as strings: Arrow cannot write dictionaries of views to Parquet."""
    for position, column in enumerate(table.schema):
        if pa.types.is_dictionary(column.type) and pa.types.is_string_view(column.type.value_type):
            kind = pa.dictionary(column.type.index_type, pa.large_string())
            table = table.set_column(position, column.name, table.column(position).cast(kind))
    return table


def _table_in_memory(source: Any, role: str, label: str) -> pa.Table:
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__"):
        return table_of(source, label, _SHAPES[role])
    is_ranx = hasattr(source, "to_dict") and not hasattr(source, "columns")  # as in DataFrames of older pandas
    nested = source.to_dict() if is_ranx else source
    if isinstance(nested, Mapping):
        return _table_of_triples(_triples_of_mapping(nested, role, label), role, label)
    if isinstance(nested, Iterable) and not isinstance(nested, bytes | Set):
        return _table_of_triples(_triples_of_records(nested, role, label), role, label)
    return table_of(source, label, _SHAPES[role])  # refuses it


def _triples_of_records(records: Iterable[Any], role: str, label: str) -> Iterator[tuple[Any, Any, Any]]:
    """Judgements or results of ir_measures and ir_datasets: objects with these attributes."""
    names = ("query_id", "doc_id", "relevance" if role == "qrels" else "score")
    for record in records:
        if not all(hasattr(record, name) for name in names):
            raise InputError(f"{label}: an item is {type(record).__name__}; it needs {', '.join(names)}")
        yield tuple(getattr(record, name) for name in names)


def _triples_of_mapping(nested: Mapping[Any, Any], role: str, label: str) -> Iterator[tuple[Any, Any, Any]]:
    for query, documents in nested.items():
        _text(query, f"{label}: the query")
        if not isinstance(documents, Mapping):
            kind = type(documents).__name__
            raise InputError(f"{label}: query {query!r} has {kind}; give {_SHAPES[role]}")
        yield from ((query, document, value) for document, value in documents.items())


def _table_of_triples(triples: Iterable[tuple[Any, Any, Any]], role: str, label: str) -> pa.Table:
    number = _NUMBERS[role]
    query_ids: list[str] = []
    doc_ids: list[str] = []
    values: list[float] = []
    for query, document, value in triples:
        query_ids.append(_text(query, f"{label}: the query"))
        doc_ids.append(_text(document, f"{label}: query {query!r}: the document"))
        values.append(_number(value, f"{label}: query {query!r}: document {document!r}: the {number}"))
    try:
        return pa.table(
            {
                "query_id": pa.array(query_ids, pa.string()),
                "doc_id": pa.array(doc_ids, pa.string()),
                number: pa.array(values, pa.float64()),
            }
        )
    except UnicodeEncodeError as error:
        raise InputError(f"{label}: an id is not valid Unicode ({error.object!r})") from error


def _number(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputError(f"{what} {value!r} is {type(value).__name__}; use int or float")
    try:
        return float(value)
    except OverflowError as error:
        raise InputError(f"{what} is too large for a float") from error
