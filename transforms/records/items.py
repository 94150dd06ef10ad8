"""Items: what one query's answers and judgements are made from, as rows that travel through a pipeline.

One item holds everything of one query, for all configurations, so that whatever they share is asked once: a passage
that several of them retrieved is judged once, and an equal prompt is answered once.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from rankbeam.transforms.records.columns import ATTRIBUTES
from rankbeam.transforms.records.rankings.contexts import Contexts, Passage

ITEMS = pa.schema(
    [
        ("query_id", pa.string()),
        ("text", pa.string()),
        ("attributes", ATTRIBUTES),
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
                    ]
                )
            ),
        ),
    ]
)
"""One row a query: its distinct passages, and for each configuration which of them it retrieved, best first."""

DOCUMENTS = pa.schema([("doc_id", pa.string()), ("text", pa.large_string())])
"""One row a document of the corpus that some item lacks the text of."""


@dataclass(frozen=True)
class System:
    """What one configuration has for one query.

    Attributes:
        configuration: its position.
        passages: positions of its passages in `Item.passages`, best first.
        failed: the retriever gave no answer.
        answer: one that was given to rankbeam; None where a model is to answer, or nothing is.
    """

    configuration: int
    passages: tuple[int, ...]
    failed: bool = False
    answer: str | None = None


@dataclass(frozen=True)
class Item:
    """What one query's answers and judgements are made from.

    Attributes:
        query_id: of the query.
        text: of the query.
        attributes: of the query.
        passages: the distinct passages of all configurations.
        systems: what each configuration has.
    """

    query_id: str
    text: str
    attributes: Mapping[str, str]
    passages: tuple[Passage, ...]
    systems: tuple[System, ...]

    def contexts(self, system: System) -> list[Passage]:
        """The passages of a configuration, best first."""
        return [self.passages[place] for place in system.passages]


def items_of(queries: pa.RecordBatch, contexts: Sequence[Sequence[Contexts]]) -> Iterator[Item]:
    """The items of some queries.

    Args:
        queries: `columns.JUDGED_QUERIES`.
        contexts: for each of them, those of every configuration.
    """
    texts, attributes = queries["text"].to_pylist(), queries["attributes"].to_pylist()
    for query_id, text, given, of_query in zip(
        queries["query_id"].to_pylist(), texts, attributes, contexts, strict=True
    ):
        places: dict[Passage, int] = {}
        systems = []
        for each in of_query:
            passages = tuple(places.setdefault(passage, len(places)) for passage in each.passages)
            systems.append(System(each.configuration, passages, each.failed))
        pairs = {pair["name"]: pair["value"] for pair in given or ()}
        yield Item(query_id, text or "", pairs, tuple(places), tuple(systems))


def batch_of(items: Iterable[Item]) -> pa.RecordBatch:
    """Items as `ITEMS`."""
    return pa.RecordBatch.from_pylist([_row(item) for item in items], schema=ITEMS)


def items_in(batch: pa.RecordBatch) -> Iterator[Item]:
    """The items of a batch of `ITEMS`, made one by one."""
    for place in range(batch.num_rows):
        yield _item(batch.slice(place, 1).to_pylist()[0])


def without_text(batch: pa.RecordBatch) -> list[str]:
    """The ids, each once, of the documents that items of a batch lack the text of."""
    passages = batch["passages"].flatten()
    lacking = passages.field("doc_id").filter(passages.field("text").is_null())
    return [str(doc_id) for doc_id in lacking.unique().to_pylist()]


def with_texts(item: Item, texts: Mapping[str, str]) -> Item:
    """The item, with the texts of documents that it lacked and that are known."""
    passages = [
        replace(passage, text=texts.get(passage.doc_id)) if passage.text is None else passage
        for passage in item.passages
    ]
    return replace(item, passages=tuple(passages))


def _row(item: Item) -> dict[str, Any]:
    return {
        "query_id": item.query_id,
        "text": item.text,
        "attributes": [{"name": name, "value": value} for name, value in item.attributes.items()],
        "passages": [{"doc_id": each.doc_id, "text": each.text} for each in item.passages],
        "systems": [
            {
                "configuration": each.configuration,
                "passages": list(each.passages),
                "failed": each.failed,
                "answer": each.answer,
            }
            for each in item.systems
        ],
    }


def _item(row: Mapping[str, Any]) -> Item:
    return Item(
        row["query_id"],
        row["text"],
        {pair["name"]: pair["value"] for pair in row["attributes"]},
        tuple(Passage(each["doc_id"], each["text"]) for each in row["passages"]),
        tuple(
            System(each["configuration"], tuple(each["passages"]), each["failed"], each["answer"])
            for each in row["systems"]
        ),
    )
