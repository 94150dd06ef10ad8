"""Evidence: the spans of documents that judge chunks where the dataset's unit is `span`.

In a pool of judgements an evidence has an id as a document has one: that of its span, and its group in brackets.
"""

import re

from rankbeam.transforms.records.chunking import chunk_id, parse_chunk_id

_EVIDENCE_ID = re.compile(r"(.+#\d+-\d+)(?: \(([^#]+)\))?", re.DOTALL)


def evidence_id(doc_id: str, start: int, end: int, group: str | None) -> str:
    """The id of an evidence.

    >>> evidence_id("manual", 10, 90, "a"), evidence_id("manual", 10, 90, None)
    ('manual#10-90 (a)', 'manual#10-90')
    """
    return chunk_id(doc_id, start, end) + ("" if group is None else f" ({group})")


def parse_evidence_id(name: str) -> tuple[str, int, int, str | None]:
    """Document, start, end and group of an evidence's id.

    >>> parse_evidence_id("manual#10-90 (a)"), parse_evidence_id("c#3#10-90")
    (('manual', 10, 90, 'a'), ('c#3', 10, 90, None))
    """
    match = _EVIDENCE_ID.fullmatch(name)
    span = None if match is None else parse_chunk_id(match[1])
    if match is None or span is None:
        raise ValueError(f"{name!r} is not the id of an evidence")
    return *span, match[2]
