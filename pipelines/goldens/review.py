"""A benchmark as a table for people to review, safe in programs that take a cell for a formula."""

from collections.abc import Mapping

from rankbeam.pipelines.goldens.folder import GoldensFolder
from rankbeam.transforms.clients.formats import spreadsheets
from rankbeam.transforms.goldens.publishing import reviewed
from rankbeam.transforms.goldens.records.items import Golden, Review

COLUMNS = (
    "item_id", "decision", "question", "answer", "quotes", "doc_ids", "type", "split", "difficulty", "votes", "flags",
    "note", "reviewer",
)  # fmt: skip


def as_csv(folder: GoldensFolder) -> str:
    """All items, with the decisions that are there already."""
    reviews = folder.reviews()
    # Rejected ones are shown as they were, so that a decision can be taken back.
    shown = ((reviewed([item], reviews) or [item])[0] for item in folder.items())
    return spreadsheets.as_csv(COLUMNS, (_row(item, reviews) for item in shown))


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
