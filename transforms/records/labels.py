"""Labels: decisions of people about what a judge judges, stored by hashes of texts, apart from any run.

A label outlives runs, judges and prompts: it belongs to the texts that were read, and the labelled claims are stored
with it, so that a human value is computed from these claims whatever claims another judge finds.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakValueDictionary

import pyarrow as pa

from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.records.errors import InputError

ADJUDICATED = "adjudicated"  # the annotator whose decisions replace those of all others

LABELS = pa.schema(
    [
        ("item_id", pa.string()),
        ("step", pa.string()),
        ("query_id", pa.string()),
        ("owner_hash", pa.string()),
        ("position", pa.int64()),
        ("left_hash", pa.string()),
        ("left_text", pa.string()),
        ("right_hash", pa.string()),
        ("probability", pa.float64()),
        ("decision", pa.string()),
        ("annotator", pa.string()),
        ("comment", pa.string()),
        ("drawn_by", pa.string()),
        ("items_hash", pa.string()),
        ("drawn_for", pa.string()),
    ]
)
"""One row for each item and annotator: the claim `left_hash`, or none, that `right_hash` supports, answers and so on.

`owner_hash` is the text that makes the claim, as its claim number `position`. `probability` is the probability with
which the query was drawn; null if a person chose it, and such labels serve agreement only. `drawn_by` is the attribute
by whose values queries were drawn; null if they were drawn at random from all, and in older labels. `items_hash` names
all claims of the text together; null for a whole text, and in older labels. `drawn_for` is the metric that the query
was drawn for; null if a person chose it, and in older labels.
"""
ADDED = ("drawn_by", "items_hash", "drawn_for")  # columns that older labels lack


def text_hash(text: str) -> str:
    """The name of a text in tables: its SHA-256.

    >>> text_hash("")[:8]
    'e3b0c442'
    """
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def short_name(text: str) -> str:
    """16 characters of the text's hash, or 15 after an x if a spreadsheet would read them as a number, such as 1e3.

    >>> short_name("q6"), short_name("q46")
    ('77ec676ad8200ac1', 'x400e032e2714931')
    """
    name = text_hash(text)[:16]
    return name if set(name) & set("abcdf") else f"x{name[1:]}"


def items_hash(items: Iterable[str]) -> str | None:
    """The name of all claims, or other parts of a text, that a judge sees at once; None without any.

    >>> items_hash(["a", "b"]) == items_hash(["ab"]), items_hash([])
    (False, None)
    """
    hashes = " ".join(map(text_hash, items))
    return text_hash(hashes) if hashes else None


def item_id_of(step: str, query_id: str, left_hash: str | None, right_hash: str) -> str:
    """The name of an item to label; it does not reveal who answered or judged.

    >>> len(item_id_of("grade", "q1", None, text_hash("text")))
    16
    """
    return short_name("\0".join([step, query_id, left_hash or "", right_hash]))


@dataclass(frozen=True)
class Label:
    """One row of `LABELS`."""

    item_id: str
    step: str
    query_id: str
    owner_hash: str | None
    position: int | None
    left_hash: str | None
    left_text: str | None
    right_hash: str
    probability: float | None
    decision: str
    annotator: str
    comment: str | None = None
    drawn_by: str | None = None
    items_hash: str | None = None
    drawn_for: str | None = None

    @property
    def place(self) -> "Place":
        return self.step, self.query_id, self.left_hash, self.right_hash


Place = tuple[str, str, str | None, str]
"""Step, query, hash of the claim or nugget (None for a whole text), and hash of the text."""


@dataclass(frozen=True)
class Labels:
    """All labels that an experiment reads."""

    rows: tuple[Label, ...] = ()

    @classmethod
    def of(cls, table: pa.Table) -> "Labels":
        """The rows of a table like `LABELS`, each once."""
        names = [name for name in LABELS.names if name in table.column_names]
        rows: Iterable[Mapping[str, Any]] = table.select(names).to_pylist()
        return cls(tuple(dict.fromkeys(Label(**row) for row in rows)))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle compactly: each of several stages has the labels, and all unpickled copies in a process are one."""
        _unpickled[self._encoded] = self
        return _unpickle, (self._encoded,)

    @cached_property
    def _encoded(self) -> bytes:
        sink, options = pa.BufferOutputStream(), pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_stream(sink, LABELS, options=options) as stream:
            stream.write_table(pa.Table.from_pylist([vars(row) for row in self.rows], LABELS))
        return bytes(sink.getvalue())

    @cached_property
    def decisions(self) -> dict[Place, dict[str, str]]:
        """The decisions by item and annotator."""
        result: defaultdict[Place, dict[str, str]] = defaultdict(dict)
        for row in self.rows:
            result[row.place][row.annotator] = row.decision
        return dict(result)

    @cached_property
    def claims(self) -> dict[tuple[str, str], tuple[str, ...] | None]:
        """The labelled claims of a text, in order, by query and hash of the text; None if a claim has no label.

        If several judges made lists of claims of the same text, the list with the most labels counts.
        """
        claim_rows = [row for row in self.rows if row.owner_hash is not None and row.left_text is not None]
        texts = grouped(((row.query_id, row.owner_hash or ""), row) for row in claim_rows)
        result: dict[tuple[str, str], tuple[str, ...] | None] = {}
        for key, text_rows in texts.items():
            lists = grouped((row.items_hash, row) for row in text_rows)
            ranked = sorted(lists.items(), key=lambda item: (-len(item[1]), item[0] or ""))
            result[key] = next(filter(None, (_complete_list(name, rows) for name, rows in ranked)), None)
        return result

    @cached_property
    def annotators(self) -> dict[str, tuple[str, ...]]:
        result = grouped((row.query_id, row.annotator) for row in self.rows)
        return {query: tuple(sorted({*names})) for query, names in result.items()}

    @cached_property
    def drawn(self) -> dict[tuple[str, str], frozenset[str | None]]:
        """The metrics that a query was drawn for at random, by query and step; None in older labels."""
        drawn = (row for row in self.rows if row.probability is not None)
        result = grouped(((row.query_id, row.step), row.drawn_for) for row in drawn)
        return {key: frozenset(metrics) for key, metrics in result.items()}

    @cached_property
    def strata(self) -> str | None:
        """The attribute by whose values queries were drawn, the same for all; None if all were drawn at random."""
        names = sorted({row.drawn_by for row in self.rows if row.drawn_by is not None})
        if len(names) > 1:
            problem = f"queries were drawn by {names[0]} and by {names[1]}; keep their labels in separate folders"
            raise InputError(problem)
        return names[0] if names else None


