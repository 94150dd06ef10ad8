"""Ids of chunks: the document's id and the span of its text, `doc#start-end`."""

import re

_CHUNK_ID = re.compile(r"(.+)#(0|[1-9][0-9]{0,17})-([1-9][0-9]{0,17})", re.DOTALL)


def chunk_id(doc_id: str, start: int, end: int) -> str:
    """The id of a chunk.

    >>> chunk_id("manual", 0, 120)
    'manual#0-120'
    """
    return f"{doc_id}#{start}-{end}"


def parse_chunk_id(name: str) -> tuple[str, int, int] | None:
    """The document's id, start and end in a chunk's id; None for any other id.

    >>> parse_chunk_id("c#3#0-120"), parse_chunk_id("c#3")
    (('c#3', 0, 120), None)
    """
    match = _CHUNK_ID.fullmatch(name)
    if match is None or int(match[2]) >= int(match[3]):
        return None
    return match[1], int(match[2]), int(match[3])
