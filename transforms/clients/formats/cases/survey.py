"""Survey of a file of cases, read once before any work: the tool, what its rows have, and what users should know."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from rankbeam.transforms.clients.formats.cases.objects import rows_in, state_of
from rankbeam.transforms.clients.formats.cases.read import SAMPLE_ROWS, Layout, layout_of, read_cases
from rankbeam.transforms.clients.formats.cases.source import CaseSource
from rankbeam.transforms.records.conversations import TURN
from rankbeam.transforms.records.errors import InputError

NOTES = {
    "joined": "contexts of {count:,} rows are one text, split at each '|'; a '|' inside a context splits it, too",
    "several reference": "{count:,} rows have several reference answers; the first one is used",
    "several answer": "{count:,} rows have several answers; the first one is used",
    "other parts": "in {count:,} rows, parts other than text, such as images, are left out",
    "text history": "{count:,} rows have messages before the prompt as plain text; nothing shows who wrote them, so "
    "they are not used as history",
    "flattened": "in {count:,} rows, alternatives among the relevant documents all count as relevant",
}
"""Notes for users, by the keys of `Case.notes`."""


_PARTS = ("answers", "contexts", "references", "judged")


@dataclass(frozen=True)
class Survey:
    """The counts of a file of cases."""

    layout: Layout
    rows: int
    configs: tuple[str, ...]  # systems that answered; one empty name where rows name none
    answers: int
    contexts: int
    references: int
    judged: int  # rows with relevant documents
    has_ids: bool  # whether all contexts have ids
    repeated: int  # rows that repeat a query of the same system
    counts: dict[str, int]
    in_conversations: bool  # whether some question is a later turn

    def notes(self) -> Iterator[str]:
        """Notes for users."""
        for key, count in sorted(self.counts.items()):
            yield NOTES[key].format(count=count)
        if self.repeated and not self.answers:
            yield f"{self.repeated:,} rows repeat a question of an earlier row; each question is one query"


def survey_of(source: CaseSource) -> Survey:
    """Read a file of cases from its beginning to its end, once for each of its versions."""
    return _survey(source.text, state_of(source.path))


@lru_cache(maxsize=16)
def _survey(text: str, version: object) -> Survey:  # noqa: ARG001  a file that has changed is read again
    source = CaseSource.parse(text)
    layout = layout_of(source, list(islice(rows_in(source.path), SAMPLE_ROWS)))
    counts, parts = Counter[str](), Counter[str]()
    seen: dict[tuple[str, str], None] = {}
    configs: dict[str, None] = {}
    without_ids = 0
    for case in read_cases(source):
        if not case.question:
            raise InputError("has no question", path=source.path, line=case.line)
        counts.update(case.notes)
        configs.setdefault(case.config)
        seen.setdefault((case.config, case.query_id))
        stated = {
            "answers": case.answer,
            "contexts": case.contexts,
            "references": case.reference if case.expected_steps is None else case.expected_steps,
            "judged": case.relevant,
            "turns": case.attributes.get(TURN),
        }
        parts.update(["rows", *(name for name, value in stated.items() if value is not None)])
        without_ids += any(name is None for name, _ in case.contexts or ())
    return Survey(
        layout,
        parts["rows"],
        tuple(configs),
        parts["answers"],
        parts["contexts"],
        parts["references"],
        parts["judged"],
        bool(parts["contexts"]) and not without_ids,
        parts["rows"] - len(seen),
        dict(counts),
        bool(parts["turns"]),
    )
