"""Collections of the library ir_datasets by name, written once into files that every runner can read."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rankbeam.transforms.clients.extras import IR_DATASETS, missing
from rankbeam.transforms.clients.public.kept import PublicCollection, filling, kept_in
from rankbeam.transforms.records.errors import InputError

_TITLES = ("title", "headline")


def fetch(name: str, *, with_corpus: bool) -> PublicCollection:
    """The files of a collection, written where they are not kept yet."""
    folder = kept_in("ir_datasets", *name.split("/"))
    files = {part: folder / part for part in ("judged", "documents")}
    if not files["judged"].is_dir():
        _write(name, files["judged"], judged=True)
    if with_corpus and not files["documents"].is_dir():
        _write(name, files["documents"], judged=False)
    corpus = str(files["documents"] / "corpus.jsonl") if with_corpus else None
    return PublicCollection(str(files["judged"] / "queries.jsonl"), str(files["judged"] / "qrels"), corpus)


def _write(name: str, folder: Path, *, judged: bool) -> None:
    dataset = _loaded(name)
    missing = [
        part for part in (("queries", "qrels") if judged else ("docs",)) if not getattr(dataset, f"has_{part}")()
    ]
    if missing:
        raise InputError(f"ir_datasets' {name} has no {' and no '.join(missing)}; a longer name, such as …/test, may")
    with filling(folder, f"{'queries and judgements' if judged else 'documents'} of ir_datasets' {name}") as part:
        try:
            if judged:
                _lines(part / "queries.jsonl", map(_query, dataset.queries_iter()))
                _lines(part / "qrels", (f"{q.query_id} 0 {q.doc_id} {q.relevance}" for q in dataset.qrels_iter()))
            else:
                _lines(part / "corpus.jsonl", map(_document, dataset.docs_iter()))
        except (RuntimeError, OSError) as error:
            reason = str(error.args[0] if error.args else error)
            raise InputError(f"ir_datasets cannot fetch {name} ({reason}); it needs a network once") from error


def _loaded(name: str) -> Any:
    if (problem := missing("ir_datasets", IR_DATASETS, f"the collection {name!r}")) is not None:
        raise InputError(problem)
    import ir_datasets

    try:
        return ir_datasets.load(name)
    except KeyError as error:
        raise InputError(f"ir_datasets has no collection {name!r}; https://ir-datasets.com lists them") from error


def _query(query: Any) -> str:
    return json.dumps({"_id": query.query_id, "text": query.default_text()}, ensure_ascii=False)


def _document(document: Any) -> str:
    """A document as BEIR has it: the title apart, and no text twice."""
    title = next((getattr(document, name) for name in _TITLES if getattr(document, name, None)), "")
    text = document.default_text()
    body = text.removeprefix(title).lstrip() if title else text
    return json.dumps({"_id": document.doc_id, "title": title, "text": body}, ensure_ascii=False)


def _lines(path: Path, lines: Iterable[str] | Iterator[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)
