"""Public collections by name: BEIR's, from its authors' archives or a mirror, and those of ir_datasets.

Each is written once to a folder of files that every runner can read.
"""

import json
import os
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from rankbeam.transforms.clients.extras import IR_DATASETS, missing_extra
from rankbeam.transforms.clients.local_folders import FOLDER, filling, folder_of
from rankbeam.transforms.records.errors import InputError, did_you_mean


@dataclass(frozen=True)
class PublicCollection:
    """Paths to a collection's files, as in an experiment."""

    queries: str
    qrels: str
    corpus: str | None


MIRROR = "RANKBEAM_BEIR_URL"  # the environment variable that names another location of the archives
PUBLISHED = "https://public.ukp.informatik.tu-darmstadt.de/thakur/BEIR/datasets"
NAMES = (
    "arguana", "climate-fever", "cqadupstack", "dbpedia-entity", "fever", "fiqa", "germanquad", "hotpotqa", "mmarco",
    "mrtydi", "msmarco", "msmarco-v2", "nfcorpus", "nq", "nq-train", "quora", "scidocs", "scifact", "trec-covid",
    "trec-covid-beir", "trec-covid-v2", "vihealthqa", "webis-touche2020",
)  # fmt: skip
_WAIT_S = 30.0


def fetch_beir(name: str, split: str) -> PublicCollection:
    archive, _, part = name.partition("/")
    whole = folder_of("beir", archive)
    if not whole.is_dir():
        if archive not in NAMES:
            hint = f"{did_you_mean(archive, NAMES)}; a folder of your own would be ./{name}"
            raise InputError(f"BEIR has no collection {archive!r}; {hint}")
        _download(archive, whole)
    folder = whole / part if part else whole
    if not (folder / "corpus.jsonl").is_file():
        parts = sorted(path.name for path in whole.iterdir() if path.is_dir() and path.name != "qrels")
        raise InputError(f"{folder} has no corpus.jsonl; name a part of it, as {archive}/NAME: {', '.join(parts)}")
    refuse_unknown_split(f"BEIR's {name}", (folder / "qrels").glob("*.tsv"), split)
    return beir_folder(str(folder), split)


def refuse_unknown_split(name: str, qrels: Iterable[str | Path], split: str) -> None:
    splits = sorted(PurePath(path).stem for path in qrels)
    if splits and split not in splits:
        raise InputError(f"{name} has no split {split!r}; it has: {', '.join(splits)}")


def beir_folder(folder: str, split: str) -> PublicCollection:
    """The files of a folder with BEIR's layout."""
    root = folder.rstrip("/")
    return PublicCollection(f"{root}/queries.jsonl", f"{root}/qrels/{split}.tsv", f"{root}/corpus.jsonl")


def _download(name: str, folder: Path) -> None:
    import httpx  # imports rich: slow, and few experiments name a collection

    url = f"{(os.environ.get(MIRROR) or PUBLISHED).rstrip('/')}/{name}.zip"
    with filling(folder, f"BEIR's {name}") as part:
        archive = part / "archive.zip"
        try:
            with archive.open("wb") as file, httpx.stream("GET", url, timeout=_WAIT_S, follow_redirects=True) as reply:
                reply.raise_for_status()
                for block in reply.iter_bytes():
                    file.write(block)
            with zipfile.ZipFile(archive) as packed:
                packed.extractall(part)
        except (httpx.HTTPError, zipfile.BadZipFile) as error:
            advice = f"unpack the archive to {folder} yourself, or name a mirror in {MIRROR}"
            raise InputError(f"{url} cannot be fetched ({str(error) or type(error).__name__}); {advice}") from error
        archive.unlink()
        inner = part / name
        for path in list(inner.iterdir()) if inner.is_dir() else []:
            path.rename(part / path.name)
        if not any(part.rglob("corpus.jsonl")):
            raise InputError(f"{url} holds no BEIR collection; {FOLDER} names the folder of downloaded collections")


_TITLES = ("title", "headline")


def fetch_irds(name: str, *, with_corpus: bool) -> PublicCollection:
    folder = folder_of("ir_datasets", *name.split("/"))
    files = {part: folder / part for part in ("judged", "documents")}
    if not files["judged"].is_dir():
        _write(name, files["judged"], judged=True)
    if with_corpus and not files["documents"].is_dir():
        _write(name, files["documents"], judged=False)
    corpus = str(files["documents"] / "corpus.jsonl") if with_corpus else None
    return PublicCollection(str(files["judged"] / "queries.jsonl"), str(files["judged"] / "qrels"), corpus)


def _write(name: str, folder: Path, *, judged: bool) -> None:
    dataset = _load_dataset(name)
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
                _lines(part / "corpus.jsonl", map(_corpus_line, dataset.docs_iter()))
        except (RuntimeError, OSError) as error:
            reason = str(error.args[0] if error.args else error)
            raise InputError(
                f"ir_datasets cannot fetch {name} ({reason}); it needs a network the first time"
            ) from error


def _load_dataset(name: str) -> Any:
    if (problem := missing_extra("ir_datasets", IR_DATASETS, f"the collection {name!r}")) is not None:
        raise InputError(problem)
    import ir_datasets

    try:
        return ir_datasets.load(name)
    except KeyError as error:
        raise InputError(f"ir_datasets has no collection {name!r}; https://ir-datasets.com lists them") from error


def _query(query: Any) -> str:
    return json.dumps({"_id": query.query_id, "text": query.default_text()}, ensure_ascii=False)


def _corpus_line(document: Any) -> str:
    """A document as in BEIR: with a separate title, which is not repeated in the text."""
    title = next((getattr(document, name) for name in _TITLES if getattr(document, name, None)), "")
    text = document.default_text()
    body = text.removeprefix(title).lstrip() if title else text
    return json.dumps({"_id": document.doc_id, "title": title, "text": body}, ensure_ascii=False)


def _lines(path: Path, lines: Iterable[str] | Iterator[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)
