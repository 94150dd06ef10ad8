"""The folder of a benchmark: written items, people's decisions, and the files that follow from both.

about.json                                   name and settings; written first
items.jsonl, rejected.jsonl                  written items, from which all other files follow
reviews.jsonl                                people's decisions
queries.jsonl, qrels/, splits/, tables/, …   for readers: the same items and decisions give the same bytes
costs.jsonl, usage.json                      tokens and cost, which depend on retries
manifest.json                                hashes of all files except those about cost; written last
"""

import glob
import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import PurePosixPath
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from rankbeam.transforms.clients.formats.recognise import QRELS_HEADER
from rankbeam.transforms.clients.formats.syntax import json_lines as formats
from rankbeam.transforms.clients.storage import files, whole_files
from rankbeam.transforms.goldens import publishing
from rankbeam.transforms.goldens.parts import json_lines
from rankbeam.transforms.goldens.publishing import TABLES
from rankbeam.transforms.goldens.records.items import Golden, Review, WrittenItem
from rankbeam.transforms.records.errors import InputError

ITEMS, REJECTED, REVIEWS, ABOUT, MANIFEST = (
    "items.jsonl", "rejected.jsonl", "reviews.jsonl", "about.json", "manifest.json",
)  # fmt: skip
_ROWS = tuple(
    f"{name}.jsonl"
    for name in ("queries", "corpus", "chunks", "evidence", "nuggets", "provenance", "items", "rejected")
)
Record = TypeVar("Record")

FORMAT = 1  # the version of the folder's format


_AGAIN = "copy it again, or delete it and make the benchmark again, which pays for no call twice"
_REVIEW_AGAIN = "copy it again, or delete this line and apply its table again"


