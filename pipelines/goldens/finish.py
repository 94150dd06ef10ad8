"""From what was made to the items of a benchmark: splits, difficulty, flags, shortfalls, warnings."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from rankbeam.pipelines.goldens.goldens import Goldens
from rankbeam.pipelines.goldens.rounds import RoundProgress
from rankbeam.transforms.goldens.planning import GoldensPlan
from rankbeam.transforms.goldens.publishing import separated, splits
from rankbeam.transforms.goldens.records.items import Golden, Made, Reason, State
from rankbeam.transforms.goldens.records.types import UNANSWERABLE
from rankbeam.transforms.kernels.sampling import shuffled
from rankbeam.transforms.kernels.wording import UNREACHABLE, difficulty

KNOWN_TO_MODEL, COPIED_WORDS, CLOZE = "known_to_model", "copied_words", "cloze"
_KNOWN, _COPIED = 0.8, 0.9
_LEAST_CHECKED = 20  # items, from which a model that accepts all of them is warned of


def goldens_of(goldens: Goldens, plan: GoldensPlan, progress: RoundProgress) -> list[Golden]:
    """The accepted items, sorted by id; those that share relevant documents are in one split."""
    split = splits_of(goldens, plan)
    items = sorted(progress.accepted, key=lambda item: item.item_id)
    return separated([_golden(item, split[item.topic], goldens, progress) for item in items], goldens.split)


def splits_of(goldens: Goldens, plan: GoldensPlan) -> dict[int, str]:
    """The split of every topic, by the quotas of the plan, so that it does not depend on what was accepted."""
    quotas: Counter[int] = Counter()
    for (stratum, _), quota in plan.quotas.items():
        quotas[int(stratum[0])] += quota
    order = [int(topic) for topic in shuffled([str(topic) for topic in sorted(quotas)], goldens.wanted.seed, "split")]
    return splits(quotas, goldens.split, order)


def _golden(item: Made, split: str, goldens: Goldens, progress: RoundProgress) -> Golden:
    rank = progress.ranks.get(item.item_id)
    hard = "" if item.type == UNANSWERABLE else difficulty(rank)
    pooled = progress.pooled.get(item.item_id)
    flags = {
        UNREACHABLE: hard == UNREACHABLE,
        KNOWN_TO_MODEL: (item.closed_book or 0.0) >= _KNOWN,
        COPIED_WORDS: item.overlap >= _COPIED,
        CLOZE: goldens.writer.parameters.offline is not None,
    }
    chosen = tuple(name for name, is_set in flags.items() if is_set)
    return Golden(item, split, rank, () if pooled is None else pooled.grades, hard, chosen)


def shortfalls(plan: GoldensPlan, progress: RoundProgress) -> list[dict[str, Any]]:
    """The strata that lack questions after all rounds."""
    lacking = plan.shortfalls(progress.made, {item.item_id for item in progress.accepted})
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
    """Warnings about the benchmark."""
    yield from (*plan.library.warnings, *progress.warnings)
    writer, checker = goldens.writer, goldens.checker
    for role, service in (("writer", writer), ("checker", checker)):
        if service.parameters.offline is not None:
            what = f"{service.kind}: {service.parameters.offline}"
            yield f"{role} {service.name} is not a language model ({what}): {_OFFLINE[role]}"
    if writer.parameters.family == checker.parameters.family and writer.parameters.offline is None:
        yield f"writer and checker are of one family ({writer.parameters.family}), which favours its own texts"
    yield from _too_kind(goldens, progress.made)
    if plan.library.too_short:
        some = ", ".join(plan.library.too_short[:3])
        yield f"{len(plan.library.too_short):,} documents are too short for a question, such as {some}"
    if len(plan.library.documents) == 1:
        yield "there is one document: questions about two documents cannot be made, and any search finds it"
    yield from _uneven(goldens, plan, progress)
    missing = sum(shortfall["missing"] for shortfall in shortfalls(plan, progress))
    if missing:
        yield f"{missing:,} of {goldens.wanted.items:,} questions are missing; coverage.json names strata and types"
    if progress.failed:
        kinds = Counter(str(item.failure) for item in progress.failed)
        kinds_text = ", ".join(f"{number:,} {kind}" for kind, number in sorted(kinds.items()))
        failed = f"{len(progress.failed):,} questions failed and may succeed later ({kinds_text})"
        yield f"{failed}: run the same command again"


_OFFLINE = {
    "writer": "its questions are sentences with a gap (cloze), and test the pipeline, not a system",
    "checker": "it counts common words and does not judge anything",
}


def _uneven(goldens: Goldens, plan: GoldensPlan, progress: RoundProgress) -> Iterator[str]:
    """Splits that shared documents have changed."""
    items, split = goldens_of(goldens, plan, progress), splits_of(goldens, plan)
    moved = sum(item.split != split[item.made.topic] for item in items)
    if moved:
        counts = Counter(item.split for item in items)
        numbers = ", ".join(f"{name} {counts[name]:,}" for name in goldens.split)
        problem = f"{moved:,} questions left the split of their topic, so that no document is relevant in two splits"
        yield f"{problem}; questions by split: {numbers}"


def _too_kind(goldens: Goldens, items: Sequence[Made]) -> Iterator[str]:
    """A checking model that accepts everything."""
    checked = [one for one in items if any(vote.step == "checks" for vote in one.votes)]
    refused = [one for one in checked if one.reason in (Reason.CHECKS, Reason.NOT_DERIVABLE, Reason.OTHER_ANSWER)]
    if len(checked) >= _LEAST_CHECKED and not refused:
        yield (
            f"checker {goldens.checker.name} accepted all of {len(checked):,} questions (100%): it may say yes to "
            "everything; look at a sample with `rankbeam goldens review`, or name another model"
        )


def rejections(progress: RoundProgress) -> list[Made]:
    """The items that are out, sorted by id."""
    return sorted((item for item in progress.made if item.state is not State.ACCEPTED), key=lambda item: item.item_id)
