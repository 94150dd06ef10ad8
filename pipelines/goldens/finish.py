"""Turn written items into a benchmark: splits, difficulty, flags, coverage, shortfalls, warnings."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.resources import files as package_files
from typing import Any

from rankbeam.pipelines.goldens.goldens import Goldens
from rankbeam.pipelines.goldens.rounds import RoundProgress
from rankbeam.transforms.goldens.library import Library
from rankbeam.transforms.goldens.planning import GoldensPlan
from rankbeam.transforms.goldens.publishing import separate_splits, splits
from rankbeam.transforms.goldens.records.items import UNANSWERABLE, Golden, Reason, State, WrittenItem
from rankbeam.transforms.kernels.sampling import shuffled
from rankbeam.transforms.kernels.wording import DIFFICULTIES, UNREACHABLE, difficulty
from rankbeam.transforms.records.errors import pluralize

KNOWN_TO_MODEL, COPIED_WORDS, CLOZE = "known_to_model", "copied_words", "cloze"
_KNOWN, _COPIED = 0.8, 0.9
_LEAST_CHECKED = 20  # if a model accepts this many items and rejects none, users are warned
_OFFLINE = {
    "writer": "its questions are sentences with a gap (cloze), and test the pipeline, not a system",
    "checker": "it counts common words and does not judge anything",
}
_EXAMPLES = 20


def written_items(goldens: Goldens, plan: GoldensPlan, progress: RoundProgress) -> list[Golden]:
    """The accepted items, sorted by id, then earlier ones that people rejected: they may revert their decisions.

    Items that share relevant documents are in one split.
    """
    return separate_splits(_in_planned_splits(goldens, plan, progress), goldens.split, plan.previous.goldens)


def without_refused(plan: GoldensPlan, written: Sequence[Golden]) -> list[Golden]:
    return [item for item in written if item.made.item_id not in plan.previous.refused]


def _in_planned_splits(goldens: Goldens, plan: GoldensPlan, progress: RoundProgress) -> list[Golden]:
    """The items in the splits of their topics; earlier questions stay in theirs."""
    topics, earlier = splits_of(goldens, plan), plan.previous.goldens
    accepted = [
        _golden(item, topics[item.topic], goldens, progress, earlier.get(item.item_id))
        for item in sorted(progress.accepted, key=lambda item: item.item_id)
    ]
    refused = (
        golden if golden.split in goldens.split else replace(golden, split=topics[golden.made.topic])
        for golden in plan.previous.refused.values()
    )
    return [*accepted, *refused]


def splits_of(goldens: Goldens, plan: GoldensPlan) -> dict[int, str]:
    """The split of every topic's new questions, by the plan's quotas and not by the items that were accepted."""
    quotas = Counter(dict.fromkeys(range(len(plan.library.labels)), 0))
    for (stratum, _), quota in plan.quotas.items():
        quotas[int(stratum[0])] += quota
    staying = [golden for golden in plan.previous.goldens.values() if golden.split in goldens.split]
    quotas.subtract(golden.made.topic for golden in staying)
    earlier = Counter(golden.split for golden in staying)
    order = [int(topic) for topic in shuffled([str(topic) for topic in sorted(quotas)], goldens.planned.seed, "split")]
    return splits(quotas, goldens.split, order, earlier)


def _golden(item: WrittenItem, split: str, goldens: Goldens, progress: RoundProgress, earlier: Golden | None) -> Golden:
    if earlier is not None and earlier.split in goldens.split:
        split = earlier.split
    rank = progress.ranks.get(item.item_id)
    hard = "" if item.type == UNANSWERABLE else difficulty(rank)
    pooled = progress.pooled.get(item.item_id)
    flags = {
        UNREACHABLE: hard == UNREACHABLE,
        KNOWN_TO_MODEL: (item.closed_book or 0.0) >= _KNOWN,
        COPIED_WORDS: item.overlap >= _COPIED,
        CLOZE: goldens.writer.parameters.offline is not None if earlier is None else CLOZE in earlier.flags,
    }
    chosen = tuple(name for name, is_set in flags.items() if is_set)
    return Golden(item, split, rank, () if pooled is None else pooled.grades, hard, chosen)


def shortfalls(plan: GoldensPlan, progress: RoundProgress) -> list[dict[str, Any]]:
    lacking = plan.shortfalls(progress.items, {item.item_id for item in progress.accepted})
    labels = plan.library.labels
    return [
        {
            "topic": stratum[0],
            "words": " ".join(labels[int(stratum[0])]),
            "attributes": list(stratum[1:]),
            "type": kind,
            "wanted": plan.quotas[stratum, kind],
            "missing": missing,
        }
        for (stratum, kind), missing in sorted(lacking.items())
    ]


def warnings(goldens: Goldens, plan: GoldensPlan, progress: RoundProgress) -> Iterator[str]:
    yield from (*plan.previous.note(), *plan.library.warnings, *progress.warnings)
    writer, checker = goldens.writer, goldens.checker
    for role, service in (("writer", writer), ("checker", checker)):
        if service.parameters.offline is not None:
            what = f"{service.kind}: {service.parameters.offline}"
            yield f"{role} {service.name} is not a language model ({what}): {_OFFLINE[role]}"
    if writer.parameters.family == checker.parameters.family and writer.parameters.offline is None:
        yield f"writer and checker are from one model family ({writer.parameters.family}), which favours its own texts"
    new = [item for item in progress.items if item.item_id not in plan.previous.goldens]
    yield from _lenient_checker(goldens, new)
    if plan.library.too_short:
        examples = ", ".join(plan.library.too_short[:3])
        lacking = pluralize(len(plan.library.too_short), "document is", "documents are")
        yield f"{lacking} too short for a question, such as {examples}"
    if len(plan.library.documents) == 1:
        yield "there is one document: questions about two documents cannot be made, and any search finds it"
    yield from _moved_questions(goldens, plan, progress)
    missing = sum(shortfall["missing"] for shortfall in shortfalls(plan, progress))
    if missing:
        reasons = Counter(str(item.reason) for item in progress.items if item.state is State.REJECTED)
        counts = ", ".join(f"{number:,} {reason}" for reason, number in reasons.most_common())
        why = f", and rejected.jsonl why candidates were rejected ({counts})" if counts else ""
        text = f"{missing:,} of {pluralize(goldens.planned.items, 'question is', 'questions are')} missing"
        yield f"{text}; coverage.json names strata and types{why}"
    if progress.failed:
        kinds = Counter(str(item.failure) for item in progress.failed)
        kinds_text = ", ".join(f"{number:,} {kind}" for kind, number in sorted(kinds.items()))
        failed = f"{pluralize(len(progress.failed), 'question')} failed and may succeed later ({kinds_text})"
        yield f"{failed}: run the same command again"


def _moved_questions(goldens: Goldens, plan: GoldensPlan, progress: RoundProgress) -> Iterator[str]:
    """A warning if shared documents have changed the splits."""
    planned = without_refused(plan, _in_planned_splits(goldens, plan, progress))
    items = without_refused(plan, written_items(goldens, plan, progress))
    moved = sum(item.split != before.split for item, before in zip(items, planned, strict=True))
    if moved:
        counts = Counter(item.split for item in items)
        numbers = ", ".join(f"{name} {counts[name]:,}" for name in goldens.split)
        problem = (
            f"{pluralize(moved, 'question')} left a split, or a topic's, so that no document is relevant in two splits"
        )
        yield f"{problem}; questions by split: {numbers}"


def _lenient_checker(goldens: Goldens, items: Sequence[WrittenItem]) -> Iterator[str]:
    """A warning if the checking model accepts everything."""
    checked = [item for item in items if any(vote.step == "checks" for vote in item.votes)]
    refused = [item for item in checked if item.reason in (Reason.CHECKS, Reason.NOT_DERIVABLE, Reason.OTHER_ANSWER)]
    if len(checked) >= _LEAST_CHECKED and not refused:
        yield (
            f"checker {goldens.checker.name} accepted all of {len(checked):,} questions (100%): it may say yes to "
            "everything; look at a sample with `rankbeam goldens review`, or name another model"
        )


def rejections(progress: RoundProgress) -> list[WrittenItem]:
    """The items that are not in the benchmark, sorted by id."""
    return sorted((item for item in progress.items if item.state is not State.ACCEPTED), key=lambda item: item.item_id)


def coverage(
    library: Library, items: Sequence[Golden], rejected: Sequence[WrittenItem], lacking: list[dict[str, Any]]
) -> dict[str, Any]:
    """All counts, as JSON values."""
    judged = {doc_id for item in items for doc_id in (item.made.doc_ids or item.made.source_documents)}
    without = [document.id for document in library.documents if document.id not in judged]
    return {
        "documents": {
            "all": len(library.documents),
            "with_questions": len(library.documents) - len(without),
            "without_questions": len(without),
            "examples_without": without[:_EXAMPLES],
            "too_short": len(library.too_short),
        },
        "spans": {
            "all": len(library.passages),
            "used": len({name for item in items for name in item.made.spans}),
            "near_duplicates": len(library.duplicates),
        },
        "topics": _topics(library, items),
        "types": _types(items),
        "stages": stages(items, rejected),
        "asked_and_measured_difficulty": _difficulty(items),
        "shortfalls": lacking,
    }


def stages(items: Sequence[Golden], rejected: Sequence[WrittenItem]) -> list[dict[str, Any]]:
    """The number of candidates that reached each stage, and the number that it rejected."""
    counts = Counter(item.reason for item in rejected if item.state is State.REJECTED)
    failed = sum(item.state is State.FAILED for item in rejected)
    reached = len(items) + len(rejected) - failed
    lines = []
    for reason in Reason:
        lines.append({"stage": str(reason), "reached": reached, "rejected": counts[reason]})
        reached -= counts[reason]
    return [*lines, {"stage": "accepted", "reached": reached, "rejected": 0}]


def as_html(name: str, counts: dict[str, Any]) -> str:
    from jinja2 import Environment

    template = package_files("rankbeam.pipelines.goldens").joinpath("templates", "coverage.html").read_text("utf-8")
    return (
        Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
        .from_string(template)
        .render(name=name, difficulties=DIFFICULTIES, **counts)
    )


def _topics(library: Library, items: Sequence[Golden]) -> list[dict[str, Any]]:
    documents = Counter(library.topics.values())
    questions = Counter(item.made.topic for item in items)
    splits = {topic: sorted({item.split for item in items if item.made.topic == topic}) for topic in questions}
    return [
        {
            "topic": f"{topic:02}",
            "words": " ".join(words),
            "documents": documents[topic],
            "questions": questions[topic],
            "split": ", ".join(splits.get(topic, ())),
        }
        for topic, words in enumerate(library.labels)
    ]


def _types(items: Sequence[Golden]) -> list[dict[str, Any]]:
    counts = Counter(item.made.type for item in items)
    cells = Counter((item.made.type, item.difficulty) for item in items)
    return [
        {"type": kind, "questions": counts[kind], **{level: cells[kind, level] for level in DIFFICULTIES}}
        for kind in sorted(counts)
    ]


def _difficulty(items: Sequence[Golden]) -> list[dict[str, Any]]:
    graded = [(dict(item.made.profile).get("difficulty"), item.difficulty) for item in items if item.difficulty]
    cells = Counter((meant, level) for meant, level in graded if meant is not None)
    meant = sorted({name for name, _ in cells})
    return [{"asked": name, **{level: cells[name, level] for level in DIFFICULTIES}} for name in meant]
