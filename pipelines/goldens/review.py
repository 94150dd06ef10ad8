"""Export a benchmark as a table for people to review, safe in spreadsheet programs, and apply their decisions.

Mistakes in a table are refused with their lines; applying a table again changes nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rankbeam.pipelines.goldens.folder import GoldensFolder
from rankbeam.pipelines.run.folders import sole_writer
from rankbeam.transforms.clients.formats.syntax import spreadsheets
from rankbeam.transforms.goldens.publishing import apply_reviews
from rankbeam.transforms.goldens.records.items import UNANSWERABLE, Golden, GoldenEvidence, Review, ReviewDecision
from rankbeam.transforms.kernels.quoting import exact_place
from rankbeam.transforms.kernels.statistics.raters import cohen, confusion
from rankbeam.transforms.records.chunking import parse_chunk_id
from rankbeam.transforms.records.errors import InputError, InputErrors, did_you_mean, pluralize, shortened

COLUMNS = (
    "item_id", "decision", "question", "answer", "quotes", "doc_ids", "type", "split", "difficulty", "votes", "flags",
    "note", "reviewer",
)  # fmt: skip
_EDIT = "edit"
_NEEDED = ("item_id", "decision", "question", "answer", "quotes")
_WRITER = "rankbeam goldens review"


def as_csv(folder: GoldensFolder) -> str:
    """All items, with any decisions made so far."""
    reviews = folder.reviews()
    # Rejected items are shown unchanged, so that a decision can be reverted.
    shown = ((apply_reviews([item], reviews) or [item])[0] for item in folder.items())
    return spreadsheets.as_csv(COLUMNS, (_row(item, reviews) for item in shown))


def quotes_of(item: Golden) -> list[str]:
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


@dataclass(frozen=True)
class AppliedReview:
    """Decisions that were applied."""

    decided: int
    items: int
    differing: tuple[str, ...] = ()
    kappa: float | None = None
    both: int = 0
    without_nuggets: int = 0  # items that lost their nuggets because their answer was edited

    def as_text(self) -> str:
        lines = [f"{self.decided:,} of {pluralize(self.items, 'item is', 'items are')} reviewed"]
        if self.without_nuggets:
            lines.append(f"items without nuggets, because their answer was edited: {self.without_nuggets:,}")
        if self.both:
            kappa = "undefined" if self.kappa is None else f"{self.kappa:.3f}"
            lines.append(f"two reviewers decided {pluralize(self.both, 'item')}: Cohen's kappa {kappa}")
        if self.differing:
            names = ", ".join(self.differing[:5])
            lines.append(f"decided differently, and therefore unchanged: {len(self.differing):,}, such as {names}")
        return "\n".join(lines)


def apply(folder: GoldensFolder, paths: Sequence[str]) -> AppliedReview:
    """Apply the decisions in one or two tables, and publish the benchmark again."""
    with sole_writer(folder.path, "goldens", "this benchmark", "folder"):
        return _apply(folder, paths)


def _apply(folder: GoldensFolder, paths: Sequence[str]) -> AppliedReview:
    items = {item.made.item_id: item for item in folder.items()}
    texts = {name: row["text"] for name, row in folder.documents().items()}
    problems: list[InputError] = []
    tables = [dict(_decisions(path, items, texts, problems)) for path in paths]
    if problems:
        raise InputErrors(problems)
    both = [name for name in tables[0] if all(name in table for table in tables)] if len(tables) > 1 else []
    differing = tuple(name for name in both if _differ(*(table[name] for table in tables)))
    first, second = ([_category(table[name]) for name in both] for table in (tables[0], tables[-1]))
    for place, name in enumerate(both):
        if first[place] == second[place] == _EDIT and name in differing:
            second[place] = f"another {_EDIT}"
    kappa = _kappa(first, second)
    new = {name: review for table in reversed(tables) for name, review in table.items() if name not in differing}
    reviews = {**folder.reviews(), **new}
    folder.save_reviews(reviews.values())
    folder.publish()
    present = [(item, reviews[name]) for name, item in items.items() if name in reviews]
    edited = sum(bool(item.made.nuggets) and review.answer is not None for item, review in present)
    return AppliedReview(len(present), len(items), differing, kappa, len(both), edited)


def _decisions(
    path: str, items: Mapping[str, Golden], texts: Mapping[str, str], problems: list[InputError]
) -> Iterator[tuple[str, Review]]:
    seen: dict[str, int] = {}
    text = spreadsheets.read_text(path)
    if not text.strip():
        raise InputError(f"the file is empty; a table of `{_WRITER}` was expected", path=path)
    for line, row in spreadsheets.table_rows(path, text, _NEEDED, _WRITER, problems):
        try:
            review = _review(row, items, texts)
            name = row["item_id"]
            if name in seen:
                raise InputError(f"item {name!r} occurs twice, first in line {seen[name]}; keep one")
        except InputError as error:
            problems.append(InputError(error.problem, path=path, line=line))
            continue
        seen[name] = line
        if review is not None:
            yield name, review


def _review(row: Mapping[str, str], items: Mapping[str, Golden], texts: Mapping[str, str]) -> Review | None:
    name, decision = row["item_id"], row["decision"].strip().lower()
    if name not in items:
        raise InputError(f"there is no item {shortened(name)!r}; do not change the column item_id")
    if not decision:
        return None
    if decision not in list(ReviewDecision):
        hint = did_you_mean(decision, map(str, ReviewDecision))
        raise InputError(f"unknown decision {shortened(decision)!r}; {hint}; empty means undecided")
    item, kind = items[name], ReviewDecision(decision)
    reviewer, note = row.get("reviewer", ""), row.get("note", "")
    if kind is ReviewDecision.REJECT:
        return Review(name, kind, reviewer, note=note)
    question, answer = (_new_wording(row[key], getattr(item.made, key)) for key in ("question", "answer"))
    evidence = _evidence(row["quotes"], item, texts)
    if kind is ReviewDecision.EDIT:
        if not row["question"].strip() or not row["answer"].strip():
            raise InputError("an edited question and its answer must not be empty; write reject to remove the item")
        return Review(name, kind, reviewer, question, answer, evidence, note)
    if (question, answer, evidence) != (None, None, None):
        raise InputError("its decision is accept, but its wording was changed; write edit")
    return Review(name, kind, reviewer, note=note)


def _new_wording(cell: str, before: str) -> str | None:
    """The new wording; None if only white space differs."""
    return None if cell.split() == before.split() else cell.strip()


def _evidence(cell: str, item: Golden, texts: Mapping[str, str]) -> tuple[GoldenEvidence, ...] | None:
    """Edited quotes with their places, one in each line; None if they are unchanged."""
    quotes = [" ".join(line.split()) for line in cell.splitlines() if line.strip()]
    if quotes == quotes_of(item):
        return None
    if item.made.type == UNANSWERABLE:
        raise InputError("has quotes, but is unanswerable; remove them, or write reject if the documents answer it")
    if not quotes and item.made.evidence:
        raise InputError("has no quotes left; an answer needs at least one")
    unchanged = list(zip(quotes_of(item), item.made.evidence, strict=True))
    return tuple(_locate(quote, unchanged, item, texts) for quote in quotes)


def _locate(
    quote: str, unchanged: list[tuple[str, GoldenEvidence]], item: Golden, texts: Mapping[str, str]
) -> GoldenEvidence:
    """The evidence of an unchanged quote, or the place of a new quote, preferably in the spans of the question."""
    same = next((pair for pair in unchanged if pair[0] == quote), None)
    if same is not None:
        unchanged.remove(same)
        return same[1]
    spans = list(filter(None, map(parse_chunk_id, item.made.spans)))
    names = item.made.doc_ids or tuple(doc_id for doc_id, *_ in spans)
    for doc_id, start, end in [*spans, *((name, 0, len(texts[name])) for name in names)]:
        text = texts[doc_id][start:end]
        if (place := exact_place(quote, text)) is not None:
            return GoldenEvidence(doc_id, start + place[0], start + place[1], text[slice(*place)])
    raise InputError(f"the quote {shortened(quote)!r} does not occur word for word in {', '.join(names)}")


def _kappa(first: Sequence[str], second: Sequence[str]) -> float | None:
    """Cohen's kappa of two reviewers' decisions about the same items."""
    categories = sorted({*first, *second})
    one, other = (np.array([categories.index(word) for word in words], np.int64) for words in (first, second))
    return cohen(confusion(one, other, len(categories)))


def _category(review: Review) -> str:
    """The decision as a category; an edit that changes nothing counts as accepted."""
    if review.decision is ReviewDecision.REJECT:
        return "reject"
    return "accept" if (review.question, review.answer, review.evidence) == (None, None, None) else _EDIT


def _differ(first: Review, second: Review) -> bool:
    """Return whether two reviewers decided differently, or chose different wordings."""
    decisions = {
        (review.decision is ReviewDecision.REJECT, review.question, review.answer, review.evidence)
        for review in (first, second)
    }
    return len(decisions) > 1
