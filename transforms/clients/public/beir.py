"""BEIR's collections by name, from the archives that its authors publish, or from a mirror of them."""

import os
import zipfile
from pathlib import Path

from rankbeam.transforms.clients.public.kept import FOLDER, PublicCollection, filling, kept_in
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.suggestions import did_you_mean

MIRROR = "RANKBEAM_BEIR_URL"
"""The environment variable that names another place of the archives."""
PUBLISHED = "https://public.ukp.informatik.tu-darmstadt.de/thakur/BEIR/datasets"
NAMES = (
    "arguana", "climate-fever", "cqadupstack", "dbpedia-entity", "fever", "fiqa", "germanquad", "hotpotqa", "mmarco",
    "mrtydi", "msmarco", "msmarco-v2", "nfcorpus", "nq", "nq-train", "quora", "scidocs", "scifact", "trec-covid",
    "trec-covid-beir", "trec-covid-v2", "vihealthqa", "webis-touche2020",
)  # fmt: skip
_WAIT_S = 30.0


def fetch(name: str, split: str) -> PublicCollection:
    """The files of a collection, fetched where they are not kept yet."""
    archive, _, part = name.partition("/")
    whole = kept_in("beir", archive)
    if not whole.is_dir():
        if archive not in NAMES:
            raise InputError(f"BEIR has no collection {archive!r}; {did_you_mean(archive, NAMES)}")
        _download(archive, whole)
    folder = whole / part if part else whole
    if not (folder / "corpus.jsonl").is_file():
        parts = sorted(path.name for path in whole.iterdir() if path.is_dir() and path.name != "qrels")
        raise InputError(f"{folder} has no corpus.jsonl; name a part of it, as {archive}/NAME: {', '.join(parts)}")
    splits = sorted(path.stem for path in (folder / "qrels").glob("*.tsv"))
    if split not in splits:
        raise InputError(f"BEIR's {name} has no split {split!r}; it has: {', '.join(splits)}")
    qrels = str(folder / "qrels" / f"{split}.tsv")
    return PublicCollection(str(folder / "queries.jsonl"), qrels, str(folder / "corpus.jsonl"))


def _download(name: str, folder: Path) -> None:
    import httpx  # which imports rich: slow, and few experiments name a collection

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
            raise InputError(f"{url} holds no BEIR collection; {FOLDER} names the folder of those that are kept")
