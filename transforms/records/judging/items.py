"""Items: the inputs of one query's answers and judgements, as rows that travel through a pipeline.

One item holds everything about one query, for all configurations, so that whatever they share is requested once: a
passage that several of them retrieved is judged once, and an equal prompt is answered once.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any

import pyarrow as pa

from rankbeam.transforms.records.columns import ATTRIBUTES, attributes_in
from rankbeam.transforms.records.rankings.contexts import NOT_SUPPLIED, Contexts, Passage, SuppliedAnswer
from rankbeam.transforms.records.reply import Tokens
from rankbeam.transforms.records.trajectories import EXPECTED_STEPS, STEP, AgentSteps, Consumption, in_rows, rows_of

ITEMS = pa.schema(
    [
        ("query_id", pa.string()),
        ("text", pa.string()),
        ("attributes", ATTRIBUTES),
        ("reference", pa.large_string()),
        ("answerable", pa.bool_()),
        ("nuggets", pa.list_(pa.struct([("text", pa.string()), ("vital", pa.bool_())]))),
        (EXPECTED_STEPS, pa.list_(STEP)),
        ("passages", pa.list_(pa.struct([("doc_id", pa.string()), ("text", pa.large_string())]))),
        (
            "systems",
            pa.list_(
                pa.struct(
                    [
                        ("configuration", pa.int32()),
                        ("passages", pa.list_(pa.int32())),
                        ("failed", pa.bool_()),
                        ("answer", pa.large_string()),
                        ("problem", pa.string()),
                        ("has_contexts", pa.bool_()),
                        ("tokens", pa.list_(pa.int64())),
                        ("seconds", pa.float64()),
                        ("first_token_s", pa.float64()),
                        ("attempts", pa.int64()),
                        ("steps", pa.list_(STEP)),
                        ("citations", pa.list_(pa.int32())),
                    ]
                )
            ),
        ),
    ]
)
"""One row for each query: its distinct passages, and those that each configuration retrieved, best first."""

DOCUMENTS = pa.schema([("doc_id", pa.string()), ("text", pa.large_string()), ("prefix", pa.int64())])
"""One row for each document of the corpus whose text some item lacks: `prefix` is the length of what precedes the text
proper, its title and a line break."""

_LETTERS = 4 << 20


@dataclass(frozen=True)
class Gold:
    """The dataset's reference for the answer to a query."""

    reference: str | None = None
    answerable: bool | None = None  # None if this is not known
    nuggets: tuple[tuple[str, bool], ...] | None = None
    expected_steps: AgentSteps | None = None


NO_GOLD = Gold()


@dataclass(frozen=True)
class System:
    """The contexts and answers of one configuration for one query."""

    configuration: int
    passages: tuple[int, ...]
    failed: bool = False
    supplied: SuppliedAnswer = NOT_SUPPLIED


@dataclass(frozen=True)
class Item:
    """The inputs of one query's answers and judgements."""

    query_id: str
    text: str
    attributes: Mapping[str, str]
    passages: tuple[Passage, ...]
    systems: tuple[System, ...]
    gold: Gold = NO_GOLD

    def contexts(self, system: System) -> list[Passage]:
        """The passages of a configuration, best first."""
        return [self.passages[place] for place in system.passages]

    def knows_contexts(self, system: System) -> bool:
        """Return whether contexts were supplied, or the corpus has the texts of all that an agent retrieved."""
        retrieved = self.contexts(system)
        return system.supplied.has_contexts or (
            bool(retrieved) and all(passage.text is not None for passage in retrieved)
        )


def items_of(queries: pa.RecordBatch, contexts: Sequence[Sequence[Contexts]]) -> Iterator[Item]:
    fields = (queries[name].to_pylist() for name in ("query_id", "text", "attributes"))
    for query_id, text, pairs, query_contexts, gold in zip(*fields, contexts, _golds(queries), strict=True):
        places: dict[Passage, int] = {}
        systems = []
        for entry in query_contexts:
            passages = tuple(places.setdefault(passage, len(places)) for passage in entry.passages)
            systems.append(System(entry.configuration, passages, entry.failed, entry.supplied))
        yield Item(query_id, text or "", attributes_in(pairs), tuple(places), tuple(systems), gold)


