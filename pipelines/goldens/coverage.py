"""The coverage of a benchmark: documents and topics with questions, types by difficulty, acceptance at every stage."""

from collections import Counter
from collections.abc import Sequence
from importlib.resources import files as package_files
from typing import Any

from rankbeam.transforms.goldens.library import Library
from rankbeam.transforms.goldens.records.items import Golden, Made, Reason, State
from rankbeam.transforms.kernels.wording import DIFFICULTIES

_EXAMPLES = 20


def coverage(
    library: Library, items: Sequence[Golden], rejected: Sequence[Made], lacking: list[dict[str, Any]]
) -> dict[str, Any]:
    """All counts, as JSON values."""
    judged = {doc_id for item in items for doc_id in (item.made.doc_ids or _documents(item.made))}
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


def stages(items: Sequence[Golden], rejected: Sequence[Made]) -> list[dict[str, Any]]:
    """For every stage, how many candidates reached it, and how many it rejected."""
    counts = Counter(item.reason for item in rejected if item.state is State.REJECTED)
    failed = sum(item.state is State.FAILED for item in rejected)
    reached = len(items) + len(rejected) - failed
    lines = []
    for reason in Reason:
        lines.append({"stage": str(reason), "reached": reached, "rejected": counts[reason]})
        reached -= counts[reason]
    return [*lines, {"stage": "accepted", "reached": reached, "rejected": 0}]


def as_html(name: str, counts: dict[str, Any]) -> str:
    """A page for people."""
    from jinja2 import Environment

    template = package_files("rankbeam.pipelines.goldens").joinpath("templates", "coverage.html").read_text("utf-8")
    return (
        Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
        .from_string(template)
        .render(name=name, difficulties=DIFFICULTIES, **counts)
    )


def _documents(item: Made) -> tuple[str, ...]:
    return tuple(name.rpartition("#")[0] for name in item.spans)


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
    of_type = Counter(item.made.type for item in items)
    cells = Counter((item.made.type, item.difficulty) for item in items)
    return [
        {"type": kind, "questions": of_type[kind], **{level: cells[kind, level] for level in DIFFICULTIES}}
        for kind in sorted(of_type)
    ]


def _difficulty(items: Sequence[Golden]) -> list[dict[str, Any]]:
    """Intended and measured difficulty of questions."""
    graded = [(dict(item.made.profile).get("difficulty"), item.difficulty) for item in items if item.difficulty]
    cells = Counter((meant, level) for meant, level in graded if meant is not None)
    meant = sorted({name for name, _ in cells})
    return [{"asked": name, **{level: cells[name, level] for level in DIFFICULTIES}} for name in meant]
