"""A benchmark as a table for people to review, safe in programs that take a cell for a formula."""

import csv
import io
from collections.abc import Mapping

from rankbeam.pipelines.goldens.folder import GoldensFolder
from rankbeam.transforms.clients.formats.spreadsheets import safe
from rankbeam.transforms.goldens.publishing import reviewed
from rankbeam.transforms.goldens.records.items import Golden, Review

COLUMNS = (
    "item_id", "decision", "question", "answer", "quotes", "doc_ids", "type", "split", "difficulty", "votes", "flags",
    "note", "reviewer",
)  # fmt: skip


def as_csv(folder: GoldensFolder) -> str:
    """All items, with the decisions that are there already."""
    reviews = folder.reviews()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for item in folder.items():
        # Rejected ones are shown as they were, so that a decision can be taken back.
        (shown, *_) = reviewed([item], reviews) or [item]
        writer.writerow(safe(cell) for cell in _row(shown, reviews).values())
    return text.getvalue()


def quotes_of(item: Golden) -> list[str]:
    """The quotes of an item, each in one line."""
    return [" ".join(piece.quote.split()) for piece in item.made.evidence]


def _row(item: Golden, reviews: Mapping[str, Review]) -> dict[str, str]:
    candidate = item.made
    review = reviews.get(candidate.item_id)
    votes = [f"{vote.critic or vote.criterion}: {vote.verdict}" for vote in candidate.votes if vote.step in _SHOWN]
    values = (
        candidate.item_id,
        "" if review is None else str(review.decision),
        candidate.question,
        candidate.answer,
        "\n".join(quotes_of(item)),
        " ".join(candidate.doc_ids),
        candidate.type,
        item.split,
        item.difficulty,
        "; ".join(votes),
        " ".join(item.flags),
        "" if review is None else review.note,
        "" if review is None else review.reviewer,
    )
    return dict(zip(COLUMNS, values, strict=True))


_SHOWN = ("checks", "critic", "consensus")