@dataclass(frozen=True)
class GoldensFolder:
    """The folder of a benchmark."""

    path: str

    def items(self) -> list[Golden]:
        if not files.exists(self.below(MANIFEST)):
            raise InputError("holds no benchmark; `rankbeam goldens FILE.yaml` makes one", path=self.path)
        items, manifest = self._read(ITEMS, Golden), self._object(MANIFEST)
        if len(items) < manifest.get("written", manifest.get("items", 0)):  # earlier releases count accepted ones
            raise InputError(f"has fewer questions than {MANIFEST} counts; {_AGAIN}", path=self.below(ITEMS))
        return items

    def rejected(self) -> list[WrittenItem]:
        return self._read(REJECTED, WrittenItem)

    def reviews(self) -> dict[str, Review]:
        if not files.exists(self.below(REVIEWS)):
            return {}
        return {review.item_id: review for review in self._read(REVIEWS, Review, _REVIEW_AGAIN)}

    def about(self) -> dict[str, Any]:
        return self._object(ABOUT, "name", "prompts", "splits")

    def refuse_own(self, paths: Iterable[str]) -> None:
        """Refuse paths of the benchmark's own files: an export must not replace them."""
        names = [*self._object(MANIFEST).get("files", ()), MANIFEST, ABOUT, REVIEWS]
        for path in paths:
            if any(files.is_same(path, self.below(name)) for name in names):
                raise InputError("is a file of the benchmark itself; choose another output", path=path)

    def refuse_foreign(self) -> None:
        """Refuse a folder without a benchmark but with files of its names, such as a dataset that people made."""
        qrels = files.match(files.join(glob.escape(self.path), "qrels", "*.tsv"))
        paths = [*(path for path in map(self.below, _ROWS) if files.exists(path)), *qrels]
        if paths and not any(files.exists(self.below(name)) for name in (ABOUT, MANIFEST)):
            problem = "does not belong to a benchmark and would be overwritten; choose another output"
            raise InputError(problem, path=paths[0])

    def documents(self) -> dict[str, dict[str, Any]]:
        path, documents = self.below("corpus.jsonl"), dict[str, dict[str, Any]]()
        for number, line in enumerate(files.read_text(path, _AGAIN).split("\n"), 1):
            if line:
                row = formats.parse_object(path, number, line)
                if "_id" not in row:
                    raise InputError(f"is damaged; {_AGAIN}", path=path, line=number)
                documents[row["_id"]] = row
        return documents

    def save(self, items: Sequence[Golden], rejected: Sequence[WrittenItem], about: Mapping[str, Any]) -> None:
        plain = [replace(item, made=_without_tokens(item.made)) for item in items]
        self.write(ITEMS, json_lines(map(asdict, plain)))
        self.write(REJECTED, json_lines(asdict(_without_tokens(dropped)) for dropped in rejected))
        self.save_about(about)

    def save_about(self, about: Mapping[str, Any]) -> None:
        self.write(ABOUT, _json(about))

    def save_reviews(self, reviews: Iterable[Review]) -> None:
        ordered = sorted(reviews, key=lambda review: review.item_id)
        self.write(REVIEWS, json_lines(map(asdict, ordered)))

    def publish(self) -> None:
        about, reviews, written = self.about(), self.reviews(), self._read(ITEMS, Golden)
        items = publishing.apply_reviews(written, reviews)
        self.write(MANIFEST, _json({"written": len(written)}))  # until the end, no experiment reads the folder
        self.write("queries.jsonl", json_lines(publishing.query(item, reviews) for item in items))
        self.write("evidence.jsonl", json_lines(row for item in items for row in publishing.evidence(item)))
        self.write("nuggets.jsonl", json_lines(map(publishing.reference, items)))
        self.write("provenance.jsonl", json_lines(publishing.provenance(item, about["prompts"]) for item in items))
        for name, content in publishing.tables_of(about["name"], items, self.rejected(), reviews).items():
            self.write(f"tables/{name}.parquet", content)
        for name in about["splits"]:
            self._publish_split(name, [item for item in items if item.split == name], reviews)
        self._delete_other_splits(about["splits"])
        self._write_manifest({**about, "written": len(written)}, items, reviews)

    def _publish_split(self, name: str, items: Sequence[Golden], reviews: Mapping[str, Review]) -> None:
        judged = [QRELS_HEADER, *(row for item in items for row in publishing.judgements(item))]
        text = "".join("\t".join(map(str, row)) + "\n" for row in judged)
        self.write(f"qrels/{name}.tsv", text.encode())
        rows = {
            "queries": [publishing.sliced_query(item, reviews) for item in items],
            "nuggets": [publishing.reference(item) for item in items],
            "evidence": [row for item in items for row in publishing.evidence(item)],
        }
        for kind, lines in rows.items():
            self.write(f"splits/{name}/{kind}.jsonl", json_lines(lines))

    def _delete_other_splits(self, names: Collection[str]) -> None:
        """Delete the files of splits that an earlier benchmark in this folder had."""
        for path in files.match(files.join(glob.escape(self.path), "qrels", "*.tsv")):
            name = PurePosixPath(path).stem
            if name not in names:
                files.delete(path)
                files.delete(self.below(f"splits/{name}"))

    def _write_manifest(self, about: Mapping[str, Any], items: Sequence[Golden], reviews: Mapping[str, Review]) -> None:
        split = ["queries", "nuggets", "evidence"]
        paths = [*_ROWS, "coverage.json", *(f"tables/{name}.parquet" for name in TABLES)]
        for name in about["splits"]:
            paths += [f"qrels/{name}.tsv", *(f"splits/{name}/{kind}.jsonl" for kind in split)]
        counts = {name: sum(item.split == name for item in items) for name in about["splits"]}
        manifest = {
            "format": FORMAT,
            **about,
            "items": len(items),
            "reviewed": sum(item.made.item_id in reviews for item in items),
            "splits": counts,
            "files": {path: hashlib.sha256(files.read_all(self.below(path))).hexdigest() for path in sorted(paths)},
        }
        self.write(MANIFEST, _json(manifest))

    def below(self, name: str) -> str:
        return files.join(self.path, *name.split("/"))

    def write(self, name: str, content: bytes) -> None:
        whole_files.put(self.below(name), content)

    def _object(self, name: str, *keys: str) -> dict[str, Any]:
        path = self.below(name)
        try:
            value = formats.parse_object(path, 1, files.read_text(path))
        except InputError as error:
            raise InputError(f"{error.problem}; {_AGAIN}", path=path, line=error.line) from error
        if not value.keys() >= set(keys):
            raise InputError(f"is damaged; {_AGAIN}", path=path)
        return value

    def _read(self, name: str, record: type[Record], advice: str = _AGAIN) -> list[Record]:
        adapter, path, records = TypeAdapter(record), self.below(name), list[Record]()
        for number, line in enumerate(files.read_text(path, advice).split("\n"), 1):
            try:
                records += [adapter.validate_json(line)] if line else []
            except ValidationError as error:
                raise InputError(f"is damaged; {advice}", path=path, line=number) from error
        return records


def _without_tokens(item: WrittenItem) -> WrittenItem:
    """An item without what calls cost, which depends on failed attempts and is stored in `costs.jsonl`."""
    calls = (replace(call, input=0, cached=0, output=0, in_batch=False) for call in item.asked)
    return replace(item, asked=tuple(calls))


def _json(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode("utf-8", "replace")
