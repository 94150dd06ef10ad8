"""Write the same queries, documents, judgements and runs in every format that rankbeam reads."""

import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

Judgement = tuple[str, str, float]
Text = tuple[str, str]


def write(path: Path, content: str | bytes) -> str:
    """Write a file, packed when its name ends in .gz; returns its path."""
    data = content.encode() if isinstance(content, str) else content
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data, 1) if path.suffix == ".gz" else data)
    return str(path)


def write_table(path: Path, columns: Mapping[str, Sequence[object] | pa.Array]) -> str:
    """Write a Parquet file; returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(dict(columns)), path)
    return str(path)


def trec_qrels(rows: Iterable[Judgement]) -> str:
    return "".join(f"{query} 0 {doc} {grade:g}\n" for query, doc, grade in rows)


def beir_qrels(rows: Iterable[Judgement]) -> str:
    return "query-id\tcorpus-id\tscore\n" + "".join(f"{query}\t{doc}\t{grade:g}\n" for query, doc, grade in rows)


def trec_run(rows: Iterable[tuple[str, str, float]]) -> str:
    return "".join(f"{query} Q0 {doc} 1 {score!r} tag\n" for query, doc, score in rows)


def tab_texts(rows: Iterable[Text]) -> str:
    return "".join(f"{name}\t{text}\n" for name, text in rows)


def json_texts(rows: Iterable[Text]) -> str:
    return "".join(json.dumps({"_id": name, "text": text}, ensure_ascii=False) + "\n" for name, text in rows)


def qrels_table(rows: Sequence[Judgement]) -> dict[str, pa.Array]:
    return _table(rows, ("query_id", "doc_id", "grade"))


def run_table(rows: Sequence[tuple[str, str, float]]) -> dict[str, pa.Array]:
    return _table(rows, ("query_id", "doc_id", "score"))


def texts_table(rows: Sequence[Text]) -> dict[str, pa.Array]:
    return {name: pa.array([row[at] for row in rows], pa.string()) for at, name in enumerate(("_id", "text"))}


def _table(rows: Sequence[Judgement], names: tuple[str, str, str]) -> dict[str, pa.Array]:
    types = (pa.string(), pa.string(), pa.float64())
    return {
        name: pa.array([row[at] for row in rows], kind)
        for at, (name, kind) in enumerate(zip(names, types, strict=True))
    }
