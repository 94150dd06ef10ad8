"""What is known of a dataset after all of it has been read: counts, warnings, fingerprint."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any

from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.suggestions import did_you_mean, shortened

_EXAMPLES = 3
_MODULUS = 1 << 64


@dataclass(frozen=True)
class DatasetSummary:
    """A mergeable summary.

    Attributes:
        queries: queries in the file; None where no file of queries was given.
        judged: queries that have judgements; these are asked and scored.
        judgements: judgements of these queries.
        repeated: judgements that were given more than once, with the same grade.
        without_text: judged queries whose text is empty.
        unjudged: queries without any judgement, with some of their ids.
        unknown: judged query ids that are not among the queries, with some of them.
        attributes: names of the queries' attributes.
        qrels_hash, texts_hash: sums, modulo 2^64, of the hashes of judgements and of query texts.
    """

    queries: int | None = None
    judged: int = 0
    judgements: int = 0
    repeated: int = 0
    without_text: int = 0
    unjudged: int = 0
    unjudged_ids: tuple[str, ...] = ()
    unknown: int = 0
    unknown_ids: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    qrels_hash: int = 0
    texts_hash: int = 0

    def merge(self, other: "DatasetSummary") -> "DatasetSummary":
        """The summary of both parts; associative and commutative, with `DatasetSummary()` neutral."""
        merged: dict[str, Any] = {}
        for field in fields(self):
            a, b = getattr(self, field.name), getattr(other, field.name)
            if field.name.endswith("_ids"):
                merged[field.name] = tuple(sorted({*a, *b})[:_EXAMPLES])
            elif field.name == "attributes":
                merged[field.name] = tuple(sorted({*a, *b}))
            elif a is None or b is None:
                merged[field.name] = b if a is None else a
            else:
                total = a + b
                merged[field.name] = total % _MODULUS if field.name.endswith("_hash") else total
        return DatasetSummary(**merged)

    @property
    def fingerprint(self) -> str:
        """Identifies judgements and query texts, whatever the format, the order or the files they come in."""
        return f"{self.qrels_hash:016x}-{self.texts_hash:016x}"

    def check(self, queries_path: str | None, qrels_path: str, slices: tuple[str, ...]) -> None:
        """Refuse a dataset with which nothing can be evaluated.

        Raises:
            InputError: there is no query, none is judged, or a slice is by an attribute that no query has.
        """
        if self.queries == 0:
            judged = _quoted(self.unknown_ids)
            raise InputError(f"holds no query; {qrels_path} judges queries such as {judged}", path=queries_path)
        if self.judged == 0 and self.unknown == 0:
            raise InputError("holds no judgement", path=qrels_path)
        if self.judged == 0:
            qrels, queries = _quoted(self.unknown_ids), _quoted(self.unjudged_ids)
            problem = (
                f"judges none of the queries in {queries_path}: it has ids such as {qrels}, they such as {queries}"
            )
            raise InputError(problem, path=qrels_path)
        for name in slices:
            if name not in self.attributes:
                there = did_you_mean(name, self.attributes) if self.attributes else "they have no attributes"
                raise InputError(f"no query has the attribute {name!r} to slice by; {there}", path=queries_path)

    def warnings(self) -> Iterator[str]:
        """What a user should know, with counts."""
        if self.unknown:
            what = _count(self.unknown, "judged query", "judged queries")
            yield f"{what} not among the queries, left out: {_quoted(self.unknown_ids)}"
        if self.unjudged:
            what = _count(self.unjudged, "query", "queries")
            yield f"{what} without judgements, not asked: {_quoted(self.unjudged_ids)}"
        if self.repeated:
            what = _count(self.repeated, "judgement", "judgements")
            yield f"{what} given more than once with the same grade, counted once"
        if self.without_text:
            yield f"{_count(self.without_text, 'judged query', 'judged queries')} without text"

    def as_json(self) -> dict[str, Any]:
        """The counts, for the `runs` table."""
        hidden = ("unjudged_ids", "unknown_ids", "qrels_hash", "texts_hash")
        return {name: value for name, value in asdict(self).items() if name not in hidden}


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def _quoted(ids: tuple[str, ...]) -> str:
    return ", ".join(shortened(repr(name)) for name in ids) or "none"