def _golds(queries: pa.RecordBatch) -> list[Gold]:
    if "reference" not in queries.schema.names:
        return [NO_GOLD] * queries.num_rows
    rows = queries["reference"].to_pylist()
    return [NO_GOLD if row is None else _gold(row["answer"], row) for row in rows]


def _gold(reference: str | None, row: Mapping[str, Any]) -> Gold:
    nuggets = row["nuggets"]
    pairs = None if nuggets is None else tuple((entry["text"], entry["vital"]) for entry in nuggets)
    reference = reference if (reference or "").strip() else None
    return Gold(reference, row["answerable"], pairs, in_rows(row[EXPECTED_STEPS]))


def batch_of(items: Iterable[Item]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([_row(item) for item in items], schema=ITEMS)


def batches_of(items: Iterable[Item]) -> Iterator[pa.RecordBatch]:
    """Items as `ITEMS`, in batches that are small compared with memory."""
    pending: list[Item] = []
    letters = 0
    for item in items:
        pending.append(item)
        letters += sum(len(passage.text or "") for passage in item.passages)
        if letters >= _LETTERS:
            yield batch_of(pending)
            pending, letters = [], 0
    if pending:
        yield batch_of(pending)


def items_in(batch: pa.RecordBatch) -> Iterator[Item]:
    for place in range(batch.num_rows):
        yield _item(batch.slice(place, 1).to_pylist()[0])


def without_text(batch: pa.RecordBatch) -> list[str]:
    passages = batch["passages"].flatten()
    lacking = passages.field("doc_id").filter(passages.field("text").is_null())
    return [str(doc_id) for doc_id in lacking.unique().to_pylist()]


def with_texts(item: Item, text_of: Callable[[str], str | None]) -> Item:
    passages = [
        replace(passage, text=text_of(passage.doc_id or "")) if passage.text is None else passage
        for passage in item.passages
    ]
    return replace(item, passages=tuple(passages))


def _row(item: Item) -> dict[str, Any]:
    nuggets = item.gold.nuggets
    return {
        "query_id": item.query_id,
        "text": item.text,
        "attributes": [{"name": name, "value": value} for name, value in item.attributes.items()],
        "reference": item.gold.reference,
        "answerable": item.gold.answerable,
        "nuggets": None if nuggets is None else [{"text": text, "vital": vital} for text, vital in nuggets],
        EXPECTED_STEPS: rows_of(item.gold.expected_steps),
        "passages": [{"doc_id": passage.doc_id, "text": passage.text} for passage in item.passages],
        "systems": [
            {
                "configuration": system.configuration,
                "passages": list(system.passages),
                "failed": system.failed,
                "answer": system.supplied.answer,
                "problem": system.supplied.problem,
                "has_contexts": system.supplied.has_contexts,
                "tokens": list(astuple(system.supplied.consumption.tokens)),
                "seconds": system.supplied.consumption.seconds,
                "first_token_s": system.supplied.consumption.first_token_s,
                "attempts": system.supplied.consumption.attempts,
                "steps": rows_of(system.supplied.steps),
                "citations": system.supplied.citations,
            }
            for system in item.systems
        ],
    }


def _item(row: Mapping[str, Any]) -> Item:
    return Item(
        row["query_id"],
        row["text"],
        attributes_in(row["attributes"]),
        tuple(Passage(entry["doc_id"], entry["text"]) for entry in row["passages"]),
        tuple(
            System(entry["configuration"], tuple(entry["passages"]), entry["failed"], _supplied_answer(entry))
            for entry in row["systems"]
        ),
        _gold(row["reference"], row),
    )


def _supplied_answer(row: Mapping[str, Any]) -> SuppliedAnswer:
    return SuppliedAnswer(
        row["answer"],
        row["problem"],
        row["has_contexts"],
        Consumption(Tokens(*row["tokens"]), row["seconds"], row["first_token_s"], row["attempts"]),
        in_rows(row["steps"]),
        None if row["citations"] is None else tuple(row["citations"]),
    )