NO_LABELS = Labels()
_unpickled: WeakValueDictionary[bytes, Labels] = WeakValueDictionary()


def _unpickle(encoded: bytes) -> Labels:
    labels = _unpickled.get(encoded)
    if labels is None:
        with pa.ipc.open_stream(encoded) as stream:
            labels = _unpickled.setdefault(encoded, Labels.of(stream.read_all()))
    return labels


def _complete_list(name: str | None, rows: Iterable[Label]) -> tuple[str, ...] | None:
    """The claims of a list, by its hash; None if one is missing. Older labels have no hash, and only show gaps."""
    by_position = {row.position or 0: row.left_text or "" for row in rows}
    claims = tuple(by_position[position] for position in sorted(by_position))
    is_whole = items_hash(claims) == name if name else len(claims) == max(by_position) + 1
    return claims if is_whole else None


def agreed_decision(decisions: Mapping[str, str]) -> str | None:
    """One decision for several annotators: the adjudicated one, else the most frequent; None for a tie.

    >>> agreed_decision({"ann": "yes", "bob": "no", "cat": "yes"}), agreed_decision({"ann": "yes", "bob": "no"})
    ('yes', None)
    >>> agreed_decision({"ann": "yes", "adjudicated": "no"})
    'no'
    """
    if ADJUDICATED in decisions:
        return decisions[ADJUDICATED]
    ranked = Counter(decisions.values()).most_common(2)
    is_tied = len(ranked) > 1 and ranked[0][1] == ranked[1][1]
    return None if is_tied else ranked[0][0]
